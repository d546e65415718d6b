import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AskedWindow, named } from '../../../test/helpers/asked-window.ts'
import { checkShape } from '../../../test/helpers/document-shape.ts'
import type { MapLine } from '../../view/api/ui/documents.ts'
import { mapLine as shape } from '../../view/api/ui/host-documents.ts'
import { map } from './map.ts'

const shop = named('shop', { 'process.pid': 1 })
const cart = named('cart', { 'k8s.namespace.name': 'blue' })

async function lineOf(asked: AskedWindow, seconds = 60): Promise<MapLine> {
  const [line] = await map(asked.parts, seconds).next()
  checkShape(shape, line!)
  return line!
}

/** Edges as `from > to protocol`, by names. */
function edgesOf({ nodes, edges }: MapLine): string[] {
  const name = (id: string) => nodes.find(node => node.id === id)?.name ?? `? ${id}`
  return edges.map(({ from, to, protocol }) => `${name(from)} > ${name(to)} ${protocol}`).sort()
}

function nodeOf({ nodes }: MapLine, name: string): MapLine['nodes'][number] {
  const found = nodes.find(node => node.name === name)
  assert.ok(found, `${name} is not among ${nodes.map(node => node.name)}`)
  return found
}

test('nothing was seen: there is nothing on the map', async () => {
  const line = await lineOf(new AskedWindow())
  assert.deepEqual([line.nodes, line.edges, line.omitted, line.no_data_reason], [[], [], 0, ''])
})

test('where nothing traces it says why, with the hint', async () => {
  const asked = new AskedWindow()
  const tracing = { reason: 'the kernel has no BTF', hint: 'boot a kernel that has it' }
  const [line] = await map({ ...asked.parts, tracing }, 60).next()
  assert.equal(
    line!.no_data_reason,
    'Tracing is not running: the kernel has no BTF; boot a kernel that has it.',
  )
})

test('services, stores and addresses are told by what is spoken', async () => {
  const asked = new AskedWindow()
  asked.ask({ client: '192.0.2.9', server: shop })
  asked.ask({ client: shop, server: cart, protocol: 'http2' })
  asked.ask({ client: shop, server: '127.0.0.1', port: 6379, protocol: 'redis' })
  asked.ask({ client: cart, server: '2001:db8::7', port: 5432, protocol: 'postgres' })
  asked.ask({ client: cart, server: '10.0.0.2', port: 53, protocol: 'dns' })
  asked.ask({ client: cart, server: '10.0.0.3', port: 9092, protocol: 'kafka' })
  asked.ask({ client: cart, server: '203.0.113.5', port: 443 })
  const line = await lineOf(asked)
  assert.deepEqual(edgesOf(line), [
    '192.0.2.9 > shop http',
    'cart > 203.0.113.5:443 http',
    'cart > dns (10.0.0.2:53) dns',
    'cart > kafka (10.0.0.3:9092) kafka',
    'cart > postgresql ([2001:db8::7]:5432) postgresql',
    'shop > cart http',
    'shop > redis (127.0.0.1:6379) redis',
  ])
  assert.deepEqual(line.nodes.map(({ name, kind }) => `${kind} ${name}`).sort(), [
    'broker kafka (10.0.0.3:9092)',
    'external 192.0.2.9',
    'external 203.0.113.5:443',
    'resolver dns (10.0.0.2:53)',
    'service cart',
    'service shop',
    'store postgresql ([2001:db8::7]:5432)',
    'store redis (127.0.0.1:6379)',
  ])
  assert.equal(nodeOf(line, 'cart').namespace, 'blue')
  assert.equal(new Set(line.nodes.map(({ id }) => id)).size, line.nodes.length)
})

test('a store on this host has the name of the service that listens there', async () => {
  const asked = new AskedWindow([
    { name: 'redis-server', ports: [6379] },
    { name: 'docker-proxy', ports: [5432] },
    { name: 'one', ports: [11_211] },
    { name: 'other', ports: [11_211] },
  ])
  asked.ask({ client: shop, server: '127.0.0.1', port: 6379, protocol: 'redis' })
  asked.ask({ client: shop, server: '127.0.0.1', port: 5432, protocol: 'postgres' })
  asked.ask({ client: shop, server: '::1', port: 11_211, protocol: 'memcached' })
  asked.ask({ client: shop, server: '192.0.2.1', port: 6379, protocol: 'redis' })
  const line = await lineOf(asked)
  assert.deepEqual(edgesOf(line), [
    'shop > memcached ([::1]:11211) memcached',
    'shop > postgresql (127.0.0.1:5432) postgresql',
    'shop > redis (192.0.2.1:6379) redis',
    'shop > redis-server redis',
  ])
  assert.equal(nodeOf(line, 'redis-server').kind, 'store')
})

