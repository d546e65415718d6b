import { isIPv6 } from 'node:net'
import { item, list, map } from '../../../../foundation/schema/collections.ts'
import {
  boolean,
  certificatesFile,
  choice,
  count,
  duration,
  integer,
  keyFile,
  size,
  someText,
  text,
  url,
} from '../../../../foundation/schema/kinds.ts'
import { branch, type Infer, key } from '../../../../foundation/schema/tree.ts'
import { addressFault } from '../target-url.ts'
import { guarded, labels } from './fields.ts'
import { relabelRules } from './relabel-rules.ts'
import { scrapeConfigs } from './scrape-config.ts'

const Mi = 1024 * 1024

/** Headers that are required by the connection or the page cannot be set. */
const reserved =
  /^(host|connection|keep-alive|te|upgrade|transfer-encoding|content-(length|encoding|type)|accept|accept-encoding|user-agent|proxy-authorization|x-prometheus-scrape-timeout-seconds)$/i

const headers = map(text({ expects: 'printable ASCII text on one line', pattern: /^[\x20-\x7e]*$/ }), {
  fault(name) {
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/.test(name)) return 'not a valid header name'
    return reserved.test(name) ? 'svc sets this header itself' : ''
  },
})

const access = {
  headers: key(headers, {}, 'Headers of requests.', { secret: true }),
  basic_auth: branch('User and password.', {
    username: key(text(), '', 'User.'),
    password: key(text(), '', 'Password.', { secret: true }),
  }),
  bearer_token: key(text(), '', 'Bearer token.', { secret: true }),
  tls: branch('TLS to the target.', {
    ca_file: key(certificatesFile, '', 'PEM file of trusted certificate authorities.'),
    cert_file: key(certificatesFile, '', 'PEM file of the client certificate.'),
    key_file: key(keyFile, '', 'PEM file of the client key.'),
    server_name: key(text(), '', 'Expected name in the target’s certificate.'),
    insecure_skip_verify: key(boolean, false, 'Accepts any certificate.'),
  }),
} as const

interface OwnAccess {
  readonly headers: Readonly<Record<string, string>>
  readonly basic_auth: { readonly username: string; readonly password: string }
  readonly bearer_token: string
  readonly tls: { readonly cert_file: string; readonly key_file: string }
}

function accessFault({
  headers: own,
  basic_auth: basic,
  bearer_token: token,
  tls,
}: OwnAccess): string | undefined {
  const ways = [
    basic.username + basic.password !== '' && 'basic_auth',
    token !== '' && 'bearer_token',
    Object.keys(own).some(name => /^authorization$/i.test(name)) && 'the header Authorization',
  ].filter(way => typeof way === 'string')
  if (ways.length > 1)
    return `has ${ways.join(' and ')}; only one is allowed, delete the ${ways.length > 2 ? 'others' : 'other'}`
  if ((tls.cert_file === '') === (tls.key_file === '')) return undefined
  const [has, lacks] = tls.key_file === '' ? ['cert_file', 'key_file'] : ['key_file', 'cert_file']
  return `tls.${has} requires tls.${lacks}`
}

