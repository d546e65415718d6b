import { parseDockerAddress } from '../foundation/lib/docker-address.ts'
import { ExitCode } from '../foundation/lib/start-error.ts'
import { list, map } from '../foundation/schema/collections.ts'
import {
  boolean,
  choice,
  duration,
  fileThat,
  integer,
  number,
  path,
  port,
  regex,
  size,
  someText,
  text,
} from '../foundation/schema/kinds.ts'
import { branch, key } from '../foundation/schema/tree.ts'
import { protocols } from '../signals/traces/protocols/index.ts'
import { nodeexporter } from './schema-nodeexporter.ts'

const Ki = 1024
const Mi = 1024 * Ki
const Gi = 1024 * Mi
const later = { built: false } as const

const glob = text({
  expects: 'a path that begins with "/", such as "/var/log/*.log"',
  pattern: /^\//,
})

/** Detected protocols, by the key that enables them. */
const titles = new Map<string, string[]>()
for (const { key, title } of protocols) titles.set(key, [...(titles.get(key) ?? []), title])

/** All are booleans. Their reader finds the key in the list of protocols. */
const switches: object = Object.fromEntries(
  [...titles].map(([name, spoken]) => [
    name,
    key(boolean, true, `Creates spans and metrics for ${spoken.join(' and ')} calls.`, { restart: true }),
  ]),
)

