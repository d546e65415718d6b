// The documents of the management API. Fields keep their spelling on the wire; documents may gain fields, and never
// lose or rename one.

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
  object('An error. All paths report errors in this form.', {
    error: oneOf('Error code.', [
      'invalid_request',
      'unauthorized',
      'forbidden',
      'not_found',
      'rate_limited',
      'internal_error',
      'service_unavailable',
    ]),
    message: text('What failed, why, and what to do, in one sentence.'),
    details: record('Details for programs.', anything('A value.')),
  }),
)

export const healthDocument = named(
  'Health',
  object('Whether the process works.', {
    status: oneOf('`ok` when healthy.', ['ok', 'unhealthy']),
    reason: optional(text('What is stuck; only when unhealthy.')),
  }),
)

const check = text('`ok`, or `failed: ` and the reason. A disabled subsystem is `ok`.', {
  pattern: '^(ok|failed: .+)$',
})

export const readinessDocument = named(
  'Readiness',
  object('Whether all requested features work.', {
    status: oneOf('`ready` when every check is `ok`.', ['ready', 'not_ready']),
    checks: object('Checks by subsystem.', { ebpf: check, otlp: check, discovery: check }),
    warnings: optional(
      list('Warnings that do not affect readiness; omitted if there are none.', text('A warning.')),
    ),
  }),
)

const degradation = object('A degraded subsystem: it does not work, or does less than requested.', {
  subsystem: text('Subsystem name.'),
  reason: text('Reason.'),
  hint: text('How to fix it; empty if unknown.'),
})

export const statusDocument = named(
  'Status',
  object('Summary of the agent’s state.', {
    version: text('Release version.'),
    commit: text('Short commit ID.'),
    built: text('Build time (ISO 8601, UTC).', { format: 'date-time' }),
    uptime: text(
      'Time since the start, in hours, minutes and seconds, without leading zero units: `24h15m30s`, `30s`.',
      {
        pattern: '^(\\d+h\\d+m\\d+s|\\d+m\\d+s|\\d+s)$',
      },
    ),
    mode: oneOf('Operating mode.', ['agent', 'collector']),
    host: object('Host.', {
      name: text('Host name.'),
      os: text('Operating system.'),
      arch: text('CPU architecture, as in the semantic conventions: `amd64`, `arm64`.'),
      kernel: text('Kernel release.'),
    }),
    ebpf: object('eBPF programs and maps.', {
      enabled: flag('Programs are loaded.'),
      programs_loaded: count('Loaded eBPF programs, all parts.'),
      maps_created: count('eBPF maps, all parts.'),
      ringbuf_size: count('Size of the ring buffer in bytes.'),
      parts: list(
        'State by part.',
        object('A part.', {
          subsystem: text('Subsystem name, as in `degraded`.'),
          state: oneOf('`off`: not requested; `failed`: requested, but not running.', [
            'on',
            'off',
            'failed',
          ]),
          reason: text('Why it is not on; empty if it is.'),
        }),
      ),
    }),
    profiling: object('Host profiling.', {
      enabled: flag('Profiling is running.'),
      sample_rate: count('Sampling rate in Hz.'),
      profiles_collected: count('Profiles since the start.'),
    }),
    export: object('OTLP export.', {
      endpoint: text('`host:port`; empty if no endpoint is configured.'),
      connected: flag('The last request reached a receiver.'),
      last_export: time('Time of the last acknowledged request.'),
      spans_exported: count('Acknowledged spans.'),
      metrics_exported: count('Acknowledged metric points.'),
    }),
    discovery: object('Sources of metadata.', {
      kubernetes: flag('The Kubernetes source is enabled.'),
      docker: flag('The Docker source is enabled.'),
      pods_discovered: count('Current number of pods.'),
      containers_discovered: count('Current number of containers.'),
    }),
    memory,
    cpu,
    last_run: orNull(lastRun),
    event_loop: orNull(eventLoop),
    reload: object('Last reload of the configuration; the start counts as one.', {
      successful: flag('The configuration was applied, or had not changed.'),
      last_attempt: text('Time of the attempt (ISO 8601, UTC).', { format: 'date-time' }),
      reason: text(
        'Why the configuration was rejected and the previous one is still active; empty if it was not.',
      ),
      place: text('`FILE:LINE:COLUMN` of the first error, or the file; empty if there is none.'),
      hint: text('How to fix it; empty if no action is needed.'),
      requires_restart: list('Keys whose change takes effect after a restart.', text('A key.')),
    }),
    degraded: list('Degraded subsystems.', degradation),
  }),
)

