import { Scanner } from '../../../foundation/lib/scanner.ts'
import { collector, counter, type Tree } from './collector.ts'
import { families, metricName } from './families.ts'

/** Caches of the network, from /proc/net/stat: a line of names, then one of hexadecimal numbers for each CPU. */
export const lnstat = collector({
  name: 'lnstat',
  summary: 'Counters of network caches',
  source: '/proc/net/stat',
  enabledByDefault: false,
  metrics: [],
  dynamic: 'One metric for each column of a file in /proc/net/stat, with the file as label `subsystem`.',
  start: (_options, { host }) => {
    const familyOf = families(name =>
      counter(`lnstat_${metricName(name)}_total`, `Column ${name} of a file in /proc/net/stat.`, {
        labels: ['cpu', 'subsystem'],
      }),
    )
    return {
      collect(readings) {
        for (const subsystem of host.proc.list('net/stat')) {
          const { names, rows } = parseTable(host.proc, `net/stat/${subsystem}`)
          rows.forEach((row, cpu) => {
            row.forEach((value, i) => {
              readings.set(familyOf(names[i]!)!, value, String(cpu), subsystem)
            })
          })
        }
      },
    }
  },
})

interface Table {
  readonly names: readonly string[]
  /** No longer than `names`. */
  readonly rows: readonly (readonly number[])[]
}

function parseTable(proc: Tree, path: string): Table {
  const scan = new Scanner(proc.bytes(path))
  const names: string[] = []
  scan.line()
  while (!scan.done) names.push(scan.text())
  if (names.length === 0) throw new Error(`cannot read /proc/${path}: no header line`)
  const rows: number[][] = []
  while (scan.line()) {
    const row: number[] = []
    while (!scan.done) row.push(scan.hex())
    if (row.length > names.length || row.some(Number.isNaN))
      throw new Error(
        `cannot read /proc/${path}: line ${rows.length + 2} does not have one hexadecimal number per column`,
      )
    rows.push(row)
  }
  if (rows.length === 0) throw new Error(`cannot read /proc/${path}: no numbers found`)
  return { names, rows }
}
