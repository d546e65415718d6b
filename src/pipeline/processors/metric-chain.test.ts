import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { Attributes, type AttributeValue } from '../../foundation/model/attributes.ts'
import type { HistogramPoint, Metric, NumberPoint } from '../../foundation/model/metric.ts'
import { type Resource, resource, type Scope } from '../../foundation/model/resource.ts'
import { branch, build } from '../../foundation/schema/tree.ts'
import { limitSeries } from './limit-series.ts'
import { type LimitSettings, limits } from './limit-settings.ts'
import { type MetricChain, type MetricOut, metricChain } from './metric-chain.ts'
import { overflow, type ProcessorEnv, type Stage } from './processor.ts'

const shop = resource({ 'service.name': 'shop' })
const scope: Scope = { name: 'svc/test', version: '1' }
const cumulative = { temporality: 'cumulative', maxSeries: 1000 } as const
const delta = { temporality: 'delta', maxSeries: 1000, sinceUs: 1_000 } as const
const defaults: LimitSettings = build(branch('', { limits }), new Map())
const described = { name: 'm', description: 'text', unit: 's' }

/** Copies what it is given, which is valid during the call only. */
class Sink implements MetricOut {
  metrics: Metric[] = []
  readonly missed: Record<string, number> = {}

  add(_resource: Resource, _scope: Scope, metric: Metric): void {
    this.metrics.push(structuredClone({ ...metric, points: metric.points.map(plain) }) as never)
  }

  drop(reason: string, items: number): void {
    this.missed[reason] = (this.missed[reason] ?? 0) + items
  }

  /** The points since the last call. */
  take(): Record<string, unknown>[] {
    const points = this.metrics.flatMap(({ points }) => points as never[])
    this.metrics = []
    return points
  }
}

function plain(point: Metric['points'][number]): object {
  const { attributes, startUs, timeUs } = point
  const common = { attributes: attributes.toObject(), startUs, timeUs }
  if ('value' in point && !('count' in point)) return { ...common, value: point.value }
  return { ...common, ...pick(point as unknown as Record<string, unknown>) }
}

/** A point that is used again has the fields of every kind. */
function pick(point: Record<string, unknown>): object {
  const { value, count, sum } = point
  return { value, count, sum, buckets: Array.from(point.buckets as number[]), positive: point.positive }
}

function number(
  attributes: Record<string, AttributeValue>,
  value: number,
  timeUs = 2_000,
  startUs = 1_000,
): NumberPoint {
  return { attributes: Attributes.of(attributes), startUs, timeUs, value }
}

function sum(points: NumberPoint[], more: object = {}): Metric {
  return { ...described, kind: 'sum', monotonic: true, integer: true, points, ...more }
}

function histogram(points: HistogramPoint[]): Metric {
  return { ...described, kind: 'histogram', bounds: [1, 2], points }
}

function buckets(
  attributes: Record<string, AttributeValue>,
  counts: number[],
  timeUs = 2_000,
  startUs = 1_000,
): HistogramPoint {
  const count = counts.reduce((a, b) => a + b, 0)
  return { attributes: Attributes.of(attributes), startUs, timeUs, count, sum: count / 2, buckets: counts }
}

function stage(parts: Partial<Stage>): Stage {
  return { counters: () => undefined, ...parts }
}

function changing(change: (attributes: Attributes) => void): Stage {
  return stage({
    series(attributes) {
      change(attributes)
      return ''
    },
  })
}

/** Refuses the series whose attribute `user` is not in the list. */
function admitting(...users: AttributeValue[]): Stage {
  return stage({ series: set => (users.includes(set.get('user')!) ? '' : overflow) })
}

function values(points: Record<string, unknown>[]): unknown[] {
  return points.map(({ value }) => value)
}

const marked = { 'otel.metric.overflow': true }

test('with nothing to do to series the metric goes through as it is', () => {
  const metric = sum([number({}, 1)])
  const seen: Metric[] = []
  const out: MetricOut = { add: (_r, _s, each) => seen.push(each), drop: () => assert.fail() }
  metricChain([stage({ metric: () => '' })], cumulative).run(shop, scope, metric, out)
  metricChain([stage({ metric: () => '' })], delta).run(
    shop,
    scope,
    { ...metric, kind: 'gauge' } as Metric,
    out,
  )
  assert.equal(seen[0], metric)
  assert.equal(seen[1]!.kind, 'gauge')
})

