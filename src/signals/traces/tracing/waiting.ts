import type { Resource } from '../../../foundation/model/resource.ts'
import { Span } from '../../../foundation/model/span.ts'
import { AgeList, Pair, PairTable } from './pair-table.ts'

/** Emits a span, which is reused. `certain`: it is kept regardless of sampling. `linked`: as given to `hold`. */
export type Emit = (resource: Resource, span: Span, certain: boolean, linked: number) => void

/** Maximum number of waiting spans. A power of two. */
const most = 8_192
/** Size of an entry without the texts of its span, waiting or in the pool; measured. */
const entryBytes = 2048
/** Maximum number of spare entries in the pool. */
const mostFree = 1024
/** Maximum size of the texts of waiting spans, estimated. */
const maxHeldBytes = 8 * 1024 * 1024

/** A server's span that waits. Instances are reused, the most recent first, because those are in the CPU cache. */
class Held extends Pair<Held> {
  atMs = 0
  /** Size of the texts of its span, estimated. */
  bytes = 0
  certain = false
  linked = 0
  /** Its trace was already reported elsewhere. */
  decided = false
  resource: Resource | undefined
  readonly span = new Span()
}

/**
 * Spans of servers whose client is a process of this host and was not seen yet: a client's hook runs at the end of its
 * call, when the server may long have answered. They wait `holdMs` at most, with bounds on their number and on the
 * bytes of their texts.
 */
export class Waiting {
  /** Spans that found their client. */
  joined = 0
  /** Spans that waited in vain, including those removed to make room. */
  expired = 0
  /** Estimated bytes of their texts. */
  heldBytes = 0
  readonly #table = new PairTable<Held>(most)
  readonly #free: Held[] = []
  readonly #holdMs: number
  readonly #emit: Emit
  /** In order of arrival. */
  readonly #line = new AgeList<Held>()

  constructor(holdMs: number, emit: Emit) {
    this.#holdMs = holdMs
    this.#emit = emit
  }

  /** Spans that wait now. */
  get waitingNow(): number {
    return this.#line.length
  }

  /** Estimated memory in use. */
  get bytes(): number {
    return this.heldBytes + (this.waitingNow + this.#free.length) * entryBytes
  }

  /** Frees memory: spare entries first, then waiting spans, which are emitted without a parent. */
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
   * Holds a copy of a span. `linked`: the number of its request if samples are linked to it. `decided`: its trace was
   * already reported elsewhere, so its client can only take over that one.
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

  /** The span that waits for this client; undefined if there is none. Change it, then release it. */
  find(sequence: number, ports: number): Held | undefined {
    return this.#table.find(sequence, ports)
  }

  /** Its client is known: emits the span. */
  found(held: Held): void {
    this.joined++
    this.#release(held)
  }

  /** Its client is known and is in another trace: emits the span unchanged. */
  parted(held: Held): void {
    this.#giveUp(held)
  }

  /** Emits spans that waited long enough, unchanged; all of them if `nowMs` is infinite. */
  expire(nowMs: number): void {
    const line = this.#line
    while (line.first !== undefined && nowMs - line.first.atMs >= this.#holdMs) this.#giveUp(line.first)
  }

  /** Emits spans linked to samples that waited `heldMs` or longer. Checks all of them at most. */
  settle(nowMs: number, heldMs: number): void {
    for (let held = this.#line.first; held !== undefined && nowMs - held.atMs >= heldMs; ) {
      const { newer } = held
      if (held.linked !== 0) this.#giveUp(held)
      held = newer
    }
  }

  /** Frees the entry; the span is emitted without a parent. */
  #giveUp(held: Held): void {
    this.expired++
    this.#release(held)
  }

  /** Frees the entry and emits the span. */
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

/** Size of the texts of a span: two bytes for each character, at most. */
function textBytes(span: Span): number {
  let characters = span.name.length + span.traceState.length + span.statusMessage.length
  for (let i = 0; i < span.attributes.size; i++) {
    const value = span.attributes.values[i]!
    if (typeof value === 'string') characters += value.length
    else if (typeof value === 'object') for (const each of value) characters += each.length
  }
  return 2 * characters
}

/** Releases the texts of a span in the pool. */
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
