import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { bucketIndex } from '../../../foundation/lib/exponential-buckets.ts'
import { Attributes, type AttributeValue } from '../../../foundation/model/attributes.ts'
import type { DurationDesc } from '../../../foundation/model/call.ts'
import type { ExponentialHistogramPoint, HistogramPoint } from '../../../foundation/model/metric.ts'
import { type Resource, resource } from '../../../foundation/model/resource.ts'
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

/** All that a table tells over time, as a receiver has it: the last point of each series that began at a moment. */
class Receiver {
  readonly #last = new Map<string, number>()

  /** Collects, and checks that no series falls and that none is there twice. */
  take(table: RedTable, timeUs: number, between = () => {}): void {
    const seen = new Set<string>()
    for (const { resource, metrics } of table.collectEach(() => timeUs)) {
      for (const { name, points } of metrics as readonly {
        name: string
        points: readonly (HistogramPoint | ExponentialHistogramPoint)[]
      }[])
        for (const point of points) {
          const identity = JSON.stringify([resource.attributes.toObject(), name, point.attributes.toObject()])
          assert.ok(!seen.has(identity), `${identity} is there twice`)
          seen.add(identity)
          const id = `${identity} ${point.startUs}`
          assert.ok(point.count >= (this.#last.get(id) ?? 0), `${id} fell`)
          const isExplicit = 'buckets' in point
          const counts = Array.from(isExplicit ? point.buckets : point.positive.counts)
          if (!isExplicit) counts.push(point.zeroCount)
          assert.equal(
            counts.reduce((sum, each) => sum + each, 0),
            point.count,
          )
          assert.ok(counts.every(each => each >= 0))
          this.#last.set(id, point.count)
        }
      between()
    }
  }

  /** Calls of the series whose identities hold a text. */
  total(text = ''): number {
    let sum = 0
    for (const [id, count] of this.#last) if (id.includes(text)) sum += count
    return sum
  }
}

const user = (name: string, group = `/user.slice/${name}`) => ({ group, user: name })
const processes = new Map<string, Resource>()

/** A process has one resource, whoever asks. */
function process(pid: number, service: string, owner = user(service)): Resource {
  const key = `${service} ${pid}`
  const known =
    processes.get(key) ??
    resource({ 'service.name': service, 'service.instance.id': `instance-${pid}`, 'process.pid': pid }, owner)
  processes.set(key, known)
  return known
}

const route = (name: string | number) => Attributes.of({ 'http.route': `/${name}` })

test('beyond the bound of a resource nothing is lost but told apart: totals hold and the overflow is counted', () => {
  const table = new RedTable({ startUs: 0, maxResourceSeries: 10 })
  for (let i = 0; i < 25; i++) table.observe(shop, desc, route(i), 1)
  table.merge(shop, desc, route('x'), 7, 7, [7, 0, 0, 0, 0])
  const points = pointsOf(table, shop)
  assert.equal(points.length, 11)
  assert.deepEqual(points.at(-1)!.attributes.toObject(), { 'otel.metric.overflow': true })
  assert.equal(points.at(-1)!.count, 22)
  assert.deepEqual([table.series, table.overflowed], [10, 22])
  table.observe(shop, desc, route(3), 1)
  assert.equal(pointsOf(table, shop)[3]!.count, 2)
  for (let i = 0; i < 10; i++) table.observe(cart, desc, route(i), 1)
  assert.equal(pointsOf(table, cart).length, 10)
})

test('the bytes of everything are within the bound, overflow and resources included', () => {
  const maxBytes = 200_000
  const table = new RedTable({ startUs: 0, maxBytes })
  const receiver = new Receiver()
  let calls = 0
  for (let pid = 0; pid < 200; pid++) {
    const resource = process(pid, pid % 2 === 0 ? 'even' : 'odd')
    for (let i = 0; i < 20; i++, calls++) table.observe(resource, desc, route(`${i}/${'a'.repeat(600)}`), 1)
    assert.ok(table.bytes <= maxBytes, `${table.bytes}`)
    if (pid % 3 === 0) table.forget(resource)
    if (pid % 50 === 49) receiver.take(table, pid)
  }
  assert.equal(receiver.total(), calls)
  for (let pid = 0; pid < 200; pid++) table.forget(process(pid, 'x'))
})

test('a forgotten resource is collected once more and frees its series', () => {
  const table = new RedTable({ startUs: 0 })
  table.observe(shop, desc, get, 1)
  table.collect(1)
  table.observe(shop, desc, get, 1)
  table.forget(shop)
  assert.equal(pointsOf(table, shop)[0]!.count, 2)
  assert.deepEqual(pointsOf(table, shop), [])
  assert.deepEqual([table.series, table.bytes], [0, 0])
  table.observe(shop, desc, get, 1)
  assert.equal(pointsOf(table, shop)[0]!.count, 1)
})

test('a resource that was taken for gone and comes back goes on with its series', () => {
  const table = new RedTable({ startUs: 0 })
  table.observe(shop, desc, get, 1)
  table.collect(1)
  table.forget(shop)
  table.observe(shop, desc, get, 1)
  table.collect(2)
  table.observe(shop, desc, get, 1)
  const [point] = pointsOf(table, shop)
  assert.deepEqual([point!.startUs, point!.count], [0, 3])
})

test('of a process that ended before it was told, its service counts all, and goes on', () => {
  const table = new RedTable({ startUs: 1 })
  const owner = user('nobody')
  for (let pid = 0; pid < 1_000; pid++) {
    const one = resource(
      { 'service.name': 'job', 'service.instance.id': `${pid}`, 'process.pid': pid },
      owner,
    )
    table.observe(one, desc, get, 1)
    table.forget(one)
    if (pid === 499) table.collect(2)
  }
  const [told, ...others] = table.collect(3)
  assert.deepEqual([told!.resource.attributes.toObject(), others], [{ 'service.name': 'job' }, []])
  const [metric] = told!.metrics
  assert.ok(metric?.kind === 'histogram')
  assert.deepEqual(
    metric.points.map(({ count, startUs, attributes }) => [count, startUs, attributes.toObject()]),
    [[1_000, 1, get.toObject()]],
  )
  assert.equal(table.series, 1)
  // It is let go of when nothing comes any more.
  for (let i = 0; i < 30; i++) table.collect(4 + i)
  assert.deepEqual([table.collect(100), table.bytes], [[], 0])
})

test('of a process that is described anew before it was told, its new resource counts all', () => {
  const table = new RedTable({ startUs: 0 })
  table.observe(shop, desc, get, 1)
  table.forget(shop, cart)
  table.observe(cart, desc, get, 1)
  assert.deepEqual(
    table.collect(1).map(({ resource, metrics }) => [resource === cart, metrics[0]!.points.length]),
    [[true, 1]],
  )
  assert.equal(pointsOf(table, cart)[0]!.count, 2)
})

for (const histograms of ['explicit', 'exponential'] as const) {
  const room = { startUs: 0, histograms, maxSeries: 2_000 }

  test(`floods of some owners leave a bystander its own series, and every call is counted: ${histograms}`, () => {
    const table = new RedTable(room)
    const receiver = new Receiver()
    const bystander = process(1, 'bystander')
    let attacks = 0
    let asked = 0
    const attack = (resource: Resource, name: string | number) => {
      table.observe(resource, desc, route(name), 1_000 * attacks++)
      if (attacks % 10 === 0) table.observe(bystander, desc, route(asked++ % 5), 7_000_000)
    }
    for (let interval = 0; interval < 4; interval++) {
      // Processes with very many series, processes that end at once, and such that stay, each a service of its own.
      for (let pid = 0; pid < 15; pid++) {
        const resource = process(1_000 + pid, 'many', user('many'))
        for (let i = 0; i < 400; i++) attack(resource, `${interval % 2}/${i}`)
      }
      for (let pid = 0; pid < 3_000; pid++) {
        const resource = process(10_000 * (interval + 1) + pid, 'short', user('short'))
        attack(resource, pid % 7)
        table.forget(resource)
      }
      for (let pid = 0; pid < 3_000; pid++)
        attack(process(100_000 + pid, `own-${pid}`, user(`u${pid % 3}`, '/session')), 'a')
      // One who comes late.
      table.observe(process(2 + interval, 'late'), desc, get, 1)
      receiver.take(table, interval + 1)
    }
    // In the series of its routes, not in that of overflow.
    assert.equal(receiver.total('"process.pid":1},"http.server.request.duration",{"http.route"'), asked)
    for (let pid = 2; pid < 6; pid++) assert.equal(receiver.total(`"instance-${pid}"`), 1)
    assert.equal(receiver.total(), attacks + asked + 4)
    assert.ok(table.bytes <= 1.05 * 2_000 * (histograms === 'explicit' ? 2_100 : 4_400), `${table.bytes}`)
    assert.ok(table.losses.refused > 0 && table.losses.taken > 0)
    // The overflow of one owner is its own.
    assert.ok(receiver.total('"service.name":"many"') > 0)
    assert.ok(receiver.total('"service.name":"short"') >= 4 * 2_900)
  })

  test(`what was told of a series that makes room is not told again: ${histograms}`, () => {
    const table = new RedTable(room)
    const receiver = new Receiver()
    const [rich, poor] = [process(1, 'rich'), process(2, 'poor')]
    let calls = 0
    for (let interval = 0; interval < 6; interval++) {
      for (let i = 0; i < 1_000; i++, calls++) table.observe(rich, desc, route(i), 10 ** (i % 10))
      if (interval > 0)
        for (let pid = 3; pid < 3 + interval * 150; pid++, calls++)
          table.observe(process(pid, 'poor'), desc, get, 0)
      for (let i = 0; i < interval * 100; i++, calls++) table.observe(poor, desc, route(i), 1)
      receiver.take(table, interval)
    }
    assert.equal(receiver.total(), calls)
  })
}

test('calls that come, and processes that end, while all is collected are counted once', () => {
  const table = new RedTable({ startUs: 0, maxSeries: 300 })
  const receiver = new Receiver()
  let calls = 0
  const call = () => {
    const resource = process(calls % 701, `s${calls % 5}`, user(`u${calls % 3}`))
    table.observe(resource, desc, route(calls++ % 11), 1)
    if (calls % 4 === 0) table.forget(process((calls * 7) % 701, `s${calls % 5}`))
  }
  for (let interval = 1; interval < 20; interval++) {
    for (let i = 0; i < 500; i++) call()
    receiver.take(table, interval, call)
  }
  receiver.take(table, 20)
  assert.equal(receiver.total(), calls)
})

test('a call costs little where there is no room, too', () => {
  const table = new RedTable({ startUs: 0, maxSeries: 1_000 })
  for (let pid = 0; pid < 2_000; pid++) table.observe(process(pid, `s${pid}`, user('u')), desc, get, 1)
  const before = table.bytes
  const began = performance.now()
  for (let i = 0; i < 40_000; i++) table.observe(process(i % 2_000, `s${i % 2_000}`), desc, route(i % 10), 1)
  const usPerCall = ((performance.now() - began) / 40_000) * 1_000
  assert.ok(usPerCall < 100, `${usPerCall} µs`)
  assert.ok(table.bytes < 1.05 * before)
  const receiver = new Receiver()
  receiver.take(table, 1)
  assert.equal(receiver.total(), 42_000)
})

test('whoever makes room for whom, also within one service of several owners, each call is told once', () => {
  const owners = ['a', 'b', 'c', 'd'].map(name => user('0', `/system.slice/${name}.service`))
  const step = fc.oneof(
    { weight: 30, arbitrary: fc.record({ owner: fc.nat(3), pid: fc.nat(5), series: fc.nat(6) }) },
    { weight: 3, arbitrary: fc.record({ owner: fc.nat(3), ended: fc.nat(5) }) },
    { weight: 1, arbitrary: fc.constant('collect' as const) },
  )
  const steps = fc.array(step, { minLength: 200, maxLength: 400 })
  fc.assert(
    fc.property(steps, fc.constantFrom('explicit', 'exponential'), (steps, histograms) => {
      const table = new RedTable({ startUs: 0, maxBytes: 60_000, histograms })
      const of = (owner: number, n: number): Resource => process(100 * owner + n, 'worker', owners[owner]!)
      const told = new Receiver()
      let timeUs = 1
      let calls = 0
      for (const step of steps) {
        if (step === 'collect') told.take(table, timeUs++)
        else if ('ended' in step) table.forget(of(step.owner, step.ended))
        else {
          table.observe(of(step.owner, step.pid), desc, route(step.series), 1)
          calls++
        }
      }
      told.take(table, timeUs++)
      told.take(table, timeUs++)
      assert.equal(told.total(), calls)
    }),
    { numRuns: 100 },
  )
})
