import type { Collector } from '../collectors/collector.ts'
import { collectors } from '../collectors/index.ts'
import { list } from '../schema/collections.ts'
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
} from '../schema/kinds.ts'
import { type Branch, branch, type Infer, type Key, type Keys, key } from '../schema/tree.ts'

type Unit = (typeof collectors)[number]
type Switches = { readonly [U in Unit as U['name']]: Key<boolean> }
type Options = { readonly [U in Unit as U['name']]: Branch<NonNullable<U['options']>> }

const units: readonly Collector<Keys>[] = collectors

const switches = Object.fromEntries(
  units.map(({ name, enabledByDefault, summary }) => [name, key(boolean, enabledByDefault, `${summary}.`)]),
) as unknown as Switches

/** Options stand beside the endpoint's own keys, below the name of their collector. */
const options = Object.fromEntries(
  units.flatMap(({ name, options }) =>
    options === undefined ? [] : [[name, branch(`Options of the collector \`${name}\`.`, options)]],
  ),
) as unknown as Options

const spellings = Object.fromEntries(
  units.flatMap(({ name, alias }) => (alias === undefined ? [] : [[alias, name]])),
)

const metricNamespace = text({
  expects: 'a prefix that a metric name can have, such as "node"',
  pattern: /^[a-zA-Z_][a-zA-Z0-9_]*$/,
})

export const nodeexporter = branch('Host metrics, as the common node metrics exporter has them.', {
  enabled: key(
    boolean,
    true,
    'Serves host metrics. Where the port is taken the agent goes on without, unless this is written.',
    { restart: true },
  ),
  listen_address: key(listenAddress, ':9100', 'Address of the endpoint.', { restart: true }),
  namespace: key(metricNamespace, 'node', 'First word of all metric names.'),
  path: branch('Where the host’s file systems are, for an agent in a container.', {
    procfs: key(path, '/proc', 'The host’s /proc.'),
    sysfs: key(path, '/sys', 'The host’s /sys.'),
    rootfs: key(path, '/', 'The host’s root directory.'),
    udev: key(path, '/run/udev/data', 'The host’s udev database.'),
  }),
  collectors: branch('Switches of the collectors.', switches, { spellings }),
  ...options,
  tls: branch('TLS of the endpoint.', {
    enabled: key(boolean, false, 'Serves over TLS.', { restart: true }),
    cert_file: key(certificatesFile, '', 'PEM file of the certificate, taken up anew when it changes.', {
      content: true,
    }),
    key_file: key(keyFile, '', 'PEM file of the private key, taken up anew when it changes.', {
      content: true,
    }),
    client_auth: key(boolean, false, 'Requires clients to show a certificate.'),
    client_ca_file: key(
      certificatesFile,
      '',
      'PEM file of the authorities for client certificates, taken up anew when it changes.',
      { content: true },
    ),
  }),
  cardinality: branch('Bounds of the endpoint.', {
    enabled: key(boolean, false, 'Applies the bounds.'),
    max_metrics: key(count, 0, 'Most metric families; 0 for no limit.'),
    include_metrics: key(
      list(regex),
      [],
      'Regular expressions, anchored, for metrics to show; empty for all.',
    ),
    exclude_metrics: key(list(regex), [], 'Regular expressions, anchored, for metrics to leave out.'),
    drop_labels: key(list(someText), [], 'Labels to leave out; series that become equal are joined.'),
  }),
  ebpf_enhanced: key(
    boolean,
    true,
    'Adds use of control groups and, where `agent.ebpf.enabled` is on and `mode` is `agent`, TCP round-trip times and retransmissions and open files by process name.',
  ),
  timeout: key(duration(), 10_000, 'Longest time that a scrape may take.'),
  collector_interval: key(
    duration({ min: 0 }),
    0,
    'Time between two readings in the background that answer scrapes; 0 reads at each scrape.',
  ),
  max_procs: key(integer({ min: 1, max: 64 }), 1, 'Collectors that may wait for input at once.'),
  max_requests: key(
    integer({ min: 0, max: 1000 }),
    40,
    'Scrapes that are answered at once, beyond which the answer is 503; 0 for no limit.',
    { restart: true },
  ),
  otlp: branch('The same metrics over OTLP, with names of the semantic conventions.', {
    enabled: key(boolean, true, 'Exports host metrics.'),
    interval: key(duration({ min: 1000 }), 15_000, 'Time between two exports.'),
  }),
})

/** Options of a collector, as the configuration has them. */
export function collectorOptions(
  config: { readonly agent: { readonly nodeexporter: Infer<typeof nodeexporter> } },
  name: string,
): Readonly<Record<string, unknown>> {
  const own = config.agent.nodeexporter as unknown as Readonly<Record<string, Record<string, unknown>>>
  return own[name] ?? {}
}
