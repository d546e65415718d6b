// The documents of the management API. Fields keep the spelling that they have on the wire; documents may gain fields,
// and never lose or rename one.

import {
  anything,
  count,
  flag,
  list,
  named,
  type Of,
  object,
  oneOf,
  optional,
  orNull,
  record,
  text,
  time,
} from './schema.ts'
import { cpu, eventLoop, lastRun, memory } from './self-shapes.ts'

export const errorDocument = named(
  'Error',
  object('What went wrong. Every error on every path has this form.', {
    error: oneOf('Code.', [
      'invalid_request',
      'unauthorized',
      'forbidden',
      'not_found',
      'rate_limited',
      'internal_error',
      'service_unavailable',
    ]),
    message: text('One sentence for a person: what could not be done, why, and what to do.'),
    details: record('What a program may want of it.', anything('A value.')),
  }),
)

export const healthDocument = named(
  'Health',
  object('Whether the process does its work.', {
    status: oneOf('`ok` when healthy.', ['ok', 'unhealthy']),
    reason: optional(text('What is stuck; only when unhealthy.')),
  }),
)

const check = text('`ok`, or `failed: ` and the reason. A subsystem that is switched off is `ok`.', {
  pattern: '^(ok|failed: .+)$',
})

export const readinessDocument = named(
  'Readiness',
  object('Whether everything that was asked for works.', {
    status: oneOf('`ready` when every check is `ok`.', ['ready', 'not_ready']),
    checks: object('By subsystem.', { ebpf: check, otlp: check, discovery: check }),
    warnings: optional(
      list('What to know, and no reason not to be ready; left out where there is nothing.', text('One.')),
    ),
  }),
)

const degradation = object('A subsystem that does not work, or does less than it was asked to.', {
  subsystem: text('Its name.'),
  reason: text('Why.'),
  hint: text('What to do about it; empty where nothing is known.'),
})

export const statusDocument = named(
  'Status',
  object('The agent at a glance.', {
    version: text('Release version.'),
    commit: text('Short commit id.'),
    built: text('ISO 8601, UTC.', { format: 'date-time' }),
    uptime: text('Hours, minutes and seconds, without leading zero units: `24h15m30s`, `30s`.', {
      pattern: '^(\\d+h\\d+m\\d+s|\\d+m\\d+s|\\d+s)$',
    }),
    mode: oneOf('Mode.', ['agent', 'collector']),
    host: object('The host.', {
      name: text('Host name.'),
      os: text('Operating system.'),
      arch: text('As the semantic conventions name it: `amd64`, `arm64`.'),
      kernel: text('Kernel release.'),
    }),
    ebpf: object('What svc has in the kernel.', {
      enabled: flag('There is something.'),
      programs_loaded: count('eBPF programs in the kernel, of all parts.'),
      maps_created: count('eBPF maps in the kernel, of all parts.'),
      ringbuf_size: count('Bytes.'),
      parts: list(
        'What it is for.',
        object('A part.', {
          subsystem: text('What it is called, as in `degraded`.'),
          state: oneOf('`off`: it was not asked for; `failed`: it was, and does not run.', [
            'on',
            'off',
            'failed',
          ]),
          reason: text('Why it is not on; empty where it is.'),
        }),
      ),
    }),
    profiling: object('Profiles of the host.', {
      enabled: flag('It runs.'),
      sample_rate: count('Hz.'),
      profiles_collected: count('Since the start.'),
    }),
    export: object('Export over OTLP.', {
      endpoint: text('`host:port`; empty where none is configured.'),
      connected: flag('The last request reached a receiver.'),
      last_export: time('Of the last acknowledged request.'),
      spans_exported: count('Acknowledged.'),
      metrics_exported: count('Acknowledged.'),
    }),
    discovery: object('Sources of metadata.', {
      kubernetes: flag('The source is on.'),
      docker: flag('The source is on.'),
      pods_discovered: count('Now.'),
      containers_discovered: count('Now.'),
    }),
    memory,
    cpu,
    last_run: orNull(lastRun),
    event_loop: orNull(eventLoop),
    reload: object('The last reload of the configuration; the start counts as one.', {
      successful: flag('It was taken up, or nothing had changed.'),
      last_attempt: text('ISO 8601, UTC.', { format: 'date-time' }),
      reason: text('Why it was refused, so that the former configuration holds; empty where it was not.'),
      place: text('`FILE:LINE:COLUMN` of the first mistake, or the file; empty where there is none.'),
      hint: text('What to do about it; empty where there is nothing to do.'),
      requires_restart: list('Keys whose change waits for a restart.', text('A key.')),
    }),
    degraded: list('What does not work, or less than asked.', degradation),
  }),
)

