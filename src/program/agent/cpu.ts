// The agent's CPU: its limit, and what is reduced above it.

import { availableParallelism } from 'node:os'
import { CpuGovernor, type ReducedPart } from '../../foundation/lib/cpu-governor.ts'
import type { Logger } from '../../foundation/lib/logger.ts'
import { OwnCpu } from '../../foundation/lib/own-cpu.ts'
import { every, type Ticks } from '../../foundation/lib/shared-ticks.ts'

const lookMs = 1_000
/** Grace period after the start, whose work is temporary. */
const graceMs = 10_000
const autoPart = 0.05
const leastAuto = 0.5
const hint = 'raise limits.cpu; svc status shows the reduced parts'

/** For documents. */
export interface CpuState {
  readonly limit_cores: number
  /** Over the last ten seconds, of all threads and of child processes. */
  readonly used_cores: number
  /** Steps down since the start. */
  readonly reductions: number
  readonly reduced: readonly ReducedPart[]
}

/** The limit in cores, from `limits.cpu`. */
function agentCores(setting: number | 'auto', available = availableParallelism()): number {
  return setting === 'auto' ? Math.max(leastAuto, available * autoPart) : setting
}

export interface CpuTimes {
  /** Interval of measuring. */
  readonly lookMs?: number
  /** Delay of the first measurement. */
  readonly graceMs?: number
}

/** The governor with a timer. */
export class Cpu {
  readonly governor: CpuGovernor
  readonly #log: Pick<Logger, 'warn' | 'info'>
  readonly #own = new OwnCpu()
  readonly #ticks: Ticks
  readonly #graceMs: number
  #beginMs = Number.POSITIVE_INFINITY
  #seenMs = 0
  #seenAtMs = 0
  /** Over about ten seconds; at first since the start of the process. */
  #usedCores = this.#own.look() / 1000 / process.uptime()

  constructor(setting: number | 'auto', log: Pick<Logger, 'warn' | 'info'>, times: CpuTimes = {}) {
    this.#log = log
    this.governor = new CpuGovernor(agentCores(setting))
    this.#graceMs = times.graceMs ?? graceMs
    this.#ticks = every(times.lookMs ?? lookMs, () => this.#look())
  }

  /** What is reduced, for users; undefined if nothing is. */
  get shortage(): string | undefined {
    const { lowered, limitCores } = this.governor
    if (lowered.length === 0) return undefined
    return `CPU usage of svc over limits.cpu (${limitCores} cores): ${lowered.map(({ effect }) => effect).join('; ')}`
  }

  get state(): CpuState {
    const { limitCores, changes, lowered } = this.governor
    return {
      limit_cores: limitCores,
      used_cores: Math.round(this.#usedCores * 1000) / 1000,
      reductions: changes,
      reduced: lowered,
    }
  }

  /** The start has finished. */
  started(): void {
    this.#beginMs = performance.now() + this.#graceMs
  }

  stop(): void {
    this.#ticks.stop()
  }

  #look(): void {
    const nowMs = performance.now()
    const cpuMs = this.#own.look()
    const used = (cpuMs - this.#seenMs) / (nowMs - this.#seenAtMs)
    const isFirst = this.#seenAtMs === 0
    this.#seenMs = cpuMs
    this.#seenAtMs = nowMs
    if (isFirst) return
    this.#usedCores += (used - this.#usedCores) / 10
    if (nowMs < this.#beginMs) return
    const change = this.governor.look(used)
    if (change === undefined) return
    const { name, lowered, effect } = change
    const fields = { part: name, limit_cores: this.governor.limitCores, used_cores: this.state.used_cores }
    if (lowered) this.#log.warn(`CPU usage of svc over limits.cpu: ${effect}`, { ...fields, hint })
    else this.#log.info(effect === '' ? `${name}: back to full detail` : `${name}: ${effect}`, fields)
  }
}
