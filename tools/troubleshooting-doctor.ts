// Possible findings of `svc doctor`, in brief, for the troubleshooting page.

import { type Hints, hintKinds, type Topic } from '../src/kernel/need.ts'
import { table as needs } from '../src/program/doctor/table.ts'
import { anchor, cell, code, table } from './markdown.ts'
import { hintText } from './needs-page.ts'

interface Row {
  /** The checks that may report it. */
  readonly names: string[]
  readonly fault: string
  readonly means: string
  readonly hint: string
}

/** Missing or limited needs of some topics. A finding of several checks has one row. */
export function doctorTable(topics: readonly Topic[]): string {
  const rows = new Map<string, Row>()
  for (const { name, faults } of topics.flatMap(topic => needs.filter(({ group }) => group === topic)))
    for (const [fault, { state, what, hints }] of Object.entries(faults)) {
      if (state !== 'missing' && state !== 'limited') continue
      const row: Row = { names: [], fault, means: cell(what), hint: hintOf(hints) }
      const key = JSON.stringify(row)
      if (!rows.has(key)) rows.set(key, row)
      rows.get(key)!.names.push(`[${cell(name)}](reference/needs.md#${anchor(name)})`)
    }
  return table(
    ['check', 'meaning', 'fix'],
    [...rows.values()].map(({ names, fault, means, hint }) => [
      `${names.join(', ')}: ${code(fault)}`,
      means,
      hint,
    ]),
  )
}

/** The general hint, otherwise any. The page of the needs lists all of them. */
function hintOf(hints: Hints): string {
  const kind = hintKinds.find(each => hints[each] !== undefined)
  return kind === undefined ? '' : hintText(kind, hints[kind]!)
}
