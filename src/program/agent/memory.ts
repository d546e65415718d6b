// The agent's memory: its limit, its users, and its shortage.

import { readFileSync } from 'node:fs'
import { getHeapStatistics } from 'node:v8'
import { LiveHeap } from '../../foundation/lib/live-heap.ts'
import { type Logger, limitRepeats } from '../../foundation/lib/logger.ts'
import { MemoryGovernor, type MemoryPressure, type TableState } from '../../foundation/lib/memory-governor.ts'
import { MemoryRest } from '../../foundation/lib/memory-rest.ts'
import { agentBytes, memoryBounds } from '../../foundation/lib/memory-room.ts'
import { pageSizeBytes } from '../../foundation/lib/page-size.ts'
import { every, type Ticks } from '../../foundation/lib/shared-ticks.ts'
import { giveBackMemory } from '../../kernel/give-back.ts'

/** Interval of measuring, in milliseconds. */
const lookMs = 500
/** Least interval of log lines about a shortage, in milliseconds. */
const sayMs = 60_000
/** Tables named in the log. */
const mostNamed = 3

const effects: Readonly<Record<MemoryPressure, string>> = {
  0: '',
  1: 'caches are reduced',
  2: 'caches and detail are reduced',
  3: 'caches and detail are reduced, and new spans are only counted',
}

/** For documents: bytes throughout. */
export interface MemoryState {
  readonly limit: number
  /** With file pages, as in `ps`. */
  readonly resident: number
  readonly anonymous: number
  readonly heap: { readonly live: number; readonly used: number; readonly limit: number }
  readonly pressure: MemoryPressure
  /** Number of shortages. */
  readonly shortages: number
  readonly tables: { readonly used: number; readonly limit: number; readonly largest: readonly TableState[] }
}

/** The governor with a timer. */
export class Memory {
  readonly governor: MemoryGovernor
  readonly limitBytes: number
  readonly #log: Logger
  readonly #ticks: Ticks
  readonly #heapLimit = getHeapStatistics().heap_size_limit
  readonly #rest = new MemoryRest()
  #said = Number.NEGATIVE_INFINITY
  #saidPressure: MemoryPressure = 0

  constructor(setting: number | 'auto', log: Logger) {
    this.#log = log
    this.limitBytes = agentBytes(setting)
    const live = new LiveHeap()
    const repeated = limitRepeats(log, sayMs)
    const page = pageSizeBytes()
    this.governor = new MemoryGovernor(memoryBounds(this.limitBytes), () => ({
      liveHeapBytes: live.bytes,
      usedHeapBytes: getHeapStatistics().used_heap_size,
      anonymousBytes: anonymousPages() * page,
    }))
    this.governor.onFault = (table, error) =>
      repeated('error', table, 'a table failed to free memory; please report this', { table, error })
    this.#ticks = every(lookMs, () => this.#look())
  }

  /** What is done about a shortage, for users; undefined if there is none. */
  get shortage(): string | undefined {
    const { pressure } = this.governor
    return pressure === 0 ? undefined : `low memory: ${effects[pressure]}`
  }

  get state(): MemoryState {
    const { governor } = this
    const { reading } = governor
    const tables = governor.tables()
    return {
      limit: this.limitBytes,
      resident: process.memoryUsage.rss(),
      anonymous: reading.anonymousBytes,
      heap: { live: reading.liveHeapBytes, used: reading.usedHeapBytes, limit: this.#heapLimit },
      pressure: governor.pressure,
      shortages: governor.shortages,
      tables: {
        used: governor.bytes,
        limit: governor.bounds.tablesBytes,
        largest: tables.sort((a, b) => b.bytes - a.bytes),
      },
    }
  }

  stop(): void {
    this.#ticks.stop()
  }

  /** Returns memory to the host after a burst. */
  #giveBack(): void {
    const { user, system } = process.cpuUsage()
    const { anonymousBytes } = this.governor.reading
    const nowMs = performance.now()
    const busyMs = (user + system) / 1000 + waitedMs()
    const due = this.#rest.due({ nowMs, busyMs, anonymousBytes })
    if (due === undefined) return
    giveBackMemory(due === 'quiet')
    this.#rest.done({ nowMs, anonymousBytes: anonymousPages() * pageSizeBytes() })
  }

  #look(): void {
    this.governor.look()
    this.#giveBack()
    const { pressure } = this.governor
    const now = performance.now()
    if (pressure > this.#saidPressure && now - this.#said > sayMs) {
      const { largest } = this.state.tables
      this.#said = now
      this.#saidPressure = pressure
      this.#log.warn(this.shortage!, {
        limit_bytes: this.limitBytes,
        live_heap_bytes: this.governor.reading.liveHeapBytes,
        anonymous_bytes: this.governor.reading.anonymousBytes,
        largest: largest.slice(0, mostNamed).map(({ name, bytes }) => `${name} ${bytes}`),
        hint: 'raise limits.memory; svc status shows the largest tables',
      })
    } else if (pressure === 0 && this.#saidPressure > 0) {
      this.#saidPressure = 0
      this.#log.info('memory is sufficient again')
    }
  }
}

/** Time that the main thread was runnable without a CPU, since its start, in milliseconds; 0 without /proc. */
function waitedMs(): number {
  try {
    return Number(readFileSync('/proc/self/schedstat', 'latin1').split(' ')[1]) / 1e6 || 0
  } catch {
    return 0
  }
}

/** Anonymous pages of this process; 0 without /proc. */
function anonymousPages(): number {
  try {
    const [, resident, shared] = readFileSync('/proc/self/statm', 'latin1').split(' ')
    return Number(resident) - Number(shared)
  } catch {
    return 0
  }
}