test('a verdict on the metric drops all of its points', () => {
  const out = new Sink()
  const never = stage({ series: () => assert.fail() })
  const refusing = stage({ metric: ({ name }) => (name === 'm' ? 'rate_limited' : '') })
  metricChain([refusing, never], cumulative).run(shop, scope, sum([number({}, 1), number({ a: 1 }, 2)]), out)
  assert.deepEqual([out.metrics, out.missed], [[], { rate_limited: 2 }])
})

test('stages see a copy of the attributes in their order, and the source keeps its own', () => {
  const out = new Sink()
  const adds = changing(set => set.set('b', 2))
  const reads = stage({ series: set => (set.get('b') === 2 && set.get('a') !== 3 ? '' : 'rate_limited') })
  const metric = sum([number({ a: 1 }, 10), number({ a: 3 }, 30), number({ a: 5 }, 50)])
  metricChain([adds, reads], cumulative).run(shop, scope, metric, out)
  assert.deepEqual(
    out.metrics.map(({ points, ...rest }) => rest).map(({ name, kind, unit }) => [name, kind, unit]),
    [['m', 'sum', 's']],
  )
  assert.deepEqual(out.take(), [
    { attributes: { a: 1, b: 2 }, startUs: 1_000, timeUs: 2_000, ...pickNumber(10) },
    { attributes: { a: 5, b: 2 }, startUs: 1_000, timeUs: 2_000, ...pickNumber(50) },
  ])
  assert.deepEqual(out.missed, { rate_limited: 1 })
  assert.deepEqual(
    metric.points.map(({ attributes }) => attributes.toObject()),
    [{ a: 1 }, { a: 3 }, { a: 5 }],
  )
})

/** What `plain` finds in a used point of a sum. */
function pickNumber(value: number): object {
  return { value, count: 0, sum: 0, buckets: [], positive: { offset: 0, counts: [] } }
}

test('every kind comes out as it went in', () => {
  const out = new Sink()
  const all = metricChain([stage({ series: () => '' })], cumulative)
  const positive = { offset: -2, counts: [1, 0, 3] }
  const point = {
    attributes: Attributes.of({ a: 1 }),
    startUs: 1,
    timeUs: 2,
    count: 5,
    sum: 9,
    scale: 3,
    zeroCount: 1,
  }
  const given: Metric[] = [
    { ...described, kind: 'gauge', points: [number({ a: 1 }, 1.5)] },
    sum([number({ a: 1 }, 7)], { monotonic: false, integer: false }),
    histogram([buckets({ a: 1 }, [1, 2, 3])]),
    { ...described, kind: 'exponential_histogram', points: [{ ...point, positive, min: 1, max: 4 }] },
  ]
  const seen: object[] = []
  for (const metric of given)
    all.run(shop, scope, metric, {
      ...out,
      drop: () => assert.fail(),
      add(_resource, _scope, each) {
        const [made, want] = [each.points[0]!, metric.points[0]!] as unknown as Record<string, unknown>[]
        for (const key of Object.keys(want!))
          if (key === 'attributes') assert.deepEqual((made![key] as Attributes).toObject(), { a: 1 })
          else assert.deepEqual(made![key], want![key], key)
        for (const key of Object.keys(metric))
          if (key !== 'points') assert.deepEqual((each as never)[key], (metric as never)[key], key)
        seen.push(each)
      },
    })
  assert.equal(seen.length, given.length)
})

test('series without room are added up in one marked point, and count as missed', () => {
  const out = new Sink()
  const chain = metricChain([admitting('a')], cumulative)
  const run = (timeUs: number, of: Record<string, number>) => {
    const points = Object.entries(of).map(([user, value]) => number({ user }, value, timeUs))
    chain.run(shop, scope, sum(points), out)
    return out.take().map(({ attributes, value, startUs }) => [attributes, value, startUs])
  }
  assert.deepEqual(run(2_000, { a: 1, b: 2, c: 3 }), [
    [{ user: 'a' }, 1, 1_000],
    [marked, 5, 1_000],
  ])
  assert.deepEqual(run(3_000, { a: 1, b: 4, c: 3 })[1], [marked, 7, 1_000])
  // c leaves: what b grew by in this interval may be missing, and from the next one on nothing is.
  assert.deepEqual(run(4_000, { a: 1, b: 6 })[1], [marked, 7, 1_000])
  assert.deepEqual(run(5_000, { a: 1, b: 7 })[1], [marked, 8, 1_000])
  assert.deepEqual(run(6_000, { a: 1 }), [[{ user: 'a' }, 1, 1_000]])
  assert.deepEqual(out.missed, { cardinality: 6 })
})

