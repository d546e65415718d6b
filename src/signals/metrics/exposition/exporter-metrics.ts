// Metrics about the serving process and its scrapes, with the names of the replaced exporter.

import { readdirSync, statSync } from 'node:fs'
import { pageSizeBytes } from '../../../foundation/lib/page-size.ts'
import { counter, type Family, gauge } from '../../../foundation/model/collector.ts'
import type { Tree } from '../../../foundation/model/host.ts'
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

/** Families about the build. */
export const buildFamilies: readonly Family[] = [buildInfo]

/** Families about the exporter itself, unless they are turned off. */
export const exporterFamilies: readonly Family[] = [
  ...[cpu, maxFds, received, transmitted, openFds, resident, started, virtual, maxVirtual],
  ...[errors, underWay, answered],
]

/** Build of the process; those labels of `node_exporter_build_info` that apply. */
export interface ExporterBuild {
  readonly version: string
  readonly revision: string
}

/** Scrapes since the start, by status, and current ones. */
export interface ScrapeCounts {
  readonly answered: Readonly<Record<number, number>>
  readonly inFlight: number
}

/** Shows the build of this process. `goversion` is the version of the runtime, which is not Go. */
export function showBuild(page: Page, source: Source, { version, revision }: ExporterBuild): void {
  const arch = process.arch === 'x64' ? 'amd64' : process.arch
  const labels = ['unknown', arch, process.platform, process.version, revision, 'unknown', version]
  page.begin(source).setAll(buildInfo, 1, labels)
}

/** Shows resource usage of this process and counts of its scrapes. `proc`: a real /proc, whatever the host's is. */
export function showExporter(page: Page, source: Source, proc: Tree, scrapes: ScrapeCounts): void {
  const readings = page.begin(source)
  const { user, system } = process.cpuUsage()
  readings.set(cpu, (user + system) / 1e6)
  readings.set(started, performance.timeOrigin / 1000)
  for (const [code, count] of Object.entries(scrapes.answered)) readings.set(answered, count, code)
  readings.set(underWay, scrapes.inFlight)
  readings.set(errors, 0, 'encoding')
  readings.set(errors, scrapes.answered[500] ?? 0, 'gathering')
  // Some kernels lack some values.
  const put = (family: Family, value: number) => {
    if (!Number.isNaN(value)) readings.set(family, value)
  }
  try {
    lasting ??= { ...limitsOf(proc.text('self/limits')), pageBytes: pageSizeBytes() }
    put(maxFds, lasting.files)
    put(maxVirtual, lasting.addressSpace)
    put(openFds, openFiles(proc.at('self/fd')))
    // Pages, all and those in RAM (proc_pid_statm(5)).
    const [size, inRam] = proc.text('self/statm').split(' ', 2)
    put(virtual, Number(size) * lasting.pageBytes)
    put(resident, Number(inRam) * lasting.pageBytes)
    const octets = octetsOf(proc.text('self/net/netstat'))
    put(received, octets.received)
    put(transmitted, octets.transmitted)
  } catch {
    // Without /proc none of these is known, and the host's metrics show the reason.
  }
}

/**
 * Since Linux 6.2 the size of the directory, before that 0. The list of entries includes the descriptor that reads it.
 */
function openFiles(directory: string): number {
  return statSync(directory).size || readdirSync(directory).length - 1
}

/** Limits of this process, read once: no other process changes them. */
let lasting: { readonly files: number; readonly addressSpace: number; readonly pageBytes: number } | undefined

/** Soft limits, from /proc/self/limits (proc_pid_limits(5)). */
function limitsOf(text: string) {
  const soft = (name: string) => {
    const written = new RegExp(`^${name} +(\\S+)`, 'm').exec(text)?.[1]
    return written === 'unlimited' ? 2 ** 64 : Number(written)
  }
  return { files: soft('Max open files'), addressSpace: soft('Max address space') }
}

/** Bytes received and sent over IP, from /proc/self/net/netstat: a line of names, and below it a line of values. */
function octetsOf(text: string) {
  const [names = [], values = []] = text
    .split('\n')
    .filter(line => line.startsWith('IpExt:'))
    .map(line => line.split(' '))
  const value = (name: string) => Number(values[names.indexOf(name)])
  return { received: value('InOctets'), transmitted: value('OutOctets') }
}
