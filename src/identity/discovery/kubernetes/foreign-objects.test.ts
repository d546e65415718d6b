// What the API server and a kubeconfig say, whatever it is.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'

import { ByteRoom } from '../../../foundation/lib/byte-room.ts'
import type { EntitySink, Pod } from '../../../foundation/model/entity.ts'
import { AccessError } from './access.ts'
import { Interning } from './interning.ts'
import { parseKubeconfig } from './kubeconfig.ts'
import { PodReader } from './pod-reader.ts'
import { PodTable } from './pod-table.ts'
import { ServiceTable } from './service-table.ts'

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constant('x'.repeat(3_000)),
  fc.constantFrom('a', 'uid', ''),
)
const value = fc.oneof(text, fc.jsonValue())
/** What is right, four times out of five: documents with a mistake or two come further than those of mistakes alone. */
const mostly = <T, U>(right: fc.Arbitrary<T>, wrong: fc.Arbitrary<U>) =>
  fc.oneof({ arbitrary: right, weight: 4 }, { arbitrary: wrong, weight: 1 })
const texts = fc.oneof(fc.dictionary(text, text), value)

test('whatever a pod is told to be, what is kept of it is bounded', () => {
  const status = fc.record({
    name: text,
    containerID: fc.oneof(text, fc.constant(`docker://${'a'.repeat(64)}`)),
  })
  const object = fc.record({
    metadata: fc.oneof(
      fc.record({
        uid: fc.constantFrom('u', 'x'.repeat(200)),
        name: text,
        labels: texts,
        annotations: texts,
        ownerReferences: value,
      }),
      value,
    ),
    spec: fc.oneof(
      fc.record({ containers: fc.array(fc.record({ name: text, image: value })), nodeName: value }),
      value,
    ),
    status: fc.oneof(
      fc.record({ containerStatuses: fc.array(status), podIPs: value, startTime: value }),
      value,
    ),
  })
  const reader = new PodReader(['a', 'x'.repeat(3_000)], ['a', '__proto__'], new Interning())
  let read = 0
  fc.assert(
    fc.property(object, each => {
      const pod = reader.read(each as never)?.pod
      if (pod === undefined) return
      read++
      assert.ok(pod.uid.length <= 128 && pod.name.length <= 253 && pod.namespace.length <= 253)
      assert.ok(pod.startUs >= 0 && pod.addresses.length <= 17 && pod.containers.length <= 768)
      for (const kept of [pod.labels, pod.annotations]) {
        assert.ok(kept.size <= 64)
        for (const each of kept.values()) assert.ok(each.length <= 1_024)
      }
      for (const { name, id, image } of pod.containers)
        assert.ok(name.length <= 63 && image.length <= 1_024 && /^[0-9a-f]{0,128}$/.test(id))
    }),
  )
  assert.ok(read > 0)
})

test('whatever a kubeconfig holds, it is refused in words that show none of its secrets', () => {
  const secret = 'hunter2-hunter2'
  const user = fc.record({
    token: fc.constantFrom(secret, 7, ''),
    password: fc.constant(secret),
    username: value,
    exec: mostly(fc.constant(undefined), value),
  })
  const document = fc.record({
    'current-context': fc.constantFrom('a', 'a', 'a', '', 7),
    contexts: mostly(fc.constant([{ name: 'a', context: { cluster: 'a', user: 'a' } }]), value),
    clusters: mostly(
      fc
        .record({
          server: mostly(fc.oneof(fc.webUrl(), fc.constant('https://[::1]:6443')), value),
          'proxy-url': mostly(fc.constant(''), value),
        })
        .map(cluster => [{ name: 'a', cluster }]),
      value,
    ),
    users: mostly(
      user.map(each => [{ name: 'a', user: each }]),
      value,
    ),
  })
  let used = 0
  const check = (yaml: string) => {
    try {
      const { host, port } = parseKubeconfig(yaml, '/etc/kubeconfig')
      used++
      assert.ok(host !== '' && Number.isInteger(port) && port >= 0 && port <= 65_535, `${host} ${port}`)
    } catch (error) {
      assert.ok(error instanceof AccessError, String(error))
      assert.ok(!`${error.message} ${error.hint}`.includes(secret), error.message)
    }
  }
  // JSON is YAML.
  fc.assert(fc.property(document, each => check(JSON.stringify(each))))
  fc.assert(
    fc.property(
      fc.oneof(text, fc.constantFrom(`token: ${secret}: :`, `&a [*a, ${secret}`, '{a: &a [*a]}')),
      check,
    ),
  )
  assert.ok(used > 0)
})

test('pods and services that find no memory are left out, and those that go make room', () => {
  const room = new ByteRoom(4_000)
  const told: string[] = []
  const sink = {
    pod: (pod: Pod) => void told.push(pod.name),
    podGone: (uid: string) => void told.push(`gone ${uid}`),
  } as unknown as EntitySink
  const interning = new Interning()
  const pods = new PodTable({ reader: new PodReader(['a'], [], interning), sink, room, ownerMs: 10 })
  const services = new ServiceTable(interning, room)
  const keeper = pods.keeper()
  const pod = (name: string, label = '') => ({
    metadata: { uid: name, name, namespace: 'n', labels: { a: label } },
    spec: { nodeName: 'node' },
    status: {},
  })
  keeper.take(pod('one'))
  keeper.take(pod('two'))
  keeper.take(pod('three'))
  keeper.take(pod('four'))
  assert.deepEqual([told, pods.size, room.leftOut], [['one', 'two', 'three'], 3, 1])
  keeper.take(pod('one', 'x'.repeat(1_000)))
  assert.deepEqual([pods.size, room.leftOut], [3, 2], 'it stays as it was')
  const service = { metadata: { uid: 's', name: 's', namespace: 'n' }, spec: { clusterIP: '10.0.0.1' } }
  services.keeper().take(service)
  assert.equal(services.at('10.0.0.1')?.name, 's')
  pods.clear()
  services.clear()
  assert.equal(room.bytes, 0)
})