test('histograms without room are added up bucket by bucket', () => {
  const out = new Sink()
  const chain = metricChain([admitting()], cumulative)
  const run = (timeUs: number, ...points: number[][]) => {
    chain.run(shop, scope, histogram(points.map((counts, user) => buckets({ user }, counts, timeUs))), out)
    return out.take().map(({ count, sum, buckets }) => [count, sum, buckets])
  }
  assert.deepEqual(run(2_000, [1, 0, 1], [0, 2, 0]), [[4, 2, [1, 2, 1]]])
  assert.deepEqual(run(3_000, [1, 0, 2], [1, 2, 0]), [[6, 3, [2, 2, 2]]])
  assert.deepEqual(run(4_000, [5, 0, 2]), [[9, 3.5, [5, 2, 2]]])
})

test('gauges, sums that may fall and histograms that choose their bounds are only missed', () => {
  const out = new Sink()
  const chain = metricChain([admitting()], cumulative)
  const point = {
    attributes: Attributes.of({ a: 1 }),
    startUs: 1,
    timeUs: 2,
    count: 5,
    sum: 9,
    scale: 3,
    zeroCount: 5,
  }
  chain.run(shop, scope, { ...described, kind: 'gauge', points: [number({}, 1)] }, out)
  chain.run(shop, scope, sum([number({}, 1)], { monotonic: false }), out)
  const points = [{ ...point, positive: { offset: 0, counts: [] } }]
  chain.run(shop, scope, { ...described, kind: 'exponential_histogram', points }, out)
  assert.deepEqual([out.take(), out.missed], [[], { cardinality: 3 }])
})

test('another verdict than overflow adds nothing up', () => {
  const out = new Sink()
  metricChain([stage({ series: () => 'series_limit' })], cumulative).run(
    shop,
    scope,
    sum([number({}, 1)]),
    out,
  )
  assert.deepEqual([out.take(), out.missed], [[], { series_limit: 1 }])
})

test('a metric that comes in parts has one overflow point for each time', () => {
  const out = new Sink()
  const chain = metricChain([admitting()], cumulative)
  const run = (timeUs: number, ...parts: number[]) => {
    for (const value of parts) chain.run(shop, scope, sum([number({ value }, value, timeUs)]), out)
    return values(out.take())
  }
  assert.deepEqual(run(2_000, 10, 100), [10])
  assert.deepEqual(run(3_000, 11, 100), [110])
  assert.deepEqual(run(4_000, 11, 105), [111])
  assert.deepEqual(run(5_000, 200, 105), [200])
  assert.deepEqual(run(6_000, 200, 105), [305])
})

test('resources, scopes and metrics overflow each for itself', () => {
  const out = new Sink()
  const chain = metricChain([admitting()], cumulative)
  const cart = resource({ 'service.name': 'cart' })
  chain.run(shop, scope, sum([number({}, 1)]), out)
  chain.run(cart, scope, sum([number({}, 2)]), out)
  chain.run(shop, { name: 'other', version: '' }, sum([number({}, 3)]), out)
  chain.run(shop, scope, sum([number({}, 4)], { name: 'n' }), out)
  assert.deepEqual(values(out.take()), [1, 2, 3, 4])
})

test('the overflow point of a source is part of the one made here', () => {
  const out = new Sink()
  const admits = admitting('a').series!
  const own = stage({
    series: (set, ...rest) => (set.size === 1 && set.get('user') === undefined ? '' : admits(set, ...rest)),
  })
  const chain = metricChain([own], cumulative)
  const run = (timeUs: number, own: number, of: Record<string, number>) => {
    const points = Object.entries(of).map(([user, value]) => number({ user }, value, timeUs))
    chain.run(shop, scope, sum([number(marked, own, timeUs), ...points]), out)
    return out.take().map(({ attributes, value }) => [attributes, value])
  }
  const a = [{ user: 'a' }, 1]
  assert.deepEqual(run(2_000, 10, { a: 1 }), [a, [marked, 10]])
  assert.deepEqual(run(3_000, 12, { a: 1, b: 5 }), [a, [marked, 17]])
  assert.deepEqual(run(4_000, 13, { a: 1, b: 6 }), [a, [marked, 19]])
  assert.deepEqual(run(5_000, 20, { a: 1 }), [a, [marked, 20]])
  assert.deepEqual(run(6_000, 21, { a: 1 }), [a, [marked, 21]])
  assert.deepEqual(out.missed, { cardinality: 2 })
})

