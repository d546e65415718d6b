// owns: process
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { heapAllocated, heapGrowth } from '../../../../test/helpers/heap.ts'
import type { Owner } from '../../../foundation/lib/fair-share.ts'
import type { Metric } from '../../../foundation/model/metric.ts'
import { type Resource, resource } from '../../../foundation/model/resource.ts'
import { ServiceGraph } from './service-graph.ts'

const shop = resource({ 'service.name': 'shop', 'process.pid': 1 })
const shop2 = resource({ 'service.name': 'shop', 'process.pid': 2 })
const db = resource({ 'service.name': 'db' })

/** By name, and in it by `client>server`: the value of a sum, or count and sum of a histogram. */
function told(metrics: readonly Metric[]): Record<string, Record<string, number | readonly number[]>> {
  const all: Record<string, Record<string, number | readonly number[]>> = {}
  for (const metric of metrics) {
    const of: Record<string, number | readonly number[]> = {}
    for (const point of metric.points) {
      const { client, server, connection_type, ...rest } = point.attributes.toObject()
      const id =
        Object.keys(rest).length > 0 ? 'overflow' : `${client}>${server}${connection_type ? ' virtual' : ''}`
      if ('value' in point) of[id] = point.value
      else of[id] = [point.count, point.sum!]
    }
    all[metric.name] = of
  }
  return all
}

test('requests are counted by the names of the services at both ends', () => {
  const graph = new ServiceGraph({ startUs: 1 })
  graph.edge(shop, db, false, 2e9, 1e9)
  graph.edge(shop2, db, true, 2e9, -1)
  graph.edge(db, shop, false, -1, 5e9)
  assert.deepEqual(told(graph.collect(2)), {
    traces_service_graph_request_total: { 'shop>db': 2, 'db>shop': 1 },
    traces_service_graph_request_failed_total: { 'shop>db': 1, 'db>shop': 0 },
    traces_service_graph_request_client: { 'shop>db': [2, 4] },
    traces_service_graph_request_server: { 'shop>db': [1, 1], 'db>shop': [1, 5] },
  })
})

test('a side that is not of this host is a node of its own', () => {
  const graph = new ServiceGraph({ startUs: 1 })
  graph.edge(shop, 'api.example.org', false, 1e9, -1)
  graph.edge('203.0.113.9', shop, false, -1, 1e9)
  assert.deepEqual(told(graph.collect(2)).traces_service_graph_request_total, {
    'shop>api.example.org virtual': 1,
    '203.0.113.9>shop virtual': 1,
  })
})

test('a flood of other hosts leaves room for the services of this one', () => {
  const graph = new ServiceGraph({ startUs: 1, maxEdges: 8 })
  for (let i = 0; i < 100; i++) graph.edge(`203.0.113.${i}`, shop, false, -1, 1)
  graph.edge(shop, 'api.example.org', false, 1, 1)
  graph.edge(shop, db, false, 1, 1)
  const total = told(graph.collect(2)).traces_service_graph_request_total!
  assert.equal(total.overflow, 92)
  assert.equal(total['shop>db'], 1)
  assert.equal(total['shop>api.example.org virtual'], 1)
  assert.equal(graph.size, 8)
})

const mallory: Owner = { group: '/user.slice/user-1001.slice', user: '1001' }
const alice: Owner = { group: '/system.slice/shop.service', user: '1002' }

function named(name: string, owner: Owner): Resource {
  return resource({ 'service.name': name }, owner)
}

test('edges of others keep nobody out, whichever way they lead, and no request is counted twice or not at all', () => {
  const graph = new ServiceGraph({ startUs: 1 })
  for (let i = 0; i < 3_000; i++) graph.edge(named(`a${i}`, mallory), db, false, 1, 1)
  for (let i = 0; i < 3_000; i++) graph.edge(`198.51.100.${i}`, named('open', mallory), false, -1, 1)
  assert.equal(graph.size, 2_000)
  const bystander = named('shop', alice)
  graph.edge(bystander, db, false, 1, 1)
  graph.edge('203.0.113.9', bystander, false, -1, 1)
  const total = told(graph.collect(2)).traces_service_graph_request_total!
  assert.equal(total['shop>db'], 1)
  assert.equal(total['203.0.113.9>shop virtual'], 1)
  assert.equal(
    Object.values(total).reduce<number>((sum, value) => sum + Number(value), 0),
    6_002,
  )
  assert.equal(graph.size, 2_000)
  assert.deepEqual(graph.losses, { refused: 4_000, taken: 2 })
  assert.ok(!graph.collect(3)[0]!.points.some(({ startUs }) => startUs > 1), 'others go on as they were')
})

