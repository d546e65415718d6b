import { isDigit } from '../../foundation/lib/ascii.ts'

/**
 * Microseconds since the Unix epoch of an RFC 3339 time (section 5.6); 0 if invalid or before
 * 1970. Also accepted: a space instead of the `T`, a comma before the fraction, and a zone without its colon. A time
 * without a zone is invalid, as it is ambiguous. Fractions of a microsecond are cut off.
 */
export function rfc3339Us(bytes: Uint8Array, from: number, to: number): number {
  if (to - from < 20 || to > bytes.length) return 0
  const year = digits(bytes, from, 4)
  const month = digits(bytes, from + 5, 2)
  const day = digits(bytes, from + 8, 2)
  const hour = digits(bytes, from + 11, 2)
  const minute = digits(bytes, from + 14, 2)
  const second = digits(bytes, from + 17, 2)
  if (year < 1970 || month < 1 || month > 12 || day < 1 || day > 31) return 0
  // 60: a leap second.
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60) return 0
  if (bytes[from + 4] !== dash || bytes[from + 7] !== dash) return 0
  if (bytes[from + 13] !== colon || bytes[from + 16] !== colon) return 0
  const separator = bytes[from + 10]! | 0x20
  if (separator !== letterT && separator !== blank) return 0
  let at = from + 19
  let micros = 0
  if (bytes[at] === dot || bytes[at] === comma) {
    let unit = 100_000
    const first = ++at
    for (; at < to && isDigit(bytes[at]!); at++) {
      micros += (bytes[at]! - 0x30) * unit
      unit = unit >= 10 ? unit / 10 : 0
    }
    if (at === first) return 0
  }
  const offsetMinutes = zoneMinutes(bytes, at, to)
  if (offsetMinutes === noZone) return 0
  const minutes = (daysUntil(year, month, day) * 24 + hour) * 60 + minute - offsetMinutes
  return Math.max(0, (minutes * 60 + second) * 1e6 + micros)
}

const noZone = 0x7fff

/** Offset of `Z`, `+01:00` or `-0500`, in minutes east of Greenwich, if nothing else follows. */
function zoneMinutes(bytes: Uint8Array, from: number, to: number): number {
  if (from >= to) return noZone
  const sign = bytes[from]!
  if ((sign | 0x20) === letterZ) return to === from + 1 ? 0 : noZone
  if (sign !== plus && sign !== dash) return noZone
  const minutesAt = bytes[from + 3] === colon ? from + 4 : from + 3
  if (to !== minutesAt + 2) return noZone
  const hours = digits(bytes, from + 1, 2)
  const minutes = digits(bytes, minutesAt, 2)
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return noZone
  return (sign === dash ? -1 : 1) * (hours * 60 + minutes)
}

/** Days from 1970-01-01 to a day of the Gregorian calendar; years are counted from March, so a leap day is last. */
function daysUntil(year: number, month: number, day: number): number {
  const y = month > 2 ? year : year - 1
  const ofYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1
  return 365 * y + Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400) + ofYear - 719_468
}

/** Value of `count` digits; -1 if invalid. */
function digits(bytes: Uint8Array, at: number, count: number): number {
  let value = 0
  for (let i = at; i < at + count; i++) {
    const digit = bytes[i]! - 0x30
    if (!(digit >= 0 && digit <= 9)) return -1
    value = value * 10 + digit
  }
  return value
}

/**
 * Microseconds since the Unix epoch of a number of seconds, milliseconds, microseconds or nanoseconds since
 * then: the unit follows from its magnitude, for times from 1973 to 5138. 0 if invalid.
 */
export function epochUs(value: number): number {
  if (!(value >= 1e8 && value < 1e20)) return 0
  if (value < 1e11) return Math.round(value * 1e6)
  if (value < 1e14) return Math.round(value * 1e3)
  return value < 1e17 ? Math.floor(value) : Math.floor(value / 1e3)
}

const scratch = Buffer.alloc(40)

/** Microseconds since the Unix epoch of a time field, as a number or text; 0 if invalid. */
export function fieldUs(value: unknown): number {
  if (typeof value === 'number') return epochUs(value)
  if (typeof value !== 'string' || value.length < 9 || value.length > scratch.length) return 0
  if (/^\d+(?:\.\d+)?$/.test(value)) return epochUs(Number(value))
  return rfc3339Us(scratch, 0, scratch.write(value, 'latin1'))
}

const blank = 0x20
const plus = 0x2b
const comma = 0x2c
const dash = 0x2d
const dot = 0x2e
const colon = 0x3a
const letterT = 0x74
const letterZ = 0x7a
