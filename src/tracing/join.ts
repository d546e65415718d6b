import type { Resource } from '../model/resource.ts'
import { Span } from '../model/span.ts'

/** Hands a span on. The span is reused. */
export type Emit = (resource: Resource, span: Span) => void

const slots = 8192
const ways = 4

/** What a slot holds. */
const empty = 0
const aClient = 1
const aServer = 2

interface Slot {
  readonly index: number
  state: typeof empty | typeof aClient | typeof aServer
  sequence: number
  ports: number
  atMs: number
  /** The client's ids, or the server's whole span. */
  readonly span: Span
  resource: Resource | undefined
}

/**
 * Joins the two sides of exchanges between processes of this host: the server's span becomes a child of the client's,
 * in its trace, although no header told so. Both sides see the same TCP sequence number at the request's first byte,
 * which with the ports names the exchange. Either side may come first: a client's ids are remembered, a server's span
 * waits, both for `holdMs` at most and in bounded memory.
 */
export class Join {
  /** Server spans that got a parent. */
  joined = 0
  /** Server spans that waited in vain, those included that had to make room. */
  expired = 0
  /** Server spans that wait now. */
  waitingNow = 0
  private readonly table: (Slot | undefined)[] = new Array(slots).fill(undefined)
  private readonly holdMs: number
  private readonly emit: Emit
  /** Slots of waiting servers in order of arrival; a ring. */
  private readonly waiting = new Int32Array(slots)
  private readonly waitingSince = new Float64Array(slots)
  private head = 0
  private tail = 0

  constructor(holdMs: number, emit: Emit) {
    this.holdMs = holdMs
    this.emit = emit
  }

  /** A client's span, whose ids are set. If its server's span waits, that one is completed and handed on. */
  client(sequence: number, clientPort: number, serverPort: number, span: Span, nowMs: number): void {
    const ports = clientPort * 65536 + serverPort
    const found = this.find(sequence, ports)
    if (found !== undefined && found.state === aServer) {
      const server = found.span
      adopt(server, span.traceId, span.spanId)
      // The hooks run at the end of a call, when the other side may already have gone on: a child lies in its parent.
      span.startUs = Math.min(span.startUs, server.startUs)
      span.endUs = Math.max(span.endUs, server.endUs)
      this.joined++
      this.release(found)
      return
    }
    const slot = found ?? this.take(sequence, ports, nowMs)
    slot.state = aClient
    slot.atMs = nowMs
    slot.span.traceId.set(span.traceId)
    slot.span.spanId.set(span.spanId)
    slot.span.startUs = span.startUs
    slot.span.endUs = span.endUs
  }

  /**
   * A server's span that has no parent yet. True: its client came before, and the span is complete now. False: a copy
   * of it waits, and `emit` gets it later.
   */
  server(
    sequence: number,
    clientPort: number,
    serverPort: number,
    resource: Resource,
    span: Span,
    nowMs: number,
  ): boolean {
    const ports = clientPort * 65536 + serverPort
    const found = this.find(sequence, ports)
    if (found !== undefined && found.state === aClient && nowMs - found.atMs < this.holdMs) {
      const client = found.span
      adopt(span, client.traceId, client.spanId)
      // The client's span is gone, so the child gives way. The wall clock may have been set between the two.
      span.startUs = within(span.startUs, client.startUs, client.endUs)
      span.endUs = within(span.endUs, span.startUs, client.endUs)
      found.state = empty
      this.joined++
      return true
    }
    const slot = found ?? this.take(sequence, ports, nowMs)
    if (slot.state === aServer) this.giveUp(slot)
    slot.state = aServer
    this.waitingNow++
    slot.sequence = sequence
    slot.ports = ports
    slot.atMs = nowMs
    slot.resource = resource
    copySpan(slot.span, span)
    if (this.head - this.tail === slots) this.expireOne()
    const at = this.head++ % slots
    this.waiting[at] = slot.index
    this.waitingSince[at] = nowMs
    return false
  }

  /** Hands on the spans that waited long enough, as they are; all of them when `nowMs` is infinite. */
  expire(nowMs: number): void {
    while (this.tail < this.head && nowMs - this.waitingSince[this.tail % slots]! >= this.holdMs)
      this.expireOne()
  }

  private expireOne(): void {
    const at = this.tail++ % slots
    const slot = this.table[this.waiting[at]!]
    if (slot === undefined || slot.state !== aServer || slot.atMs !== this.waitingSince[at]) return
    this.giveUp(slot)
  }

  /** Hands on a server's span without a parent. */
  private giveUp(slot: Slot): void {
    this.expired++
    this.release(slot)
  }

  private release(slot: Slot): void {
    slot.state = empty
    this.waitingNow--
    const { resource } = slot
    slot.resource = undefined
    if (resource !== undefined) this.emit(resource, slot.span)
  }

  private find(sequence: number, ports: number): Slot | undefined {
    const base = place(sequence, ports)
    for (let i = 0; i < ways; i++) {
      const slot = this.table[base + i]
      if (slot !== undefined && slot.state !== empty && slot.sequence === sequence && slot.ports === ports)
        return slot
    }
    return undefined
  }

  /** A free place for the pair, or that of the oldest there. */
  private take(sequence: number, ports: number, nowMs: number): Slot {
    const base = place(sequence, ports)
    let oldest: Slot | undefined
    for (let i = 0; i < ways; i++) {
      const slot = this.table[base + i] ?? emptySlot(base + i)
      this.table[base + i] = slot
      const free = slot.state === empty || (slot.state === aClient && nowMs - slot.atMs >= this.holdMs)
      if (free) {
        oldest = slot
        break
      }
      if (oldest === undefined || slot.atMs < oldest.atMs) oldest = slot
    }
    if (oldest!.state === aServer) this.giveUp(oldest!)
    oldest!.state = empty
    oldest!.sequence = sequence
    oldest!.ports = ports
    return oldest!
  }
}

function emptySlot(index: number): Slot {
  return { index, state: empty, sequence: 0, ports: 0, atMs: 0, span: new Span(), resource: undefined }
}

/** First of the places of a pair. */
function place(sequence: number, ports: number): number {
  const hash = Math.imul(sequence ^ Math.imul(ports, 0x9e3779b1), 0x85ebca6b)
  return ((hash ^ (hash >>> 15)) & (slots / ways - 1)) * ways
}

function within(time: number, from: number, to: number): number {
  return Math.max(from, Math.min(to, time))
}

function adopt(child: Span, traceId: Uint8Array, parentId: Uint8Array): void {
  child.traceId.set(traceId)
  child.parentSpanId.set(parentId)
  child.flags = flagsWithRemoteParent | (child.flags & 0xff)
}

/** OTLP SpanFlags: it is known whether the parent is in another process, and it is. */
export const flagsWithRemoteParent = 0x300

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
  to.attributes.clear()
  for (let i = 0; i < from.attributes.size; i++)
    to.attributes.add(from.attributes.keys[i]!, from.attributes.values[i]!)
}
