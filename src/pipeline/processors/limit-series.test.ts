import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogger } from '../../../test/helpers/silent-logger.ts'
import { soak } from '../../../test/helpers/soak.ts'
import { Attributes, type AttributeValue } from '../../foundation/model/attributes.ts'
import type { Metric } from '../../foundation/model/metric.ts'
import { resource } from '../../foundation/model/resource.ts'
import { branch, build } from '../../foundation/schema/tree.ts'
import { limitSeries } from './limit-series.ts'
import { type LimitSettings, limits } from './limit-settings.ts'
import type { ProcessorEnv, Stage } from './processor.ts'

const shop = resource({ 'service.name': 'shop' })
const defaults: LimitSettings = build(branch('', { limits }), new Map())

type Cardinality = LimitSettings['limits']['cardinality']

/** Makes stages whose clock the test sets. */
class Bench {
  nowMs = 1_000_000
  stage!: Stage

  constructor(settings: Partial<Cardinality>) {
    this.reload(settings)
  }

  reload(settings: Partial<Cardinality>): void {
    const env: ProcessorEnv = {
      signal: 'metrics',
      log: silentLogger,
      installKey: () => new Uint8Array(32),
      nowMs: () => this.nowMs,
    }
    const cardinality = { ...defaults.limits.cardinality, ...settings }
    const stage = limitSeries.compile({ limits: { ...defaults.limits, cardinality } }, env, this.stage)
    assert.ok(stage)
    this.stage = stage
  }

  /** One metric with one point; its verdict. */
  point(name: string, attributes: Record<string, AttributeValue>, of = shop): string {
    const metric = gauge(name)
    return this.stage.metric!(metric, of) || this.stage.series!(Attributes.of(attributes), metric, of)
  }

  /** Points whose attribute `key` has the values of a range. */
  flood(name: string, key: string, from: number, to: number): string[] {
    const verdicts: string[] = []
    const metric = gauge(name)
    const attributes = new Attributes()
    assert.equal(this.stage.metric!(metric, shop), '')
    for (let i = from; i < to; i++) {
      attributes.clear()
      attributes.add('http.route', `/${i % 3}`)
      attributes.add(key, `value-${i}`)
      const verdict = this.stage.series!(attributes, metric, shop)
      if (!verdicts.includes(verdict)) verdicts.push(verdict)
    }
    return verdicts
  }

  get counters(): Record<string, number> {
    const all: Record<string, number> = {}
    this.stage.counters((rule, outcome, total) => {
      all[`${rule} ${outcome}`] = total
    })
    return all
  }
}

function gauge(name: string): Metric {
  return { kind: 'gauge', name, description: '', unit: '', points: [] }
}

test('series count for each scope that they are told in, so that scopes without end are bounded, too', () => {
  const limiter = new Bench({ default_max_series: 2 })
  const metric = gauge('m')
  const verdictOf = (attributes: Record<string, AttributeValue>) =>
    limiter.stage.series!(new Attributes(), metric, shop, {
      name: 'library',
      version: '',
      attributes: Attributes.of(attributes),
    })
  assert.deepEqual([verdictOf({ a: 1, b: 2 }), verdictOf({ b: 2, a: 1 }), verdictOf({ a: 2 })], ['', '', ''])
  assert.notEqual(verdictOf({ a: 3 }), '')
})

test('it is off where the settings say so', () => {
  const cardinality = { ...defaults.limits.cardinality, enabled: false }
  const settings = { limits: { ...defaults.limits, cardinality } }
  assert.equal(limitSeries.compile(settings, {} as ProcessorEnv, undefined), undefined)
})

test('the series that came first stay, new ones find no room', () => {
  const bench = new Bench({ default_max_series: 3 })
  for (const user of ['a', 'b', 'c']) assert.equal(bench.point('m', { user }), '')
  for (const user of ['d', 'e']) assert.equal(bench.point('m', { user }), 'cardinality')
  for (const user of ['c', 'b', 'a']) assert.equal(bench.point('m', { user }), '')
  assert.deepEqual(bench.counters, { ' series': 3, ' dropped': 2, 'm dropped': 2 })
})

test('a series is told by its resource, its metric and its attributes in any order', () => {
  const bench = new Bench({ default_max_series: 2 })
  assert.equal(bench.point('m', { a: 1, b: 2 }), '')
  assert.equal(bench.point('m', { b: 2, a: 1 }), '')
  assert.equal(bench.point('m', { a: 1, b: 2 }, resource({ 'service.name': 'shop' })), '')
  assert.equal(bench.counters[' series'], 1)
  assert.equal(bench.point('m', { a: 1, b: 2 }, resource({ 'service.name': 'cart' })), '')
  assert.equal(bench.point('m', { a: 1, b: '2' }), 'cardinality')
  assert.equal(bench.point('other', { a: 1, b: '2' }), '')
})

