import { gzip as deflate } from 'node:zlib'
import { parseEndpoint } from '../lib/endpoint.ts'
import { GrpcClient } from '../lib/grpc-client.ts'
import { GrpcError, GrpcStatus } from '../lib/grpc-status.ts'
import type { TlsOptions } from '../lib/http2-connector.ts'
import { type Batch, type Receipt, SendError, type Sender } from '../model/batch.ts'
import type { Signal } from '../model/signal.ts'
import { decodeReceipt, decodeStatus } from './otlp/response.ts'

export interface OtlpGrpcOptions {
  /** `host`, `host:port`, or a URL whose scheme decides on TLS. */
  readonly endpoint: string
  /** Without TLS; only for an endpoint without a scheme. */
  readonly insecure: boolean
  /** Metadata of every request. A value of a key that ends in `-bin` goes as base64. */
  readonly headers: Readonly<Record<string, string>>
  readonly compression: 'gzip' | 'none'
  /** For one request, the making of a connection included. */
  readonly timeoutMs: number
  readonly tls: TlsOptions
  /** Of svc, for the user agent. */
  readonly version: string
}

/** opentelemetry-proto 1.11. */
const methods: Record<Signal, string> = {
  traces: '/opentelemetry.proto.collector.trace.v1.TraceService/Export',
  metrics: '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export',
  logs: '/opentelemetry.proto.collector.logs.v1.LogsService/Export',
  profiles: '/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export',
}

/** OTLP specification, "Failures", table of gRPC codes. RESOURCE_EXHAUSTED joins them with a RetryInfo. */
const retryable = new Set<number>([
  GrpcStatus.cancelled,
  GrpcStatus.deadline_exceeded,
  GrpcStatus.aborted,
  GrpcStatus.out_of_range,
  GrpcStatus.unavailable,
  GrpcStatus.data_loss,
])

/** The limit that the OTLP specification names for answers. */
const maxResponseBytes = 4 * 1024 * 1024
const connectTimeoutMs = 10_000
/** Below this the gzip frame eats what it saves. */
const minGzipBytes = 512

/** Sends OTLP over gRPC. Throws an `Error` where the options can never work. */
export function otlpGrpc(options: OtlpGrpcOptions): Sender & { readonly connected: boolean } {
  const { host, port, secure, path } = parseEndpoint(options.endpoint, options.insecure)
  if (path !== '')
    throw new Error(`cannot use the OTLP endpoint "${options.endpoint}": gRPC has no paths; delete ${path}`)
  const endpoint = `${host.includes(':') ? `[${host}]` : host}:${port}`
  const headers = metadata(options)
  const tls = secure ? options.tls : undefined
  const client = new GrpcClient({ host, port, tls, connectTimeoutMs, maxResponseBytes })

  let underWay = 0
  let ended: (() => void) | undefined
  let closed: Promise<void> | undefined

  async function send(batch: Batch, stop: AbortSignal): Promise<Receipt> {
    underWay++
    const gzip = options.compression === 'gzip' && batch.body.length >= minGzipBytes
    try {
      const message = gzip ? await compress(batch.body) : batch.body
      const path = methods[batch.signal]
      const body = await client.call({ path, message, gzip, headers, timeoutMs: options.timeoutMs }, stop)
      return receiptOf(body)
    } catch (error) {
      throw sendError(`cannot export ${batch.signal} to ${endpoint}`, error)
    } finally {
      underWay--
      if (underWay === 0) ended?.()
    }
  }

  async function close(): Promise<void> {
    if (underWay > 0) await new Promise<void>(resolve => (ended = resolve))
    client.close()
  }

  return {
    endpoint,
    get connected() {
      return client.connected
    },
    send,
    close: () => {
      closed ??= close()
      return closed
    },
  }
}

/** Keys that the protocol itself writes. */
const reserved = /^(:|grpc-)|^(connection|content-length|content-type|host|te|transfer-encoding|user-agent)$/

function metadata({ headers, version }: OtlpGrpcOptions): Record<string, string> {
  const made: Record<string, string> = {
    'user-agent': `svc/${version} OTel-OTLP-Exporter-TypeScript/${version}`,
  }
  for (const [name, value] of Object.entries(headers)) {
    const key = name.toLowerCase()
    // The value may be a secret, so no message shows it.
    if (!/^[0-9a-z_.-]+$/.test(key))
      throw new Error(
        `cannot send the OTLP header "${name}": gRPC allows letters, digits and _ . - in a name`,
      )
    if (reserved.test(key))
      throw new Error(
        `cannot send the OTLP header "${name}": the protocol sets it; remove it from otlp.headers`,
      )
    if (key.endsWith('-bin')) made[key] = Buffer.from(value, 'utf8').toString('base64')
    else if (/^[\x20-\x7e]*$/.test(value)) made[key] = value.trim()
    else
      throw new Error(`cannot send the OTLP header "${name}": its value must be printable ASCII on one line`)
  }
  return made
}

/** In the thread pool, for it takes milliseconds. Level 1: a third of the CPU of level 6 for a tenth more bytes. */
function compress(body: Uint8Array): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    deflate(body, { level: 1 }, (error, packed) => (error ? reject(error) : resolve(packed)))
  })
}

/** The receiver took the batch, so an answer that cannot be read must not make us send it again. */
function receiptOf(body: Uint8Array): Receipt {
  try {
    return decodeReceipt(body)
  } catch (error) {
    return { rejected: 0, message: `the answer could not be read: ${(error as Error).message}` }
  }
}

function sendError(what: string, error: unknown): SendError {
  if (!(error instanceof GrpcError))
    return new SendError(`${what}: ${(error as Error).message}`, {
      type: 'internal',
      retryable: false,
      cause: error,
    })
  const retryAfterMs = error.details ? retryDelay(error.details) : undefined
  return new SendError(`${what}: ${error.message}`, {
    type: error.type,
    retryable:
      retryable.has(error.code) ||
      (error.code === GrpcStatus.resource_exhausted && retryAfterMs !== undefined),
    retryAfterMs: retryAfterMs ?? 0,
    cause: error,
  })
}

function retryDelay(details: Uint8Array): number | undefined {
  try {
    return decodeStatus(details).retryAfterMs
  } catch {
    return undefined // malformed details are no details
  }
}
