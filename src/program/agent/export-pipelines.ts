// Destinations of the pipeline's signals: one sender for each distinct one in the configuration.

import { dirname } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Config } from '../../config/index.ts'
import type { Change } from '../../foundation/lib/change.ts'
import { parseEndpoint } from '../../foundation/lib/endpoint.ts'
import { readContent } from '../../foundation/lib/file-content.ts'
import { errorText, type Logger } from '../../foundation/lib/logger.ts'
import { type Batch, plainBatch, type Sender } from '../../foundation/model/batch.ts'
import { bySignal, type Signal, signals } from '../../foundation/model/signal.ts'
import type { ItemProcessor } from '../../pipeline/batcher.ts'
import { DiskStore } from '../../pipeline/disk/disk-store.ts'
import {
  type Compression,
  compress as compressBatch,
  decompress,
} from '../../pipeline/exporters/compression.ts'
import { logEncoding } from '../../pipeline/exporters/otlp/encode-log.ts'
import { metricEncoding } from '../../pipeline/exporters/otlp/encode-metric.ts'
import { profileEncoding } from '../../pipeline/exporters/otlp/encode-profile.ts'
import { traceEncoding } from '../../pipeline/exporters/otlp/encode-trace.ts'
import { RequestBuilder } from '../../pipeline/exporters/otlp/request.ts'
import { splitRequest } from '../../pipeline/exporters/otlp/split.ts'
import { Pipeline, type PipelineSettings, type SignalQueueSettings } from '../../pipeline/pipeline.ts'
import {
  type ChainSettings,
  compileChain,
  type ItemOf,
  type NamedStage,
} from '../../pipeline/processors/chain.ts'
import type { ProcessorEnv } from '../../pipeline/processors/processor.ts'
import type { ExportRequest } from '../../pipeline/send-loop.ts'
import { boundsOf, durableQueues, openQueues, type TakeLock } from './disk-queues.ts'
import { installKey } from './install-key.ts'
import { type OtlpOptions, openSender, otlpOptions } from './otlp-options.ts'

/** A signal with an unusable destination. */
export interface ExportFault {
  readonly signal: Signal
  readonly reason: string
  readonly hint: string
}

/** Common receivers accept 4 MiB; a sixteenth is reserved for the transport. */
const share = 15 / 16
/**
 * Batches of this size compress as well as larger ones, and take a quarter of the memory of full ones in flight:
 * encoded, compressed, several at a time.
 */
const batchBytes = 1024 * 1024

type Chains = { readonly [S in Signal]: ReturnType<typeof compileChain<S>> }

/** The processor chains, and the settings they were built from. */
interface Processing {
  readonly settings: ChainSettings
  readonly form: { readonly temporality: 'cumulative' | 'delta' }
  readonly chains: Chains
}

interface Plan {
  readonly settings: PipelineSettings
  /** By the key of their options. */
  readonly senders: ReadonlyMap<string, Sender>
  readonly processing: Processing
  readonly bounds: ReturnType<typeof boundsOf>
  /** A disk queue is configured. */
  readonly wantsDisk: boolean
  readonly faults: readonly ExportFault[]
}

const unopened = 'no endpoint was configured at the start, and the disk queue opens only at the start'

function sends({ settings }: Plan): boolean {
  return signals.some(signal => settings.queues[signal].sender !== undefined)
}

/** A configured disk queue that is missing is opened at the next start. */
export const queueHint =
  'fix that and restart svc (queued data is delivered first), or set pipeline.export.queue.enabled: false'

export interface ExportPipelinesOptions {
  readonly log: Logger
  /** Called after each export request. Must not throw. */
  readonly observe: (request: ExportRequest) => void
  readonly lock: TakeLock
}

/** The pipeline with its processors and destinations, which may change at run time. */
export class ExportPipelines {
  readonly pipeline: Pipeline
  /** Spans that wait for their other side: received, but not in the pipeline yet. */
  earlySpans: () => number = () => 0
  /** A text is why it could not be opened; undefined if none was configured at start. */
  readonly #store: DiskStore | string | undefined
  readonly #log: Logger
  readonly #env: Omit<ProcessorEnv, 'signal'>
  #plan: Plan

