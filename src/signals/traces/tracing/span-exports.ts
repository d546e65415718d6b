import { BoundedMap } from '../../../foundation/lib/bounded-map.ts'
import type { Operation } from '../../../foundation/model/stream.ts'

/** Ports of OTLP receivers (gRPC, HTTP): export requests to other ports go to an application. */
const receiverPorts: ReadonlySet<number> = new Set([4317, 4318])
/** How long a process counts as a relay of others' spans, and for how many processes that is remembered. */
const relayMs = 3_600_000
const maxRelays = 4_096

/**
 * Recognises exports of telemetry, and whose spans they carry. The client, which may be a proxy, chooses path, type and
 * body: they alone must not make a process's spans or metrics disappear.
 *
 * A proxy forwards an export just as an application exports its own spans. The difference: the proxy received one.
 * Whether it serves a request at the time does not matter, because a busy application always serves some. As the
 * proxy's own side is reported last, call `isRelay` again before a process's spans are left out.
 */
export class SpanExports {
  /** When processes last received spans, by pid. */
  readonly #relays = new BoundedMap<number, number>(maxRelays)

  /** Whether a finished call is an export of telemetry, and whether it shows that the process exports its own spans. */
  exportKind(operation: Operation, nowMs: number): 'no' | 'telemetry' | 'own_spans' {
    const { server, pid, localPort } = operation.connection
    if (server && takesSpans(operation)) this.#relays.set(pid, nowMs)
    if (!operation.call.telemetry) return 'no'
    if (server) return receiverPorts.has(localPort) ? 'telemetry' : 'no'
    return isTraceExport(operation) && !this.isRelay(pid, nowMs) ? 'own_spans' : 'telemetry'
  }

  /** Whether a process may relay spans of others: it recently received some. */
  isRelay(pid: number, nowMs: number): boolean {
    return nowMs - (this.#relays.get(pid) ?? Number.NEGATIVE_INFINITY) < relayMs
  }
}

/** The gRPC method for exporting spans. */
const traceMethod = 'opentelemetry.proto.collector.trace.v1.TraceService/Export'

/**
 * Spans were exported by OTLP, over HTTP or gRPC, and a receiver accepted them. A process that exports only metrics and
 * logs still needs spans for its requests.
 */
function isTraceExport({ status, call }: Operation): boolean {
  const { path, name, error, signalType, dimensions } = call
  if (error !== '') return false
  if (signalType === 'grpc')
    return name === traceMethod && dimensions.get('rpc.response.status_code') === 'OK'
  return path.endsWith('/v1/traces') && status >= 200 && status < 300
}

/**
 * A server received a possible export of spans and did not reject it, so it may have forwarded it. It may have changed
 * the path (a prefix, escapes, dots) or the protocol (gRPC-Web), so any path that mentions traces counts, and so does
 * one that was cut or is unknown. A wrong match causes duplicate spans, never missing ones.
 */
function takesSpans({ status, call }: Operation): boolean {
  const { path, name, signalType, dimensions } = call
  if (signalType === 'grpc') return name === traceMethod || dimensions.get('rpc.method') === undefined
  if (signalType !== 'http' || status >= 400 || !name.startsWith('POST')) return false
  // The version comes after the path.
  if (path === '' || dimensions.get('network.protocol.version') === undefined) return true
  const plain = path.includes('%') ? path.replace(/%[0-9a-f]{2}/gi, unescaped) : path
  return plain.includes('traces') || plain.includes('TraceService')
}

function unescaped(escaped: string): string {
  return String.fromCharCode(Number.parseInt(escaped.slice(1), 16))
}
