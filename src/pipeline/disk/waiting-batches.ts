import type { Entry } from '../batch-queue.ts'

/** Waiting batches, ordered by number. Removal near the front and insertion at the end are cheap. */
export class WaitingBatches<E extends Entry> {
  /** Entries from `#head` on; the slots before are empty, so that no body is retained. */
  #entries: (E | undefined)[] = []
  #head = 0

  get length(): number {
    return this.#entries.length - this.#head
  }

  /** Entry by index from the front; undefined after the end. */
  at(index: number): E | undefined {
    return this.#entries[this.#head + index]
  }

  get last(): E | undefined {
    return this.length > 0 ? this.#entries.at(-1) : undefined
  }

  *[Symbol.iterator](): Generator<E> {
    for (let at = this.#head; at < this.#entries.length; at++) yield this.#entries[at]!
  }

  push(entry: E): void {
    this.#entries.push(entry)
  }

  /** Inserts an entry by its number. */
  insert(entry: E): void {
    let at = this.#entries.length
    while (at > this.#head && this.#entries[at - 1]!.number > entry.number) at--
    if (at === this.#head && at > 0) this.#entries[--this.#head] = entry
    else this.#entries.splice(at, 0, entry)
  }

  pop(): E | undefined {
    return this.length > 0 ? this.#entries.pop() : undefined
  }

  /** Removes the entry at a valid index. */
  remove(index: number): E {
    const at = this.#head + index
    const entry = this.#entries[at]!
    // Only the few entries before it move.
    this.#entries.copyWithin(this.#head + 1, this.#head, at)
    this.#entries[this.#head++] = undefined
    // Array.shift would move the rest each time; the array is cut when half of it is empty.
    if (this.#head * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#head)
      this.#head = 0
    }
    return entry
  }

  /** Removes the entry with a number. */
  removeNumber(number: number): E | undefined {
    for (let i = 0; i < this.length; i++) {
      const entry = this.at(i)!
      if (entry.number === number) return this.remove(i)
      if (entry.number > number) return undefined
    }
    return undefined
  }

  /** Removes all entries that match. */
  removeWhere(matches: (entry: E) => boolean): E[] {
    const removed: E[] = []
    const kept: E[] = []
    for (const entry of this.drain()) (matches(entry) ? removed : kept).push(entry)
    this.#entries = kept
    return removed
  }

  /** Removes all entries. */
  drain(): E[] {
    const entries = this.#entries.slice(this.#head)
    this.#entries = []
    this.#head = 0
    return entries as E[]
  }
}
