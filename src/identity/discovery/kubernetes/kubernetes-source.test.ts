import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, beforeEach, test } from 'node:test'
import { containerIdOf, KubernetesApi, podObject } from '../../../../test/helpers/kubernetes-api.ts'
import { pause, until } from '../../../../test/helpers/program.ts'
import type { Cloud, Container, EntitySink, Pod } from '../../../foundation/model/entity.ts'
import { KubernetesSource, type KubernetesSourceOptions } from './kubernetes-source.ts'

const waitMs = 20_000
const directory = mkdtempSync(join(tmpdir(), 'svc-kubernetes-'))
after(() => rmSync(directory, { recursive: true }))

/** Quick, yet of the shape of what is usual. */
const timing = {
  ownerMs: 20_000,
  answerMs: 10_000,
  backoff: { initialMs: 20, maxMs: 200, multiplier: 2, jitter: 0.5 },
}

/** Notes what it is told. */
class Notes implements EntitySink {
  readonly pods = new Map<string, Pod>()
  readonly told: string[] = []
  readonly clusters: string[] = []
  container(_: Container): void {}
  containerGone(_: string): void {}
  cloud(_: Cloud | undefined): void {}
  pod(pod: Pod): void {
    this.pods.set(pod.name, pod)
    this.told.push(`${pod.name}:${pod.owners.map(each => `${each.kind}/${each.name}`).join()}`)
  }
  podGone(uid: string): void {
    for (const [name, pod] of this.pods) {
      if (pod.uid !== uid) continue
      this.pods.delete(name)
      this.told.push(`-${name}`)
    }
  }
  cluster(uid: string, name: string): void {
    this.clusters.push(`${uid} ${name}`)
  }
}

let api: KubernetesApi
let notes: Notes
let warnings: string[]
let source: KubernetesSource | undefined

beforeEach(async () => {
  api = await KubernetesApi.start()
  notes = new Notes()
  warnings = []
})
afterEach(async () => {
  source?.stop()
  source = undefined
  await api.close()
})

function kubeconfig(cluster: object = {}, user: object = {}): string {
  const path = join(directory, `config-${Math.random()}`)
  const document = {
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'lab', user: 'u', namespace: 'ours' } }],
    clusters: [{ name: 'lab', cluster: { server: `http://127.0.0.1:${api.port}`, ...cluster } }],
    users: [{ name: 'u', user }],
  }
  // JSON is YAML.
  writeFileSync(path, JSON.stringify(document))
  return path
}

function start(options: Partial<KubernetesSourceOptions> = {}): KubernetesSource {
  source = new KubernetesSource({
    kubeconfig: options.kubeconfig ?? kubeconfig(),
    nodeName: 'node-a',
    namespaces: [],
    labels: [],
    annotations: [],
    sink: notes,
    warn: (reason, hint) => warnings.push(`${reason}; ${hint}`),
    environment: {},
    timing,
    ...options,
  })
  source.start()
  return source
}

function connected(): Promise<void> {
  return until(
    () => `it is connected: ${JSON.stringify(source!.state)}`,
    waitMs,
    () => source!.state.connected && api.watches >= 2,
  )
}

function names(): string {
  return [...notes.pods.keys()].sort().join()
}

function hasPods(wanted: string): Promise<void> {
  return until(
    () => `there are ${wanted}: ${names()}`,
    waitMs,
    () => names() === wanted,
  )
}