const network = branch('Traffic of all processes, captured at their sockets.', {
  enabled: key(boolean, true, 'Observes network traffic.', { restart: true }),
  ...switches,
  tls: key(boolean, true, 'Reads TLS traffic through probes on the TLS libraries of processes.', {
    restart: true,
  }),
  tcp_metrics: key(boolean, true, 'Measures TCP connections: round-trip time, retransmits, failures.', {
    restart: true,
  }),
  flows: key(boolean, true, 'Counts bytes between pairs of hosts.', { restart: true }),
  interfaces: key(list(someText), [], 'Network interfaces for flows; empty for all.', { restart: true }),
  include_ports: key(
    list(port),
    [],
    'Server ports to observe; empty for all. `exclude_ports` takes precedence.',
  ),
  exclude_ports: key(list(port), [], 'Server ports to ignore.'),
  exclude_paths: key(
    list(text({ expects: 'a path that begins with "/"', pattern: /^\// })),
    ['/healthz', '/livez', '/ready', '/readyz', '/metrics'],
    'URL paths whose requests get no spans; metrics still count them.',
  ),
  capture_headers: key(list(someText), [], 'HTTP headers to record as span attributes.', later),
  capture_bytes: key(
    integer({ min: 256, max: 8192 }),
    1024,
    'Bytes of each HTTP/1 request head to use for its span; framing and trace context are also read beyond them.',
    { restart: true },
  ),
  propagation: key(
    choice(['off', 'read', 'inject-http', 'inject-all'], ['off', 'read']),
    'read',
    'Trace context: `read` uses the context in requests, `inject-*` also adds it to requests without one.',
  ),
  routes: branch('Low-cardinality routes from URL paths.', {
    patterns: key(
      list(text({ expects: 'a route such as "/users/{id}" or "/static/*"', pattern: /^\// })),
      [],
      'Routes to match first, in this order: `{name}` matches one segment and `*` matches any rest.',
    ),
    unmatched: key(
      choice(['heuristic', 'wildcard', 'path', 'unset']),
      'heuristic',
      'For other paths: `heuristic` replaces segments that look like values, `wildcard` uses `/**`, `path` keeps the path, `unset` sets no route.',
    ),
    max_segment_cardinality: key(
      integer({ min: 1, max: 10_000 }),
      10,
      'Distinct values of a path segment above which it is treated as a parameter.',
    ),
  }),
  metrics_interval: key(duration({ min: 100 }), 15_000, 'Interval between exports of request metrics.'),
  sampling: branch('Span sampling. Metrics always count every request.', {
    max_spans_per_second: key(
      integer({ min: 0, max: 10_000_000 }),
      20_000,
      'Maximum spans per second, plus the same number of failed or slow ones, and again the same for HTTP/2 and messages (Kafka and others), which are decoded in user space. Spans above the limit are dropped and counted; metrics stay exact. 0 for no limit.',
    ),
    ratio: key(number({ min: 0, max: 1 }), 1, 'Fraction of traces to keep.'),
    always_errors: key(boolean, true, 'Keeps failed requests regardless of `ratio`.'),
    always_slow: key(boolean, true, 'Keeps requests slower than `slow_threshold` regardless of `ratio`.'),
    slow_threshold: key(duration({ min: 1 }), 1000, 'Duration above which a request counts as slow.'),
  }),
})

const ebpf = branch('Programs in the kernel (eBPF).', {
  enabled: key(boolean, true, 'Loads eBPF programs; when off, no part of svc loads any.', { restart: true }),
  required: key(
    boolean,
    false,
    `Refuses to start (exit code ${ExitCode.ebpf}) if an enabled feature that needs eBPF cannot run, instead of continuing without it: traces, connections, process events, system calls, profiles, and host metrics with \`agent.nodeexporter.ebpf_enhanced\`.`,
    { restart: true },
  ),
  debug: key(
    boolean,
    false,
    'Logs the verifier output of each rejected program, the run count and run time of each program every minute, and which TLS libraries are read or why not. `/status/ebpf` then has the totals. The measurement reads the clock twice per program run.',
  ),
  backend: key(
    choice(['auto', 'sock', 'fentry', 'kprobe', 'syscalls'], ['auto', 'sock', 'syscalls']),
    'auto',
    'Kernel hooks that capture traffic; `auto` uses the first one that this kernel supports.',
    { restart: true },
  ),
  ringbuf_size: key(
    size({ min: 4 * Ki, max: Gi, powerOfTwo: true, plain: true }),
    8 * Mi,
    'Size in bytes of the ring buffer between kernel and agent. It counts as resident memory of the agent; metrics still count records that do not fit.',
    { restart: true },
  ),
  perf_buffer_size: key(
    size({ min: 32 * Ki, max: 64 * Mi, powerOfTwo: true, plain: true }),
    64 * Ki,
    'Bytes per CPU of the perf buffers that replace the ring buffer on kernels before 5.8; a record has at most 8 KiB. Records that do not fit are counted as `perf_full`.',
    { restart: true },
  ),
  network,
  syscalls: branch('Counts and durations of system calls.', {
    enabled: key(
      boolean,
      false,
      'Measures system calls. It adds about 0.2 µs to every system call on the host.',
      { restart: true },
    ),
    include: key(list(someText), [], 'System calls to measure; empty for all.', { restart: true }),
    exclude: key(
      list(someText),
      ['futex', 'nanosleep', 'clock_nanosleep', 'epoll_wait', 'epoll_pwait'],
      'System calls to ignore.',
      { restart: true },
    ),
  }),
  process: branch('Process starts and ends, and out-of-memory kills.', {
    enabled: key(boolean, true, 'Records process events.', { restart: true }),
  }),
})

const profiling = branch('Profiles of all processes.', {
  enabled: key(boolean, true, 'Records profiles.'),
  sample_rate: key(integer({ min: 1, max: 999 }), 19, 'Samples per second per CPU.'),
  cpu: key(boolean, true, 'Records where CPU time is spent.'),
  off_cpu: key(boolean, false, 'Records where threads wait.'),
  memory: key(boolean, false, 'Records where memory is allocated.'),
  interval: key(duration({ min: 1000 }), 10_000, 'Length of one profile.'),
  include_kernel: key(boolean, true, 'Includes kernel frames.'),
  symbols: branch('Symbols for addresses.', {
    demangle: key(boolean, true, 'Demangles C++ and Rust names.'),
    perf_map: key(boolean, true, 'Reads /tmp/perf-PID.map files of JIT compilers.'),
    debuginfo_dirs: key(list(path), ['/usr/lib/debug'], 'Directories with separate debug information.'),
    cache_size: key(
      size({ min: Mi, max: Gi }),
      32 * Mi,
      'Memory for symbol tables; less if the memory limit of svc is below 512 MiB.',
    ),
  }),
})

const logs = branch('Logs of containers, files and the journal.', {
  enabled: key(boolean, true, 'Collects logs.'),
  container_logs: key(boolean, true, 'Reads Docker and CRI container logs.'),
  journald: key(boolean, false, 'Reads the systemd journal.'),
  paths: key(list(glob), [], 'Log files to read; may contain `*`, `?`, `[a-z]`, `{a,b}` and `**`.'),
  exclude: key(list(glob), [], 'Log files to ignore; the same patterns.'),
  start_at: key(
    choice(['end', 'beginning']),
    'end',
    'Where to start in files that exist when svc first looks; newer files are read from the beginning.',
  ),
  position_file: key(path, '/var/lib/svc/log-positions', 'File that stores the read position of each log.', {
    restart: true,
  }),
  multiline: branch('Multi-line records.', {
    enabled: key(boolean, false, 'Joins lines of a multi-line record.'),
    pattern: key(regex, '', 'Regular expression that marks lines.'),
    negate: key(boolean, false, 'Marks lines that do not match instead.'),
    match: key(
      choice(['after', 'before']),
      'after',
      'Whether marked lines belong to the record before them (`after`) or after them.',
    ),
    max_lines: key(integer({ min: 1, max: 100_000 }), 500, 'Maximum lines of one record.'),
    timeout: key(duration(), 5000, 'Time after which a record is complete.'),
  }),
  parse: branch('Parsing of log lines.', {
    json: key(boolean, true, 'Parses fields of JSON lines.'),
    severity: key(boolean, true, 'Detects the severity.'),
    trace_context: key(boolean, true, 'Detects trace and span ids.'),
  }),
  max_line_size: key(
    size({ min: Ki, max: Mi }),
    256 * Ki,
    'Maximum record size in bytes; longer ones are split into several records.',
  ),
})

/** Like `mayDeclare` in src/identity/entities. */
const daemon = text({
  expects: 'a socket such as "unix:///run/docker.sock", an address such as "tcp://127.0.0.1:2376", or empty',
  pattern: /^(|(unix:\/\/)?\/.+|((tcp|https?):\/\/)?[^/@]+\/?)$/,
  valid: address => address === '' || !('instead' in parseDockerAddress(address)),
  hint: ({ text: address }) => {
    const read = parseDockerAddress(address)
    return 'instead' in read ? `${read.instead} (${read.reason})` : undefined
  },
  leak: address =>
    address.includes('@') && !('path' in parseDockerAddress(address))
      ? 'contains a user name or password, which would show up in logs; delete it'
      : undefined,
})

const acceptedKey = text({
  expects: 'an attribute key such as "team", or "app.*" for all that begin with "app."',
  pattern: /^[^\s*,=]{1,128}(\.\*)?$/,
})

const discovery = branch('Metadata of the host, its containers and its cluster.', {
  enabled: key(boolean, true, 'Adds discovered metadata to all telemetry.'),
  interval: key(duration({ min: 1000 }), 30_000, 'Poll interval for sources that cannot be watched.'),
  detect_kubernetes: key(boolean, true, 'Queries Kubernetes when the agent runs in a cluster.'),
  detect_docker: key(boolean, true, 'Queries Docker, containerd and Podman.'),
  detect_cloud: key(boolean, true, 'Queries the metadata service of the cloud.'),
  process_attributes: key(
    list(acceptedKey),
    ['team', 'app.*', 'vcs.*'],
    'Resource attributes accepted from a process (`OTEL_RESOURCE_ATTRIBUTES`) and from pod annotations (`resource.opentelemetry.io/…`), in addition to `service.*` and `deployment.*`; `app.*` matches all that begin with `app.`. They are accepted from any process, so list none that identify hosts, containers or instances.',
    { restart: true },
  ),
  docker: branch('Container runtimes.', {
    endpoint: key(
      daemon,
      '',
      'The only daemon to query: a socket or address of Docker or Podman (`tcp://`, `http://`, `https://`; `$DOCKER_TLS_VERIFY` and `$DOCKER_CERT_PATH` apply as for the Docker client), or a containerd socket. Empty: `$DOCKER_HOST`, then the usual sockets of Docker, Podman and containerd.',
    ),
    labels: key(list(someText), [], 'Container labels to record as resource attributes.'),
  }),
  kubernetes: branch('Kubernetes.', {
    kubeconfig: key(fileThat('any', path), '', 'Kubeconfig file; empty for the service account of the pod.'),
    node_name: key(text(), '', 'Name of this node; empty to detect it.'),
    namespaces: key(list(someText), [], 'Namespaces to watch; empty for all.'),
    labels: key(list(someText), [], 'Pod labels to record as resource attributes.'),
    annotations: key(list(someText), [], 'Pod annotations to record as resource attributes.'),
  }),
})

const gpu = branch('GPU metrics.', {
  enabled: key(boolean, true, 'Measures GPUs.'),
  nvidia: key(boolean, true, 'Measures NVIDIA GPUs.'),
  interval: key(duration({ min: 1000 }), 10_000, 'Interval between measurements.'),
  per_process: key(boolean, true, 'Reports GPU use by process.'),
})

export const agent = branch('Collection on the agent’s host.', {
  ebpf,
  profiling,
  logs,
  discovery,
  gpu,
  nodeexporter,
})

export const resource = branch('Resource of all telemetry.', {
  attributes: key(map(text()), {}, 'Attributes added to the resource of all telemetry.', {
    restart: true,
  }),
})