test('the overflow point of a source passes the stages as any other, and without room it is part of what is added up', () => {
  const out = new Sink()
  const run = (chain: MetricChain) => {
    chain.run(shop, scope, sum([number(marked, 5), number({ user: 'a' }, 1)]), out)
    return out.take().map(({ attributes, value }) => [attributes, value])
  }
  const env = changing(set => set.set('env', 'test'))
  assert.deepEqual(run(metricChain([env], cumulative)), [
    [{ user: 'a', env: 'test' }, 1],
    [{ ...marked, env: 'test' }, 5],
  ])
  assert.deepEqual(run(metricChain([stage({ series: () => 'transform' })], cumulative)), [])
  assert.deepEqual(out.missed, { transform: 2 })
  assert.deepEqual(run(metricChain([admitting('a')], cumulative)), [
    [{ user: 'a' }, 1],
    [marked, 5],
  ])
  assert.deepEqual(out.missed, { transform: 2 })
})

test('an overflow sum never falls, and is exact while its members stay', () => {
  const growth = fc.array(fc.tuple(fc.nat(50), fc.nat(50), fc.nat(50)), { maxLength: 30 })
  const leaves = fc.array(fc.nat(2), { maxLength: 30 })
  fc.assert(
    fc.property(growth, leaves, fc.boolean(), (steps, gone, steady) => {
      const out = new Sink()
      const chain = metricChain([admitting()], cumulative)
      const totals = [0, 0, 0]
      let last = 0
      for (const [i, step] of steps.entries()) {
        for (const n of [0, 1, 2]) totals[n]! += step[n]!
        const points = totals.flatMap((value, user) =>
          steady || gone[i] !== user ? number({ user }, value, 2_000 + i) : [],
        )
        chain.run(shop, scope, sum(points), out)
        const [value] = values(out.take()) as number[]
        assert.ok(value! >= last)
        if (steady) assert.equal(value, totals[0]! + totals[1]! + totals[2]!)
        last = value!
      }
    }),
    { numRuns: soak ? 20_000 : 300 },
  )
})

test('what a chain has added up goes on in the next one', () => {
  const out = new Sink()
  const chain = metricChain([admitting()], cumulative)
  chain.run(shop, scope, sum([number({ user: 1 }, 10)]), out)
  chain.run(shop, scope, sum([number({ user: 2 }, 3, 3_000)]), out)
  const next = metricChain([admitting()], cumulative, chain)
  next.run(shop, scope, sum([number({ user: 2 }, 4, 4_000)]), out)
  assert.deepEqual(values(out.take()), [10, 10, 11])
})

/** Runs points of one series through a chain. */
function runOne(chain: MetricChain, out: Sink, value: number, timeUs: number, startUs = 1_000) {
  chain.run(shop, scope, sum([number({ a: 1 }, value, timeUs, startUs)]), out)
  return out.take().map(({ value, startUs, timeUs }) => [value, startUs, timeUs])
}

test('delta: a point tells what came since the point before', () => {
  const out = new Sink()
  const chain = metricChain([], delta)
  assert.deepEqual(runOne(chain, out, 5, 2_000), [[5, 1_000, 2_000]])
  assert.deepEqual(runOne(chain, out, 7, 3_000), [[2, 2_000, 3_000]])
  assert.deepEqual(runOne(chain, out, 7, 4_000), [[0, 3_000, 4_000]])
  chain.run(shop, scope, sum([number({ a: 1 }, 9, 5_000)]), out)
  assert.equal((out.metrics[0] as { temporality?: string }).temporality, 'delta')
})

test('delta: a value that falls began anew, and so did one with a later start', () => {
  const out = new Sink()
  const chain = metricChain([], delta)
  runOne(chain, out, 5, 2_000)
  assert.deepEqual(runOne(chain, out, 3, 3_000), [[3, 2_000, 3_000]])
  assert.deepEqual(runOne(chain, out, 8, 4_000, 3_500), [[8, 3_500, 4_000]])
  assert.deepEqual(runOne(chain, out, 9, 5_000, 3_500), [[1, 4_000, 5_000]])
  assert.deepEqual(runOne(chain, out, 11, 6_000, 3_501), [[2, 5_000, 6_000]])
})

