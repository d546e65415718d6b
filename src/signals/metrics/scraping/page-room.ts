/** A target of which something is kept between its scrapes. */
export interface PageHolder {
  /** Lets go of what can be made again. */
  shed(): void
}

/** Part of the whole that one target may hold: a page without end leaves room for the others. */
const targetPart = 1 / 2

/**
 * What is kept of the pages of all targets together, in bytes. Pages are foreign: whoever may be scraped could otherwise
 * fill the memory with names. A scrape whose series find no room fails, and says so.
 */
export class PageRoom {
  readonly limitBytes: number
  #bytes = 0
  readonly #held = new Map<PageHolder, number>()

  constructor(limitBytes = Number.POSITIVE_INFINITY) {
    this.limitBytes = limitBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Says that a target holds so much, or is about to. False: that is more than there is, and what it held before counts. */
  hold(holder: PageHolder, bytes: number): boolean {
    const before = this.#held.get(holder) ?? 0
    const after = this.#bytes - before + bytes
    if (bytes > before && (after > this.limitBytes || bytes > this.limitBytes * targetPart)) return false
    this.#held.set(holder, bytes)
    this.#bytes = after
    return true
  }

  leave(holder: PageHolder): void {
    this.#bytes -= this.#held.get(holder) ?? 0
    this.#held.delete(holder)
  }

  /** Has those that hold most give back what can be made again, until it is about so many bytes. */
  shed(bytes: number): number {
    const before = this.#bytes
    const largest = [...this.#held].sort(([, a], [, b]) => b - a)
    for (const [holder] of largest) {
      if (before - this.#bytes >= bytes) break
      holder.shed()
    }
    return before - this.#bytes
  }
}
