// Profiles of the last minutes, for queries.

import type { Frame, Profile, Sample } from '../../foundation/model/profile.ts'
import type { Resource } from '../../foundation/model/resource.ts'
import { type FlameColumns, flameColumns } from './flame-columns.ts'
import { rootNode, StackTrie } from './stack-trie.ts'

export interface ProfileWindowOptions {
  /** Total memory; at least 64 KiB is used. */
  readonly maxBytes: number
  readonly windowMs: number
  /** Milliseconds since the Unix epoch. */
  readonly now: () => number
}

/** Times are milliseconds since the Unix epoch. */
export interface ProfiledInterval {
  fromMs: number
  toMs: number
  value: number
}

/** Available data of a kind. Values are nanoseconds, or bytes for `memory`. */
export interface ProfileOverview {
  /** Of the requested service, oldest first. */
  readonly intervals: readonly ProfiledInterval[]
  /** Values of services over the whole window, largest first. */
  readonly services: readonly { readonly name: string; readonly value: number }[]
}

export interface FlameOptions {
  readonly kind: Profile['kind']
  /** '': all, each a node below the root. */
  readonly service: string
  /** An interval counts if its middle is in this range. */
  readonly fromMs: number
  readonly toMs: number
  readonly base?: { readonly fromMs: number; readonly toMs: number }
  readonly limit: number
}

const kinds = ['cpu', 'off_cpu', 'memory'] as const
const leastBytes = 64 * 1024
/** Share of the memory for the values; the rest is for the stacks. */
const ringShare = 0.25
/** Largest share of the ring for one profile. */
const mostAtATime = 1 / 3
/** Frames of a profile to process: some 10 ms of work. */
const mostSteps = 200_000
/** Tolerated lead of other clocks, and of the end of a profile in progress. */
const mostAheadMs = 300_000
/** Maximum depth of a stack; the innermost frames beyond it become one. */
const mostDepth = 512

// A profile in the ring, aligned to 8 bytes: a header of doubles, then, for each stack with a value, the delta of its
// node number and the value, both in LEB128.
const lengthAt = 0
/**
 * Node of the service times four, plus the kind; -1: padding at the end of the ring. Padding shorter than a header has
 * none.
 */
const seriesAt = 1
const fromAt = 2
const toAt = 3
/** Sum of all values. */
const totalAt = 4
/** Factor of each value. */
const scaleAt = 5
const stacksAt = 6
const headBytes = 56
/** Maximum bytes of a node, and of a value below 2^53. */
const mostStackBytes = 4 + 8

const cutFrame: Frame = {
  name: '[cut: no room for the smallest stacks of this profile]',
  file: '',
  line: 0,
}
const deepFrame: Frame = { name: `[cut: deeper than ${mostDepth} frames]`, file: '', line: 0 }

/**
 * Profiles in bounded memory and time; the oldest are evicted. Keeps the value of each stack of each service. A profile
 * larger than a third of the ring has its smallest stacks merged into one marked as cut.
 */
export class ProfileWindow {
  readonly #windowMs: number
  readonly #now: () => number
  readonly #ring: Uint8Array
  readonly #doubles: Float64Array
  readonly #capacity: number
  readonly #mostStacks: number
  readonly #trie: StackTrie
  readonly #path = new Uint32Array(mostDepth)
  /** Bytes ever written before the oldest profile, and before the next one. */
  #oldest = 0
  #next = 0
  #profiles = 0
  #version = 0
  /** Read position. */
  #at = 0

