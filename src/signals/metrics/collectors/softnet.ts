import { TableFile } from './_table-file.ts'
import { collector, counter, type Family, gauge } from './collector.ts'

const labels = { labels: ['cpu'] }
const processed = counter('softnet_processed_total', 'Packets that a CPU took from its devices.', labels)
const dropped = counter('softnet_dropped_total', 'Packets that the backlog of a CPU had no room for.', labels)
const squeezed = counter(
  'softnet_times_squeezed_total',
  'Times that a CPU had packets left when its time for them was over.',
  labels,
)
const collisions = counter(
  'softnet_cpu_collision_total',
  'Times that a device was locked by another CPU when a packet was to be sent.',
  labels,
)
const steered = counter('softnet_received_rps_total', 'Times that another CPU handed packets over.', labels)
const limited = counter(
  'softnet_flow_limit_count_total',
  'Packets that were dropped to keep one connection from taking the whole backlog.',
  labels,
)
const backlog = gauge('softnet_backlog_len', 'Packets that wait in the backlog of a CPU.', labels)

/** Column → its family. */
const columns: readonly (Family | undefined)[] = [
  processed,
  dropped,
  squeezed,
  undefined,
  undefined,
  undefined,
  undefined,
  undefined,
  collisions,
  steered,
  limited,
  backlog,
]
/** Columns of all kernels; later ones are steered packets (2.6.39), limits (3.11), backlog and CPU (5.10). */
const leastColumns = 9
const mostCount = 0xffff_ffff
/** More CPUs than the kernel supports. */
const mostCpus = 65_536

/** Packets by CPU, from /proc/net/softnet_stat (kernel, net/core/net-procfs.c). */
export const softnet = collector({
  name: 'softnet',
  summary: 'Packets processed by CPU',
  source: '/proc/net/softnet_stat',
  enabledByDefault: true,
  metrics: [processed, dropped, squeezed, collisions, steered, limited, backlog],
  start: (_options, { host }) => {
    const file = new TableFile(host.proc, 'net/softnet_stat')
    const values = new Float64Array(columns.length + 1)
    const numbers = new Map<number, string>()
    return {
      collect(readings) {
        file.read()
        let line = 0
        for (; file.line(); line++) {
          let width = 0
          for (; width < values.length && !file.done; width++) {
            const value = file.hex()
            if (!(value <= mostCount)) throw file.fault('a number is missing')
            values[width] = value
          }
          if (width < leastColumns) throw file.fault(`a line has ${width} numbers`)
          values.fill(0, width)
          // Offline CPUs have no line, and older kernels have no CPU column.
          const cpu = width > columns.length ? values[columns.length]! : line
          let number = numbers.get(cpu)
          if (number === undefined) {
            if (cpu >= mostCpus) throw file.fault('a CPU has no number')
            number = String(cpu)
            numbers.set(cpu, number)
          }
          for (let i = 0; i < columns.length; i++)
            if (columns[i] !== undefined) readings.set(columns[i]!, values[i]!, number)
        }
        if (line === 0) throw file.fault('empty file')
      },
    }
  },
})
