import { boolean } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import { TableFile } from './_table-file.ts'
import { collector, counter, gauge } from './collector.ts'

/** First word of a line → family of its second word. */
const lines = new Map([
  ['intr', counter('intr_total', 'Interrupts that were served.')],
  ['ctxt', counter('context_switches_total', 'Times that a CPU changed from one task to another.')],
  [
    'processes',
    counter('forks_total', 'Processes and threads that were begun.', {
      otel: { name: 'system.process.created', unit: '{process}', kind: 'counter' },
    }),
  ],
  ['btime', gauge('boot_time_seconds', 'Time at which the host was started, in seconds since 1970.')],
  ['procs_running', gauge('procs_running', 'Tasks that run or could.')],
  ['procs_blocked', gauge('procs_blocked', 'Tasks that wait for their input or output.')],
])
const softirqs = counter('softirqs_total', 'Soft interrupts that were raised, by kind.', {
  labels: ['vector'],
})

/** In the order of the line `softirq` (kernel, include/linux/interrupt.h). */
const vectors = [
  'hi',
  'timer',
  'net_tx',
  'net_rx',
  'block',
  'block_iopoll',
  'tasklet',
  'sched',
  'hrtimer',
  'rcu',
] as const

/** Counts of the whole host, from /proc/stat (proc(5)). */
export const stat = collector({
  name: 'stat',
  summary: 'Interrupts, context switches, forks and boot time',
  source: '/proc/stat',
  enabledByDefault: true,
  metrics: [...lines.values(), softirqs],
  options: { softirq: key(boolean, false, 'Shows soft interrupts by kind.') },
  start: ({ softirq }, { host }) => {
    const file = new TableFile(host.proc, 'stat')
    return {
      collect(readings) {
        file.read()
        let found = false
        while (file.line()) {
          if (file.starts('cpu')) continue
          const word = file.text()
          const family = lines.get(word)
          if (family !== undefined) {
            readings.set(family, file.count())
            found = true
          } else if (softirq && word === 'softirq') {
            file.skip() // the sum
            for (const vector of vectors) readings.set(softirqs, file.count(), vector)
          }
        }
        if (!found) throw file.fault('no known lines')
      },
    }
  },
})
