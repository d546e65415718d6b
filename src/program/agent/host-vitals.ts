// Reads the state of the host each second, so that the page has a history when it is opened.

import { Scanner } from '../../foundation/lib/scanner.ts'
import { every, type Ticks } from '../../foundation/lib/shared-ticks.ts'
import type { Host } from '../../foundation/model/host.ts'
import { HostFiles, type HostPaths } from '../../kernel/host.ts'
import type { VitalId, Vitals } from '../../view/window/vitals.ts'
import { DeviceRates } from './device-rates.ts'
import { Rate } from './rate.ts'

export interface HostVitalsOptions {
  /** `agent.nodeexporter.path`. */
  readonly paths: HostPaths
  readonly vitals: Vitals
  /** Milliseconds of the monotonic clock of `vitals`. */
  readonly now?: () => number
}

const secondMs = 1000
/** Retry period for unreadable files. */
const retryMs = 60_000
const sectorBytes = 512
const kibibyte = 1024

/** A file and its reader. */
interface Source {
  readonly path: string
  /** Reads from the scanner's position. */
  readonly read: (scan: Scanner, nowMs: number) => void
  retryAtMs: number
}

/** Fills the vitals. A missing file leaves its lines without values, and stops nothing. */
export class HostVitals {
  readonly #vitals: Vitals
  readonly #host: HostFiles
  readonly #now: () => number
  readonly #scan = new Scanner(Buffer.alloc(0))
  readonly #sources: readonly Source[]
  readonly #agent = new Rate()
  #ticks: Ticks | undefined

