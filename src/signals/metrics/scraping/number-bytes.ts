const plus = 43
const minus = 45
const point = 46
const zero = 48
const letterE = 101
const letterI = 105
const letterN = 110

/** A double holds every whole number below this, so what is added up digit by digit is exact as long as it stays there, */
const exactMantissa = 2 ** 53
/** and every power of ten up to this one. What both hold is rounded once, so correctly (Clinger 1990). */
const exactPower = 22
/** Characters of a number: more digits keep a reader busy, and tell nothing. */
const longest = 4096
const powersOfTen = Float64Array.from({ length: exactPower + 1 }, (_, power) => Number(`1e${power}`))

/**
 * Reads numbers as they stand in pages of metrics: what Go's `strconv.ParseFloat` takes, but for hexadecimal ones and
 * underscores, as Prometheus' readers do. They are correctly rounded. What is too large for a double is no number.
 */
export class NumberBytes {
  /** Where the number ends that was read last; -1: there was none. */
  end = -1

  /**
   * The number that begins at `from`, as far as it goes, but no further than 4,096 characters. NaN is one of them. Only
   * `end` tells whether there is one.
   */
  read(bytes: Buffer, from: number, until: number): number {
    const to = Math.min(until, from + longest)
    let at = from
    let negative = false
    if (at < to && (bytes[at] === minus || bytes[at] === plus)) negative = bytes[at++] === minus
    let mantissa = 0
    const first = at
    for (; at < to; at++) {
      const digit = bytes[at]! - zero
      if (digit >>> 0 > 9) break
      mantissa = mantissa * 10 + digit
    }
    let hasDigits = at > first
    let scale = 0
    if (at < to && bytes[at] === point) {
      const fraction = ++at
      for (; at < to; at++) {
        const digit = bytes[at]! - zero
        if (digit >>> 0 > 9) break
        mantissa = mantissa * 10 + digit
      }
      scale = fraction - at
      hasDigits ||= scale < 0
    }
    if (!hasDigits) return this.#word(bytes, from, to)
    if (at < to && (bytes[at]! | 0x20) === letterE) {
      at = this.#exponent(bytes, at + 1, to)
      if (at < 0) return this.#none()
      scale += this.#power
    }
    this.end = at
    if (mantissa >= exactMantissa || scale > exactPower || scale < -exactPower)
      return this.#long(bytes, from, at)
    if (scale < 0) mantissa /= powersOfTen[-scale]!
    else if (scale > 0) mantissa *= powersOfTen[scale]!
    return negative ? -mantissa : mantissa
  }

  /**
   * A whole number of milliseconds, of the size of an int64 (its fraction of a second is exact until the year 287396),
   * in microseconds.
   */
  readMilliseconds(bytes: Buffer, from: number, until: number): number {
    const to = Math.min(until, from + longest)
    let at = from
    const negative = at < to && bytes[at] === minus
    if (negative) at++
    const first = at
    let value = 0
    for (; at < to; at++) {
      const digit = bytes[at]! - zero
      if (digit >>> 0 > 9) break
      value = value * 10 + digit
    }
    if (at === first) return this.#none()
    this.end = at
    if (value >= exactMantissa) {
      const exact = BigInt(bytes.toString('latin1', first, at))
      if (exact > (negative ? 2n ** 63n : 2n ** 63n - 1n)) return this.#none()
      value = Number(exact)
    }
    return (negative ? -value : value) * 1000 + 0
  }

  /** Seconds, in microseconds. NaN and infinite ones are none. */
  readSeconds(bytes: Buffer, from: number, to: number): number {
    const seconds = this.read(bytes, from, to)
    if (!Number.isFinite(seconds)) return this.#none()
    return Math.max(-Number.MAX_VALUE, Math.min(Math.round(seconds * 1e6) + 0, Number.MAX_VALUE))
  }

  #power = 0

  /** Behind the `e`. Where it ends; -1: it has no digits. */
  #exponent(bytes: Buffer, from: number, to: number): number {
    let at = from
    let negative = false
    if (at < to && (bytes[at] === minus || bytes[at] === plus)) negative = bytes[at++] === minus
    const first = at
    let power = 0
    for (; at < to; at++) {
      const digit = bytes[at]! - zero
      if (digit >>> 0 > 9) break
      if (power < 1e6) power = power * 10 + digit
    }
    this.#power = negative ? -power : power
    return at === first ? -1 : at
  }

  #long(bytes: Buffer, from: number, to: number): number {
    const value = Number(bytes.toString('latin1', from, to))
    return Number.isFinite(value) ? value : this.#none()
  }

  /** `NaN`, or `Inf` or `Infinity` with or without a sign, in any case. */
  #word(bytes: Buffer, from: number, to: number): number {
    let at = from
    const sign = bytes[at]
    if (sign === minus || sign === plus) at++
    const first = at < to ? bytes[at]! | 0x20 : 0
    if (first === letterI) {
      const length = spells(bytes, at, to, 'infinity') ? 8 : spells(bytes, at, to, 'inf') ? 3 : 0
      if (length === 0) return this.#none()
      this.end = at + length
      return sign === minus ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
    }
    if (first !== letterN || at > from || !spells(bytes, at, to, 'nan')) return this.#none()
    this.end = at + 3
    return Number.NaN
  }

  #none(): number {
    this.end = -1
    return Number.NaN
  }
}

function spells(bytes: Buffer, from: number, to: number, word: string): boolean {
  if (from + word.length > to) return false
  for (let i = 0; i < word.length; i++) if ((bytes[from + i]! | 0x20) !== word.charCodeAt(i)) return false
  return true
}