  constructor({ maxBytes, windowMs, now }: ProfileWindowOptions) {
    const bytes = Math.max(leastBytes, maxBytes)
    this.#windowMs = windowMs
    this.#now = now
    this.#capacity = (bytes * ringShare) & ~7
    const memory = new ArrayBuffer(this.#capacity)
    this.#ring = new Uint8Array(memory)
    this.#doubles = new Float64Array(memory)
    // One more is for all those that are cut.
    this.#mostStacks = Math.floor((this.#capacity * mostAtATime - headBytes) / mostStackBytes) - 1
    this.#trie = new StackTrie(bytes - this.#capacity, () => this.#dropOldest())
    // Never released, so there is always room for it.
    this.#trie.holdFrame(cutFrame.name, cutFrame.file, '')
  }

  /** Memory in use. */
  get bytes(): number {
    return this.#next - this.#oldest + this.#trie.bytes
  }

  /** Number of kept profiles. */
  get size(): number {
    return this.#profiles
  }

  /** Number of nodes of all stacks. */
  get nodes(): number {
    return this.#trie.nodes
  }

  /** Changes whenever the content does. */
  get version(): number {
    this.#expire()
    return this.#version
  }

  add(resource: Resource, profile: Profile): void {
    const name = resource.attributes.get('service.name')
    this.#expire()
    this.#version++
    const trie = this.#trie
    trie.begin()
    const frame = trie.holdService(typeof name === 'string' && name !== '' ? name : 'unknown')
    if (frame < 0) return
    this.#path[0] = frame
    const service = trie.descend(rootNode, this.#path, 1)
    if (service >= 0) {
      trie.hold(service)
      if (!this.#keep(service, profile)) trie.release(service)
    }
    trie.releaseFrame(frame)
  }

  /** Kinds with profiles. */
  kinds(): Profile['kind'][] {
    this.#expire()
    const there = new Set<number>()
    this.#each(at => there.add(this.#doubles[at + seriesAt]! & 3))
    return kinds.filter((_, i) => there.has(i))
  }

  overview(kind: Profile['kind'], service: string): ProfileOverview {
    this.#expire()
    const intervals = new Map<number, ProfiledInterval>()
    const services = new Map<number, number>()
    const wanted = service === '' ? rootNode : this.#trie.findService(service)
    this.#each(at => {
      const doubles = this.#doubles
      const series = doubles[at + seriesAt]!
      if ((series & 3) !== kinds.indexOf(kind)) return
      const of = series >>> 2
      const value = doubles[at + totalAt]! * doubles[at + scaleAt]!
      services.set(of, (services.get(of) ?? 0) + value)
      if (wanted !== rootNode && wanted !== of) return
      const fromMs = doubles[at + fromAt]!
      const toMs = doubles[at + toAt]!
      const interval = intervals.get(fromMs)
      if (interval === undefined) intervals.set(fromMs, { fromMs, toMs, value })
      else {
        interval.toMs = Math.max(interval.toMs, toMs)
        interval.value += value
      }
    })
    return {
      intervals: [...intervals.values()].sort((a, b) => a.fromMs - b.fromMs),
      services: [...services]
        .map(([node, value]) => ({ name: this.#trie.serviceOf(node), value }))
        .sort((a, b) => b.value - a.value),
    }
  }

  /** Merges the profiles of a kind into one tree. */
  flame({ kind, service, fromMs, toMs, base, limit }: FlameOptions): FlameColumns {
    this.#expire()
    const trie = this.#trie
    const self = new Float64Array(trie.end)
    const compared = base === undefined ? undefined : new Float64Array(trie.end)
    const root = service === '' ? rootNode : Math.max(rootNode, trie.findService(service))
    const isThere = service === '' || root !== rootNode
    this.#each(at => {
      const doubles = this.#doubles
      const series = doubles[at + seriesAt]!
      if (!isThere || (series & 3) !== kinds.indexOf(kind)) return
      if (root !== rootNode && root !== series >>> 2) return
      const middleMs = (doubles[at + fromAt]! + doubles[at + toAt]!) / 2
      if (middleMs >= fromMs && middleMs < toMs) this.#sumUp(at, self)
      if (base !== undefined && middleMs >= base.fromMs && middleMs < base.toMs) this.#sumUp(at, compared!)
    })
    return flameColumns(trie, {
      self,
      base: compared,
      root,
      rootName: service === '' ? 'all' : service,
      limit,
    })
  }

  /** False: nothing to keep. */
  #keep(service: number, profile: Profile): boolean {
    const { kind, unit, startUs, durationUs, period } = profile
    const stacks = new KnownStacks(this.#trie, this.#mostStacks)
    this.#gather(service, profile.samples, stacks)
    if (stacks.size === 0) {
      stacks.close()
      return false
    }
    stacks.sort()
    const length = (headBytes + stacks.bytes + 7) & ~7
    this.#makeRoom(length)
    const at = this.#next % this.#capacity
    const head = at >> 3
    const doubles = this.#doubles
    doubles[head + lengthAt] = length
    doubles[head + seriesAt] = service * 4 + kinds.indexOf(kind)
    doubles[head + fromAt] = Math.round(startUs / 1000)
    doubles[head + toAt] = Math.round((startUs + durationUs) / 1000)
    doubles[head + totalAt] = stacks.total
    // Scales a count of samples to time or bytes by the sampling period.
    doubles[head + scaleAt] = unit === 'count' && period !== undefined && period > 0 ? period : 1
    doubles[head + stacksAt] = stacks.size
    stacks.write(this.#ring, at + headBytes)
    this.#next += length
    this.#profiles++
    stacks.close()
    return true
  }

  #gather(service: number, samples: readonly Sample[], stacks: KnownStacks): void {
    let steps = mostSteps
    let cut = 0
    // Largest first: the smallest are cut.
    for (const { frames, value: exact } of [...samples].sort((a, b) => b.value - a.value)) {
      const value = Math.round(exact)
      if (!(value > 0 && value <= Number.MAX_SAFE_INTEGER)) continue
      steps -= frames.length
      const node = steps < 0 || stacks.full ? -1 : this.#nodeOf(service, frames, stacks)
      if (node < 0) cut += value
      else stacks.add(node, value)
    }
    if (cut === 0) return
    this.#path[0] = stacks.frame(cutFrame)
    const node = this.#path[0] === KnownStacks.none ? -1 : this.#trie.descend(service, this.#path, 1, true)
    if (node >= 0) stacks.add(node, cut)
  }

  /** -1: no room. */
  #nodeOf(service: number, frames: readonly Frame[], stacks: KnownStacks): number {
    const path = this.#path
    const depth = Math.min(frames.length, mostDepth)
    for (let i = 0; i < depth; i++) {
      const isRest = i === mostDepth - 1 && frames.length > mostDepth
      const frame = stacks.frame(isRest ? deepFrame : frames[frames.length - 1 - i]!)
      if (frame === KnownStacks.none) return -1
      path[i] = frame
    }
    return this.#trie.descend(service, path, depth)
  }

  /** Calls back with the index of each profile's header, in doubles, oldest first. */
  #each(visit: (head: number) => void): void {
    for (let at = this.#oldest; at < this.#next; ) {
      const head = (at % this.#capacity) >> 3
      at += this.#doubles[head]!
      if (!this.#isFiller(head)) visit(head)
    }
  }

  #isFiller(head: number): boolean {
    return this.#doubles[head]! < headBytes || this.#doubles[head + seriesAt]! < 0
  }

  #sumUp(head: number, into: Float64Array): void {
    const stacks = this.#doubles[head + stacksAt]!
    const scale = this.#doubles[head + scaleAt]!
    this.#at = head * 8 + headBytes
    for (let i = 0, node = 0; i < stacks; i++) {
      node += this.#number()
      into[node]! += this.#number() * scale
    }
  }

