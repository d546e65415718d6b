// Why items do not reach the receiver: the reasons in the pipeline's books, for messages and documents.

/** Where items are lost, in the order of the data flow. */
export type DropPlace = 'capture' | 'pipeline' | 'queue' | 'receiver' | 'scraping'

export interface DropReason {
  readonly place: DropPlace
  /** What happened: the end of a sentence, without its full stop. */
  readonly means: string
  /** What to do: an imperative without its full stop. */
  readonly hint: string
  /** Configured, or no exporter exists: not a loss. */
  readonly intended?: true
}

const rising =
  'raise agent.ebpf.network.sampling.max_spans_per_second; metrics still count these calls. Logs of process starts and ends have a fixed limit'
const framing = 'svc explain PORT; new connections are not affected'
const page = 'fix the output of the target: GET /status/targets'

const reasons = {
  no_endpoint: {
    place: 'pipeline',
    means: 'no exporter is configured for this signal; its data is shown on this host only',
    hint: 'set otlp.endpoint, or OTEL_EXPORTER_OTLP_ENDPOINT',
    intended: true,
  },
  queue_full: {
    place: 'queue',
    means: 'the receiver is down, or slower than the incoming data',
    hint: 'svc doctor export; raise pipeline.export.queue.max_size_bytes, queues.SIGNAL.mem_limit or otlp.concurrency',
  },
  memory_limit: {
    place: 'pipeline',
    means: 'svc was close to limits.memory',
    hint: 'svc status shows what uses the memory; raise limits.memory, or restore the receiver. Metrics still count these calls',
  },
  retry_timeout: {
    place: 'queue',
    means: 'the receiver did not accept them in time',
    hint: 'svc doctor export; raise backoff.max_elapsed, or set it to 0 for no limit',
  },
  expired: {
    place: 'queue',
    means: 'they waited too long for the receiver',
    hint: 'svc doctor export; raise queues.SIGNAL.max_age',
  },
  sampled: {
    place: 'pipeline',
    means: 'sampling dropped them: agent.ebpf.network.sampling.ratio, or a rule with the action sample',
    hint: 'raise the ratio; 1 keeps all. Metrics still count them',
    intended: true,
  },
  over_budget: {
    place: 'capture',
    means: 'the rate was above the budget',
    hint: rising,
  },
  cpu_limit: {
    place: 'capture',
    means:
      'svc used more CPU than limits.cpu; fewer calls get spans, and fewer process starts and ends get log records',
    hint: 'svc status shows what was reduced; raise limits.cpu. Metrics still count them',
  },
  internal_error: {
    place: 'capture',
    means: 'svc failed to decode them; this is a bug in svc',
    hint: 'report the log line "cannot decode a request"; metrics may lack these calls',
  },
  ring_full: {
    place: 'capture',
    means: 'a burst was larger than the ring buffer and the memory behind it',
    hint: 'give svc more CPU, lower max_spans_per_second, or raise agent.ebpf.ringbuf_size; metrics may lack calls that svc decodes in user space: HTTP/2, messages, TLS, and all calls before Linux 6.3',
  },
  perf_full: {
    place: 'capture',
    means: 'a burst was larger than the perf buffers, which replace the ring buffer before Linux 5.8',
    hint: 'raise agent.ebpf.perf_buffer_size, or give svc more CPU; metrics may lack these calls',
  },
  buffers_busy: {
    place: 'capture',
    means:
      'other tasks interrupted the programs of svc on a CPU, and these used all its buffers: with agent.ebpf.backend syscalls on Linux 7, or inside TLS',
    hint: 'set agent.ebpf.backend: auto where this kernel has sock (Linux 6.3), or give the host more CPU; metrics may lack these calls',
  },
  rate_limited: {
    place: 'pipeline',
    means: 'more items per second than pipeline.limits.rate allows',
    hint: 'raise pipeline.limits.rate.traces_per_second, logs_per_second or metrics_per_second',
  },
  cardinality: {
    place: 'pipeline',
    means:
      'a metric has more series than pipeline.limits.cardinality allows; the others are combined into one series',
    hint: 'GET /debug/pipeline/stats names the label: delete it with a rule, or raise default_max_series',
  },
  series_limit: {
    place: 'pipeline',
    means: 'a metric has more series than pipeline.limits.cardinality allows, and on_limit is drop',
    hint: 'GET /debug/pipeline/stats names the label: delete it with a rule, or raise default_max_series',
  },
  excluded_path: {
    place: 'capture',
    means: 'agent.ebpf.network.exclude_paths matches this path',
    hint: 'remove the path from agent.ebpf.network.exclude_paths; metrics still count these calls',
    intended: true,
  },
  not_selected: {
    place: 'capture',
    means: 'no discovery rule matches this process, or one excludes it',
    hint: 'svc explain PORT names the rule; change discovery.instrument or discovery.exclude',
    intended: true,
  },
  instrumented: {
    place: 'capture',
    means: 'the process exports its own spans, and svc sends no duplicates',
    hint: 'no action; to get spans from svc instead, turn off the SDK in the process',
    intended: true,
  },
  transform: {
    place: 'pipeline',
    means: 'a rule of pipeline.transform dropped them',
    hint: 'svc pipeline test names the rule; svc_processor_outcomes_total counts each',
    intended: true,
  },
  too_large: {
    place: 'receiver',
    means: 'single items are larger than the maximum request size',
    hint: 'raise the maximum message size of the receiver, or lower pipeline.limits.attributes',
  },
  rejected: {
    place: 'receiver',
    means: 'the receiver rejected them permanently',
    hint: 'svc status shows its message as the last warning; fix the reported problem',
  },
  unimplemented: {
    place: 'receiver',
    means: 'the receiver does not support this signal',
    hint: 'set otlp.SIGNAL.enabled: false, or set another receiver for it: otlp.SIGNAL.endpoint',
  },
  delta_start: {
    place: 'pipeline',
    means: 'the first point of a series has no difference to report (otlp.metrics.temporality is delta)',
    hint: 'no action if it happens once per series; if it continues, raise pipeline.limits.cardinality.global_max_series',
  },
  disk_full: {
    place: 'queue',
    means: 'the file system of the queue is full, and so is memory',
    hint: 'free space on the file system of pipeline.export.queue.directory (df, df -i), or lower max_size_bytes',
  },
  disk_read_only: {
    place: 'queue',
    means: 'the file system of the queue is read-only, and memory is full',
    hint: 'mount it writable; disk errors can cause this: dmesg',
  },
  disk_error: {
    place: 'queue',
    means: 'the queue cannot be written to disk, and memory is full',
    hint: 'svc doctor export names the directory and the error',
  },
  corrupt: {
    place: 'queue',
    means: 'parts of the queue on disk are damaged',
    hint: 'svc queue verify lists the damage; check the disk',
  },
  shutdown: {
    place: 'queue',
    means: 'svc stopped before they were delivered, and there was no queue on disk to keep them',
    hint: 'set pipeline.export.queue.enabled: true, or raise pipeline.operations.shutdown.drain_timeout',
  },
  red_full: {
    place: 'capture',
    means: 'the table of totals in the kernel is full: these calls are missing from the metrics, too',
    hint: 'raise agent.ebpf.ringbuf_size and max_spans_per_second, so that fewer calls need that table',
  },
  framing_lost: {
    place: 'capture',
    means: 'stream out of sync; requests in flight were dropped',
    hint: framing,
  },
  no_memory: {
    place: 'capture',
    means: 'more connections or operations were in flight than svc can track',
    hint: 'exclude what you do not need: agent.ebpf.network.exclude_ports, discovery.exclude',
  },
  unreadable: {
    place: 'capture',
    means: 'a message was recognised but could not be decoded completely',
    hint: 'raise agent.ebpf.network.capture_bytes if request headers are long',
  },
  processor: {
    place: 'pipeline',
    means: 'an error in a processor lost these items',
    hint: 'this is a bug: run svc diagnostics and report it',
  },
  encode: {
    place: 'pipeline',
    means: 'an error in the encoder lost these items',
    hint: 'this is a bug: run svc diagnostics and report it',
  },
  bad_le: { place: 'scraping', means: 'the bound of a bucket is not a number', hint: page },
  bad_quantile: { place: 'scraping', means: 'a quantile is not between 0 and 1', hint: page },
  duplicate_series: { place: 'scraping', means: 'duplicate series on a page', hint: page },
  gauge_histogram: {
    place: 'scraping',
    means: 'OTLP has no gauge histograms',
    hint: 'drop them with metric_relabel_configs',
  },
  inconsistent_histogram: {
    place: 'scraping',
    means: 'the buckets of a histogram contradict its count',
    hint: page,
  },
  inconsistent_summary: {
    place: 'scraping',
    means: 'the count of a summary is not a valid count',
    hint: page,
  },
  no_count: { place: 'scraping', means: 'a histogram or summary has no count', hint: page },
  unexpected_sample: {
    place: 'scraping',
    means: 'a sample does not match the type declared on the page',
    hint: page,
  },
} as const satisfies Readonly<Record<string, DropReason>>

/** The label `reason` of `svc_*_dropped_total`. A receiver's statuses have other names: see `ofReceiver`. */
export type DropReasonName = keyof typeof reasons

export const dropReasons: Readonly<Record<DropReasonName, DropReason>> = reasons

/** Reasons of a place. */
export type ReasonAt<P extends DropPlace> = {
  [Name in DropReasonName]: (typeof reasons)[Name]['place'] extends P ? Name : never
}[DropReasonName]

/** The reason with this name; undefined: a receiver's own, see `ofReceiver`. */
export function reasonNamed(name: string): DropReason | undefined {
  return Object.hasOwn(reasons, name) ? dropReasons[name as DropReasonName] : undefined
}

/** Shared by all statuses with which a receiver rejects a batch permanently (`invalid_argument`, `http_400`). */
export const ofReceiver: DropReason = {
  place: 'receiver',
  means: 'the receiver rejected them permanently, with this status',
  hint: 'svc doctor export; svc queue export --dead shows what was rejected',
}
