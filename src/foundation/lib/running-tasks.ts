/** Counts what runs, so that whoever closes can wait for it. */
export class RunningTasks {
  #running = 0
  #idle: (() => void)[] = []

  /** Runs it and counts it as long as it does. */
  async run<T>(task: () => Promise<T>): Promise<T> {
    this.#running++
    try {
      return await task()
    } finally {
      this.#running--
      if (this.#running === 0) for (const resolve of this.#idle.splice(0)) resolve()
    }
  }

  /** Resolves when nothing runs. */
  async idle(): Promise<void> {
    if (this.#running > 0) await new Promise<void>(resolve => this.#idle.push(resolve))
  }
}
