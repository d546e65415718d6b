import type { Operation } from '../model/stream.ts'

/** Slots that a table keeps when nothing is in flight: a connection may have thousands of channels. */
const kept = 256
/** Slots that the first request gets. */
const least = 4
const noNumbers = new Float64Array(0)

/** Bytes of the tables of a connection. */
export class Tally {
  bytes = 0
}

/**
 * The requests of a connection that have no answer yet, from the oldest to the newest. Here the answers come in the order
 * of the requests. A ring that grows up to its bound, so that it allocates nothing once it has grown.
 */
export class RequestsInFlight<T = Operation> {
  size = 0
  protected slots: (T | undefined)[] = []
  protected readonly most: number
  protected readonly tally: Tally
  #head = 0

  /** `most`: further requests find no room. Tables that share a `tally` are counted together. */
  constructor(most: number, tally: Tally = new Tally()) {
    this.most = most
    this.tally = tally
  }

  /** Bytes of all tables that share the tally. */
  get bytes(): number {
    return this.tally.bytes
  }

  /** The oldest one; undefined also for a request that there was no operation for. */
  get first(): T | undefined {
    return this.size === 0 ? undefined : this.slots[this.#head]
  }

  /** The one with `index` others before it. */
  at(index: number): T | undefined {
    return this.slots[this.slotOf(index)]
  }

  /** False: there is no room. */
  push(request: T | undefined): boolean {
    if (this.size === this.most) return false
    if (this.size === this.slots.length) this.resize(Math.max(least, 2 * this.size))
    this.slots[this.slotOf(this.size++)] = request
    return true
  }

  /** Takes out the oldest one. */
  shift(): T | undefined {
    if (this.size === 0) return undefined
    const head = this.#head
    const request = this.slots[head]
    this.vacate(head)
    this.#head = (head + 1) & (this.slots.length - 1)
    this.size--
    this.#rest()
    return request
  }

  /** Takes out one from among the others: those on its shorter side move up. */
  remove(index: number): T | undefined {
    const request = this.at(index)
    if (index < this.size / 2) {
      for (let i = index; i > 0; i--) this.move(this.slotOf(i - 1), this.slotOf(i))
      this.shift()
      return request
    }
    const last = this.size - 1
    for (let i = index; i < last; i++) this.move(this.slotOf(i + 1), this.slotOf(i))
    this.vacate(this.slotOf(last))
    this.size--
    this.#rest()
    return request
  }

  /** Takes out all of them, the oldest first. */
  drain(take: (request: T) => void): void {
    while (this.size > 0) {
      const request = this.shift()
      if (request !== undefined) take(request)
    }
  }

  /** Gives back the memory of the slots. There is nothing in flight any more. */
  clear(): void {
    this.size = 0
    this.resize(0)
  }

  protected slotOf(index: number): number {
    return (this.#head + index) & (this.slots.length - 1)
  }

  protected move(from: number, to: number): void {
    this.slots[to] = this.slots[from]
  }

  protected vacate(slot: number): void {
    this.slots[slot] = undefined
  }

  /** `length`: 0 or a power of two. */
  protected resize(length: number): void {
    const slots = new Array<T | undefined>(length).fill(undefined)
    for (let i = 0; i < this.size; i++) slots[i] = this.at(i)
    this.tally.bytes += (length - this.slots.length) * 8
    this.slots = slots
    this.#head = 0
  }

  #rest(): void {
    if (this.size === 0 && this.slots.length > kept) this.resize(0)
  }
}

/** Requests whose answers name them by a number, in whatever order they come. */
export class NumberedRequests<T = Operation> extends RequestsInFlight<T> {
  #numbers = noNumbers

  /** False: there is no room. */
  add(number: number, request: T): boolean {
    if (!this.push(request)) return false
    this.#numbers[this.slotOf(this.size - 1)] = number
    return true
  }

  numberAt(index: number): number {
    return this.#numbers[this.slotOf(index)]!
  }

  /** Index of the oldest request of that number, not before `from`; -1: there is none. */
  indexOf(number: number, from = 0): number {
    for (let i = from; i < this.size; i++) if (this.numberAt(i) === number) return i
    return -1
  }

  has(number: number): boolean {
    return this.indexOf(number) >= 0
  }

  get(number: number): T | undefined {
    const index = this.indexOf(number)
    return index < 0 ? undefined : this.at(index)
  }

  take(number: number): T | undefined {
    const index = this.indexOf(number)
    return index < 0 ? undefined : this.remove(index)
  }

  protected override move(from: number, to: number): void {
    this.#numbers[to] = this.#numbers[from]!
    super.move(from, to)
  }

  protected override resize(length: number): void {
    const numbers = new Float64Array(length)
    for (let i = 0; i < this.size; i++) numbers[i] = this.numberAt(i)
    this.tally.bytes += (length - this.#numbers.length) * 8
    this.#numbers = numbers
    super.resize(length)
  }
}

/** Requests whose numbers rise, so that there may be many. They are answered one by one, or all up to a number. */
export class RisingRequests<T = Operation> extends NumberedRequests<T> {
  /** Takes out one that has to make room for that of `number`. To be called until there is none. */
  crowdedOut(number: number): T | undefined {
    return this.takeUpTo(number - this.most)
  }

  /** False where there is no room, or where the number is no later one than all before. */
  override add(number: number, request: T): boolean {
    if (this.size > 0 && number <= this.numberAt(this.size - 1)) return false
    return super.add(number, request)
  }

  /** Takes out the oldest of those whose number is not above `number`. */
  takeUpTo(number: number): T | undefined {
    return this.size > 0 && this.numberAt(0) <= number ? this.shift() : undefined
  }

  override indexOf(number: number): number {
    let low = 0
    for (let high = this.size; low < high; ) {
      const middle = (low + high) >>> 1
      if (this.numberAt(middle) < number) low = middle + 1
      else high = middle
    }
    return low < this.size && this.numberAt(low) === number ? low : -1
  }
}
