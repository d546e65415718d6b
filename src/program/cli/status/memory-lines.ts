import { counted, partText, sizeText } from '../../../foundation/lib/number-text.ts'
import { padLeft, padRight, terminalText } from '../../../foundation/lib/terminal-text.ts'
import type { StatusDocument } from '../../../view/api/types.ts'
import type { Pen } from '../pen.ts'

type Tables = StatusDocument['memory']['tables']

interface Style {
  readonly unicode: boolean
  readonly pen: Pen
}

/** Share of all tables from which a table is listed by name. */
const namedPart = 1 / 100
const nameWidth = 40
const numberWidth = 11

/** Memory by table, in 79 columns. Small tables share one line. */
export function memoryLines({ largest, limit }: Tables, { unicode, pen }: Style): string[] {
  const isNamed = ({ bytes, released: shed }: Tables['largest'][number]) =>
    bytes >= limit * namedPart || shed > 0
  const named = largest.filter(isNamed)
  const rest = largest.filter(table => !isNamed(table) && table.bytes > 0)
  if (named.length + rest.length === 0) return []
  const row = (name: string, held: number, most: string, shed: number, isFull: boolean) => {
    const inUse = pen(padLeft(sizeText(held), numberWidth), isFull ? 'red' : undefined)
    const gave = shed === 0 ? '' : sizeText(shed)
    return `  ${padRight(terminalText(name, unicode), nameWidth)}${inUse}${padLeft(most, numberWidth)}${padLeft(gave, numberWidth + 2)}`
  }
  const titles = `${padLeft('IN USE', numberWidth)}${padLeft('LIMIT', numberWidth)}${padLeft('RELEASED', numberWidth + 2)}`
  return [
    '',
    pen(`  ${padRight('MEMORY', nameWidth)}${titles}`, 'dim'),
    ...named.map(({ name, bytes, limit: most, released: shed }) =>
      row(name, bytes, most === 0 ? 'own limit' : sizeText(most), shed, most > 0 && bytes > 0.9 * most),
    ),
    ...(rest.length === 0
      ? []
      : [
          row(
            `${counted(rest.length, 'smaller table')}`,
            rest.reduce((sum, { bytes }) => sum + bytes, 0),
            '',
            0,
            false,
          ),
        ]),
  ]
}

/** One line: the process, its live heap, and all tables. */
export function memoryText({ limit, resident, anonymous, heap, tables }: StatusDocument['memory']): string {
  return `${partText(anonymous, limit)} (resident ${sizeText(resident)}), live heap ${partText(heap.live, heap.limit)}, tables ${partText(tables.used, tables.limit)}`
}
