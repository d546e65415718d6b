// owns: process
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { heapAllocated } from '../../test/helpers/heap.ts'
import { decodeRequest } from '../../test/helpers/otlp-proto.ts'
import { placed, readMetric, withoutZeros } from '../../test/helpers/placed-metric.ts'
import { installKey } from '../../test/helpers/processor-stage.ts'
import { silentLogger } from '../../test/helpers/silent-logger.ts'
import { soak } from '../../test/helpers/soak.ts'
import { Attributes } from '../foundation/model/attributes.ts'
import type { Batch } from '../foundation/model/batch.ts'
import type { Metric } from '../foundation/model/metric.ts'
import type { PreparedMetric } from '../foundation/model/prepared-metric.ts'
import { resource, type Scope } from '../foundation/model/resource.ts'
import { branch, build } from '../foundation/schema/tree.ts'
import { Batcher, type BatchLimits } from './batcher.ts'
import { metricEncoding } from './exporters/otlp/encode-metric.ts'
import { RequestBuilder } from './exporters/otlp/request.ts'
import { Account } from './ledger.ts'
import { type Chain, type ChainSettings, compileChain } from './processors/chain.ts'
import { limits } from './processors/limit-settings.ts'
import { redaction } from './processors/redact/settings.ts'
import { transformation } from './processors/transform/settings.ts'

const defaults = build(branch('', { limits, pii_redaction: redaction, transform: transformation }), new Map())
const scopes: readonly Scope[] = [
  { name: 'svc/test', version: '1' },
  { name: 'of a library', version: '' },
]
const resources = [
  resource({ 'service.name': 'shop', owner: 'bob@example.com' }),
  resource({ 'service.name': 'bank', internal: true }),
]
const room: BatchLimits = { maxItems: 1e6, maxBytes: 1 << 20, timeoutMs: 60_000, aloneBytes: 1 << 20 }

let nowMs = 1000
const env = { log: silentLogger, installKey: () => installKey, nowMs: () => nowMs }

type MetricsChain = Chain<Metric> | undefined

function chainOf(
  settings: ChainSettings,
  before?: MetricsChain,
  temporality: 'cumulative' | 'delta' = 'cumulative',
) {
  return compileChain('metrics', settings, env, { temporality }, before)
}

function open(process: MetricsChain, within: BatchLimits = room) {
  const account = new Account()
  const batches: Batch[] = []
  const batcher = new Batcher<Metric>({
    builder: new RequestBuilder(metricEncoding),
    account,
    count: metric => metric.points.length,
    divide: halves,
    out: batch => batches.push(batch),
  })
  batcher.accept(within, process)
  return { batcher, account, batches }
}

function halves(metric: Metric): readonly [Metric, Metric] | undefined {
  const { points } = metric
  if (points.length < 2) return undefined
  const half = points.length >> 1
  const part = (from: number, to: number) => ({ ...metric, points: points.slice(from, to) }) as Metric
  return [part(0, half), part(half, points.length)]
}

// biome-ignore lint/suspicious/noExplicitAny: whatever protobufjs makes of it
type Decoded = any

/** Every point with all that it belongs to, in an order of its own: requests may be cut elsewhere. */
function pointsOf(batches: readonly Batch[]): string[] {
  const points: string[] = []
  for (const { body } of batches)
    for (const { resource: of, scopeMetrics } of (decodeRequest('metrics', body) as Decoded).resourceMetrics)
      for (const { scope, metrics } of scopeMetrics)
        for (const { name, description, unit, metadata, ...data } of metrics) {
          const [kind, { dataPoints, ...shared }] = Object.entries<Decoded>(data)[0]!
          for (const point of dataPoints)
            points.push(
              text([of, scope, name, description, unit, metadata, kind, shared, withoutZeros(point)]),
            )
        }
  return points.sort()
}

/** JSON has no NaN and no infinity. */
function text(value: unknown): string {
  return JSON.stringify(value, (_key, each) =>
    typeof each === 'number' ? `${each} ${Object.is(each, -0)}` : each,
  )
}

