import { bytesOrNoData } from './_missing-file.ts'
import { TableFile } from './_table-file.ts'
import { collector, counter } from './collector.ts'

const running = counter('schedstat_running_seconds_total', 'Time that a CPU ran tasks.', { labels: ['cpu'] })
const waiting = counter('schedstat_waiting_seconds_total', 'Time that tasks waited for a CPU.', {
  labels: ['cpu'],
})
const timeslices = counter('schedstat_timeslices_total', 'Slices of time that a CPU gave to tasks.', {
  labels: ['cpu'],
})

/** Times of the scheduler, from /proc/schedstat (kernel, scheduler/sched-stats.rst, versions 15 to 17). */
export const schedstat = collector({
  name: 'schedstat',
  summary: 'Run time and wait time of tasks by CPU',
  source: '/proc/schedstat',
  enabledByDefault: true,
  metrics: [running, waiting, timeslices],
  start: (_options, { host }) => {
    const file = new TableFile(host.proc, 'schedstat')
    const numbers = new Map<string, string>()
    return {
      collect(readings) {
        file.reset(bytesOrNoData(host.proc, 'schedstat', 'the kernel was built without CONFIG_SCHEDSTATS'))
        let found = false
        while (file.line()) {
          if (!file.starts('cpu')) continue
          const name = file.text()
          let number = numbers.get(name)
          if (number === undefined) {
            if (!/^cpu\d{1,5}$/.test(name)) throw file.fault('the name of a CPU has no number')
            number = name.slice(3)
            numbers.set(name, number)
          }
          file.skip(6)
          readings.set(running, file.count() / 1e9, number)
          readings.set(waiting, file.count() / 1e9, number)
          readings.set(timeslices, file.count(), number)
          found = true
        }
        if (!found) throw file.fault('no CPUs found')
      },
    }
  },
})
