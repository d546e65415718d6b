import { item, list, map } from '../schema/collections.ts'
import { boolean, duration, openPorts, text, url } from '../schema/kinds.ts'
import { branch, key } from '../schema/tree.ts'
import { scraping } from '../scraping/jobs/settings.ts'

export const collectors = branch('Collection from other exporters.', { prometheus: scraping })

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
