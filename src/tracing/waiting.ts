import type { Resource } from '../model/resource.ts'
import { Span } from '../model/span.ts'

/** Hands a span on. The span is reused. `certain`: it is kept whatever its trace. `linked`: as `hold` was told. */
export type Emit = (resource: Resource, span: Span, certain: boolean, linked: number) => void

/** How many may be held. A power of two. */
const cells = 8192
const ways = 4
/** What an entry takes without the texts of its span, waiting or kept for later use; measured. */
const entryBytes = 2048
/** Entries that are kept for later use. */
const mostFree = 1024
/** Most that the texts of waiting spans may take, by estimate. */
const maxHeldBytes = 8 * 1024 * 1024

/** A server's span that waits. Instances are used again, the last one first: those stay in the cache. */
class Held {
  /** Where it lies in the table; -1 while it is free. */
  cell = -1
  /** Grows with each use, so that a note about an earlier one is recognised. */
  turn = 0
  sequence = 0
  ports = 0
  atMs = 0
  /** What the texts of its span take, by estimate. */
  bytes = 0
  certain = false
  linked = 0
  /** Its trace was told to others already. */
  decided = false
  resource: Resource | undefined
  readonly span = new Span()
}

/**
 * Spans of servers whose client is a process of this host and has not been seen yet: a client's hook runs at the end of
 * its call, when the server may long have answered. They wait `holdMs` at most, in bounded memory: of entries, and of
 * bytes of text.
 */
export class Waiting {
  /** Spans that found their client. */
  joined = 0
  /** Spans that waited in vain, those included that had to make room. */
  expired = 0
  /** Spans that wait now. */
  waitingNow = 0
  /** What their texts take, in bytes by estimate. */
  heldBytes = 0
  private readonly table = new Array<Held | undefined>(cells).fill(undefined)
  private readonly free: Held[] = []
  private readonly holdMs: number
  private readonly emit: Emit
  /** What is held, in order of arrival; a ring. Its entries may have gone meanwhile. */
  private readonly line = new Array<Held | undefined>(cells).fill(undefined)
  private readonly turns = new Float64Array(cells)
  private head = 0
  private tail = 0

  constructor(holdMs: number, emit: Emit) {
    this.holdMs = holdMs
    this.emit = emit
  }

  /** Memory that is taken now, by estimate. */
  get bytes(): number {
    return this.heldBytes + (this.waitingNow + this.free.length) * entryBytes
  }

  /** Gives back memory: entries kept for later use first, then spans, which are handed on without a parent. */
  shed(bytes: number): number {
    const before = this.bytes
    while (before - this.bytes < bytes && this.free.pop() !== undefined);
    while (before - this.bytes < bytes && this.tail < this.head) {
      this.forgetFirst()
      this.free.pop()
    }
    return before - this.bytes
  }

  /**
   * A copy of a span waits from now on. `linked`: the number of its request, where samples are linked to it. `decided`: its
   * trace was told to others already, so that its client can only take that one over.
   */
  hold(
    sequence: number,
    ports: number,
    resource: Resource,
    span: Span,
    certain: boolean,
    nowMs: number,
    linked = 0,
    decided = false,
  ): void {
    const found = this.find(sequence, ports)
    if (found !== undefined) this.giveUp(found)
    const bytes = textBytes(span)
    while (this.heldBytes + bytes > maxHeldBytes && this.tail < this.head) this.forgetFirst()
    const held = this.place(sequence, ports, resource, nowMs)
    copySpan(held.span, span)
    held.certain = certain
    held.linked = linked
    held.decided = decided
    held.bytes = bytes
    this.heldBytes += bytes
    this.waitingNow++
  }

  /** The span that waits for this client; undefined where there is none. To be changed, and then released. */
  find(sequence: number, ports: number): Held | undefined {
    const base = place(sequence, ports)
    for (let cell = base; cell < base + ways; cell++) {
      const held = this.table[cell]
      if (held !== undefined && held.sequence === sequence && held.ports === ports) return held
    }
    return undefined
  }

  /** Its client is known: hands the span on. */
  found(held: Held): void {
    this.joined++
    this.release(held)
  }

  /** Its client is known, and stands in another trace: hands the span on as it is. */
  parted(held: Held): void {
    this.giveUp(held)
  }

