import type { Config } from '../../config/index.ts'
import { build } from '../../foundation/lib/build.ts'
import { proxyFromEnvironment } from '../../foundation/lib/proxy.ts'
import type { Sender } from '../../foundation/model/batch.ts'
import type { Signal } from '../../foundation/model/signal.ts'
import { type ExporterOptions, otlpGrpc, otlpHttp } from '../../pipeline/exporters/index.ts'

/** Destination and transport of a signal. Signals with equal options share a sender. */
export interface OtlpOptions extends Omit<ExporterOptions, 'proxy'> {
  readonly protocol: 'grpc' | 'http/protobuf' | 'http/json'
  /** Over HTTP: the endpoint is for this signal only, and its path is used as it is. */
  readonly ownEndpoint: boolean
}

/** The configured export of a signal; undefined if there is none. */
export function otlpOptions({ otlp }: Config, signal: Signal): OtlpOptions | undefined {
  const own = otlp[signal]
  const endpoint = own.endpoint || otlp.endpoint
  if (endpoint === '' || !own.enabled) return undefined
  const { tls, protocol } = own
  return {
    protocol,
    endpoint,
    ownEndpoint: protocol !== 'grpc' && endpoint !== otlp.endpoint,
    insecure: own.insecure,
    headers: own.headers,
    compression: own.compression,
    timeoutMs: own.timeout,
    tls: {
      caFile: tls.ca_file,
      certFile: tls.cert_file,
      keyFile: tls.key_file,
      serverName: tls.server_name,
      insecureSkipVerify: tls.insecure_skip_verify,
    },
    version: build().version,
  }
}

/** Does not connect yet. Throws a readable error if the options can never work. */
export function openSender(options: OtlpOptions): Sender & { readonly connected: boolean } {
  const { protocol } = options
  const proxy = proxyFromEnvironment(process.env)
  return protocol === 'grpc' ? otlpGrpc({ ...options, proxy }) : otlpHttp({ ...options, protocol, proxy })
}
