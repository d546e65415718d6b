// owns: process
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Pod } from '../../src/foundation/model/entity.ts'
import { KubernetesSource } from '../../src/identity/discovery/kubernetes/kubernetes-source.ts'
import { usualTiming } from '../../src/identity/discovery/kubernetes/timing.ts'
import { Entities } from '../../src/identity/entities/entities.ts'
import { KubeApiserver, withoutKubeApiserver } from '../helpers/kube-apiserver.ts'
import { containerIdOf, podObject } from '../helpers/kubernetes-api.ts'
import { until } from '../helpers/program.ts'

const waitMs = 60_000
const pods = '/api/v1/namespaces/default/pods'

/** A wire between the agent and the server that can be cut. */
class Wire {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor(to: number) {
    this.#server = createServer(socket => {
      const far = connect(to, '127.0.0.1')
      for (const [one, other] of [
        [socket, far],
        [far, socket],
      ] as const) {
        this.#sockets.add(one)
        one.on('error', () => other.destroy())
        one.once('close', () => {
          this.#sockets.delete(one)
          other.destroy()
        })
        one.pipe(other)
      }
    })
  }

  static async to(port: number): Promise<Wire> {
    const wire = new Wire(port)
    await new Promise<void>(resolve => wire.#server.listen(0, '127.0.0.1', resolve))
    return wire
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async close(): Promise<void> {
    const closed = new Promise(resolve => this.#server.close(resolve))
    this.cut()
    await closed
  }
}

test('pods of a real API server', { skip: withoutKubeApiserver }, async t => {
  let server!: KubeApiserver
  let wire!: Wire
  const directory = mkdtempSync(join(tmpdir(), 'svc-kubernetes-e2e-'))
  const entities = new Entities()
  const warnings: string[] = []
  const told: string[] = []
  let source!: KubernetesSource

  before(async () => {
    server = await KubeApiserver.start()
    wire = await Wire.to(server.port)
    writeFileSync(join(directory, 'token'), 'agent\n')
    writeFileSync(join(directory, 'namespace'), 'default')
    writeFileSync(join(directory, 'ca.crt'), server.certificates.text('ca.pem'))
    source = new KubernetesSource({
      kubeconfig: '',
      nodeName: 'node-a',
      namespaces: [],
      labels: ['team'],
      annotations: [],
      sink: {
        container: () => undefined,
        containerGone: () => undefined,
        cloud: () => undefined,
        pod: pod => {
          told.push(pod.name)
          entities.pod(pod)
        },
        podGone: uid => {
          told.push(`-${entities.podOfUid(uid)?.name}`)
          entities.podGone(uid)
        },
        cluster: (uid, name) => entities.cluster(uid, name),
      },
      warn: (reason, hint) => warnings.push(`${reason}; ${hint}`),
      environment: { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: String(wire.port) },
      serviceAccountDirectory: directory,
      timing: { watchMs: 2_000, refusedMs: 2_000, backoff: { ...usualTiming.backoff, maxMs: 1_000 } },
    })
    source.start()
  })
  after(async () => {
    source?.stop()
    await wire?.close()
    await server?.close()
    rmSync(directory, { recursive: true })
  })

  const connected = () =>
    until(
      () => `it is connected: ${JSON.stringify(source.state)}`,
      waitMs,
      () => source.state.connected,
    )
  /** Writes a pod as its owner and its kubelet do. */
  const make = async (name: string, more: object = {}): Promise<Pod['uid']> => {
    const { status, ...object } = podObject({ name, namespace: 'default', ...more })
    const made = (await server.ask('POST', pods, object)) as { metadata?: { uid: string } }
    await server.ask('PATCH', `${pods}/${name}/status`, { status })
    return made.metadata!.uid
  }
  const has = (uid: string, test: (pod: Pod) => boolean = () => true) =>
    until(
      () => `the pod is known: ${JSON.stringify([source.state, entities.podOfUid(uid)])}`,
      waitMs,
      () => {
        const pod = entities.podOfUid(uid)
        return pod !== undefined && test(pod)
      },
    )

  await t.test('without rights the reason names what to grant', async () => {
    await until('it is refused', waitMs, () => source.state.reason.includes('list pods'))
    assert.equal(source.state.reason, 'agent is not allowed to list pods (403)')
    assert.equal(source.state.hint, 'grant it get, list and watch on pods by a ClusterRole')
    const role = { metadata: { name: 'agent' }, rules: [] as object[] }
    const verbs = ['get', 'list', 'watch']
    role.rules.push({ apiGroups: [''], resources: ['pods', 'services', 'namespaces'], verbs })
    role.rules.push({ apiGroups: ['apps', 'batch'], resources: ['replicasets', 'jobs'], verbs: ['get'] })
    await server.ask('POST', '/apis/rbac.authorization.k8s.io/v1/clusterroles', role)
    const group = 'rbac.authorization.k8s.io'
    await server.ask('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
      metadata: { name: 'agent' },
      roleRef: { apiGroup: group, kind: 'ClusterRole', name: 'agent' },
      subjects: [{ apiGroup: group, kind: 'User', name: 'agent' }],
    })
    await connected()
  })

  await t.test('pods are made, changed and deleted', async () => {
    const other = await make('other', { node: 'node-b' })
    const uid = await make('first', { labels: { team: 'blue', rest: 'no' } })
    await has(uid, pod => pod.containers[0]?.id === containerIdOf('first'))
    const pod = entities.podOfUid(uid)!
    assert.deepEqual([pod.namespace, pod.node, [...pod.labels]], ['default', 'node-a', [['team', 'blue']]])
    assert.deepEqual([pod.addresses, pod.containers[0]!.restarts], [['10.1.0.7'], 0])
    await server.ask('PATCH', `${pods}/first`, { metadata: { labels: { team: 'red' } } })
    await has(uid, ({ labels }) => labels.get('team') === 'red')
    await server.ask('DELETE', `${pods}/first?gracePeriodSeconds=0`)
    await until('it is gone', waitMs, () => told.includes('-first'))
    assert.equal(entities.podOfUid(other), undefined)
    assert.equal(source.state.servicesWatched, 1, 'kubernetes itself')
    assert.equal(source.serviceOf('10.0.0.1')?.name, 'kubernetes')
  })

  await t.test('a pod is told with the Deployment of its ReplicaSet, and with the cluster', async () => {
    const kind = { apiVersion: 'apps/v1', controller: true }
    const template = {
      metadata: { labels: { app: 'cart' } },
      spec: { containers: [{ name: 'main', image: 'cart' }] },
    }
    const spec = { selector: { matchLabels: { app: 'cart' } }, template }
    const path = '/apis/apps/v1/namespaces/default'
    const ask = async (resource: string, metadata: object) =>
      (
        (await server.ask('POST', `${path}/${resource}`, { metadata, spec })) as {
          metadata?: { uid: string }
        }
      ).metadata!.uid
    const deployment = await ask('deployments', { name: 'cart' })
    const ownerReferences = [{ ...kind, kind: 'Deployment', name: 'cart', uid: deployment }]
    const set = await ask('replicasets', { name: 'cart-77', ownerReferences })
    const owner = { kind: 'ReplicaSet', name: 'cart-77', uid: set }
    const uid = await make('cart-77-x', { owner, labels: { 'pod-template-hash': '77' } })
    await has(uid, pod => pod.owners[1]?.uid === deployment)
    assert.deepEqual(
      entities.podOfUid(uid)!.owners.map(({ kind: each, name }) => `${each}/${name}`),
      ['ReplicaSet/cart-77', 'Deployment/cart'],
    )
    const system = (await server.ask('GET', '/api/v1/namespaces/kube-system')) as {
      metadata?: { uid: string }
    }
    const place = { id: containerIdOf('cart-77-x'), runtime: 'containerd', podUid: uid }
    await until('the cluster is known', waitMs, () => {
      const { attributes } = entities.surroundings(place)
      return attributes.get('k8s.cluster.uid') === system.metadata!.uid
    })
    assert.equal(entities.surroundings(place).attributes.get('k8s.deployment.name'), 'cart')
  })

  await t.test('a wire that is cut costs no list', async () => {
    const before = await server.asked('LIST')
    for (let i = 0; i < 3; i++) {
      wire.cut()
      await has(await make(`cut-${i}`), pod => pod.containers[0]?.id === containerIdOf(`cut-${i}`))
    }
    assert.equal(await server.asked('LIST'), before)
  })

  await t.test('nor does a watch that the server ends because its time is up', async () => {
    const before = await server.asked('LIST')
    const watches = await server.asked('WATCH')
    await until('two more have ended', waitMs, async () => (await server.asked('WATCH')) >= watches + 2)
    await has(await make('later'))
    assert.equal(await server.asked('LIST'), before)
  })

  await t.test('a server that starts anew, and knows no old versions, is listed once', async () => {
    await server.ask('POST', '/api/v1/namespaces', { metadata: { name: 'moves-the-version' } })
    const lasting = [...told]
    const restarts = 2
    for (let i = 0; i < restarts; i++) {
      await server.stopServer()
      await until('the state says so', waitMs, () => !source.state.connected)
      await server.startServer()
      await has(await make(`after-${i}`), pod => pod.containers[0]?.id === containerIdOf(`after-${i}`))
      await connected()
      assert.ok((await server.asked('LIST')) <= 1)
    }
    const again = told.slice(lasting.length).filter(name => !name.startsWith('after-'))
    assert.deepEqual(again, [], 'what did not change is not told again')
  })
})
