import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Attributes } from '../foundation/model/attributes.ts'
import type { Batch } from '../foundation/model/batch.ts'
import type { Gauge, Metric } from '../foundation/model/metric.ts'
import { resource } from '../foundation/model/resource.ts'
import { Span } from '../foundation/model/span.ts'
import { Batcher, type BatchLimits, type Builder } from './batcher.ts'
import { metricEncoding } from './exporters/otlp/encode-metric.ts'
import { traceEncoding } from './exporters/otlp/encode-trace.ts'
import { RequestBuilder } from './exporters/otlp/request.ts'
import { Account } from './ledger.ts'

const host = resource({ 'host.name': 'test' })
const scope = { name: 'svc', version: '1' }
const limits: BatchLimits = { maxItems: 1000, maxBytes: 1 << 20, timeoutMs: 60_000 }

function open<T>(
  builder: Builder<T>,
  options: Partial<BatchLimits> = {},
  count: (item: T) => number = () => 1,
  divide?: (item: T) => readonly [T, T] | undefined,
) {
  const account = new Account()
  const batches: Batch[] = []
  const out = (batch: Batch): void => {
    batches.push(batch)
  }
  const batcher = new Batcher<T>({ builder, account, count, divide, out })
  batcher.accept({ ...limits, ...options })
  return { batcher, account, batches }
}

function named(name: string): Span {
  const span = new Span()
  span.name = name
  return span
}

const traces = () => new RequestBuilder(traceEncoding)

test('a batch is cut when it has enough items', () => {
  const { batcher, account, batches } = open(traces(), { maxItems: 10 })
  for (let i = 0; i < 25; i++) batcher.add(host, scope, named('span'))
  assert.deepEqual(
    batches.map(batch => batch.items),
    [10, 10],
  )
  assert.equal(batcher.items, 5)
  assert.equal(account.collected, 25)
  batcher.cut()
  assert.equal(batches.length, 3)
})

test('a batch is cut before it would be too large, and no batch ever is', () => {
  const { batcher, account, batches } = open(traces(), { maxBytes: 10_000 })
  for (let i = 0; i < 100; i++) batcher.add(host, scope, named('x'.repeat(10 * i)))
  batcher.cut()
  assert.ok(batches.length > 1)
  for (const batch of batches) assert.ok(batch.body.length <= 10_000, String(batch.body.length))
  assert.equal(
    batches.reduce((sum, batch) => sum + batch.items, 0),
    100,
  )
  assert.equal(account.queued, 100)
  batcher.cut()
})

test('one item that is too large for any batch is dropped by itself', () => {
  const { batcher, account, batches } = open(traces(), { maxBytes: 10_000 })
  batcher.add(host, scope, named('before'))
  batcher.add(host, scope, named('x'.repeat(20_000)))
  batcher.add(host, scope, named('after'))
  batcher.cut()
  assert.equal(
    batches.reduce((sum, batch) => sum + batch.items, 0),
    2,
  )
  assert.deepEqual([...account.dropped], [['too_large', 1]])
  assert.equal(account.collected, 3)
})

test('one item that is larger than batches should be goes alone, where it may', () => {
  const { batcher, account, batches } = open(traces(), { maxBytes: 10_000, aloneBytes: 30_000 })
  batcher.add(host, scope, named('before'))
  batcher.add(host, scope, named('x'.repeat(20_000)))
  batcher.add(host, scope, named('after'))
  batcher.add(host, scope, named('x'.repeat(40_000)))
  batcher.cut()
  assert.deepEqual(
    batches.map(({ items, body }) => [items, body.length > 10_000]),
    [
      [1, false],
      [1, true],
      [1, false],
    ],
  )
  assert.deepEqual([...account.dropped], [['too_large', 1]])
})

test('an item that counts as several goes in halves before it goes alone, or is dropped', () => {
  const { batcher, account, batches } = open(
    new RequestBuilder<Metric>(metricEncoding),
    { maxBytes: 4000, aloneBytes: 100_000 },
    metric => metric.points.length,
    metric => {
      const { points } = metric as Gauge
      const half = points.length >> 1
      const part = (some: typeof points) => ({ ...metric, points: some }) as Gauge
      return points.length < 2 ? undefined : [part(points.slice(0, half)), part(points.slice(half))]
    },
  )
  const point = (value: number, size: number) => {
    return { attributes: Attributes.of({ a: 'x'.repeat(size) }), startUs: 0, timeUs: 1, value }
  }
  const points = [
    ...Array.from({ length: 99 }, (_, i) => point(i, 100)),
    point(99, 20_000),
    point(100, 200_000),
  ]
  batcher.add(host, scope, { kind: 'gauge', name: 'g', description: '', unit: '1', points })
  batcher.cut()
  assert.equal(
    batches.reduce((sum, { items }) => sum + items, 0),
    100,
  )
  assert.ok(batches.every(({ items, body }) => body.length <= 4000 || items === 1))
  assert.ok(batches.length < 12, String(batches.length))
  assert.deepEqual([account.collected, ...account.dropped], [101, ['too_large', 1]])
})

