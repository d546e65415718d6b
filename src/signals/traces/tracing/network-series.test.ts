import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Owner } from '../../../foundation/lib/fair-share.ts'
import type { Metric } from '../../../foundation/model/metric.ts'
import {
  connectBounds,
  connectFailures,
  NetworkPair,
  rttBounds,
} from '../../../foundation/model/network-pair.ts'
import { resource } from '../../../foundation/model/resource.ts'
import { NetworkSeries, type NetworkSeriesOptions } from './network-series.ts'

const shop = resource({ 'service.name': 'shop' })
const host = resource({ 'host.name': 'h' })

function pairOf(values: Partial<NetworkPair> = {}): NetworkPair {
  return Object.assign(
    new NetworkPair(),
    { pid: 7, localAddress: '10.0.0.1', peerAddress: '10.0.0.2', port: 80 },
    values,
  )
}

function table(options: Partial<NetworkSeriesOptions> = {}): NetworkSeries {
  return new NetworkSeries({ startUs: 1, ...options })
}

function named(metrics: readonly Metric[], name: string): Metric | undefined {
  return metrics.find(metric => metric.name === name)
}

/** Attributes and value of each point of a sum. */
function values(metrics: readonly Metric[], name: string): (readonly [object, number])[] {
  const metric = named(metrics, name)
  if (metric === undefined) return []
  assert.equal(metric.kind, 'sum')
  return metric.points.map(point => [point.attributes.toObject(), 'value' in point ? point.value : 0])
}

const pairNames = {
  'network.peer.address': '10.0.0.2',
  'server.port': 80,
  'network.transport': 'tcp',
  'network.type': 'ipv4',
  'svc.network.side': 'client',
}

test('what a pair did is added up, by direction, and to what its process did', () => {
  const series = table()
  for (let i = 0; i < 2; i++) series.add(shop, pairOf({ sent: 10, received: 3, opened: 1, openChange: 1 }))
  series.add(shop, pairOf({ sent: 1, server: true, peerAddress: '2001:db8::1' }))
  const [{ metrics } = { metrics: [] }] = series.collect(5)
  assert.deepEqual(values(metrics, 'process.network.io'), [
    [{ 'network.io.direction': 'transmit' }, 21],
    [{ 'network.io.direction': 'receive' }, 6],
  ])
  assert.deepEqual(values(metrics, 'svc.network.connection.io'), [
    [{ ...pairNames, 'network.io.direction': 'transmit' }, 20],
    [{ ...pairNames, 'network.io.direction': 'receive' }, 6],
    [
      {
        ...pairNames,
        'network.peer.address': '2001:db8::1',
        'network.type': 'ipv6',
        'svc.network.side': 'server',
        'network.io.direction': 'transmit',
      },
      1,
    ],
  ])
  assert.deepEqual(values(metrics, 'svc.network.tcp.connections.opened'), [[pairNames, 2]])
  assert.deepEqual(values(metrics, 'svc.network.tcp.connections'), [[pairNames, 2]])
})

test('the number of connections falls when they end, and is no counter', () => {
  const series = table()
  series.add(shop, pairOf({ opened: 3, openChange: 3 }))
  series.collect(2)
  series.add(shop, pairOf({ openChange: -2 }))
  const [{ metrics } = { metrics: [] }] = series.collect(3)
  assert.deepEqual(values(metrics, 'svc.network.tcp.connections'), [[pairNames, 1]])
  const connections = named(metrics, 'svc.network.tcp.connections')
  assert.ok(connections?.kind === 'sum' && !connections.monotonic)
})

test('failures have their type, resets their direction, and what never happened no point', () => {
  const series = table()
  const pair = pairOf({ resetsReceived: 2, retransmits: 4 })
  pair.failures[connectFailures.indexOf('timeout')] = 3
  series.add(shop, pair)
  const [{ metrics } = { metrics: [] }] = series.collect(5)
  assert.deepEqual(values(metrics, 'svc.network.tcp.connect.failures'), [
    [{ ...pairNames, 'error.type': 'timeout' }, 3],
  ])
  assert.deepEqual(values(metrics, 'svc.network.tcp.resets'), [
    [{ ...pairNames, 'network.io.direction': 'receive' }, 2],
  ])
  assert.deepEqual(values(metrics, 'svc.network.tcp.retransmits'), [[pairNames, 4]])
  assert.deepEqual(
    metrics.map(({ name }) => name),
    ['svc.network.tcp.connect.failures', 'svc.network.tcp.retransmits', 'svc.network.tcp.resets'],
  )
})

test('durations and round trips are histograms in seconds', () => {
  const series = table()
  const pair = pairOf({ connectNs: 3e6, rttUs: 500 })
  pair.connectBuckets[3] = 2
  pair.rttBuckets[0] = 1
  series.add(shop, pair)
  series.add(shop, pair)
  const [{ metrics } = { metrics: [] }] = series.collect(5)
  const check = (name: string, bounds: readonly number[], count: number, sum: number) => {
    const metric = named(metrics, name)
    assert.ok(metric?.kind === 'histogram')
    assert.deepEqual([metric.bounds, metric.unit], [bounds, 's'])
    const [point] = metric.points
    assert.deepEqual([point?.count, point?.sum, point?.buckets.length], [count, sum, bounds.length + 1])
  }
  check('svc.network.tcp.connect.duration', connectBounds, 4, 0.006)
  check('svc.network.tcp.rtt', rttBounds, 2, 0.001)
})

