import type { Resource } from '../../../foundation/model/resource.ts'
import { Span } from '../../../foundation/model/span.ts'
import { AgeList, Pair, PairTable } from './pair-table.ts'

/** Hands a span on. The span is reused. `certain`: it is kept whatever its trace. `linked`: as `hold` was told. */
export type Emit = (resource: Resource, span: Span, certain: boolean, linked: number) => void

/** How many may be held. A power of two. */
const most = 8_192
/** What an entry takes without the texts of its span, waiting or kept for later use; measured. */
const entryBytes = 2048
/** Entries that are kept for later use. */
const mostFree = 1024
/** Most that the texts of waiting spans may take, by estimate. */
const maxHeldBytes = 8 * 1024 * 1024

/** A server's span that waits. Instances are used again, the last one first: those stay in the cache. */
class Held extends Pair<Held> {
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
  /** What their texts take, in bytes by estimate. */
  heldBytes = 0
  readonly #table = new PairTable<Held>(most)
  readonly #free: Held[] = []
  readonly #holdMs: number
  readonly #emit: Emit
  /** In the order of arrival. */
  readonly #line = new AgeList<Held>()

  constructor(holdMs: number, emit: Emit) {
    this.#holdMs = holdMs
    this.#emit = emit
  }

  /** Spans that wait now. */
  get waitingNow(): number {
    return this.#line.length
  }

  /** Memory that is taken now, by estimate. */
  get bytes(): number {
    return this.heldBytes + (this.waitingNow + this.#free.length) * entryBytes
  }

  /** Gives back memory: entries kept for later use first, then spans, which are handed on without a parent. */
  shed(bytes: number): number {
    const before = this.bytes
    while (before - this.bytes < bytes && this.#free.pop() !== undefined);
    while (before - this.bytes < bytes && this.#line.first !== undefined) {
      this.#giveUp(this.#line.first)
      this.#free.pop()
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
    if (found !== undefined) this.#giveUp(found)
    const bytes = textBytes(span)
    const line = this.#line
    while (line.first !== undefined && (line.length === most || this.heldBytes + bytes > maxHeldBytes))
      this.#giveUp(line.first)
    const held = this.#free.pop() ?? new Held()
    held.sequence = sequence
    held.ports = ports
    held.atMs = nowMs
    held.resource = resource
    held.certain = certain
    held.linked = linked
    held.decided = decided
    held.bytes = bytes
    copySpan(held.span, span)
    this.#table.add(held)
    line.add(held)
    this.heldBytes += bytes
  }

  /** The span that waits for this client; undefined where there is none. To be changed, and then released. */
  find(sequence: number, ports: number): Held | undefined {
    return this.#table.find(sequence, ports)
  }

  /** Its client is known: hands the span on. */
  found(held: Held): void {
    this.joined++
    this.#release(held)
  }

  /** Its client is known, and stands in another trace: hands the span on as it is. */
  parted(held: Held): void {
    this.#giveUp(held)
  }

  /** Gives up what was held long enough; all of it when `nowMs` is infinite. The spans are handed on as they are. */
  expire(nowMs: number): void {
    const line = this.#line
    while (line.first !== undefined && nowMs - line.first.atMs >= this.#holdMs) this.#giveUp(line.first)
  }

  /** Gives up those that samples are linked to, where they were held for so long. Looks at all, at most. */
  settle(nowMs: number, heldMs: number): void {
    for (let held = this.#line.first; held !== undefined && nowMs - held.atMs >= heldMs; ) {
      const { newer } = held
      if (held.linked !== 0) this.#giveUp(held)
      held = newer
    }
  }

  /** Lets go; the span is handed on without a parent. */
  #giveUp(held: Held): void {
    this.expired++
    this.#release(held)
  }

  /** Frees it, and hands the span on. */
  #release(held: Held): void {
    const resource = held.resource!
    this.#table.delete(held)
    this.#line.remove(held)
    this.heldBytes -= held.bytes
    held.resource = undefined
    this.#emit(resource, held.span, held.certain, held.linked)
    letGo(held.span)
    if (this.#free.length < mostFree) this.#free.push(held)
  }
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
