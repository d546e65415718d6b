import { randomFillSync } from 'node:crypto'
import type { MemoryGovernor } from '../lib/memory-governor.ts'
import { Call, type Exchange } from '../model/exchange.ts'
import type { SpanLink } from '../model/profile.ts'
import type { Protocol } from '../model/protocol.ts'
import type { RequestEdge } from '../model/request-edge.ts'
import type { Resource, Scope } from '../model/resource.ts'
import { Span, StatusCode } from '../model/span.ts'
import { TraceContext } from '../model/stream.ts'
import { readTraceHeaders } from '../model/trace-headers.ts'
import { parseTraceparent } from '../model/traceparent.ts'
import { ActiveRequests, linkTo } from './active-requests.ts'
import { Contexts, flagsWithRemoteParent, isSameTrace, type Request } from './contexts.ts'
import { CountedBuckets } from './counted-buckets.ts'
import { PortCalls } from './port-calls.ts'
import type { RedTable } from './red.ts'
import { RequestEdges } from './request-edges.ts'
import { SpanExports } from './span-exports.ts'
import { Waiting } from './waiting.ts'

/** What of a tracer can change while it runs. Always replaced as a whole. */
export interface TracerRules {
  /** Part of the traces that is kept, 0 to 1. */
  readonly ratio: number
  readonly alwaysErrors: boolean
  readonly alwaysSlow: boolean
  readonly slowNs: number
  /** Whether `traceparent` headers are taken over. */
  readonly readContext: boolean
  readonly excludedPath: (path: string) => boolean
}

export interface TracerOptions {
  readonly protocols: readonly Protocol[]
  readonly scope: Scope
  readonly red: RedTable
  /** Bounds in seconds of the buckets that `counted` is told: all those that a protocol's histogram has are there. */
  readonly countedBounds: readonly number[]
  /** Whose exchange it is. */
  readonly resourceOf: (exchange: Exchange) => Resource
  /** Where finished spans go. The span is reused. */
  readonly emit: (resource: Resource, scope: Scope, span: Span) => void
  /** Counts spans that are not passed on, by reason. */
  readonly drop: (reason: string, spans: number) => void
  readonly rules: TracerRules
  /** Told of each export of spans that an application sent itself, and that a receiver took. */
  readonly exports?: (exchange: Exchange) => void
  /** Why nothing is told of a process: `not_selected`, or `instrumented` for spans only. */
  readonly hidden?: (exchange: Exchange) => '' | 'not_selected' | 'instrumented'
  /** Why a call has no span, as there are too many: `over_budget` or `cpu_limit`, or '' where it has one. */
  readonly overBudget?: (exchange: Exchange, call: Call, from: Resource) => '' | 'over_budget' | 'cpu_limit'
  /**
   * Told of each request once, by the rules of request metrics, but for paths that are excluded: when both of its sides
   * are over, or when the other one was not seen for two seconds.
   */
  readonly edge?: (request: RequestEdge) => void
  /** Whether an address belongs to this host, so that the other side may be seen too. */
  readonly isLocal: (address: string) => boolean
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number
  readonly governor?: MemoryGovernor
}

/** While memory is this short, long texts are left out of spans, and calls make none. See `MemoryPressure`. */
const briefPressure = 2
const countingPressure = 3
const briefLength = 64
/** How long a server's span waits for its client on this host. */
const holdMs = 2000
/** The same once it is asked what samples are linked to: most clients show up when the ring is next drained. */
const linkedHoldMs = 500

/** Makes spans and request metrics of exchanges. Allocates nothing per exchange once its caches are warm. */
export class Tracer {
  /** Exchanges seen, by `signal_type`; `unknown` are those that no protocol could read. */
  readonly collected = new Map<string, number>()
  /** Exports of telemetry, sent or taken at a receiver's port: neither spans nor metrics. */
  telemetry = 0
  /** Calls of processes that are not observed. */
  unselected = 0
  /** What was seen where, whoever is observed. */
  readonly ports = new PortCalls()
  /** Holds from the next exchange on; what waits for its other side is not asked again. */
  rules: TracerRules
  private readonly options: TracerOptions
  private readonly protocols: ReadonlyMap<string, Protocol>
  private readonly call = new Call()
  private readonly span = new Span()
  private readonly context = new TraceContext()
  private readonly waiting: Waiting
  private readonly buckets: CountedBuckets
  private readonly contexts: Contexts
  private readonly edges: RequestEdges | undefined
  private readonly requests = new ActiveRequests()
  private readonly spanExports = new SpanExports()
  private readonly random = Buffer.alloc(8192)
  private randomAt = this.random.length
  private settledMs = Number.NEGATIVE_INFINITY

