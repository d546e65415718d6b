import { parseEndpoint } from '../../foundation/lib/endpoint.ts'
import { GrpcClient } from '../../foundation/lib/grpc-client.ts'
import { GrpcError, GrpcStatus } from '../../foundation/lib/grpc-status.ts'
import { hostPort } from '../../foundation/lib/host-port.ts'
import { type Batch, type Receipt, SendError, type Sender } from '../../foundation/model/batch.ts'
import type { Signal } from '../../foundation/model/signal.ts'
import type { ExporterOptions } from './exporter-options.ts'
import { messageLimit } from './message-limit.ts'
import { decodeReceipt, decodeStatus } from './otlp/response.ts'
import { requestHeaders } from './request-headers.ts'
import { senderOn } from './sender.ts'
import { ZstdFallback } from './zstd-fallback.ts'

export type { ExporterOptions }

/** Fully-qualified names of the methods (opentelemetry-proto 1.11). */
const methods: Record<Signal, string> = {
  traces: 'opentelemetry.proto.collector.trace.v1.TraceService/Export',
  metrics: 'opentelemetry.proto.collector.metrics.v1.MetricsService/Export',
  logs: 'opentelemetry.proto.collector.logs.v1.LogsService/Export',
  profiles: 'opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export',
}

/** OTLP specification, "Failures", table of gRPC codes. RESOURCE_EXHAUSTED is retryable only with a RetryInfo. */
const retryable = new Set<number>([
  GrpcStatus.cancelled,
  GrpcStatus.deadline_exceeded,
  GrpcStatus.aborted,
  GrpcStatus.out_of_range,
  GrpcStatus.unavailable,
  GrpcStatus.data_loss,
])

/** Maximum size of an answer (OTLP specification). */
const maxResponseBytes = 4 * 1024 * 1024
const connectTimeoutMs = 10_000

/** Sends OTLP over gRPC. Throws an `Error` for options that can never work. */
export function otlpGrpc(options: ExporterOptions): Sender & { readonly connected: boolean } {
  const { host, port, secure, path } = parseEndpoint(options.endpoint, options.insecure)
  if (path !== '')
    throw new Error(`cannot use the OTLP endpoint "${options.endpoint}": gRPC has no paths; delete ${path}`)
  const endpoint = hostPort(host, port)
  const headers = requestHeaders(options.headers, options.version, 'gRPC')
  const tls = secure ? options.tls : undefined
  const { proxy, timeoutMs } = options
  const client = new GrpcClient({ host, port, tls, proxy, connectTimeoutMs, maxResponseBytes })

  const fallback = new ZstdFallback()

  async function exchange({ signal, body: message, encoding }: Batch, stop: AbortSignal): Promise<Receipt> {
    try {
      const request = { path: `/${methods[signal]}`, message, encoding, headers, timeoutMs }
      return receiptOf(await client.call(request, stop))
    } catch (error) {
      if (error instanceof GrpcError && error.taken) return unread(error)
      throw sendError(`cannot export ${signal} to ${endpoint}`, error)
    }
  }

  async function send(batch: Batch, stop: AbortSignal): Promise<Receipt> {
    try {
      return await fallback.run(batch, options.compression, compressed => exchange(compressed, stop))
    } catch (error) {
      throw sendError(`cannot export ${batch.signal} to ${endpoint}`, error)
    }
  }

  return senderOn(client, endpoint, signal => ({ protocol: 'grpc', method: methods[signal] }), send)
}

/** Receipt of an accepted batch: an unreadable answer must not cause a retry. */
function receiptOf(body: Uint8Array): Receipt {
  try {
    return decodeReceipt(body)
  } catch (error) {
    return unread(error as Error)
  }
}

function unread({ message }: Error): Receipt {
  return { rejected: 0, message: `cannot read the answer: ${message}` }
}

function sendError(what: string, error: unknown): SendError {
  if (error instanceof SendError) return error
  if (!(error instanceof GrpcError))
    return new SendError(`${what}: ${(error as Error).message}`, {
      type: 'internal',
      retryable: false,
      cause: error,
    })
  const retryAfterMs = error.details ? retryDelay(error.details) : undefined
  const limitBytes = retryAfterMs === undefined ? sizeLimit(error) : undefined
  if (limitBytes !== undefined)
    return new SendError(`${what}: ${error.message}`, {
      type: 'too_large',
      retryable: false,
      limitBytes,
      cause: error,
    })
  return new SendError(`${what}: ${error.message}`, {
    type: error.type,
    retryable:
      retryable.has(error.code) ||
      (error.code === GrpcStatus.resource_exhausted && retryAfterMs !== undefined),
    retryAfterMs: retryAfterMs ?? 0,
    cause: error,
  })
}

/** Limit of a receiver that rejected the request as too large, 0 if not reported; undefined for other errors. */
function sizeLimit(error: GrpcError): number | undefined {
  if (error.type === 'too_large') return 0
  // Servers in Rust (tonic) answer OUT_OF_RANGE, which would be retried unchanged for ever.
  if (error.code !== GrpcStatus.resource_exhausted && error.code !== GrpcStatus.out_of_range) return undefined
  return messageLimit(error.message)
}

function retryDelay(details: Uint8Array): number | undefined {
  try {
    return decodeStatus(details).retryAfterMs
  } catch {
    return undefined // malformed details count as missing
  }
}
