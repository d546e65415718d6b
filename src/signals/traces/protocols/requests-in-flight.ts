import type { Operation } from '../../../foundation/model/stream.ts'

/** A table does not shrink below this many slots, so that a short pipeline does not allocate repeatedly. */
const kept = 64
/** Slots for the first request. */
const least = 4

/** Bytes of the tables of a connection. */
export class Tally {
  bytes = 0
}

/**
 * The unanswered requests of a connection whose responses come in order. A ring that grows up to its limit, and shrinks
 * with its contents.
 */
export class RequestsInFlight<T = Operation> {
  size = 0
  protected slots: (T | undefined)[] = []
  protected readonly tally: Tally
  readonly #most: number
  #head = 0

  /** `most`: maximum number of requests. Tables that share a `tally` are counted together. */
  constructor(most: number, tally: Tally = new Tally()) {
    this.#most = most
    this.tally = tally
  }

  /** Bytes of all tables that share the tally. */
  get bytes(): number {
    return this.tally.bytes
  }

  /** The oldest request; also undefined if it has no operation. */
  get first(): T | undefined {
    return this.size === 0 ? undefined : this.slots[this.#head]
  }

  /** False if there is no room. */
  push(request: T | undefined): boolean {
    if (this.size === this.#most) return false
    if (this.size === this.slots.length) this.resize(Math.max(least, 2 * this.size))
    this.slots[this.slotOf(this.size++)] = request
    return true
  }

  /** Removes the oldest one. */
  shift(): T | undefined {
    if (this.size === 0) return undefined
    const head = this.#head
    const request = this.slots[head]
    this.vacate(head)
    this.#head = (head + 1) & (this.slots.length - 1)
    this.size--
    const { length } = this.slots
    if (length > kept && this.size < length / 4) this.resize(length / 2)
    return request
  }

  /** Removes all of them, the oldest first. */
  drain(take: (request: T) => void): void {
    while (this.size > 0) {
      const request = this.shift()
      if (request !== undefined) take(request)
    }
  }

  /** Frees the slots. There is nothing in flight any more. */
  clear(): void {
    this.size = 0
    this.resize(0)
  }

  protected slotOf(index: number): number {
    return (this.#head + index) & (this.slots.length - 1)
  }

  protected vacate(slot: number): void {
    this.slots[slot] = undefined
  }

  /** `length`: 0 or a power of two. */
  protected resize(length: number): void {
    const slots = new Array<T | undefined>(length).fill(undefined)
    for (let i = 0; i < this.size; i++) slots[i] = this.slots[this.slotOf(i)]
    this.tally.bytes += (length - this.slots.length) * 8
    this.slots = slots
    this.#head = 0
  }
}

/** A request that a table finds by its number, with the links of the table. */
export interface Numbered<T> {
  id: number
  /** The requests before and after it. */
  older: T | undefined
  newer: T | undefined
  /** The next one in its slot of the table, as a circle; undefined if it is in no table. */
  chain: T | undefined
}

/** Random per process, so that a peer that chooses the numbers cannot choose the slot. */
const seed = Math.floor(Math.random() * 2 ** 32)

/**
 * The requests of a connection whose responses have the number of their request, from the oldest to the newest. Each is
 * found, added and removed in constant time. Numbers may repeat. While a request is in this table, it is in no other.
 */
export class NumberedRequests<T extends Numbered<T> = Operation> {
  size = 0
  protected readonly most: number
  oldest: T | undefined = undefined
  newest: T | undefined = undefined
  /** The newest request of each slot, whose `chain` is the oldest. */
  #places: (T | undefined)[] = []
  readonly #tally: Tally

  /** As for `RequestsInFlight`. */
  constructor(most: number, tally: Tally = new Tally()) {
    this.most = most
    this.#tally = tally
  }

  get bytes(): number {
    return this.#tally.bytes
  }

  get isFull(): boolean {
    return this.size === this.most
  }

  /** False if there is no room. */
  add(number: number, request: T): boolean {
    if (this.isFull) return false
    if (this.size === this.#places.length) this.#resize(Math.max(least, 2 * this.size))
    request.id = number
    request.older = this.newest
    if (this.newest === undefined) this.oldest = request
    else this.newest.newer = request
    this.newest = request
    this.#chain(request)
    this.size++
    return true
  }

  has(number: number): boolean {
    return this.get(number) !== undefined
  }

  /** The oldest one with that number. */
  get(number: number): T | undefined {
    const last = this.size === 0 ? undefined : this.#places[this.#placeOf(number)]
    return last === undefined ? undefined : behind(last, last, number)
  }

  /** The next one with its number. */
  next(request: T): T | undefined {
    const last = this.#places[this.#placeOf(request.id)]!
    return request === last ? undefined : behind(request, last, request.id)
  }

  take(number: number): T | undefined {
    const request = this.get(number)
    if (request !== undefined) this.remove(request)
    return request
  }

  /** Removes the oldest one. */
  shift(): T | undefined {
    const { oldest } = this
    if (oldest !== undefined) this.remove(oldest)
    return oldest
  }

  /** Removes one that is in the table. */
  remove(request: T): void {
    const { older, newer } = request
    if (older === undefined) this.oldest = newer
    else older.newer = newer
    if (newer === undefined) this.newest = older
    else newer.older = older
    request.older = undefined
    request.newer = undefined
    this.#unchain(request)
    this.size--
    const { length } = this.#places
    if (length > kept && this.size < length / 4) this.#resize(length / 2)
  }

  /** Removes all of them, the oldest first. */
  drain(take: (request: T) => void): void {
    for (let request = this.shift(); request !== undefined; request = this.shift()) take(request)
  }

  /** Frees the slots. There is nothing in flight any more. */
  clear(): void {
    this.#resize(0)
  }

  #placeOf(number: number): number {
    const hash = Math.imul(number ^ seed, 0x9e3779b1)
    return Math.imul(hash ^ (hash >>> 15), 0x85ebca6b) >>> (Math.clz32(this.#places.length) + 1)
  }

  #chain(request: T): void {
    const place = this.#placeOf(request.id)
    const last = this.#places[place]
    request.chain = last === undefined ? request : last.chain
    if (last !== undefined) last.chain = request
    this.#places[place] = request
  }

  #unchain(request: T): void {
    const place = this.#placeOf(request.id)
    const last = this.#places[place]!
    let before = last
    while (before.chain !== request) before = before.chain!
    if (before === request) this.#places[place] = undefined
    else if (request === last) this.#places[place] = before
    before.chain = request.chain
    request.chain = undefined
  }

  /** `length`: 0 or a power of two. */
  #resize(length: number): void {
    this.#tally.bytes += (length - this.#places.length) * 8
    this.#places = new Array<T | undefined>(length).fill(undefined)
    for (let request = this.oldest; request !== undefined; request = request.newer) this.#chain(request)
  }
}

/** The first one with that number after `request` in its circle, and not after `last`. */
function behind<T extends Numbered<T>>(request: T, last: T, number: number): T | undefined {
  let each = request.chain!
  while (each.id !== number && each !== last) each = each.chain!
  return each.id === number ? each : undefined
}

/** Requests with ascending numbers. They are answered one by one, or all up to a number. */
export class RisingRequests<T extends Numbered<T> = Operation> extends NumberedRequests<T> {
  /** Removes one that has to make room for `number`. Call it until it returns undefined. */
  crowdedOut(number: number): T | undefined {
    return this.takeUpTo(number - this.most)
  }

  /** False if there is no room, or the number is not above all earlier ones. */
  override add(number: number, request: T): boolean {
    if (this.newest !== undefined && number <= this.newest.id) return false
    return super.add(number, request)
  }

  /** Removes the oldest request whose number is not above `number`. */
  takeUpTo(number: number): T | undefined {
    return this.oldest !== undefined && this.oldest.id <= number ? this.shift() : undefined
  }
}
