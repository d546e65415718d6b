const plus = 43
const minus = 45
const point = 46
const zero = 48
const letterE = 101
const letterI = 105
const letterN = 110

/** A double is exact for integers below this, so digits can be accumulated exactly, */
const exactMantissa = 2 ** 53
/** and for powers of ten up to this one. An operation on two exact numbers rounds once, so correctly (Clinger 1990). */
const exactPower = 22
/** Maximum characters of a number: more would only keep the reader busy. */
const longest = 4096
const powersOfTen = Float64Array.from({ length: exactPower + 1 }, (_, power) => Number(`1e${power}`))

/**
 * Parses numbers in pages of metrics: the syntax of Go's `strconv.ParseFloat` without hexadecimal numbers and
 * underscores, as in Prometheus' readers. Results are correctly rounded. A number too large for a double is invalid.
 */
export class NumberBytes {
  /** End of the last number; -1 if it was invalid. */
  end = -1

  /** The number at `from`, of at most 4,096 characters. It may be NaN: only `end` shows whether it is valid. */
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

  /** Integer milliseconds within an int64 (exact fractions of a second until the year 287396), as microseconds. */
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

  /** Seconds, as microseconds. NaN and infinity are invalid. */
  readSeconds(bytes: Buffer, from: number, to: number): number {
    const seconds = this.read(bytes, from, to)
    if (!Number.isFinite(seconds)) return this.#none()
    return Math.max(-Number.MAX_VALUE, Math.min(Math.round(seconds * 1e6) + 0, Number.MAX_VALUE))
  }

  #power = 0

  /** Reads the exponent after `e`. Returns its end; -1 if it has no digits. */
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

  /** Reads `NaN`, or `Inf` or `Infinity` with or without a sign, in any case. */
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
