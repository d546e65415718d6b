import { percent, withUnit } from '../../lib/format.ts'
import { setParameters } from '../../lib/route.ts'
import { type Column, Table } from '../../parts/table.tsx'
import type { FunctionRow, Functions } from './functions.ts'
import { kindTitle } from './packages.ts'

export interface TopTableProps {
  readonly functions: Functions
  /** Divisor for shares. */
  readonly total: number
  readonly unit: string
  readonly compared: boolean
}

/** The largest functions by self and total value. Pressing one searches it in the flame graph. */
export function TopTable({ functions, total, unit, compared }: TopTableProps) {
  const share = (value: number) => percent(total > 0 ? (100 * value) / total : 0)
  const lines = (upper: string, lower: string) => (
    <>
      {upper}
      <br />
      <span class="soft">{lower}</span>
    </>
  )
  const amount = (value: number) => lines(withUnit(value, unit), share(value))
  const columns: Column<FunctionRow>[] = [
    {
      name: 'Function',
      value: ({ name }) => name,
      cell: row => (
        <div class="function">
          <button
            type="button"
            class="quiet"
            title={`Find ${row.name}`}
            onClick={() => setParameters({ q: `"${row.name}"` })}
          >
            {row.name}
          </button>
          <span class="soft row">
            <span class="place" title={row.file}>
              {[kindTitle(row.type), row.file.slice(row.file.lastIndexOf('/') + 1)]
                .filter(text => text !== '')
                .join(' · ')}
            </span>
            <button
              type="button"
              class="quiet"
              aria-label={`Focus on ${row.name} and what it calls`}
              onClick={() => setParameters({ focus: row.name, at: '' }, { replace: false })}
            >
              Focus
            </button>
          </span>
        </div>
      ),
    },
    { name: 'Self', number: true, value: ({ self }) => self, cell: ({ self }) => amount(self) },
    { name: 'Total', number: true, value: row => row.total, cell: row => amount(row.total) },
  ]
  if (compared)
    columns.push({
      name: 'Change',
      number: true,
      value: row => row.total - row.base,
      cell: row => lines(...changed(row.total, row.base, unit)),
    })
  const { rows, count } = functions
  return (
    <>
      <Table
        caption="Top functions"
        columns={columns}
        rows={rows}
        rowKey={({ key }) => key}
        most={rows.length}
      />
      {count > rows.length ? (
        <p class="note">
          Top {rows.length} of {count} functions.
        </p>
      ) : null}
    </>
  )
}

/** `+1.2 s` and `+34 %`, `new` or `gone`. */
function changed(now: number, before: number, unit: string): readonly [by: string, note: string] {
  if (now === before) return ['unchanged', '']
  const sign = now > before ? '+' : '−'
  const apart = Math.abs(now - before)
  const note = before === 0 ? 'new' : now === 0 ? 'gone' : `${sign}${percent((100 * apart) / before)}`
  return [`${sign}${withUnit(apart, unit)}`, note]
}

/** `+1.2 s (+34 %)`, `+1.2 s (new)`. */
export function changeText(now: number, before: number, unit: string): string {
  const [by, note] = changed(now, before, unit)
  return note === '' ? by : `${by} (${note})`
}
