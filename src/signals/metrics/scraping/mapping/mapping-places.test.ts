import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { scrapeUs } from '../../../../../test/helpers/mapping-cases.ts'
import { assertSamePlaces } from '../../../../../test/helpers/mapping-places.ts'
import { soak } from '../../../../../test/helpers/soak.ts'
import type { FamilyType } from '../exposition.ts'
import { type MappedSeries, mapFamily, staleMetrics } from './map-family.ts'
import { startUsOf } from './start-time.ts'

const numRuns = soak ? 100_000 : 3000

const label = fc.tuple(
  fc.constantFrom('a', 'b', 'le', 'quantile', 'job', 'instance', 'otel_scope_name', 'otel_scope_x', 'é.ü'),
  fc.constantFrom('', '1', '0.5', '+Inf', '1.0', 'x'),
)

/** Such as make sense for counts, that do not, and that are starts. */
const value = fc.oneof(
  { weight: 6, arbitrary: fc.nat(20) },
  { weight: 1, arbitrary: fc.double() },
  { weight: 1, arbitrary: fc.constantFrom(1.6e9, 1.8e9, 2 ** 53, 2 ** 53 + 2, -0) },
)

const timeUs = fc.oneof(
  { weight: 5, arbitrary: fc.constant(scrapeUs) },
  fc.constantFrom(1, 1.6e15, 1.65e15 + 0.5),
)

const series: fc.Arbitrary<MappedSeries> = fc.record({
  name: fc.constantFrom('f', 'f_bucket', 'f_count', 'f_sum', 'f_total', 'f_created', 'g', 'target_info'),
  labels: fc.array(label, { maxLength: 4 }).map(entries => new Map(entries)),
  value,
  timeUs,
})

/** One histogram that does not contradict itself, its lines in any order. */
const histogram: fc.Arbitrary<MappedSeries[]> = fc
  .tuple(
    fc.constantFrom('1', '2', '3'),
    fc.array(fc.nat(9), { maxLength: 4 }),
    fc.record({ sum: fc.boolean(), last: fc.boolean(), created: fc.boolean() }),
  )
  .chain(([a, counts, has]) => {
    const lines: MappedSeries[] = []
    const line = (name: string, value: number, le?: string) =>
      lines.push({
        name: `f_${name}`,
        labels: new Map([['a', a], ...(le === undefined ? [] : [['le', le] as const])]),
        value,
        timeUs: scrapeUs,
      })
    let count = 0
    for (const [i, own] of counts.entries()) {
      count += own
      line('bucket', count, String(i / 2))
    }
    if (has.last) line('bucket', count, '+Inf')
    if (has.sum) line('sum', 2.5 * count)
    if (has.created) line('created', 1.6e9)
    line('count', count)
    return fc.shuffledSubarray(lines, { minLength: lines.length })
  })

const lines = fc.oneof(
  fc.array(series, { maxLength: 12 }),
  fc.array(histogram, { maxLength: 4 }).map(all => all.flat()),
)

const types: readonly FamilyType[] = [
  'unknown',
  'counter',
  'gauge',
  'histogram',
  'histogram',
  'gaugehistogram',
  'summary',
  'info',
  'stateset',
]

/** Its own counts are exact, and their sum is not. */
const tooMany: MappedSeries[] = [
  { name: 'f_count', labels: new Map(), value: 2 ** 53 + 2, timeUs: scrapeUs },
  { name: 'f_bucket', labels: new Map([['le', '1.0']]), value: 1, timeUs: 1 },
]

test('a family made of places is, with its numbers, the one made of values', () => {
  let whole = 0
  fc.assert(
    fc.property(fc.constantFrom(...types), lines, (type, series) => {
      const family = { name: 'f', type, help: 'Help.', unit: 'seconds' }
      const values = mapFamily({ family, series, numbers: 'values' })
      assertSamePlaces(family, series, values, type)
      whole += values.metrics.filter(({ metric }) => metric.points.length > 0).length
    }),
    { numRuns, examples: [['histogram', tooMany]] },
  )
  assert.ok(whole > numRuns / 4, `${whole} metrics came of it`)
})

test('what ends are the points that were made, and no others', () => {
  const keys = (metrics: ReturnType<typeof staleMetrics>) =>
    metrics
      .flatMap(({ identity, scope, metric: { name, kind, points } }) =>
        points.map(({ attributes }) => JSON.stringify([identity, scope, kind, name, attributes.toObject()])),
      )
      .sort()
  fc.assert(
    fc.property(fc.constantFrom(...types), lines, (type, series) => {
      const family = { name: 'f', type, help: '', unit: '' }
      const made = mapFamily({ family, series, numbers: 'places' })
      assert.deepEqual(keys(staleMetrics({ family, series }, 5)), keys(made.metrics))
    }),
    { numRuns },
  )
})

test('a start is in microseconds, and not after its point', () => {
  const check = (seconds: number, timeUs: number, want: number) =>
    assert.equal(startUsOf(seconds, timeUs), want)
  check(1.6e9, 1.7e15, 1.6e15)
  check(1600000000.123456, 1.7e15, 1600000000123456)
  check(1.7e9, 1.7e15, 1.7e15)
  check(1.7000001e9, 1.7e15, 0)
  check(1.7000001e9, 0, 1.7000001e15)
  check(0, 1.7e15, 0)
  check(-1, 1.7e15, 0)
  check(1e-9, 1.7e15, 0)
  check(Number.NaN, 1.7e15, 0)
  check(Number.POSITIVE_INFINITY, 0, 0)
  check(1e300, 0, 0)
})
