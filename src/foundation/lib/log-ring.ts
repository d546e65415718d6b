const newline = 0x0a

export interface LogRingOptions {
  /** Memory for all lines. Allocated at once, resident as it fills. */
  readonly bytes?: number
  /** How many first lines are kept permanently; they take at most a quarter of the bytes. */
  readonly first?: number
}

/**
 * The recent lines of a log, within a fixed number of bytes. The first lines are kept, because a program's start is
 * most informative; of the others the oldest are evicted.
 */
export class LogRing {
  readonly #bytes: Buffer
  /** Lines that may still be added to the first ones; 0 once one did not fit. */
  #firstLeft: number
  /** End of the first lines and start of the circle. */
  #base = 0
  /** Offset of the oldest byte in the circle. */
  #oldest = 0
  #used = 0
  #leftOut = 0

  constructor({ bytes = 256 * 1024, first = 64 }: LogRingOptions = {}) {
    this.#bytes = Buffer.allocUnsafe(bytes)
    this.#firstLeft = first
  }

  /** Adds a line of JSON that ends with its only newline. A line above an eighth of the bytes is truncated. */
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
    // After the last byte the circle continues at its beginning.
    if (end === 0) end = this.#bytes.indexOf(newline, this.#base) + 1 + size
    this.#oldest = (end - this.#base) % size
    this.#used -= end - from
    this.#leftOut++
  }

  /** Everything kept as NDJSON, oldest first; a line in between states how many are missing. */
  text(): string {
    const first = this.#bytes.toString('utf8', 0, this.#base)
    const note = { level: 'info', msg: 'older records are omitted here', omitted: this.#leftOut }
    const gap = this.#leftOut > 0 ? `${JSON.stringify(note)}\n` : ''
    const from = this.#base + this.#oldest
    const end = from + this.#used
    const around = Math.max(0, end - this.#bytes.length)
    // Joined before decoding: a character may span the end of the circle.
    const latest = Buffer.concat([
      this.#bytes.subarray(from, end - around),
      this.#bytes.subarray(this.#base, this.#base + around),
    ])
    return first + gap + latest.toString()
  }
}

/** Truncates a line that is too long, as a line of JSON again. */
function cutLine(line: string, bytes: number, longest: number): Buffer {
  // Re-encoded as JSON, a character takes at most six bytes.
  const begins = line.slice(0, Math.floor((longest - 128) / 6))
  return Buffer.from(
    `${JSON.stringify({ level: 'info', msg: 'a record that was too long', bytes, begins })}\n`,
  )
}
