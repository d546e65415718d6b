// Spans of the agent's own work: reloads, flushes, exports, requests to the management API.

import { randomFillSync } from 'node:crypto'
import { GrpcStatus } from '../../foundation/lib/grpc-status.ts'
import { bareHost } from '../../foundation/lib/host-port.ts'
import { type Resource, resource, type Scope } from '../../foundation/model/resource.ts'
import { Span, SpanKind, StatusCode } from '../../foundation/model/span.ts'
import type { ExportRequest } from '../../pipeline/send-loop.ts'

export interface SelfTracingSettings {
  readonly enabled: boolean
  /** Part of the operations that is traced, 0 to 1. One within another is traced as that is. */
  readonly sampleRate: number
}

/** Who the agent is. */
export interface SelfIdentity {
  readonly serviceName: string
  readonly instanceId: string
  readonly version: string
  readonly hostName: string
}

export interface SelfTracerOptions {
  /** Where finished spans go; nothing of a span may be kept after the call. */
  readonly emit: (resource: Resource, scope: Scope, span: Span) => void
  readonly resource: SelfIdentity
  readonly settings: SelfTracingSettings
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number
}

/** Work that is under way. Its span is handed on when it ends, and only then. */
export interface Operation {
  /** Whether there will be a span: what costs something to find out need not be asked for else. */
  readonly recording: boolean
  attribute(key: string, value: string | number | boolean): void
  /** Says that it failed: `errorType` is a short word out of few, as `error.type` has it. */
  fail(errorType: string): void
  /** A second call does nothing. */
  end(): void
}

/** A request to the management API that was answered. */
export interface AnsweredRequest {
  readonly method: string
  /** The path as the API declares it, '' where it knows none. */
  readonly route: string
  readonly status: number
  readonly seconds: number
}

/** More would be a fault of the agent, and must not crowd out what it is there for. */
const maxPerSecond = 100

const notTraced: Operation = { recording: false, attribute() {}, fail() {}, end() {} }

/** Makes spans of internal operations, by `self_telemetry.tracing`. An operation that is not traced costs nothing. */
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
  /** Spans of ours since receivers last took any. */
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

  /** Spans that were handed on. */
  get made(): number {
    return this.#made
  }

  /** Operations that were to be traced and were not, because of more than 100 in a second. */
  get lost(): number {
    return this.#lost
  }

  /** Holds for what begins from now on. */
  configure({ enabled, sampleRate }: SelfTracingSettings): void {
    this.#sampleRate = enabled ? sampleRate : 0
  }

  /** Begins an operation, within another where there is a `parent`. */
  begin(name: string, kind: SpanKind = SpanKind.internal, parent?: Operation): Operation {
    return this.#begin(name, kind, 0, parent)
  }

  /**
   * Traces an export request that ended, by the conventions for clients of its protocol. One that carried nothing but
   * spans of ours is left out, or each would be the reason for another.
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

/** Returns the status, or the name of a fault of the transport, which has none. */
function ofGrpc(operation: Operation, method: string, { errorType }: ExportRequest): string {
  operation.attribute('rpc.system.name', 'grpc')
  operation.attribute('rpc.method', method)
  const code = errorType === '' ? 'ok' : errorType
  if (!Object.hasOwn(GrpcStatus, code)) return errorType
  const status = code.toUpperCase()
  operation.attribute('rpc.response.status_code', status)
  return status
}

/** As `ofGrpc`. A refusal has its status, whatever else it means to the pipeline. */
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
  /** From the clock to microseconds since the epoch; a whole trace has the same, so that it is of one piece. */
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
