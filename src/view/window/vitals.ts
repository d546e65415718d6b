// Host metrics second by second: the lines of the six charts of the overview.

import { SampleHistory } from './sample-history.ts'

export interface VitalSeries {
  readonly chart: 'cpu' | 'memory' | 'disk' | 'network' | 'pressure' | 'tcp'
  readonly label: string
  readonly unit: '%' | 'By' | 'By/s' | '1/s'
}

/** The lines, in their order in documents. Those of `cpu` and `memory` are parts of a whole. */
export const vitalSeries = {
  /** Of all CPUs together. */
  cpuUser: { chart: 'cpu', label: 'user', unit: '%' },
  cpuSystem: { chart: 'cpu', label: 'system', unit: '%' },
  cpuNice: { chart: 'cpu', label: 'nice', unit: '%' },
  cpuIowait: { chart: 'cpu', label: 'iowait', unit: '%' },
  cpuIrq: { chart: 'cpu', label: 'irq', unit: '%' },
  cpuSteal: { chart: 'cpu', label: 'steal', unit: '%' },
  memoryUsed: { chart: 'memory', label: 'used', unit: 'By' },
  memoryBuffers: { chart: 'memory', label: 'buffers', unit: 'By' },
  memoryCache: { chart: 'memory', label: 'cache', unit: 'By' },
  memoryFree: { chart: 'memory', label: 'free', unit: 'By' },
  swapUsed: { chart: 'memory', label: 'swap used', unit: 'By' },
  diskRead: { chart: 'disk', label: 'read', unit: 'By/s' },
  diskWritten: { chart: 'disk', label: 'written', unit: 'By/s' },
  netReceived: { chart: 'network', label: 'received', unit: 'By/s' },
  netSent: { chart: 'network', label: 'sent', unit: 'By/s' },
  netLoopback: { chart: 'network', label: 'loopback', unit: 'By/s' },
  /** Time in which at least one task waited (kernel, accounting/psi.rst: `some`). */
  pressureCpu: { chart: 'pressure', label: 'cpu', unit: '%' },
  pressureMemory: { chart: 'pressure', label: 'memory', unit: '%' },
  pressureIo: { chart: 'pressure', label: 'io', unit: '%' },
  tcpRetransmits: { chart: 'tcp', label: 'retransmits', unit: '1/s' },
  tcpResets: { chart: 'tcp', label: 'resets sent', unit: '1/s' },
  tcpRefused: { chart: 'tcp', label: 'refused, queue full', unit: '1/s' },
} as const satisfies Readonly<Record<string, VitalSeries>>

export type VitalId = keyof typeof vitalSeries
const ids = Object.keys(vitalSeries) as VitalId[]
const columns = Object.fromEntries(ids.map((id, i) => [id, i])) as Record<VitalId, number>

/** Current values without a line; `NaN` if unknown. */
export interface VitalFacts {
  memoryBytes: number
  /** Memory that programs can take without swapping. */
  memoryAvailableBytes: number
  /** Percent of one core, for this process. */
  agentCpuPercent: number
}

export interface VitalsOptions {
  readonly windowMs: number
  /** Maximum memory; if it does not suffice for the window, the window is shorter. */
  readonly maxBytes: number
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number
}

/** Past values of a document. */
export interface VitalsPast {
  readonly fromMs: number
  readonly stepMs: number
  /** By line. */
  readonly values: (number | null)[][]
}

const secondMs = 1000
/** Minimum number of rows. */
const fewestRows = 60

export class Vitals {
  readonly series: readonly VitalSeries[] = ids.map(id => vitalSeries[id])
  readonly facts: VitalFacts = {
    memoryBytes: Number.NaN,
    memoryAvailableBytes: Number.NaN,
    agentCpuPercent: Number.NaN,
  }
  readonly #history: SampleHistory
  readonly #now: () => number

  constructor({ windowMs, maxBytes, now = () => performance.now() }: VitalsOptions) {
    this.#now = now
    // Allocated in blocks of eight columns, with an overhead for each.
    const columnsHeld = Math.ceil(ids.length / 8) * 8
    const rows = Math.floor((maxBytes - columnsHeld * 32) / (columnsHeld * 4))
    this.#history = new SampleHistory({
      rows: Math.max(fewestRows, Math.min(Math.ceil(windowMs / secondMs), rows)),
      stepMs: secondMs,
      maxBytes: Number.POSITIVE_INFINITY,
    })
    for (const _ of ids) this.#history.take()
  }

  /** Memory in use: allocated at the start. */
  get bytes(): number {
    return this.#history.bytes
  }

  /** Seconds of history. */
  get seconds(): number {
    return this.#history.rows
  }

  /** Number of the newest second; -1 before the first. */
  get newest(): number {
    return this.#history.newest
  }

  /** Starts the current second: values set from now on belong to it. */
  begin(): void {
    this.#history.begin(this.#now())
  }

  set(id: VitalId, value: number): void {
    this.#history.set(columns[id], value)
  }

  /** The values of a second in the order of `series`. */
  values(second: number): (number | null)[] {
    return ids.map(id => shown(this.#history.at(columns[id], second)))
  }

  /** Time of a second, in milliseconds since the Unix epoch. */
  timeOf(second: number): number {
    return Math.round(Date.now() - this.#now() + this.#history.timeOf(second))
  }

  /**
   * Values of the `seconds` before `until`: at most `mostPoints` per line, averaged over several seconds if there would
   * be more.
   */
  past(until: number, seconds: number, mostPoints: number): VitalsPast {
    const history = this.#history
    const known = Math.max(0, history.length - (history.newest - until + 1))
    const wanted = Math.min(Math.floor(seconds), known)
    const step = Math.max(1, Math.ceil(wanted / mostPoints))
    const points = Math.floor(wanted / step)
    const from = until - points * step
    return {
      fromMs: this.timeOf(from),
      stepMs: step * secondMs,
      values: ids.map(id => {
        const line: (number | null)[] = new Array(points)
        for (let i = 0; i < points; i++) line[i] = shown(this.#mean(columns[id], from + i * step, step))
        return line
      }),
    }
  }

  /** Mean of the known values in the last `seconds`; `NaN` if there are none. */
  mean(id: VitalId, seconds: number): number {
    return this.#mean(columns[id], this.#history.newest - seconds + 1, seconds)
  }

  #mean(column: number, from: number, length: number): number {
    if (length === 1) return this.#history.at(column, from)
    let sum = 0
    let count = 0
    for (let row = from; row < from + length; row++) {
      const value = this.#history.at(column, row)
      if (Number.isNaN(value)) continue
      sum += value
      count++
    }
    return count === 0 ? Number.NaN : sum / count
  }
}

/** Two decimals suffice, and hide the meaningless digits of a float. */
function shown(value: number): number | null {
  return Number.isFinite(value) ? Math.round(value * 100) / 100 : null
}