/** Host and port, a host alone, or a socket. */
const address = text({
  expects: 'host:port, [IPv6]:port or unix:/path of a socket',
  valid: written => addressFault(written, 'http') === '',
  leak: written =>
    written.includes('@')
      ? 'expected host:port, found a value that is not shown because it may have a password; use basic_auth for that'
      : undefined,
  hint({ text: written }) {
    const host = /^https?:\/\/([^/?#\s]+)/i.exec(written)?.[1]
    if (host !== undefined) return `"${host}", and the rest as scheme and metrics_path`
    return isIPv6(written) ? `"[${written}]:port"` : undefined
  },
})

const metricsPath = text({
  expects: 'a path that starts with "/", without "?"',
  pattern: /^\/[^?]*$/,
  hint({ text: written }) {
    const before = /^(\/[^?]*)\?/.exec(written)?.[1]
    return before === undefined ? undefined : `"${before}", and params for the query after "?"`
  },
})

const target = item(
  branch('A target.', {
    name: key(someText, '', 'Value of the label `job`.', { required: true }),
    address: key(address, '', 'Host and port, or `unix:/path` of a socket.', { required: true }),
    metrics_path: key(metricsPath, '/metrics', 'Path of the metrics.'),
    scheme: key(choice(['http', 'https']), 'http', 'Scheme.'),
    params: key(guarded(map(text())), {}, 'Query parameters.'),
    labels: key(labels, {}, 'Labels added to every series.'),
    ...access,
  }),
  {
    fault: each =>
      each.scheme === 'https' && each.address.startsWith('unix:')
        ? 'has scheme https, but svc supports only http over sockets; delete the scheme'
        : accessFault(each),
  },
)

const httpSd = item(
  branch('A target list over HTTP.', {
    url: key(url, '', 'URL of the target list.', { required: true }),
    refresh_interval: key(duration({ min: 1000 }), 60_000, 'Time between two requests.'),
    ...access,
  }),
  {
    fault: each => (each.url === '' ? 'url is empty; set the URL of the target list' : accessFault(each)),
  },
)

const kubernetesSd = item(
  branch('Targets from Kubernetes.', {
    role: key(
      choice(['pod', 'service', 'endpoints', 'endpointslice', 'node', 'ingress']),
      'pod',
      'Kind of object to scrape.',
    ),
    namespaces: key(list(someText), [], 'Namespaces; empty for all.'),
    label_selector: key(text(), '', 'Label selector of the objects.'),
  }),
)

const fileName = text({
  expects: 'a file that ends in .json, .yml or .yaml, with "*" in its last part only',
  pattern: /^[^*]*(\*[^/]*)?\.(json|yml|yaml)$/i,
})

/** Scraping of targets, under `collectors.prometheus`. */
export const scraping = branch('Scraping of Prometheus targets.', {
  enabled: key(boolean, true, 'Scrapes targets. Nothing runs without targets or discovery.'),
  scrape_interval: key(duration({ min: 100 }), 30_000, 'Time between two scrapes of a target.'),
  scrape_timeout: key(duration({ min: 10 }), 10_000, 'Timeout of a scrape.'),
  sample_limit: key(count, 0, 'Maximum samples of one scrape; a scrape with more fails. 0 for no limit.'),
  body_size_limit: key(
    size({ min: 1024, max: 1024 * Mi }),
    64 * Mi,
    'Maximum size of a response, after decompression.',
  ),
  honor_labels: key(
    boolean,
    false,
    'Keeps labels of the target that conflict with labels of svc; otherwise the target’s labels get the prefix `exported_`.',
  ),
  honor_timestamps: key(boolean, true, 'Keeps timestamps of the target.'),
  lenient: key(
    boolean,
    false,
    'Skips and reports invalid lines; otherwise one invalid line fails the scrape, as in Prometheus.',
  ),
  external_labels: key(labels, {}, 'Labels added to every series without a label of that name.'),
  metric_relabel_configs: key(
    relabelRules,
    [],
    'Prometheus relabelling rules for the series of `targets`, `file_sd`, `http_sd` and `kubernetes_sd`.',
  ),
  targets: key(list(target), [], 'Targets.'),
  file_sd: key(
    list(fileName),
    [],
    'Files with targets, JSON or YAML; the last part of a path may contain `*`. Relative paths start at the working directory of svc.',
  ),
  http_sd: key(
    list(httpSd),
    [],
    'Target lists over HTTP. Their headers and credentials are not sent to the targets.',
  ),
  kubernetes_sd: key(
    list(kubernetesSd),
    [],
    'Targets from Kubernetes: objects with the annotation `prometheus.io/scrape: "true"`, and optionally `prometheus.io/port`, `path`, `scheme` and `param_<name>`. For `endpoints` and `endpointslice`, the annotations of their service apply.',
  ),
  scrape_configs: key(
    scrapeConfigs,
    [],
    'Prometheus scrape configurations, unchanged. The keys above are the defaults; file paths are relative to the configuration file; variables are not replaced in relabelling rules, where `$` refers to groups.',
  ),
  shard: branch('Distribution of targets among several agents.', {
    index: key(
      integer({ min: -1, max: 9999 }),
      0,
      'Index of this agent, from 0; -1 for the number at the end of the pod name, as in a StatefulSet.',
    ),
    count: key(integer({ min: 1, max: 10_000 }), 1, 'Number of agents.'),
    replicas: key(integer({ min: 1, max: 100 }), 1, 'Agents that scrape the same target.'),
  }),
})

/** Settings for `jobsOf`. */
export type ScrapingSettings = Infer<typeof scraping>
