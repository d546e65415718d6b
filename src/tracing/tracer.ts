import { randomFillSync } from 'node:crypto'
import { Call, type Exchange, type Protocol } from '../model/exchange.ts'
import type { Resource, Scope } from '../model/resource.ts'
import { Span, SpanKind, StatusCode } from '../model/span.ts'
import { flagsWithRemoteParent, Join } from './join.ts'
import type { RedTable } from './red.ts'
import { parseTraceparent } from './traceparent.ts'

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
  /** Whose exchange it is. */
  readonly resourceOf: (exchange: Exchange) => Resource
  /** Where finished spans go. The span is reused. */
  readonly emit: (resource: Resource, scope: Scope, span: Span) => void
  /** Counts spans that are not passed on, by reason. */
  readonly drop: (reason: string, spans: number) => void
  readonly rules: TracerRules
  /** Whether an address belongs to this host, so that the other side may be seen too. */
  readonly isLocal: (address: string) => boolean
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number
}

/** How long one side of an exchange within the host waits for the other. */
const holdMs = 2000

/** Makes spans and request metrics of exchanges. Allocates nothing per exchange once its caches are warm. */
export class Tracer {
  /** Exchanges seen, by `signal_type`; `unknown` are those that no protocol could read. */
  readonly collected = new Map<string, number>()
  /** Exports of telemetry by instrumented applications: neither spans nor metrics. */
  telemetry = 0
  /** Holds from the next exchange on; what waits for its other side is not asked again. */
  rules: TracerRules
  private readonly options: TracerOptions
  private readonly protocols: ReadonlyMap<string, Protocol>
  private readonly call = new Call()
  private readonly span = new Span()
  private readonly join: Join
  private readonly random = Buffer.alloc(8192)
  private randomAt = this.random.length

  constructor(options: TracerOptions) {
    this.options = options
    this.rules = options.rules
    this.protocols = new Map(options.protocols.map(protocol => [protocol.name, protocol]))
    this.join = new Join(holdMs, (resource, span) => options.emit(resource, options.scope, span))
  }

  /** Spans of servers that found their client on this host, that waited for one in vain, and that wait now. */
  get joins(): { readonly joined: number; readonly expired: number; readonly waitingNow: number } {
    return this.join
  }

  exchange(exchange: Exchange): void {
    const { options, call } = this
    const protocol = this.read(exchange)
    if (protocol === undefined) {
      this.lost(1)
      options.drop('unreadable', 1)
      return
    }
    if (call.telemetry) {
      this.telemetry++
      return
    }
    this.collected.set(protocol.signalType, (this.collected.get(protocol.signalType) ?? 0) + 1)
    const resource = options.resourceOf(exchange)
    options.red.observe(
      resource,
      exchange.server ? protocol.serverDuration : protocol.clientDuration,
      call.dimensions,
      exchange.durationNs,
    )
    if (call.path !== '' && this.rules.excludedPath(call.path)) {
      options.drop('excluded_path', 1)
      return
    }
    this.describe(exchange)
    this.finish(exchange, resource)
  }

  /** Adds exchanges that the kernel only counted to the metrics. Their spans are counted as dropped where they were. */
  counted(exchange: Exchange, count: number, sumNs: number, buckets: ArrayLike<number>): void {
    const { options, call } = this
    const protocol = this.read(exchange)
    if (protocol === undefined) {
      this.lost(count)
      return
    }
    this.collected.set(protocol.signalType, (this.collected.get(protocol.signalType) ?? 0) + count)
    options.red.merge(
      options.resourceOf(exchange),
      exchange.server ? protocol.serverDuration : protocol.clientDuration,
      call.dimensions,
      count,
      sumNs,
      buckets,
    )
  }

  /** Counts exchanges of which nothing is known but that they were there. */
  lost(exchanges: number): void {
    if (exchanges > 0) this.collected.set('unknown', (this.collected.get('unknown') ?? 0) + exchanges)
  }

  /** Hands on the spans whose other side did not show up in time. To be called a few times a second. */
  tick(): void {
    this.join.expire(this.options.now())
  }

  /** Hands on all that waits. */
  flush(): void {
    this.join.expire(Number.POSITIVE_INFINITY)
  }

