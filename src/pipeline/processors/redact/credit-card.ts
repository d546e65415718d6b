import { is, isDigit, isHex, word } from './characters.ts'
import type { Detector } from './detector.ts'

const mostDigits = 19
const digits = new Uint8Array(mostDigits)
/** Offsets at which the number may end, by count of digits: the end of a group, or 0 within a group. */
const ends = new Int32Array(mostDigits + 1)

/**
 * Payment card numbers: the issuer's range with its lengths, and the check digit of ISO/IEC 7812-1 (Luhn). Groups are
 * separated by single spaces or hyphens. Decimal fractions and the ends of UUIDs do not match.
 */
export const creditCard: Detector = {
  types: ['credit_card'],
  triggers: '',
  runs: (count, next) => count <= mostDigits && count >= (next === ' ' || next === '-' ? 4 : 12),
  find(units, at, find) {
    const first = units[at]!
    if (first < 50 || first > 54) return false
    const separator = units[at + find.run]!
    if (units[at - 1] === 46 && isDigit(units[at - 2])) return false
    if (units[at - 1] === 45 && endsUuidGroup(units, at - 1)) return false
    const count = readGroups(units, at, find.run, separator)
    if (count < 12) return false
    const lengths = lengthsOf(digits)
    if (lengths === 0) return false
    for (let length = count; length >= 12; length--) {
      if ((lengths & (1 << length)) === 0 || ends[length] === 0) continue
      if (!endsNumber(units, ends[length]!) || !hasCheckDigit(length) || isOneDigit(length)) continue
      find.start = at
      find.end = ends[length]!
      return true
    }
    return false
  },
}

/** Reads digits in groups of at least three; returns their count. */
function readGroups(units: Uint8Array, from: number, run: number, separator: number): number {
  let count = 0
  let at = from
  let group = run
  while (count + group <= mostDigits) {
    for (let i = 0; i < group; i++) {
      digits[count++] = units[at++]! - 48
      ends[count] = 0
    }
    ends[count] = at
    if (units[at] !== separator || !isDigit(units[at + 1])) break
    group = 1
    while (group <= mostDigits && isDigit(units[at + 1 + group])) group++
    if (group < 3) break
    at++
  }
  return count
}

/** Bit set of the lengths of this issuer's numbers; 0 for an unknown issuer. */
function lengthsOf(number: Uint8Array): number {
  const two = number[0]! * 10 + number[1]!
  const three = two * 10 + number[2]!
  const four = three * 10 + number[3]!
  const sixteen = 1 << 16
  const sixteenAndUp = sixteen | (1 << 17) | (1 << 18) | (1 << 19)
  // Visa.
  if (two < 50 && two >= 40) return (1 << 13) | sixteen | (1 << 19)
  // Mastercard, and Mir.
  if ((two >= 51 && two <= 55) || (four >= 2221 && four <= 2720)) return sixteen
  if (four >= 2200 && four <= 2204) return sixteenAndUp
  // American Express.
  if (two === 34 || two === 37) return 1 << 15
  // JCB.
  if (four >= 3528 && four <= 3589) return sixteenAndUp
  // Diners Club.
  if (two === 36) return (1 << 14) | sixteenAndUp
  if (two === 38 || two === 39 || (three >= 300 && three <= 305) || four === 3095)
    return (1 << 14) | sixteenAndUp
  // Discover and UnionPay.
  if (four === 6011 || two === 65 || (three >= 644 && three <= 649) || two === 62) return sixteenAndUp
  return isMaestro(four) ? 0xff000 : 0
}

function isMaestro(four: number): boolean {
  switch (four) {
    case 5018:
    case 5020:
    case 5038:
    case 5893:
    case 6304:
    case 6759:
    case 6761:
    case 6762:
    case 6763:
      return true
    default:
      return false
  }
}

function hasCheckDigit(length: number): boolean {
  let sum = 0
  for (let i = length - 1, double = false; i >= 0; i--, double = !double) {
    const value = double ? digits[i]! * 2 : digits[i]!
    sum += value > 9 ? value - 9 : value
  }
  return sum % 10 === 0
}

function isOneDigit(length: number): boolean {
  for (let i = 1; i < length; i++) if (digits[i] !== digits[0]) return false
  return true
}

function endsNumber(units: Uint8Array, end: number): boolean {
  return !is(units[end], word) && !(units[end] === 46 && isDigit(units[end + 1]))
}

/** Whether `-xxxx` precedes the hyphen at `at`, as in a UUID. */
function endsUuidGroup(units: Uint8Array, at: number): boolean {
  for (let i = at - 4; i < at; i++) if (!isHex(units[i])) return false
  return units[at - 5] === 45 && isHex(units[at - 6])
}
