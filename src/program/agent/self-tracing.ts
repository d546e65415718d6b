// Spans of the agent's own work: reloads, flushes, exports, requests to the management API.

import { randomFillSync } from 'node:crypto'
import { GrpcStatus } from '../../foundation/lib/grpc-status.ts'
import { bareHost } from '../../foundation/lib/host-port.ts'
import { type Resource, resource, type Scope } from '../../foundation/model/resource.ts'
import { Span, SpanKind, StatusCode } from '../../foundation/model/span.ts'
import type { ExportRequest } from '../../pipeline/send-loop.ts'

export interface SelfTracingSettings {
  readonly enabled: boolean
  /** Fraction of operations to trace, 0 to 1. Nested ones follow their parent. */
  readonly sampleRate: number
}

/** The agent's identity. */
export interface SelfIdentity {
  readonly serviceName: string
  readonly instanceId: string
  readonly version: string
  readonly hostName: string
}

export interface SelfTracerOptions {
  /** Receives finished spans; nothing of a span may be kept after the call. */
  readonly emit: (resource: Resource, scope: Scope, span: Span) => void
  readonly resource: SelfIdentity
  readonly settings: SelfTracingSettings
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number
}

/** An operation in progress. Its span is emitted when it ends. */
export interface Operation {
  /** Whether there will be a span: if not, skip expensive attributes. */
  readonly recording: boolean
  attribute(key: string, value: string | number | boolean): void
  /** Marks it as failed: `errorType` is one of a few short words, as in `error.type`. */
  fail(errorType: string): void
  /** A second call does nothing. */
  end(): void
}

/** An answered request to the management API. */
export interface AnsweredRequest {
  readonly method: string
  /** The declared path of the API, '' if there is none. */
  readonly route: string
  readonly status: number
  readonly seconds: number
}

/** More would be a bug, and must not displace other data. */
const maxPerSecond = 100

const notTraced: Operation = { recording: false, attribute() {}, fail() {}, end() {} }

/** Makes spans of internal operations, by `self_telemetry.tracing`. An untraced operation costs nothing. */
export class SelfTracer {
  readonly #emit: SelfTracerOptions['emit']
  readonly #resource: Resource
  readonly #scope: Scope
  readonly #now: () => number
  readonly #finished = (span: Span) => this.#finish(span)
  #sampleRate = 0
  #made = 0
  #lost = 0
  #secondStart = Number.NEGATIVE_INFINITY
  #begunInSecond = 0
  /** Own spans since receivers last accepted any. */
  #unsent = 0