  constructor(options: TracerOptions) {
    this.options = options
    this.buckets = new CountedBuckets(options.countedBounds)
    this.rules = options.rules
    this.protocols = new Map(options.protocols.map(protocol => [protocol.name, protocol]))
    this.waiting = new Waiting(holdMs, (of, span, certain, linked) => this.emit(of, span, certain, linked))
    this.contexts = new Contexts(id => this.fill(id), options.governor)
    const { waiting } = this
    options.governor?.register({
      name: 'waiting spans',
      kind: 'intake',
      bytes: () => waiting.bytes,
      shed: bytes => waiting.shed(bytes),
    })
    const { edge } = options
    if (edge === undefined) return
    this.edges = new RequestEdges({
      tell: edge,
      isUnderWay: (server, sequence, ports) => this.contexts.isUnderWay(server, sequence, ports),
      now: options.now,
    })
  }

  /** Requests that got a parent, spans of servers that waited for their client in vain, and that wait now. */
  get joins(): { readonly joined: number; readonly expired: number; readonly waitingNow: number } {
    const { waiting, contexts } = this
    return {
      joined: waiting.joined + contexts.joined,
      expired: waiting.expired,
      waitingNow: waiting.waitingNow,
    }
  }

  /**
   * A request begins: what it says itself of its place in a trace stands in `context`, or in the exchange's
   * `traceparent`. Its process may make further requests for it from now on.
   */
  begin(exchange: Exchange, context: TraceContext = this.contextOf(exchange)): Request {
    const request = this.contexts.begin(
      this.start(exchange),
      this.rules.readContext ? context : undefined,
      this.options.now(),
    )
    if (!request.server) this.beginClient(request)
    if (request.blocking && request.number !== 0) this.requests.begin(request)
    return request
  }

  /** The same of one whose beginning was not told: what else its process did meanwhile is not known. */
  beginLate(exchange: Exchange, context?: TraceContext): Request {
    const request = this.begin(exchange, context)
    request.alone = false
    return request
  }

  /** Whether `linkOf` is going to be asked; off at first. */
  linkSamples(on: boolean): void {
    if (on) this.requests.start()
    else this.requests.stop()
  }

  /**
   * The span of a request that a thread was sampled at work on, by the number that the kernel side gave it (see
   * `requestNumber`). Undefined where there is none, where it is not certain, or while the span waits for its client,
   * which is half a second at most.
   */
  linkOf(number: number): SpanLink | undefined {
    const { requests, contexts } = this
    this.settle()
    const link = requests.linkOf(number)
    if (link !== undefined) return link
    const request = requests.underWay(number)
    if (request === undefined) return undefined
    contexts.resolve(request)
    return this.rules.ratio >= 1 || this.isInRatio(request.traceId)
      ? linkTo(request.traceId, request.spanId)
      : undefined
  }

  /** A thread was started by another one of its process. */
  thread(pid: number, parentTid: number, tid: number): void {
    this.contexts.thread(pid, parentTid, tid)
  }

  /** An exchange that the kernel side framed is over. */
  exchange(exchange: Exchange): void {
    const { call } = this
    const request = this.contexts.find(this.start(exchange))
    if (this.read(exchange) === undefined) {
      if (request !== undefined) this.contexts.forget(request)
      this.lost(1)
      this.options.drop('unreadable', 1)
      return
    }
    this.finish(exchange, call, request ?? this.beginLate(exchange))
  }

  /** A call is over, whose exchange is known as far as the connection tells. */
  finish(exchange: Exchange, call: Call, request: Request): void {
    const { options, contexts } = this
    const nowMs = options.now()
    this.ports.called(exchange)
    const exported = this.spanExports.told(exchange, call, nowMs)
    if (exported !== 'no') {
      this.telemetry++
      contexts.forget(request)
      if (exported === 'own_spans') options.exports?.(exchange)
      return
    }
    let hidden = options.hidden?.(exchange) ?? ''
    if (hidden === 'instrumented' && this.spanExports.isRelay(exchange.pid, nowMs)) hidden = ''
    if (hidden === 'not_selected') {
      this.unselected++
      contexts.forget(request)
      return
    }
    this.collected.set(call.signalType, (this.collected.get(call.signalType) ?? 0) + 1)
    const resource = options.resourceOf(exchange)
    if (call.duration !== undefined)
      options.red.observe(resource, call.duration, call.dimensions, exchange.durationNs)
    const unwanted = call.path !== '' && this.rules.excludedPath(call.path)
    if (!unwanted) this.edges?.ended(exchange, call, request, resource)
    if (unwanted || hidden !== '') {
      options.drop(unwanted ? 'excluded_path' : hidden, 1)
      contexts.forget(request)
      return
    }
    const pressure = options.governor?.pressure ?? 0
    const over =
      pressure >= countingPressure ? 'memory_limit' : (options.overBudget?.(exchange, call, resource) ?? '')
    if (over !== '') {
      options.drop(over, 1)
      contexts.forget(request)
      return
    }
    this.describe(exchange, call, pressure >= briefPressure ? briefLength : Number.POSITIVE_INFINITY)
    this.place(exchange, call, request, resource, nowMs)
  }

