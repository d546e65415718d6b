/** A range of another buffer; empty unless `end` is above `start`. Created once and reused. */
export class ByteRange {
  start = 0
  end = 0

  clear(): void {
    this.start = 0
    this.end = 0
  }

  set(start: number, end: number): void {
    this.start = start
    this.end = end
  }

  get empty(): boolean {
    return this.end <= this.start
  }

  /** Removes blanks (space and tab) at both ends. */
  trim(bytes: Uint8Array): void {
    while (this.start < this.end && isBlank(bytes[this.start]!)) this.start++
    while (this.end > this.start && isBlank(bytes[this.end - 1]!)) this.end--
  }

  /** True if the bytes equal `text` (in lower case), ignoring the case of ASCII letters. */
  spells(bytes: Uint8Array, text: string): boolean {
    return this.end - this.start === text.length && this.begins(bytes, text)
  }

  /** True if the bytes begin with `text` (in lower case), compared as in `spells`. */
  begins(bytes: Uint8Array, text: string): boolean {
    if (this.end - this.start < text.length) return false
    for (let i = 0; i < text.length; i++)
      if (lower(bytes[this.start + i]!) !== text.charCodeAt(i)) return false
    return true
  }
}

/** Lower-cases an ASCII letter, returns any other byte unchanged. */
export function lower(byte: number): number {
  return byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte
}

export function isBlank(byte: number): boolean {
  return byte === 0x20 || byte === 0x09
}
