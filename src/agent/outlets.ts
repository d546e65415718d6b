// Where the pipeline's signals go: one sender for each distinct destination of the configuration.

import { isDeepStrictEqual } from 'node:util'
import type { Config } from '../config/index.ts'
import { logEncoding } from '../exporters/otlp/encode-log.ts'
import { metricEncoding } from '../exporters/otlp/encode-metric.ts'
import { profileEncoding } from '../exporters/otlp/encode-profile.ts'
import { traceEncoding } from '../exporters/otlp/encode-trace.ts'
import { RequestBuilder } from '../exporters/otlp/request.ts'
import { type OtlpGrpcOptions, otlpGrpc } from '../exporters/otlp-grpc.ts'
import type { Change } from '../lib/change.ts'
import { parseEndpoint } from '../lib/endpoint.ts'
import { readContent } from '../lib/file-content.ts'
import { errorText, type Logger } from '../lib/logger.ts'
import type { Sender } from '../model/batch.ts'
import { type Signal, signals } from '../model/signal.ts'
import { type LaneSettings, Pipeline, type PipelineSettings } from '../pipeline/pipeline.ts'
import type { ExportRequest } from '../pipeline/send-loop.ts'
import { otlpOptions } from './otlp-options.ts'

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

interface Plan {
  readonly settings: PipelineSettings
  /** By what they are made of. */
  readonly senders: ReadonlyMap<string, Sender>
  readonly faults: readonly OutletFault[]
}

/** The pipeline with its destinations, which may change while it runs. */
export class Outlets {
  readonly pipeline: Pipeline
  #plan: Plan

  /** A signal whose destination cannot be made is a fault and stops no other. */
  constructor(config: Config, log: Logger, observe: (request: ExportRequest) => void) {
    this.#plan = planOf(config, new Map())
    this.pipeline = new Pipeline({
      settings: this.#plan.settings,
      builders: {
        traces: new RequestBuilder(traceEncoding),
        metrics: new RequestBuilder(metricEncoding),
        logs: new RequestBuilder(logEncoding),
        profiles: new RequestBuilder(profileEncoding()),
      },
      log,
      observe,
    })
  }

  get faults(): readonly OutletFault[] {
    return this.#plan.faults
  }

  /**
   * Makes what differs; senders whose settings are equal are kept, with their connections. Undefined where nothing
   * differs. Connects to nobody. Throws where a destination cannot be made, and then nothing has changed.
   *
   * @param changed keys that differ; of those that name files of TLS, the content may be all that does
   */
  prepare(config: Config, changed: ReadonlySet<string>): Change | undefined {
    const before = this.#plan
    const kept = new Map(before.senders)
    for (const signal of signals) {
      const options = otlpOptions(config, signal)
      // A connection that was made with the old files would stay for as long as nobody ends it.
      if (options && tlsFiles(signal, options).some(({ key }) => changed.has(key)))
        kept.delete(keyOf(options))
    }
    const after = planOf(config, kept)
    const isNew = (sender: Sender) => ![...before.senders.values()].includes(sender)
    const made = [...after.senders.values()].filter(isNew)
    const abort = () => {
      // Never used, so that there is nothing to wait for and nothing that can fail.
      for (const sender of made) void sender.close()
    }
    if (made.length === 0 && isDeepStrictEqual(after, before)) return undefined
    try {
      const [fault] = after.faults
      if (fault) throw new Error(`cannot export ${fault.signal}: ${fault.reason}; ${fault.mend}`)
      for (const signal of signals) {
        const { sender } = after.settings.lanes[signal]
        if (sender && isNew(sender)) checkTls(signal, otlpOptions(config, signal)!)
      }
    } catch (error) {
      abort()
      throw error
    }
    return {
      commit: () => {
        this.#plan = after
        this.pipeline.change(after.settings)
      },
      abort,
    }
  }
}

/** What the configuration asks for. Of `kept` come the senders that it asks for as well. */
function planOf(config: Config, kept: ReadonlyMap<string, Sender>): Plan {
  const { backoff, queues } = config
  const { batch, on_auth_error: onAuthError } = config.pipeline.export
  const senders = new Map<string, Sender>()
  const faults: OutletFault[] = []
  const senderOf = (signal: Signal): Sender | undefined => {
    const options = otlpOptions(config, signal)
    if (options === undefined) return undefined
    const { protocol } = config.otlp[signal]
    if (protocol !== 'grpc') {
      const reason = `otlp.protocol ${protocol} is not built in this version`
      faults.push({ signal, reason, mend: 'set otlp.protocol: grpc' })
      return undefined
    }
    const key = keyOf(options)
    try {
      const sender = senders.get(key) ?? kept.get(key) ?? otlpGrpc(options)
      senders.set(key, sender)
      return sender
    } catch (error) {
      const mend = `correct otlp.${signal}, or otlp; see svc validate`
      faults.push({ signal, reason: errorText(error), mend })
      return undefined
    }
  }
  const lane = (signal: Signal): LaneSettings => {
    const { batch_size, mem_limit, max_age } = queues[signal]
    const { max_message_size, concurrency } = config.otlp[signal]
    return {
      sender: senderOf(signal),
      batchItems: batch_size,
      batchBytes: Math.min(batchBytes, Math.floor(max_message_size * share)),
      batchTimeoutMs: batch.timeout,
      queueBytes: mem_limit,
      maxAgeMs: max_age,
      concurrency,
    }
  }
  const settings: PipelineSettings = {
    lanes: {
      traces: lane('traces'),
      metrics: lane('metrics'),
      logs: lane('logs'),
      profiles: lane('profiles'),
    },
    retry: {
      initialMs: backoff.initial,
      maxMs: backoff.max,
      multiplier: backoff.multiplier,
      jitter: backoff.jitter,
      maxElapsedMs: backoff.max_elapsed,
    },
    onAuthError,
  }
  return { settings, senders, faults }
}

/** Senders whose options have the same key are one. It holds the headers, so it goes nowhere. */
function keyOf(options: OtlpGrpcOptions): string {
  return JSON.stringify(options)
}

function tlsFiles(signal: Signal, { endpoint, insecure, tls }: OtlpGrpcOptions) {
  if (!parseEndpoint(endpoint, insecure).secure) return []
  const at = `otlp.${signal}.tls`
  const files = [
    { key: `${at}.ca_file`, path: tls.caFile, option: 'ca' },
    { key: `${at}.cert_file`, path: tls.certFile, option: 'cert' },
    { key: `${at}.key_file`, path: tls.keyFile, option: 'key' },
  ] as const
  return files.filter(({ path }) => path !== '')
}

/** Throws where a connection could not even be tried. The sender itself reads the files anew for each connection. */
function checkTls(signal: Signal, options: OtlpGrpcOptions): void {
  const files = tlsFiles(signal, options)
  if (files.length === 0) return
  const mend = `correct otlp.${signal}.tls, or otlp.tls`
  const material: { ca?: Buffer; cert?: Buffer; key?: Buffer } = {}
  for (const { key, path, option } of files) {
    const { bytes, fault } = readContent(path, false)
    if (bytes === undefined) throw new Error(`cannot export ${signal}: ${key} ${path}: ${fault}; ${mend}`)
    material[option] = bytes
  }
  try {
    // Node.js before 20.16 has no such look-up; there the connection tells.
    process.getBuiltinModule?.('node:tls').createSecureContext(material)
  } catch (error) {
    const names = files.map(({ key, path }) => `${key} (${path})`).join(', ')
    throw new Error(`cannot export ${signal}: OpenSSL refuses ${names}: ${errorText(error)}; ${mend}`, {
      cause: error,
    })
  }
}
