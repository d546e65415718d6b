// A program that follows an API server, and answers each line on its standard input by one line of JSON:
// `measure` by what it has in memory, `pods` by what it knows, `look` by how long a look-up takes.
// Arguments: port, node. To be run with --expose-gc.

import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createInterface } from 'node:readline'
import { KubernetesSource } from '../../src/identity/discovery/kubernetes/kubernetes-source.ts'
import { Entities } from '../../src/identity/entities/entities.ts'

const [port = '', node = ''] = process.argv.slice(2)
const entities = new Entities()
const uids = new Set<string>()
const delay = monitorEventLoopDelay({ resolution: 1 })
const source = new KubernetesSource({
  kubeconfig: '',
  nodeName: node,
  namespaces: [],
  labels: ['team'],
  annotations: [],
  sink: {
    container: () => undefined,
    containerGone: () => undefined,
    cloud: () => undefined,
    cluster: (uid, name) => entities.cluster(uid, name),
    pod: pod => {
      uids.add(pod.uid)
      entities.pod(pod)
    },
    podGone: uid => {
      uids.delete(uid)
      entities.podGone(uid)
    },
  },
  warn: () => undefined,
  environment: { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: port },
  serviceAccountDirectory: process.argv[4]!,
})

const answers: Readonly<Record<string, () => unknown>> = {
  start: () => {
    delay.enable()
    source.start()
    return {}
  },
  state: () => source.state,
  measure: () => {
    const longestTurnMs = delay.max / 1e6
    for (let i = 0; i < 3; i++) globalThis.gc!()
    const { heapUsed, external, rss } = process.memoryUsage()
    // What was asked here took its turn too.
    setImmediate(() => delay.reset())
    return { kept: heapUsed + external, rss, longestTurnMs }
  },
  pods: () =>
    [...uids].map(uid => entities.podOfUid(uid)).map(pod => [pod!.name, pod!.containers[0]!.restarts]),
  look: () => {
    const ids = [...uids].map(uid => entities.podOfUid(uid)!.containers[0]!.id)
    let found = 0
    const places = ids.map(id => ({ id, runtime: 'containerd', podUid: '' }))
    for (const place of places) found += entities.surroundings(place).attributes.get('k8s.pod.name') ? 1 : 0
    const startedAt = performance.now()
    for (let i = 0; i < 100_000; i++) entities.surroundings(places[i % places.length]!)
    return { found, of: ids.length, eachNs: (performance.now() - startedAt) * 10 }
  },
}

for await (const line of createInterface(process.stdin)) console.log(JSON.stringify(answers[line]!()))
source.stop()