test('pods of this node are told as they are, and followed', async () => {
  api.put('pods', podObject({ name: 'other', node: 'node-b' }))
  api.put(
    'pods',
    podObject({
      name: 'cart',
      uid: 'pod-uid-1',
      labels: { 'app.kubernetes.io/name': 'cart', team: 'blue', secret: 'no' },
      annotations: {
        'resource.opentelemetry.io/service.name': 'basket',
        'wanted.io/x': '1',
        'other.io/x': '2',
      },
    }),
  )
  const { state } = start({ labels: ['team'], annotations: ['wanted.io/x'] })
  assert.equal(state.connected, false)
  await connected()
  assert.deepEqual(notes.pods.get('cart'), {
    uid: 'pod-uid-1',
    name: 'cart',
    namespace: 'shop',
    node: 'node-a',
    startUs: Date.parse('2026-02-03T04:05:06Z') * 1000,
    addresses: ['10.1.0.7'],
    labels: new Map([
      ['app.kubernetes.io/name', 'cart'],
      ['team', 'blue'],
    ]),
    annotations: new Map([
      ['resource.opentelemetry.io/service.name', 'basket'],
      ['wanted.io/x', '1'],
    ]),
    owners: [],
    containers: [
      { name: 'main', id: containerIdOf('cart'), image: 'registry.example.com/shop/cart:1.2', restarts: 0 },
    ],
  })
  const first = notes.pods.get('cart')
  api.put('pods', podObject({ name: 'cart', uid: 'pod-uid-1', restarts: 1 }))
  api.put('pods', podObject({ name: 'stock' }))
  api.put('pods', podObject({ name: 'far', node: 'node-b' }))
  await hasPods('cart,stock')
  assert.equal(notes.pods.get('cart')!.containers[0]!.restarts, 1)
  assert.notEqual(notes.pods.get('cart'), first)
  api.delete('pods', 'cart', 'shop')
  await hasPods('stock')
  assert.deepEqual(
    api.urls.filter(url => url.includes('/pods?') && !url.includes('nodeName%3Dnode-a')),
    [],
  )
})

test('what changes in a pod and is of no interest is not told', async () => {
  api.put('pods', podObject({ name: 'a', uid: 'u' }))
  start()
  await connected()
  for (let i = 0; i < 5; i++) api.put('pods', { ...podObject({ name: 'a', uid: 'u' }), other: i })
  api.put('pods', podObject({ name: 'b' }))
  await hasPods('a,b')
  assert.deepEqual(notes.told, ['a:', 'b:'])
})

test('cluster, node, namespace and counts stand in the state', async () => {
  api.put('services', { metadata: { name: 'web', namespace: 'shop' }, spec: { clusterIP: '10.0.0.9' } })
  api.put('services', { metadata: { name: 'headless', namespace: 'shop' }, spec: { clusterIP: 'None' } })
  api.put('pods', podObject({ name: 'a' }))
  const running = start()
  await connected()
  await until('the services are known', waitMs, () => running.state.servicesWatched === 2)
  await until('the cluster is known', waitMs, () => notes.clusters.length === 2)
  assert.deepEqual(running.state, {
    connected: true,
    reason: '',
    hint: '',
    inCluster: true,
    cluster: 'lab',
    namespace: 'ours',
    node: 'node-a',
    podsWatched: 1,
    servicesWatched: 2,
  })
  assert.deepEqual(notes.clusters, [' lab', 'cluster-uid lab'])
  assert.deepEqual(running.serviceOf('10.0.0.9')?.name, 'web')
  assert.equal(running.serviceOf('None'), undefined)
  api.delete('services', 'web', 'shop')
  await until('the service is gone', waitMs, () => running.serviceOf('10.0.0.9') === undefined)
  assert.equal(running.state.servicesWatched, 1)
})

test('a pod is told with its Deployment, by the rule for names before anybody was asked', async () => {
  const owner = { kind: 'ReplicaSet', name: 'cart-5d4f', uid: 'rs-1' }
  const deployment = { kind: 'Deployment', name: 'cart', uid: 'dep-1', controller: true }
  api.put('replicasets', {
    metadata: { name: 'cart-5d4f', namespace: 'shop', uid: 'rs-1', ownerReferences: [deployment] },
  })
  for (const name of ['p1', 'p2', 'p3'])
    api.put('pods', podObject({ name, owner, labels: { 'pod-template-hash': '5d4f' } }))
  start()
  await until('the Deployment is known', waitMs, () => notes.pods.get('p3')?.owners[1]?.uid === 'dep-1')
  assert.deepEqual(
    [...new Set(notes.told.map(each => each.slice(3)))],
    ['ReplicaSet/cart-5d4f,Deployment/cart'],
    'never without, and never another one',
  )
  assert.deepEqual(notes.pods.get('p1')!.owners, [owner, { kind: 'Deployment', name: 'cart', uid: 'dep-1' }])
  assert.equal(api.count('get replicasets'), 1, 'once for all of its pods')
  api.put('pods', podObject({ name: 'p4', owner, labels: { 'pod-template-hash': '5d4f' } }))
  await until('p4 is told', waitMs, () => notes.pods.has('p4'))
  assert.equal(api.count('get replicasets'), 1)
})