test('series beyond a bound are counted in one, and resources beyond theirs in none', () => {
  const series = table({ maxResourceSeries: 2, maxSeries: 3 })
  for (let i = 0; i < 5; i++) series.add(shop, pairOf({ sent: 1, peerAddress: `10.0.1.${i}` }))
  assert.deepEqual([series.size, series.losses.refused], [3, 0])
  const [{ metrics } = { metrics: [] }] = series.collect(2)
  assert.deepEqual(values(metrics, 'svc.network.connection.io').at(-1), [
    { 'otel.metric.overflow': true, 'network.io.direction': 'transmit' },
    3,
  ])
  assert.deepEqual(values(metrics, 'process.network.io')[0]?.[1], 5)
  const full = table({ maxSeries: 1 })
  for (const resource of [shop, host]) full.add(resource, pairOf({ sent: 1 }))
  assert.deepEqual(
    full.collect(2).map(({ resource }) => resource),
    [shop],
  )
  assert.equal(full.losses.refused, 2)
})

test('connections of others keep nobody out, and what they counted before is told', () => {
  const mallory: Owner = { group: '/user.slice/user-1001.slice', user: '1001' }
  const series = table({ maxSeries: 2_000 })
  for (let pid = 1; pid <= 10; pid++) {
    const foreign = resource({ 'process.pid': pid }, mallory)
    for (let port = 1; port <= 300; port++) series.add(foreign, pairOf({ port, sent: 1 }))
  }
  const bystander = resource(
    { 'service.name': 'shop' },
    { group: '/system.slice/shop.service', user: '1002' },
  )
  for (let round = 2; round < 5; round++) {
    for (let port = 1; port <= 300; port++) series.add(bystander, pairOf({ port, sent: 1 }))
    const all = series.collect(round)
    const { metrics } = all.find(({ resource }) => resource === bystander)!
    const io = named(metrics, 'svc.network.connection.io')!.points
    assert.equal(io.length, 300)
    assert.ok(io.every(point => 'value' in point && point.value === round - 1))
    const sent = all.flatMap(({ metrics }) => values(metrics, 'svc.network.connection.io'))
    if (round > 2) continue
    assert.equal(
      sent.reduce((sum, [, value]) => sum + value, 0),
      3_300,
    )
  }
  // Processes that came late took the places of connections of their own user.
  assert.deepEqual([series.size, series.losses.taken], [2_000, 301 + 3])
})

test('a series that lost its place while connections were open counts those that open later', () => {
  const series = table()
  series.add(shop, pairOf({ opened: 0, openChange: -2 }))
  series.add(shop, pairOf({ opened: 1, openChange: 1 }))
  const [{ metrics } = { metrics: [] }] = series.collect(2)
  assert.deepEqual(values(metrics, 'svc.network.tcp.connections'), [[pairNames, 1]])
})

test('what the kernel could not tell apart is the overflow of whoever is told, and of no process', () => {
  const series = table()
  series.add(host, pairOf({ pid: 0, overflow: true, sent: 9 }))
  const [{ metrics } = { metrics: [] }] = series.collect(2)
  assert.deepEqual(values(metrics, 'svc.network.connection.io'), [
    [{ 'otel.metric.overflow': true, 'network.io.direction': 'transmit' }, 9],
  ])
  assert.deepEqual(values(metrics, 'process.network.io'), [])
})

test('series without a connection are let go when they are idle, and begin anew', () => {
  const series = table({ idleCollections: 2 })
  series.add(shop, pairOf({ sent: 5, opened: 1, openChange: 1 }))
  series.add(shop, pairOf({ sent: 5, peerAddress: '10.0.0.9' }))
  for (let timeUs = 2; timeUs < 6; timeUs++) series.collect(timeUs)
  assert.equal(series.size, 2)
  series.add(shop, pairOf({ sent: 1, peerAddress: '10.0.0.9' }))
  const [{ metrics } = { metrics: [] }] = series.collect(9)
  const io = named(metrics, 'svc.network.connection.io')
  assert.deepEqual(
    io?.points.map(point => [point.startUs, point.timeUs]),
    [
      [1, 9],
      [5, 9],
    ],
  )
})

test('a process that is gone is told once more', () => {
  const series = table()
  series.add(shop, pairOf({ sent: 5 }))
  series.forget(shop)
  assert.equal(series.collect(2).length, 1)
  assert.deepEqual([series.collect(3), series.size], [[], 0])
})

test('a bound in bytes bounds the series, and nothing is lost by it', () => {
  const series = table({ maxBytes: 30_000 })
  for (let port = 1; port <= 100; port++) series.add(shop, pairOf({ port, sent: 1 }))
  assert.ok(series.bytes <= 30_000 && series.size >= 10, `${series.size} series, ${series.bytes} bytes`)
  const [{ metrics } = { metrics: [] }] = series.collect(5)
  const sent = values(metrics, 'svc.network.connection.io').reduce((sum, [, value]) => sum + value, 0)
  assert.equal(sent, 100)
})