export const ebpfDocument = named(
  'Ebpf',
  object('What svc has in the kernel.', {
    enabled: flag('There is something.'),
    programs: list(
      'Programs in the kernel.',
      object('A program.', {
        name: text('Its name; the kernel knows the first 15 bytes of it.'),
        object: text('The object that it belongs to: `sock`, `net`, `process` …'),
        type: text('As the kernel names it: `tracing`, `kprobe`, `tracepoint` …'),
        attached: flag('It sees events.'),
        links: count('Places that it is attached to: one, or one for each CPU or library.'),
        id: count('Number in the kernel.'),
        run_time_ns: optional(count('Nanoseconds in all runs; only with `agent.ebpf.debug`.')),
        run_count: optional(count('Runs; only with `agent.ebpf.debug`.')),
      }),
    ),
    maps: list(
      'Maps in the kernel; one that objects share stands once.',
      object('A map.', {
        name: text('Its name; the kernel knows the first 15 bytes of it.'),
        object: text('The object that it belongs to.'),
        id: count('Number in the kernel.'),
        type: text('As the kernel names it: `hash`, `array` …'),
        entries: count(
          'Entries, counted within the last ten seconds or somewhat longer ago for large maps. Arrays count as full; rings, and storage of sockets and tasks, show none.',
        ),
        max_entries: count('Most entries.'),
      }),
    ),
    ringbuf: object(
      'The ring buffer between kernel and agent; zeros where perf buffers stand in for it (before Linux 5.8).',
      {
        size: count('Bytes.'),
        events_received: count('Records read.'),
        events_lost: count('Records that found no room.'),
      },
    ),
    tls: list(
      'Libraries of TLS that were looked at.',
      object('A file.', {
        path: text('As a process that maps it sees it.'),
        inode: text('Device and inode.'),
        build_id: text('Empty where it has none.'),
        library: text('`openssl`, `openssl-static` or `gnutls`.'),
        symbols: list('Functions that are probed.', text('A name.')),
        processes: count('Processes that map it.'),
        attached: flag('It is probed.'),
        reason: text('Why it is not.'),
      }),
    ),
    profiling: object('How stacks are unwound and named; all zero where profiles are off.', {
      sample_rate: count('Samples a second and CPU, recordings included.'),
      map_bytes: count('Memory of the maps in the kernel.'),
      table_bytes: count('Of it: unwind tables in use.'),
      files: count('Files whose code was met.'),
      files_refused: count('Files whose table found no room.'),
      symbol_bytes: count('Memory of symbol tables.'),
      stacks: count('Distinct stacks that are remembered.'),
      frames: count('Distinct frames of user space that were met.'),
      frames_named: count('Of them those that have a name.'),
      worker_failures: count('How often the thread that reads files had to be started again.'),
      decoder_fault: text('Why no name of C++ is written as in the source; empty: nothing is wrong.'),
      counters: record(
        'Samples, how their stacks ended, what was lost, and names of C++ that stay as the linker has them, by why (`names_…`).',
        count('Since the start.'),
      ),
      untabled: list(
        'Files whose code is unwound by frame pointers alone: the last ones.',
        object('A file.', { path: text('As a process that maps it sees it.'), reason: text('Why.') }),
      ),
    }),
    backend: text('Name of the capture back end; empty for none.'),
    counters: record(
      'What the kernel side counted, by name: every way in which traffic is not seen one by one.',
      count('Since the start.'),
    ),
  }),
)

