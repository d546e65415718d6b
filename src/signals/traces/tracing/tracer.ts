import { randomFillSync } from 'node:crypto'
import type { Connection } from '../../../foundation/model/connection.ts'
import type { DropReasonName } from '../../../foundation/model/drop-reasons.ts'
import type { SpanLink } from '../../../foundation/model/profile.ts'
import type { Protocol } from '../../../foundation/model/protocol.ts'
import { requestNumber } from '../../../foundation/model/request-number.ts'
import type { Resource } from '../../../foundation/model/resource.ts'
import { Span, SpanKind, StatusCode } from '../../../foundation/model/span.ts'
import type { Operation, TraceContext } from '../../../foundation/model/stream.ts'
import { readTraceHeaders } from '../../../foundation/model/trace-headers.ts'
import { parseTraceparent } from '../../../foundation/model/traceparent.ts'
import { ActiveRequests, linkTo } from './active-requests.ts'
import { Contexts, flagsWithRemoteParent, isSameTrace, type Request } from './contexts.ts'
import { CountedBuckets } from './counted-buckets.ts'
import { PortCalls } from './port-calls.ts'
import { RequestEdges } from './request-edges.ts'
import { SpanExports } from './span-exports.ts'
import type { TracerOptions, TracerRules } from './tracer-options.ts'
import { Waiting } from './waiting.ts'

/**
 * Memory pressure from which long texts are left out of spans, and from which calls have no span. See `MemoryPressure`.
 */
const briefPressure = 2
const countingPressure = 3
const briefLength = 64
/** How long a server's span waits for its client on this host. */
const holdMs = 2000
/** The same once samples are linked to spans: most clients are seen when the ring is next drained. */
const linkedHoldMs = 500

/**
 * Makes spans and request metrics from operations, whichever side found them in the bytes. Allocates nothing per
 * operation once its caches are warm.
 */
export class Tracer {
  /** Operations seen, by `signal_type`; `unknown` are those that no protocol could read. */
  readonly collected = new Map<string, number>()
  /** Exports of telemetry, sent or received at a receiver's port: they get neither spans nor metrics. */
  telemetry = 0
  /** Calls of processes that are not observed. */
  unselected = 0
  /** Counts by port, for all processes, observed or not. */
  readonly ports = new PortCalls()
  /** Applies from the next operation on; spans that wait for their other side keep the previous rules. */
  rules: TracerRules
  readonly #options: TracerOptions
  readonly #protocols: ReadonlyMap<string, Protocol>
  readonly #span = new Span()
  readonly #startOf = new Start()
  readonly #waiting: Waiting
  readonly #buckets: CountedBuckets
  readonly #contexts: Contexts
  readonly #edges: RequestEdges | undefined
  readonly #requests = new ActiveRequests()
  readonly #spanExports = new SpanExports()
  readonly #random = Buffer.alloc(8192)
  #randomAt = this.#random.length
  #settledMs = Number.NEGATIVE_INFINITY