test('delta: the first point of a series that began before this process is only remembered', () => {
  const out = new Sink()
  const chain = metricChain([], delta)
  assert.deepEqual(runOne(chain, out, 5, 2_000, 999), [])
  assert.deepEqual(runOne(chain, out, 6, 3_000, 999), [[1, 2_000, 3_000]])
  const other = metricChain([], delta)
  assert.deepEqual(runOne(other, out, 5, 2_000, 0), [])
  assert.deepEqual(runOne(other, out, 7, 3_000, 0), [[2, 2_000, 3_000]])
  assert.deepEqual(out.missed, { delta_start: 2 })
})

test('delta: gauges and sums that may fall stay as they are', () => {
  const out = new Sink()
  const chain = metricChain([stage({ series: () => '' })], delta)
  for (const timeUs of [2_000, 3_000]) {
    chain.run(shop, scope, { ...described, kind: 'gauge', points: [number({}, 5, timeUs)] }, out)
    chain.run(shop, scope, sum([number({}, 6, timeUs)], { monotonic: false }), out)
  }
  for (const metric of out.metrics)
    assert.equal((metric as { temporality?: string | undefined }).temporality, undefined)
  assert.deepEqual(values(out.take()), [5, 6, 5, 6])
})

test('delta: histograms tell the differences of their counts, sums and buckets', () => {
  const out = new Sink()
  const chain = metricChain([], delta)
  const run = (timeUs: number, counts: number[]) => {
    const metric = histogram([buckets({}, counts, timeUs)])
    chain.run(shop, scope, metric, out)
    assert.deepEqual((metric.points[0] as HistogramPoint).buckets, counts)
    return out.take().map(({ count, sum, buckets, startUs }) => [count, sum, buckets, startUs])
  }
  assert.deepEqual(run(2_000, [1, 0, 2]), [[3, 1.5, [1, 0, 2], 1_000]])
  assert.deepEqual(run(3_000, [1, 4, 3]), [[5, 2.5, [0, 4, 1], 2_000]])
  // The count is more, and yet one bucket fell: it began anew.
  assert.deepEqual(run(4_000, [0, 9, 3]), [[12, 6, [0, 9, 3], 3_000]])
})

test('delta: an exponential histogram whose scale falls goes on', () => {
  const chain = metricChain([], delta)
  const seen: unknown[] = []
  const run = (timeUs: number, scale: number, zeroCount: number, offset: number, counts: number[]) => {
    const count = counts.reduce((a, b) => a + b, zeroCount)
    const common = { attributes: new Attributes(), startUs: 1_000, timeUs, min: 1, max: 2 }
    const points = [{ ...common, count, sum: count, scale, zeroCount, positive: { offset, counts } }]
    chain.run(
      shop,
      scope,
      { ...described, kind: 'exponential_histogram', points },
      {
        drop: () => assert.fail(),
        add(_resource, _scope, metric) {
          assert.ok(metric.kind === 'exponential_histogram')
          const [{ scale, positive, ...point }] = metric.points as [(typeof metric.points)[number]]
          seen.push([
            point.count,
            point.zeroCount,
            scale,
            positive.offset,
            Array.from(positive.counts),
            point.min,
          ])
        },
      },
    )
    return seen.pop()
  }
  assert.deepEqual(run(2_000, 3, 1, -3, [1, 2, 3]), [7, 1, 3, -3, [1, 2, 3], 1])
  assert.deepEqual(run(3_000, 3, 1, -4, [1, 1, 2, 4]), [2, 0, 3, -4, [1, 0, 0, 1], undefined])
  assert.deepEqual(run(4_000, 2, 2, -2, [3, 7, 5]), [8, 1, 2, -2, [1, 1, 5], undefined])
  assert.deepEqual(run(5_000, 3, 0, 0, [1]), [1, 0, 3, 0, [1], 1])
})

test('delta: the differences of a series add up to what it counted, resets included', () => {
  const step = fc.oneof(
    fc.record({ add: fc.nat(100), series: fc.nat(3) }),
    fc.record({ reset: fc.nat(5), series: fc.nat(3) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), steps => {
      const out = new Sink()
      const chain = metricChain([], delta)
      const now = [0, 0, 0, 0]
      const counted = [0, 0, 0, 0]
      const told = [0, 0, 0, 0]
      let timeUs = 2_000
      for (const each of steps) {
        if ('add' in each) {
          now[each.series]! += each.add
          counted[each.series]! += each.add
        } else if (each.reset < now[each.series]!) {
          now[each.series] = each.reset
          counted[each.series]! += each.reset
        }
        chain.run(shop, scope, sum(now.map((value, series) => number({ series }, value, timeUs++))), out)
        for (const { attributes, value } of out.take())
          told[(attributes as { series: number }).series]! += value as number
      }
      assert.deepEqual(told, steps.length > 0 ? counted : [0, 0, 0, 0])
    }),
    { numRuns: soak ? 20_000 : 300 },
  )
})