const queueDocument = named(
  'Queue',
  object('One signal’s queue, in items where nothing else is said.', {
    size: count('Waiting and under way.'),
    capacity: count(
      'What fits into `capacity_bytes` at the mean size of an item so far; at a usual size before the first batch.',
    ),
    exported: count('Acknowledged.'),
    dropped: count('Lost, for whatever reason.'),
    bytes: count('Bytes that wait and are under way.'),
    capacity_bytes: count(
      'Most bytes now. On disk all signals share `disk_queue.max_bytes`, and what others hold is taken off.',
    ),
    on_disk: flag('It is part of the queue on disk.'),
  }),
)

const destination = object('A destination of one signal.', {
  signal: text('`traces`, `metrics`, `logs` or `profiles`.'),
  endpoint: text('`host:port`.'),
  connected: flag('The last request reached it.'),
  parked: flag('It refuses the credentials; data is kept, and it is asked again from time to time.'),
  last_error: orNull(text('What became of the last request; null after a success.')),
  last_warning: orNull(text('Its words on the last partial success.')),
  next_attempt: orNull(
    text('When the next request may start (ISO 8601); null while nothing stands in its way.'),
  ),
})

export const exportDocument = named(
  'Export',
  object('Export over OTLP.', {
    endpoint: text('`host:port`; empty where none is configured.'),
    protocol: text('`grpc`, `http/protobuf` or `http/json`.'),
    tls: flag('The connection is encrypted.'),
    compression: text('`gzip`, `zstd` or `none`.'),
    connected: flag('The last request reached a receiver.'),
    last_export: time('Of the last acknowledged request.'),
    last_error: orNull(text('What stands in the way; null when nothing does.')),
    queues: object('By signal.', {
      traces: queueDocument,
      metrics: queueDocument,
      logs: queueDocument,
      profiles: queueDocument,
    }),
    destinations: list('Where each signal goes, and how that goes.', destination),
    disk_queue: orNull(
      object('The queue on disk; null where batches wait in memory.', {
        state: text('`ok`, or `degraded`: batches are kept in memory until the disk works again.'),
        reason: text('What is wrong and the hint; empty where nothing is.'),
        bytes: count('Of all its files.'),
        max_bytes: count('Most bytes of all signals together.'),
        free_bytes: count('Free on the file system.'),
      }),
    ),
  }),
)

export const configDocument = named(
  'Config',
  object('The whole effective configuration, secrets redacted. The reference describes every key.', {
    mode: text('Mode.'),
    otlp: object('Export.', {
      endpoint: text('Receiver.'),
      insecure: flag('Without TLS.'),
      compression: text('Compression.'),
    }),
    agent: object('What is observed.', {
      ebpf: object('In the kernel.', {
        enabled: flag('Loads eBPF programs.'),
        network: object('Traffic.', { enabled: flag('Observes it.') }),
      }),
      profiling: object('Profiles.', {
        enabled: flag('Takes profiles.'),
        sample_rate: count('Hz.'),
      }),
    }),
  }),
)

export const reloadDocument = named(
  'Reload',
  object('What a reload did.', {
    status: oneOf('`ok`.', ['ok']),
    message: text('In words.'),
    changed: list('Keys that took effect.', text('Key path.')),
    requires_restart: list(
      'Keys that differ from what runs and take effect when the agent is started again.',
      text('Key path.'),
    ),
    config_hash: text('Of the configuration that was taken up.'),
  }),
)

const bySignal = (description: string) =>
  object(description, {
    traces: count('Spans.'),
    metrics: count('Data points.'),
    logs: count('Log records.'),
    profiles: count('Profiles.'),
  })

export const flushDocument = named(
  'Flush',
  object('What a flush did.', {
    status: oneOf('`ok`.', ['ok']),
    flushed: bySignal('Items that the receiver acknowledged.'),
    remaining: bySignal('Items that still waited when the time was over.'),
  }),
)

export const varsDocument = named(
  'Vars',
  object('Variables of the runtime.', {
    cmdline: list('Arguments of the process.', text('An argument.')),
    memstats: object('Memory, in bytes.', {
      Alloc: count('In use: the heap, and buffers beside it.'),
      TotalAlloc: count('Allocated since the start, as far as the runtime tells.'),
      Sys: count('Resident.'),
      NumGC: count('Garbage collections since debug mode began.'),
    }),
  }),
)

