import { collector, counter, NoData } from './collector.ts'

const tasks = counter('kernel_hung_tasks_total', 'Tasks that the kernel found to be stuck.')
const path = 'sys/kernel/hung_task_detect_count'

/** Tasks that hung, from /proc/sys/kernel/hung_task_detect_count (kernel 6.13). */
export const kernel_hung = collector({
  name: 'kernel_hung',
  summary: 'Tasks that hung',
  source: '/proc/sys/kernel/hung_task_detect_count',
  enabledByDefault: true,
  metrics: [tasks],
  start: (_options, { host }) => ({
    collect(readings) {
      const count = host.proc.number(path)
      if (count === undefined)
        throw new NoData(
          `${host.proc.at(path)} not found: it requires Linux 6.13 and CONFIG_DETECT_HUNG_TASK`,
        )
      readings.set(tasks, count)
    },
  }),
})
