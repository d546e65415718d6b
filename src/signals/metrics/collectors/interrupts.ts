import { boolean, regex } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import { cpuHead } from './_cpus.ts'
import { nameFilter } from './_name-filter.ts'
import { TableFile } from './_table-file.ts'
import { collector, counter } from './collector.ts'

const interruptsTotal = counter('interrupts_total', 'Interrupts that a CPU handled, by line and device.', {
  labels: ['cpu', 'devices', 'info', 'type'],
})

/** Interrupts by CPU and line, from /proc/interrupts (proc(5)). */
export const interrupts = collector({
  name: 'interrupts',
  summary: 'Interrupts by CPU and line',
  source: '/proc/interrupts',
  enabledByDefault: false,
  metrics: [interruptsTotal],
  options: {
    name_include: key(
      regex,
      '',
      'Regular expression for interrupts (as `name;info;devices`) to show; empty for all.',
    ),
    name_exclude: key(
      regex,
      '',
      'Regular expression for interrupts (as `name;info;devices`) to exclude; empty for none.',
    ),
    include_zeros: key(boolean, true, 'Shows interrupts that never happened.'),
  },
  start: (options, { host }) => {
    const isShown = nameFilter(options.name_include, options.name_exclude)
    const file = new TableFile(host.proc, 'interrupts')
    return {
      collect(readings) {
        const cpus = cpuHead(file.read())
        const counts: number[] = []
        while (file.line()) {
          const row = rowOf(file, counts, cpus.length)
          if (row === undefined || !isShown(`${row.type};${row.info};${row.devices}`)) continue
          for (let i = 0; i < cpus.length; i++)
            if (options.include_zeros || counts[i] !== 0)
              readings.setAll(interruptsTotal, counts[i]!, [cpus[i]!, row.devices, row.info, row.type])
        }
      },
    }
  },
})

/** Undefined for lines without CPU columns, such as ERR. On arm64 the first number follows its colon directly. */
function rowOf(file: TableFile, counts: number[], cpus: number) {
  const type = file.until(':').trimStart()
  if (file.done || !/^[\w-]+$/.test(type)) throw file.fault('a line has no name')
  for (let i = 0; i < cpus; i++) {
    if (file.done) return undefined
    counts[i] = file.count()
  }
  const words = file.rest().replace(/[ \t]+/g, ' ')
  if (words === '') return undefined
  if (!/^\d+$/.test(type)) return { type, info: words, devices: '' }
  const space = words.indexOf(' ')
  return space < 0
    ? { type, info: words, devices: '' }
    : { type, info: words.slice(0, space), devices: words.slice(space + 1) }
}
