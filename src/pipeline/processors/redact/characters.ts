/**
 * Texts are scanned as one byte for each UTF-16 unit, so that offsets are those of the string. ASCII stays what it is;
 * `fold` maps the rest. Before the text there are `margin` zeros and behind it one, and zero is in no class: detectors
 * look around without asking where the text ends, as long as they stop at the first unit that does not fit.
 */
export const margin = 64

/** A letter that is not ASCII, of an alphabet that puts spaces between words. */
const foreignLetter = 0x80
/** Anything else that is not ASCII. */
const other = 0x81

export const digit = 1
const upper = 2
const lower = 4
const underscore = 8
const foreign = 16
const hexadecimal = 32
const base64url = 64
/** Parts of an e-mail address before the @ (RFC 5322, atext without what is punctuation as a rule). */
const local = 128

export const letter = upper | lower
export const alphanumeric = digit | letter
/** What continues a word, a number or an identifier. */
export const word = alphanumeric | underscore | foreign

/** Bits of what each byte is. */
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
/** A letter of ASCII in lower case; other units change to something that is no letter either. */
export const lowered = (unit: number | undefined): number => (isUpper(unit) ? unit! | 32 : unit!)

/**
 * Whether something may begin at `at`: no word goes on there. An escape of JSON (`\n`, `\u003c`) or of a URL (`%3D`)
 * ends one.
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

/** Whether `text` (lower case, ASCII) stands at `at`, in either case. */
export function matchesAt(units: Uint8Array, at: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (lowered(units[at + i]) !== text.charCodeAt(i)) return false
  return true
}

/** What stands for a unit that is not ASCII. Digits, spaces and hyphens of other forms count as those of ASCII. */
function folded(unit: number): number {
  if (unit < 0x80) return unit
  if (unit === 0xa0 || unit === 0x202f || unit === 0x3000 || (unit >= 0x2000 && unit <= 0x200a)) return 32
  if (unit >= 0x2010 && unit <= 0x2013) return 45
  if (unit >= 0xff01 && unit <= 0xff5e) return unit - 0xfee0
  if (unit >= 0x0660 && unit <= 0x0669) return unit - 0x0660 + 48
  if (unit >= 0x06f0 && unit <= 0x06f9) return unit - 0x06f0 + 48
  // Latin, Greek and Cyrillic, and their marks. Chinese and Japanese words touch what stands beside them.
  return unit >= 0xc0 && unit <= 0x052f && unit !== 0xd7 && unit !== 0xf7 ? foreignLetter : other
}

/** Room for the units of one text. */
export class Units {
  readonly bytes: Buffer
  readonly #capacity: number

  /** `capacity`: the longest text, in UTF-16 units. */
  constructor(capacity: number) {
    this.#capacity = capacity
    this.bytes = Buffer.alloc(margin + capacity + 1)
  }

  /** Takes a text, or as much of it as there is room for; returns the offset of its end in `bytes`. */
  fill(text: string): number {
    const { bytes } = this
    const length = Math.min(text.length, this.#capacity)
    const end = margin + length
    // As many bytes of UTF-8 as units: all of it is ASCII. The call costs 50 ns whatever the length, a unit here 2.5.
    if (length <= 16 || length < text.length || bytes.write(text, margin) !== length) {
      for (let i = 0; i < length; i++) bytes[margin + i] = folded(text.charCodeAt(i))
    }
    bytes[end] = 0
    return end
  }
}
