import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { bucketIndex } from '../lib/exponential-buckets.ts'
import { Attributes, type AttributeValue } from '../model/attributes.ts'
import type { DurationDesc } from '../model/exchange.ts'
import type { ExponentialHistogramPoint, HistogramPoint } from '../model/metric.ts'
import { type Resource, resource } from '../model/resource.ts'
import { RedTable } from './red.ts'

const desc: DurationDesc = {
  name: 'http.server.request.duration',
  description: 'Duration of HTTP server requests.',
  bounds: [0.005, 0.01, 0.1, 1],
}
const shop = resource({ 'service.name': 'shop' })
const cart = resource({ 'service.name': 'cart' })
const get = Attributes.of({ 'http.request.method': 'GET' })

function pointsOf(table: RedTable, of: Resource, timeUs = 2_000): readonly HistogramPoint[] {
  const found = table.collect(timeUs).find(each => each.resource === of)
  return (found?.metrics ?? []).flatMap(metric => (metric.kind === 'histogram' ? metric.points : []))
}

test('a collection has name, description, unit, bounds and one point for each series', () => {
  const table = new RedTable({ startUs: 1_000 })
  table.observe(shop, desc, get, 5_000_000)
  assert.deepEqual(table.collect(2_000), [
    {
      resource: shop,
      metrics: [
        {
          kind: 'histogram',
          name: desc.name,
          description: desc.description,
          unit: 's',
          bounds: desc.bounds,
          points: [
            {
              attributes: get,
              startUs: 1_000,
              timeUs: 2_000,
              count: 1,
              sum: 0.005,
              buckets: Float64Array.of(1, 0, 0, 0, 0),
            },
          ],
        },
      ],
    },
  ])
})

test('a bound belongs to the bucket below it', () => {
  const check = (durationNs: number, bucket: number) => {
    const table = new RedTable({ startUs: 0 })
    table.observe(shop, desc, get, durationNs)
    assert.equal([...Array.from(pointsOf(table, shop)[0]!.buckets)].indexOf(1), bucket, `${durationNs} ns`)
  }
  check(0, 0)
  check(5_000_000, 0)
  check(5_000_001, 1)
  check(10_000_000, 1)
  check(10_000_001, 2)
  check(1_000_000_000, 3)
  check(1_000_000_001, 4)
  check(1e15, 4)
})

test('counts, sums and buckets are exact for every combination of dimensions', () => {
  const value = fc.constantFrom<AttributeValue>('a', 'b', 200, 404, '200', true)
  const dimensions = fc.record({ method: value, status: value, error: value }, { requiredKeys: ['method'] })
  const call = fc.tuple(fc.boolean(), dimensions, fc.nat(2_000_000_000))
  fc.assert(
    fc.property(fc.array(call, { maxLength: 100 }), calls => {
      const table = new RedTable({ startUs: 0 })
      const want = new Map<string, { count: number; sumNs: number; buckets: number[] }>()
      for (const [isShop, plain, durationNs] of calls) {
        table.observe(isShop ? shop : cart, desc, Attributes.of(plain), durationNs)
        const key = JSON.stringify([isShop, plain])
        const series = want.get(key) ?? { count: 0, sumNs: 0, buckets: [0, 0, 0, 0, 0] }
        series.count++
        series.sumNs += durationNs
        const bucket = desc.bounds.findIndex(bound => durationNs <= bound * 1e9)
        series.buckets[bucket < 0 ? 4 : bucket]!++
        want.set(key, series)
      }
      const got = new Map<string, { count: number; sumNs: number; buckets: number[] }>()
      for (const each of table.collect(1)) {
        for (const metric of each.metrics) {
          assert.ok(metric.kind === 'histogram')
          for (const { attributes, count, sum, buckets } of metric.points) {
            const key = JSON.stringify([each.resource === shop, attributes.toObject()])
            assert.ok(!got.has(key))
            got.set(key, { count, sumNs: Math.round(sum! * 1e9), buckets: Array.from(buckets) })
          }
        }
      }
      assert.deepEqual(got, want)
    }),
  )
})

