/** Initial size of the arrays: start, size, name position, order. */
const firstRoom = 256
const longestName = 1024
/** Maximum entries searched for one that covers an address. */
const mostNested = 64
/** Maximum entries and bytes of names. Runtimes with more have freed most of their code. */
const mostEntries = 2 ** 18
const mostTextBytes = 8 * 1024 * 1024

/**
 * Code that one runtime reported: lines `start size name` in hexadecimal, with `0x` in some runtimes. Memory is reused,
 * so later entries override overlapping earlier ones, and the earliest entries are dropped at the limit.
 */
export class PerfMap {
  #count = 0
  #starts = new Float64Array(0)
  #sizes = new Float64Array(0)
  #places = new Uint32Array(0)
  #text = Buffer.alloc(0)
  #textBytes = 0
  /** Entry numbers by start; undefined: not sorted since the last line. */
  #order: Uint32Array | undefined

  /** Memory in bytes. */
  get bytes(): number {
    return this.#starts.length * 24 + (this.#order?.byteLength ?? 0) + this.#text.length
  }

  clear(): void {
    this.#count = 0
    this.#textBytes = 0
    this.#order = undefined
  }

  /** Adds whole lines. */
  add(lines: Buffer): void {
    this.#order = undefined
    for (let at = 0; at < lines.length; ) {
      const end = lines.indexOf(10, at)
      if (end < 0) return
      this.#addLine(lines, at, end)
      at = end + 1
    }
  }

  at(address: number): string | undefined {
    this.#order ??= this.#sorted()
    const order = this.#order
    let low = 0
    let high = order.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#starts[order[middle] as number] as number) <= address) low = middle + 1
      else high = middle
    }
    let last = -1
    for (let i = low - 1; i >= 0 && i >= low - mostNested; i--) {
      const entry = order[i] as number
      if (entry > last && address - (this.#starts[entry] as number) < (this.#sizes[entry] as number))
        last = entry
    }
    return last < 0 ? undefined : this.#nameOf(last)
  }

  #nameOf(entry: number): string {
    const start = this.#places[entry] as number
    const end = entry + 1 < this.#count ? (this.#places[entry + 1] as number) : this.#textBytes
    return this.#text.toString('utf8', start, end)
  }

  #sorted(): Uint32Array {
    const order = new Uint32Array(this.#count)
    for (let i = 0; i < order.length; i++) order[i] = i
    const starts = this.#starts
    return order.sort((a, b) => (starts[a] as number) - (starts[b] as number) || a - b)
  }

  #addLine(bytes: Buffer, from: number, to: number): void {
    const line = bytes.toString('latin1', from, Math.min(to, from + 40))
    const parts = /^(?:0x)?([0-9a-f]{1,12}) (?:0x)?([0-9a-f]{1,8}) (?=.)/.exec(line)
    if (parts === null) return
    const name = from + parts[0].length
    const length = Math.min(to - name, longestName)
    if (this.#count === mostEntries || this.#textBytes + length > mostTextBytes) this.#dropHalf()
    this.#room(length)
    this.#starts[this.#count] = Number.parseInt(parts[1] as string, 16)
    this.#sizes[this.#count] = Number.parseInt(parts[2] as string, 16)
    this.#places[this.#count++] = this.#textBytes
    this.#textBytes += bytes.copy(this.#text, this.#textBytes, name, name + length)
  }

  #dropHalf(): void {
    const half = this.#count >>> 1
    const from = this.#places[half] as number
    this.#starts.copyWithin(0, half, this.#count)
    this.#sizes.copyWithin(0, half, this.#count)
    this.#places.copyWithin(0, half, this.#count)
    this.#text.copyWithin(0, from, this.#textBytes)
    this.#count -= half
    this.#textBytes -= from
    for (let i = 0; i < this.#count; i++) this.#places[i] = (this.#places[i] as number) - from
  }

  #room(length: number): void {
    if (this.#count === this.#starts.length) {
      const room = Math.max(firstRoom, this.#count * 2)
      this.#starts = grown(this.#starts, new Float64Array(room))
      this.#sizes = grown(this.#sizes, new Float64Array(room))
      this.#places = grown(this.#places, new Uint32Array(room))
    }
    if (this.#textBytes + length <= this.#text.length) return
    const text = Buffer.allocUnsafeSlow(Math.max(4096, (this.#textBytes + length) * 2))
    this.#text.copy(text, 0, 0, this.#textBytes)
    this.#text = text
  }
}

function grown<T extends Float64Array | Uint32Array>(from: T, to: T): T {
  to.set(from)
  return to
}