  /** It came to nothing: no span tells of it. */
  forget(request: Request): void {
    this.contexts.forget(request)
  }

  /** Adds exchanges that the kernel only counted to the metrics. Their spans are counted as dropped where they were. */
  counted(exchange: Exchange, count: number, sumNs: number, buckets: ArrayLike<number>): void {
    const { options, call } = this
    const protocol = this.read(exchange)
    if (protocol === undefined) {
      this.lost(count)
      return
    }
    this.ports.called(exchange, count)
    if (options.hidden?.(exchange) === 'not_selected') {
      this.unselected += count
      return
    }
    this.collected.set(call.signalType, (this.collected.get(call.signalType) ?? 0) + count)
    const { duration, dimensions } = call
    if (duration === undefined) return
    const own = this.buckets.of(duration.bounds, buckets)
    options.red.merge(options.resourceOf(exchange), duration, dimensions, count, sumNs, own)
  }

  /** Counts exchanges of which nothing is known but that they were there. */
  lost(exchanges: number): void {
    if (exchanges > 0) this.collected.set('unknown', (this.collected.get('unknown') ?? 0) + exchanges)
  }

  /** Hands on the spans whose other side did not show up in time. To be called a few times a second. */
  tick(): void {
    const nowMs = this.options.now()
    this.waiting.expire(nowMs)
    this.edges?.expire(nowMs)
    this.contexts.expire(nowMs)
  }

  /** Hands on all that waits. */
  flush(): void {
    this.waiting.expire(Number.POSITIVE_INFINITY)
    this.edges?.expire(Number.POSITIVE_INFINITY)
  }

  private read(exchange: Exchange): Protocol | undefined {
    const { call } = this
    const protocol = this.protocols.get(exchange.protocol)
    if (protocol === undefined) return undefined
    call.clear()
    if (protocol.parse !== undefined) return protocol.parse(exchange, call) ? protocol : undefined
    if (protocol.count === undefined) return undefined
    protocol.count(exchange, call)
    return protocol
  }

  /** Fills the span with all but its place in a trace, and leaves out texts that are longer than `mostLength`. */
  private describe(exchange: Exchange, call: Call, mostLength: number): void {
    const { span } = this
    span.name = call.name
    span.kind = call.kind
    span.startUs = exchange.startUs
    span.endUs = exchange.endUs
    span.status = call.error === '' ? StatusCode.unset : StatusCode.error
    span.statusMessage = ''
    span.droppedAttributes = 0
    span.traceState = ''
    span.attributes.clear()
    for (let i = 0; i < call.attributes.size; i++) {
      const value = call.attributes.values[i]!
      if (typeof value === 'string' && value.length > mostLength) span.droppedAttributes++
      else span.attributes.add(call.attributes.keys[i]!, value)
    }
  }