test('whoever names itself anew all the time takes from nobody who has less', () => {
  const graph = new ServiceGraph({ startUs: 1, maxEdges: 100 })
  const bystander = named('shop', alice)
  for (let i = 0; i < 40; i++) graph.edge(bystander, named(`db${i}`, alice), false, 1, 1)
  for (let round = 2; round < 10; round++) {
    for (let i = 0; i < 500; i++) graph.edge(named(`${round} ${i}`, mallory), db, false, 1, 1)
    for (let i = 0; i < 40; i++) graph.edge(bystander, named(`db${i}`, alice), false, 1, 1)
    const total = told(graph.collect(round)).traces_service_graph_request_total!
    for (let i = 0; i < 40; i++) assert.equal(total[`shop>db${i}`], round)
  }
})

test('an edge that is idle is let go, and begins anew when it returns', () => {
  const graph = new ServiceGraph({ startUs: 1, idleCollections: 2 })
  graph.edge(shop, db, false, 1, 1)
  for (let timeUs = 2; timeUs < 5; timeUs++) assert.equal(graph.collect(timeUs).length, 4)
  assert.deepEqual(graph.collect(5), [])
  assert.deepEqual([graph.size, graph.bytes], [0, 0])
  graph.edge(shop, db, false, 1, 1)
  const [requests] = graph.collect(6)
  assert.deepEqual(
    requests!.points.map(point => [point.startUs, point.timeUs, 'value' in point && point.value]),
    [[5, 6, 1]],
  )
})

test('where memory is short idle edges are let go, and those that are used go on', () => {
  const graph = new ServiceGraph({ startUs: 1 })
  for (let i = 0; i < 100; i++) graph.edge(shop, `10.0.0.${i}`, false, 1, -1)
  assert.equal(graph.shed(graph.bytes), 0)
  graph.collect(2)
  graph.edge(shop, '10.0.0.7', false, 1, -1)
  const { bytes } = graph
  assert.ok(graph.shed(bytes / 2) >= bytes / 2)
  graph.shed(bytes)
  assert.deepEqual(told(graph.collect(3)).traces_service_graph_request_total, {
    'shop>10.0.0.7 virtual': 2,
  })
})

test('memory that is counted is what edges take', async () => {
  const graph = new ServiceGraph({ startUs: 1 })
  let client = 0
  const grown = await heapGrowth(() => {
    for (let i = 0; i < 300; i++) graph.edge(named(`client ${client}`, mallory), `10.0.0.${i}`, false, 1, -1)
    client++
  })
  const counted = graph.bytes / 6
  assert.ok(grown > counted * 0.7 && grown < counted * 1.3, `${grown} bytes, counted ${counted}`)
})

test('counting a request allocates nothing, also where there is no room for its edge', () => {
  const graph = new ServiceGraph({ startUs: 1, maxEdges: 1 })
  const clients = [named('shop', alice), named('other', alice)]
  const count = () => {
    for (let i = 0; i < 10_000; i++) graph.edge(clients[i & 1]!, db, false, 1e6, 1e6)
  }
  count()
  count()
  const allocated = heapAllocated(count)
  assert.ok(allocated < 10_000, `${allocated} bytes`)
})

test('an edge that is new began at the last collection', () => {
  const graph = new ServiceGraph({ startUs: 1 })
  assert.deepEqual(graph.collect(7), [])
  graph.edge(shop, db, false, 1, 1)
  for (const metric of graph.collect(9))
    for (const point of metric.points) assert.deepEqual([point.startUs, point.timeUs], [7, 9])
})
