import { setImmediate } from 'node:timers/promises'

/** How often a buffer is drained. */
const everyMs = 100
/** How long a drain may take before the rest of the agent gets a turn. */
const turnMs = 5

/**
 * Drains a buffer of the kernel: ten times a second, and in turns while more waits than one turn takes. The clock that it
 * keeps stands still meanwhile, so that what waits for a record that is late is not given up.
 */
export class DrainTurns {
  readonly #batch: () => number
  readonly #timer: NodeJS.Timeout
  /** Nanoseconds that the monotonic clock is ahead of `performance.now()`. */
  readonly #aheadNs = Number(process.hrtime.bigint()) - performance.now() * 1e6
  #again: NodeJS.Immediate | undefined
  #drainedMs = performance.now()
  /** Everything until then was handed on. */
  #reachedMs = performance.now()
  #isBehind = false
  #isRunning = false
  #stopped = false
  #busyMs = 0

  /**
   * `batch` hands on the next records. It returns the time of the newest in nanoseconds of the monotonic clock, or 0 where
   * nothing is left.
   */
  constructor(batch: () => number) {
    this.#batch = batch
    this.#timer = setInterval(() => this.run(), everyMs)
  }

  /** More waits than the last turns took. */
  get isBehind(): boolean {
    return this.#isBehind
  }

  /** Milliseconds that drains took since the start. */
  get busyMs(): number {
    return this.#busyMs
  }

  /** Milliseconds since the last drain. */
  get sinceMs(): number {
    return performance.now() - this.#drainedMs
  }

  /** Until when everything was handed on, by `performance.now()`: now, but for a time of much to do. Never goes back. */
  get reachedMs(): number {
    if (!this.#isBehind) this.#reachedMs = Math.max(this.#reachedMs, performance.now())
    return this.#reachedMs
  }

  /** The same in nanoseconds of the monotonic clock. */
  get reachedNs(): number {
    return this.reachedMs * 1e6 + this.#aheadNs
  }

  /** Hands on what waits, for `mostMs`; what is left follows by itself. */
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

  #run(mostMs: number): void {
    const { reachedMs } = this // of before what comes now
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

  /** Resolves when what waits now has been handed on, or after `mostMs`. */
  async settled(mostMs: number): Promise<void> {
    const nowMs = performance.now()
    this.run()
    while (!this.#stopped && this.reachedMs < nowMs && performance.now() < nowMs + mostMs)
      await setImmediate()
  }

  stop(): void {
    this.#stopped = true
    this.#isBehind = false
    clearInterval(this.#timer)
    if (this.#again !== undefined) clearImmediate(this.#again)
  }
}
