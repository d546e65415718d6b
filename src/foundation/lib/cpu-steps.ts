/** A setting with values in steps of decreasing cost: the first one is the configured value. */
export class CpuSteps<T> {
  readonly #values: readonly T[]
  readonly #changed: (value: T) => void
  #step = 0

  /** `changed` is called with the value after each step. */
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

  /** False: already at the minimum. */
  lower(): boolean {
    return this.#go(this.#step + 1)
  }

  /** False: already as configured. */
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
