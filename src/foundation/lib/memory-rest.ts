const Mi = 1024 * 1024
/** Anonymous memory that came since the last collection, in bytes, above which another one is worth its time. */
const grownBytes = 16 * Mi
/** Between two looks at how busy the process is, in milliseconds. */
const quietMs = 5000
/** Part of a processor below which the process has little to do. */
const quietPart = 0.2
/** Between two collections, in milliseconds. */
const restMs = 20_000
/** The same while there is much to do. */
const busyRestMs = 60_000
/** What is worth another collection: tables let go of what a burst left within a minute or two, and not at once. */
const worthBytes = 4 * Mi
/** Collections that were not worth it, each after twice the time of the one before, until more is taken. */
const mostInVain = 3

/** What is measured at a time, all since some fixed moment. */
export interface MemoryMoment {
  readonly nowMs: number
  /** CPU time, and the time in which there was something to do and no CPU for it. */
  readonly busyMs: number
  readonly anonymousBytes: number
}

/**
 * Tells when to give memory back after a burst. V8 collects when it allocates: where nothing comes any more, what the
 * burst left stays for as long as the process lives. A collection stops the loop for 10 to 100 ms, so it is asked for
 * only where much was taken since the last one, at a time at which there is little to do.
 */
export class MemoryRest {
  #lowestBytes = Number.POSITIVE_INFINITY
  #restedMs: number | undefined
  #lookedMs = Number.NEGATIVE_INFINITY
  #lookedBusyMs = 0
  #isQuiet = false
  #beforeBytes = 0
  /** Collections since more was taken that gave little back. */
  #inVain = mostInVain

  /** Whether to collect now, and whether there is little to do or much; undefined: not now. */
  due({ nowMs, busyMs, anonymousBytes }: MemoryMoment): 'quiet' | 'busy' | undefined {
    this.#lowestBytes = Math.min(this.#lowestBytes, anonymousBytes)
    const sinceLook = nowMs - this.#lookedMs
    if (sinceLook >= quietMs) {
      this.#isQuiet = (busyMs - this.#lookedBusyMs) / sinceLook < quietPart
      this.#lookedMs = nowMs
      this.#lookedBusyMs = busyMs
    }
    this.#beforeBytes = anonymousBytes
    // What comes first is collected at once where there is little to do.
    this.#restedMs ??= nowMs - restMs
    const sinceRest = nowMs - this.#restedMs
    const isGrown = anonymousBytes - this.#lowestBytes >= grownBytes
    if (!this.#isQuiet) return isGrown && sinceRest >= busyRestMs ? 'busy' : undefined
    const isWorth = isGrown || (this.#inVain < mostInVain && sinceRest >= restMs * 2 ** this.#inVain)
    return isWorth && sinceRest >= restMs ? 'quiet' : undefined
  }

  /** It was done, and left so much. */
  done({ nowMs, anonymousBytes }: Omit<MemoryMoment, 'busyMs'>): void {
    const grown = this.#beforeBytes - this.#lowestBytes >= grownBytes
    const gave = this.#beforeBytes - anonymousBytes
    this.#inVain = grown || gave >= worthBytes ? 0 : this.#inVain + 1
    this.#restedMs = nowMs
    this.#lowestBytes = anonymousBytes
  }
}
