import { is, isDigit, word } from './characters.ts'
import { type Detector, Hint } from './detector.ts'
import { keywordBefore, keywordsOf } from './keyword.ts'

const keywords = keywordsOf([
  { text: 'ssn', whole: true },
  { text: 'social security', whole: false },
  { text: 'social_security', whole: false },
  { text: 'social-security', whole: false },
  { text: 'socialsecurity', whole: false },
  { text: 'taxpayer', whole: false },
])

/**
 * Social security numbers of the United States: 3, 2 and 4 digits with one separator, or 9 digits in a row if a word
 * before them or the attribute's key indicates one. Numbers that were never assigned do not match.
 */
export const ssn: Detector = {
  types: ['ssn'],
  triggers: '',
  runs: (digits, next) => digits === 9 || (digits === 3 && next !== '' && '-. '.includes(next)),
  find(units, at, find) {
    const before = units[at - 1]
    if ((before === 45 || before === 46) && is(units[at - 2], word)) return false
    const separator = find.run === 3 ? units[at + 3]! : 0
    const end = at + (find.run === 3 ? 11 : 9)
    if (find.run === 3) {
      if (separator !== 45 && separator !== 32 && separator !== 46) return false
      if (!isDigit(units[at + 4]) || !isDigit(units[at + 5]) || units[at + 6] !== separator) return false
      for (let i = at + 7; i < end; i++) if (!isDigit(units[i])) return false
    }
    if (is(units[end], word) || ((units[end] === 45 || units[end] === 46) && isDigit(units[end + 1])))
      return false
    if (separator === 32 && isAmongNumbers(units, at, end)) return false
    const group = separator === 0 ? at + 3 : at + 4
    const serial = separator === 0 ? at + 5 : at + 7
    if (!isGiven(number(units, at, 3), number(units, group, 2), number(units, serial, 4))) return false
    if (separator === 0 && (find.hints & Hint.ssn) === 0 && !keywordBefore(units, at, keywords)) return false
    find.start = at
    find.end = end
    return true
  },
}

function number(units: Uint8Array, at: number, digits: number): number {
  let value = 0
  for (let i = 0; i < digits; i++) value = value * 10 + units[at + i]! - 48
  return value
}

/** Columns of numbers, such as status, time and size in an access log. */
function isAmongNumbers(units: Uint8Array, start: number, end: number): boolean {
  const before = units[start - 2]
  if (units[start - 1] === 32 && (isDigit(before) || before === 34)) return true
  const after = units[end + 1]
  return units[end] === 32 && (isDigit(after) || after === 34)
}

/** Whether such a number may be assigned (Social Security Administration, numbers that are not assigned). */
function isGiven(area: number, group: number, serial: number): boolean {
  if (area === 0 || area === 666 || area >= 900 || group === 0 || serial === 0) return false
  // Example numbers match: they are used to test the rule, and nothing is lost with one.
  const repeated = area / 111
  return !(Number.isInteger(repeated) && group === repeated * 11 && serial === repeated * 1111)
}