test('a pod of a Job waits until it is known whether a CronJob made that', async () => {
  const cron = { kind: 'CronJob', name: 'backup', uid: 'cron-1', controller: true }
  const metadata = { name: 'backup-291', namespace: 'shop', uid: 'job-1' }
  api.put('jobs', { metadata: { ...metadata, ownerReferences: [cron] } })
  api.put('jobs', { metadata: { name: 'once', namespace: 'shop', uid: 'job-2' } })
  api.put('pods', podObject({ name: 'b', owner: { kind: 'Job', name: 'backup-291', uid: 'job-1' } }))
  api.put('pods', podObject({ name: 'o', owner: { kind: 'Job', name: 'once', uid: 'job-2' } }))
  api.put('pods', podObject({ name: 'x', owner: { kind: 'Job', name: 'deleted', uid: 'job-3' } }))
  start()
  await hasPods('b,o,x')
  assert.deepEqual([...notes.told].sort(), ['b:Job/backup-291,CronJob/backup', 'o:Job/once', 'x:Job/deleted'])
})

test('where owners may not be looked up, the rule for names stays, and the hint names the rights', async () => {
  api.conduct.forbidden.add('get replicasets').add('get jobs')
  const owner = { kind: 'ReplicaSet', name: 'cart-5d4f', uid: 'rs-1' }
  api.put('pods', podObject({ name: 'p', owner, labels: { 'pod-template-hash': '5d4f' } }))
  api.put('pods', podObject({ name: 'q', owner: { kind: 'Job', name: 'backup-2', uid: 'job-1' } }))
  for (let i = 0; i < 20; i++)
    api.put(
      'pods',
      podObject({ name: `r${i}`, owner: { kind: 'ReplicaSet', name: `r${i}-x`, uid: `rs-r${i}` } }),
    )
  const running = start()
  await until('all are told', waitMs, () => notes.pods.size === 22)
  assert.deepEqual(notes.pods.get('p')!.owners[1], { kind: 'Deployment', name: 'cart', uid: '' })
  assert.deepEqual(notes.pods.get('q')!.owners, [{ kind: 'Job', name: 'backup-2', uid: 'job-1' }])
  await connected()
  assert.match(
    warnings.join('\n'),
    /system:serviceaccount:svc:agent is not allowed to get replicasets \(403\); grant it get on replicasets by a ClusterRole/,
  )
  assert.equal(running.state.connected, true)
  assert.ok(api.count('get replicasets') <= 8, 'who is refused does not go on asking')
})

test('a list by pages, in small pieces, tells the same as one in a whole', async () => {
  api.conduct.cached = false
  api.conduct.pieceBytes = 1_000
  for (let i = 0; i < 1_201; i++) api.put('pods', podObject({ name: `p${i}` }))
  start()
  await until('all pods are told', waitMs, () => notes.pods.size === 1_201)
  await connected()
  assert.equal(api.count('list pods'), 3)
  assert.equal(notes.told.length, 1_201)
})

test('connections that break are taken up where they were, without another list', async () => {
  api.put('pods', podObject({ name: 'a' }))
  start()
  await connected()
  for (let i = 0; i < 5; i++) {
    api.disconnect()
    api.put('pods', podObject({ name: `b${i}` }))
    // A connection that breaks before its first answer would be a fault of the server.
    await until(`b${i} is told`, waitMs, () => notes.pods.has(`b${i}`) && api.watches === 2)
  }
  api.write('pods', '{"type":"MODIFIED","object":{"metadata":{"name":"a","uid":"uid-2","resour')
  api.disconnect()
  api.delete('pods', 'a', 'shop')
  await hasPods('b0,b1,b2,b3,b4')
  const before = api.count('watch pods')
  api.endWatches()
  await until('it watches again', waitMs, () => api.count('watch pods') > before && api.watches === 2)
  assert.equal(api.count('list pods'), 1)
  assert.equal(api.count('list services'), 1)
  assert.deepEqual(warnings, [])
})

test('watches that a proxy cuts off in their silence are begun anew at once, each time', async () => {
  const backoff = { initialMs: 20, maxMs: 10 * waitMs, multiplier: 100, jitter: 0 }
  start({ timing: { ...timing, backoff } })
  await connected()
  for (let i = 0; i < 4; i++) {
    const before = api.count('watch pods')
    await pause(1_100)
    api.disconnect()
    await until('it watches again', waitMs, () => api.count('watch pods') > before && api.watches === 2)
  }
  assert.equal(api.count('list pods'), 1)
})

