// How frames and values read. Names come from foreign files and processes.

import { bytesText, grouped, scaledText } from '../../foundation/lib/number-text.ts'

/** What ends a line, moves a cursor, turns the direction of text or may not stand in XML 1.0 (section 2.2). */
const unprintable = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}\ufffe\uffff]/gu
const plain = /^[\x20-\x7e]*$/

/** One line of at most `most` characters that is safe in a document and on a terminal. */
export function printable(text: string, most = 512): string {
  const cut = text.length > most ? `${text.slice(0, most - 1)}…` : text
  return plain.test(cut) ? cut : cut.replace(unprintable, '\ufffd')
}

/** Whether a frame's name is the reason why it has none. */
export function isUnnamed(name: string): boolean {
  return name.startsWith('[') && name.endsWith(']')
}

const timeUnits = ['ns', 'µs', 'ms', 's']

/** A value of a profile for people: `1.24 s`, `3.5 MiB`, `812`. */
export function valueText(value: number, unit: string): string {
  if (unit === 'bytes') return bytesText(value)
  if (unit === 'nanoseconds') return scaledText(value, 1000, timeUnits)
  return grouped(value)
}

/** `12.3%` of a whole. */
export function shareText(part: number, whole: number): string {
  return `${whole > 0 ? ((100 * part) / whole).toFixed(1) : '0.0'}%`
}

/** What the values of a kind are. */
export const kindTitles = {
  cpu: 'CPU time',
  memory: 'memory first touched',
  off_cpu: 'time off CPU',
} as const
