// Families whose numbers are places in an array, beside the same with their values.

import assert from 'node:assert/strict'
import type { HistogramPoint, Metric, NumberPoint, SummaryPoint } from '../../src/foundation/model/metric.ts'
import { metricTemplate } from '../../src/pipeline/exporters/otlp/metric-template.ts'
import {
  type MappedFamily,
  type MappedSeries,
  mapFamily,
} from '../../src/signals/metrics/scraping/mapping/map-family.ts'
import type { FamilyMetadata } from '../../src/signals/metrics/scraping/mapping/mapped-family.ts'
import { writeStarts } from '../../src/signals/metrics/scraping/mapping/start-time.ts'
import { scrapeUs } from './mapping-cases.ts'

/** Fails where a family made of places and filled is not that of values, nor says that its numbers contradict. */
export function assertSamePlaces(
  family: FamilyMetadata,
  series: readonly MappedSeries[],
  want: MappedFamily,
  title: string,
): void {
  const input = placed(family, series)
  const mapped = mapFamily({ family, series: input.series, numbers: 'places', startsAt: input.startsAt })
  const values = input.values(mapped.starts.length)
  writeStarts(mapped.starts, values, input.startsAt, scrapeUs)
  assert.equal(mapped.metrics.length, want.metrics.length, title)
  assert.deepEqual(mapped.targetInfo, want.targetInfo, title)
  for (const [i, { identity, scope, metric }] of mapped.metrics.entries()) {
    const other = want.metrics[i]!
    assert.deepEqual(identity, other.identity, title)
    assert.equal(scope, other.scope, title)
    const whole = filled(metric, values)
    const bytes = metricTemplate(metric)!.fill(values, scrapeUs)
    assert.equal(bytes === undefined, whole === undefined, title)
    if (whole !== undefined) assert.deepEqual(whole, other.metric, title)
    else assert.ok(other.metric.points.length < metric.points.length, title)
  }
}

/** A family with the series of its values, as places, and the array in which they stand. */
interface PlacedInput {
  readonly family: FamilyMetadata
  readonly series: MappedSeries[]
  readonly startsAt: number
  readonly values: (starts: number) => Float64Array
}

/** Puts values and times of series into places: first all values, then all times. */
function placed(family: FamilyMetadata, series: readonly MappedSeries[]): PlacedInput {
  const { length } = series
  return {
    family,
    series: series.map((one, i) => ({
      ...one,
      value: i,
      timeUs: one.timeUs === scrapeUs ? 0 : 1 + length + i,
    })),
    startsAt: 2 * length,
    values: starts => {
      const values = new Float64Array(2 * length + starts)
      for (const [i, one] of series.entries()) {
        values[i] = one.value
        values[length + i] = one.timeUs
      }
      return values
    },
  }
}

/** A placed metric with its numbers; undefined where a count contradicts the others (`MetricTemplate.fill`). */
function filled(metric: Metric, values: Float64Array): Metric | undefined {
  const time = (place: number) => (place === 0 ? 0 : values[place - 1]!)
  const isCount = (value: number) => value >= 0 && value <= 2 ** 53 && Number.isInteger(value)
  let fits = true
  const points = metric.points.map(point => {
    const times = { startUs: time(point.startUs), timeUs: time(point.timeUs) || scrapeUs }
    if (metric.kind === 'histogram') {
      const { count, sum, buckets } = point as HistogramPoint
      const cumulative = Array.from(buckets, place => values[place]!)
      const own = cumulative.map((value, i) => value - (cumulative[i - 1] ?? 0))
      fits &&= own.every(isCount) && isCount(values[count]!) && cumulative.at(-1) === values[count]
      return {
        ...point,
        ...times,
        count: values[count]!,
        sum: sum === undefined ? sum : values[sum]!,
        buckets: own,
      }
    }
    if (metric.kind === 'summary') {
      const { count, sum, values: places } = point as SummaryPoint
      fits &&= isCount(values[count]!)
      const told = Array.from(places, place => values[place]!)
      return { ...point, ...times, count: values[count]!, sum: values[sum]!, values: told }
    }
    return { ...point, ...times, value: values[(point as NumberPoint).value]! }
  })
  return fits ? ({ ...metric, points } as Metric) : undefined
}
