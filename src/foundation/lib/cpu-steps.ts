/** A setting of a part that does less step by step: the first value is what the configuration says. */
export class CpuSteps<T> {
  readonly #values: readonly T[]
  readonly #changed: (value: T) => void
  #step = 0

  /** `changed` is told the value after each step. */
  constructor(values: readonly T[], changed: (value: T) => void = () => undefined) {
    this.#values = values
    this.#changed = changed
  }

  get value(): T {
    return this.#values[this.#step]!
  }

  get isLowered(): boolean {
    return this.#step > 0
  }

  /** False: it does the least already. */
  lower(): boolean {
    return this.#go(this.#step + 1)
  }

  /** False: it does all that the configuration says. */
  raise(): boolean {
    return this.#go(this.#step - 1)
  }

  #go(step: number): boolean {
    if (step < 0 || step >= this.#values.length) return false
    this.#step = step
    this.#changed(this.value)
    return true
  }
}