const rule = { enabled: true, match: {}, actions: [] }
const emptyMatch = {
  signal_types: [],
  metric_names: [],
  span_names: [],
  span_kinds: [],
  span_status: 'any',
  log_bodies: [],
  min_severity: 0,
  attributes: {},
  resource_attributes: {},
}
const drop = { type: 'drop', on: 'item' }
const rules = [
  { ...rule, name: 'by name', match: { ...emptyMatch, metric_names: ['m1'] }, actions: [drop] },
  { ...rule, name: 'by series', match: { ...emptyMatch, attributes: { path: '/1' } }, actions: [drop] },
  {
    ...rule,
    name: 'less',
    match: emptyMatch,
    actions: [{ type: 'delete_attribute', on: 'item', delete_attribute: { key: 'path' } }],
  },
  {
    ...rule,
    name: 'resource',
    match: { ...emptyMatch, resource_attributes: { internal: 'true' } },
    actions: [{ type: 'drop', on: 'resource' }],
  },
]

const settings = fc
  .record({
    max_attributes: fc.constantFrom(1, 2, 128),
    max_attribute_value_size: fc.constantFrom(3, 4096),
    cardinality: fc.boolean(),
    default_max_series: fc.constantFrom(1, 3, 10, 10_000),
    on_limit: fc.constantFrom('overflow', 'drop'),
    redact: fc.boolean(),
    rate: fc.boolean(),
    metrics_per_second: fc.constantFrom(5, 50, 1_000_000),
    rules: fc.subarray(rules),
  })
  .map(chosen => ({
    enabled: true,
    transform: { enabled: true, rules: chosen.rules } as unknown as ChainSettings['transform'],
    limits: {
      attributes: { ...defaults.limits.attributes, ...chosen, enabled: true },
      cardinality: { ...defaults.limits.cardinality, ...chosen, enabled: chosen.cardinality },
      rate: { ...defaults.limits.rate, metrics_per_second: chosen.metrics_per_second, enabled: chosen.rate },
    } as ChainSettings['limits'],
    pii_redaction: { ...defaults.pii_redaction, enabled: chosen.redact },
  }))

function withoutRate(chosen: ChainSettings): ChainSettings {
  const { limits } = chosen
  return { ...chosen, limits: { ...limits, rate: { ...limits.rate, enabled: false } } }
}

interface Family {
  readonly of: number
  readonly within: number
  readonly metric: Metric
}

const families: fc.Arbitrary<Family[]> = fc
  .array(
    fc.record({ of: fc.nat(1), within: fc.nat(1), metric: readMetric, many: fc.constantFrom(1, 1, 3, 40) }),
    { minLength: 1, maxLength: 4 },
  )
  .map(list =>
    list.map(({ of, within, metric, many }, i) => {
      const [first] = metric.points
      // Series that differ, some of them with what is to be redacted or dropped.
      const points = Array.from({ length: many }, (_, n) => {
        const more = { path: `/${n}`, mail: `bob${n}@example.com` }
        return { ...first!, attributes: Attributes.of({ ...first!.attributes.toObject(), ...more }) }
      })
      return { of, within, metric: { ...metric, name: `m${i}`, points } as Metric }
    }),
  )

/** The same metric with other numbers. */
function later(metric: Metric, round: number): Metric {
  const points = (metric.points as readonly object[]).map(point => {
    const changed: Record<string, unknown> = { ...point }
    if ('value' in point) changed.value = Number(point.value) + round
    if ('sum' in point && point.sum !== undefined) changed.sum = Number(point.sum) * round
    if ('buckets' in point && (point.buckets as number[]).length > 0) {
      const buckets = (point.buckets as number[]).map(count => count + round)
      Object.assign(changed, { buckets, count: buckets.reduce((sum, each) => sum + each, 0) })
    }
    return changed
  })
  return { ...metric, points } as unknown as Metric
}

