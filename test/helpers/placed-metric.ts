// Metrics with places for their numbers, and what they are with the numbers.
import fc from 'fast-check'
import { Attributes } from '../../src/foundation/model/attributes.ts'
import type { Metric } from '../../src/foundation/model/metric.ts'
import type { PlacedMetric } from '../../src/foundation/model/prepared-metric.ts'
import * as arbitrary from './otlp-arbitrary.ts'

/** Of summaries. */
const zeros: ReadonlySet<string> = new Set(['sum', 'value'])

/** A decoded request without the zeros that only one of the two writes. */
export function withoutZeros(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutZeros)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(
    ([key, each]) => each !== '0' && !(zeros.has(key) && each === 0),
  )
  return Object.fromEntries(entries.map(([key, each]) => [key, withoutZeros(each)]))
}

type Point = Record<string, unknown> & { startUs: number; timeUs: number }

/** The same metric with places for its numbers, the numbers, and what it is at `sentUs`, which stands for times of 0. */
export function placed(
  metric: Metric,
  sentUs: number,
): { placed: PlacedMetric; values: Float64Array; wanted: Metric } {
  const values: number[] = []
  // Not from 0 on, so that a place is no number by chance.
  const place = (value: number) => values.push(value, Number.NaN) - 2
  const points: Point[] = []
  const wanted: Point[] = []
  for (const point of metric.points as unknown as readonly Point[]) {
    const copy: Point = { ...point }
    for (const key of ['value', 'count', 'sum'])
      if (typeof copy[key] === 'number') copy[key] = place(copy[key])
    if ('values' in point) copy.values = Array.from(point.values as number[], place)
    if ('buckets' in point) {
      let cumulative = 0
      copy.buckets = Array.from(point.buckets as number[], count => {
        cumulative += count
        return place(cumulative)
      })
    }
    copy.startUs = point.startUs === 0 ? 0 : place(point.startUs) + 1
    copy.timeUs = point.timeUs === 0 ? 0 : place(point.timeUs) + 1
    points.push(copy)
    wanted.push(point.timeUs === 0 ? { ...point, timeUs: sentUs } : point)
  }
  return {
    placed: { ...metric, points } as unknown as PlacedMetric,
    values: Float64Array.from(values),
    wanted: { ...metric, points: wanted } as unknown as Metric,
  }
}

const any = fc.oneof(fc.double(), fc.constantFrom(0, -0, Number.NaN, Infinity, -Infinity, 2 ** 60))
const common = { attributes: arbitrary.attributes, startUs: arbitrary.time, timeUs: arbitrary.time }
const described = {
  name: arbitrary.text,
  description: arbitrary.text,
  unit: fc.constantFrom('', 's'),
  metadata: fc.option(fc.constant(Attributes.of({ 'prometheus.type': 'gauge' })), { nil: undefined }),
}
const numbers = fc.array(fc.record({ ...common, value: any }), { minLength: 1, maxLength: 4 })
const histogramPoint = fc
  .record({
    ...common,
    sum: fc.option(any, { nil: undefined }),
    buckets: fc.array(fc.oneof(fc.nat(10), fc.nat(2 ** 31 - 1), fc.integer({ min: 0, max: 2 ** 48 })), {
      maxLength: 12,
    }),
    count: fc.maxSafeNat(),
  })
  .map(point => {
    const { buckets, count } = point
    return { ...point, count: buckets.length === 0 ? count : buckets.reduce((sum, each) => sum + each, 0) }
  })
/** A metric as it is read from a page: its numbers are doubles, its buckets add up to its count. */
export const readMetric: fc.Arbitrary<Metric> = fc.oneof(
  fc.record({ ...described, kind: fc.constant('gauge' as const), points: numbers }),
  fc.record({
    ...described,
    kind: fc.constant('sum' as const),
    monotonic: fc.boolean(),
    integer: fc.constant(false),
    points: numbers,
  }),
  fc.record({
    ...described,
    kind: fc.constant('histogram' as const),
    bounds: fc.array(fc.double({ noNaN: true }), { maxLength: 11 }),
    points: fc.array(histogramPoint, { minLength: 1, maxLength: 4 }),
  }),
  fc.record({
    ...described,
    kind: fc.constant('summary' as const),
    points: fc.array(
      fc
        .record({
          ...common,
          count: fc.maxSafeNat(),
          sum: any,
          pairs: fc.array(fc.tuple(fc.double({ min: 0, max: 1 }), any), { maxLength: 5 }),
        })
        .map(({ pairs, ...point }) => ({
          ...point,
          quantiles: pairs.map(([quantile]) => quantile),
          values: pairs.map(([, value]) => value),
        })),
      { minLength: 1, maxLength: 4 },
    ),
  }),
)