test('a batch goes when its time is up', async () => {
  const { batcher, batches } = open(traces(), { timeoutMs: 5 })
  batcher.add(host, scope, named('span'))
  while (batches.length === 0) await new Promise(resolve => setTimeout(resolve, 2))
  assert.equal(batches[0]!.items, 1)
  assert.equal(batcher.items, 0)
})

test('a metric counts by its data points', () => {
  const { batcher, account } = open(new RequestBuilder(metricEncoding))
  const point = { attributes: new Attributes(), startUs: 0, timeUs: 1, value: 1 }
  const gauge: Metric = {
    kind: 'gauge',
    name: 'a',
    description: '',
    unit: '1',
    points: [point, point, point],
  }
  batcher.add(host, scope, gauge)
  batcher.add(host, scope, { ...gauge, points: [] })
  assert.equal(account.collected, 3)
  assert.equal(batcher.items, 3)
  batcher.cut()
})

test('an item that cannot be encoded is dropped and harms no other', () => {
  const { batcher, account, batches } = open(traces())
  batcher.add(host, scope, named('before'))
  batcher.add(host, scope, { ...named('bad'), attributes: null } as unknown as Span)
  batcher.add(host, scope, named('after'))
  batcher.cut()
  assert.deepEqual([...account.dropped], [['encode', 1]])
  assert.equal(batches[0]!.items, 2)
  assert.equal(account.queued, 2)
})

test('a metric that cannot be encoded is counted by its points', () => {
  const { batcher, account } = open(
    new RequestBuilder(metricEncoding),
    {},
    (metric: Metric) => metric.points.length,
  )
  const point = { attributes: null, startUs: 0, timeUs: 1, value: 1 } as never
  batcher.add(host, scope, { kind: 'gauge', name: 'a', description: '', unit: '1', points: [point, point] })
  assert.deepEqual([account.collected, account.queued, ...account.dropped], [2, 0, ['encode', 2]])
})

test('what is refused is dropped with the reason and by its points, after what was there is handed on', () => {
  const points = (metric: Metric) => metric.points.length
  const { batcher, account, batches } = open(new RequestBuilder(metricEncoding), {}, points)
  const point = { attributes: new Attributes(), startUs: 0, timeUs: 1, value: 1 }
  const gauge: Metric = {
    kind: 'gauge',
    name: 'a',
    description: '',
    unit: '1',
    points: [point, point],
  }
  batcher.add(host, scope, gauge)
  batcher.refuse('no_endpoint')
  assert.equal(batches[0]!.items, 2)
  batcher.add(host, scope, gauge)
  assert.equal(account.collected, 4)
  assert.deepEqual([...account.dropped], [['no_endpoint', 2]])
  batcher.accept(limits)
  batcher.add(host, scope, gauge)
  batcher.cut()
  assert.deepEqual(
    batches.map(batch => batch.items),
    [2, 2],
  )
  assert.equal(account.queued, 4)
})

test('other limits hold from the next item on, and what was gathered within the old ones is handed on', () => {
  const { batcher, batches } = open(traces(), { maxItems: 10 })
  for (let i = 0; i < 5; i++) batcher.add(host, scope, named('span'))
  batcher.accept({ ...limits, maxItems: 3 })
  for (let i = 0; i < 7; i++) batcher.add(host, scope, named('span'))
  batcher.accept({ ...limits, maxBytes: 1000 })
  for (let i = 0; i < 5; i++) batcher.add(host, scope, named('x'.repeat(300)))
  batcher.cut()
  assert.deepEqual(
    batches.map(batch => batch.items),
    [5, 3, 3, 1, 2, 2, 1],
  )
})

test('it is known how long the first item of a batch has waited', async () => {
  const { batcher } = open(traces())
  assert.equal(batcher.waitingMs, 0)
  batcher.add(host, scope, named('first'))
  await sleep(20)
  batcher.add(host, scope, named('second'))
  assert.ok(batcher.waitingMs >= 15)
  batcher.cut()
  assert.equal(batcher.waitingMs, 0)
  batcher.cut()
})
