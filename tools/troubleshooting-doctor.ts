// What `svc doctor` may find, in brief, for the page about troubles.

import { type Hints, hintKinds, type Topic } from '../src/kernel/need.ts'
import { table as needs } from '../src/program/doctor/table.ts'
import { anchor, cell, code, table } from './markdown.ts'
import { hintText } from './needs-page.ts'

interface Row {
  /** The checks that may say it. */
  readonly names: string[]
  readonly fault: string
  readonly means: string
  readonly hint: string
}

/** What is missing or limited, of some topics. What several checks may say stands in one row. */
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

/** What helps anywhere, else what there is. All of it stands on the page of the needs. */
function hintOf(hints: Hints): string {
  const kind = hintKinds.find(each => hints[each] !== undefined)
  return kind === undefined ? '' : hintText(kind, hints[kind]!)
}