test('delta: series that processors made alike keep their own differences', () => {
  const out = new Sink()
  const alike = changing(set => set.clear())
  const chain = metricChain([alike], delta)
  const twin = resource({ 'service.name': 'shop' })
  for (const [timeUs, a, b] of [
    [2_000, 1, 100],
    [3_000, 3, 110],
  ] as const) {
    chain.run(shop, scope, sum([number({ user: 1 }, a, timeUs), number({ user: 2 }, b, timeUs)]), out)
    chain.run(twin, scope, sum([number({ user: 1 }, a + b, timeUs)]), out)
  }
  assert.deepEqual(values(out.take()), [1, 100, 101, 2, 10, 12])
})

test('delta: an overflow point is a difference too', () => {
  const out = new Sink()
  const chain = metricChain([admitting()], delta)
  for (const [timeUs, value] of [
    [2_000, 5],
    [3_000, 9],
    [4_000, 2],
    [5_000, 4],
  ] as const)
    chain.run(shop, scope, sum([number({ user: value }, value, timeUs)]), out)
  assert.deepEqual(values(out.take()), [5, 4, 0, 2])
})

test('delta: beyond the bound a series is forgotten, and its return tells nothing twice', () => {
  const out = new Sink()
  const chain = metricChain([], { ...delta, maxSeries: 2 })
  const run = (timeUs: number, ...of: [number, number][]) => {
    for (const [a, value] of of) chain.run(shop, scope, sum([number({ a }, value, timeUs)]), out)
    return values(out.take())
  }
  assert.deepEqual(run(2_000, [1, 10], [2, 20], [3, 30]), [10, 20, 30])
  const forgotten = out.missed.delta_start ?? 0
  assert.equal(forgotten, 0)
  const told = run(3_000, [1, 11], [2, 21], [3, 31]) as number[]
  assert.ok(
    told.every(value => value <= 1),
    String(told),
  )
  assert.equal(told.length + out.missed.delta_start!, 3)
})

test('delta: a reload goes on, with another bound too, and tells nothing twice where resources are new', () => {
  const out = new Sink()
  const first = metricChain([], delta)
  runOne(first, out, 5, 2_000)
  const second = metricChain([], delta, first)
  assert.deepEqual(runOne(second, out, 6, 3_000), [[1, 2_000, 3_000]])
  const third = metricChain([], { ...delta, maxSeries: 10 }, second)
  assert.deepEqual(runOne(third, out, 8, 4_000), [[2, 3_000, 4_000]])
  third.run(resource({ 'service.name': 'shop' }), scope, sum([number({ a: 1 }, 9, 5_000)]), out)
  assert.deepEqual([out.take(), out.missed], [[], { delta_start: 1 }])
})

test('delta: no number and a clock that was set back make no wrong interval', () => {
  const out = new Sink()
  const chain = metricChain([], delta)
  runOne(chain, out, 5, 3_000)
  assert.deepEqual(runOne(chain, out, Number.NaN, 4_000), [[Number.NaN, 1_000, 4_000]])
  assert.deepEqual(runOne(chain, out, 6, 5_000), [[1, 3_000, 5_000]])
  assert.deepEqual(runOne(chain, out, 8, 4_500), [[2, 4_500, 4_500]])
  assert.deepEqual(runOne(chain, out, 9, 6_000), [[1, 4_500, 6_000]])
})

test('with the bound on series, a bomb ends in one point that keeps the total, and other metrics lose nothing', () => {
  const cardinality = { ...defaults.limits.cardinality, default_max_series: 1000 }
  const env = { nowMs: () => 1_000, signal: 'metrics' } as ProcessorEnv
  const limit = limitSeries.compile({ limits: { ...defaults.limits, cardinality } }, env, undefined)
  const chain = metricChain([limit!], cumulative)
  const series = soak ? 200_000 : 20_000
  const points = Array.from({ length: series }, (_, user) => number({ user, method: 'GET' }, 1 + (user % 3)))
  const total = points.reduce((all, { value }) => all + value, 0)
  let told = 0
  let count = 0
  let missed = 0
  const out: MetricOut = {
    add(_resource, _scope, { points }) {
      count += points.length
      for (const point of points) told += (point as NumberPoint).value
    },
    drop: (reason, items) => {
      assert.equal(reason, 'cardinality')
      missed += items
    },
  }
  chain.run(shop, scope, sum(points), out)
  assert.deepEqual([told, count, missed], [total, 1001, series - 1000])
  count = 0
  chain.run(shop, scope, sum(points.slice(0, 1000), { name: 'steady' }), out)
  assert.deepEqual([count, missed], [1000, series - 1000])
})

