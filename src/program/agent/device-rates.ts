import { mostApartMs } from './rate.ts'

/** Maximum number of devices; later ones are ignored. */
const mostDevices = 4096

interface Device {
  readonly isReal: boolean
  readonly mayCount: boolean
  first: number
  second: number
  round: number
}

/**
 * Two counters of many devices, as sums per second. Each device is tracked separately, so that adding or removing one
 * causes no jump.
 */
export class DeviceRates {
  /** Sums per second; `NaN` if unknown. */
  first = Number.NaN
  second = Number.NaN
  readonly #isReal: (name: string) => boolean
  readonly #mayCount: (name: string) => boolean
  readonly #devices = new Map<string, Device>()
  readonly #real = new Sums()
  readonly #possible = new Sums()
  #atMs = Number.NEGATIVE_INFINITY
  #passedMs = 0
  #round = 0

  /** Real devices count; if there are none, as in a container, all others do. */
  constructor(isReal: (name: string) => boolean, mayCount: (name: string) => boolean) {
    this.#isReal = isReal
    this.#mayCount = mayCount
  }

  begin(nowMs: number): void {
    this.#round++
    this.#passedMs = nowMs - this.#atMs
    this.#atMs = nowMs
    this.#real.clear()
    this.#possible.clear()
  }

  add(name: string, first: number, second: number): void {
    const device = this.#devices.get(name)
    if (device === undefined) {
      if (this.#devices.size >= mostDevices) return
      const isReal = this.#isReal(name)
      const mayCount = this.#mayCount(name)
      this.#devices.set(name, { isReal, mayCount, first, second, round: this.#round })
      // As soon as a real device exists, this one no longer counts.
      if (isReal) this.#real.there = true
      return
    }
    const sums = device.isReal ? this.#real : this.#possible
    if (device.isReal) this.#real.there = true
    if (device.isReal || device.mayCount) sums.add(first - device.first, second - device.second)
    device.first = first
    device.second = second
    device.round = this.#round
  }

  end(): void {
    for (const [name, { round }] of this.#devices) if (round < this.#round) this.#devices.delete(name)
    const { first, second } = this.#real.there ? this.#real : this.#possible
    const isKnown = this.#passedMs > 0 && this.#passedMs <= mostApartMs
    this.first = isKnown ? (1000 * first) / this.#passedMs : Number.NaN
    this.second = isKnown ? (1000 * second) / this.#passedMs : Number.NaN
  }
}

class Sums {
  there = false
  first = 0
  second = 0

  clear(): void {
    this.there = false
    this.first = 0
    this.second = 0
  }

  /** A counter that was reset adds nothing. */
  add(first: number, second: number): void {
    if (first > 0) this.first += first
    if (second > 0) this.second += second
  }
}