test('counts are cumulative over collections', () => {
  const table = new RedTable({ startUs: 0 })
  table.observe(shop, desc, get, 1)
  assert.equal(pointsOf(table, shop)[0]!.count, 1)
  table.observe(shop, desc, get, 1)
  assert.equal(pointsOf(table, shop)[0]!.count, 2)
  assert.equal(pointsOf(table, shop)[0]!.count, 2)
})

test('a series begins when the last collection before it was', () => {
  const table = new RedTable({ startUs: 1_000 })
  table.observe(shop, desc, get, 1)
  assert.equal(pointsOf(table, shop, 5_000)[0]!.startUs, 1_000)
  table.observe(shop, desc, Attributes.of({ 'http.request.method': 'PUT' }), 1)
  assert.deepEqual(
    pointsOf(table, shop, 9_000).map(point => point.startUs),
    [1_000, 5_000],
  )
})

test('what the kernel counted is added to what was seen', () => {
  const table = new RedTable({ startUs: 0 })
  table.observe(shop, desc, get, 1_000_000)
  table.merge(shop, desc, get, 3, 2_015_000_000, [1, 0, 1, 0, 1])
  const [point] = pointsOf(table, shop)
  assert.deepEqual([point!.count, point!.sum, Array.from(point!.buckets)], [4, 2.016, [2, 0, 1, 0, 1]])
})

/** The points of a table whose series choose their bounds. */
function exponentialPoints(table: RedTable): readonly ExponentialHistogramPoint[] {
  return table
    .collect(2_000)
    .flatMap(({ metrics }) =>
      metrics.flatMap(metric => (metric.kind === 'exponential_histogram' ? metric.points : [])),
    )
}

test('an exponential histogram has count, sum, and every duration within 160 buckets', () => {
  const durations = fc.array(fc.oneof(fc.nat(1_000_000), fc.nat(1_000_000_000_000)), {
    minLength: 1,
    maxLength: 300,
  })
  fc.assert(
    fc.property(durations, list => {
      const table = new RedTable({ startUs: 1_000, histograms: 'exponential' })
      for (const durationNs of list) table.observe(shop, desc, get, durationNs)
      const [point, ...others] = exponentialPoints(table)
      assert.equal(others.length, 0)
      const { count, sum, scale, zeroCount, positive, startUs, timeUs } = point!
      assert.deepEqual([startUs, timeUs, count], [1_000, 2_000, list.length])
      assert.ok(Math.abs(sum - list.reduce((a, b) => a + b, 0) / 1e9) < 1e-6)
      assert.equal(zeroCount, list.filter(durationNs => durationNs === 0).length)
      const counts = Array.from(positive.counts)
      assert.ok(counts.length <= 160)
      assert.equal(
        counts.reduce((a, b) => a + b, zeroCount),
        list.length,
      )
      const upper = 2 ** ((positive.offset + counts.length) * 2 ** -scale)
      assert.ok(Math.max(...list) / 1e9 <= upper * (1 + 1e-12))
    }),
    { numRuns: 100 },
  )
})

test('what the kernel counted stands in the middle of its buckets', () => {
  const table = new RedTable({ startUs: 0, histograms: 'exponential' })
  table.observe(shop, desc, get, 0)
  table.merge(shop, desc, get, 6, 3_000_000_000, [1, 2, 0, 0, 3])
  const [{ count, sum, scale, zeroCount, positive }] = exponentialPoints(table) as [ExponentialHistogramPoint]
  assert.deepEqual([count, sum, zeroCount], [7, 3, 1])
  const at = (seconds: number) => positive.counts[bucketIndex(seconds, scale) - positive.offset]
  assert.deepEqual([at(0.005 / Math.SQRT2), at(Math.sqrt(0.005 * 0.01)), at(Math.SQRT2)], [1, 2, 3])
})

test('the dimensions given may be filled again afterwards', () => {
  const table = new RedTable({ startUs: 0 })
  const reused = Attributes.of({ a: 'x' })
  table.observe(shop, desc, reused, 1)
  reused.clear()
  reused.add('a', 'y')
  table.observe(shop, desc, reused, 1)
  assert.deepEqual(
    pointsOf(table, shop).map(point => point.attributes.toObject()),
    [{ a: 'x' }, { a: 'y' }],
  )
})