test('rates, errors and durations are those of the requests, and a node has what it answered', async () => {
  const asked = new AskedWindow()
  asked.nowMs += 3_600_000
  for (let second = 0; second < 120; second++) {
    for (let i = 0; i < 10; i++)
      asked.ask({ client: shop, server: cart, failed: i === 0, ms: i === 9 ? 400 : 20 })
    asked.ask({ client: named('other'), server: cart, ms: 20 })
    asked.nowMs += 1000
  }
  const line = await lineOf(asked)
  const edge = line.edges.find(({ from }) => from === nodeOf(line, 'shop').id)!
  assert.ok(Math.abs(edge.requests_per_s - 10) < 0.5, String(edge.requests_per_s))
  assert.equal(edge.errors_percent, 10)
  assert.ok(edge.p50_ms! > 14 && edge.p50_ms! < 29, String(edge.p50_ms))
  assert.ok(edge.p95_ms! > 280 && edge.p95_ms! < 570, String(edge.p95_ms))
  const node = nodeOf(line, 'cart')
  assert.ok(Math.abs(node.requests_per_s - 11) < 0.6, String(node.requests_per_s))
  assert.ok(Math.abs(node.errors_percent - 100 / 11) < 0.01)
  assert.equal(nodeOf(line, 'shop').requests_per_s, 0)
  assert.equal(nodeOf(line, 'shop').p95_ms, null)
})

test('what both sides of two containers tell of each other is one edge, counted once', async () => {
  const asked = new AskedWindow()
  for (let i = 0; i < 5; i++) {
    asked.ask({ client: shop, server: '172.30.0.3', port: 80, at: '172.30.0.2', ms: 50 })
    asked.ask({ client: '172.30.0.2', server: cart, at: '172.30.0.3', ms: 2 })
  }
  const line = await lineOf(asked)
  assert.deepEqual(edgesOf(line), ['shop > cart http'])
  assert.equal(line.edges[0]!.requests_per_s, 5)
  assert.ok(line.edges[0]!.p50_ms! < 3)
})

test('an address that two services share names neither', async () => {
  const asked = new AskedWindow()
  asked.ask({ client: '192.0.2.9', server: cart, at: '172.30.0.3' })
  asked.ask({ client: '192.0.2.9', server: named('proxy'), at: '172.30.0.3' })
  asked.ask({ client: shop, server: '172.30.0.3', port: 80 })
  assert.ok(edgesOf(await lineOf(asked)).includes('shop > 172.30.0.3:80 http'))
})

test('who only asks for health is a probe, and who also asks otherwise is none', async () => {
  const asked = new AskedWindow()
  for (let i = 0; i < 3; i++) asked.ask({ client: '10.0.0.1', server: shop, probe: true })
  asked.ask({ client: named('prometheus'), server: cart, probe: true })
  asked.ask({ client: '10.0.0.4', server: shop, probe: true })
  asked.ask({ client: '10.0.0.4', server: shop })
  const { nodes } = await lineOf(asked)
  assert.deepEqual(
    nodes
      .filter(({ probe }) => probe)
      .map(({ name }) => name)
      .sort(),
    ['10.0.0.1', 'prometheus'],
  )
})

test('addresses without room are one, and it is told how many they are', async () => {
  const asked = new AskedWindow()
  for (let i = 0; i < 3000; i++) asked.ask({ client: `10.1.${i >> 8}.${i & 255}`, server: shop })
  const line = await lineOf(asked)
  assert.equal(nodeOf(line, 'shop').requests_per_s, 3000)
  assert.ok(line.nodes.length < 110)
  assert.ok(nodeOf(line, 'other addresses').kind === 'external')
  assert.ok(Math.abs(line.omitted - 2900) < 150, String(line.omitted))
})

test('ids stay the same from line to line, and what was is gone after the time asked for', async () => {
  const asked = new AskedWindow()
  asked.ask({ client: shop, server: cart })
  const live = map(asked.parts, 60)
  const [first] = await live.next()
  asked.nowMs += 30_000
  asked.ask({ client: named('shop', { 'process.pid': 2 }), server: cart })
  const [second] = await live.next()
  assert.deepEqual(
    first!.nodes.map(({ id }) => id),
    second!.nodes.map(({ id }) => id),
  )
  asked.nowMs += 90_000
  assert.deepEqual((await live.next())[0]!.edges, [])
})

test('callers that come one after another do not add up to more than was asked', async () => {
  const asked = new AskedWindow()
  for (let second = 0; second < 30; second++) {
    asked.ask({ client: `10.2.0.${second}`, server: shop })
    asked.nowMs += 1000
  }
  const rate = nodeOf(await lineOf(asked), 'shop').requests_per_s
  assert.ok(rate > 0.9 && rate < 1.1, String(rate))
})