  /** Gives up what was held long enough; all of it when `nowMs` is infinite. The spans are handed on as they are. */
  expire(nowMs: number): void {
    while (this.tail < this.head) {
      const at = this.tail % cells
      const held = this.line[at]!
      if (held.turn === this.turns[at]) {
        if (nowMs - held.atMs < this.holdMs) return
        this.giveUp(held)
      }
      this.passFirst()
    }
  }

  /** Gives up those that samples are linked to, where they were held for so long. Looks at all, at most. */
  settle(nowMs: number, heldMs: number): void {
    for (let i = this.tail; i < this.head; i++) {
      const at = i % cells
      const held = this.line[at]!
      if (held.turn !== this.turns[at]) continue
      if (nowMs - held.atMs < heldMs) return
      if (held.linked !== 0) this.giveUp(held)
    }
  }

  private place(sequence: number, ports: number, resource: Resource, nowMs: number): Held {
    const cell = this.room(sequence, ports)
    if (this.head - this.tail === cells) this.forgetFirst()
    const held = this.free.pop() ?? new Held()
    held.cell = cell
    held.turn++
    held.sequence = sequence
    held.ports = ports
    held.atMs = nowMs
    held.resource = resource
    this.table[cell] = held
    const at = this.head++ % cells
    this.line[at] = held
    this.turns[at] = held.turn
    return held
  }

  /** A cell for the pair; whoever was there longest goes when none of them is free. */
  private room(sequence: number, ports: number): number {
    const base = place(sequence, ports)
    let oldest: Held | undefined
    for (let cell = base; cell < base + ways; cell++) {
      const held = this.table[cell]
      if (held === undefined) return cell
      if (oldest === undefined || held.atMs < oldest.atMs) oldest = held
    }
    const { cell } = oldest!
    this.giveUp(oldest!)
    return cell
  }

  /** Makes room in the line. */
  private forgetFirst(): void {
    const at = this.tail % cells
    const held = this.line[at]!
    this.passFirst()
    if (held.turn === this.turns[at]) this.giveUp(held)
  }

  /** The first of the line is not looked at again: what went meanwhile is held by nobody. */
  private passFirst(): void {
    this.line[this.tail++ % cells] = undefined
  }

  /** Lets go; the span is handed on without a parent. */
  private giveUp(held: Held): void {
    this.expired++
    this.release(held)
  }

  /** Frees it, and hands the span on. */
  private release(held: Held): void {
    const { resource } = held
    this.table[held.cell] = undefined
    held.cell = -1
    held.turn++
    held.resource = undefined
    if (resource !== undefined) {
      this.waitingNow--
      this.heldBytes -= held.bytes
      held.bytes = 0
      this.emit(resource, held.span, held.certain, held.linked)
      letGo(held.span)
    }
    if (this.free.length < mostFree) this.free.push(held)
  }
}

/** First of the cells of a pair. */
function place(sequence: number, ports: number): number {
  const hash = Math.imul(sequence ^ Math.imul(ports, 0x9e3779b1), 0x85ebca6b)
  return ((hash ^ (hash >>> 15)) & (cells / ways - 1)) * ways
}

/** What the texts of a span take: two bytes for each character, at most. */
function textBytes(span: Span): number {
  let characters = span.name.length + span.traceState.length + span.statusMessage.length
  for (let i = 0; i < span.attributes.size; i++) {
    const value = span.attributes.values[i]!
    if (typeof value === 'string') characters += value.length
    else if (typeof value === 'object') for (const each of value) characters += each.length
  }
  return 2 * characters
}

/** Lets go of the texts of a span that is kept for later use. */
function letGo(span: Span): void {
  span.name = ''
  span.traceState = ''
  span.statusMessage = ''
  span.attributes.forget()
}

function copySpan(to: Span, from: Span): void {
  to.traceId.set(from.traceId)
  to.spanId.set(from.spanId)
  to.parentSpanId.set(from.parentSpanId)
  to.flags = from.flags
  to.traceState = from.traceState
  to.name = from.name
  to.kind = from.kind
  to.startUs = from.startUs
  to.endUs = from.endUs
  to.status = from.status
  to.statusMessage = from.statusMessage
  to.droppedAttributes = from.droppedAttributes
  to.attributes.clear()
  for (let i = 0; i < from.attributes.size; i++)
    to.attributes.add(from.attributes.keys[i]!, from.attributes.values[i]!)
}
