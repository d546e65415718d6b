import { is, isBlank, isDigit, isNumber, isUpper, lowered, matchesAt, word } from './characters.ts'
import type { Detector, Find } from './detector.ts'
import { entropy } from './entropy.ts'
import { type SecretKind, schemeLength, secretNamed } from './secret-names.ts'
import { isExample, isMixed } from './vendor-keys.ts'

const mostValue = 4096
const mostFlag = 64
const fewestKey = 8
/** Maximum bytes of a value that are checked for code. */
const mostCode = 256
/** A value of only lower-case letters is a word up to this length. */
const longestWord = 20

/**
 * Values after names of secrets: `password=…`, `"api_key": "…"`, `<Password>…`, `--token …`. For cookie headers the
 * whole line.
 */
export const assignedSecrets: Detector = {
  types: ['password', 'api_key', 'auth_header'],
  triggers: ':=>-',
  after: (before, trigger) => (trigger === '-' ? before === 45 || isBlank(before) : !isDigit(before)),
  find(units, at, find) {
    if (units[at] === 45) return followsFlag(units, at, find)
    if (isDigit(units[at - 1])) return false
    const end = units[at] === 62 ? at : nameEnd(units, at)
    const kind = secretNamed(units, end)
    if (kind === undefined) return false
    if (units[at] === 62 && !opensTag(units, at)) return false
    const isCookie = kind === 'auth_header' && lowered(units[end - 1]) === 101
    let value = at + 1
    if (units[at] !== 62) {
      if (units[value] === 61 || (units[value] === 62 && units[at] === 61)) value++
      if (units[value] === 47 && units[value + 1] === 47) return false
      while (value < at + 8 && (units[value] === 32 || units[value] === 9)) value++
    }
    if (isCookie) return units[at] === 58 && isCookies(units, value, find)
    return isSecret(units, value, kind === 'auth_header' ? 'api_key' : kind, find)
  },
}

/** Goes back from a separator over spaces, quotes and brackets to the end of a name. */
function nameEnd(units: Uint8Array, at: number): number {
  let end = at
  while (end > at - 2 && units[end - 1] === 32) end--
  if (isQuote(units[end - 1])) end--
  while (end > at - 6 && units[end - 1] === 92) end--
  if (units[end - 1] === 93) end--
  // An encoded bracket: user%5Bpassword%5D=
  else if (units[end - 3] === 37 && units[end - 2] === 53 && lowered(units[end - 1]) === 100) end -= 3
  return end
}

function isQuote(unit: number | undefined): boolean {
  return unit === 34 || unit === 39 || unit === 96
}

/** Whether `>` at `at` ends an opening tag, `<ns:password>`. */
function opensTag(units: Uint8Array, at: number): boolean {
  let i = at
  while (i > at - mostFlag && (is(units[i - 1], word) || units[i - 1] === 45 || units[i - 1] === 58)) i--
  return units[i - 1] === 60
}

/** `--password hunter2`: `at` is the last hyphen. */
function followsFlag(units: Uint8Array, at: number, find: Find): boolean {
  const before = units[at - 1]
  if (!(before === 45 ? isBlank(units[at - 2]) || isQuote(units[at - 2]) : isBlank(before))) return false
  let end = at + 1
  while (end < at + mostFlag && (is(units[end], word) || units[end] === 45)) end++
  if (end === at + 1 || (units[end] !== 32 && units[end] !== 0)) return false
  const kind = secretNamed(units, end)
  if (kind === undefined || units[end + 1] === 45) return false
  return isSecret(units, end + 1, kind === 'password' ? kind : 'api_key', find)
}

/** Sets the range of the value at `from`, if it can be a secret. */
function isSecret(units: Uint8Array, from: number, kind: SecretKind, find: Find): boolean {
  let start = from
  if (units[start] === 91) start++
  const slashes = start
  while (start < slashes + 4 && units[start] === 92) start++
  const quoted = isQuote(units[start])
  const escapes = quoted ? start - slashes : 0
  start = quoted ? start + 1 : slashes
  const scheme = schemeLength(units, start)
  let end = quoted ? quoteEnd(units, start, units[start - 1]!, escapes) : 0
  const closed = end > 0
  if (!closed) end = valueEnd(units, start + scheme, find)
  if (end <= start || isRedacted(units, start, end, find) || isRedacted(units, start + scheme, end, find))
    return false
  const accepted =
    kind === 'password'
      ? isPassword(units, start, end, closed)
      : isKey(units, start + scheme, end, scheme > 0)
  if (!accepted) return false
  find.type = kind
  find.start = start
  find.end = end
  return true
}

function isRedacted(units: Uint8Array, start: number, end: number, find: Find): boolean {
  const length = find.redactedAt(units, start)
  return length > 0 && start + length >= end
}

/** Position of the closing quote, escaped like the opening one; 0 if there is none. */
function quoteEnd(units: Uint8Array, from: number, quote: number, escapes: number): number {
  for (let at = from; at < from + mostValue && units[at] !== 0; at++) {
    if (units[at] !== quote) continue
    let slashes = 0
    while (slashes <= escapes && units[at - 1 - slashes] === 92) slashes++
    if (slashes === escapes) return at - escapes
  }
  return 0
}