  constructor(options: TracerOptions) {
    this.#options = options
    this.#buckets = new CountedBuckets(options.countedBounds)
    this.rules = options.rules
    this.#protocols = new Map(options.protocols.map(protocol => [protocol.name, protocol]))
    this.#waiting = new Waiting(holdMs, (of, span, certain, linked) => this.#emit(of, span, certain, linked))
    this.#contexts = new Contexts(id => this.#fill(id), options.governor)
    const waiting = this.#waiting
    options.governor?.register({
      name: 'waiting spans',
      kind: 'intake',
      bytes: () => waiting.bytes,
      shed: bytes => waiting.shed(bytes),
    })
    const { edge } = options
    if (edge === undefined) return
    this.#edges = new RequestEdges({
      report: edge,
      isInFlight: (server, sequence, ports) => this.#contexts.isInFlight(server, sequence, ports),
      now: options.now,
    })
  }

  /** Requests joined with a parent, servers' spans that waited for their client in vain, and those waiting now. */
  get joins(): { readonly joined: number; readonly expired: number; readonly waitingNow: number } {
    const waiting = this.#waiting
    const contexts = this.#contexts
    return {
      joined: waiting.joined + contexts.joined,
      expired: waiting.expired,
      waitingNow: waiting.waitingNow,
    }
  }

  /** A request begins. From now on, requests of its process may be its children. */
  begin(operation: Operation): void {
    const request = this.#enter(operation)
    if (!operation.connection.fromBytes) return
    request.owner = operation
    operation.traceRequest = request
  }

  /** Turns `linkOf` on or off; off at first. */
  linkSamples(on: boolean): void {
    if (on) this.#requests.start()
    else this.#requests.stop()
  }

  /**
   * The span of a request that a thread was sampled at work on, by its number from the kernel side (see
   * `requestNumber`). Undefined if there is none, if it is uncertain, or while the span waits for its client (half a
   * second at most).
   */
  linkOf(number: number): SpanLink | undefined {
    const requests = this.#requests
    const contexts = this.#contexts
    this.#settle()
    const link = requests.linkOf(number)
    if (link !== undefined) return link
    const request = requests.inFlight(number)
    if (request === undefined) return undefined
    contexts.resolve(request)
    return this.rules.ratio >= 1 || this.#isInRatio(request.traceId)
      ? linkTo(request.traceId, request.spanId)
      : undefined
  }

  /** A thread was started by another one of its process. */
  thread(pid: number, parentTid: number, tid: number): void {
    this.#contexts.thread(pid, parentTid, tid)
  }

  /**
   * The operation ended: it is counted, and becomes a span if the rules say so. If the kernel side framed it, it is
   * parsed here.
   */
  end(operation: Operation): void {
    const options = this.#options
    const contexts = this.#contexts
    const { connection, call } = operation
    let request = this.#requestOf(operation)
    if (!connection.fromBytes && !this.#fillCall(operation)) {
      if (request !== undefined) contexts.forget(request)
      this.lost('unreadable', 1)
      return
    }
    if (request === undefined) {
      // Its beginning was not reported, so other requests of its process during that time are unknown.
      request = this.#enter(operation)
      request.alone = false
    }
    const nowMs = options.now()
    this.ports.called(connection)
    const exported = this.#spanExports.exportKind(operation, nowMs)
    if (exported !== 'no') {
      this.telemetry++
      contexts.forget(request)
      if (exported === 'own_spans') options.exports?.(connection)
      return
    }
    let hidden = options.hidden?.(connection) ?? ''
    if (hidden === 'instrumented' && this.#spanExports.isRelay(connection.pid, nowMs)) hidden = ''
    if (hidden === 'not_selected') {
      this.unselected++
      contexts.forget(request)
      return
    }
    this.collected.set(call.signalType, (this.collected.get(call.signalType) ?? 0) + 1)
    const resource = options.resourceOf(connection)
    if (call.duration !== undefined)
      options.red.observe(resource, call.duration, call.dimensions, operation.durationNs)
    const excluded = call.path !== '' && this.rules.excludedPath(call.path)
    if (!excluded) this.#edges?.ended(operation, request, resource)
    const unwanted = excluded ? 'excluded_path' : hidden
    if (unwanted !== '') {
      options.drop(unwanted, 1)
      contexts.forget(request)
      return
    }
    const pressure = options.governor?.pressure ?? 0
    const over =
      pressure >= countingPressure ? 'memory_limit' : (options.overBudget?.(operation, resource) ?? '')
    if (over !== '') {
      options.drop(over, 1)
      contexts.forget(request)
      return
    }
    this.#fillSpan(operation, pressure >= briefPressure ? briefLength : Number.POSITIVE_INFINITY)
    this.#joinTrace(operation, request, resource, nowMs)
  }

  /** The operation is returned without a reportable end: it has no span. */
  abandon(operation: Operation): void {
    const request = this.#requestOf(operation)
    if (request !== undefined) this.#contexts.forget(request)
  }

  /** The connection does not speak the protocol that the kernel side detected. */
  refuse(connection: Connection): void {
    this.ports.refused(connection.serverPort)
    this.#options.refuse(connection.id)
  }

  /**
   * Adds operations that the kernel only counted to the metrics; `operation` has their common properties. Their spans
   * are counted as dropped elsewhere.
   */
  counted(operation: Operation, count: number, sumNs: number, buckets: ArrayLike<number>): void {
    const options = this.#options
    const { connection, call } = operation
    if (!this.#fillCall(operation)) {
      this.#unknown(count)
      return
    }
    this.ports.called(connection, count)
    if (options.hidden?.(connection) === 'not_selected') {
      this.unselected += count
      return
    }
    this.collected.set(call.signalType, (this.collected.get(call.signalType) ?? 0) + count)
    const { duration, dimensions } = call
    if (duration === undefined) return
    const own = this.#buckets.of(duration.bounds, buckets)
    options.red.merge(options.resourceOf(connection), duration, dimensions, count, sumNs, own)
  }

  /** Counts operations that were lost, by reason (`framing_lost`, `no_memory`). Nothing else is known about them. */
  lost(reason: DropReasonName, operations: number): void {
    this.#unknown(operations)
    this.#options.drop(reason, operations)
  }

  /** Emits spans whose other side was not seen in time. Call it a few times a second. */
  tick(): void {
    const nowMs = this.#options.now()
    this.#waiting.expire(nowMs)
    this.#edges?.expire(nowMs)
    this.#contexts.expire(nowMs)
  }

  /** Emits all waiting spans. */
  flush(): void {
    this.#waiting.expire(Number.POSITIVE_INFINITY)
    this.#edges?.expire(Number.POSITIVE_INFINITY)
  }

  #unknown(operations: number): void {
    if (operations > 0) this.collected.set('unknown', (this.collected.get('unknown') ?? 0) + operations)
  }

  #enter(operation: Operation): Request {
    const context = this.rules.readContext ? contextOf(operation) : undefined
    const request = this.#contexts.begin(this.#start(operation), context, this.#options.now())
    if (!request.server) this.#beginClient(request)
    if (request.blocking && request.number !== 0) this.#requests.begin(request)
    return request
  }

  /** Its request, whose reference is cleared; undefined if its beginning was not reported or is forgotten. */
  #requestOf(operation: Operation): Request | undefined {
    if (!operation.connection.fromBytes) return this.#contexts.find(this.#key(operation))
    const request = operation.traceRequest as Request | undefined
    operation.traceRequest = undefined
    // A forgotten request may have been reused for another operation.
    return request?.owner === operation ? request : undefined
  }

  /** Parses an operation that no decoder read; false if its protocol cannot parse it. */
  #fillCall(operation: Operation): boolean {
    operation.call.clear()
    return this.#protocols.get(operation.connection.protocol)?.fillCall?.(operation) === true
  }

  /** Fills the span except for its ids, and leaves out texts longer than `mostLength`. */
  #fillSpan(operation: Operation, mostLength: number): void {
    const span = this.#span
    const { call } = operation
    const { clock } = this.#options
    span.name = call.name
    span.kind = call.kind
    span.startUs = clock.microseconds(operation.startNs)
    span.endUs = clock.microseconds(operation.endNs)
    span.status = call.error === '' ? StatusCode.unset : StatusCode.error
    span.statusMessage = ''
    span.droppedAttributes = 0
    span.traceState = ''
    const { attributes } = span
    attributes.clear()
    const { keys, values, size } = call.attributes
    for (let i = 0; i < size; i++) {
      const value = values[i]!
      if (typeof value === 'string' && value.length > mostLength) span.droppedAttributes++
      else attributes.add(keys[i]!, value)
    }
  }

  #joinTrace(operation: Operation, request: Request, resource: Resource, nowMs: number): void {
    const span = this.#span
    const contexts = this.#contexts
    const { local, server } = request
    const joinable = local && request.sequence !== 0
    const client = server ? contexts.clientOf(request) : undefined
    const mayWait = server && joinable && client === undefined && (!request.resolved || request.orphan)
    if (!mayWait) contexts.resolve(request)
    else if (request.orphan) span.traceId.set(request.traceId)
    else this.#fill(span.traceId)
    if (client !== undefined) meet(span, client)
    if (!server) {
      // The hooks run at the end of a call, when the other side may already have continued: a child lies within its
      // parent.
      span.startUs = Math.min(span.startUs, request.childStartUs)
      span.endUs = Math.max(span.endUs, request.childEndUs)
    }
    span.spanId.set(request.spanId)
    const certain = this.#certain(operation)
    const linked = linkedNumber(operation, request)
    if (mayWait) {
      span.parentSpanId.fill(0)
      span.flags = 1
      span.traceState = ''
      this.#waiting.hold(
        request.sequence,
        request.ports,
        resource,
        span,
        certain,
        nowMs,
        linked,
        request.orphan,
      )
      contexts.end(request, span.endUs, false, nowMs)
      return
    }
    span.traceId.set(request.traceId)
    span.parentSpanId.set(request.parentSpanId)
    span.flags = request.flags
    span.traceState = request.state
    if (client?.ended) contexts.forget(client)
    contexts.end(request, span.endUs, !server && joinable, nowMs)
    this.#emit(resource, span, certain, linked)
  }

  /** Emits waiting spans that samples are linked to; at most every 100 ms, because links are requested in bulk. */
  #settle(): void {
    const nowMs = this.#options.now()
    if (nowMs - this.#settledMs < 100) return
    this.#settledMs = nowMs
    this.#waiting.settle(nowMs, linkedHoldMs)
  }

  #emit(resource: Resource, span: Span, certain: boolean, linked: number): void {
    const options = this.#options
    if (!certain && !this.#isInRatio(span.traceId)) {
      options.drop('sampled', 1)
      return
    }
    if (linked !== 0) this.#requests.end(linked, span.traceId, span.spanId)
    options.spans.add(resource, options.scope, span)
  }

  /** The server's side of a client's request may have been reported before. */
  #beginClient(request: Request): void {
    const contexts = this.#contexts
    const startOf = this.#startOf
    const held =
      request.local && request.sequence !== 0
        ? this.#waiting.find(request.sequence, request.ports)
        : undefined
    contexts.join(request, startOf.doubt, held?.decided === true ? held.span.traceId : undefined)
    if (held === undefined) return
    const { span } = held
    contexts.resolve(request)
    if (held.decided && !isSameTrace(span.traceId, request.traceId)) {
      this.#waiting.parted(held)
      return
    }
    span.traceId.set(request.traceId)
    span.parentSpanId.set(request.spanId)
    span.flags = flagsWithRemoteParent | (request.flags & 3)
    span.traceState = request.state
    meet(span, request)
    this.#waiting.found(held)
  }

  /** The key of the request for `contexts`; the object is reused. */
  #key({ connection, call, sequence }: Operation): Start {
    const startOf = this.#startOf
    const { server, localPort, peerPort } = connection
    // A message that a broker delivers has no other side at its beginning: the producer is long gone.
    const consumes = connection.fromBytes && call.kind === SpanKind.consumer
    startOf.server = server || consumes
    startOf.sequence = consumes ? 0 : sequence
    startOf.clientPort = server ? peerPort : localPort
    startOf.serverPort = server ? localPort : peerPort
    return startOf
  }

  /** The key with everything known when the request begins. */
  #start(operation: Operation): Start {
    const { connection, tid, startNs } = operation
    const startOf = this.#key(operation)
    startOf.pid = connection.pid
    startOf.tid = tid
    startOf.blocking = operation.blocking
    startOf.doubt = connection.doubt
    startOf.number = this.#requests.isOn && connection.server ? requestNumber(tid, startNs) : 0
    startOf.local = this.#options.isLocal(connection.peerAddress)
    startOf.startUs = this.#options.clock.microseconds(startNs)
    return startOf
  }

  /** Kept regardless of the sampling of its trace. */
  #certain({ call, durationNs }: Operation): boolean {
    const { rules } = this
    return (
      rules.ratio >= 1 ||
      (rules.alwaysErrors && call.error !== '') ||
      (rules.alwaysSlow && durationNs > rules.slowNs)
    )
  }

  /**
   * Decides by the trace id, the same for all its spans and as OpenTelemetry's samplers do: its last 7 bytes are random
   * (W3C Trace Context level 2), and ids above the threshold are kept. 6 of these bytes are precise enough.
   */
  #isInRatio(traceId: Uint8Array): boolean {
    let value = 0
    for (let i = 9; i < 15; i++) value = value * 256 + traceId[i]!
    return value >= (1 - this.rules.ratio) * 2 ** 48
  }

  #fill(id: Uint8Array): void {
    if (this.#randomAt + id.length > this.#random.length) {
      randomFillSync(this.#random)
      this.#randomAt = 0
    }
    for (let i = 0; i < id.length; i++) id[i] = this.#random[this.#randomAt + i]!
    this.#randomAt += id.length
  }
}

