import { parseDockerAddress } from '../lib/docker-address.ts'
import { ExitCode } from '../lib/start-error.ts'
import { protocols } from '../protocols/index.ts'
import { list, map } from '../schema/collections.ts'
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
} from '../schema/kinds.ts'
import { branch, key } from '../schema/tree.ts'
import { nodeexporter } from './schema-nodeexporter.ts'

const Ki = 1024
const Mi = 1024 * Ki
const Gi = 1024 * Mi
const later = { built: false } as const

const glob = text({
  expects: 'a path that begins with "/", such as "/var/log/*.log"',
  pattern: /^\//,
})

/** Protocols that are recognised in traffic, by the key that switches them. */
const titles = new Map<string, string[]>()
for (const { key, title } of protocols) titles.set(key, [...(titles.get(key) ?? []), title])

/** All are booleans. What reads them finds the key in the list of protocols. */
const switches: object = Object.fromEntries(
  [...titles].map(([name, spoken]) => [
    name,
    key(boolean, true, `Makes spans and metrics of ${spoken.join(' and ')} calls.`, { restart: true }),
  ]),
)

const network = branch('Traffic of all processes, seen at their sockets.', {
  enabled: key(boolean, true, 'Observes network traffic.', { restart: true }),
  ...switches,
  tls: key(boolean, true, 'Sees through TLS by probes on the TLS libraries of processes.', {
    restart: true,
  }),
  tcp_metrics: key(boolean, true, 'Measures connections: round-trip time, retransmits, failures.', {
    restart: true,
  }),
  flows: key(boolean, true, 'Counts bytes between pairs of hosts.', { restart: true }),
  interfaces: key(list(someText), [], 'Network interfaces for flows; empty for all.', { restart: true }),
  include_ports: key(list(port), [], 'Server ports to observe; empty for all. `exclude_ports` wins over it.'),
  exclude_ports: key(list(port), [], 'Server ports not to observe.'),
  exclude_paths: key(
    list(text({ expects: 'a path that begins with "/"', pattern: /^\// })),
    ['/healthz', '/livez', '/ready', '/readyz', '/metrics'],
    'URL paths of requests that make no spans; they still count in the metrics.',
  ),
  capture_headers: key(list(someText), [], 'HTTP headers whose values become span attributes.', later),
  capture_bytes: key(
    integer({ min: 256, max: 8192 }),
    1024,
    'Bytes of the head of each HTTP/1 request that its span is made of; framing and trace context are read behind them, too.',
    { restart: true },
  ),
  propagation: key(
    choice(['off', 'read', 'inject-http', 'inject-all'], ['off', 'read']),
    'read',
    'Trace context: `read` takes over what requests carry, `inject-*` also adds it to requests that carry none.',
  ),
  routes: branch('How a URL path becomes a low-cardinality route.', {
    patterns: key(
      list(text({ expects: 'a route such as "/users/{id}" or "/static/*"', pattern: /^\// })),
      [],
      'Routes to try first, in this order: `{name}` stands for one segment and `*` for any rest.',
    ),
    unmatched: key(
      choice(['heuristic', 'wildcard', 'path', 'unset']),
      'heuristic',
      'For other paths: `heuristic` replaces segments that look like values, `wildcard` says `/**`, `path` keeps the path, `unset` gives no route.',
    ),
    max_segment_cardinality: key(
      integer({ min: 1, max: 10_000 }),
      10,
      'Different values of one path segment before it counts as a parameter.',
    ),
  }),
  metrics_interval: key(duration({ min: 100 }), 15_000, 'Time between two exports of the request metrics.'),
  sampling: branch('Which spans are kept. The metrics count every request in any case.', {
    max_spans_per_second: key(
      integer({ min: 0, max: 10_000_000 }),
      20_000,
      'Most spans per second, and as many failed or slow ones besides; as many again of HTTP/2 and of messages (Kafka and others), which svc reads itself. What is above is dropped and counted, and the metrics stay exact. 0 for no limit.',
    ),
    ratio: key(number({ min: 0, max: 1 }), 1, 'Part of the traces that is kept.'),
    always_errors: key(boolean, true, 'Keeps failed requests whatever `ratio` says.'),
    always_slow: key(boolean, true, 'Keeps requests slower than `slow_threshold` whatever `ratio` says.'),
    slow_threshold: key(duration({ min: 1 }), 1000, 'Duration above which a request counts as slow.'),
  }),
})

const ebpf = branch('Observation in the kernel.', {
  enabled: key(boolean, true, 'Loads eBPF programs; without it no part of svc does.', { restart: true }),
  required: key(
    boolean,
    false,
    `Refuses to start (exit code ${ExitCode.ebpf}) where a part that is switched on and needs eBPF does not run, instead of going on without: traces, connections, process events, system calls, profiles, and host metrics with \`agent.nodeexporter.ebpf_enhanced\`.`,
    { restart: true },
  ),
  debug: key(
    boolean,
    false,
    'Logs what the verifier said of each program that it refused, every minute how often each program ran and what it took, and which libraries are read for TLS or why not. `/status/ebpf` then has the totals. Measuring costs each run of a program two looks at the clock.',
  ),
  backend: key(
    choice(['auto', 'sock', 'fentry', 'kprobe', 'syscalls'], ['auto', 'sock', 'syscalls']),
    'auto',
    'Kernel hooks that see the traffic; `auto` takes the first that this kernel has.',
    { restart: true },
  ),
  ringbuf_size: key(
    size({ min: 4 * Ki, max: Gi, powerOfTwo: true, plain: true }),
    8 * Mi,
    'Bytes of the ring buffer between kernel and agent. It is resident memory of the agent; what finds no room is still counted in the metrics.',
    { restart: true },
  ),
  perf_buffer_size: key(
    size({ min: 32 * Ki, max: 64 * Mi, powerOfTwo: true, plain: true }),
    64 * Ki,
    'Bytes per CPU of the perf buffers that stand in for the ring on kernels before 5.8; a record is 8 KiB at most. What finds no room is counted as `perf_full`.',
    { restart: true },
  ),
  network,
  syscalls: branch('Counts and durations of system calls.', {
    enabled: key(
      boolean,
      false,
      'Measures system calls. It costs about 0.2 µs in every system call of the host.',
      { restart: true },
    ),
    include: key(list(someText), [], 'System calls to measure; empty for all.', { restart: true }),
    exclude: key(
      list(someText),
      ['futex', 'nanosleep', 'clock_nanosleep', 'epoll_wait', 'epoll_pwait'],
      'System calls not to measure.',
      { restart: true },
    ),
  }),
  process: branch('Starts and ends of processes, and kills for want of memory.', {
    enabled: key(boolean, true, 'Records process events.', { restart: true }),
  }),
})

const profiling = branch('Profiles of all processes.', {
  enabled: key(boolean, true, 'Takes profiles.'),
  sample_rate: key(integer({ min: 1, max: 999 }), 19, 'Samples per second and CPU.'),
  cpu: key(boolean, true, 'Shows where time on the CPU goes.'),
  off_cpu: key(boolean, false, 'Shows where threads wait.'),
  memory: key(boolean, false, 'Shows where memory is allocated.'),
  interval: key(duration({ min: 1000 }), 10_000, 'Length of one profile.'),
  include_kernel: key(boolean, true, 'Includes frames of the kernel.'),
  symbols: branch('How addresses get names.', {
    demangle: key(boolean, true, 'Shows C++ and Rust names as they are written in the source.'),
    perf_map: key(boolean, true, 'Reads /tmp/perf-PID.map files of just-in-time compilers.'),
    debuginfo_dirs: key(list(path), ['/usr/lib/debug'], 'Directories with separate debug information.'),
    cache_size: key(
      size({ min: Mi, max: Gi }),
      32 * Mi,
      'Memory for symbol tables; less where svc itself may have less than 512 MiB.',
    ),
  }),
})

const logs = branch('Logs of containers, files and the journal.', {
  enabled: key(boolean, true, 'Collects logs.'),
  container_logs: key(boolean, true, 'Reads logs of Docker and CRI containers.'),
  journald: key(boolean, false, 'Reads the systemd journal.'),
  paths: key(list(glob), [], 'Files to follow; may contain `*`, `?`, `[a-z]`, `{a,b}` and `**`.'),
  exclude: key(list(glob), [], 'Files not to follow; may contain the same.'),
  start_at: key(
    choice(['end', 'beginning']),
    'end',
    'Where to begin in files that were there before svc first looked; newer ones are read from their beginning.',
  ),
  position_file: key(path, '/var/lib/svc/log-positions', 'File that remembers how far each log was read.', {
    restart: true,
  }),
  multiline: branch('Joins lines that belong to one record.', {
    enabled: key(boolean, false, 'Joins lines.'),
    pattern: key(regex, '', 'What marks a line.'),
    negate: key(boolean, false, 'Marks the lines that do not match instead.'),
    match: key(
      choice(['after', 'before']),
      'after',
      'Whether marked lines go to the record before them (`after`) or behind them.',
    ),
    max_lines: key(integer({ min: 1, max: 100_000 }), 500, 'Most lines of one record.'),
    timeout: key(duration(), 5000, 'Time after which a record is taken as complete.'),
  }),
  parse: branch('What is read out of a log line.', {
    json: key(boolean, true, 'Reads fields of JSON lines.'),
    severity: key(boolean, true, 'Finds the severity.'),
    trace_context: key(boolean, true, 'Finds trace and span ids.'),
  }),
  max_line_size: key(
    size({ min: Ki, max: Mi }),
    256 * Ki,
    'Longest record in bytes; what is longer becomes several records.',
  ),
})

/** As `mayTell` of src/entities has them. */
const daemon = text({
  expects:
    'a socket such as "unix:///run/docker.sock", an address such as "tcp://127.0.0.1:2376", or nothing',
  pattern: /^(|(unix:\/\/)?\/.+|((tcp|https?):\/\/)?[^/@]+\/?)$/,
  valid: address => address === '' || !('instead' in parseDockerAddress(address)),
  hint: ({ text: address }) => {
    const read = parseDockerAddress(address)
    return 'instead' in read ? `${read.instead} (${read.reason})` : undefined
  },
  leak: address =>
    address.includes('@') && !('path' in parseDockerAddress(address))
      ? 'holds a user name or password, which logs would show; delete it'
      : undefined,
})

const toldKey = text({
  expects: 'the key of an attribute, such as "team", or "app.*" for all that begins with "app."',
  pattern: /^[^\s*,=]{1,128}(\.\*)?$/,
})

const discovery = branch('What is known about the host, its containers and its cluster.', {
  enabled: key(boolean, true, 'Adds discovered metadata to everything exported.'),
  interval: key(duration({ min: 1000 }), 30_000, 'Time between two looks at sources that cannot be watched.'),
  detect_kubernetes: key(boolean, true, 'Asks Kubernetes where the agent runs in a cluster.'),
  detect_docker: key(boolean, true, 'Asks Docker, containerd and Podman.'),
  detect_cloud: key(boolean, true, 'Asks the cloud’s metadata service.'),
  process_attributes: key(
    list(toldKey),
    ['team', 'app.*', 'vcs.*'],
    'What a process may name of itself in `OTEL_RESOURCE_ATTRIBUTES`, and who annotates its pod in `resource.opentelemetry.io/…`, beside `service.*` and `deployment.*`; `app.*` means all that begins with `app.`. What stands here is believed of any process: no names by which a receiver tells hosts, containers or instances.',
    { restart: true },
  ),
  docker: branch('Container runtimes.', {
    endpoint: key(
      daemon,
      '',
      'The one daemon to ask: Docker or Podman by socket or address (`tcp://`, `http://`, `https://`; `$DOCKER_TLS_VERIFY` and `$DOCKER_CERT_PATH` count as for its client), or containerd by its socket. Empty: `$DOCKER_HOST`, then the usual sockets of Docker, Podman and containerd.',
    ),
    labels: key(list(someText), [], 'Container labels that become resource attributes.'),
  }),
  kubernetes: branch('Kubernetes.', {
    kubeconfig: key(fileThat('any', path), '', 'Credentials file; empty for the pod’s own account.'),
    node_name: key(text(), '', 'Name of this node; empty to find it.'),
    namespaces: key(list(someText), [], 'Namespaces to watch; empty for all.'),
    labels: key(list(someText), [], 'Pod labels that become resource attributes.'),
    annotations: key(list(someText), [], 'Pod annotations that become resource attributes.'),
  }),
})

const gpu = branch('Graphics processors.', {
  enabled: key(boolean, true, 'Measures GPUs.'),
  nvidia: key(boolean, true, 'Measures NVIDIA GPUs.'),
  interval: key(duration({ min: 1000 }), 10_000, 'Time between two measurements.'),
  per_process: key(boolean, true, 'Shows which process uses a GPU.'),
})

export const agent = branch('What the agent collects on its host.', {
  ebpf,
  profiling,
  logs,
  discovery,
  gpu,
  nodeexporter,
})

export const resource = branch('The resource of everything exported.', {
  attributes: key(map(text()), {}, 'Attributes added to the resource of everything exported.', {
    restart: true,
  }),
})
