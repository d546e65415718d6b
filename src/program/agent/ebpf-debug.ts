// What `agent.ebpf.debug` adds to the log: the verifier's output for rejected programs, the run count and time of each
// program, and the debug lines of the eBPF parts.

import type { Config } from '../../config/index.ts'
import { type Change, change } from '../../foundation/lib/change.ts'
import type { Logger } from '../../foundation/lib/logger.ts'
import { watchRefusals } from '../../kernel/load-refusals.ts'
import { loadedPrograms } from '../../kernel/loaded.ts'
import { loadNative, type StatsHandle, Unsupported } from '../../kernel/native.ts'

export interface EbpfDebugOptions {
  readonly config: Config
  readonly log: Logger
  readonly everyMs?: number
}

/** Run count and time of a program at the last reading. */
interface Seen {
  readonly runs: number
  readonly ns: number
}

/** Create it before anything is loaded, so that no rejection is missed. */
export class EbpfDebug {
  /** For the eBPF parts: writes debug lines while debug is on, at any log level. */
  readonly log: Logger
  readonly #log: Logger
  readonly #everyMs: number
  #on = false
  #stats: StatsHandle | undefined
  #unwatch: (() => void) | undefined
  #timer: NodeJS.Timeout | undefined
  #seen = new Map<number, Seen>()
  #seenMs = 0

  constructor({ config, log, everyMs = 60_000 }: EbpfDebugOptions) {
    this.#log = log
    this.#everyMs = everyMs
    this.log = {
      ...log,
      enabled: level => log.enabled(this.#on && level === 'debug' ? 'info' : level),
      debug: (message, fields) => (this.#on ? log.info(message, fields) : log.debug(message, fields)),
    }
    this.#configure(config)
  }

  /** Whether the kernel measures run counts and times. */
  get measures(): boolean {
    return this.#stats !== undefined
  }

  prepare(config: Config): Change {
    return change(() => {
      this.#configure(config)
      // The programs may have been measured before.
      if (this.measures) this.#look()
    })
  }

  stop(): void {
    this.#switch(false)
  }

  #configure({ mode, agent: { ebpf } }: Config): void {
    this.#switch(mode === 'agent' && ebpf.enabled && ebpf.debug)
  }

  #switch(on: boolean): void {
    if (on === this.#on) return
    this.#on = on
    if (!on) {
      this.#unwatch?.()
      clearInterval(this.#timer)
      if (this.#stats !== undefined) disable(this.#stats)
      this.#stats = undefined
      this.#seen.clear()
      return
    }
    this.#unwatch = watchRefusals((object, { program, reason }, said) =>
      this.#log.warn('the kernel rejected eBPF programs', { object, program, reason, log: ends(said) }),
    )
    this.#stats = enable(this.#log)
    if (this.#stats === undefined) return
    this.#log.info('measuring eBPF programs; each run costs two clock reads', {
      every_seconds: this.#everyMs / 1000,
    })
    this.#seenMs = performance.now()
    this.#timer = setInterval(() => this.#logCounts(), this.#everyMs).unref()
  }

  /** Reads the current run counts and times of all programs. */
  #look(programs = loadedPrograms()): Map<number, Seen> {
    const before = this.#seen
    this.#seen = new Map(
      programs.map(({ id, runCount, runTimeNs }) => [id, { runs: runCount, ns: runTimeNs }]),
    )
    this.#seenMs = performance.now()
    return before
  }

  /** Logs each program that ran since the last reading, most expensive first. */
  #logCounts(): void {
    const seconds = (performance.now() - this.#seenMs) / 1000
    const programs = loadedPrograms()
    const before = this.#look(programs)
    const ran = programs
      .map(program => {
        const { runs, ns } = before.get(program.id) ?? { runs: 0, ns: 0 }
        return { program, runs: program.runCount - runs, ns: program.runTimeNs - ns }
      })
      .filter(({ runs }) => runs > 0)
      .sort((a, b) => b.ns - a.ns)
    for (const { program, runs, ns } of ran)
      this.#log.info('eBPF program statistics', {
        program: program.name,
        type: program.type,
        runs,
        ns_per_run: Math.round(ns / runs),
        cpu_percent: Number((ns / 1e7 / seconds).toFixed(3)),
      })
  }
}

/** The two informative ends of a verifier log: the beginning of the program, and the error. */
export function ends(log: string): string {
  const most = 2048
  return log.length <= 2 * most ? log : `${log.slice(0, most)}\n[...]\n${log.slice(-most)}`
}

/** Undefined if the kernel cannot measure programs: before 5.8, or without CAP_SYS_ADMIN. */
function enable(log: Logger): StatsHandle | undefined {
  try {
    const native = loadNative()
    return native instanceof Unsupported ? undefined : native.statsEnable()
  } catch (error) {
    log.warn('eBPF program statistics are not available', { error })
    return undefined
  }
}

function disable(stats: StatsHandle): void {
  const native = loadNative()
  if (!(native instanceof Unsupported)) native.statsDisable(stats)
}