  #number(): number {
    const ring = this.#ring
    let byte = ring[this.#at++]!
    let value = byte & 127
    for (let unit = 128; byte > 127; unit *= 128) {
      byte = ring[this.#at++]!
      value += (byte & 127) * unit
    }
    return value
  }

  /**
   * Also drops profiles of the future, recorded before the clock was set back: they would keep all others from
   * expiring.
   */
  #expire(): void {
    const nowMs = this.#now()
    const beforeMs = nowMs - this.#windowMs
    while (this.#profiles > 0) {
      const head = (this.#oldest % this.#capacity) >> 3
      const toMs = this.#doubles[head + toAt]!
      if (!this.#isFiller(head) && toMs >= beforeMs && toMs <= nowMs + mostAheadMs) return
      this.#dropOldest()
    }
  }

  /** Drops the oldest until so many contiguous bytes are free. */
  #makeRoom(bytes: number): void {
    const left = this.#capacity - (this.#next % this.#capacity)
    if (left < bytes) {
      this.#free(left)
      const head = (this.#next % this.#capacity) >> 3
      this.#doubles[head] = left
      if (left >= headBytes) this.#doubles[head + seriesAt] = -1
      this.#next += left
    }
    this.#free(bytes)
  }

  #free(bytes: number): void {
    while (this.#next + bytes - this.#oldest > this.#capacity) this.#dropOldest()
  }

  /** False: the ring is empty. */
  #dropOldest(): boolean {
    if (this.#oldest === this.#next) return false
    const head = (this.#oldest % this.#capacity) >> 3
    this.#oldest += this.#doubles[head]!
    if (this.#isFiller(head)) return true
    this.#profiles--
    this.#version++
    const stacks = this.#doubles[head + stacksAt]!
    this.#at = head * 8 + headBytes
    for (let i = 0, node = 0; i < stacks; i++) {
      node += this.#number()
      this.#number()
      this.#trie.release(node)
    }
    this.#trie.release(this.#doubles[head + seriesAt]! >>> 2)
    return true
  }
}

/** The stacks of one profile while it is added, with references to their nodes and frames. */
class KnownStacks {
  static readonly none = 0xffffffff
  total = 0
  size = 0
  readonly #trie: StackTrie
  readonly #most: number
  readonly #frames = new Map<Frame, number>()
  readonly #nodes: number[] = []
  readonly #values: number[] = []
  /** Sorted nodes, each with its index among the others. */
  #order = new Float64Array(0)

  constructor(trie: StackTrie, most: number) {
    this.#trie = trie
    this.#most = most
  }

  get full(): boolean {
    return this.#nodes.length >= this.#most
  }

  /** The number of a frame; `none` if there is no room. */
  frame(frame: Frame): number {
    const known = this.#frames.get(frame)
    if (known !== undefined) return known
    const number = this.#trie.holdFrame(
      frame.name || '[unnamed]',
      frame.file || (frame.mapping?.path ?? ''),
      frame.type ?? '',
    )
    const held = number < 0 ? KnownStacks.none : number
    this.#frames.set(frame, held)
    return held
  }

  add(node: number, value: number): void {
    this.#trie.hold(node)
    this.#nodes.push(node)
    this.#values.push(value)
    this.total += value
    this.size++
  }

  /** Sorts and merges nodes, so that the deltas are small. */
  sort(): void {
    const count = this.#nodes.length
    const order = new Float64Array(count)
    for (let i = 0; i < count; i++) order[i] = this.#nodes[i]! * 2 ** 24 + i
    order.sort()
    let size = 0
    let before = -1
    for (const key of order) {
      const node = Math.floor(key / 2 ** 24)
      if (node === before) {
        this.#values[order[size - 1]! % 2 ** 24]! += this.#values[key % 2 ** 24]!
        this.#trie.release(node)
      } else order[size++] = key
      before = node
    }
    this.#order = order.subarray(0, size)
    this.size = size
  }

  /** Bytes that `write` needs. */
  get bytes(): number {
    let bytes = 0
    let before = 0
    for (const key of this.#order) {
      const node = Math.floor(key / 2 ** 24)
      bytes += lengthOf(node - before) + lengthOf(this.#values[key % 2 ** 24]!)
      before = node
    }
    return bytes
  }

  write(into: Uint8Array, from: number): void {
    let at = from
    let before = 0
    for (const key of this.#order) {
      const node = Math.floor(key / 2 ** 24)
      at = writeNumber(into, at, node - before)
      at = writeNumber(into, at, this.#values[key % 2 ** 24]!)
      before = node
    }
  }

  /** Releases the frames: kept profiles refer to them through their nodes. */
  close(): void {
    for (const frame of this.#frames.values()) if (frame !== KnownStacks.none) this.#trie.releaseFrame(frame)
  }
}

function lengthOf(value: number): number {
  let length = 1
  for (let rest = value; rest >= 128; rest /= 128) length++
  return length
}

function writeNumber(into: Uint8Array, from: number, value: number): number {
  let at = from
  let rest = value
  while (rest >= 128) {
    into[at++] = (rest % 128) | 128
    rest = Math.floor(rest / 128)
  }
  into[at++] = rest
  return at
}
