import type { EntitySink, SourceState } from '../../foundation/model/entity.ts'
import { clouds } from '../../identity/discovery/index.ts'
import { KubernetesSource } from '../../identity/discovery/kubernetes/kubernetes-source.ts'
import { CloudSource } from '../../identity/entities/cloud-source.ts'
import type { Finding } from '../../kernel/need.ts'
import { ContainerRuntimes } from '../agent/container-runtimes.ts'
import { check } from './check.ts'

/** Discards what is found. */
const nobody: EntitySink = {
  container: () => undefined,
  containerGone: () => undefined,
  pod: () => undefined,
  podGone: () => undefined,
  cloud: () => undefined,
  cluster: () => undefined,
}
const lookMs = 20
/** Follow-up requests are rejected a moment after the pods are listed. */
const afterwardsMs = 300

export const containerRuntime = check({
  name: 'container runtime',
  group: 'discovery',
  summary: 'Docker, Podman or containerd answers; not needed on a host without them',
  impact: 'names, images and labels of containers; their ids are still known',
  faults: {
    absent: {
      state: 'note',
      what: 'no socket of Docker, Podman or containerd on this host',
      hints: { any: 'none needed: no containers' },
    },
    silent: {
      state: 'limited',
      what: 'svc cannot use the socket or address: no permission, no daemon, another program, an untrusted certificate, or an unsupported scheme (ssh://)',
      hints: {
        any: 'run as root or in the group docker; systemctl start docker; for containerd set gid under [grpc] in /etc/containerd/config.toml; for a daemon with TLS set DOCKER_TLS_VERIFY and DOCKER_CERT_PATH besides DOCKER_HOST',
        container: 'docker run -v /run/docker.sock:/run/docker.sock:ro',
        config:
          'agent.discovery.docker.endpoint: unix:///run/podman/podman.sock, or agent.discovery.detect_docker: false',
      },
    },
  },
  try: async ({ loaded, timeoutMs }) => {
    const { discovery, nodeexporter } = loaded.config.agent
    if (loaded.config.mode !== 'agent' || !discovery.enabled || !discovery.detect_docker) return []
    const runtimes = new ContainerRuntimes({
      endpoint: discovery.docker.endpoint,
      sink: nobody,
      log: { info: () => undefined, warn: () => undefined },
      rootfs: nodeexporter.path.rootfs,
    })
    runtimes.start()
    try {
      const asked = [runtimes.docker, runtimes.containerd].filter(source => source !== undefined)
      await Promise.all(asked.map(source => settled(() => source.state, timeoutMs)))
      const states = asked.map(({ state }) => state)
      const answers = states
        .filter(({ connected }) => connected)
        .map(({ runtime, version, endpoint }) => `${runtime} ${version} answers at ${endpoint}`)
      const faults = states
        .filter(({ connected, reason, hint }) => hint !== '' || (!connected && reason === ''))
        .map(({ reason, hint }) => finding(reason, hint, timeoutMs))
      if (answers.length > 0) return [{ ok: answers.join('; ') }, ...faults]
      if (faults.length > 0) return faults
      return [finding(states.map(({ reason }) => reason).join('; '), '', timeoutMs)]
    } finally {
      runtimes.stop()
    }
  },
})

export const cluster = check({
  name: 'cluster',
  group: 'discovery',
  summary: 'The Kubernetes API server lets svc watch the pods of this node; not needed outside a cluster',
  reads: 'secrets',
  impact: 'pod, deployment and namespace names on all telemetry',
  faults: {
    absent: {
      state: 'note',
      what: 'not in a pod, and no kubeconfig is configured',
      hints: { any: 'none needed: no pods outside a cluster' },
    },
    silent: {
      state: 'limited',
      what: 'the API server does not answer, or denies access',
      hints: {
        kubernetes:
          'a ClusterRole for the service account of svc: get, list and watch on pods and services; get on namespaces, replicasets and jobs',
        config: 'agent.discovery.kubernetes.kubeconfig: /path, or agent.discovery.detect_kubernetes: false',
      },
    },
  },
  try: async ({ loaded, timeoutMs }) => {
    const { discovery } = loaded.config.agent
    if (loaded.config.mode !== 'agent' || !discovery.enabled || !discovery.detect_kubernetes) return []
    const { kubeconfig, node_name, namespaces } = discovery.kubernetes
    const source = new KubernetesSource({
      kubeconfig,
      nodeName: node_name,
      namespaces,
      labels: [],
      annotations: [],
      sink: nobody,
      warn: () => undefined,
    })
    source.start()
    try {
      await settled(() => source.state, timeoutMs)
      if (source.state.connected) await pause(afterwardsMs)
      const { connected, reason, hint, podsWatched, node } = source.state
      if (connected && hint === '') return [{ ok: `${podsWatched} pods of node ${node} are being watched` }]
      return [finding(reason, hint, timeoutMs)]
    } finally {
      source.stop()
    }
  },
})

export const cloudMetadata = check({
  name: 'cloud metadata',
  group: 'discovery',
  summary: 'The metadata service of the cloud answers; not needed outside a cloud',
  impact: 'region, zone, account and machine type on all telemetry',
  faults: {
    absent: {
      state: 'note',
      what: 'the firmware does not name a supported cloud',
      hints: { any: 'none needed: not a cloud machine' },
    },
    silent: {
      state: 'limited',
      what: 'this is a cloud machine, but its metadata service does not answer correctly',
      hints: {
        any: 'allow this host to reach its metadata address',
        config: 'agent.discovery.detect_cloud: false',
      },
    },
  },
  try: async ({ loaded, timeoutMs }) => {
    const { agent, cloud } = loaded.config
    if (!agent.discovery.enabled || !agent.discovery.detect_cloud) return []
    const { refresh_interval, ...settings } = cloud
    const source = new CloudSource({
      providers: clouds,
      settings,
      refreshMs: refresh_interval,
      sysfs: agent.nodeexporter.path.sysfs,
      sink: nobody,
      warn: () => undefined,
    })
    try {
      await source.start()
      const { connected, reason, hint, provider, region, instanceId } = source.state
      if (connected) return [{ ok: `${provider}, ${region}, ${instanceId}` }]
      return [finding(reason, hint, timeoutMs)]
    } finally {
      source.stop()
    }
  },
})

/** An existing but silent source has a hint, an absent one has none. A hanging one is unknown. */
function finding(reason: string, hint: string, timeoutMs: number): Finding<'absent' | 'silent'> {
  if (reason === '') return { fault: 'silent', detail: `no answer within ${timeoutMs} ms` }
  return { fault: hint === '' ? 'absent' : 'silent', detail: reason }
}

/** Resolves when a source answers or reports a failure, or the time is up. */
async function settled(state: () => SourceState, timeoutMs: number): Promise<void> {
  const until = performance.now() + timeoutMs
  for (;;) {
    const { connected, reason } = state()
    if (connected || reason !== '' || performance.now() > until) return
    await pause(lookMs)
  }
}

async function pause(ms: number): Promise<void> {
  await new Promise(resolve => setTimeout(resolve, ms))
}
