import { isInternationalLength } from './calling-codes.ts'
import { is, isDigit, word } from './characters.ts'
import { type Detector, type Find, Hint } from './detector.ts'
import { keywordBefore, keywordsOf } from './keyword.ts'

/** E.164. */
const mostDigits = 15
const fewestLocal = 6

const keywords = keywordsOf([
  { text: 'phone', whole: false },
  { text: 'telephone', whole: false },
  { text: 'telefon', whole: false },
  { text: 'tel', whole: true },
  { text: 'mobile', whole: false },
  { text: 'cell', whole: true },
  { text: 'cellphone', whole: false },
  { text: 'fax', whole: true },
  { text: 'msisdn', whole: true },
  { text: 'whatsapp', whole: false },
])

/** Possible ends of the last read number, by count of digits; 0 within a group. */
const ends = new Int32Array(mostDigits + 1)

/**
 * Telephone numbers: with + and a calling code (E.164) in a valid length for its country; of North America with
 * separators or an area code in parentheses; any other if a word before it or the attribute's key indicates one.
 */
export const phone: Detector = {
  types: ['phone'],
  triggers: '+(',
  runs: (digits, next) => digits <= mostDigits && (digits >= fewestLocal || next !== ''),
  find(units, at, find) {
    if (units[at] === 43) return isInternational(units, at, find)
    if (units[at] === 40) return isDigit(units[at + 1]) && isNorthAmerican(units, at, find)
    if (isWithinNumber(units, at)) return false
    return (find.run === 3 || find.run === 1) && isNorthAmerican(units, at, find)
      ? true
      : isLocal(units, at, find)
  },
}

function isInternational(units: Uint8Array, at: number, find: Find): boolean {
  if (is(units[at - 1], word) || units[at - 1] === 43 || units[at + 1]! < 49 || !isDigit(units[at + 1]))
    return false
  const count = readNumber(units, at + 1)
  if (count < 7) return false
  const firstThree = leadingDigits(units, at + 1)
  for (let digits = count; digits >= 7; digits--) {
    if (ends[digits] === 0 || !isInternationalLength(firstThree, digits)) continue
    find.start = at
    find.end = ends[digits]!
    return true
  }
  return false
}

function leadingDigits(units: Uint8Array, from: number): number {
  let value = 0
  for (let at = from, digits = 0; digits < 3; at++) {
    if (!isDigit(units[at])) continue
    value = value * 10 + units[at]! - 48
    digits++
  }
  return value
}

/** Reads digits with single separators; returns their count, 0 if there are too many in a row. */
function readNumber(units: Uint8Array, from: number): number {
  let count = 0
  let at = from
  for (;;) {
    let run = 0
    while (isDigit(units[at + run])) if (++run > mostDigits) return 0
    if (count + run > mostDigits) return count
    for (let digits = count + 1; digits < count + run; digits++) ends[digits] = 0
    count += run
    at += run
    ends[count] = is(units[at], word) ? 0 : at
    const skip = separatorLength(units, at)
    if (skip === 0) return count
    at += skip
  }
}

/** Length of the separator between two groups of digits; 0 if the number ends. */
function separatorLength(units: Uint8Array, from: number): number {
  let at = from
  if (units[at] === 41) at++
  at += trunkLength(units, at)
  if (units[at] === 32 || units[at] === 45 || units[at] === 46 || units[at] === 47) at++
  if (units[at] === 40) at++
  return at > from && isDigit(units[at]) ? at - from : 0
}

/** Length of `(0)`, which is dialled only within the country. */
function trunkLength(units: Uint8Array, from: number): number {
  const at = units[from] === 32 ? from + 1 : from
  return units[at] === 40 && units[at + 1] === 48 && units[at + 2] === 41 ? at + 3 - from : 0
}

/** `(212) 555-0100`, `212-555-0100`, `212.555.0100`, `1-212-555-0100`. */
function isNorthAmerican(units: Uint8Array, from: number, find: Find): boolean {
  let at = from
  if (units[at] === 49) at += isSeparator(units[at + 1]) ? 2 : 1
  const inParentheses = units[at] === 40
  if (inParentheses) {
    if (is(units[from - 1], word)) return false
    at++
  }
  if (!isExchange(units, at)) return false
  at += 3
  if (inParentheses) {
    if (units[at++] !== 41) return false
    if (isSeparator(units[at])) at++
  } else if (!isSeparator(units[at++])) return false
  if (!isExchange(units, at) || !isSeparator(units[at + 3])) return false
  // With spaces, three columns of numbers look the same.
  if (units[at + 3] === 32 && !inParentheses) return false
  for (let i = at + 4; i < at + 8; i++) if (!isDigit(units[i])) return false
  if (is(units[at + 8], word) || ((units[at + 8] === 45 || units[at + 8] === 46) && isDigit(units[at + 9])))
    return false
  find.start = from
  find.end = at + 8
  return true
}

function isSeparator(unit: number | undefined): boolean {
  return unit === 32 || unit === 45 || unit === 46
}

/** Three digits, the first from 2 to 9, but not like 911. */
function isExchange(units: Uint8Array, at: number): boolean {
  if (units[at]! < 50 || !isDigit(units[at]) || !isDigit(units[at + 1]) || !isDigit(units[at + 2]))
    return false
  return !(units[at + 1] === 49 && units[at + 2] === 49)
}

function isLocal(units: Uint8Array, at: number, find: Find): boolean {
  if (isDate(units, at, find.run)) return false
  const count = readNumber(units, at)
  let digits = count
  while (digits >= fewestLocal && ends[digits] === 0) digits--
  if (digits < fewestLocal || isDotted(units, at, ends[digits]!)) return false
  if ((find.hints & Hint.phone) === 0 && !keywordBefore(units, at, keywords)) return false
  find.start = units[at - 1] === 40 ? at - 1 : at
  find.end = ends[digits]!
  return true
}

/** Whether the digits at `at` continue a number or an identifier. */
function isWithinNumber(units: Uint8Array, at: number): boolean {
  const before = units[at - 1]
  return (before === 45 || before === 46 || before === 47) && is(units[at - 2], word)
}

/** `2026-11-20`, `20/11/2026`. */
function isDate(units: Uint8Array, at: number, run: number): boolean {
  const separator = units[at + run]
  if (separator !== 45 && separator !== 47 && separator !== 46) return false
  if (run === 4) return units[at + 7] === separator || units[at + 6] === separator
  return run <= 2 && (units[at + run + 3] === separator || units[at + run + 2] === separator)
}

/** A decimal fraction or an IP address. */
function isDotted(units: Uint8Array, start: number, end: number): boolean {
  let dots = 0
  for (let i = start; i < end; i++) {
    if (units[i] === 46) dots++
    else if (!isDigit(units[i])) return false
  }
  return dots === 1 || dots === 3
}
