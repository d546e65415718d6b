import assert from 'node:assert/strict'
import { test } from 'node:test'
import { containerOf } from '../../../test/helpers/containers.ts'
import type { Container, Owner, Pod } from '../../foundation/model/entity.ts'
import { serviceIdentity } from './service-identity.ts'

const id = 'c'.repeat(64)
const place = { id, runtime: '', podUid: '' }
const base = containerOf({ id, name: 'clever_hopper' })

const none = () => assert.fail('nothing is left out')

const named = (parts: Partial<Container> & { readonly l?: Record<string, string> }) => {
  const { l = {}, ...rest } = parts
  const { name, namespace, version } = serviceIdentity(
    place,
    { ...base, labels: new Map(Object.entries(l)), ...rest },
    undefined,
    [],
    none,
  )
  return [name, namespace, version]
}

test('a container is named by what people called it', () => {
  assert.deepEqual(named({ name: 'shop' }), ['shop', '', ''])
  assert.deepEqual(named({ name: 'my_app' }), ['my_app', '', ''])
  assert.deepEqual(named({ name: 'clever_hopper' }), ['', '', ''])
  assert.deepEqual(named({ name: 'clever_hopper3' }), ['', '', ''])
  assert.deepEqual(named({ name: `nginx-${id.slice(0, 5)}` }), ['', '', ''], 'of nerdctl')
  assert.deepEqual(named({ name: '0123456789ab' }), ['', '', ''])
  const compose = { 'com.docker.compose.service': 'cart', 'com.docker.compose.project': 'shop' }
  assert.deepEqual(named({ name: 'shop-cart-1', l: compose }), ['cart', 'shop', ''])
  assert.deepEqual(
    named({ l: { 'io.kubernetes.container.name': 'till', 'io.kubernetes.pod.namespace': 'eu' } }),
    ['till', 'eu', ''],
  )
  assert.deepEqual(named({ l: { 'org.opencontainers.image.version': '3' } }), ['', '', '3'])
  assert.deepEqual(serviceIdentity(place, undefined, undefined, [], none).name, '')
})

test('a pod is named by annotation, labels, workload, then itself', () => {
  const owners: Owner[] = [
    { kind: 'ReplicaSet', name: 'cart-7d9f', uid: '' },
    { kind: 'Deployment', name: 'cart', uid: '' },
  ]
  const check = (pod: Partial<Pod>, want: readonly string[], container: Partial<Container> = {}) => {
    const whole: Pod = {
      uid: 'u',
      name: 'cart-7d9f-x',
      namespace: 'eu',
      node: '',
      startUs: 0,
      addresses: [],
      labels: new Map(),
      annotations: new Map(),
      owners: [],
      containers: [],
      ...pod,
    }
    const { name, namespace, version } = serviceIdentity(place, { ...base, ...container }, whole, [], none)
    assert.deepEqual([name, namespace, version], want)
  }
  const labels = new Map([
    ['app.kubernetes.io/name', 'n'],
    ['app.kubernetes.io/version', '2'],
  ])
  check({}, ['cart-7d9f-x', 'eu', ''])
  check({ owners }, ['cart', 'eu', ''])
  check({ owners: owners.slice(0, 1) }, ['cart-7d9f', 'eu', ''])
  check(
    {
      owners: [
        { kind: 'Job', name: 'j', uid: '' },
        { kind: 'CronJob', name: 'c', uid: '' },
      ],
    },
    ['c', 'eu', ''],
  )
  check({ owners, labels }, ['n', 'eu', '2'])
  check({ owners, labels: new Map([...labels, ['app.kubernetes.io/instance', 'i']]) }, ['i', 'eu', '2'])
  const prefix = 'resource.opentelemetry.io/'
  const annotations = new Map([
    [`${prefix}service.name`, 'a'],
    [`${prefix}service.namespace`, 'ns'],
    [`${prefix}service.version`, '9'],
  ])
  check({ owners, labels, annotations }, ['a', 'ns', '9'])
  check({ owners }, ['cart', 'eu', '1.4'], { image: 'x/cart:1.4@sha256:00' })
  check({ owners }, ['cart', 'eu', ''], { image: 'x/cart:latest' })
  check({ owners, containers: [{ name: 'c', id, image: 'x:5', restarts: 0 }] }, ['cart', 'eu', '5'])
})

test('annotations for resources are told, so many of them', () => {
  const prefix = 'resource.opentelemetry.io/'
  const many = Array.from({ length: 100 }, (_, i) => [`${prefix}k${i}`, 'v'] as const)
  const pod: Pod = {
    uid: 'u',
    name: 'p',
    namespace: 'n',
    node: '',
    startUs: 0,
    addresses: [],
    labels: new Map(),
    annotations: new Map([
      [`${prefix}k8s.pod.name`, 'other'],
      [`${prefix}service.instance.id`, 'other'],
      [`${prefix}host_name`, 'other'],
      [`${prefix}dt.entity.host`, 'other'],
      [`${prefix}team`, 'a'],
      [prefix, 'x'],
      ['else', 'y'],
      ...many,
    ]),
    owners: [],
    containers: [],
  }
  const lost: string[] = []
  const allowedKeys = ['team', ...many.map(([key]) => key.slice(prefix.length))]
  const { annotated } = serviceIdentity(place, undefined, pod, allowedKeys, why => lost.push(why))
  assert.deepEqual(annotated.slice(0, 2), [
    ['team', 'a'],
    ['k0', 'v'],
  ])
  assert.equal(annotated.length, 32)
  // An empty key is among those that nobody has allowed.
  assert.deepEqual(lost.toSorted(), [...Array(5).fill('not_allowed'), ...Array(69).fill('too_many')])
})
