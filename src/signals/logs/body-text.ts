const ascii = 128
/** End of the common scripts with two cases: Latin, Greek, Cyrillic, Armenian. */
const common = 0x600
/** Start of East Asian scripts, which have one case. */
const eastFrom = 0x2e80
const eastTo = 0xa640

/** Lower case letter by code point. */
const lower = new Uint16Array(common)
for (let point = 0; point < common; point++) lower[point] = lowered(point)

/**
 * Case-insensitive search for a text in bodies as stored, in UTF-8, without decoding
 * them. Takes linear time for any input (Knuth, Morris and Pratt).
 */
export class BodyText {
  readonly #points: Uint32Array
  /** By the number of matching points: how many still match if the next one does not. */
  readonly #fallbacks: Uint32Array

  constructor(text: string) {
    this.#points = Uint32Array.from(text, letter => folded(letter.codePointAt(0)!))
    this.#fallbacks = fallbacksOf(this.#points)
  }

  isIn(bytes: Uint8Array, from: number, to: number): boolean {
    const points = this.#points
    const fallbacks = this.#fallbacks
    const { length } = points
    if (length === 0) return true
    for (let at = from, fitting = 0; at < to; ) {
      let point = bytes[at++]!
      if (point < ascii) point = lower[point]!
      else {
        const more = point >= 0xf0 ? 3 : point >= 0xe0 ? 2 : 1
        point &= 0x3f >> more
        for (const end = Math.min(to, at + more); at < end; at++) point = (point << 6) | (bytes[at]! & 0x3f)
        point = folded(point)
      }
      while (fitting > 0 && points[fitting] !== point) fitting = fallbacks[fitting]!
      if (points[fitting] === point && ++fitting === length) return true
    }
    return false
  }
}

function fallbacksOf(points: Uint32Array): Uint32Array {
  const fallbacks = new Uint32Array(points.length + 1)
  for (let i = 1, fitting = 0; i < points.length; i++) {
    while (fitting > 0 && points[fitting] !== points[i]) fitting = fallbacks[fitting]!
    if (points[fitting] === points[i]) fitting++
    fallbacks[i + 1] = fitting
  }
  return fallbacks
}

function folded(point: number): number {
  if (point < common) return lower[point]!
  return point >= eastFrom && point < eastTo ? point : lowered(point)
}

/** Lower case of a code point; the point itself if its lower case has several points. */
function lowered(point: number): number {
  if (point > 0x10ffff) return point
  const text = String.fromCodePoint(point).toLowerCase()
  const low = text.codePointAt(0)!
  return text.length === String.fromCodePoint(low).length ? low : point
}
