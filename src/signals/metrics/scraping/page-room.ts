/** A target whose data is kept between scrapes. */
export interface PageHolder {
  /** Releases memory that can be recreated. */
  shed(): void
}

/** Maximum part of the limit for one target: an endless page leaves room for the others. */
const targetPart = 1 / 2

/**
 * Accounts for the memory kept of all targets' pages, in bytes. Pages are foreign input: their names could otherwise
 * fill the memory. A scrape whose series exceed the limit fails with a reason.
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

  /**
   * Sets the memory that a target uses or is about to use. False if that exceeds the limit; the previous value then
   * remains.
   */
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

  /** Makes the largest holders release memory, until about `bytes` are freed. Returns how many. */
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
