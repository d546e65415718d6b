// Why items do not reach the receiver: the reasons that the books of the pipeline know, for messages and documents.

/** Where items are lost, in the order in which they pass. */
export type DropPlace = 'capture' | 'pipeline' | 'queue' | 'receiver' | 'scraping'

export interface DropReason {
  readonly place: DropPlace
  /** What happened, as the end of a sentence, without its full stop. */
  readonly means: string
  /** What to do: an imperative without its full stop. */
  readonly hint: string
  /** Somebody asked for it, or nobody was to receive it: no loss. */
  readonly wished?: true
}

const rising =
  'raise agent.ebpf.network.sampling.max_spans_per_second; metrics count these calls all the same'
const framing = 'svc explain PORT; it passes with new connections'
const page = 'fix what the target tells: GET /status/targets'

const reasons = {
  no_endpoint: {
    place: 'pipeline',
    means: 'no receiver is configured for this signal, so it is shown on this host only',
    hint: 'set otlp.endpoint, or OTEL_EXPORTER_OTLP_ENDPOINT',
    wished: true,
  },
  queue_full: {
    place: 'queue',
    means: 'the receiver is slower than what comes, or away',
    hint: 'svc doctor export; raise pipeline.export.queue.max_size_bytes, queues.SIGNAL.mem_limit or otlp.concurrency',
  },
  memory_limit: {
    place: 'pipeline',
    means: 'svc was near limits.memory',
    hint: 'svc status shows what holds the memory; raise limits.memory, or bring the receiver back. Metrics count these calls all the same',
  },
  retry_timeout: {
    place: 'queue',
    means: 'the receiver did not take them in time',
    hint: 'svc doctor export; raise backoff.max_elapsed, or set it to 0 for no end',
  },
  expired: {
    place: 'queue',
    means: 'they waited too long for the receiver',
    hint: 'svc doctor export; raise queues.SIGNAL.max_age',
  },
  sampled: {
    place: 'pipeline',
    means: 'sampling left them out: agent.ebpf.network.sampling.ratio, or a rule with the action sample',
    hint: 'raise the ratio; 1 keeps all. Metrics count them all the same',
    wished: true,
  },
  over_budget: {
    place: 'capture',
    means: 'more came than the budget allows',
    hint: rising,
  },
  cpu_limit: {
    place: 'capture',
    means:
      'svc took more CPU than limits.cpu, so that fewer calls had spans, and fewer starts and ends of processes log records',
    hint: 'svc status shows what is lowered; raise limits.cpu. Metrics count them all the same',
  },
  internal_error: {
    place: 'capture',
    means: 'svc failed to read them, which is a fault of its own',
    hint: 'report the line "cannot decode a request" of the log; metrics may lack these calls',
  },
  ring_full: {
    place: 'capture',
    means:
      'more came at once than the ring buffer and the memory behind it hold; raise agent.ebpf.ringbuf_size',
    hint: 'give svc more CPU, lower max_spans_per_second, or raise agent.ebpf.ringbuf_size; metrics may lack what svc reads itself: HTTP/2, messages, TLS, and all before Linux 6.3',
  },
  perf_full: {
    place: 'capture',
    means:
      'more came at once than the perf buffers hold, which stand in for the ring buffer before Linux 5.8',
    hint: 'raise agent.ebpf.perf_buffer_size, or give svc more CPU; metrics may lack these calls',
  },
  rate_limited: {
    place: 'pipeline',
    means: 'more came than pipeline.limits.rate lets pass in a second',
    hint: 'raise pipeline.limits.rate.traces_per_second, logs_per_second or metrics_per_second',
  },
  cardinality: {
    place: 'pipeline',
    means:
      'a metric has more series than pipeline.limits.cardinality allows; their sum goes on as one series',
    hint: 'GET /debug/pipeline/stats names the label: delete it by a rule, or raise default_max_series',
  },
  series_limit: {
    place: 'pipeline',
    means: 'a metric has more series than pipeline.limits.cardinality allows, and on_limit is drop',
    hint: 'GET /debug/pipeline/stats names the label: delete it by a rule, or raise default_max_series',
  },
  excluded_path: {
    place: 'capture',
    means: 'agent.ebpf.network.exclude_paths means this path',
    hint: 'take the path out of agent.ebpf.network.exclude_paths; metrics count these calls all the same',
    wished: true,
  },
  not_selected: {
    place: 'capture',
    means: 'no rule of discovery means this process, or one excludes it',
    hint: 'svc explain PORT says which rule; change discovery.instrument or discovery.exclude',
    wished: true,
  },
  instrumented: {
    place: 'capture',
    means: 'the process exports spans of its own, and nothing is to be told twice',
    hint: 'nothing: switch its own SDK off if svc is to make its spans',
    wished: true,
  },
  transform: {
    place: 'pipeline',
    means: 'a rule of pipeline.transform drops them',
    hint: 'svc pipeline test says which rule; svc_processor_outcomes_total counts each',
    wished: true,
  },
  too_large: {
    place: 'receiver',
    means: 'single items are larger than a request may be',
    hint: 'raise the largest message that the receiver takes, or lower pipeline.limits.attributes',
  },
  rejected: {
    place: 'receiver',
    means: 'the receiver refused them for good',
    hint: 'svc status shows its words as last warning; fix what it complains of',
  },
  unimplemented: {
    place: 'receiver',
    means: 'the receiver does not know this signal',
    hint: 'set otlp.SIGNAL.enabled: false, or give it a receiver: otlp.SIGNAL.endpoint',
  },
  delta_start: {
    place: 'pipeline',
    means: 'the first point of a series tells no difference (otlp.metrics.temporality is delta)',
    hint: 'nothing where it is once for each series; does it go on, raise pipeline.limits.cardinality.global_max_series',
  },
  disk_full: {
    place: 'queue',
    means: 'the file system of the queue is full, and memory, too',
    hint: 'free space below pipeline.export.queue.directory (df, df -i), or lower max_size_bytes',
  },
  disk_read_only: {
    place: 'queue',
    means: 'the file system of the queue is read-only, and memory is full',
    hint: 'mount it writable; errors of the disk make it so: dmesg',
  },
  disk_error: {
    place: 'queue',
    means: 'the disk refuses to write the queue, and memory is full',
    hint: 'svc doctor export names the directory and the error',
  },
  corrupt: {
    place: 'queue',
    means: 'bytes of the queue on disk are damaged',
    hint: 'svc queue verify names each damaged place; look after the disk',
  },
  shutdown: {
    place: 'queue',
    means: 'svc ended before they were delivered, and there was no queue on disk to keep them',
    hint: 'set pipeline.export.queue.enabled: true, or raise pipeline.operations.shutdown.drain_timeout',
  },
  red_full: {
    place: 'capture',
    means: 'the table of totals in the kernel is full: these calls are in no metric either',
    hint: 'raise agent.ebpf.ringbuf_size and max_spans_per_second, so that less goes by totals',
  },
  framing_lost: {
    place: 'capture',
    means: 'the thread of a connection was lost: what was under way cannot be told any more',
    hint: framing,
  },
  no_memory: {
    place: 'capture',
    means: 'more connections or operations are under way than svc follows at a time',
    hint: 'leave out what you need not see: agent.ebpf.network.exclude_ports, discovery.exclude',
  },
  unreadable: {
    place: 'capture',
    means: 'a message was recognised and could not be read to its end',
    hint: 'raise agent.ebpf.network.capture_bytes where heads of requests are long',
  },
  processor: {
    place: 'pipeline',
    means: 'a fault in a processor cost these items',
    hint: 'this is a bug: svc diagnostics, and report it',
  },
  encode: {
    place: 'pipeline',
    means: 'a fault in the encoder cost these items',
    hint: 'this is a bug: svc diagnostics, and report it',
  },
  bad_le: { place: 'scraping', means: 'a bucket has no bound that is a number', hint: page },
  bad_quantile: { place: 'scraping', means: 'a quantile is not between 0 and 1', hint: page },
  duplicate_series: { place: 'scraping', means: 'a series stands twice on a page', hint: page },
  gauge_histogram: {
    place: 'scraping',
    means: 'OTLP has no gauge histograms',
    hint: 'drop them by metric_relabel_configs, so that nobody waits for them',
  },
  inconsistent_histogram: {
    place: 'scraping',
    means: 'buckets and count of a histogram contradict each other',
    hint: page,
  },
  inconsistent_summary: { place: 'scraping', means: 'the count of a summary is no count', hint: page },
  no_count: { place: 'scraping', means: 'a histogram or summary has no count', hint: page },
  unexpected_sample: {
    place: 'scraping',
    means: 'a sample does not fit the type that the page declares',
    hint: page,
  },
} as const satisfies Readonly<Record<string, DropReason>>

/** The label `reason` of `svc_*_dropped_total`. Statuses of a receiver have names of their own: `ofReceiver`. */
export type DropReasonName = keyof typeof reasons

export const dropReasons: Readonly<Record<DropReasonName, DropReason>> = reasons

/** Reasons of a place. */
export type ReasonAt<P extends DropPlace> = {
  [Name in DropReasonName]: (typeof reasons)[Name]['place'] extends P ? Name : never
}[DropReasonName]

/** The reason of a name that the books have; undefined: a receiver's own, see `ofReceiver`. */
export function reasonNamed(name: string): DropReason | undefined {
  return Object.hasOwn(reasons, name) ? dropReasons[name as DropReasonName] : undefined
}

/** What all statuses have in common by which a receiver refuses a batch for good (`invalid_argument`, `http_400`). */
export const ofReceiver: DropReason = {
  place: 'receiver',
  means: 'the receiver refused them for good, and this is what it called that',
  hint: 'svc doctor export; svc queue export --dead shows what was refused',
}
