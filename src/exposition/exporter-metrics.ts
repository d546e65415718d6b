// What a page tells of the process that serves it, and of its scrapes, by the names that the replaced exporter has.

import { readdirSync } from 'node:fs'
import { counter, type Family, gauge } from '../model/collector.ts'
import type { Tree } from '../model/host.ts'
import type { Page, Source } from './page.ts'

const absolute = true

const buildInfo = gauge('node_exporter_build_info', 'What serves the metrics. The value is 1.', {
  absolute,
  labels: ['branch', 'goarch', 'goos', 'goversion', 'revision', 'tags', 'version'],
})
const cpu = counter(
  'process_cpu_seconds_total',
  'CPU time that this process used, in user and kernel mode.',
  {
    absolute,
  },
)
const maxFds = gauge('process_max_fds', 'File descriptors that this process may have open.', { absolute })
const received = counter(
  'process_network_receive_bytes_total',
  'Bytes of IP that came into the network namespace of this process.',
  { absolute },
)
const transmitted = counter(
  'process_network_transmit_bytes_total',
  'Bytes of IP that left the network namespace of this process.',
  { absolute },
)
const openFds = gauge('process_open_fds', 'File descriptors that this process has open.', { absolute })
const resident = gauge('process_resident_memory_bytes', 'Memory of this process that is in RAM.', {
  absolute,
})
const started = gauge('process_start_time_seconds', 'When this process was started, in Unix time.', {
  absolute,
})
const virtual = gauge('process_virtual_memory_bytes', 'Address space of this process.', { absolute })
const maxVirtual = gauge('process_virtual_memory_max_bytes', 'Address space that this process may have.', {
  absolute,
})
const errors = counter('promhttp_metric_handler_errors_total', 'Pages that could not be made, by cause.', {
  absolute,
  labels: ['cause'],
})
const underWay = gauge('promhttp_metric_handler_requests_in_flight', 'Scrapes that are being answered.', {
  absolute,
})
const answered = counter('promhttp_metric_handler_requests_total', 'Answers to scrapes, by status.', {
  absolute,
  labels: ['code'],
})

/** What is told of the exporter itself where that is not turned off. */
export const exporterFamilies: readonly Family[] = [
  ...[cpu, maxFds, received, transmitted, openFds, resident, started, virtual, maxVirtual],
  ...[errors, underWay, answered],
]

/** What is served; the labels of `node_exporter_build_info` that tell something here. */
export interface ExporterBuild {
  readonly version: string
  readonly revision: string
}

/** Scrapes since the start, by status, and now. */
export interface ScrapeCounts {
  readonly answered: Readonly<Record<number, number>>
  readonly underWay: number
}

/** Puts on the page what this process is. The runtime is no Go: `goversion` is its version. */
export function showBuild(page: Page, source: Source, { version, revision }: ExporterBuild): void {
  const arch = process.arch === 'x64' ? 'amd64' : process.arch
  const labels = ['unknown', arch, process.platform, process.version, revision, 'unknown', version]
  page.begin(source).setAll(buildInfo, 1, labels)
}

/** Puts on the page how this process and its scrapes do. `proc`: a real /proc, whatever the host's is. */
export function showExporter(page: Page, source: Source, proc: Tree, scrapes: ScrapeCounts): void {
  const readings = page.begin(source)
  readings.set(resident, process.memoryUsage.rss())
  readings.set(started, performance.timeOrigin / 1000)
  for (const [code, count] of Object.entries(scrapes.answered)) readings.set(answered, count, code)
  readings.set(underWay, scrapes.underWay)
  readings.set(errors, 0, 'encoding')
  readings.set(errors, scrapes.answered[500] ?? 0, 'gathering')
  // Not every kernel tells all of it.
  const put = (family: Family, value: number) => {
    if (!Number.isNaN(value)) readings.set(family, value)
  }
  try {
    limits ??= limitsOf(proc.text('self/limits'))
    put(maxFds, limits.files)
    put(maxVirtual, limits.addressSpace)
    // The directory that is read counts itself.
    put(openFds, readdirSync(proc.at('self/fd')).length - 1)
    // Fields from the third on (proc_pid_stat(5)); ticks are hundredths of a second on every architecture of Node.
    const stat = proc.text('self/stat')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    put(cpu, (Number(fields[11]) + Number(fields[12])) / 100)
    put(virtual, Number(fields[20]))
    const octets = octetsOf(proc.text('self/net/netstat'))
    put(received, octets.received)
    put(transmitted, octets.transmitted)
  } catch {
    // Without /proc none of these is known, and the host's own metrics tell why.
  }
}

/** Of this process, from its start on: nobody changes them for it. */
let limits: { readonly files: number; readonly addressSpace: number } | undefined

/** Soft limits, from /proc/self/limits (proc_pid_limits(5)). */
function limitsOf(text: string) {
  const soft = (name: string) => {
    const written = new RegExp(`^${name} +(\\S+)`, 'm').exec(text)?.[1]
    return written === 'unlimited' ? 2 ** 64 : Number(written)
  }
  return { files: soft('Max open files'), addressSpace: soft('Max address space') }
}

/** Bytes that IP took and sent, from /proc/self/net/netstat: a line of names, below it a line of values. */
function octetsOf(text: string) {
  const [names = [], values = []] = text
    .split('\n')
    .filter(line => line.startsWith('IpExt:'))
    .map(line => line.split(' '))
  const value = (name: string) => Number(values[names.indexOf(name)])
  return { received: value('InOctets'), transmitted: value('OutOctets') }
}