test('on_limit: drop has a verdict that nobody adds up', () => {
  const bench = new Bench({ default_max_series: 1, on_limit: 'drop' })
  assert.equal(bench.point('m', { a: 1 }), '')
  assert.equal(bench.point('m', { a: 2 }), 'series_limit')
})

test('an override wins over the default, in both directions', () => {
  const bench = new Bench({ default_max_series: 2, overrides: { large: 3, small: 1 } })
  const check = (name: string, room: number) => {
    for (let i = 0; i < 5; i++) assert.equal(bench.point(name, { i }), i < room ? '' : 'cardinality')
  }
  check('large', 3)
  check('small', 1)
  check('usual', 2)
})

test('the global bound holds for all metrics together', () => {
  const bench = new Bench({ default_max_series: 10, global_max_series: 4 })
  for (let i = 0; i < 4; i++) assert.equal(bench.point(`m${i}`, {}), '')
  assert.equal(bench.point('m4', {}), 'cardinality')
  assert.equal(bench.point('m0', { a: 1 }), 'cardinality')
  assert.equal(bench.point('m0', {}), '')
  assert.match(bench.stage.warning!, /^all metrics: 4 of 4 series, 2 points over the limit; largest: m0 1/)
})

test('a series that is silent for its time makes room, one that is not stays', () => {
  const bench = new Bench({ default_max_series: 2, series_ttl: 60_000 })
  bench.point('m', { a: 'kept' })
  bench.point('m', { a: 'silent' })
  for (let s = 0; s < 59; s += 5) {
    bench.nowMs += 5_000
    assert.equal(bench.point('m', { a: 'kept' }), '')
    assert.equal(bench.point('m', { a: 'new' }), 'cardinality')
  }
  // It is found within a quarter of its time.
  bench.nowMs += 20_000
  assert.equal(bench.point('m', { a: 'kept' }), '')
  assert.equal(bench.point('m', { a: 'new' }), '')
  assert.equal(bench.point('m', { a: 'silent' }), 'cardinality')
})

test('after a long silence everything is forgotten, and the metric too', () => {
  const bench = new Bench({ series_ttl: 60_000 })
  bench.flood('m', 'user', 0, 9000)
  bench.nowMs += 365 * 86_400_000
  assert.equal(bench.point('n', {}), '')
  assert.equal(bench.counters[' series'], 1)
  assert.equal(bench.stage.warning, '')
})

test('a reload keeps what is known, and its new bounds hold from then on', () => {
  const bench = new Bench({ default_max_series: 2 })
  bench.point('m', { a: 1 })
  bench.point('m', { a: 2 })
  bench.point('m', { a: 3 })
  bench.reload({ default_max_series: 1, on_limit: 'drop' })
  assert.equal(bench.point('m', { a: 2 }), '')
  assert.equal(bench.point('m', { a: 3 }), 'series_limit')
  assert.equal(bench.counters['m dropped'], 2)
  bench.reload({ default_max_series: 3 })
  assert.equal(bench.point('m', { a: 3 }), '')
  assert.equal(bench.point('m', { a: 4 }), 'cardinality')
})

test('a reload that is given up harms nothing', () => {
  const bench = new Bench({ default_max_series: 2 })
  bench.point('m', { a: 1 })
  const { stage } = bench
  bench.reload({ default_max_series: 1 })
  bench.stage = stage
  assert.equal(bench.point('n', { a: 1 }), '')
  assert.equal(bench.point('m', { a: 2 }), '')
  assert.equal(bench.point('m', { a: 3 }), 'cardinality')
})

test('it warns from 80 % on, and names the label that has the values', () => {
  const bench = new Bench({ default_max_series: 1000 })
  bench.flood('m', 'user.id', 0, 799)
  assert.equal(bench.stage.warning, '')
  bench.flood('m', 'user.id', 799, 900)
  const nearly = /^metric m: attribute user\.id has about \d+ values \(900 of 1,000 series\)$/
  assert.match(bench.stage.warning!, nearly)
  bench.flood('m', 'user.id', 0, 48_000)
  const told =
    /^metric m: attribute user\.id has about (\d\d,000) values \(limit 1,000 series, 47,000 points over it\)$/
  const values = told.exec(bench.stage.warning!)?.[1] ?? bench.stage.warning!
  assert.ok(Math.abs(Number(values.replace(',', '')) - 48_000) < 8_000, values)
})

