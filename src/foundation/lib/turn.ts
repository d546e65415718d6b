/** Maximum counted time of a turn: beyond it another program may have had the CPU, or the machine was suspended. */
const mostCountedMs = 10

/** Splits long work into turns of the event loop, between which other work runs. */
export class Turn {
  readonly #mostMs: number
  readonly #stop: AbortSignal | undefined
  #sinceMs = performance.now()
  #workedMs = 0

  /** Raising `stop` ends the work at the next turn: `next` rejects. */
  constructor(mostMs = 4, stop?: AbortSignal) {
    this.#mostMs = mostMs
    this.#stop = stop
  }

  /** True: this turn has taken long enough; call `next`. */
  get isOver(): boolean {
    return performance.now() - this.#sinceMs >= this.#mostMs
  }

  /** Ends this turn, lets other work run, and begins another one. */
  async next(): Promise<void> {
    this.end()
    // Must not be unref'ed: it would wait until another event wakes the loop.
    await new Promise(resolve => setImmediate(resolve))
    this.#stop?.throwIfAborted()
    this.begin()
  }

  /** Calls `next` if this turn is over, otherwise returns undefined: await it after each step. */
  rest(): Promise<void> | undefined {
    return this.isOver ? this.next() : undefined
  }

  /** Begins a turn; the time since the last one does not count as work. */
  begin(): void {
    this.#sinceMs = performance.now()
  }

  /** Ends the turn. */
  end(): void {
    const nowMs = performance.now()
    this.#workedMs += Math.min(mostCountedMs, nowMs - this.#sinceMs)
    this.#sinceMs = nowMs
  }

  /** Approximate milliseconds of work in all turns so far. */
  get workedMs(): number {
    return this.#workedMs + Math.min(mostCountedMs, performance.now() - this.#sinceMs)
  }
}