test('a server that is away is waited for, and what happened meanwhile is made up for', async () => {
  api.put('pods', podObject({ name: 'a' }))
  const running = start()
  await connected()
  const { port } = api
  await api.close()
  api.put('pods', podObject({ name: 'b' }))
  await until('the state says so', waitMs, () => !running.state.connected)
  assert.match(running.state.reason, /^cannot reach the API server http:\/\/127\.0\.0\.1:\d+: .*ECONNREFUSED/)
  assert.match(running.state.hint, /check that the API server runs/)
  await api.listen(port)
  await hasPods('a,b')
  await connected()
  assert.equal(running.state.reason, '')
  assert.equal(api.count('list pods'), 1)
  assert.equal(warnings.length, 1)
})

for (const expiry of ['status', 'event'] as const)
  test(`a version that expired (as ${expiry}) leads to one list, of which only differences are told`, async () => {
    api.conduct.expiry = expiry
    for (const name of ['same', 'changed', 'gone']) api.put('pods', podObject({ name, uid: name }))
    start()
    await connected()
    const { port } = api
    await api.close()
    api.put('pods', podObject({ name: 'changed', uid: 'changed', restarts: 3 }))
    api.delete('pods', 'gone', 'shop')
    api.put('pods', podObject({ name: 'new' }))
    api.compact()
    await api.listen(port)
    await hasPods('changed,new,same')
    await connected()
    assert.equal(api.count('list pods'), 2)
    assert.deepEqual(notes.told.slice(3).sort(), ['-gone', 'changed:', 'new:'])
  })

test('a bookmark moves on, so that a quiet watch does not expire', async () => {
  api.put('pods', podObject({ name: 'a' }))
  start()
  await connected()
  api.put('namespaces', { metadata: { name: 'elsewhere' } })
  api.bookmark()
  api.compact()
  const before = api.count('watch pods')
  api.endWatches()
  await until('it watches again', waitMs, () => api.count('watch pods') > before && api.watches === 2)
  api.put('pods', podObject({ name: 'b' }))
  await hasPods('a,b')
  assert.equal(api.count('list pods'), 1)
})

test('a page that expired begins the list anew', async () => {
  api.conduct.cached = false
  for (let i = 0; i < 700; i++) api.put('pods', podObject({ name: `p${i}` }))
  let expired = false
  api.conduct.answer = request => {
    if (!expired && request.url!.includes('continue=')) {
      expired = true
      api.compact()
    }
    return false
  }
  start()
  await connected()
  assert.equal(notes.pods.size, 700)
  assert.equal(api.count('list pods'), 4)
})

test('a refusal names the account, the verbs and the resource', async () => {
  api.conduct.forbidden.add('list pods')
  const running = start({ namespaces: ['shop'] })
  await until('the state says so', waitMs, () => running.state.reason !== '')
  assert.equal(running.state.connected, false)
  assert.equal(
    running.state.reason,
    'system:serviceaccount:svc:agent is not allowed to list pods in the namespace shop (403)',
  )
  assert.equal(running.state.hint, 'grant it get, list and watch on pods in the namespace shop by a Role')
  api.put('pods', podObject({ name: 'a' }))
  api.put('pods', podObject({ name: 'elsewhere', namespace: 'other' }))
  api.conduct.forbidden.clear()
  await hasPods('a')
  await connected()
  assert.equal(running.state.reason, '')
  assert.equal(warnings.length, 1)
})

test('services that may not be listed take no pods away', async () => {
  api.conduct.forbidden.add('list services').add('get namespaces')
  api.put('pods', podObject({ name: 'a' }))
  const running = start()
  await hasPods('a')
  await until('the pods are watched', waitMs, () => running.state.connected && running.state.reason !== '')
  const warned = /is not allowed to list services \(403\); grant it get, list and watch on services by/
  await until('services are warned of', waitMs, () => warnings.some(each => warned.test(each)))
})

test('Retry-After is heeded', async () => {
  api.conduct.busy = { times: 3, retryAfter: '1' }
  api.put('pods', podObject({ name: 'a' }))
  const startedAt = performance.now()
  start()
  await hasPods('a')
  assert.ok(performance.now() - startedAt >= 950)
  await connected()
})

