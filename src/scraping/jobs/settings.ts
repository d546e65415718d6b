import { isIPv6 } from 'node:net'
import { item, list, map } from '../../schema/collections.ts'
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
} from '../../schema/kinds.ts'
import { branch, type Infer, key } from '../../schema/tree.ts'
import { addressFault } from '../target-url.ts'
import { guarded, labels } from './fields.ts'
import { relabelRules } from './relabel-rules.ts'
import { scrapeConfigs } from './scrape-config.ts'

const Mi = 1024 * 1024

/** What the connection and the page of a target need cannot be set. */
const reserved =
  /^(host|connection|keep-alive|te|upgrade|transfer-encoding|content-(length|encoding|type)|accept|accept-encoding|user-agent|proxy-authorization|x-prometheus-scrape-timeout-seconds)$/i

const headers = map(text({ expects: 'printable ASCII text on one line', pattern: /^[\x20-\x7e]*$/ }), {
  fault(name) {
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/.test(name)) return 'not a name that a header can have'
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
  tls: branch('TLS towards the target.', {
    ca_file: key(certificatesFile, '', 'PEM file of the authorities that are trusted.'),
    cert_file: key(certificatesFile, '', 'PEM file of the certificate to show.'),
    key_file: key(keyFile, '', 'PEM file of its private key.'),
    server_name: key(text(), '', 'Name that the target’s certificate must carry.'),
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
    return `has ${ways.join(' and ')}, and a request carries one of them; delete the ${ways.length > 2 ? 'others' : 'other'}`
  if ((tls.cert_file === '') === (tls.key_file === '')) return undefined
  const [has, lacks] = tls.key_file === '' ? ['cert_file', 'key_file'] : ['key_file', 'cert_file']
  return `tls.${has} needs tls.${lacks} beside it`
}

/** Host and port, a host alone, or a socket. */
const address = text({
  expects: 'host:port, [IPv6]:port or unix:/path of a socket',
  valid: written => addressFault(written, 'http') === '',
  leak: written =>
    written.includes('@')
      ? 'expected host:port, found a value that is not shown because it may hold a password; write that as basic_auth'
      : undefined,
  hint({ text: written }) {
    const host = /^https?:\/\/([^/?#\s]+)/i.exec(written)?.[1]
    if (host !== undefined) return `"${host}", and the rest as scheme and metrics_path`
    return isIPv6(written) ? `"[${written}]:port"` : undefined
  },
})

const metricsPath = text({
  expects: 'a path that begins with "/", without "?"',
  pattern: /^\/[^?]*$/,
  hint({ text: written }) {
    const before = /^(\/[^?]*)\?/.exec(written)?.[1]
    return before === undefined ? undefined : `"${before}", and what follows "?" as params`
  },
})

const target = item(
  branch('A target.', {
    name: key(someText, '', 'Value of the label `job`.', { required: true }),
    address: key(address, '', 'Host and port, or `unix:/path` of a socket.', { required: true }),
    metrics_path: key(metricsPath, '/metrics', 'Path of the metrics.'),
    scheme: key(choice(['http', 'https']), 'http', 'Scheme.'),
    params: key(guarded(map(text())), {}, 'Query parameters.'),
    labels: key(labels, {}, 'Labels that every series gets.'),
    ...access,
  }),
  {
    fault: each =>
      each.scheme === 'https' && each.address.startsWith('unix:')
        ? 'has scheme https, and svc speaks http with sockets; delete the scheme'
        : accessFault(each),
  },
)

const httpSd = item(
  branch('A source of targets over HTTP.', {
    url: key(url, '', 'Where the list of targets is.', { required: true }),
    refresh_interval: key(duration({ min: 1000 }), 60_000, 'Time between two requests.'),
    ...access,
  }),
  {
    fault: each => (each.url === '' ? 'url is empty; write where the list of targets is' : accessFault(each)),
  },
)

const kubernetesSd = item(
  branch('Targets from Kubernetes.', {
    role: key(
      choice(['pod', 'service', 'endpoints', 'endpointslice', 'node', 'ingress']),
      'pod',
      'Kind of object that is a target.',
    ),
    namespaces: key(list(someText), [], 'Namespaces; empty for all.'),
    label_selector: key(text(), '', 'Labels that objects must have.'),
  }),
)

const fileName = text({
  expects: 'a file that ends in .json, .yml or .yaml, with "*" in its last part only',
  pattern: /^[^*]*(\*[^/]*)?\.(json|yml|yaml)$/i,
})

/** Scraping of targets, under `collectors.prometheus`. */
export const scraping = branch('Scraping of Prometheus targets.', {
  enabled: key(boolean, true, 'Scrapes targets; without targets or discovery nothing runs.'),
  scrape_interval: key(duration({ min: 100 }), 30_000, 'Time between two scrapes of a target.'),
  scrape_timeout: key(duration({ min: 10 }), 10_000, 'Longest time that a scrape may take.'),
  sample_limit: key(
    count,
    0,
    'Most samples of one scrape, which fails where there are more; 0 for no limit.',
  ),
  body_size_limit: key(
    size({ min: 1024, max: 1024 * Mi }),
    64 * Mi,
    'Largest response, as it is after decompression.',
  ),
  honor_labels: key(
    boolean,
    false,
    'Keeps labels of the target where they clash with its own; otherwise the target’s get the prefix `exported_`.',
  ),
  honor_timestamps: key(boolean, true, 'Keeps timestamps of the target.'),
  lenient: key(
    boolean,
    false,
    'Leaves out lines that cannot be read, and tells them; otherwise one such line fails the scrape, as in Prometheus.',
  ),
  external_labels: key(labels, {}, 'Labels that every series gets that has none of that name.'),
  metric_relabel_configs: key(
    relabelRules,
    [],
    'Rules of Prometheus’ relabelling for the series of `targets`, `file_sd`, `http_sd` and `kubernetes_sd`.',
  ),
  targets: key(list(target), [], 'Targets.'),
  file_sd: key(
    list(fileName),
    [],
    'Files with targets, JSON or YAML; the last part of a path may contain `*`. Relative ones begin where svc was started.',
  ),
  http_sd: key(
    list(httpSd),
    [],
    'Sources of targets over HTTP. What a source is asked with is not sent to the targets.',
  ),
  kubernetes_sd: key(
    list(kubernetesSd),
    [],
    'Targets from Kubernetes: objects with the annotation `prometheus.io/scrape: "true"`, and `prometheus.io/port`, `path`, `scheme` and `param_<name>` where they differ from the usual. Of `endpoints` and `endpointslice` the annotations of their service count.',
  ),
  scrape_configs: key(
    scrapeConfigs,
    [],
    'Scrape configurations in Prometheus’ own form, as they are. What they leave out is as the keys above say; paths of files begin where the configuration file is; in relabelling rules no variables are replaced, for `$` names groups there.',
  ),
  shard: branch('Sharing targets between several agents.', {
    index: key(
      integer({ min: -1, max: 9999 }),
      0,
      'Number of this agent, from 0; -1 takes it from the end of the pod’s name, which a StatefulSet numbers.',
    ),
    count: key(integer({ min: 1, max: 10_000 }), 1, 'Number of agents.'),
    replicas: key(integer({ min: 1, max: 100 }), 1, 'Agents that scrape the same target.'),
  }),
})

/** What `jobsOf` makes jobs of. */
export type ScrapingSettings = Infer<typeof scraping>