test('a metric goes out in parts that fit into a request, stages or none', () => {
  const check = (metric: Metric, most: number) => {
    for (const stages of [[], [stage({ series: () => '' })]]) {
      const sizes: number[] = []
      const out: MetricOut = {
        add: (_r, _s, part) => sizes.push(part.points.length),
        drop: () => assert.fail(),
      }
      metricChain(stages, cumulative).run(shop, scope, metric, out)
      const total = sizes.reduce((a, b) => a + b)
      assert.equal(total, metric.points.length)
      assert.ok(Math.max(...sizes) <= most, String(sizes))
    }
  }
  check(sum(Array.from({ length: 5000 }, (_, i) => number({ i }, i))), 2000)
  const path = 'x'.repeat(1000)
  check(histogram(Array.from({ length: 500 }, (_, i) => buckets({ i, path }, [1, 2, 3]))), 64)
})

test('a fault costs what was not handed on yet, once, and leaves nothing behind for the next metric', () => {
  const failing = stage({
    series(set) {
      if (set.get('user') === 'fault') throw new Error('a fault')
      return set.get('user') === 1 ? 'series_limit' : ''
    },
  })
  const chain = metricChain([failing], cumulative)
  const out = new Sink()
  const path = 'x'.repeat(1000)
  const points = Array.from({ length: 500 }, (_, i) => number({ user: i === 400 ? 'fault' : i, path }, 1))
  chain.run(shop, scope, sum(points), out)
  const handedOn = out.take().length
  assert.ok(handedOn > 300 && handedOn < 400, String(handedOn))
  assert.deepEqual(out.missed, { processor: 500 - handedOn })
  chain.run(shop, scope, sum([number({ user: 1 }, 1), number({ user: 2 }, 2)]), out)
  assert.deepEqual([values(out.take()), out.missed], [[2], { processor: 500 - handedOn, series_limit: 1 }])
})

test('delta: an overflow point of a histogram is a difference too, bucket by bucket', () => {
  const out = new Sink()
  const chain = metricChain([admitting()], delta)
  for (const [timeUs, counts] of [
    [2_000, [1, 2, 3]],
    [3_000, [2, 3, 5]],
    [4_000, [2, 4, 9]],
  ] as const)
    chain.run(shop, scope, histogram([buckets({ user: 1 }, [...counts], timeUs)]), out)
  assert.deepEqual(
    out.take().map(({ count, buckets }) => [count, buckets]),
    [
      [6, [1, 2, 3]],
      [4, [1, 1, 2]],
      [5, [0, 1, 4]],
    ],
  )
})

test('what is infinite or no number does not spoil an overflow sum, nor what comes after it a difference', () => {
  const out = new Sink()
  const adding = metricChain([admitting()], cumulative)
  for (const [timeUs, value] of [
    [2_000, 5],
    [3_000, Number.POSITIVE_INFINITY],
    [4_000, Number.NaN],
    [5_000, 7],
  ] as const)
    adding.run(shop, scope, sum([number({ user: 1 }, value, timeUs), number({ user: 2 }, 1, timeUs)]), out)
  assert.ok(
    values(out.take()).every(value => Number.isFinite(value)),
    'all are numbers',
  )
  const chain = metricChain([], delta)
  runOne(chain, out, 5, 3_000)
  runOne(chain, out, Number.POSITIVE_INFINITY, 4_000)
  assert.deepEqual(runOne(chain, out, 7, 5_000), [[2, 3_000, 5_000]])
})

test('delta: a series goes on where a reload makes another resource of the same source', () => {
  const out = new Sink()
  const [redacted, again] = [resource({ host: '-' }), resource({ host: '-' })]
  const first = metricChain([], delta)
  first.run(redacted, scope, sum([number({ a: 1 }, 5, 2_000)]), out, shop)
  metricChain([], delta, first).run(again, scope, sum([number({ a: 1 }, 8, 3_000)]), out, shop)
  assert.deepEqual([values(out.take()), out.missed], [[5, 3], {}])
})