test('beyond the bound nothing is lost but told apart: totals hold and the overflow is counted', () => {
  const table = new RedTable({ startUs: 0, maxSeries: 10 })
  for (let i = 0; i < 25; i++) table.observe(shop, desc, Attributes.of({ route: `/${i}` }), 1)
  table.merge(shop, desc, Attributes.of({ route: '/x' }), 7, 7, [7, 0, 0, 0, 0])
  const points = pointsOf(table, shop)
  assert.equal(points.length, 11)
  assert.deepEqual(points.at(-1)!.attributes.toObject(), { 'otel.metric.overflow': true })
  assert.equal(points.at(-1)!.count, 22)
  assert.deepEqual([table.series, table.overflowed, table.lost], [10, 22, 0])
  table.observe(shop, desc, Attributes.of({ route: '/3' }), 1)
  assert.equal(pointsOf(table, shop)[3]!.count, 2)
})

test('beyond a bound in bytes series overflow as well, and the books of bytes are those of the series', () => {
  const table = new RedTable({ startUs: 0, maxBytes: 100_000 })
  for (let i = 0; i < 1000; i++)
    table.observe(shop, desc, Attributes.of({ route: `/${i}/${'a'.repeat(600)}` }), 1)
  assert.ok(table.bytes >= 100_000 && table.bytes < 103_000, `${table.bytes}`)
  assert.equal(table.series + table.overflowed, 1000)
  assert.equal(
    pointsOf(table, shop).reduce((sum, { count }) => sum + count, 0),
    1000,
  )
  table.forget(shop)
  table.collect(3_000)
  assert.deepEqual([table.series, table.bytes], [0, 0])
})

test('a flood of one resource overflows by itself and leaves the others their room', () => {
  const table = new RedTable({ startUs: 0, maxSeries: 10, maxResourceSeries: 4 })
  for (let i = 0; i < 25; i++) table.observe(shop, desc, Attributes.of({ route: `/${i}` }), 1)
  for (let i = 0; i < 4; i++) table.observe(cart, desc, Attributes.of({ route: `/${i}` }), 1)
  assert.deepEqual([table.series, table.overflowed, table.lost], [8, 21, 0])
  const [series, marked] = [pointsOf(table, cart), pointsOf(table, shop).at(-1)!]
  assert.equal(series.length, 4)
  assert.deepEqual([marked.attributes.toObject(), marked.count], [{ 'otel.metric.overflow': true }, 21])
})

test('resources beyond the bound are counted as lost', () => {
  const table = new RedTable({ startUs: 0, maxResources: 1 })
  table.observe(shop, desc, get, 1)
  table.observe(cart, desc, get, 1)
  table.merge(cart, desc, get, 5, 5, [5, 0, 0, 0, 0])
  assert.equal(table.lost, 6)
  assert.equal(table.collect(1).length, 1)
})

test('a forgotten resource is collected once more and frees its series', () => {
  const table = new RedTable({ startUs: 0, maxSeries: 2 })
  table.observe(shop, desc, get, 1)
  table.observe(cart, desc, get, 1)
  table.forget(shop)
  table.observe(shop, desc, get, 1)
  assert.equal(pointsOf(table, shop)[0]!.count, 2)
  assert.deepEqual(pointsOf(table, shop), [])
  assert.equal(table.series, 1)
  table.observe(shop, desc, get, 1)
  assert.equal(pointsOf(table, shop)[0]!.count, 1)
  assert.equal(table.overflowed, 0)
})

test('processes that come and go leave nothing behind', () => {
  const table = new RedTable({ startUs: 0, maxSeries: 5, maxResources: 5 })
  for (let i = 0; i < 1_000; i++) {
    const process = resource({ 'process.pid': i })
    table.observe(process, desc, get, 1)
    table.forget(process)
    assert.equal(table.collect(i).length, 1)
  }
  assert.deepEqual([table.series, table.overflowed, table.lost], [0, 0, 0])
  assert.deepEqual(table.collect(0), [])
})
