import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Metric } from '../model/metric.ts'
import { resource } from '../model/resource.ts'
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
  const graph = new ServiceGraph({ startUs: 1, maxEdges: 4 })
  for (let i = 0; i < 100; i++) graph.edge(`203.0.113.${i}`, shop, false, -1, 1)
  graph.edge(shop, db, false, 1, 1)
  const total = told(graph.collect(2)).traces_service_graph_request_total
  assert.equal(total?.overflow, 98)
  assert.equal(total?.['shop>db'], 1)
  assert.equal(graph.size, 3)
})

test('an edge that is new began at the last collection', () => {
  const graph = new ServiceGraph({ startUs: 1 })
  assert.deepEqual(graph.collect(7), [])
  graph.edge(shop, db, false, 1, 1)
  for (const metric of graph.collect(9))
    for (const point of metric.points) assert.deepEqual([point.startUs, point.timeUs], [7, 9])
})
