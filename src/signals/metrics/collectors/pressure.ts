import { collector, counter, type Family, NoData, type Readings } from './collector.ts'

/** Resource → families of its lines `some` and `full`. */
const resources: readonly { readonly name: string; readonly some?: Family; readonly full?: Family }[] = [
  { name: 'cpu', some: counter('pressure_cpu_waiting_seconds_total', 'Time that tasks waited for a CPU.') },
  {
    name: 'io',
    some: counter('pressure_io_waiting_seconds_total', 'Time that tasks waited for input or output.'),
    full: counter(
      'pressure_io_stalled_seconds_total',
      'Time that no task went on because of input or output.',
    ),
  },
  {
    name: 'memory',
    some: counter('pressure_memory_waiting_seconds_total', 'Time that tasks waited for memory.'),
    full: counter('pressure_memory_stalled_seconds_total', 'Time that no task went on for want of memory.'),
  },
  {
    name: 'irq',
    full: counter('pressure_irq_stalled_seconds_total', 'Time that no task went on because of interrupts.'),
  },
]

/** Pressure on resources, from /proc/pressure (kernel, accounting/psi.rst; irq since 6.1). */
export const pressure = collector({
  name: 'pressure',
  summary: 'Time that tasks waited for a resource (PSI)',
  source: '/proc/pressure',
  enabledByDefault: true,
  metrics: resources.flatMap(({ some, full }) => [some, full].filter(family => family !== undefined)),
  start: (_options, { host }) => ({
    collect(readings) {
      let found = false
      for (const { name, some, full } of resources) {
        // If accounting is off, the files exist, but reading them fails as not supported.
        const text = host.proc.find(`pressure/${name}`)
        if (text === undefined) continue
        show(readings, some, /^some .*\btotal=(\d{1,20})$/m, text, name)
        show(readings, full, /^full .*\btotal=(\d{1,20})$/m, text, name)
        found = true
      }
      if (!found)
        throw new NoData(
          'no pressure information: the kernel requires CONFIG_PSI, and psi=1 if PSI is disabled by default',
        )
    },
  }),
})

/** Times are in µs. */
function show(
  readings: Readings,
  family: Family | undefined,
  pattern: RegExp,
  text: string,
  name: string,
): void {
  if (family === undefined) return
  const total = pattern.exec(text)?.[1]
  if (total === undefined) throw new Error(`cannot read /proc/pressure/${name}: a line has no total`)
  readings.set(family, Number(total) / 1000 / 1000)
}