test('a series that ended says so, and what comes later under its name begins anew', () => {
  const chain = metricChain([], delta)
  const sink = new Sink()
  const run = (...points: NumberPoint[]) => {
    chain.run(shop, scope, sum(points), sink)
    return values(sink.take())
  }
  run(number({}, 5))
  assert.deepEqual(run(number({}, 7, 3_000)), [2])
  const seen: (boolean | undefined)[] = []
  const out: MetricOut = { add: (_r, _s, { points }) => seen.push(points[0]!.noValue), drop: assert.fail }
  chain.run(shop, scope, sum([{ ...number({}, Number.NaN, 4_000), noValue: true }]), out)
  assert.deepEqual(seen, [true])
  // It began before anybody watched it, as far as is known now.
  assert.deepEqual(run(number({}, 9, 5_000, 0)), [])
  assert.deepEqual(run(number({}, 10, 6_000, 0)), [1])
  assert.deepEqual(sink.missed, { delta_start: 1 })
})

test('a series that ended is not added up, and what ended without room is counted', () => {
  const chain = metricChain([admitting('a')], cumulative)
  const sink = new Sink()
  chain.run(shop, scope, sum([number({ user: 'a' }, 1), number({ user: 'b' }, 5)]), sink)
  const ended = { ...number({ user: 'b' }, Number.NaN, 3_000), noValue: true }
  chain.run(shop, scope, sum([number({ user: 'a' }, 1, 3_000), ended]), sink)
  assert.deepEqual(values(sink.take()), [1, 5, 1])
  assert.deepEqual(sink.missed, { cardinality: 2 })
})

test('histograms without a sum add up to one without', () => {
  const chain = metricChain([admitting('a')], cumulative)
  const sink = new Sink()
  const point = buckets({ user: 'b' }, [1, 2, 3])
  chain.run(shop, scope, histogram([point, { ...point, sum: undefined }]), sink)
  chain.run(shop, scope, histogram([{ ...point, timeUs: 3_000 }]), sink)
  assert.deepEqual(
    sink.take().map(({ count, sum: of }) => [count, of]),
    [
      [12, undefined],
      [12, undefined],
    ],
  )
})

test('summaries never become deltas, and keep what they say in parts, too', () => {
  const chain = metricChain([changing(set => set.set('seen', true))], delta)
  const points = Array.from({ length: 3000 }, (_, i) => {
    const { attributes, startUs, timeUs } = number({ i }, 0)
    return { attributes, startUs, timeUs, count: i, sum: 2 * i, quantiles: [0.5, 0.9], values: [i, i + 1] }
  })
  const metadata = Attributes.of({ 'prometheus.type': 'summary' })
  let parts = 0
  const seen: number[] = []
  const out: MetricOut = {
    add(_resource, _scope, metric) {
      parts++
      assert.ok(metric.kind === 'summary' && metric.metadata === metadata)
      for (const point of metric.points) {
        const i = point.attributes.get('i') as number
        assert.equal(point.attributes.get('seen'), true)
        assert.deepEqual(
          [point.count, point.sum, point.quantiles, point.values],
          [i, 2 * i, [0.5, 0.9], [i, i + 1]],
        )
        seen.push(i)
      }
    },
    drop: () => assert.fail(),
  }
  chain.run(shop, scope, { ...described, kind: 'summary', metadata, points }, out)
  assert.deepEqual(seen, [...points.keys()])
  assert.ok(parts > 1)
})

test('what exemplars say beside their series is changed in copies', () => {
  const attributes = Attributes.of({ user: 'bob' })
  const id = new Uint8Array(0)
  const exemplar = { timeUs: 1, value: 1, traceId: id, spanId: id, attributes }
  const chain = metricChain([stage({ exemplar: set => set.set('user', '*') })], cumulative)
  const users: unknown[] = []
  const out: MetricOut = {
    add: (_r, _s, metric) => {
      const [point] = metric.points as readonly NumberPoint[]
      for (const each of point!.exemplars!) users.push(each.attributes.get('user'))
    },
    drop: () => assert.fail(),
  }
  const empty = { ...exemplar, attributes: new Attributes() }
  chain.run(shop, scope, sum([{ ...number({}, 1), exemplars: [exemplar, empty] }]), out)
  assert.deepEqual([...users, attributes.get('user')], ['*', undefined, 'bob'])
})
