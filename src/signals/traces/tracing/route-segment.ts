/**
 * True for a path segment that looks like a value rather than a word of an API: numbers, UUIDs, hexadecimal and
 * random-looking identifiers, dates, versions of files, mail addresses, anything percent-encoded or over 64 characters.
 * Words with a digit or two (`v1`, `oauth2`, `s3`, `utf8`, `sha256`) are not.
 */
export function isIdentifier(segment: string): boolean {
  if (segment.length > maxWordLength) return true
  let digits = 0
  let letters = 0
  let nonHex = 0
  let changes = 0
  let separators = 0
  let before = other
  // Counts in the current part, between two separators.
  let partDigits = 0
  let partLetters = 0
  let wholeNumber = false
  for (let i = 0; i <= segment.length; i++) {
    const code = i < segment.length ? segment.charCodeAt(i) : dash
    const kind = kindOf(code)
    if (kind === odd) return true
    if (kind === other) {
      if (i < segment.length) separators++
      // `order-12345`, `2024-01-31`, `item_42`; but not `part-2`.
      if (partDigits >= 2 && partLetters === 0) wholeNumber = true
      partDigits = 0
      partLetters = 0
    } else if (kind === digit) {
      digits++
      partDigits++
    } else {
      letters++
      partLetters++
      if ((code | 0x20) > letterF) nonHex++
    }
    if (i < segment.length && kind !== other && before !== other && kind !== before) changes++
    before = kind
  }
  if (digits === 0) return letters >= 32 && separators === 0
  if (letters === 0) return true
  if (isVersion(segment)) return false
  if (wholeNumber || digits >= 4 || changes >= 3) return true
  return nonHex === 0 && letters + digits >= 8
}

const maxWordLength = 64
const dash = 0x2d
const letterF = 0x66

const letter = 0
const digit = 1
/** Separates parts: `-`, `_`, `.`, `~`, `:` and the like. */
const other = 2
/** Never part of a word: `%`, `@`, `=`, `,`, `+`, blanks, bytes beyond ASCII. */
const odd = 3

const kinds = new Uint8Array(128).fill(odd)
for (let i = 0; i < 26; i++) kinds[0x41 + i] = kinds[0x61 + i] = letter
for (let i = 0; i < 10; i++) kinds[0x30 + i] = digit
for (const separator of "-_.~:!$'()*") kinds[separator.charCodeAt(0)] = other

function kindOf(code: number): number {
  return code < 128 ? kinds[code]! : odd
}

/** `v1`, `V2`, `v1.22`, `v1beta1`, `v2alpha10`. */
function isVersion(segment: string): boolean {
  return segment.length <= 12 && /^v\d{1,4}(\.\d{1,4}){0,3}((alpha|beta|rc)\d{0,3})?$/i.test(segment)
}
