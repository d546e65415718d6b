import { list } from '../foundation/schema/collections.ts'
import {
  boolean,
  certificatesFile,
  count,
  duration,
  integer,
  keyFile,
  listenAddress,
  path,
  regex,
  someText,
  text,
} from '../foundation/schema/kinds.ts'
import { type Branch, branch, type Infer, type Key, type Keys, key } from '../foundation/schema/tree.ts'
import type { Collector } from '../signals/metrics/collectors/collector.ts'
import { collectors } from '../signals/metrics/collectors/index.ts'

type Unit = (typeof collectors)[number]
type Switches = { readonly [U in Unit as U['name']]: Key<boolean> }
type Options = { readonly [U in Unit as U['name']]: Branch<NonNullable<U['options']>> }

const units: readonly Collector<Keys>[] = collectors

const switches = Object.fromEntries(
  units.map(({ name, enabledByDefault, summary }) => [name, key(boolean, enabledByDefault, `${summary}.`)]),
) as unknown as Switches

/** Options are beside the endpoint's own keys, under the name of their collector. */
const options = Object.fromEntries(
  units.flatMap(({ name, options }) =>
    options === undefined ? [] : [[name, branch(`Options of the collector \`${name}\`.`, options)]],
  ),
) as unknown as Options

const spellings = Object.fromEntries(
  units.flatMap(({ name, alias }) => (alias === undefined ? [] : [[alias, name]])),
)

const metricNamespace = text({
  expects: 'a valid metric name prefix, such as "node"',
  pattern: /^[a-zA-Z_][a-zA-Z0-9_]*$/,
})

export const nodeexporter = branch('Host metrics, compatible with the Prometheus node exporter.', {
  enabled: key(
    boolean,
    true,
    'Serves host metrics. If the port is in use, the agent runs without them, unless this key is set explicitly.',
    { restart: true },
  ),
  listen_address: key(listenAddress, ':9100', 'Address of the endpoint.', { restart: true }),
  namespace: key(metricNamespace, 'node', 'Prefix of all metric names.'),
  path: branch('Mount points of the host’s file systems, for an agent in a container.', {
    procfs: key(path, '/proc', 'Path of the host’s /proc.'),
    sysfs: key(path, '/sys', 'Path of the host’s /sys.'),
    rootfs: key(path, '/', 'Path of the host’s root directory.'),
    udev: key(path, '/run/udev/data', 'Path of the host’s udev database.'),
  }),
  collectors: branch('Collectors to enable or disable.', switches, { spellings }),
  ...options,
  tls: branch('TLS of the endpoint.', {
    enabled: key(boolean, false, 'Serves over TLS.', { restart: true }),
    cert_file: key(certificatesFile, '', 'PEM file of the certificate; reloaded when it changes.', {
      content: true,
    }),
    key_file: key(keyFile, '', 'PEM file of the private key; reloaded when it changes.', {
      content: true,
    }),
    client_auth: key(boolean, false, 'Requires client certificates.'),
    client_ca_file: key(
      certificatesFile,
      '',
      'PEM file of the CAs of client certificates; reloaded when it changes.',
      { content: true },
    ),
  }),
  cardinality: branch('Limits of the endpoint.', {
    enabled: key(boolean, false, 'Applies the limits.'),
    max_metrics: key(count, 0, 'Maximum metric families; 0 for no limit.'),
    include_metrics: key(
      list(regex),
      [],
      'Anchored regular expressions of metrics to include; empty for all.',
    ),
    exclude_metrics: key(list(regex), [], 'Anchored regular expressions of metrics to exclude.'),
    drop_labels: key(list(someText), [], 'Labels to remove; series that become equal are merged.'),
  }),
  ebpf_enhanced: key(
    boolean,
    true,
    'Adds resource use of control groups and, if `agent.ebpf.enabled` is on and `mode` is `agent`, TCP round-trip times and retransmissions and open files by process name.',
  ),
  timeout: key(duration(), 10_000, 'Maximum duration of a scrape.'),
  collector_interval: key(
    duration({ min: 0 }),
    0,
    'Interval of background collection for scrapes; 0 to collect at each scrape.',
  ),
  max_procs: key(integer({ min: 1, max: 64 }), 1, 'Maximum collectors that wait for I/O at the same time.'),
  max_requests: key(
    integer({ min: 0, max: 1000 }),
    40,
    'Maximum concurrent scrapes; others get status 503. 0 for no limit.',
    { restart: true },
  ),
  otlp: branch('The same metrics over OTLP, named by the semantic conventions.', {
    enabled: key(boolean, true, 'Exports host metrics.'),
    interval: key(duration({ min: 1000 }), 15_000, 'Interval between exports.'),
  }),
})

/** A collector's options in the configuration. */
export function collectorOptions(
  config: { readonly agent: { readonly nodeexporter: Infer<typeof nodeexporter> } },
  name: string,
): Readonly<Record<string, unknown>> {
  const own = config.agent.nodeexporter as unknown as Readonly<Record<string, Record<string, unknown>>>
  return own[name] ?? {}
}
