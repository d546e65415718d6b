import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Attributes, type AttributeValue } from '../../../foundation/model/attributes.ts'
import type { Metric, NumberPoint } from '../../../foundation/model/metric.ts'
import { resource, type Scope } from '../../../foundation/model/resource.ts'
import { type MetricOut, metricChain } from '../metric-chain.ts'
import { overflow, type Stage } from '../processor.ts'

const shop = resource({ 'service.name': 'shop' })
const scope: Scope = { name: 'svc/test', version: '1' }
const cumulative = { temporality: 'cumulative', maxSeries: 1000 } as const
const described = { name: 'm', description: 'text', unit: 's' }
const marked = { 'otel.metric.overflow': true }

class Sink implements MetricOut {
  readonly values: number[] = []
  readonly missed: Record<string, number> = {}

  add(_resource: unknown, _scope: unknown, { points }: Metric): void {
    for (const point of points) this.values.push((point as NumberPoint).value)
  }

  drop(reason: string, items: number): void {
    this.missed[reason] = (this.missed[reason] ?? 0) + items
  }
}

function number(attributes: Record<string, AttributeValue>, value: number): NumberPoint {
  return { attributes: Attributes.of(attributes), startUs: 1_000, timeUs: 2_000, value }
}

function sum(points: NumberPoint[], more: object = {}): Metric {
  return { ...described, kind: 'sum', monotonic: true, integer: true, points, ...more }
}

function stage(parts: Partial<Stage>): Stage {
  return { counters: () => undefined, ...parts }
}

test('what is said to a metric lasts as long as the least of what its stages say', () => {
  const check = (want: number | undefined, stages: Stage[], metric = sum([number({}, 1)]), options = {}) => {
    const lasting = metricChain(stages, { ...cumulative, ...options }).prepare(
      shop,
      scope,
      metric,
      new Sink(),
    )
    assert.equal(lasting?.forMs, want)
  }
  const lasting = (lastingMs: number, parts: Partial<Stage> = {}) => stage({ lastingMs, ...parts })
  const isDelta = { temporality: 'delta' as const }
  const gauge = { ...described, kind: 'gauge', points: [number({}, 1)] } as Metric
  check(Infinity, [])
  check(20, [lasting(30), lasting(20), lasting(Infinity)])
  check(undefined, [lasting(30), stage({})])
  check(undefined, [], sum([number({}, 1)]), isDelta)
  check(Infinity, [], sum([number({}, 1)], { monotonic: false }), isDelta)
  check(Infinity, [], gauge, isDelta)
  check(30, [lasting(30, { metric: () => 'transform' })])
  check(30, [lasting(30, { series: () => 'transform' })])
  check(undefined, [lasting(30, { series: () => overflow })])
  check(undefined, [lasting(30, { series: () => assert.fail() })])
  check(undefined, [], sum([number(marked, 1)]))
})

test('scopes go out as the stages leave them, each asked about once, whichever way a metric goes', () => {
  const told: Scope = { name: 'lib', version: '1', attributes: Attributes.of({ owner: 'bob@example.com' }) }
  const clean: Scope = { name: 'lib', version: '1' }
  let asked = 0
  const stages = [
    {
      scope: () => {
        asked++
        return clean
      },
    },
    {
      series: (_set: unknown, _metric: unknown, _of: unknown, scope?: Scope) =>
        scope === clean ? '' : 'transform',
    },
  ]
  for (const used of [stages.slice(0, 1), stages]) {
    asked = 0
    const sent: unknown[] = []
    const out: MetricOut = { add: (_of, scope) => sent.push(scope), drop: () => assert.fail() }
    const chain = metricChain(
      used.map(parts => stage({ lastingMs: 1, ...parts })),
      cumulative,
    )
    const metric = sum([number({}, 1)])
    chain.run(shop, told, metric, out)
    chain.prepare(shop, told, metric, out)
    assert.ok(sent.every(scope => scope === clean))
    assert.deepEqual([sent.length, asked], [2, 1])
  }
})

test('series of scopes that differ in what they tell have differences of their own', () => {
  const scopes = ['a', 'b'].map(of => ({ name: 'l', version: '', attributes: Attributes.of({ of }) }))
  const chain = metricChain([], { temporality: 'delta', maxSeries: 10, sinceUs: 0 })
  const sink = new Sink()
  for (const value of [1, 2])
    for (const [i, each] of scopes.entries()) {
      const point = { ...number({}, value * 10 ** i), timeUs: 2000 + value }
      chain.run(shop, each, sum([point]), sink)
    }
  assert.deepEqual(sink.values, [1, 10, 1, 10])
})

test('a preparation that comes to nothing leaves nothing behind', () => {
  const admits = stage({ lastingMs: Infinity, series: set => (set.get('user') === 'a' ? '' : overflow) })
  const chain = metricChain([admits], cumulative)
  const sink = new Sink()
  const metric = sum([number({ user: 'a' }, 1), number({ user: 'b' }, 5)])
  for (let i = 0; i < 3; i++) assert.equal(chain.prepare(shop, scope, metric, sink), undefined)
  const sent = sink.values.length
  chain.run(shop, scope, metric, sink)
  assert.deepEqual(sink.values.slice(sent), [1, 5])
  assert.deepEqual(sink.missed, { cardinality: 1 })
})

test('whoever counts points is asked each time about a metric that nobody dropped', () => {
  const asked: number[] = []
  const again = (points: number) => {
    asked.push(points)
    return points > 1 ? 'rate_limited' : ''
  }
  const rate = stage({ lastingMs: Infinity, metric: () => assert.fail(), again })
  const drops = (of: Partial<Stage>) => stage({ lastingMs: Infinity, ...of })
  const asks = (...stages: Stage[]) =>
    metricChain(stages, cumulative).prepare(shop, scope, sum([number({}, 1)]), new Sink())?.asksAgain
  assert.deepEqual(
    [
      asks(),
      asks(rate),
      asks(drops({ series: () => 'transform' }), rate),
      asks(drops({ metric: () => 'transform' }), rate),
    ],
    [false, true, true, false],
  )
  const chain = metricChain([rate], cumulative)
  assert.deepEqual([chain.again(1), chain.again(2)], ['', 'rate_limited'])
  assert.deepEqual(asked, [1, 2])
})