  private read(exchange: Exchange): Protocol | undefined {
    const { call } = this
    const protocol = this.protocols.get(exchange.protocol)
    if (protocol === undefined) return undefined
    call.name = ''
    call.path = ''
    call.error = ''
    call.telemetry = false
    call.attributes.clear()
    call.dimensions.clear()
    return protocol.parse(exchange, call) ? protocol : undefined
  }

  /** Fills the span with all but its place in a trace. */
  private describe(exchange: Exchange): void {
    const { call, span } = this
    span.name = call.name
    span.kind = exchange.server ? SpanKind.server : SpanKind.client
    span.startUs = exchange.startUs
    span.endUs = exchange.endUs
    span.status = call.error === '' ? StatusCode.unset : StatusCode.error
    span.statusMessage = ''
    span.droppedAttributes = 0
    span.traceState = ''
    span.attributes.clear()
    for (let i = 0; i < call.attributes.size; i++)
      span.attributes.add(call.attributes.keys[i]!, call.attributes.values[i]!)
  }

  private finish(exchange: Exchange, resource: Resource): void {
    const { span, options } = this
    const nowMs = options.now()
    this.fill(span.spanId)
    const flags =
      this.rules.readContext && exchange.traceparentEnd > exchange.traceparentStart
        ? parseTraceparent(
            exchange.bytes,
            exchange.traceparentStart,
            exchange.traceparentEnd,
            span.traceId,
            span.parentSpanId,
          )
        : -1
    if (flags >= 0) {
      // What the sender says is more than what we could guess. A server's parent is in another process; a client's may
      // be in its own (its SDK wrote the header) or be the caller whose header it passes on.
      span.flags = exchange.server ? flagsWithRemoteParent | flags : flags
      if (this.kept(exchange)) options.emit(resource, options.scope, span)
      return
    }
    span.parentSpanId.fill(0)
    span.flags = 1
    if (exchange.sequence !== 0 && options.isLocal(exchange.peerAddress)) {
      // Both sides get the trace from what they both know, so that the ratio decides alike for both.
      this.localTraceId(exchange)
      if (!this.kept(exchange)) return
      if (!exchange.server) {
        this.join.client(exchange.sequence, exchange.localPort, exchange.peerPort, span, nowMs)
      } else if (
        !this.join.server(exchange.sequence, exchange.peerPort, exchange.localPort, resource, span, nowMs)
      ) {
        return
      }
    } else {
      this.fill(span.traceId)
      if (!this.kept(exchange)) return
    }
    options.emit(resource, options.scope, span)
  }

  /** The trace id of an exchange within the host: eight bytes of a secret, mixed with what names the exchange. */
  private localTraceId(exchange: Exchange): void {
    const { traceId } = this.span
    const clientPort = exchange.server ? exchange.peerPort : exchange.localPort
    const serverPort = exchange.server ? exchange.localPort : exchange.peerPort
    const a = mix(exchange.sequence ^ this.secret[0]!)
    const b = mix(((clientPort << 16) | serverPort) ^ a ^ this.secret[1]!)
    const c = mix(b ^ this.secret[2]!)
    const d = mix(a ^ Math.imul(b, 0x9e3779b1) ^ this.secret[3]!)
    put32(traceId, 0, a)
    put32(traceId, 4, b)
    put32(traceId, 8, c)
    put32(traceId, 12, d)
  }

  private readonly secret = new Uint32Array(randomFillSync(new Uint8Array(16)).buffer)

  /**
   * Decides by the trace id, alike for all its spans and as OpenTelemetry's samplers do: its last 7 bytes are random
   * (W3C Trace Context level 2), and what lies above the threshold is kept. Of them 6 are precise enough.
   */
  private kept(exchange: Exchange): boolean {
    const { rules, span, call } = this
    if (rules.ratio >= 1) return true
    if (rules.alwaysErrors && call.error !== '') return true
    if (rules.alwaysSlow && exchange.durationNs > rules.slowNs) return true
    const { traceId } = span
    let value = 0
    for (let i = 9; i < 15; i++) value = value * 256 + traceId[i]!
    if (value >= (1 - rules.ratio) * 2 ** 48) return true
    this.options.drop('sampled', 1)
    return false
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

function mix(x: number): number {
  let h = x | 0
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}

function put32(to: Uint8Array, at: number, value: number): void {
  to[at] = value >>> 24
  to[at + 1] = value >>> 16
  to[at + 2] = value >>> 8
  to[at + 3] = value
}
