/** Result of parsing a line. */
export const Line = { part: 0, whole: 1, bad: 2 } as const
export type Line = (typeof Line)[keyof typeof Line]

/** More digits are not a length: doubles are exact only up to here. */
const mostDigits = 15
const unknownLength = 0x3f

/** The number after a type byte of RESP, and the end of its line. One instance parses one line at a time. */
export class LengthLine {
  /** -1 also stands for "null". */
  value = 0
  /** RESP3: `?`, the length is not known in advance. */
  streamed = false
  /** Offset after the line. */
  next = 0

  /** `at` is the byte after the type. */
  read(bytes: Buffer, at: number, end: number): Line {
    let from = at
    this.value = 0
    this.streamed = false
    if (from < end && bytes[from] === unknownLength) {
      this.streamed = true
      return this.#finish(bytes, from + 1, end)
    }
    const negative = from < end && bytes[from] === 0x2d
    if (negative) from++
    let to = from
    for (; to < end; to++) {
      const digit = bytes[to]! - 0x30
      if (digit < 0 || digit > 9) break
      this.value = this.value * 10 + digit
      if (to - from === mostDigits) return Line.bad
    }
    if (to === end) return Line.part
    if (to === from) return Line.bad
    if (negative) {
      if (this.value !== 1) return Line.bad
      this.value = -1
    }
    return this.#finish(bytes, to, end)
  }

  #finish(bytes: Buffer, at: number, end: number): Line {
    if (at < end && bytes[at] !== 0x0d) return Line.bad
    if (at + 1 < end && bytes[at + 1] !== 0x0a) return Line.bad
    this.next = at + 2
    return at + 1 < end ? Line.whole : Line.part
  }
}

/** Whether the line is complete; undefined if more bytes are needed. */
export function isFound(line: Line): boolean | undefined {
  return line === Line.part ? undefined : line === Line.whole
}
