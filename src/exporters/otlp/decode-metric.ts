import { Attributes } from '../../model/attributes.ts'
import type { HistogramPoint, Metric, NumberPoint } from '../../model/metric.ts'
import { AttributeReader, type Unfit } from './decode-value.ts'
import type { FieldCursor } from './field-cursor.ts'
import { messageSchema } from './schema-table.ts'

/** AGGREGATION_TEMPORALITY_DELTA. */
const delta = 1
/** DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK. */
const noRecordedValue = 1

/**
 * Makes a metric of the model, or several where the points of a histogram differ in their bounds. What the model has no
 * place for is left out and counted by its points.
 */
export function decodeMetric(cursor: FieldCursor, unfit: Unfit, visit: (metric: Metric) => void): void {
  const described = { name: '', description: '', unit: '' }
  const message = messageSchema('Metric')
  const made: ((to: typeof described) => Metric)[] = []
  for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
    switch (field.name) {
      case 'name':
        described.name = cursor.text()
        break
      case 'description':
        described.description = cursor.text()
        break
      case 'unit':
        described.unit = cursor.text()
        break
      case 'gauge': {
        const { points } = readNumbers(cursor.message(), 'Gauge', unfit)
        made.push(to => ({ ...to, kind: 'gauge', points }))
        break
      }
      case 'sum': {
        const sum = readNumbers(cursor.message(), 'Sum', unfit)
        made.push(to => ({ ...to, kind: 'sum', ...sum }))
        break
      }
      case 'histogram':
        for (const histogram of readHistograms(cursor.message(), unfit))
          made.push(to => ({ ...to, kind: 'histogram', ...histogram }))
        break
      case 'exponentialHistogram':
        leaveOut(cursor.message(), 'exponential histograms', unfit)
        break
      case 'summary':
        leaveOut(cursor.message(), 'summaries', unfit)
        break
      default:
        unfit.change('metadata of metrics, lost')
    }
  }
  for (const make of made) {
    const metric = make(described)
    if (metric.points.length > 0) visit(metric)
  }
}

function leaveOut(cursor: FieldCursor, what: string, unfit: Unfit): void {
  // Points are field 1 of every kind of data.
  const message = messageSchema('Summary')
  while (cursor.nextOf(message)) unfit.leaveOut(`points of ${what}`)
}

interface Numbers {
  points: NumberPoint[]
  monotonic: boolean
  /** Every point was an integer. */
  integer: boolean
}

function readNumbers(cursor: FieldCursor, name: 'Gauge' | 'Sum', unfit: Unfit): Numbers {
  const message = messageSchema(name)
  const numbers: Numbers = { points: [], monotonic: false, integer: true }
  let temporality = 0
  for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
    if (field.name === 'dataPoints') readNumberPoint(cursor.message(), numbers, unfit)
    else if (field.name === 'isMonotonic') numbers.monotonic = cursor.number().bool
    else temporality = cursor.number().int32
  }
  if (temporality === delta) numbers.points = withoutDeltas(numbers.points, unfit)
  return numbers
}

function withoutDeltas<T>(points: readonly T[], unfit: Unfit): T[] {
  if (points.length > 0) unfit.leaveOut('points of delta temporality', points.length)
  return []
}

function readNumberPoint(cursor: FieldCursor, numbers: Numbers, unfit: Unfit): void {
  const point = { attributes: new Attributes(), startUs: 0, timeUs: 0, value: 0 }
  const attributes = new AttributeReader(point.attributes, unfit)
  const message = messageSchema('NumberDataPoint')
  let kind: 'none' | 'integer' | 'double' = 'none'
  let flags = 0
  for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
    switch (field.name) {
      case 'attributes':
        attributes.add(cursor)
        break
      case 'startTimeUnixNano':
        point.startUs = cursor.number().nanosAsMicros
        break
      case 'timeUnixNano':
        point.timeUs = cursor.number().nanosAsMicros
        break
      case 'asDouble':
        point.value = cursor.number().double
        kind = 'double'
        break
      case 'asInt':
        point.value = cursor.number().int64
        kind = 'integer'
        break
      case 'flags':
        flags = cursor.number().uint32
        break
      default:
        unfit.change('exemplars, lost')
    }
  }
  if (kind === 'none' || (flags & noRecordedValue) !== 0) {
    unfit.leaveOut('points without a value')
    return
  }
  if (kind === 'double') numbers.integer = false
  else if (!Number.isSafeInteger(point.value)) unfit.change('integers beyond 2^53, rounded')
  numbers.points.push(point)
}

interface HistogramPoints {
  readonly bounds: readonly number[]
  readonly points: HistogramPoint[]
}

/** Groups of points with equal bounds, which a histogram of the model shares. */
function readHistograms(cursor: FieldCursor, unfit: Unfit): Iterable<HistogramPoints> {
  const message = messageSchema('Histogram')
  const groups = new Map<string, HistogramPoints>()
  let temporality = 0
  for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
    if (field.name === 'dataPoints') readHistogramPoint(cursor.message(), groups, unfit)
    else temporality = cursor.number().int32
  }
  if (temporality !== delta) return groups.values()
  withoutDeltas(
    [...groups.values()].flatMap(({ points }) => points),
    unfit,
  )
  return []
}

function readHistogramPoint(cursor: FieldCursor, groups: Map<string, HistogramPoints>, unfit: Unfit): void {
  const buckets: number[] = []
  const bounds: number[] = []
  const point = { attributes: new Attributes(), startUs: 0, timeUs: 0, count: 0, sum: Number.NaN, buckets }
  const attributes = new AttributeReader(point.attributes, unfit)
  const message = messageSchema('HistogramDataPoint')
  let flags = 0
  for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
    switch (field.name) {
      case 'attributes':
        attributes.add(cursor)
        break
      case 'startTimeUnixNano':
        point.startUs = cursor.number().nanosAsMicros
        break
      case 'timeUnixNano':
        point.timeUs = cursor.number().nanosAsMicros
        break
      case 'count':
        point.count = cursor.number().uint64
        break
      case 'sum':
        point.sum = cursor.number().double
        break
      case 'bucketCounts':
        cursor.numbers(field, () => buckets.push(cursor.uint64))
        break
      case 'explicitBounds':
        cursor.numbers(field, () => bounds.push(cursor.double))
        break
      case 'flags':
        flags = cursor.number().uint32
        break
      case 'exemplars':
        unfit.change('exemplars, lost')
        break
      default:
        unfit.change('minima and maxima of histograms, lost')
    }
  }
  if ((flags & noRecordedValue) !== 0) {
    unfit.leaveOut('points without a value')
    return
  }
  if (Number.isNaN(point.sum)) unfit.change('histograms without a sum, which is NaN instead')
  const key = bounds.join()
  const group = groups.get(key)
  if (group === undefined) groups.set(key, { bounds, points: [point] })
  else group.points.push(point)
}
