/** Lets other work have its turn now and then. */
export class Turn {
  readonly #mostMs: number
  readonly #stop: AbortSignal | undefined
  #sinceMs = performance.now()

  /** With `stop` the work ends at the next turn once that is raised: `next` rejects. */
  constructor(mostMs = 4, stop?: AbortSignal) {
    this.#mostMs = mostMs
    this.#stop = stop
  }

  /** True: this turn has taken long enough; `next` begins another one. */
  get isOver(): boolean {
    return performance.now() - this.#sinceMs >= this.#mostMs
  }

  async next(): Promise<void> {
    await new Promise(resolve => setImmediate(resolve))
    this.#stop?.throwIfAborted()
    this.#sinceMs = performance.now()
  }
}
