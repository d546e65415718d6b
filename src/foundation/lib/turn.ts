/** A turn counts as no more work: another program may have had the processor, or the machine stood still. */
const mostCountedMs = 10

/** Long work in turns of the event loop: other work runs between them. */
export class Turn {
  readonly #mostMs: number
  readonly #stop: AbortSignal | undefined
  #sinceMs = performance.now()
  #workedMs = 0

  /** With `stop` the work ends at the next turn once that is raised: `next` rejects. */
  constructor(mostMs = 4, stop?: AbortSignal) {
    this.#mostMs = mostMs
    this.#stop = stop
  }

  /** True: this turn has taken long enough; `next` begins another one. */
  get isOver(): boolean {
    return performance.now() - this.#sinceMs >= this.#mostMs
  }

  /** Ends this turn, lets other work run, and begins another one. */
  async next(): Promise<void> {
    this.end()
    // Not one that is unref'ed: it would wait for whatever wakes the event loop next.
    await new Promise(resolve => setImmediate(resolve))
    this.#stop?.throwIfAborted()
    this.begin()
  }

  /** `next` where this turn is over, else undefined: to await after each step. */
  rest(): Promise<void> | undefined {
    return this.isOver ? this.next() : undefined
  }

  /** A turn begins here; the time since the last one does not count as work. */
  begin(): void {
    this.#sinceMs = performance.now()
  }

  /** This turn ends here. */
  end(): void {
    const nowMs = performance.now()
    this.#workedMs += Math.min(mostCountedMs, nowMs - this.#sinceMs)
    this.#sinceMs = nowMs
  }

  /** Milliseconds of work in all turns so far, about. */
  get workedMs(): number {
    return this.#workedMs + Math.min(mostCountedMs, performance.now() - this.#sinceMs)
  }
}
