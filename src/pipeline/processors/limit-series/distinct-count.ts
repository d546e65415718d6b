/** 2^10 registers: a standard error of 3.3 %. */
const registers = 1024
const indexBits = 10
const alpha = 0.7213 / (1 + 1.079 / registers)

/** Approximate number of distinct values, in one kilobyte (HyperLogLog: Flajolet and others, 2007). */
export class DistinctCount {
  readonly #longest = new Uint8Array(registers)

  /** Adds a value by its hash, in two halves of 32 bits. */
  add(low: number, high: number): void {
    const register = low >>> (32 - indexBits)
    const zeros = Math.clz32(high) + 1
    if (zeros > this.#longest[register]!) this.#longest[register] = zeros
  }

  get estimate(): number {
    let sum = 0
    let empty = 0
    for (const longest of this.#longest) {
      sum += 2 ** -longest
      if (longest === 0) empty++
    }
    const raw = (alpha * registers * registers) / sum
    // With few values, the number of empty registers is more precise.
    return raw <= 2.5 * registers && empty > 0 ? registers * Math.log(registers / empty) : raw
  }
}
