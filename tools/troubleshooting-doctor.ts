// What `svc doctor` may find, in brief, for the page about troubles.
import { table as needs } from '../src/cli/doctor/table.ts'
import { type Declaration, type Mends, mendKinds, type Topic } from '../src/kernel/need.ts'
import { anchor, cell, code, table } from './markdown.ts'
import { mendText } from './needs-page.ts'

/** What is missing or limited, of some topics. */
export function doctorTable(topics: readonly Topic[]): string {
  const rows = topics.flatMap(topic => needs.filter(({ group }) => group === topic).flatMap(doctorRows))
  return table(['doctor says', 'means', 'do this'], rows)
}

function doctorRows({ name, faults }: Declaration): readonly string[][] {
  return Object.entries(faults)
    .filter(([, { state }]) => state === 'missing' || state === 'limited')
    .map(([fault, { what, mends }]) => [
      `[${cell(name)}](reference/needs.md#${anchor(name)}): ${code(fault)}`,
      cell(what),
      mendOf(mends),
    ])
}

/** What helps anywhere, else what there is. All of it stands on the page of the needs. */
function mendOf(mends: Mends): string {
  const kind = mendKinds.find(each => mends[each] !== undefined)
  return kind === undefined ? '' : mendText(kind, mends[kind]!)
}
