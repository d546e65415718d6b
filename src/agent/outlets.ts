// Where the pipeline's signals go: one sender for each distinct destination of the configuration.

import type { Config } from '../config/index.ts'
import { logEncoding } from '../exporters/otlp/encode-log.ts'
import { metricEncoding } from '../exporters/otlp/encode-metric.ts'
import { profileEncoding } from '../exporters/otlp/encode-profile.ts'
import { traceEncoding } from '../exporters/otlp/encode-trace.ts'
import { RequestBuilder } from '../exporters/otlp/request.ts'
import { otlpGrpc } from '../exporters/otlp-grpc.ts'
import { build } from '../lib/build.ts'
import { errorText, type Logger } from '../lib/logger.ts'
import type { Sender } from '../model/batch.ts'
import { type Signal, signals } from '../model/signal.ts'
import type { Builder } from '../pipeline/batcher.ts'
import { type Items, type LaneOptions, Pipeline } from '../pipeline/pipeline.ts'
import type { ExportRequest } from '../pipeline/send-loop.ts'

/** A signal that was asked to go somewhere and cannot. */
export interface OutletFault {
  readonly signal: Signal
  readonly reason: string
  readonly mend: string
}

/** Deployed receivers take 4 MiB; a sixteenth is left for what the transport adds. */
const share = 15 / 16
/**
 * Batches of this size already compress as well as larger ones, and take a quarter of the memory of full ones on their
 * way: encoded, compressed, several under way.
 */
const batchBytes = 1024 * 1024

export function openPipeline(
  config: Config,
  log: Logger,
  observe: (request: ExportRequest) => void,
): { pipeline: Pipeline; faults: readonly OutletFault[] } {
  const faults: OutletFault[] = []
  const senders = new Map<string, Sender>()
  const senderOf = (signal: Signal): Sender | undefined => {
    const options = config.otlp[signal]
    const endpoint = options.endpoint || config.otlp.endpoint
    if (endpoint === '' || !options.enabled) return undefined
    if (options.protocol !== 'grpc') {
      faults.push({
        signal,
        reason: `otlp.protocol ${options.protocol} is not built in this version`,
        mend: 'set otlp.protocol: grpc',
      })
      return undefined
    }
    const { tls } = options
    const settings = {
      endpoint,
      insecure: options.insecure,
      headers: options.headers,
      // zstd is not built: doctor and the log say so, and gzip is what every receiver takes.
      compression: options.compression === 'none' ? 'none' : 'gzip',
      timeoutMs: options.timeout,
      maxMessageBytes: options.max_message_size,
      tls: {
        caFile: tls.ca_file,
        certFile: tls.cert_file,
        keyFile: tls.key_file,
        serverName: tls.server_name,
        insecureSkipVerify: tls.insecure_skip_verify,
      },
      version: build().version,
    } as const
    const key = JSON.stringify(settings)
    let sender = senders.get(key)
    if (sender === undefined) {
      try {
        sender = otlpGrpc(settings)
      } catch (error) {
        faults.push({
          signal,
          reason: errorText(error),
          mend: `correct otlp.${signal}, or otlp; see svc validate`,
        })
        return undefined
      }
      senders.set(key, sender)
    }
    return sender
  }
  const lane = <S extends Signal>(signal: S, builder: Builder<Items[S]>): LaneOptions<Items[S]> => {
    const queue = config.queues[signal]
    return {
      sender: senderOf(signal),
      builder,
      batchItems: queue.batch_size,
      batchBytes: Math.min(batchBytes, Math.floor(config.otlp[signal].max_message_size * share)),
      batchTimeoutMs: config.pipeline.export.batch.timeout,
      queueBytes: queue.mem_limit,
      maxAgeMs: queue.max_age,
      concurrency: config.otlp[signal].concurrency,
    }
  }
  const { backoff } = config
  const pipeline = new Pipeline({
    lanes: {
      traces: lane('traces', new RequestBuilder(traceEncoding)),
      metrics: lane('metrics', new RequestBuilder(metricEncoding)),
      logs: lane('logs', new RequestBuilder(logEncoding)),
      profiles: lane('profiles', new RequestBuilder(profileEncoding())),
    },
    retry: {
      initialMs: backoff.initial,
      maxMs: backoff.max,
      multiplier: backoff.multiplier,
      jitter: backoff.jitter,
      maxElapsedMs: backoff.max_elapsed,
    },
    onAuthError: config.pipeline.export.on_auth_error,
    log,
    observe,
  })
  return { pipeline, faults: faults.filter(({ signal }) => signals.includes(signal)) }
}