const lane = named(
  'PipelineSignal',
  object('The balance of one signal: received + recovered = exported + rejected + dropped + queued.', {
    received: count('Items taken in, those included that were lost on the way.'),
    exported: count('Acknowledged.'),
    recovered: count('Found at the start in the queue on disk, where a former process had left them.'),
    rejected: count('Refused by the receiver for good, out of requests that it took.'),
    dropped: record('Lost, by reason.', count('Items.')),
    queued: count('Gathered, waiting and under way.'),
    queued_bytes: count('Bytes of it that are in the queue.'),
    oldest_ms: count('How long the oldest item has waited, in milliseconds.'),
    requests: count('Export requests that ended.'),
    failed: count('Export requests that failed.'),
    retries: count('Batches that were sent once more.'),
    requests_under_way: count('Now.'),
  }),
)

const processor = object('A processor of one signal.', {
  name: text('Its name.'),
  signal: text('`traces`, `metrics`, `logs` or `profiles`.'),
  warning: text('What an operator should know now; empty for nothing.'),
  counters: list(
    'What it did, since the start.',
    object('A counter.', {
      rule: text('The rule, or what else is counted apart; empty for the whole processor.'),
      outcome: text('A word such as `matched`, `truncated`, `redacted`, `dropped`.'),
      total: count('How often.'),
    }),
  ),
})

export const pipelineDocument = named(
  'Pipeline',
  object('Where every item went.', {
    signals: object('By signal.', { traces: lane, metrics: lane, logs: lane, profiles: lane }),
    processors: list('Processors, in the order in which items pass them.', processor),
  }),
)

export const profileIndex = named(
  'ProfileIndex',
  object('Profiles of this process.', {
    profiles: list(
      'They are read by `go tool pprof URL`; the trace by Perfetto and Chrome.',
      object('A profile.', {
        name: text('Name.'),
        path: text('Where to get it.'),
        description: text('What it shows.'),
      }),
    ),
  }),
)

const column = (what: string, items = count('A number.')) => list(`${what}, by node.`, items)

export const flameDocument = named(
  'Flame',
  object('A recording of processes as one tree, for a flame graph.', {
    title: text('Whose it is.'),
    kind: oneOf('What was sampled.', ['cpu', 'memory', 'off_cpu']),
    unit: text('Of all values.'),
    start: text('ISO 8601, UTC.', { format: 'date-time' }),
    duration_ms: count('Milliseconds.'),
    sample_rate: count('Hz, of CPU time; 0 without samples.'),
    samples: count('How many; 0 where the kind has no period.'),
    total: count('The value of all samples.'),
    unnamed: count('Of the total: where the innermost function has no name.'),
    busy_ns: count('CPU time of the whole host meanwhile, all CPUs together.'),
    idle_ns: count('The same, idle.'),
    lost_samples: count('Missing, of all processes.'),
    processes: list(
      'The groups of processes that had samples, largest first.',
      object('Processes of one executable and service.', {
        service: text('`service.name`.'),
        executable: text('Empty where it may not be read.'),
        pids: list('Their numbers.', count('A number.')),
        value: count('Of the total.'),
      }),
    ),
    types: list('Types of frames (`profile.frame.type`) by number; 0 is none.', text('A type.')),
    strings: list('Names and files.', text('One of them.')),
    nodes: object('The tree in pre-order, in columns. Node 0 is the root, those below it are `processes`.', {
      parent: column('The node above; of the root itself'),
      name: column('The function, in `strings`'),
      file: column('Its file, in `strings`'),
      type: column('In `types`'),
      self: column('Value of the function itself'),
      total: column('Value with what it called'),
    }),
  }),
)

/** A path of the description itself. */
export const openapiDocument = anything('An OpenAPI 3.1 description.')

export type HealthDocument = Of<typeof healthDocument>
export type FlameDocument = Of<typeof flameDocument>
