import { anything, item, list, map } from '../schema/collections.ts'
import {
  boolean,
  choice,
  count,
  duration,
  integer,
  openPorts,
  path,
  size,
  someText,
  text,
  url,
} from '../schema/kinds.ts'
import { branch, key } from '../schema/tree.ts'
import { headers } from './schema-export.ts'

const Mi = 1024 * 1024
const later = { built: false } as const

const clientTls = branch('TLS towards the target.', {
  ca_file: key(path, '', 'PEM file of the authorities that are trusted.'),
  cert_file: key(path, '', 'PEM file of the certificate to show.'),
  key_file: key(path, '', 'PEM file of its private key.'),
  server_name: key(text(), '', 'Name that the target’s certificate must carry.'),
  insecure_skip_verify: key(boolean, false, 'Accepts any certificate.'),
})

const access = {
  headers: key(headers, {}, 'Headers of requests.', { secret: true }),
  basic_auth: branch('User and password.', {
    username: key(text(), '', 'User.'),
    password: key(text(), '', 'Password.', { secret: true }),
  }),
  bearer_token: key(text(), '', 'Bearer token.', { secret: true }),
  tls: clientTls,
} as const

const target = item(
  branch('A target.', {
    name: key(someText, '', 'Value of the label `job`.', { required: true }),
    address: key(someText, '', 'Host and port.', { required: true }),
    metrics_path: key(
      text({ expects: 'a path that begins with "/"', pattern: /^\// }),
      '/metrics',
      'Path of the metrics.',
    ),
    scheme: key(choice(['http', 'https']), 'http', 'Scheme.'),
    params: key(map(text()), {}, 'Query parameters.'),
    labels: key(map(text()), {}, 'Labels that every series gets.'),
    ...access,
  }),
)

const httpSd = item(
  branch('A source of targets over HTTP.', {
    url: key(url, '', 'Where the list of targets is.', { required: true }),
    refresh_interval: key(duration({ min: 1000 }), 60_000, 'Time between two requests.'),
    ...access,
  }),
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

export const collectors = branch('Collection from other exporters.', {
  prometheus: branch(
    'Scraping of Prometheus targets.',
    {
      enabled: key(boolean, true, 'Scrapes targets; without targets or discovery nothing runs.'),
      scrape_interval: key(duration({ min: 100 }), 30_000, 'Time between two scrapes of a target.'),
      scrape_timeout: key(duration({ min: 10 }), 10_000, 'Longest time that a scrape may take.'),
      sample_limit: key(count, 0, 'Most samples of one scrape; 0 for no limit.'),
      body_size_limit: key(size({ min: 1024, max: 1024 * Mi }), 64 * Mi, 'Largest response.'),
      honor_labels: key(boolean, false, 'Keeps labels of the target where they clash with its own.'),
      honor_timestamps: key(boolean, true, 'Keeps timestamps of the target.'),
      targets: key(list(target), [], 'Targets.'),
      file_sd: key(list(someText), [], 'Files with targets, JSON or YAML; may contain `*`.'),
      http_sd: key(list(httpSd), [], 'Sources of targets over HTTP.'),
      kubernetes_sd: key(list(kubernetesSd), [], 'Targets from Kubernetes.'),
      scrape_configs: key(list(anything), [], 'Scrape configurations in Prometheus’ own form.'),
      shard: branch('Sharing targets between several agents.', {
        index: key(count, 0, 'Number of this agent, from 0.'),
        count: key(integer({ min: 1, max: 10_000 }), 1, 'Number of agents.'),
        replicas: key(integer({ min: 1, max: 100 }), 1, 'Agents that scrape the same target.'),
      }),
    },
    later,
  ),
})

const selector = item(
  branch('What a process must have; everything given must hold.', {
    open_ports: key(openPorts, [], 'Ports that the process listens at.'),
    exe_path: key(text(), '', 'Path of the executable; may contain `*`.'),
    name: key(text(), '', 'Service name; may contain `*`.'),
    k8s_namespace: key(text(), '', 'Kubernetes namespace; may contain `*`.'),
    k8s_pod_name: key(text(), '', 'Pod name; may contain `*`.'),
    k8s_deployment_name: key(text(), '', 'Deployment name; may contain `*`.'),
    k8s_daemonset_name: key(text(), '', 'DaemonSet name; may contain `*`.'),
    k8s_statefulset_name: key(text(), '', 'StatefulSet name; may contain `*`.'),
    k8s_container_name: key(text(), '', 'Container name; may contain `*`.'),
    k8s_pod_labels: key(map(text()), {}, 'Pod labels with their values; values may contain `*`.'),
  }),
  {
    fault: (_selector, given) =>
      given.size === 0 ? 'an entry without any key would select nothing; give one' : undefined,
  },
)

export const discovery = branch('Which processes are observed.', {
  instrument: key(list(selector), [], 'Processes to observe, each entry alone suffices; empty for all.'),
  exclude: key(list(selector), [], 'Processes not to observe; wins over `instrument`.'),
})

function provider(name: string) {
  return branch(`Metadata of ${name}.`, {
    enabled: key(boolean, true, `Asks the metadata service of ${name}.`),
    endpoint: key(
      url,
      '',
      'Address of the metadata service (`http://`), asked on any machine; empty for the usual one, which is asked only where the firmware names this cloud.',
    ),
    timeout: key(duration({ max: 60_000 }), 500, 'Longest time to wait for an answer.'),
  })
}

export const cloud = branch('Metadata of the cloud that the host is in.', {
  aws: provider('AWS'),
  gcp: provider('Google Cloud'),
  azure: provider('Azure'),
  alibaba: provider('Alibaba Cloud'),
  oracle: provider('Oracle Cloud'),
  digitalocean: provider('DigitalOcean'),
  refresh_interval: key(duration({ min: 1000 }), 900_000, 'Time between two requests.'),
})
