/** What became of reading a line. */
export const Line = { part: 0, whole: 1, bad: 2 } as const
export type Line = (typeof Line)[keyof typeof Line]

/** More is no length: a double counts exactly so far. */
const mostDigits = 15
const unknownLength = 0x3f

/** The number behind a type byte of RESP, and where its line ends. One instance reads one line after the other. */
export class LengthLine {
  /** -1 also stands for "null". */
  value = 0
  /** RESP3: `?`, the length is not known beforehand. */
  streamed = false
  /** Behind the line. */
  next = 0

  /** `at` is the byte behind the type. */
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

/** Whether the line is there; undefined: more bytes are needed to tell. */
export function isFound(line: Line): boolean | undefined {
  return line === Line.part ? undefined : line === Line.whole
}