export const ebpfDocument = named(
  'Ebpf',
  object('eBPF programs and maps.', {
    enabled: flag('Programs are loaded.'),
    programs: list(
      'Loaded programs.',
      object('A program.', {
        name: text('Name; the kernel keeps its first 15 bytes.'),
        object: text('BPF object of the program: `sock`, `net`, `process` …'),
        type: text('Kernel name of the type: `tracing`, `kprobe`, `tracepoint` …'),
        attached: flag('The program receives events.'),
        links: count('Number of attachments: one, or one per CPU or library.'),
        id: count('ID in the kernel.'),
        run_time_ns: optional(count('Total run time in nanoseconds; only with `agent.ebpf.debug`.')),
        run_count: optional(count('Number of runs; only with `agent.ebpf.debug`.')),
      }),
    ),
    maps: list(
      'Maps; a map shared by several objects is listed once.',
      object('A map.', {
        name: text('Name; the kernel keeps its first 15 bytes.'),
        object: text('BPF object of the map.'),
        id: count('ID in the kernel.'),
        type: text('Kernel name of the type: `hash`, `array` …'),
        entries: count(
          'Entries, counted within the last ten seconds, or somewhat earlier for large maps. Arrays count as full; ring buffers and storage of sockets and tasks report none.',
        ),
        max_entries: count('Maximum number of entries.'),
      }),
    ),
    ringbuf: object(
      'Ring buffer between kernel and agent; zeros if perf buffers replace it (before Linux 5.8).',
      {
        size: count('Size in bytes.'),
        events_received: count('Records read.'),
        events_lost: count('Records lost because the ring buffer was full.'),
      },
    ),
    tls: list(
      'TLS libraries that svc inspected.',
      object('A file.', {
        path: text('Path, as seen by a process that maps the file.'),
        inode: text('Device and inode.'),
        build_id: text('Build ID; empty if there is none.'),
        library: text('`openssl`, `openssl-static` or `gnutls`.'),
        symbols: list('Probed functions.', text('A function.')),
        processes: count('Number of processes that map it.'),
        attached: flag('Probes are attached.'),
        reason: text('Why no probes are attached.'),
      }),
    ),
    profiling: object('Stack unwinding and symbols; all zero if profiling is off.', {
      sample_rate: count('Samples per second and CPU, including recordings.'),
      map_bytes: count('Memory of the BPF maps.'),
      table_bytes: count('Part of `map_bytes` for unwind tables in use.'),
      files: count('Files whose code was sampled.'),
      files_refused: count('Files without an unwind table because memory for tables was full.'),
      symbol_bytes: count('Memory of symbol tables.'),
      stacks: count('Distinct stacks in memory.'),
      frames: count('Distinct user-space frames seen.'),
      frames_named: count('Distinct user-space frames with a name.'),
      worker_failures: count('Restarts of the thread that reads files.'),
      decoder_fault: text('Why C++ names are not demangled; empty if there is no fault.'),
      counters: record(
        'Samples, outcomes of stacks, losses, and C++ names that stay mangled, by reason (`names_…`).',
        count('Total since the start.'),
      ),
      without_unwind_table: list(
        'Files unwound by frame pointers only, the most recent ones.',
        object('A file.', {
          path: text('Path, as seen by a process that maps the file.'),
          reason: text('Reason.'),
        }),
      ),
    }),
    backend: text('Name of the capture back end; empty if there is none.'),
    counters: record(
      'Kernel-side counters by name: all ways in which traffic is not captured individually.',
      count('Total since the start.'),
    ),
  }),
)