  constructor({ paths, vitals, now = () => performance.now() }: HostVitalsOptions) {
    this.#vitals = vitals
    this.#now = now
    this.#host = new HostFiles(paths)
    const set = (id: VitalId, value: number) => vitals.set(id, value)
    this.#sources = [
      source('stat', cpuReader(set)),
      source('meminfo', memoryReader(vitals)),
      source('diskstats', diskReader(this.#host, set)),
      source('net/dev', networkReader(this.#host, set)),
      source('pressure/cpu', pressureReader('pressureCpu', set)),
      source('pressure/memory', pressureReader('pressureMemory', set)),
      source('pressure/io', pressureReader('pressureIo', set)),
      source(
        'net/snmp',
        protocolReader('Tcp:', { RetransSegs: 'tcpRetransmits', OutRsts: 'tcpResets' }, set),
      ),
      source('net/netstat', protocolReader('TcpExt:', { ListenOverflows: 'tcpRefused' }, set)),
    ]
  }

  /** Reads now, and then each second. Does not keep the process alive. */
  start(): void {
    this.look()
    this.#ticks ??= every(secondMs, () => this.look())
  }

  /** Stops permanently. */
  stop(): void {
    this.#ticks?.stop()
    this.#host.close()
  }

  /** Reads once. */
  look(): void {
    const nowMs = this.#now()
    this.#vitals.begin()
    const { user, system } = process.cpuUsage()
    // A second has a million microseconds, and 100 percent.
    this.#vitals.facts.agentCpuPercent = this.#agent.next(user + system, nowMs) / 1e4
    for (const each of this.#sources) {
      if (nowMs < each.retryAtMs) continue
      try {
        each.read(this.#scan.reset(this.#host.proc.bytes(each.path)), nowMs)
      } catch {
        // Missing or not readable: the lines stay without values.
        each.retryAtMs = nowMs + retryMs
      }
    }
  }
}

type Set = (id: VitalId, value: number) => void
type Read = Source['read']

function source(path: string, read: Read): Source {
  return { path, read, retryAtMs: Number.NEGATIVE_INFINITY }
}

/** The first line of /proc/stat: user nice system idle iowait irq softirq steal, in ticks of all CPUs (proc(5)). */
function cpuReader(set: Set): Read {
  const columns = 8
  const before = new Float64Array(columns).fill(Number.NaN)
  const spent = new Float64Array(columns)
  return scan => {
    if (!scan.line() || !scan.pass('cpu ')) return
    let all = 0
    for (let i = 0; i < columns; i++) {
      const ticks = scan.number()
      // Idle and waiting time may decrease slightly, a flaw of the kernel's accounting.
      spent[i] = Math.max(0, ticks - before[i]!)
      all += spent[i]!
      before[i] = ticks
    }
    if (!(all > 0)) return
    const percent = (ticks: number) => (100 * ticks) / all
    set('cpuUser', percent(spent[0]!))
    set('cpuNice', percent(spent[1]!))
    set('cpuSystem', percent(spent[2]!))
    set('cpuIowait', percent(spent[4]!))
    set('cpuIrq', percent(spent[5]! + spent[6]!))
    set('cpuSteal', percent(spent[7]!))
  }
}

const memoryFields = [
  'MemTotal:',
  'MemFree:',
  'MemAvailable:',
  'Buffers:',
  'Cached:',
  'SReclaimable:',
  'SwapTotal:',
  'SwapFree:',
] as const
type MemoryField = (typeof memoryFields)[number]

/** /proc/meminfo. Reclaimable slabs count as cache, not as used memory, as in free(1). */
function memoryReader(vitals: Vitals): Read {
  const found = new Map<MemoryField, number>()
  const of = (field: MemoryField) => found.get(field) ?? Number.NaN
  return scan => {
    found.clear()
    while (scan.line() && found.size < memoryFields.length) {
      const field = memoryFields.find(name => scan.pass(name))
      if (field !== undefined) found.set(field, scan.number() * kibibyte)
    }
    const cache = of('Cached:') + (found.get('SReclaimable:') ?? 0)
    vitals.set('memoryBuffers', of('Buffers:'))
    vitals.set('memoryCache', cache)
    vitals.set('memoryFree', of('MemFree:'))
    vitals.set('memoryUsed', Math.max(0, of('MemTotal:') - of('MemFree:') - of('Buffers:') - cache))
    vitals.set('swapUsed', of('SwapTotal:') - of('SwapFree:'))
    vitals.facts.memoryBytes = of('MemTotal:')
    vitals.facts.memoryAvailableBytes = of('MemAvailable:')
  }
}

/** Devices on top of others, or in memory: their work is done by the devices below. */
const unrealDisk =
  /^(?:loop|ram|zram|fd|sr|dm-|md|nbd)\d|^(?:(?:h|s|v|xv)d[a-z]+|nvme\d+n\d+p|mmcblk\d+p)\d+$/

/** /proc/diskstats: disks, without partitions and stacked devices (admin-guide/iostats.rst). */
function diskReader({ sys }: Host, set: Set): Read {
  const rates = new DeviceRates(
    name => sys.exists(`block/${name.replaceAll('/', '!')}/device`),
    name => !unrealDisk.test(name),
  )
  return (scan, nowMs) => {
    rates.begin(nowMs)
    while (scan.line()) {
      scan.skip(2)
      const name = scan.text()
      if (name === '') continue
      scan.skip(2)
      const read = scan.number()
      scan.skip(3)
      rates.add(name, read * sectorBytes, scan.number() * sectorBytes)
    }
    rates.end()
    set('diskRead', rates.first)
    set('diskWritten', rates.second)
  }
}

/** /proc/net/dev: hardware devices only, because bridges and the like count the same packets again. */
function networkReader({ sys }: Host, set: Set): Read {
  const loopback = new Rate()
  const rates = new DeviceRates(
    name => sys.exists(`class/net/${name}/device`),
    name => name !== 'lo',
  )
  return (scan, nowMs) => {
    rates.begin(nowMs)
    scan.line()
    scan.line()
    while (scan.line()) {
      const name = scan.until(':').trim()
      const received = scan.number()
      scan.skip(7)
      const sent = scan.number()
      if (name === 'lo') set('netLoopback', loopback.next(received, nowMs))
      else if (name !== '') rates.add(name, received, sent)
    }
    rates.end()
    set('netReceived', rates.first)
    set('netSent', rates.second)
  }
}

/** `some avg10=0.00 avg60=0.00 avg300=0.00 total=123`, in microseconds (accounting/psi.rst). */
function pressureReader(id: VitalId, set: Set): Read {
  const waited = new Rate()
  return (scan, nowMs) => {
    if (!scan.line() || !scan.pass('some ')) return
    scan.skip(3)
    if (!scan.pass(' total=')) return
    set(id, Math.min(100, waited.next(scan.number(), nowMs) / 1e4))
  }
}

/** Fields of /proc/net/snmp and netstat, which alternate lines of names and values. */
function protocolReader(protocol: string, fields: Readonly<Record<string, VitalId>>, set: Set): Read {
  let header = ''
  let columns: readonly (readonly [id: VitalId, rate: Rate] | undefined)[] = []
  const rates = new Map(Object.entries(fields).map(([name, id]) => [name, [id, new Rate()] as const]))
  return (scan, nowMs) => {
    while (scan.line()) {
      if (!scan.pass(protocol)) continue
      // The names are the same each time: comparing them is cheaper than parsing them.
      if (header === '' || !scan.starts(header)) {
        header = scan.rest()
        columns = header.split(' ').map(name => rates.get(name))
        const last = columns.findLastIndex(column => column !== undefined)
        columns = columns.slice(0, last + 1)
        header = ` ${header}`
      }
      if (!scan.line() || !scan.pass(protocol)) return
      for (const column of columns) {
        if (column === undefined) scan.skip()
        else set(column[0], column[1].next(scan.number(), nowMs))
      }
      return
    }
  }
}
