// Display of frames and values. Names come from foreign files and processes.

import { cutEnd } from '../../foundation/lib/cut-text.ts'
import { bytesText, grouped, scaledText } from '../../foundation/lib/number-text.ts'

/** Characters that end a line, move the cursor, change the text direction or are invalid in XML 1.0 (section 2.2). */
const unprintable = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}\ufffe\uffff]/gu
const plain = /^[\x20-\x7e]*$/

/** One line of at most `most` characters that is safe in documents and on terminals. */
export function printable(text: string, most = 512): string {
  const cut = cutEnd(text, most)
  return plain.test(cut) ? cut : cut.replace(unprintable, '\ufffd')
}

/** Whether a frame's name is a reason for a missing name. */
export function isUnnamed(name: string): boolean {
  return name.startsWith('[') && name.endsWith(']')
}

const timeUnits = ['ns', 'µs', 'ms', 's']

/** Value of a profile for display: `1.24 s`, `3.5 MiB`, `812`. */
export function valueText(value: number, unit: string): string {
  if (unit === 'bytes') return bytesText(value)
  if (unit === 'nanoseconds') return scaledText(value, 1000, timeUnits)
  return grouped(value)
}

/** Share of a whole: `12.3%`. */
export function shareText(part: number, whole: number): string {
  return `${whole > 0 ? ((100 * part) / whole).toFixed(1) : '0.0'}%`
}

/** Meaning of the values by kind. */
export const kindTitles = {
  cpu: 'CPU time',
  memory: 'memory first touched',
  off_cpu: 'time off CPU',
} as const
