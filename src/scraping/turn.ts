/** Lets other work have its turn now and then. */
export class Turn {
  readonly #mostMs: number
  #sinceMs = performance.now()

  constructor(mostMs = 4) {
    this.#mostMs = mostMs
  }

  /** True: this turn has taken long enough; `next` begins another one. */
  get isOver(): boolean {
    return performance.now() - this.#sinceMs >= this.#mostMs
  }

  async next(): Promise<void> {
    await new Promise(resolve => setImmediate(resolve))
    this.#sinceMs = performance.now()
  }
}
