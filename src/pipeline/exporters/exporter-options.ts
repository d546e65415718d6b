import type { TlsOptions } from '../../foundation/lib/dialer.ts'
import type { ProxyChoice } from '../../foundation/lib/proxy.ts'
import type { Compression } from './compression.ts'

/** Options of both OTLP exporters. */
export interface ExporterOptions {
  /** `host`, `host:port`, or a URL; its scheme selects TLS. */
  readonly endpoint: string
  /** Without TLS; only for an endpoint without a scheme. */
  readonly insecure: boolean
  /** Headers, or metadata, of every request. gRPC sends values of keys that end in `-bin` as base64. */
  readonly headers: Readonly<Record<string, string>>
  /** Applies to JSON, and to batches compressed before a change of settings; `compress` compresses all others. */
  readonly compression: Compression
  /** Timeout of one request, connecting included, in milliseconds. */
  readonly timeoutMs: number
  readonly tls: TlsOptions
  /** No proxy if omitted. */
  readonly proxy?: ProxyChoice | undefined
  /** Version of svc, for the user agent. */
  readonly version: string
}