  /**
   * A signal whose destination cannot be created is a fault and stops no other. Throws a readable error for invalid
   * rules.
   */
  constructor(config: Config, { log, observe, lock }: ExportPipelinesOptions) {
    this.#env = {
      log,
      installKey: installKey(dirname(config.pipeline.export.queue.directory), log),
      nowMs: () => performance.now(),
    }
    this.#log = log
    this.#plan = planOf(config, new Map(), processingOf(config, this.#env))
    const { settings } = this.#plan
    // Without export there is nothing to store, and the data of an earlier process waits for one that exports.
    this.#store = sends(this.#plan) ? openQueues(config, lock, log) : undefined
    this.pipeline = new Pipeline({
      settings,
      builders: {
        traces: new RequestBuilder(traceEncoding),
        metrics: new RequestBuilder(metricEncoding),
        logs: new RequestBuilder(logEncoding),
        profiles: new RequestBuilder(profileEncoding()),
      },
      log,
      queues: this.#store instanceof DiskStore ? durableQueues(this.#store) : undefined,
      halve,
      observe,
    })
  }

  /** The disk queue; a text is why a configured one is missing; undefined if none is configured. */
  get store(): DiskStore | string | undefined {
    if (this.#store !== undefined) return this.#store
    // The disk queue is opened once, at start: an endpoint added by a reload uses memory.
    return this.#plan.wantsDisk && sends(this.#plan) ? unopened : undefined
  }

  /** The stages of a signal. */
  stages(signal: Signal): readonly NamedStage[] {
    return this.#plan.processing.chains[signal]?.stages ?? []
  }

  get faults(): readonly ExportFault[] {
    return this.#plan.faults
  }

  /** `host:port` of the first exported signal, '' if there is none. */
  get endpoint(): string {
    for (const signal of signals) {
      const { destination } = this.pipeline.state(signal)
      if (destination !== undefined) return destination.endpoint
    }
    return ''
  }

  /** Items waiting for export. */
  waiting(signal: Signal): number {
    return this.pipeline.state(signal).queued + (signal === 'traces' ? this.earlySpans() : 0)
  }

  /**
   * Creates what differs; senders with equal settings are kept, with their connections. Undefined if nothing differs.
   * Does not connect. Throws if a destination cannot be created, and then changes nothing.
   *
   * @param changed keys that differ; for keys of TLS files, perhaps only in content
   */
  prepare(config: Config, changed: ReadonlySet<string>): Change | undefined {
    const before = this.#plan
    const kept = new Map(before.senders)
    for (const signal of signals) {
      const options = otlpOptions(config, signal)
      // A connection made with the old files would stay until someone closes it.
      if (options && tlsFiles(signal, options).some(({ key }) => changed.has(key)))
        kept.delete(keyOf(options))
    }
    const after = planOf(config, kept, processingOf(config, this.#env, before.processing))
    const isNew = (sender: Sender) => ![...before.senders.values()].includes(sender)
    const made = [...after.senders.values()].filter(isNew)
    const abort = () => {
      // Never used, so there is nothing to wait for and nothing can fail.
      for (const sender of made) void sender.close()
    }
    const sameChains = after.processing.chains === before.processing.chains
    if (made.length === 0 && sameChains && isDeepStrictEqual(after, before)) return undefined
    try {
      const [fault] = after.faults
      if (fault) throw new Error(`cannot export ${fault.signal}: ${fault.reason}; ${fault.hint}`)
      for (const signal of signals) {
        const { sender } = after.settings.queues[signal]
        if (sender && isNew(sender)) checkTls(signal, otlpOptions(config, signal)!)
      }
    } catch (error) {
      abort()
      throw error
    }
    return {
      commit: () => {
        const { store } = this
        this.#plan = after
        this.pipeline.change(after.settings)
        if (store instanceof DiskStore) store.limit(after.bounds)
        else if (store === undefined && this.store !== undefined)
          this.#log.warn('queue is in memory only; a crash loses its data', { reason: unopened })
      },
      abort,
    }
  }
}

/** The configured chains; those of `before` if nothing differs. */
function processingOf(config: Config, env: Omit<ProcessorEnv, 'signal'>, before?: Processing): Processing {
  const { enabled, limits, pii_redaction, transform } = config.pipeline
  const settings = { enabled, limits, pii_redaction, transform }
  const form = { temporality: config.otlp.metrics.temporality }
  if (before && isDeepStrictEqual([settings, form], [before.settings, before.form])) return before
  const chain = <S extends Signal>(signal: S) =>
    compileChain(signal, settings, env, form, before?.chains[signal] as never)
  const chains: Chains = {
    traces: chain('traces'),
    metrics: chain('metrics'),
    logs: chain('logs'),
    profiles: chain('profiles'),
  }
  return { settings, form, chains }
}

const compressors: Readonly<Record<Compression, ((batch: Batch) => Promise<Batch>) | undefined>> = {
  gzip: batch => compressBatch(batch, 'gzip'),
  zstd: batch => compressBatch(batch, 'zstd'),
  none: undefined,
}

/** Splits a request and compresses both parts as before. */
async function halve(batch: Batch): Promise<readonly [Batch, Batch] | undefined> {
  const { signal, encoding, orderKeys } = batch
  const parts = splitRequest(signal, await decompress(batch))
  if (parts === undefined) return undefined
  const compress = compressors[encoding === 'identity' ? 'none' : encoding]
  const half = ({ items, body }: { items: number; body: Uint8Array }) => {
    const plain = plainBatch(signal, items, body, orderKeys)
    return compress === undefined ? plain : compress(plain)
  }
  return Promise.all([half(parts[0]), half(parts[1])])
}

/** The configured plan. Reuses the senders of `kept` that it needs. */
function planOf(config: Config, kept: ReadonlyMap<string, Sender>, processing: Processing): Plan {
  const { backoff, queues } = config
  const { batch, queue, on_auth_error: onAuthError } = config.pipeline.export
  const { enabled: wantsDisk } = queue
  const senders = new Map<string, Sender>()
  const faults: ExportFault[] = []
  const senderOf = (signal: Signal): Sender | undefined => {
    const options = otlpOptions(config, signal)
    if (options === undefined) return undefined
    const key = keyOf(options)
    try {
      const sender = senders.get(key) ?? kept.get(key) ?? openSender(options)
      senders.set(key, sender)
      return sender
    } catch (error) {
      const hint = `correct otlp.${signal}, otlp, or their environment variables; svc doctor checks them`
      faults.push({ signal, reason: errorText(error), hint })
      return undefined
    }
  }
  const queueOf = (signal: Signal): SignalQueueSettings => {
    const { batch_size, mem_limit, max_age } = queues[signal]
    const { max_message_size, concurrency, compression } = config.otlp[signal]
    const requestBytes = Math.floor(max_message_size * share)
    return {
      sender: senderOf(signal),
      compress: compressors[compression],
      batchItems: batch_size,
      batchBytes: Math.min(batchBytes, requestBytes),
      requestBytes,
      batchTimeoutMs: batch.timeout,
      queueBytes: mem_limit,
      maxAgeMs: max_age,
      concurrency,
    }
  }
  const settings: PipelineSettings = {
    queues: bySignal(queueOf),
    chains: processing.chains as { readonly [S in Signal]?: ItemProcessor<ItemOf[S]> | undefined },
    retry: {
      initialMs: backoff.initial,
      maxMs: backoff.max,
      multiplier: backoff.multiplier,
      jitter: backoff.jitter,
      maxElapsedMs: backoff.max_elapsed,
    },
    onAuthError,
  }
  return { settings, senders, processing, bounds: boundsOf(config), wantsDisk, faults }
}

/** Senders whose options have the same key are shared. It contains the headers, so it must not be logged. */
function keyOf(options: OtlpOptions): string {
  return JSON.stringify(options)
}

function tlsFiles(signal: Signal, { endpoint, insecure, tls }: OtlpOptions) {
  if (!parseEndpoint(endpoint, insecure).secure) return []
  const at = `otlp.${signal}.tls`
  const files = [
    { key: `${at}.ca_file`, path: tls.caFile, option: 'ca' },
    { key: `${at}.cert_file`, path: tls.certFile, option: 'cert' },
    { key: `${at}.key_file`, path: tls.keyFile, option: 'key' },
  ] as const
  return files.filter(({ path }) => path !== '')
}

/** Throws if no connection could even be tried. The sender itself reads the files again for each connection. */
function checkTls(signal: Signal, options: OtlpOptions): void {
  const files = tlsFiles(signal, options)
  if (files.length === 0) return
  const hint = `correct otlp.${signal}.tls, or otlp.tls`
  const material: { ca?: Buffer; cert?: Buffer; key?: Buffer } = {}
  for (const { key, path, option } of files) {
    const { bytes, fault } = readContent(path, false)
    if (bytes === undefined) throw new Error(`cannot export ${signal}: ${key} ${path}: ${fault}; ${hint}`)
    material[option] = bytes
  }
  try {
    // Node.js before 20.16 has no such function; there the connection reports errors.
    process.getBuiltinModule?.('node:tls').createSecureContext(material)
  } catch (error) {
    const names = files.map(({ key, path }) => `${key} (${path})`).join(', ')
    throw new Error(`cannot export ${signal}: OpenSSL rejected ${names}: ${errorText(error)}; ${hint}`, {
      cause: error,
    })
  }
}