test('answers that are no lists, and lines that are no events, end nothing', async () => {
  let wrong = 0
  const answers = [
    '<html>login</html>',
    '[]',
    '{}',
    '{"items":[1,2],"metadata":{}}',
    '{"items":[{"a":',
    'null',
  ]
  api.conduct.answer = (request, response) => {
    if (!request.url!.includes('/pods?') || wrong >= answers.length) return false
    response.end(answers[wrong++])
    return true
  }
  api.put('pods', podObject({ name: 'a' }))
  const running = start()
  await until('the state says so', waitMs, () => running.state.reason !== '')
  assert.match(running.state.reason, /^cannot list pods at http/)
  assert.match(running.state.hint, /a proxy in front of it/)
  await hasPods('a')
  await connected()
  const odd = [
    '{"type":"NEWTYPE","object":{}}',
    '{"type":"ADDED"}',
    '{"type":"ADDED","object":{"metadata":7}}',
    '{"type":"ADDED","object":{"metadata":{"uid":5,"name":[]},"spec":[],"status":"x"}}',
    '{"type":"DELETED","object":null}',
    '',
  ]
  api.write('pods', `${odd.join('\n')}\n`)
  const oddPod = {
    metadata: {
      uid: 'odd',
      name: 'odd',
      labels: [1],
      annotations: 'x',
      ownerReferences: [{ controller: true }, null],
    },
    spec: { nodeName: 'node-a', containers: [{ name: 7 }, { name: 'ok', image: 3 }], initContainers: 'no' },
    status: {
      startTime: 'yesterday',
      podIP: 3,
      containerStatuses: [{ name: 'ok', containerID: 'nonsense' }],
    },
  }
  api.put('pods', oddPod)
  api.put('pods', podObject({ name: 'b' }))
  await hasPods('a,b,odd')
  assert.deepEqual(notes.pods.get('odd')!.containers, [{ name: 'ok', id: '', image: '', restarts: 0 }])
  assert.equal(notes.pods.get('odd')!.startUs, 0)
  api.write('pods', 'this is no JSON\n')
  api.put('pods', podObject({ name: 'c' }))
  await hasPods('a,b,c,odd')
  await connected()
  api.write('pods', '{"type":"ERROR","object":{"code":500,"reason":"InternalError"}}\n')
  api.put('pods', podObject({ name: 'd' }))
  await hasPods('a,b,c,d,odd')
  await connected()
  assert.ok(warnings.some(each => each.includes('cannot watch pods') && each.includes('HTTP 500')))
})

test('a line beyond all bounds is passed over', async () => {
  start()
  await connected()
  for (let i = 0; i < 6; i++) api.write('pods', Buffer.alloc(1024 * 1024, 0x20))
  api.write('pods', '\n')
  api.put('pods', podObject({ name: 'a' }))
  await hasPods('a')
  assert.equal(api.count('list pods'), 1)
})

test('a watch that hangs is given up and begun anew', async () => {
  start({ timing: { ...timing, watchMs: 1, hangMs: 300 } })
  api.conduct.answer = (request, response) => {
    if (!request.url!.includes('watch=1')) return false
    response.flushHeaders()
    return true
  }
  await until('it watches again and again', waitMs, () => api.count('watch pods') >= 3)
  api.conduct.answer = undefined
  api.put('pods', podObject({ name: 'a' }))
  await hasPods('a')
  assert.equal(api.count('list pods'), 1)
})

test('a silent server is given up for the next attempt', async () => {
  let silent = 2
  api.conduct.answer = request => request.url!.includes('/pods?') && silent-- > 0
  api.put('pods', podObject({ name: 'a' }))
  const running = start({ timing: { ...timing, answerMs: 200 } })
  await until('the state says so', waitMs, () => running.state.reason.includes('no answer within 200 ms'))
  await hasPods('a')
})

test('stop ends all connections and tells that the pods are gone', async () => {
  api.put('pods', podObject({ name: 'a' }))
  const running = start()
  await connected()
  running.stop()
  assert.equal(names(), '')
  await until('no connection is left', waitMs, () => api.connections === 0)
  const { told } = notes
  api.put('pods', podObject({ name: 'b' }))
  await pause(50)
  assert.deepEqual(told, ['a:', '-a'])
  assert.equal(running.state.connected, false)
})