test('what is sent prepared is what is sent whole, and both ledgers agree', () => {
  let sent = 0
  fc.assert(
    fc.property(
      families,
      // A metric that the rate drops whole does not take room for its series, which is seen after a reload alone.
      fc.oneof(
        fc.tuple(settings),
        fc.tuple(settings, settings).map(both => both.map(withoutRate)),
      ),
      fc.constantFrom(700, 2000, 20_000, 1 << 20),
      fc.constantFrom(3, 50, 1e6),
      fc.constantFrom('cumulative' as const, 'delta' as const),
      (list, reloads, maxBytes, maxItems, temporality) => {
        const within = { ...room, maxBytes, maxItems, aloneBytes: maxBytes * 2 }
        let wholeChain: MetricsChain
        let preparedChain: MetricsChain
        const whole = open(undefined, within)
        const prepared = open(undefined, within)
        const kept = new Map<Family, PreparedMetric | undefined>()
        for (const [reload, chosen] of reloads.entries()) {
          wholeChain = chainOf(chosen, wholeChain, temporality)
          preparedChain = chainOf(chosen, preparedChain, temporality)
          whole.batcher.accept(within, wholeChain)
          prepared.batcher.accept(within, preparedChain)
          for (let round = 1; round < 4; round++) {
            nowMs += 500
            for (const family of list) {
              const of = resources[family.of]!
              const scope = scopes[family.within]!
              const sentUs = 1e15 + (reload * 10 + round) * 1e6
              const now = placed(later(family.metric, reload * 10 + round), sentUs)
              whole.batcher.add(of, scope, now.wanted)
              let mine = kept.get(family)
              let state = mine === undefined ? 'old' : prepared.batcher.send(mine, now.values, sentUs)
              if (state === 'old') {
                mine = prepared.batcher.prepare(of, scope, now.placed)
                kept.set(family, mine)
                if (mine !== undefined) state = prepared.batcher.send(mine, now.values, sentUs)
              }
              if (state === 'sent') sent++
              else prepared.batcher.add(of, scope, now.wanted)
            }
          }
        }
        whole.batcher.cut()
        prepared.batcher.cut()
        assert.deepEqual(pointsOf(prepared.batches), pointsOf(whole.batches))
        assert.deepEqual(prepared.account, whole.account)
        const sum = (batches: readonly Batch[]) => batches.reduce((items, batch) => items + batch.items, 0)
        assert.equal(prepared.account.queued, sum(prepared.batches))
        for (const { body, items } of prepared.batches) assert.ok(body.length <= maxBytes || items === 1)
      },
    ),
    { numRuns: soak ? 3000 : 150 },
  )
  assert.ok(sent > 100, String(sent))
})

const described = { name: 'm', description: '', unit: '' }
const shop = resources[0]!
const [scope] = scopes as [Scope]

function gauge(...places: number[]): Metric & { kind: 'gauge' } {
  const points = places.map(value => ({
    attributes: Attributes.of({ value }),
    startUs: 0,
    timeUs: 0,
    value,
  }))
  return { ...described, kind: 'gauge', points }
}

function histogram(count: number): Metric & { kind: 'histogram' } {
  const points = [{ attributes: new Attributes(), startUs: 0, timeUs: 0, count, sum: 0, buckets: [0, 1] }]
  return { ...described, kind: 'histogram', bounds: [1], points }
}

const plain: ChainSettings = { enabled: true, ...defaults }

test('what was prepared is old after a reload that changed something, and only then', () => {
  const first = chainOf(plain)
  const { batcher, batches } = open(first)
  const values = Float64Array.of(1, 2)
  const prepared = batcher.prepare(shop, scope, gauge(0, 1))!
  batcher.accept(room, first)
  assert.equal(batcher.send(prepared, values, 1), 'sent')
  batcher.accept(room, chainOf(plain, first))
  assert.equal(batcher.send(prepared, values, 1), 'old')
  const again = batcher.prepare(shop, scope, gauge(0, 1))!
  assert.equal(batcher.send(again, values, 1), 'sent')
  batcher.cut()
  assert.deepEqual(
    batches.map(({ items }) => items),
    [2, 2],
  )
})

test('what is refused is counted by all its points, and is old when it is accepted again', () => {
  const chain = chainOf(plain)
  const { batcher, account } = open(chain)
  const accepted = batcher.prepare(shop, scope, gauge(0, 1))!
  batcher.refuse('unimplemented', chain)
  const refused = batcher.prepare(shop, scope, gauge(0, 1))!
  const values = Float64Array.of(1, 2)
  assert.deepEqual(
    [accepted, refused].map(each => batcher.send(each, values, 1)),
    ['sent', 'sent'],
  )
  assert.deepEqual([account.collected, account.queued, ...account.dropped], [4, 0, ['unimplemented', 4]])
  batcher.accept(room, chain)
  assert.deepEqual(
    [accepted, refused].map(each => batcher.send(each, values, 1)),
    ['old', 'old'],
  )
  assert.equal(account.collected, 4)
})

