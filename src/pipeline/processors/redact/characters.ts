/**
 * Texts are scanned as one byte per UTF-16 unit, so that offsets are those of the string. ASCII is unchanged; `fold`
 * maps the rest. There are `margin` zeros before the text and two after it, and zero is in no class: detectors look
 * around without checking for the ends of the text, as long as they stop at the first unit that does not match.
 */
export const margin = 64

/** A non-ASCII letter of an alphabet with spaces between words. */
const foreignLetter = 0x80
/** Any other non-ASCII unit. */
const other = 0x81

const digit = 1
const upper = 2
const lower = 4
const underscore = 8
const foreign = 16
const hexadecimal = 32
const base64url = 64
/** Local part of an e-mail address (RFC 5322, atext without usual punctuation). */
const local = 128

export const letter = upper | lower
export const alphanumeric = digit | letter
/** Continues a word, a number or an identifier. */
export const word = alphanumeric | underscore | foreign

/** Class bits of each byte. */
const classes = new Uint8Array(256)

function mark(bit: number, characters: string): void {
  for (let i = 0; i < characters.length; i++) classes[characters.charCodeAt(i)]! |= bit
}
const uppers = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
mark(digit | hexadecimal | base64url | local, '0123456789')
mark(upper | base64url | local, uppers)
mark(lower | base64url | local, uppers.toLowerCase())
mark(hexadecimal, 'abcdefABCDEF')
mark(underscore | base64url | local, '_')
mark(base64url, '-')
mark(local, ".%+'-")
classes[foreignLetter] = foreign | local

export function is(unit: number | undefined, bits: number): boolean {
  return (classes[unit!]! & bits) !== 0
}
export const isDigit = (unit: number | undefined): boolean => unit! >= 48 && unit! <= 57
export const isUpper = (unit: number | undefined): boolean => unit! >= 65 && unit! <= 90
export const isHex = (unit: number | undefined): boolean => is(unit, hexadecimal)
export const isBase64url = (unit: number | undefined): boolean => is(unit, base64url)
export const isLocal = (unit: number | undefined): boolean => is(unit, local)
/** Space, tab, line ends and the end of the text. */
export const isBlank = (unit: number | undefined): boolean => unit! <= 32
export const isForeignLetter = (unit: number | undefined): boolean => unit === foreignLetter
/** Lower case of an ASCII letter; other units become something that is not a letter either. */
export const lowered = (unit: number | undefined): number => (isUpper(unit) ? unit! | 32 : unit!)

/**
 * Whether a token may begin at `at`: it is not inside a word. A JSON escape (`\n`, `\u003c`) or URL escape (`%3D`) ends
 * a word.
 */
export function beginsWord(units: Uint8Array, at: number): boolean {
  const before = units[at - 1]!
  if (!is(before, word)) return true
  if (units[at - 2] === 92) return before === 110 || before === 114 || before === 116
  if (units[at - 3] === 37) return isHex(before) && isHex(units[at - 2])
  return units[at - 6] === 92 && units[at - 5] === 117 && areFourHex(units, at - 4)
}

export function areFourHex(units: Uint8Array, at: number): boolean {
  return isHex(units[at]) && isHex(units[at + 1]) && isHex(units[at + 2]) && isHex(units[at + 3])
}

/** Whether `text` (lower case, ASCII) is at `at`, in either case. */
export function matchesAt(units: Uint8Array, at: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (lowered(units[at + i]) !== text.charCodeAt(i)) return false
  return true
}

/** Byte for a non-ASCII unit. Digits, spaces and hyphens of other forms are mapped to ASCII. */
function folded(unit: number): number {
  if (unit < 0x80) return unit
  if (unit === 0xa0 || unit === 0x202f || unit === 0x3000 || (unit >= 0x2000 && unit <= 0x200a)) return 32
  if (unit >= 0x2010 && unit <= 0x2013) return 45
  if (unit >= 0xff01 && unit <= 0xff5e) return unit - 0xfee0
  if (unit >= 0x0660 && unit <= 0x0669) return unit - 0x0660 + 48
  if (unit >= 0x06f0 && unit <= 0x06f9) return unit - 0x06f0 + 48
  // Latin, Greek and Cyrillic letters and marks. Chinese and Japanese words have no spaces around them.
  return unit >= 0xc0 && unit <= 0x052f && unit !== 0xd7 && unit !== 0xf7 ? foreignLetter : other
}

/** Buffer for the units of one text. */
export class Units {
  readonly bytes: Buffer
  /** The same bytes, two at a time: the first of them is the lower half. */
  readonly pairs: Uint16Array
  readonly #capacity: number

  /** `capacity`: maximum length of a text, in UTF-16 units. */
  constructor(capacity: number) {
    this.#capacity = capacity
    // With room for a further character: only then `write` returns the number of units for no text that it cuts off.
    const memory = new ArrayBuffer((margin + capacity + 5) & ~1)
    this.bytes = Buffer.from(memory)
    this.pairs = new Uint16Array(memory)
  }

  /** Fills the buffer with as much of a text as it can hold; returns the offset of its end in `bytes`. */
  fill(text: string): number {
    const { bytes } = this
    const length = Math.min(text.length, this.#capacity)
    const end = margin + length
    // As many UTF-8 bytes as units means that all are ASCII. That call costs 50 ns for any length, the loop 2.5 ns per
    // unit.
    if (length <= 16 || length < text.length || bytes.write(text, margin) !== length) {
      for (let i = 0; i < length; i++) bytes[margin + i] = folded(text.charCodeAt(i))
    }
    bytes[end] = 0
    // A zero is also a separator, and the value after it must not be one of the text before.
    bytes[end + 1] = 0
    return end
  }
}

/** Whether a text is at an offset. */
export function isAt(units: Uint8Array, at: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (units[at + i] !== text.charCodeAt(i)) return false
  return true
}

/** Whether a range has digits only. */
export function isNumber(units: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (!isDigit(units[i])) return false
  return true
}