test('where resources make the series, it says so', () => {
  const bench = new Bench({ default_max_series: 100 })
  for (let pid = 0; pid < 5000; pid++) bench.point('m', { method: 'GET' }, resource({ 'process.pid': pid }))
  assert.match(bench.stage.warning!, /^metric m: about (4|5)[\d,]+ resources report it \(limit 100 series/)
})

test('ten minutes after the last loss the warning is gone, where there is room again', () => {
  const bench = new Bench({ default_max_series: 100, series_ttl: 60_000 })
  bench.flood('m', 'user', 0, 200)
  bench.nowMs += 300_000
  bench.point('n', {})
  assert.match(bench.stage.warning!, /^metric m: .*100 points over it/)
  bench.nowMs += 300_000
  bench.point('n', {})
  assert.equal(bench.stage.warning, '')
})

test('a metric that is forgotten while it is told again owns its new series', () => {
  const bench = new Bench({ default_max_series: 5, series_ttl: 60_000 })
  bench.flood('m', 'user', 0, 5)
  bench.nowMs += 3_600_000
  assert.deepEqual(bench.flood('m', 'user', 0, 5), [''])
  assert.deepEqual(bench.flood('n', 'user', 0, 5), [''])
  assert.equal(bench.point('m', { user: 'more' }), 'cardinality')
  bench.nowMs += 3_600_000
  assert.deepEqual(bench.flood('n', 'user', 5, 10), [''])
  assert.deepEqual(bench.flood('m', 'user', 5, 10), [''])
  assert.equal(bench.counters[' series'], 10)
})

test('the three worst metrics are described, and the others only counted', () => {
  const bench = new Bench({ default_max_series: 10 })
  for (let i = 1; i <= 12; i++) bench.flood(`m${i}`, 'user', 0, 10 + i)
  const parts = bench.stage.warning!.split('; ')
  assert.equal(parts.length, 4)
  assert.match(parts[0]!, /^metric m12: .*12 points over it/)
  assert.match(parts[2]!, /^metric m10: /)
  assert.equal(parts[3], '9 more metrics near or above their limit')
})

test('counters name the fifty metrics that lost most', () => {
  const bench = new Bench({ default_max_series: 1 })
  for (let i = 0; i < 60; i++) bench.flood(`m${i}`, 'user', 0, 2 + i)
  const { counters } = bench
  assert.equal(Object.keys(counters).length, 52)
  assert.equal(counters['m59 dropped'], 60)
  assert.equal(counters['m9 dropped'], undefined)
  assert.equal(counters[' dropped'], (60 * 61) / 2)
})

test('a bomb of new series costs its own metric its room and nobody else anything', () => {
  const bench = new Bench({})
  const series = soak ? 3_000_000 : 1_000_000
  bench.flood('steady', 'user', 0, 500)
  assert.deepEqual(bench.flood('bomb', 'session.id', 0, 10_000), [''])
  const before = process.memoryUsage()
  assert.deepEqual(bench.flood('bomb', 'session.id', 10_000, series), ['cardinality'])
  const grown = process.memoryUsage().arrayBuffers - before.arrayBuffers
  assert.ok(grown < 1_000_000, `${grown} bytes of tables`)
  assert.deepEqual(bench.flood('steady', 'user', 0, 600), [''])
  const { counters } = bench
  assert.deepEqual([counters[' series'], counters['bomb dropped']], [10_600, series - 10_000])
  assert.match(bench.stage.warning!, /^metric bomb: attribute session\.id has about [\d,]{7,9} values/)
})

test('a bomb of metric names fills the global bound and no memory beyond', () => {
  const bench = new Bench({ global_max_series: 20_000 })
  bench.point('steady', { a: 1 })
  const metrics = soak ? 200_000 : 50_000
  for (let i = 0; i < metrics; i++) bench.point(`made.up.${i}`, {})
  assert.equal(bench.point('steady', { a: 1 }), '')
  assert.equal(bench.point('steady', { a: 2 }), 'cardinality')
  const { counters } = bench
  assert.deepEqual([counters[' series'], counters[' dropped']], [20_000, metrics + 2 - 20_000])
  assert.ok(Object.keys(counters).length <= 52)
  bench.nowMs += 86_400_000
  bench.point('steady', { a: 1 })
  bench.point('steady', { a: 2 })
  assert.equal(bench.counters[' series'], 2)
})
