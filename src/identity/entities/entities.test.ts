import assert from 'node:assert/strict'
import { test } from 'node:test'
import { containerOf } from '../../../test/helpers/containers.ts'
import type { Cloud, Container, Pod } from '../../foundation/model/entity.ts'
import { type ContainerPlace, noPlace } from './container-place.ts'
import { Entities, type EntitiesOptions } from './entities.ts'

const id = (of: number) => of.toString(16).padStart(64, '0')
const placed = (of: number, podUid = ''): ContainerPlace => ({ id: id(of), runtime: '', podUid })
const clock = { ms: 0 }

function container(of: number, parts: Partial<Container> = {}): Container {
  const about = { name: `c${of}`, image: 'registry:5000/shop/cart:1.2', imageId: 'sha256:abc' }
  return containerOf({ id: id(of), ...about, ...parts })
}

function pod(uid: string, parts: Partial<Pod> = {}): Pod {
  return {
    uid,
    name: 'cart-7d9f-x',
    namespace: 'eu',
    node: 'node-1',
    startUs: 1.7e15,
    addresses: [],
    labels: new Map([['tier', 'web']]),
    annotations: new Map(),
    owners: [
      { kind: 'ReplicaSet', name: 'cart-7d9f', uid: 'r' },
      { kind: 'Deployment', name: 'cart', uid: 'd' },
    ],
    containers: [],
    ...parts,
  }
}

const cloud: Cloud = {
  provider: 'aws',
  platform: 'aws_ec2',
  region: 'eu-central-1',
  zone: 'eu-central-1a',
  account: '1',
  resourceId: '',
  instanceId: 'i-1',
  instanceName: '',
  instanceType: 'm7g.large',
  imageId: 'ami-1',
}

function entities(options: EntitiesOptions = {}): Entities {
  return new Entities({ now: () => clock.ms, ...options })
}

const told = (of: Entities, place: ContainerPlace) => of.surroundings(place).attributes.toObject()

test('what is told of a container is the same object until something of it changes', () => {
  const known = entities({ containerLabels: ['team'] })
  const unknown = known.surroundings(placed(1))
  assert.deepEqual(unknown.attributes.toObject(), { 'container.id': id(1) })
  assert.equal(known.surroundings(placed(1)), unknown)
  known.container(
    container(1, {
      labels: new Map([
        ['team', 'a'],
        ['secret', 'b'],
      ]),
    }),
  )
  const first = known.surroundings(placed(1))
  assert.deepEqual(first.attributes.toObject(), {
    'container.id': id(1),
    'container.runtime.name': 'docker',
    'container.name': 'c1',
    'container.image.name': 'registry:5000/shop/cart',
    'container.image.tags': ['1.2'],
    'container.image.id': 'sha256:abc',
    'container.label.team': 'a',
  })
  assert.equal(known.surroundings(placed(1)), first)
  // That it is healthy, or has another process, is nothing that telemetry tells.
  known.container(container(1, { labels: new Map([['team', 'a']]), health: 'healthy', pid: 7 }))
  assert.equal(known.surroundings(placed(1)), first)
  known.container(container(1, { labels: new Map([['team', 'a']]), name: 'renamed' }))
  const second = known.surroundings(placed(1))
  assert.notEqual(second, first)
  assert.equal(second.attributes.get('container.name'), 'renamed')
  known.configure({})
  assert.equal(known.surroundings(placed(1)).attributes.get('container.label.team'), undefined)
})

test('a pod is told whether it, its container or the place came first', () => {
  const want = { 'k8s.pod.name': 'cart-7d9f-x', 'k8s.deployment.name': 'cart', 'k8s.replicaset.uid': 'r' }
  const check = (known: Entities, place: ContainerPlace) => {
    const got = told(known, place)
    for (const [key, value] of Object.entries(want)) assert.equal(got[key], value, key)
    assert.equal(got['k8s.pod.start_time'], '2023-11-14T22:13:20.000Z')
  }
  // By the place alone, before the pod lists its container.
  const byPlace = entities()
  byPlace.surroundings(placed(1, 'u'))
  byPlace.pod(pod('u'))
  check(byPlace, placed(1, 'u'))
  const listed = { name: 'cart', id: id(1), image: 'cart:3', restarts: 2 }
  byPlace.pod(pod('u', { containers: [listed] }))
  assert.equal(told(byPlace, placed(1, 'u'))['k8s.container.restart_count'], 2)
  assert.deepEqual(told(byPlace, placed(1, 'u'))['container.image.tags'], ['3'])
  // By the container that the pod lists.
  const byList = entities()
  byList.surroundings(placed(1))
  byList.pod(pod('u', { containers: [listed] }))
  check(byList, placed(1))
  assert.equal(told(byList, placed(1))['k8s.container.name'], 'cart')
  // Another container took its place.
  byList.pod(pod('u', { containers: [{ ...listed, id: id(2) }] }))
  assert.equal(told(byList, placed(1))['k8s.pod.uid'], undefined)
  check(byList, placed(2))
  // By what the runtime tells.
  const byRuntime = entities()
  byRuntime.container(container(1, { podUid: 'u', podContainer: 'cart' }))
  byRuntime.surroundings(placed(1))
  byRuntime.pod(pod('u'))
  check(byRuntime, placed(1))
})

