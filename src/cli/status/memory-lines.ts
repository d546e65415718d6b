import type { StatusDocument } from '../../api/types.ts'
import { counted, partText, sizeText } from '../../lib/number-text.ts'
import type { Pen } from '../pen.ts'
import { leftIn, rightIn, shownText } from '../shown-text.ts'

type Tables = StatusDocument['memory']['tables']

interface Style {
  readonly unicode: boolean
  readonly pen: Pen
}

/** Part of all that tables may hold from which on one is named. */
const namedPart = 1 / 100
const nameWidth = 40
const numberWidth = 11

/** Who holds how much memory: a table of tables in 79 columns. What holds little is one line. */
export function memoryLines({ largest, limit }: Tables, { unicode, pen }: Style): string[] {
  const isNamed = ({ bytes, shed }: Tables['largest'][number]) => bytes >= limit * namedPart || shed > 0
  const named = largest.filter(isNamed)
  const rest = largest.filter(table => !isNamed(table) && table.bytes > 0)
  if (named.length + rest.length === 0) return []
  const row = (name: string, held: number, most: string, shed: number, isFull: boolean) => {
    const holds = pen(rightIn(sizeText(held), numberWidth), isFull ? 'red' : undefined)
    const gave = shed === 0 ? '' : sizeText(shed)
    return `  ${leftIn(shownText(name, unicode), nameWidth)}${holds}${rightIn(most, numberWidth)}${rightIn(gave, numberWidth + 2)}`
  }
  const titles = `${rightIn('HOLDS', numberWidth)}${rightIn('AT MOST', numberWidth)}${rightIn('GAVE BACK', numberWidth + 2)}`
  return [
    '',
    pen(`  ${leftIn('MEMORY OF', nameWidth)}${titles}`, 'dim'),
    ...named.map(({ name, bytes, limit: most, shed }) =>
      row(name, bytes, most === 0 ? 'own bound' : sizeText(most), shed, most > 0 && bytes > 0.9 * most),
    ),
    ...(rest.length === 0
      ? []
      : [
          row(
            `${counted(rest.length, 'smaller one')}`,
            rest.reduce((sum, { bytes }) => sum + bytes, 0),
            '',
            0,
            false,
          ),
        ]),
  ]
}

/** In one line: the process, what of it lives, and all tables. */
export function memoryText({ limit, resident, anonymous, heap, tables }: StatusDocument['memory']): string {
  return `${partText(anonymous, limit)} (resident ${sizeText(resident)}), live heap ${partText(heap.live, heap.limit)}, tables ${partText(tables.held, tables.limit)}`
}
