import type { Config } from '../config/index.ts'
import type { OtlpGrpcOptions } from '../exporters/otlp-grpc.ts'
import { build } from '../lib/build.ts'
import type { Signal } from '../model/signal.ts'

/** What the configuration says of a signal's export; undefined where it goes nowhere. */
export function otlpOptions({ otlp }: Config, signal: Signal): OtlpGrpcOptions | undefined {
  const own = otlp[signal]
  const endpoint = own.endpoint || otlp.endpoint
  if (endpoint === '' || !own.enabled) return undefined
  const { tls } = own
  return {
    endpoint,
    insecure: own.insecure,
    headers: own.headers,
    // zstd is not built: doctor and the log say so, and gzip is what every receiver takes.
    compression: own.compression === 'none' ? 'none' : 'gzip',
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