/**
 * The number under which samples are linked to a finished request, or 0 if they are not: an event loop may have
 * switched to another request, unless there was none.
 */
function linkedNumber({ connection, sampled }: Operation, request: Request): number {
  const certain = request.blocking || (request.alone && !connection.doubt)
  return sampled && certain ? request.number : 0
}

/** The trace context that a request carries: read by its decoder, or from the head that the kernel found. */
function contextOf({ connection, context, head }: Operation): TraceContext {
  if (connection.fromBytes) return context
  context.clear()
  const { bytes, traceparentStart, traceparentEnd } = head
  if (head.moreContext) readTraceHeaders(bytes, head.start, head.end, context)
  // The head may have been cut before it.
  if (context.flags < 0 && traceparentEnd > traceparentStart)
    context.flags = parseTraceparent(bytes, traceparentStart, traceparentEnd, context.traceId, context.spanId)
  return context
}

class Start {
  server = false
  sequence = 0
  clientPort = 0
  serverPort = 0
  pid = 0
  tid = 0
  blocking = false
  doubt = false
  number = 0
  local = false
  startUs = 0
}

/**
 * Aligns a server's span with its client: it lies within the client's span, as far as that is known, and the client's
 * span will include it.
 */
function meet(span: Span, client: Request): void {
  if (client.ended) {
    span.startUs = Math.max(client.startUs, Math.min(span.startUs, client.endUs))
    span.endUs = Math.max(span.startUs, Math.min(span.endUs, client.endUs))
  } else {
    client.childStartUs = Math.min(client.childStartUs, span.startUs)
    client.childEndUs = Math.max(client.childEndUs, span.endUs)
  }
}
