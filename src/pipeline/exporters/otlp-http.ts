import { parseEndpoint, requestPath } from '../../foundation/lib/endpoint.ts'
import { hostPort } from '../../foundation/lib/host-port.ts'
import { type Batch, plainBatch, type Receipt, SendError, type Sender } from '../../foundation/model/batch.ts'
import type { Signal } from '../../foundation/model/signal.ts'
import { type Compression, compress, decompress } from './compression.ts'
import type { ExporterOptions } from './exporter-options.ts'
import { requestToJson } from './otlp/json.ts'
import { receiptOf, refusalOf } from './otlp-http-answer.ts'
import { HttpError, OtlpHttpClient } from './otlp-http-client.ts'
import { requestHeaders } from './request-headers.ts'
import { senderOn } from './sender.ts'
import { ZstdFallback } from './zstd-fallback.ts'

export interface OtlpHttpOptions extends ExporterOptions {
  readonly protocol: 'http/protobuf' | 'http/json'
  /** Whether the endpoint is specific to the signal, so that no path is appended. */
  readonly ownEndpoint: boolean
}

/** opentelemetry-proto 1.11. */
const paths: Record<Signal, string> = {
  traces: '/v1/traces',
  metrics: '/v1/metrics',
  logs: '/v1/logs',
  profiles: '/v1development/profiles',
}

/** Maximum size of an answer (OTLP specification). */
const maxAnswerBytes = 4 * 1024 * 1024
const connectTimeoutMs = 10_000
/** Maximum requests in flight of one signal. */
const keptConnections = 64

/**
 * Sends OTLP over HTTP/1.1, as protobuf or JSON. A request without a complete answer is retried, so a
 * receiver may get it twice. Throws an `Error` for options that can never work.
 */
export function otlpHttp(options: OtlpHttpOptions): Sender & { readonly connected: boolean } {
  const { compression, proxy, timeoutMs } = options
  const json = options.protocol === 'http/json'
  const { host, port, secure } = parseEndpoint(options.endpoint, options.insecure, 'http')
  const endpoint = hostPort(host, port)
  const headers = {
    ...requestHeaders(options.headers, options.version, 'HTTP'),
    'content-type': json ? 'application/json' : 'application/x-protobuf',
  }
  checkPath(options)
  const tls = secure ? options.tls : undefined
  const client = new OtlpHttpClient({
    host,
    port,
    tls,
    proxy,
    connectTimeoutMs,
    maxAnswerBytes,
    keptConnections,
  })
  const fallback = new ZstdFallback()

  const pathOf = (signal: Signal) => requestPath(options.endpoint, options.ownEndpoint, paths[signal])

  async function exchange(compressed: Batch, share: number, stop: AbortSignal): Promise<Receipt> {
    const { signal, body, encoding } = compressed
    const request = {
      path: pathOf(signal),
      headers: encoding === 'identity' ? headers : { ...headers, 'content-encoding': encoding },
      body,
      timeoutMs,
    }
    const what = `cannot export ${signal} to ${endpoint}`
    try {
      const answer = await client.post(request, stop)
      if (answer.status >= 200 && answer.status < 300)
        return { ...receiptOf(answer), httpStatus: answer.status }
      throw refusalOf(what, answer, share)
    } catch (error) {
      throw sendError(what, error)
    }
  }

  async function send(batch: Batch, stop: AbortSignal): Promise<Receipt> {
    try {
      const formed = json ? await jsonBatch(batch, compression) : batch
      const share = batch.plainBytes / Math.max(1, formed.plainBytes)
      return await fallback.run(formed, compression, compressed => exchange(compressed, share, stop))
    } catch (error) {
      throw sendError(`cannot export ${batch.signal} to ${endpoint}`, error)
    }
  }

  // A custom path may be a secret, and self-tracing spans may go to another receiver.
  const urlOf = (signal: Signal) => {
    const path = pathOf(signal) === paths[signal] ? paths[signal] : '/REDACTED'
    return `${secure ? 'https' : 'http'}://${endpoint}${path}`
  }
  return senderOn(client, endpoint, signal => ({ protocol: 'http', url: urlOf(signal) }), send)
}

function checkPath({ endpoint, ownEndpoint }: OtlpHttpOptions): void {
  if (/[^\x21-\x7e]/.test(requestPath(endpoint, ownEndpoint, '/')))
    throw new Error(
      `cannot use the OTLP endpoint "${endpoint}": its path has non-ASCII characters; percent-encode them`,
    )
}

/** Batch as JSON, converted when it is sent: queues store protobuf, which any protocol can send. */
async function jsonBatch(batch: Batch, compression: Compression): Promise<Batch> {
  const { signal, items, orderKeys } = batch
  const text = requestToJson(signal, await decompress(batch))
  return compress(plainBatch(signal, items, Buffer.from(text, 'utf8'), orderKeys), compression)
}

function sendError(what: string, error: unknown): SendError {
  if (error instanceof SendError) return error
  const { message } = error as Error
  if (error instanceof HttpError)
    return new SendError(`${what}: ${message}`, { type: error.type, retryable: true, cause: error })
  return new SendError(`${what}: ${message}`, { type: 'internal', retryable: false, cause: error })
}
