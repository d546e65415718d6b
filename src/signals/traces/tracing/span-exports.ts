import { BoundedMap } from '../../../foundation/lib/bounded-map.ts'
import type { Operation } from '../../../foundation/model/stream.ts'

/** Where receivers of OTLP listen (gRPC, HTTP): whoever asks for telemetry elsewhere is asking an application. */
const receiverPorts: ReadonlySet<number> = new Set([4317, 4318])
/** How long a process is taken for one that passes spans of others on, and of how many that is known. */
const relayMs = 3_600_000
const maxRelays = 4_096

/**
 * Tells exports of telemetry from other calls, and whose spans they are. Path, type and body are the choice of whoever
 * asked, be it a proxy: by them alone nobody may make a process's spans or metrics vanish.
 *
 * A proxy that passes an export on sends it as an application does that exports its own spans. What tells them apart: the
 * proxy was sent one. Whether it serves a request meanwhile does not: an application that is busy always serves some. As
 * the proxy's own side is told last, `isRelay` is to be asked again before a process's spans are left out.
 */
export class SpanExports {
  /** When processes were last sent spans, by pid. */
  readonly #relays = new BoundedMap<number, number>(maxRelays)

  /** Whether a call that is over is an export of telemetry, and by it the process is one that exports its own spans. */
  exportKind(operation: Operation, nowMs: number): 'no' | 'telemetry' | 'own_spans' {
    const { server, pid, localPort } = operation.connection
    if (server && takesSpans(operation)) this.#relays.set(pid, nowMs)
    if (!operation.call.telemetry) return 'no'
    if (server) return receiverPorts.has(localPort) ? 'telemetry' : 'no'
    return isTraceExport(operation) && !this.isRelay(pid, nowMs) ? 'own_spans' : 'telemetry'
  }

  /** Whether a process may pass spans of others on: it was sent some of late. */
  isRelay(pid: number, nowMs: number): boolean {
    return nowMs - (this.#relays.get(pid) ?? Number.NEGATIVE_INFINITY) < relayMs
  }
}

/** The gRPC method that spans are exported by. */
const traceMethod = 'opentelemetry.proto.collector.trace.v1.TraceService/Export'

/**
 * Spans were exported by OTLP, over HTTP or gRPC, and a receiver took them. Metrics and logs of its own are no reason to
 * say nothing of a process's requests.
 */
function isTraceExport({ status, call }: Operation): boolean {
  const { path, name, error, signalType, dimensions } = call
  if (error !== '') return false
  if (signalType === 'grpc')
    return name === traceMethod && dimensions.get('rpc.response.status_code') === 'OK'
  return path.endsWith('/v1/traces') && status >= 200 && status < 300
}

/**
 * A server was sent what may be an export of spans, and did not refuse it: it may have passed it on. It may have changed
 * the path (a prefix, escapes, dots) or its protocol (gRPC-Web), so that any that speaks of traces counts, and one that
 * was cut or is not known. Being wrong here costs spans that are told twice, not spans that are missing.
 */
function takesSpans({ status, call }: Operation): boolean {
  const { path, name, signalType, dimensions } = call
  if (signalType === 'grpc') return name === traceMethod || dimensions.get('rpc.method') === undefined
  if (signalType !== 'http' || status >= 400 || !name.startsWith('POST')) return false
  // The version stands behind the path.
  if (path === '' || dimensions.get('network.protocol.version') === undefined) return true
  const plain = path.includes('%') ? path.replace(/%[0-9a-f]{2}/gi, unescaped) : path
  return plain.includes('traces') || plain.includes('TraceService')
}

function unescaped(escaped: string): string {
  return String.fromCharCode(Number.parseInt(escaped.slice(1), 16))
}
