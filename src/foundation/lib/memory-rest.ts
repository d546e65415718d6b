const Mi = 1024 * 1024
/** Growth of anonymous memory since the last collection, in bytes, above which another one is worth its time. */
const grownBytes = 16 * Mi
/** Interval between two checks of CPU usage, in milliseconds. */
const quietMs = 5000
/** Part of a CPU below which the process counts as idle. */
const quietPart = 0.2
/** Minimum interval between collections, in milliseconds. */
const restMs = 20_000
/** The same while busy. */
const busyRestMs = 60_000
/**
 * Freed bytes that justify another collection: tables release the remains of a burst within a minute or two, not at
 * once.
 */
const worthBytes = 8 * Mi
/** Maximum collections that freed too little, each after twice the previous interval, until memory grows again. */
const mostInVain = 3

/** Measurements at one time, cumulative since a fixed moment. */
export interface MemoryMoment {
  readonly nowMs: number
  /** CPU time plus the time spent waiting for a CPU. */
  readonly busyMs: number
  readonly anonymousBytes: number
}

/**
 * Decides when to release memory after a burst. V8 collects when it allocates: without new data, the remains of a burst
 * stay for the life of the process. A collection blocks the loop for 10 to 100 ms, so it is requested only after
 * considerable growth, at a time of low activity.
 */
export class MemoryRest {
  #lowestBytes = Number.POSITIVE_INFINITY
  #restedMs: number | undefined
  #lookedMs = Number.NEGATIVE_INFINITY
  #lookedBusyMs = 0
  #isQuiet = false
  #beforeBytes = 0
  /** Collections since the last growth that freed too little; the start counts as growth. */
  #inVain = 0

  /** Whether to collect now, when idle or when busy; undefined: not now. */
  due({ nowMs, busyMs, anonymousBytes }: MemoryMoment): 'quiet' | 'busy' | undefined {
    this.#lowestBytes = Math.min(this.#lowestBytes, anonymousBytes)
    const sinceLook = nowMs - this.#lookedMs
    if (sinceLook >= quietMs) {
      // The first look is of no period.
      this.#isQuiet =
        sinceLook < Number.POSITIVE_INFINITY && (busyMs - this.#lookedBusyMs) / sinceLook < quietPart
      this.#lookedMs = nowMs
      this.#lookedBusyMs = busyMs
    }
    this.#beforeBytes = anonymousBytes
    // The first time is as soon as there is little to do.
    this.#restedMs ??= nowMs - restMs
    const sinceRest = nowMs - this.#restedMs
    const isGrown = anonymousBytes - this.#lowestBytes >= grownBytes
    if (!this.#isQuiet) return isGrown && sinceRest >= busyRestMs ? 'busy' : undefined
    const isWorth = isGrown || (this.#inVain < mostInVain && sinceRest >= restMs * 2 ** this.#inVain)
    return isWorth && sinceRest >= restMs ? 'quiet' : undefined
  }

  /** Reports a collection, and the memory after it. */
  done({ nowMs, anonymousBytes }: Omit<MemoryMoment, 'busyMs'>): void {
    const grown = this.#beforeBytes - this.#lowestBytes >= grownBytes
    const gave = this.#beforeBytes - anonymousBytes
    this.#inVain = grown || gave >= worthBytes ? 0 : this.#inVain + 1
    this.#restedMs = nowMs
    this.#lowestBytes = anonymousBytes
  }
}
