import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type MapEdge, type MapFilter, type MapNode, shownMap } from './shown.ts'

const all: MapFilter = {
  errors: false,
  probes: false,
  resolvers: false,
  namespaces: [],
  focus: '',
  hops: 1,
  most: 40,
}

function node(name: string, more: Partial<MapNode> = {}): MapNode {
  const numbers = { requests_per_s: 1, errors_percent: 0, p95_ms: 1 }
  return { id: name, name, namespace: '', kind: 'service', probe: false, ...numbers, ...more }
}

function edge(text: string, more: Partial<MapEdge> = {}): MapEdge {
  const [from = '', to = ''] = text.split('>')
  const numbers = { requests_per_s: 1, errors_percent: 0, p50_ms: 1, p95_ms: 1, p99_ms: 1 }
  return { from, to, protocol: 'http', ...numbers, ...more }
}

const shop = {
  nodes: [
    node('front', { namespace: 'shop' }),
    node('cart', { namespace: 'shop' }),
    node('redis', { kind: 'store', namespace: 'data' }),
    node('dns', { kind: 'resolver' }),
    node('prometheus', { probe: true }),
    node('alone'),
  ],
  edges: [
    edge('front>cart'),
    edge('cart>redis', { errors_percent: 10 }),
    edge('front>dns'),
    edge('prometheus>front'),
  ],
}
const names = (filter: Partial<MapFilter>) =>
  shownMap(shop, { ...all, ...filter })
    .nodes.map(({ name }) => name)
    .sort()

test('probes and resolvers are shown when they are asked for', () => {
  assert.deepEqual(names({}), ['alone', 'cart', 'front', 'redis'])
  assert.deepEqual(names({ probes: true }), ['alone', 'cart', 'front', 'prometheus', 'redis'])
  assert.deepEqual(names({ resolvers: true }), ['alone', 'cart', 'dns', 'front', 'redis'])
})

test('filters leave what fits', () => {
  assert.deepEqual(names({ errors: true }), ['cart', 'redis'])
  assert.deepEqual(names({ namespaces: ['shop'] }), ['cart', 'front'])
  assert.deepEqual(names({ focus: 'redis' }), ['cart', 'redis'])
  assert.deepEqual(names({ focus: 'redis', hops: 2 }), ['cart', 'front', 'redis'])
  assert.deepEqual(names({ focus: 'nobody' }), ['alone', 'cart', 'front', 'redis'])
})

test('of too many the least asked are put together, and no request is lost', () => {
  const many = Array.from({ length: 300 }, (_, i) => `service-${i}`)
  const graph = {
    nodes: [node('front'), ...many.map((name, i) => node(name, { namespace: `team-${i % 20}` }))],
    edges: many.map((name, i) =>
      edge(`front>${name}`, { requests_per_s: i + 1, errors_percent: i % 2 ? 4 : 0 }),
    ),
  }
  const { nodes, edges, folded } = shownMap(graph, all)
  assert.ok(nodes.length <= 40, `${nodes.length} nodes`)
  assert.ok(nodes.some(({ name }) => name === 'front'))
  assert.ok(nodes.some(({ name }) => name === 'service-299'))
  const shown = nodes.length - folded.size
  assert.equal(
    [...folded.values()].reduce((sum, count) => sum + count, 0),
    301 - shown,
  )
  const sum = (of: readonly MapEdge[]) => of.reduce((total, { requests_per_s }) => total + requests_per_s, 0)
  assert.equal(sum(edges), sum(graph.edges))
  const failed = (of: readonly MapEdge[]) =>
    of.reduce((total, each) => total + (each.requests_per_s * each.errors_percent) / 100, 0)
  assert.ok(Math.abs(failed(edges) - failed(graph.edges)) < 1e-6)
})

test('the node in the centre is never put away', () => {
  const many = Array.from({ length: 100 }, (_, i) => `service-${i}`)
  const graph = {
    nodes: [node('small'), ...many.map(name => node(name))],
    edges: many.map(name => edge(`small>${name}`, { requests_per_s: 0 })),
  }
  assert.ok(shownMap(graph, { ...all, focus: 'small' }).nodes.some(({ name }) => name === 'small'))
})