  private place(exchange: Exchange, call: Call, request: Request, resource: Resource, nowMs: number): void {
    const { span, contexts } = this
    const { local, server } = request
    const joinable = local && request.sequence !== 0
    const client = server ? contexts.clientOf(request) : undefined
    const mayWait = server && joinable && client === undefined && (!request.resolved || request.orphan)
    if (!mayWait) contexts.resolve(request)
    else if (request.orphan) span.traceId.set(request.traceId)
    else this.fill(span.traceId)
    if (client !== undefined) meet(span, client)
    if (!server) {
      // The hooks run at the end of a call, when the other side may already have gone on: a child lies in its parent.
      span.startUs = Math.min(span.startUs, request.childStartUs)
      span.endUs = Math.max(span.endUs, request.childEndUs)
    }
    span.spanId.set(request.spanId)
    const certain = this.certain(exchange, call)
    const linked = linkedNumber(exchange, request)
    if (mayWait) {
      span.parentSpanId.fill(0)
      span.flags = 1
      span.traceState = ''
      this.waiting.hold(
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
    this.emit(resource, span, certain, linked)
  }

  /** Lets spans wait no longer whose ids somebody needs. Many are asked for at a time. */
  private settle(): void {
    const nowMs = this.options.now()
    if (nowMs - this.settledMs < 100) return
    this.settledMs = nowMs
    this.waiting.settle(nowMs, linkedHoldMs)
  }

  private emit(resource: Resource, span: Span, certain: boolean, linked: number): void {
    const { options } = this
    if (!certain && !this.isInRatio(span.traceId)) {
      options.drop('sampled', 1)
      return
    }
    if (linked !== 0) this.requests.end(linked, span.traceId, span.spanId)
    options.emit(resource, options.scope, span)
  }

  /** The server's side of a client's request may have been told before. */
  private beginClient(request: Request): void {
    const { contexts, startOf } = this
    const held =
      request.local && request.sequence !== 0 ? this.waiting.find(request.sequence, request.ports) : undefined
    contexts.join(request, startOf.doubt, held?.decided === true ? held.span.traceId : undefined)
    if (held === undefined) return
    const { span } = held
    contexts.resolve(request)
    if (held.decided && !isSameTrace(span.traceId, request.traceId)) {
      this.waiting.parted(held)
      return
    }
    span.traceId.set(request.traceId)
    span.parentSpanId.set(request.spanId)
    span.flags = flagsWithRemoteParent | (request.flags & 3)
    span.traceState = request.state
    meet(span, request)
    this.waiting.found(held)
  }

  /** What names the request, for `contexts`; filled again for each. */
  private start(exchange: Exchange): Start {
    const { startOf } = this
    const { server, sequence, localPort, peerPort } = exchange
    startOf.server = server || exchange.consumes
    // What a broker hands out has no other side at its beginning: the producer is long gone.
    startOf.sequence = exchange.consumes ? 0 : sequence
    startOf.clientPort = server ? peerPort : localPort
    startOf.serverPort = server ? localPort : peerPort
    startOf.pid = exchange.pid
    startOf.tid = exchange.tid
    startOf.blocking = exchange.blocking
    startOf.doubt = exchange.doubt
    startOf.number = this.requests.isOn ? exchange.request : 0
    startOf.local = this.options.isLocal(exchange.peerAddress)
    startOf.startUs = exchange.startUs
    return startOf
  }

  private readonly startOf = new Start()

  /** What a `traceparent` that the kernel side found says. */
  private contextOf(exchange: Exchange): TraceContext {
    const { context } = this
    context.clear()
    const { bytes, traceparentStart, traceparentEnd } = exchange
    if (exchange.moreContext) readTraceHeaders(bytes, exchange.requestStart, exchange.requestEnd, context)
    // The head may have been cut before it.
    if (context.flags < 0 && traceparentEnd > traceparentStart)
      context.flags = parseTraceparent(
        bytes,
        traceparentStart,
        traceparentEnd,
        context.traceId,
        context.spanId,
      )
    return context
  }

  /** Kept whatever its trace. */
  private certain(exchange: Exchange, call: Call): boolean {
    const { rules } = this
    return (
      rules.ratio >= 1 ||
      (rules.alwaysErrors && call.error !== '') ||
      (rules.alwaysSlow && exchange.durationNs > rules.slowNs)
    )
  }

  /**
   * Decides by the trace id, alike for all its spans and as OpenTelemetry's samplers do: its last 7 bytes are random
   * (W3C Trace Context level 2), and what lies above the threshold is kept. Of them 6 are precise enough.
   */
  private isInRatio(traceId: Uint8Array): boolean {
    let value = 0
    for (let i = 9; i < 15; i++) value = value * 256 + traceId[i]!
    return value >= (1 - this.rules.ratio) * 2 ** 48
  }

  private fill(id: Uint8Array): void {
    if (this.randomAt + id.length > this.random.length) {
      randomFillSync(this.random)
      this.randomAt = 0
    }
    for (let i = 0; i < id.length; i++) id[i] = this.random[this.randomAt + i]!
    this.randomAt += id.length
  }
}

/**
 * The number under which samples are linked to a request that is over, 0 where they are not: an event loop may have
 * gone on with another one, unless there was none.
 */
function linkedNumber(exchange: Exchange, request: Request): number {
  const certain = request.blocking || (request.alone && !exchange.doubt)
  return exchange.sampled && certain ? request.number : 0
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

/** A server's span meets its client: it lies within it, as far as that is known, and the client will lie around it. */
function meet(span: Span, client: Request): void {
  if (client.ended) {
    span.startUs = Math.max(client.startUs, Math.min(span.startUs, client.endUs))
    span.endUs = Math.max(span.startUs, Math.min(span.endUs, client.endUs))
  } else {
    client.childStartUs = Math.min(client.childStartUs, span.startUs)
    client.childEndUs = Math.max(client.childEndUs, span.endUs)
  }
}
