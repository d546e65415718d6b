import type { Entry } from '../batch-queue.ts'

/** Batches that wait, in order of their numbers. Leaving near the front and coming at the end are cheap. */
export class Lineup<E extends Entry> {
  /** From `#head` on; the slots before it are empty, so that no body is kept by one that has left. */
  #entries: (E | undefined)[] = []
  #head = 0

  get length(): number {
    return this.#entries.length - this.#head
  }

  /** Counted from the front; undefined beyond the end. */
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

  /** Puts an entry in its place by its number. */
  insert(entry: E): void {
    let at = this.#entries.length
    while (at > this.#head && this.#entries[at - 1]!.number > entry.number) at--
    if (at === this.#head && at > 0) this.#entries[--this.#head] = entry
    else this.#entries.splice(at, 0, entry)
  }

  pop(): E | undefined {
    return this.length > 0 ? this.#entries.pop() : undefined
  }

  /** Takes out the entry at an index that exists. */
  remove(index: number): E {
    const at = this.#head + index
    const entry = this.#entries[at]!
    // Those before it move up by one: they are few, and all the others stay where they are.
    this.#entries.copyWithin(this.#head + 1, this.#head, at)
    this.#entries[this.#head++] = undefined
    // Array.shift would move all the rest each time; so the array is cut when half of it is empty.
    if (this.#head * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#head)
      this.#head = 0
    }
    return entry
  }

  /** Takes out the entry with a number. */
  removeNumber(number: number): E | undefined {
    for (let i = 0; i < this.length; i++) {
      const entry = this.at(i)!
      if (entry.number === number) return this.remove(i)
      if (entry.number > number) return undefined
    }
    return undefined
  }

  /** Takes out all for which that holds. */
  removeWhere(holds: (entry: E) => boolean): E[] {
    const removed: E[] = []
    const kept: E[] = []
    for (const entry of this.drain()) (holds(entry) ? removed : kept).push(entry)
    this.#entries = kept
    return removed
  }

  /** Takes out all. */
  drain(): E[] {
    const entries = this.#entries.slice(this.#head)
    this.#entries = []
    this.#head = 0
    return entries as E[]
  }
}
