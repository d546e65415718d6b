/** Counts running tasks, so that a close can wait for them. */
export class RunningTasks {
  #running = 0
  #idle: (() => void)[] = []

  /** Runs a task, counting it until it settles. */
  async run<T>(task: () => Promise<T>): Promise<T> {
    this.#running++
    try {
      return await task()
    } finally {
      this.#running--
      if (this.#running === 0) for (const resolve of this.#idle.splice(0)) resolve()
    }
  }

  /** Resolves when no task is running. */
  async idle(): Promise<void> {
    if (this.#running > 0) await new Promise<void>(resolve => this.#idle.push(resolve))
  }
}