  constructor({ emit, resource: identity, settings, now }: SelfTracerOptions) {
    const { serviceName, instanceId, version, hostName } = identity
    this.#emit = emit
    this.#resource = resource({
      'service.name': serviceName,
      'service.instance.id': instanceId,
      'service.version': version,
      'host.name': hostName,
      'telemetry.sdk.name': 'svc',
      'telemetry.sdk.version': version,
      'telemetry.sdk.language': 'nodejs',
    })
    this.#scope = { name: 'svc/self', version }
    this.#now = now ?? (() => performance.now())
    this.configure(settings)
  }

  /** Emitted spans. */
  get made(): number {
    return this.#made
  }

  /** Sampled operations without a span because of the limit of 100 per second. */
  get lost(): number {
    return this.#lost
  }

  /** Applies to operations that begin from now on. */
  configure({ enabled, sampleRate }: SelfTracingSettings): void {
    this.#sampleRate = enabled ? sampleRate : 0
  }

  /** Begins an operation, nested if there is a `parent`. */
  begin(name: string, kind: SpanKind = SpanKind.internal, parent?: Operation): Operation {
    return this.#begin(name, kind, 0, parent)
  }

  /**
   * Traces a finished export request, by the conventions for clients of its protocol. Requests that carried only own
   * spans are skipped: each would cause another.
   */
  exportRequest(request: ExportRequest): void {
    const { endpoint, signal, errorType, latencySeconds, items, call } = request
    if (signal === 'traces') {
      const ours = items <= this.#unsent
      if (errorType === '') this.#unsent = 0
      if (ours) return
    }
    const name = call.protocol === 'grpc' ? call.method : 'POST'
    const operation = this.#begin(name, SpanKind.client, latencySeconds)
    if (!operation.recording) return
    const failure =
      call.protocol === 'grpc'
        ? ofGrpc(operation, call.method, request)
        : ofHttp(operation, call.url, request)
    const colon = endpoint.lastIndexOf(':')
    operation.attribute('server.address', bareHost(endpoint.slice(0, colon)))
    operation.attribute('server.port', Number(endpoint.slice(colon + 1)))
    operation.attribute('svc.signal', signal)
    operation.attribute('svc.items', items)
    if (errorType !== '') operation.fail(failure)
    operation.end()
  }

  /** Traces a request to the management API, by the conventions for HTTP servers. */
  apiRequest({ method, route, status, seconds }: AnsweredRequest): void {
    const operation = this.#begin(route === '' ? method : `${method} ${route}`, SpanKind.server, seconds)
    if (!operation.recording) return
    operation.attribute('http.request.method', method)
    if (route !== '') operation.attribute('http.route', route)
    operation.attribute('http.response.status_code', status)
    if (status >= 500) operation.fail(String(status))
    operation.end()
  }

  /** An operation that began `secondsAgo`. */
  #begin(name: string, kind: SpanKind, secondsAgo: number, parent?: Operation): Operation {
    if (!(parent?.recording ?? Math.random() < this.#sampleRate)) return notTraced
    const now = this.#now()
    if (!this.#hasRoom(now)) return notTraced
    const span = new Span()
    span.name = name
    span.kind = kind
    return new Recording(span, now - secondsAgo * 1000, parent, this.#now, this.#finished)
  }

  #hasRoom(now: number): boolean {
    if (now - this.#secondStart >= 1000) {
      this.#secondStart = now
      this.#begunInSecond = 0
    }
    if (this.#begunInSecond >= maxPerSecond) {
      this.#lost++
      return false
    }
    this.#begunInSecond++
    return true
  }

  #finish(span: Span): void {
    this.#made++
    this.#unsent++
    this.#emit(this.#resource, this.#scope, span)
  }
}

/** Returns the status, or the name of a transport error, which has none. */
function ofGrpc(operation: Operation, method: string, { errorType }: ExportRequest): string {
  operation.attribute('rpc.system.name', 'grpc')
  operation.attribute('rpc.method', method)
  const code = errorType === '' ? 'ok' : errorType
  if (!Object.hasOwn(GrpcStatus, code)) return errorType
  const status = code.toUpperCase()
  operation.attribute('rpc.response.status_code', status)
  return status
}

/** As `ofGrpc`. A rejection has its status, however the pipeline treats it. */
function ofHttp(operation: Operation, url: string, { errorType, httpStatus }: ExportRequest): string {
  operation.attribute('http.request.method', 'POST')
  operation.attribute('url.full', url)
  if (httpStatus === undefined) return errorType
  operation.attribute('http.response.status_code', httpStatus)
  return String(httpStatus)
}

class Recording implements Operation {
  readonly recording = true
  readonly #span: Span
  readonly #now: () => number
  /** Converts the clock to microseconds since the epoch; constant within a trace, so that it is consistent. */
  readonly #offsetUs: number
  readonly #finished: (span: Span) => void
  #ended = false

  constructor(
    span: Span,
    startMs: number,
    parent: Operation | undefined,
    now: () => number,
    finished: (span: Span) => void,
  ) {
    this.#span = span
    this.#now = now
    this.#finished = finished
    span.flags = 1 // sampled
    randomFillSync(span.spanId)
    if (parent instanceof Recording) {
      span.traceId.set(parent.#span.traceId)
      span.parentSpanId.set(parent.#span.spanId)
      this.#offsetUs = parent.#offsetUs
    } else {
      randomFillSync(span.traceId)
      this.#offsetUs = (Date.now() - now()) * 1000
    }
    span.startUs = startMs * 1000 + this.#offsetUs
  }

  attribute(key: string, value: string | number | boolean): void {
    this.#span.attributes.set(key, value)
  }

  fail(errorType: string): void {
    this.#span.status = StatusCode.error
    this.attribute('error.type', errorType)
  }

  end(): void {
    if (this.#ended) return
    this.#ended = true
    this.#span.endUs = this.#now() * 1000 + this.#offsetUs
    this.#finished(this.#span)
  }
}
