import { Scanner } from '../../../foundation/lib/scanner.ts'
import { bytesOrNoData } from './_missing-file.ts'
import { collector, gauge, NoData, type Tree } from './collector.ts'

const entries = gauge('nf_conntrack_entries', 'Connections that are tracked now.')
const limit = gauge('nf_conntrack_entries_limit', 'Connections that can be tracked at most.')

/** Shown columns of the table, from 0, in rising order. */
const columns = [
  [2, gauge('nf_conntrack_stat_found', 'Look-ups that found an entry, since the start.')],
  [4, gauge('nf_conntrack_stat_invalid', 'Packets that could not be tracked, since the start.')],
  [5, gauge('nf_conntrack_stat_ignore', 'Packets that needed no tracking any more, since the start.')],
  [8, gauge('nf_conntrack_stat_insert', 'Entries that were put into the table, since the start.')],
  [9, gauge('nf_conntrack_stat_insert_failed', 'Entries that the table did not take, since the start.')],
  [10, gauge('nf_conntrack_stat_drop', 'Packets dropped as they could not be tracked, since the start.')],
  [11, gauge('nf_conntrack_stat_early_drop', 'Entries that had to go to make room, since the start.')],
  [16, gauge('nf_conntrack_stat_search_restart', 'Look-ups begun again as the table grew, since the start.')],
] as const

/** Linux before 2.6.35 lacks the last one. */
const fewestColumns = 16
const mostColumns = 17

/** The connection tracking table of netfilter, from /proc/sys/net/netfilter and /proc/net/stat/nf_conntrack. */
export const conntrack = collector({
  name: 'conntrack',
  summary: 'Entries of the connection tracking table',
  source: '/proc/net/stat/nf_conntrack',
  enabledByDefault: true,
  metrics: [entries, limit, ...columns.map(([, family]) => family)],
  start: (_options, { host }) => {
    const scan = new Scanner(Buffer.alloc(0))
    return {
      collect(readings) {
        readings.set(entries, parameter(host.proc, 'count'))
        readings.set(limit, parameter(host.proc, 'max'))
        const path = 'net/stat/nf_conntrack'
        const sums = sumColumns(
          scan.reset(bytesOrNoData(host.proc, path, 'connection tracking is not active')),
        )
        columns.forEach(([, family], i) => {
          readings.set(family, sums[i]!)
        })
      },
    }
  },
})

function parameter(proc: Tree, name: string): number {
  const path = `sys/net/netfilter/nf_conntrack_${name}`
  const value = proc.number(path)
  if (value === undefined) throw new NoData(`${proc.at(path)} not found: connection tracking is not active`)
  return value
}

/** Shown columns, each summed over the lines, one per CPU. */
function sumColumns(scan: Scanner): readonly number[] {
  const sums = columns.map(() => 0)
  const broken = () =>
    new Error('cannot read /proc/net/stat/nf_conntrack: not lines of 16 or 17 hexadecimal numbers')
  scan.line()
  let cpus = 0
  for (; scan.line(); cpus++) {
    let next = 0
    for (let column = 0; column < mostColumns; column++) {
      if (scan.done) {
        if (column >= fewestColumns) break
        throw broken()
      }
      if (columns[next]![0] !== column) {
        scan.skip()
        continue
      }
      const value = scan.hex()
      if (Number.isNaN(value)) throw broken()
      sums[next++]! += value
    }
    if (!scan.done) throw broken()
  }
  if (cpus === 0) throw broken()
  return sums
}