const queueDocument = named(
  'Queue',
  object('Queue of one signal, in items unless noted otherwise.', {
    size: count('Items waiting and in flight.'),
    capacity: count(
      'Items that fit into `capacity_bytes` at the mean item size so far; at a typical size before the first batch.',
    ),
    exported: count('Acknowledged items.'),
    dropped: count('Lost items, for any reason.'),
    bytes: count('Bytes waiting and in flight.'),
    capacity_bytes: count(
      'Current limit in bytes. On disk, all signals share `disk_queue.max_bytes`; bytes of other signals are subtracted.',
    ),
    on_disk: flag('The queue is part of the disk queue.'),
  }),
)

const destination = object('Destination of one signal.', {
  signal: text('`traces`, `metrics`, `logs` or `profiles`.'),
  endpoint: text('`host:port`.'),
  connected: flag('The last request reached it.'),
  credentials_rejected: flag(
    'It rejects the credentials; data is kept, and export is retried from time to time.',
  ),
  last_error: orNull(text('Error of the last request; null after a success.')),
  last_warning: orNull(text('Its message on the last partial success.')),
  next_attempt: orNull(text('Earliest start of the next request (ISO 8601); null if nothing delays it.')),
})

export const exportDocument = named(
  'Export',
  object('OTLP export.', {
    endpoint: text('`host:port`; empty if no endpoint is configured.'),
    protocol: text('`grpc`, `http/protobuf` or `http/json`.'),
    tls: flag('The connection is encrypted.'),
    compression: text('`gzip`, `zstd` or `none`.'),
    connected: flag('The last request reached a receiver.'),
    last_export: time('Time of the last acknowledged request.'),
    last_error: orNull(text('Current error; null if there is none.')),
    queues: object('Queues by signal.', {
      traces: queueDocument,
      metrics: queueDocument,
      logs: queueDocument,
      profiles: queueDocument,
    }),
    destinations: list('Destinations by signal, and their state.', destination),
    disk_queue: orNull(
      object('Disk queue; null if batches wait in memory.', {
        state: text('`ok`, or `degraded`: batches stay in memory until the disk works again.'),
        reason: text('Fault and fix; empty if there is none.'),
        bytes: count('Size of all files.'),
        max_bytes: count('Limit for all signals together.'),
        free_bytes: count('Free space on the file system.'),
      }),
    ),
  }),
)

export const configDocument = named(
  'Config',
  object(
    'The complete effective configuration, secrets redacted. The configuration reference describes each key.',
    {
      mode: text('Operating mode.'),
      otlp: object('OTLP export.', {
        endpoint: text('Receiver endpoint.'),
        insecure: flag('TLS is off.'),
        compression: text('Compression method.'),
      }),
      agent: object('Observation.', {
        ebpf: object('eBPF.', {
          enabled: flag('Loads eBPF programs.'),
          network: object('Network traffic.', { enabled: flag('Observes network traffic.') }),
        }),
        profiling: object('Profiling.', {
          enabled: flag('Takes profiles.'),
          sample_rate: count('Sampling rate in Hz.'),
        }),
      }),
    },
  ),
)