test('a receiver that takes less has all parts made anew, so that they fit', () => {
  const { batcher, account, batches } = open(undefined)
  const metric = gauge(...Array.from({ length: 100 }, (_, place) => place))
  const values = new Float64Array(100)
  const large = batcher.prepare(shop, scope, metric)!
  assert.equal(large.parts.length, 1)
  batcher.accept({ ...room, maxBytes: 1000 })
  assert.equal(batcher.send(large, values, 1), 'old')
  const small = batcher.prepare(shop, scope, metric)!
  assert.equal(batcher.send(small, values, 1), 'sent')
  batcher.cut()
  assert.ok(batches.length > 3)
  for (const { body } of batches) assert.ok(body.length <= 1000, String(body.length))
  assert.deepEqual([account.collected, account.queued, account.dropped.size], [100, 100, 0])
})

test('a point that no request has room for goes alone, or is counted', () => {
  const { batcher, account, batches } = open(undefined, { ...room, maxBytes: 1000, aloneBytes: 5000 })
  const [point] = gauge(0).points
  for (const length of [3000, 10_000]) {
    const attributes = Attributes.of({ long: 'x'.repeat(length) })
    const long = { ...gauge(), points: [{ ...point!, attributes }] }
    assert.equal(batcher.send(batcher.prepare(shop, scope, long)!, Float64Array.of(1), 1), 'sent')
  }
  assert.deepEqual(
    batches.map(({ items }) => items),
    [1],
  )
  assert.deepEqual([account.collected, ...account.dropped], [2, ['too_large', 1]])
})

test('numbers that contradict each other send nothing, not even of other parts', () => {
  const { batcher, account, batches } = open(undefined, { ...room, maxBytes: 1500 })
  const point = { ...histogram(1).points[0]!, attributes: Attributes.of({ long: 'x'.repeat(700) }) }
  const metric = { ...histogram(1), points: [point, { ...point, buckets: [2, 3], count: 3 }] }
  const prepared = batcher.prepare(shop, scope, metric)!
  assert.equal(prepared.parts.length, 2)
  assert.equal(batcher.send(prepared, Float64Array.of(1, 2, 2, 1), 1), 'unfit')
  batcher.cut()
  assert.deepEqual([batches.length, account.collected], [0, 0])
  assert.equal(batcher.send(prepared, Float64Array.of(1, 2, 1, 2), 1), 'sent')
  assert.equal(account.collected, 2)
  batcher.cut()
})

test('a verdict on series is asked for again in time', async () => {
  const { cardinality, attributes, rate } = plain.limits
  const limits = { attributes, rate, cardinality: { ...cardinality, series_ttl: 1000 } }
  const { batcher } = open(chainOf({ ...plain, limits }))
  const prepared = batcher.prepare(shop, scope, gauge(0))!
  const values = Float64Array.of(1)
  while (batcher.send(prepared, values, 1) === 'sent') await new Promise(resolve => setTimeout(resolve, 10))
  assert.equal(batcher.send(prepared, values, 1), 'old')
  batcher.cut()
})

test('what somebody watches comes whole each time, and not when nobody does any longer', () => {
  for (const refusal of ['', 'unimplemented'] as const) {
    const batcher = new Batcher<Metric>({
      builder: new RequestBuilder(metricEncoding),
      account: new Account(),
      count: metric => metric.points.length,
      out: () => undefined,
    })
    batcher.accept(room)
    if (refusal !== '') batcher.refuse(refusal)
    const prepared = batcher.prepare(shop, scope, gauge(0))!
    const values = Float64Array.of(1)
    assert.equal(batcher.send(prepared, values, 1), 'sent')
    const unwatch = batcher.watch(() => undefined)
    assert.equal(batcher.send(prepared, values, 1), 'old')
    assert.equal(batcher.prepare(shop, scope, gauge(0)), undefined)
    unwatch()
    assert.equal(batcher.send(batcher.prepare(shop, scope, gauge(0))!, values, 1), 'sent')
    batcher.cut()
  }
})

test('sending what was prepared allocates nothing for its points', () => {
  const { batcher } = open(chainOf(plain), { ...room, maxItems: 1e9, maxBytes: 1e9 })
  const prepared = batcher.prepare(shop, scope, gauge(...Array.from({ length: 100 }, (_, place) => place)))!
  const values = new Float64Array(100)
  const send = (times: number) => {
    for (let i = 0; i < times; i++) batcher.send(prepared, values, i)
    batcher.cut()
  }
  send(2000)
  const allocated = heapAllocated(() => {
    for (let i = 0; i < 1000; i++) batcher.send(prepared, values, i)
  })
  batcher.cut()
  const perSend = allocated / 1000
  // A single number on the heap takes 16.
  assert.ok(perSend < 800, `${perSend} bytes for 100 points`)
})
