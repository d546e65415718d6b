const quietMs = 10 * 60_000
const rememberedReasons = 64

/** The current faults of a source, by subject. */
export class KnownFaults<Fault extends { readonly reason: string }> {
  readonly #faults = new Map<string, Fault>()
  /** When a reason was met last. */
  readonly #lastAtMs = new Map<string, number>()

  /** Sets the fault of a subject; undefined clears it. True if its reason was away for 10 minutes: it is worth a warning. */
  set(subject: string, fault: Fault | undefined): fault is Fault {
    if (fault === undefined) {
      this.#faults.delete(subject)
      return false
    }
    this.#faults.set(subject, fault)
    const now = performance.now()
    const isKnown = now - (this.#lastAtMs.get(fault.reason) ?? Number.NEGATIVE_INFINITY) < quietMs
    if (this.#lastAtMs.size >= rememberedReasons) this.#lastAtMs.clear()
    this.#lastAtMs.set(fault.reason, now)
    return !isKnown
  }

  [Symbol.iterator](): MapIterator<[subject: string, fault: Fault]> {
    return this.#faults.entries()
  }
}