export const reloadDocument = named(
  'Reload',
  object('Result of a reload.', {
    status: oneOf('`ok`.', ['ok']),
    message: text('Result as a sentence.'),
    changed: list('Keys that took effect.', text('Key path.')),
    requires_restart: list(
      'Keys that differ from the running configuration and take effect after a restart.',
      text('Key path.'),
    ),
    config_hash: text('Hash of the applied configuration.'),
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
  object('Result of a flush.', {
    status: oneOf('`ok`.', ['ok']),
    flushed: bySignal('Items that the receiver acknowledged.'),
    remaining: bySignal('Items still waiting at the timeout.'),
  }),
)

export const varsDocument = named(
  'Vars',
  object('Runtime variables.', {
    cmdline: list('Process arguments.', text('An argument.')),
    memstats: object('Memory, in bytes.', {
      Alloc: count('In use: heap and buffers outside it.'),
      TotalAlloc: count('Allocated since the start, as far as the runtime reports it.'),
      Sys: count('Resident memory.'),
      NumGC: count('Garbage collections since debug mode was enabled.'),
    }),
  }),
)

const signalBalance = named(
  'PipelineSignal',
  object('Balance of one signal: received + recovered = exported + rejected + dropped + queued.', {
    received: count('Items received, including items lost later.'),
    exported: count('Acknowledged items.'),
    recovered: count('Items in the disk queue at the start, left by a previous process.'),
    rejected: count('Items that the receiver permanently rejected in requests that it accepted.'),
    dropped: record('Lost items by reason.', count('Items.')),
    queued: count('Items being batched, waiting and in flight.'),
    queued_bytes: count('Bytes of these items in the queue.'),
    oldest_ms: count('Age of the oldest item in milliseconds.'),
    requests: count('Completed export requests.'),
    failed: count('Failed export requests.'),
    retries: count('Retried batches.'),
    requests_in_flight: count('Export requests in flight.'),
  }),
)

const processor = object('A processor of one signal.', {
  name: text('Processor name.'),
  signal: text('`traces`, `metrics`, `logs` or `profiles`.'),
  warning: text('Current warning for operators; empty if there is none.'),
  counters: list(
    'Counters since the start.',
    object('A counter.', {
      rule: text('The rule, or another item that is counted separately; empty for the whole processor.'),
      outcome: text('Outcome, such as `matched`, `truncated`, `redacted`, `dropped`.'),
      total: count('Total.'),
    }),
  ),
})

export const pipelineDocument = named(
  'Pipeline',
  object('Balance of all items.', {
    signals: object('Balance by signal.', {
      traces: signalBalance,
      metrics: signalBalance,
      logs: signalBalance,
      profiles: signalBalance,
    }),
    processors: list('Processors, in processing order.', processor),
  }),
)

export const profileIndex = named(
  'ProfileIndex',
  object('Profiles of the agent process.', {
    profiles: list(
      '`go tool pprof URL` reads profiles; Perfetto and Chrome read the trace.',
      object('A profile.', {
        name: text('Profile name.'),
        path: text('Path of the profile.'),
        description: text('Description.'),
      }),
    ),
  }),
)

const column = (what: string, items = count('A number.')) => list(`${what}, by node.`, items)

export const flameDocument = named(
  'Flame',
  object('A recording of processes as one tree, for a flame graph.', {
    title: text('Name of the recorded target.'),
    kind: oneOf('Kind of profile.', ['cpu', 'memory', 'off_cpu']),
    unit: text('Unit of all values.'),
    start: text('Start time (ISO 8601, UTC).', { format: 'date-time' }),
    duration_ms: count('Duration in milliseconds.'),
    sample_rate: count('Sampling rate of CPU time in Hz; 0 without samples.'),
    samples: count('Number of samples; 0 if the kind has no period.'),
    total: count('Total value of all samples.'),
    unnamed: count('Part of the total whose innermost function has no name.'),
    busy_ns: count('CPU time of the whole host during the recording, all CPUs together.'),
    idle_ns: count('Idle CPU time of the whole host during the recording, all CPUs together.'),
    lost_samples: count('Lost samples, of all processes.'),
    processes: list(
      'Groups of processes with samples, largest first.',
      object('Processes of one executable and service.', {
        service: text('`service.name`.'),
        executable: text('Executable; empty if it cannot be read.'),
        pids: list('Process IDs.', count('A process ID.')),
        value: count('Part of the total.'),
      }),
    ),
    types: list('Frame types (`profile.frame.type`) by number; 0 is none.', text('A type.')),
    strings: list('Names and files.', text('A name or file.')),
    nodes: object('The tree in pre-order, in columns. Node 0 is the root; its children are `processes`.', {
      parent: column('Parent node; the root is its own parent'),
      name: column('Function, an index into `strings`'),
      file: column('File, an index into `strings`'),
      type: column('Frame type, an index into `types`'),
      self: column('Value of the function alone'),
      total: column('Value of the function and its callees'),
    }),
  }),
)

/** Type of the description itself. */
export const openapiDocument = anything('An OpenAPI 3.1 description.')

export type HealthDocument = Of<typeof healthDocument>
export type FlameDocument = Of<typeof flameDocument>
