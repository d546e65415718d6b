import { Attributes } from '../../model/attributes.ts'
import type {
  ExponentialHistogramPoint,
  HistogramPoint,
  Metric,
  NumberPoint,
  Temporality,
} from '../../model/metric.ts'
import { AttributeReader, readInteger, type Unfit } from './decode-value.ts'
import type { FieldCursor } from './field-cursor.ts'
import { messageSchema } from './schema-table.ts'

/** AGGREGATION_TEMPORALITY_DELTA. */
const delta = 1
/** DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK. */
const noRecordedValue = 1

const noSum = 'histograms without a sum, which is NaN instead'

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
        const { points } = readNumbers(cursor.message(), unfit)
        made.push(to => ({ ...to, kind: 'gauge', points }))
        break
      }
      case 'sum': {
        const sum = readNumbers(cursor.message(), unfit)
        made.push(to => ({ ...to, kind: 'sum', ...sum }))
        break
      }
      case 'histogram':
        for (const histogram of readHistograms(cursor.message(), unfit))
          made.push(to => ({ ...to, kind: 'histogram', ...histogram }))
        break
      case 'exponentialHistogram': {
        const exponential = readExponential(cursor.message(), unfit)
        made.push(to => ({ ...to, kind: 'exponential_histogram', ...exponential }))
        break
      }
      case 'summary':
        leaveOutSummary(cursor.message(), unfit)
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

function leaveOutSummary(cursor: FieldCursor, unfit: Unfit): void {
  const message = messageSchema('Summary')
  while (cursor.nextOf(message)) unfit.leaveOut('points of summaries')
}

/** What is not told, or not known, is cumulative. */
function temporalityOf(number: number): Temporality {
  return number === delta ? 'delta' : undefined
}

interface Numbers {
  readonly points: NumberPoint[]
  monotonic: boolean
  temporality: Temporality
  /** Some point was an integer: the others stay doubles by their fraction. */
  integer: boolean
}

/** Points of a sum, or of a gauge, which is one without the other fields. */
function readNumbers(cursor: FieldCursor, unfit: Unfit): Numbers {
  const message = messageSchema('Sum')
  const numbers: Numbers = { points: [], monotonic: false, temporality: undefined, integer: false }
  for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
    if (field.name === 'dataPoints') readNumberPoint(cursor.message(), numbers, unfit)
    else if (field.name === 'isMonotonic') numbers.monotonic = cursor.number().bool
    else numbers.temporality = temporalityOf(cursor.number().int32)
  }
  return numbers
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
        point.value = readInteger(cursor.number(), unfit)
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
  if (kind === 'integer') numbers.integer = true
  numbers.points.push(point)
}

interface HistogramPoints {
  readonly bounds: readonly number[]
  readonly points: HistogramPoint[]
}

/** Groups of points with equal bounds, which a histogram of the model shares. */
function readHistograms(
  cursor: FieldCursor,
  unfit: Unfit,
): (HistogramPoints & { temporality: Temporality })[] {
  const message = messageSchema('Histogram')
  const groups = new Map<string, HistogramPoints>()
  let temporality: Temporality
  for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
    if (field.name === 'dataPoints') readHistogramPoint(cursor.message(), groups, unfit)
    else temporality = temporalityOf(cursor.number().int32)
  }
  return [...groups.values()].map(group => ({ ...group, temporality }))
}

function readHistogramPoint(cursor: FieldCursor, groups: Map<string, HistogramPoints>, unfit: Unfit): void {
  const buckets: number[] = []
  const bounds: number[] = []
  const point = { attributes: new Attributes(), startUs: 0, timeUs: 0, count: 0, sum: Number.NaN, buckets }
  const attributes = new AttributeReader(point.attributes, unfit)
  const message = messageSchema('HistogramDataPoint')
  let flags = 0
  let hasSum = false
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
        hasSum = true
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
  if (!hasSum) unfit.change(noSum)
  const key = bounds.join()
  const group = groups.get(key)
  if (group === undefined) groups.set(key, { bounds, points: [point] })
  else group.points.push(point)
}

interface ExponentialPoints {
  readonly points: ExponentialHistogramPoint[]
  temporality: Temporality
}

function readExponential(cursor: FieldCursor, unfit: Unfit): ExponentialPoints {
  const message = messageSchema('ExponentialHistogram')
  const read: ExponentialPoints = { points: [], temporality: undefined }
  for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
    if (field.name === 'dataPoints') readExponentialPoint(cursor.message(), read.points, unfit)
    else read.temporality = temporalityOf(cursor.number().int32)
  }
  return read
}

function readExponentialPoint(cursor: FieldCursor, points: ExponentialHistogramPoint[], unfit: Unfit): void {
  const point: Mutable<ExponentialHistogramPoint> = {
    attributes: new Attributes(),
    startUs: 0,
    timeUs: 0,
    count: 0,
    sum: Number.NaN,
    scale: 0,
    zeroCount: 0,
    positive: { offset: 0, counts: [] },
    min: undefined,
    max: undefined,
  }
  const attributes = new AttributeReader(point.attributes, unfit)
  const message = messageSchema('ExponentialHistogramDataPoint')
  let flags = 0
  let hasSum = false
  let hasNegative = false
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
        hasSum = true
        break
      case 'scale':
        point.scale = cursor.number().sint32
        break
      case 'zeroCount':
        point.zeroCount = cursor.number().uint64
        break
      case 'positive':
        point.positive = readBuckets(cursor.message())
        break
      case 'negative':
        hasNegative = readBuckets(cursor.message()).counts.some(count => count > 0)
        break
      case 'flags':
        flags = cursor.number().uint32
        break
      case 'min':
        point.min = cursor.number().double
        break
      case 'max':
        point.max = cursor.number().double
        break
      case 'zeroThreshold':
        if (cursor.number().double !== 0) unfit.change('thresholds of zero, lost')
        break
      default:
        unfit.change('exemplars, lost')
    }
  }
  if (hasNegative) unfit.leaveOut('points of exponential histograms with negative values')
  else if ((flags & noRecordedValue) !== 0) unfit.leaveOut('points without a value')
  else {
    if (!hasSum) unfit.change(noSum)
    points.push(point)
  }
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

function readBuckets(cursor: FieldCursor): { offset: number; counts: number[] } {
  const message = messageSchema('Buckets')
  const buckets = { offset: 0, counts: [] as number[] }
  for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
    if (field.name === 'offset') buckets.offset = cursor.number().sint32
    else cursor.numbers(field, () => buckets.counts.push(cursor.uint64))
  }
  return buckets
}
