/** Passes reports to all listeners. Reporting allocates nothing. */
export class Hub<T> {
  readonly #listeners: ((report: T) => void)[] = []

  listen(listener: (report: T) => void): void {
    this.#listeners.push(listener)
  }

  report(report: T): void {
    for (let i = 0; i < this.#listeners.length; i++) this.#listeners[i]!(report)
  }
}