test('a pod that a file made is known by the containers that its status lists, and by no annotation', () => {
  const known = entities()
  // Anybody who may make pods can write that it was made of this file.
  known.pod(pod('posing', { annotations: new Map([['kubernetes.io/config.hash', 'f00']]) }))
  assert.equal(told(known, placed(1, 'f00'))['k8s.pod.uid'], 'f00')
  const listed = { name: 'etcd', id: id(1), image: 'etcd:3', restarts: 0 }
  known.pod(pod('api-uid', { containers: [listed] }))
  assert.equal(told(known, placed(1, 'f00'))['k8s.pod.uid'], 'api-uid')
  assert.equal(told(known, placed(2, 'f00'))['k8s.pod.uid'], 'f00')
})

test('pod labels and annotations are told that were asked for', () => {
  const known = entities({ podLabels: ['tier', 'none'], podAnnotations: ['note'] })
  known.pod(
    pod('u', {
      annotations: new Map([
        ['note', 'n'],
        ['other', 'o'],
      ]),
    }),
  )
  const got = told(known, placed(1, 'u'))
  assert.equal(got['k8s.pod.label.tier'], 'web')
  assert.equal(got['k8s.pod.annotation.note'], 'n')
  assert.ok(!('k8s.pod.label.none' in got) && !('k8s.pod.annotation.other' in got))
})

test('what the cloud and the cluster tell is on everything, and on pods alone', () => {
  const known = entities()
  known.pod(pod('u'))
  const before = [known.surroundings(noPlace), known.surroundings(placed(1, 'u'))]
  known.cluster('cluster-uid', 'prod')
  assert.equal(known.surroundings(noPlace), before[0])
  known.cloud(cloud)
  known.cloud({ ...cloud })
  const host = known.surroundings(noPlace)
  assert.notEqual(host, before[0])
  assert.deepEqual(host.attributes.toObject(), {
    'cloud.provider': 'aws',
    'cloud.platform': 'aws_ec2',
    'cloud.region': 'eu-central-1',
    'cloud.availability_zone': 'eu-central-1a',
    'cloud.account.id': '1',
    'host.id': 'i-1',
    'host.type': 'm7g.large',
    'host.image.id': 'ami-1',
  })
  const inPod = told(known, placed(1, 'u'))
  assert.deepEqual([inPod['k8s.cluster.name'], inPod['host.id']], ['prod', 'i-1'])
  known.cloud(undefined)
  assert.deepEqual(told(known, noPlace), {})
})

test('what has gone is known for a minute more, and does not count', () => {
  const known = entities()
  known.container(container(1))
  known.pod(pod('u'))
  known.containerGone(id(1))
  known.podGone('u')
  assert.deepEqual([known.containerCount, known.podCount, [...known.eachContainer()].length], [0, 0, 0])
  assert.equal(told(known, placed(1))['container.name'], 'c1')
  clock.ms += 60_000
  known.container(container(2))
  assert.deepEqual(told(known, placed(1)), { 'container.id': id(1) })
  assert.equal(known.podOfUid('u'), undefined)
  // One that comes back stays.
  known.containerGone(id(2))
  known.container(container(2))
  clock.ms += 60_000
  known.container(container(3))
  assert.equal(known.containerCount, 2)
})

test('a container that nobody told of is looked for, once in a second', () => {
  let looks = 0
  let answer: Container | undefined
  const known = entities({
    look: () => {
      looks++
      return answer
    },
  })
  assert.equal(known.containerOf(id(1)), undefined)
  known.surroundings(placed(1))
  assert.equal(looks, 1)
  answer = container(1)
  clock.ms += 1_000
  assert.equal(told(known, placed(1))['container.name'], 'c1')
  known.surroundings(placed(1))
  assert.equal(looks, 2)
})

test('a container within a container is what is known of the nearest of them', () => {
  const known = entities()
  const place: ContainerPlace = { ...placed(2), outer: { ...placed(3), outer: placed(1) } }
  assert.equal(told(known, place)['container.id'], id(2))
  known.container(container(1))
  assert.equal(told(known, place)['container.name'], 'c1')
  assert.equal(known.surroundings(place), known.surroundings(placed(1)))
  known.container(container(2))
  assert.equal(told(known, place)['container.name'], 'c2')
})

test('any number of containers and pods takes bounded room, and those that are there stay longest', () => {
  const known = entities()
  for (let of = 0; of < 20_000; of++) {
    known.container(container(of))
    known.pod(pod(`u${of}`, { containers: [{ name: 'x', id: id(of), image: '', restarts: 0 }] }))
    known.surroundings(placed(of))
    if (of === 10_000) known.containerGone(id(of))
  }
  assert.equal(known.containerCount, 16_384)
  assert.equal(known.podCount, 16_384)
  assert.equal(known.containerOf(id(10_000)), undefined)
  assert.equal(told(known, placed(19_999))['container.name'], 'c19999')
})

test('what is known is counted in bytes, and what is gone is given back first', () => {
  const entities = new Entities()
  assert.equal(entities.bytes, 0)
  const labels = new Map([['a', 'x'.repeat(10_000)]])
  const one = containerOf({ id: 'a'.repeat(64), labels })
  entities.container(one)
  entities.container(one)
  const held = entities.bytes
  assert.ok(held > 10_000 && held < 30_000, `${held}`)
  entities.container(containerOf({ id: 'b'.repeat(64), labels }))
  entities.containerGone('b'.repeat(64))
  assert.ok(entities.bytes > 1.9 * held)
  assert.ok(entities.shed() > 0.9 * held)
  assert.equal(entities.bytes, held)
  assert.equal(entities.containerOf(one.id), one)
})
