// Sortable tables for keyboards, screen readers and narrow windows.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'

export interface Column<Row> {
  readonly name: string
  /** Numbers are right-aligned, and sorted largest first. */
  readonly number?: boolean
  /** The sort key; without one the column is not sortable. */
  readonly value?: (row: Row) => number | string | null
  readonly cell: (row: Row) => ComponentChildren
}

export interface TableProps<Row> {
  /** The content of the table, for screen readers. */
  readonly caption: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly rowKey: (row: Row) => string | number
  /** Maximum number of rows; a sentence reports the rest. */
  readonly most?: number
  /** Shown if there are no rows. */
  readonly empty?: ComponentChildren
  /** Marks a row. */
  readonly mark?: (row: Row) => 'bad' | 'warn' | 'chosen' | ''
}

/** Rows keep the given order until the user presses a column's head. */
export function Table<Row>({ caption, columns, rows, rowKey, most = 200, empty, mark }: TableProps<Row>) {
  const by = useSignal(-1)
  const falling = useSignal(true)
  const column = columns[by.value]
  const sorted = column?.value === undefined ? rows : sortedBy(rows, column.value, falling.value)
  const press = (i: number) => {
    if (by.value !== i) {
      by.value = i
      falling.value = columns[i]!.number === true
    } else falling.value = !falling.value
  }
  return (
    // biome-ignore lint/a11y/useSemanticElements: it groups no fields
    // biome-ignore lint/a11y/noNoninteractiveTabindex: keys scroll it
    <div class="scroll" tabIndex={0} role="group" aria-label={caption}>
      <table>
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ name, number, value }, i) => (
              <th
                key={name}
                scope="col"
                class={number ? 'number' : ''}
                {...(by.value === i && { 'aria-sort': falling.value ? 'descending' : 'ascending' })}
              >
                {value === undefined ? (
                  name
                ) : (
                  <button type="button" class="head" onClick={() => press(i)}>
                    {name}
                    <span aria-hidden="true">{by.value === i ? (falling.value ? ' ↓' : ' ↑') : ''}</span>
                  </button>
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {sorted.slice(0, most).map(row => (
            <tr key={rowKey(row)} class={mark?.(row) ?? ''}>
              {columns.map(({ name, number, cell }) => (
                <td key={name} class={number ? 'number' : ''}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length === 0 ? empty : null}
      {rows.length > most ? <p class="note">{rows.length - most} more not shown.</p> : null}
    </div>
  )
}

function sortedBy<Row>(rows: readonly Row[], value: (row: Row) => number | string | null, falling: boolean) {
  const sign = falling ? -1 : 1
  return [...rows].sort((a, b) => {
    const left = value(a)
    const right = value(b)
    // Unknown values come last in both directions.
    if (left === null || right === null) return left === right ? 0 : left === null ? 1 : -1
    if (typeof left === 'string' || typeof right === 'string')
      return sign * String(left).localeCompare(String(right))
    return sign * (left - right)
  })
}
