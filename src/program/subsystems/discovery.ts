import { Discovery } from '../agent/discovery.ts'
import { off } from '../agent/off.ts'
import { value, values } from '../agent/self-metrics.ts'
import type { Subsystem } from '../agent/subsystem.ts'
import { memory } from './memory.ts'

export const discovery: Subsystem<Discovery> = {
  name: 'discovery',
  keys: ['agent.discovery', 'discovery', 'cloud'],
  banner: 'always',
  create: agent => {
    const { config, options, events } = agent
    return new Discovery({
      config,
      log: options.log,
      onContainer: () => events.containers.report(),
      governor: agent.of(memory).governor,
    })
  },
  start: own => own.start(),
  stop: own => own.stop(),
  prepare: (own, config) => own.prepare(config),
  state: ({ runtimes, kubernetes, cloud, faults }, { agent }) => {
    if (!agent.discovery.enabled) return off('agent.discovery.enabled')
    const asked = [
      ...(runtimes === undefined ? [] : ['containers']),
      ...(kubernetes === undefined ? [] : ['Kubernetes']),
      ...(cloud === undefined ? [] : ['cloud']),
    ]
    if (asked.length === 0) return { state: 'off', detail: 'all sources disabled' }
    return { state: 'ok', detail: `${asked.join(', ')}; see /status/discovery`, faults }
  },
  metrics: {
    discovery_containers: value('Containers on this host.', ({ entities }) => entities.containerCount),
    discovery_pods: value('Pods of this node.', ({ entities }) => entities.podCount),
    discovery_connected: values(
      'source',
      'Whether a source of metadata answers: 1 if it does.',
      ({ runtimes: { docker, containerd } = {}, kubernetes, cloud }) =>
        Object.entries({ docker, containerd, kubernetes, cloud }).flatMap(([name, source]) =>
          // An absent source is not disconnected.
          source === undefined || (!source.state.connected && source.state.hint === '')
            ? []
            : [[name, Number(source.state.connected)] as const],
        ),
    ),
  },
}
