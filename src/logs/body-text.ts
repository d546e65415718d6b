const ascii = 128
/** Letters of these have two cases and come often: Latin, Greek, Cyrillic, Armenian. */
const common = 0x600
/** East Asian scripts, which have one case. */
const eastFrom = 0x2e80
const eastTo = 0xa640

/** By code point: the same letter in lower case. */
const lower = new Uint16Array(common)
for (let point = 0; point < common; point++) lower[point] = lowered(point)

/**
 * A text that is looked for in bodies as they are kept, in UTF-8, without regard to case, and without making texts of
 * them. Takes time by the length of what is looked through, whatever it is (Knuth, Morris and Pratt).
 */
export class BodyText {
  readonly #points: Uint32Array
  /** By how many points fit: how many still do when the next one does not. */
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

/** The point itself where its lower case is more than one. */
function lowered(point: number): number {
  if (point > 0x10ffff) return point
  const text = String.fromCodePoint(point).toLowerCase()
  const low = text.codePointAt(0)!
  return text.length === String.fromCodePoint(low).length ? low : point
}