function valueEnd(units: Uint8Array, from: number, { values }: Find): number {
  const last = from + mostValue
  let at = values.start(from)
  while (at < last && !endsValue(units[at]!) && !(units[at] === 92 && isEscape(units[at + 1]))) at++
  values.reach(at)
  return at
}

function endsValue(unit: number): boolean {
  switch (unit) {
    case 34: // "
    case 38: // &
    case 39: // '
    case 41: // )
    case 44: // ,
    case 59: // ;
    case 60: // <
    case 62: // >
    case 93: // ]
    case 96: // `
    case 124: // |
    case 125: // }
      return true
    default:
      return unit <= 32
  }
}

/** Escapes after a backslash that ends a value. */
function isEscape(unit: number | undefined): boolean {
  return isQuote(unit) || unit === 110 || unit === 114
}

/** Words that occur in place of passwords. */
const noPasswords = (
  'null none nil true false yes not undefined empty required invalid incorrect missing wrong expired changed failed ' +
  'set unset reset hidden masked filtered redacted removed enabled disabled ok off the'
).split(' ')

function isPassword(units: Uint8Array, start: number, end: number, closed: boolean): boolean {
  const length = end - start
  if (length < (closed ? 1 : 3) || isReference(units, start, end) || isRepeated(units, start, end))
    return false
  if (length < 4 && isNumber(units, start, end)) return false
  for (let i = 0; i < noPasswords.length; i++)
    if (noPasswords[i]!.length === length && matchesAt(units, start, noPasswords[i]!)) return false
  return true
}

function isKey(units: Uint8Array, start: number, end: number, afterScheme: boolean): boolean {
  const length = end - start
  if (length < (afterScheme ? 6 : fewestKey) || isReference(units, start, end)) return false
  if (!afterScheme && (units[start] === 47 || entropy(units, start, end) < 3 || isCode(units, start, end)))
    return false
  return !isExample(units, start, end)
}

/** `${NAME}`, `$(command)`, `{{ name }}`, `%s`, `$1`, `?`. */
function isReference(units: Uint8Array, start: number, end: number): boolean {
  const next = units[start + 1]
  switch (units[start]) {
    case 36: // $
      return next === 123 || next === 40 || (isDigit(next) && isNumber(units, start + 1, end))
    case 123: // {
      return next === 123
    case 37: // %
      return end - start === 2
    case 63: // ?
      return end - start === 1
    default:
      return false
  }
}

/** `********`: already hidden. */
function isRepeated(units: Uint8Array, start: number, end: number): boolean {
  const first = units[start]!
  if (first !== 42 && first !== 46 && first !== 45 && lowered(first) !== 120) return false
  for (let i = start; i < end; i++) if (units[i] !== first) return false
  return true
}

/** Words and function calls; a key would have digits or both cases. */
function isCode(units: Uint8Array, start: number, end: number): boolean {
  let hasDigit = false
  let hasUpper = false
  const last = Math.min(end, start + mostCode)
  for (let i = start; i < last; i++) {
    if (units[i] === 40 || isBlank(units[i])) return true
    if (isDigit(units[i])) hasDigit = true
    else if (isUpper(units[i])) hasUpper = true
  }
  return !hasDigit && !hasUpper && end - start < longestWord
}

function endsCookies(units: Uint8Array, at: number): boolean {
  const unit = units[at]!
  return (unit < 32 && unit !== 9) || isQuote(unit) || (unit === 92 && isEscape(units[at + 1]))
}

function isCookies(units: Uint8Array, from: number, find: Find): boolean {
  let start = from
  if (units[start] === 91) start++
  while (start < from + 4 && units[start] === 92) start++
  if (isQuote(units[start])) start++
  const last = start + mostValue
  const { cookies } = find
  let end = cookies.start(start)
  while (end < last && units[end] !== 61 && !endsCookies(units, end)) end++
  cookies.reach(end)
  if (units[end] !== 61) return false
  while (end < last && !endsCookies(units, end)) end++
  if (isRedacted(units, start, end, find)) return false
  find.type = 'auth_header'
  find.start = start
  find.end = end
  return true
}

/** `Bearer …` and `Basic …` anywhere in a text. */
export const schemeTokens: Detector = {
  types: ['api_key'],
  triggers: 'B',
  after: before => !is(before, word),
  find(units, at, find) {
    const isBearer = matchesAt(units, at, 'bearer ')
    if (is(units[at - 1], word) || !(isBearer || matchesAt(units, at, 'basic '))) return false
    const start = at + (isBearer ? 7 : 6)
    const end = valueEnd(units, start, find)
    if (end - start < 12 || !isMixed(units, start, end) || entropy(units, start, end) < 3) return false
    if (isExample(units, start, end) || isReference(units, start, end)) return false
    find.start = start
    find.end = end
    return true
  },
}
