const newline = 0x0a

export interface LogRingOptions {
  /** Memory for everything that is kept. Allocated at once, resident as it fills. */
  readonly bytes?: number
  /** How many of the first lines stay for good; they take a quarter of the bytes at most. */
  readonly first?: number
}

/**
 * The recent lines of a log, within a fixed number of bytes. The first lines stay, for the start of a program tells most;
 * of the others the oldest give way.
 */
export class LogRing {
  readonly #bytes: Buffer
  /** Lines that may still be added to the first ones; 0 once one of them found no room. */
  #firstLeft: number
  /** Where the first lines end and the circle begins. */
  #base = 0
  /** Of the oldest byte in the circle, counted from its beginning. */
  #oldest = 0
  #used = 0
  #leftOut = 0

  constructor({ bytes = 256 * 1024, first = 64 }: LogRingOptions = {}) {
    this.#bytes = Buffer.allocUnsafe(bytes)
    this.#firstLeft = first
  }

  /** Keeps a line of JSON that ends with a newline and holds no other. One of over an eighth of the bytes is cut. */
  add(line: string): void {
    const longest = this.#bytes.length >> 3
    let bytes: Buffer = Buffer.from(line)
    if (bytes.length > longest) bytes = cutLine(line, bytes.length, longest)
    if (this.#firstLeft > 0) {
      if (this.#base + bytes.length <= this.#bytes.length >> 2) {
        this.#base += bytes.copy(this.#bytes, this.#base)
        this.#firstLeft--
        return
      }
      this.#firstLeft = 0
    }
    const size = this.#bytes.length - this.#base
    while (this.#used + bytes.length > size) this.#dropOldest(size)
    const at = this.#base + ((this.#oldest + this.#used) % size)
    const fitting = bytes.copy(this.#bytes, at)
    bytes.copy(this.#bytes, this.#base, fitting)
    this.#used += bytes.length
  }

  #dropOldest(size: number): void {
    const from = this.#base + this.#oldest
    let end = this.#bytes.indexOf(newline, from) + 1
    // Behind the last byte the circle goes on at its beginning.
    if (end === 0) end = this.#bytes.indexOf(newline, this.#base) + 1 + size
    this.#oldest = (end - this.#base) % size
    this.#used -= end - from
    this.#leftOut++
  }

  /** All that is kept as NDJSON, the oldest line first; where lines are gone, a line says how many. */
  text(): string {
    const first = this.#bytes.toString('utf8', 0, this.#base)
    const note = { level: 'info', msg: 'older records are omitted here', omitted: this.#leftOut }
    const gap = this.#leftOut > 0 ? `${JSON.stringify(note)}\n` : ''
    const from = this.#base + this.#oldest
    const end = from + this.#used
    const around = Math.max(0, end - this.#bytes.length)
    // Put together before it is decoded: a character may lie on both sides of the end.
    const latest = Buffer.concat([
      this.#bytes.subarray(from, end - around),
      this.#bytes.subarray(this.#base, this.#base + around),
    ])
    return first + gap + latest.toString()
  }
}

/** What is kept of a line that is too long, as a line of JSON again. */
function cutLine(line: string, bytes: number, longest: number): Buffer {
  // Written as JSON once more, a character takes six bytes at most.
  const begins = line.slice(0, Math.floor((longest - 128) / 6))
  return Buffer.from(
    `${JSON.stringify({ level: 'info', msg: 'a record that was too long', bytes, begins })}\n`,
  )
}
