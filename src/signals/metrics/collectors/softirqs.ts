import { cpuHead } from './_cpus.ts'
import { TableFile } from './_table-file.ts'
import { collector, counter } from './collector.ts'

const functions = counter('softirqs_functions_total', 'Soft interrupts that a CPU handled, by kind.', {
  labels: ['cpu', 'type'],
})

/** Soft interrupts by CPU and kind, from /proc/softirqs (proc(5)). */
export const softirqs = collector({
  name: 'softirqs',
  summary: 'Soft interrupts by CPU and kind',
  source: '/proc/softirqs',
  enabledByDefault: false,
  metrics: [functions],
  start: (_options, { host }) => {
    const file = new TableFile(host.proc, 'softirqs')
    return {
      collect(readings) {
        const cpus = cpuHead(file.read())
        while (file.line()) {
          const type = file.text()
          if (!/^[A-Z_]+:$/.test(type)) throw file.fault('a line does not start with a kind')
          for (const cpu of cpus) readings.set(functions, file.count(), cpu, type.slice(0, -1))
        }
      },
    }
  },
})
