import { setImmediate } from 'node:timers/promises'
import { every, type Ticks } from '../../foundation/lib/shared-ticks.ts'

/** Interval of drains, and of those of a quiet host. */
const everyMs = 100
const quietEveryMs = 1_000
/** Time without records after which a host is quiet. Longer than the time between two rings of the bell (bell.h). */
const quietAfterMs = 3_000
/** Delay of the drain for the first record: records that belong to it follow, and newer ones may not be due. */
const soonMs = 2
/** Maximum duration of a drain before the event loop continues. */
const turnMs = 5

/** What wakes the drain of a quiet host. */
export interface QuietWatch {
  /** A number that grows with each record worth a wake-up. */
  newest(): number
  /** Calls back for the first such record after a quiet time. */
  bell(rung: () => void): { close(): void }
}

/**
 * Drains a kernel buffer ten times per second, in several turns if more is pending than one turn can read. Its clock
 * stands still until then, so that nothing that waits for a late record expires. A quiet host is drained once per
 * second until the bell rings, if there is one.
 */
export class DrainTurns {
  /** Called when the host becomes quiet, and when it no longer is. */
  onPace: ((quiet: boolean) => void) | undefined
  readonly #batch: () => number
  readonly #ticks: Ticks
  readonly #watch: QuietWatch | undefined
  readonly #bell: { close(): void } | undefined
  #soon: NodeJS.Timeout | undefined
  #isQuiet = false
  #newest = 0
  /** When `#newest` last grew, or the bell rang: it rings again only two seconds after that. */
  #activeMs = performance.now()
  /** Offset in nanoseconds from `performance.now()` to the monotonic clock. */
  readonly #aheadNs = Number(process.hrtime.bigint()) - performance.now() * 1e6
  #again: NodeJS.Immediate | undefined
  #drainedMs = performance.now()
  /** Records up to this time were delivered. */
  #reachedMs = performance.now()
  #isBehind = false
  #isRunning = false
  #stopped = false
  #busyMs = 0

  /**
   * `batch` delivers the next records. It returns the time of the newest in nanoseconds of the monotonic clock, or 0 if
   * none are left. Without `watch` no host is quiet.
   */
  constructor(batch: () => number, watch?: QuietWatch) {
    this.#batch = batch
    this.#watch = watch
    // The first: it may throw, and then nothing must run.
    this.#bell = watch?.bell(() => this.#rung())
    this.#ticks = every(everyMs, () => this.#tick())
  }

  /** More is pending than the last turns could read. */
  get isBehind(): boolean {
    return this.#isBehind
  }

  /** Milliseconds spent on drains since the start. */
  get busyMs(): number {
    return this.#busyMs
  }

  /** Milliseconds since the last drain. */
  get sinceMs(): number {
    return performance.now() - this.#drainedMs
  }

  /**
   * Time up to which records were delivered, by `performance.now()`: the current time unless there is a backlog. Never
   * decreases.
   */
  get reachedMs(): number {
    if (!this.#isBehind) this.#reachedMs = Math.max(this.#reachedMs, performance.now())
    return this.#reachedMs
  }

  /** The same in nanoseconds of the monotonic clock. */
  get reachedNs(): number {
    return this.reachedMs * 1e6 + this.#aheadNs
  }

  /** Delivers pending records for `mostMs`; the rest follows automatically. */
  run(mostMs = turnMs): void {
    if (this.#stopped || this.#isRunning) return
    this.#isRunning = true
    const beganMs = performance.now()
    try {
      this.#run(mostMs)
    } finally {
      this.#isRunning = false
      this.#busyMs += performance.now() - beganMs
    }
  }

  #tick(): void {
    this.run()
    const watch = this.#watch
    if (watch === undefined) return
    const nowMs = performance.now()
    const newest = watch.newest()
    if (newest !== this.#newest) {
      this.#newest = newest
      this.#activeMs = nowMs
    }
    this.#pace(nowMs - this.#activeMs > quietAfterMs)
  }

  #rung(): void {
    this.#activeMs = performance.now()
    if (!this.#isQuiet || this.#stopped) return
    this.#pace(false)
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined
      this.run()
    }, soonMs)
  }

  #pace(quiet: boolean): void {
    if (quiet === this.#isQuiet) return
    this.#isQuiet = quiet
    this.#ticks.every(quiet ? quietEveryMs : everyMs)
    this.onPace?.(quiet)
  }

  #run(mostMs: number): void {
    const { reachedMs } = this // the value before this run
    this.#drainedMs = performance.now()
    const endMs = this.#drainedMs + mostMs
    this.#isBehind = true
    this.#reachedMs = reachedMs
    do {
      const newestNs = this.#batch()
      if (newestNs === 0) {
        this.#isBehind = false
        return
      }
      this.#reachedMs = Math.max(this.#reachedMs, (newestNs - this.#aheadNs) / 1e6)
    } while (performance.now() < endMs)
    this.#again ??= globalThis.setImmediate(() => {
      this.#again = undefined
      this.run()
    })
  }

  /** Resolves when the currently pending records are delivered, or after `mostMs`. */
  async settled(mostMs: number): Promise<void> {
    const nowMs = performance.now()
    this.run()
    while (!this.#stopped && this.reachedMs < nowMs && performance.now() < nowMs + mostMs)
      await setImmediate()
  }

  stop(): void {
    this.#stopped = true
    this.#isBehind = false
    this.#ticks.stop()
    this.#bell?.close()
    clearTimeout(this.#soon)
    if (this.#again !== undefined) clearImmediate(this.#again)
  }
}
