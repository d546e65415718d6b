import { item, list, map } from '../foundation/schema/collections.ts'
import { boolean, duration, openPorts, text, url } from '../foundation/schema/kinds.ts'
import { branch, key } from '../foundation/schema/tree.ts'
import { scraping } from '../signals/metrics/scraping/jobs/settings.ts'

export const collectors = branch('Scraping of other exporters.', { prometheus: scraping })

const selector = item(
  branch('Conditions for a process; all that are set must match.', {
    open_ports: key(openPorts, [], 'Ports on which the process listens.'),
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
      given.size === 0 ? 'an entry without keys selects nothing; add a key' : undefined,
  },
)

export const discovery = branch('Processes to observe.', {
  instrument: key(list(selector), [], 'Processes to observe; one matching entry is enough. Empty for all.'),
  exclude: key(list(selector), [], 'Processes to ignore; takes precedence over `instrument`.'),
})

function provider(name: string) {
  return branch(`Metadata of ${name}.`, {
    enabled: key(boolean, true, `Queries the metadata service of ${name}.`),
    endpoint: key(
      url,
      '',
      'Address of the metadata service (`http://`), queried on any machine; empty for the usual one, which is queried only if the firmware names this cloud.',
    ),
    timeout: key(duration({ max: 60_000 }), 500, 'Maximum time to wait for an answer.'),
  })
}

export const cloud = branch('Metadata of the host’s cloud.', {
  aws: provider('AWS'),
  gcp: provider('Google Cloud'),
  azure: provider('Azure'),
  alibaba: provider('Alibaba Cloud'),
  oracle: provider('Oracle Cloud'),
  digitalocean: provider('DigitalOcean'),
  refresh_interval: key(duration({ min: 1000 }), 900_000, 'Interval between requests.'),
})
