import { Attributes } from '../../../foundation/model/attributes.ts'
import type {
  Exemplar,
  ExponentialHistogramPoint,
  HistogramPoint,
  Metric,
  NumberPoint,
  SummaryPoint,
  Temporality,
} from '../../../foundation/model/metric.ts'
import { AttributeReader, readInteger, type Unfit } from './decode-value.ts'
import type { FieldCursor } from './field-cursor.ts'
import { noRecordedValue } from './metric-fields.ts'
import { type FieldSchema, messageSchema } from './schema-table.ts'

/** AGGREGATION_TEMPORALITY_DELTA. */
const delta = 1

const noSum = 'exponential histograms without a sum, set to NaN'

/**
 * Decodes a metric, or several if the points of a histogram have different bounds. Data without a
 * counterpart in the model is dropped and counted by its points.
 */
export function decodeMetric(cursor: FieldCursor, unfit: Unfit, visit: (metric: Metric) => void): void {
  const metadata = new Attributes()
  const described = { name: '', description: '', unit: '', metadata: undefined as Attributes | undefined }
  const metadataReader = new AttributeReader(metadata, unfit)
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
      case 'summary': {
        const points = readSummary(cursor.message(), unfit)
        made.push(to => ({ ...to, kind: 'summary', points }))
        break
      }
      default:
        metadataReader.add(cursor)
        described.metadata = metadata
    }
  }
  for (const make of made) {
    const metric = make(described)
    if (metric.points.length > 0) visit(metric)
  }
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

function readSummary(cursor: FieldCursor, unfit: Unfit): SummaryPoint[] {
  const message = messageSchema('Summary')
  const points: SummaryPoint[] = []
  while (cursor.nextOf(message)) points.push(readSummaryPoint(cursor.message(), unfit))
  return points
}

function readSummaryPoint(cursor: FieldCursor, unfit: Unfit): SummaryPoint {
  const quantiles: number[] = []
  const values: number[] = []
  const attributes = new Attributes()
  const point: Mutable<SummaryPoint> = {
    attributes,
    startUs: 0,
    timeUs: 0,
    count: 0,
    sum: 0,
    quantiles,
    values,
  }
  const reader = new AttributeReader(attributes, unfit)
  const message = messageSchema('SummaryDataPoint')
  for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
    switch (field.name) {
      case 'quantileValues': {
        const { quantile, value } = readQuantile(cursor.message())
        quantiles.push(quantile)
        values.push(value)
        break
      }
      default:
        readCommon(field, cursor, point, reader, unfit)
    }
  }
  return point
}

function readQuantile(cursor: FieldCursor): { quantile: number; value: number } {
  const message = messageSchema('ValueAtQuantile')
  const pair = { quantile: 0, value: 0 }
  for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message))
    pair[field.name as 'quantile' | 'value'] = cursor.number().double
  return pair
}

/** Fields that several kinds of points have. */
interface CommonPoint {
  startUs: number
  timeUs: number
  count?: number
  sum?: number | undefined
  exemplars?: readonly Exemplar[]
  noValue?: boolean
}

/** Reads a field that several kinds of points have. */
function readCommon(
  { name }: FieldSchema,
  cursor: FieldCursor,
  point: CommonPoint,
  attributes: AttributeReader,
  unfit: Unfit,
): void {
  switch (name) {
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
    case 'exemplars': {
      point.exemplars ??= []
      const exemplars = point.exemplars as Exemplar[]
      exemplars.push(readExemplar(cursor.message(), unfit))
      break
    }
    default:
      // Of the flags only one is defined.
      if ((cursor.number().uint32 & noRecordedValue) !== 0) point.noValue = true
  }
}

function readExemplar(cursor: FieldCursor, unfit: Unfit): Exemplar {
  const none = new Uint8Array(0)
  const attributes = new Attributes()
  const exemplar: Mutable<Exemplar> = { timeUs: 0, value: 0, traceId: none, spanId: none, attributes }
  const reader = new AttributeReader(attributes, unfit)
  const message = messageSchema('Exemplar')
  for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
    switch (field.name) {
      case 'filteredAttributes':
        reader.add(cursor)
        break
      case 'timeUnixNano':
        exemplar.timeUs = cursor.number().nanosAsMicros
        break
      case 'asDouble':
        exemplar.value = cursor.number().double
        break
      case 'asInt':
        exemplar.value = readInteger(cursor.number(), unfit)
        break
      case 'spanId':
        exemplar.spanId = Uint8Array.from(cursor.bytes())
        break
      default:
        exemplar.traceId = Uint8Array.from(cursor.bytes())
    }
  }
  return exemplar
}

/** Temporality; missing and unknown values count as cumulative. */
function temporalityOf(number: number): Temporality {
  return number === delta ? 'delta' : undefined
}

interface Numbers {
  readonly points: NumberPoint[]
  monotonic: boolean
  temporality: Temporality
  /** Whether any point was an integer: doubles are recognized by their fraction. */
  integer: boolean
}

/** Reads the points of a sum, or of a gauge, which has fewer fields. */
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
  const point: Mutable<NumberPoint> = { attributes: new Attributes(), startUs: 0, timeUs: 0, value: 0 }
  const attributes = new AttributeReader(point.attributes, unfit)
  const message = messageSchema('NumberDataPoint')
  let kind: 'none' | 'integer' | 'double' = 'none'
  for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
    switch (field.name) {
      case 'asDouble':
        point.value = cursor.number().double
        kind = 'double'
        break
      case 'asInt':
        point.value = readInteger(cursor.number(), unfit)
        kind = 'integer'
        break
      default:
        readCommon(field, cursor, point, attributes, unfit)
    }
  }
  if (kind === 'none' && point.noValue !== true) {
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

/** Points grouped by bounds. Points without a value have none, and stay with their neighbours. */
class HistogramGroups {
  readonly #groups = new Map<string, HistogramPoints>()
  #last: HistogramPoints | undefined
  /** Points without a value that came before all others. */
  readonly #first: HistogramPoint[] = []

  add(point: HistogramPoint, bounds: readonly number[]): void {
    if (point.noValue === true) {
      const points = this.#last?.points ?? this.#first
      points.push(point)
      return
    }
    const key = bounds.join()
    let group = this.#groups.get(key)
    if (group === undefined) {
      group = { bounds, points: this.#last === undefined ? this.#first : [] }
      this.#groups.set(key, group)
    }
    group.points.push(point)
    this.#last = group
  }

  get all(): readonly HistogramPoints[] {
    return this.#last === undefined ? [{ bounds: [], points: this.#first }] : [...this.#groups.values()]
  }
}

/** Groups of points with equal bounds, which a histogram of the model shares. */
function readHistograms(
  cursor: FieldCursor,
  unfit: Unfit,
): (HistogramPoints & { temporality: Temporality })[] {
  const message = messageSchema('Histogram')
  const groups = new HistogramGroups()
  let temporality: Temporality
  for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
    if (field.name === 'dataPoints') readHistogramPoint(cursor.message(), groups, unfit)
    else temporality = temporalityOf(cursor.number().int32)
  }
  return groups.all.map(group => ({ ...group, temporality }))
}

function readHistogramPoint(cursor: FieldCursor, groups: HistogramGroups, unfit: Unfit): void {
  const buckets: number[] = []
  const bounds: number[] = []
  const point: Mutable<HistogramPoint> = {
    attributes: new Attributes(),
    startUs: 0,
    timeUs: 0,
    count: 0,
    sum: undefined,
    buckets,
  }
  const attributes = new AttributeReader(point.attributes, unfit)
  const message = messageSchema('HistogramDataPoint')
  for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
    switch (field.name) {
      case 'bucketCounts':
        cursor.numbers(field, () => buckets.push(cursor.uint64))
        break
      case 'explicitBounds':
        cursor.numbers(field, () => bounds.push(cursor.double))
        break
      case 'min':
      case 'max':
        unfit.change('minimum and maximum of histograms, lost')
        break
      default:
        readCommon(field, cursor, point, attributes, unfit)
    }
  }
  groups.add(point, bounds)
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
  let hasSum = false
  let hasNegative = false
  for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
    switch (field.name) {
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
      case 'min':
        point.min = cursor.number().double
        break
      case 'max':
        point.max = cursor.number().double
        break
      case 'zeroThreshold':
        if (cursor.number().double !== 0) unfit.change('zero thresholds, lost')
        break
      case 'exemplars':
        unfit.change('exemplars, lost')
        break
      default:
        readCommon(field, cursor, point, attributes, unfit)
    }
  }
  if (hasNegative) unfit.leaveOut('points of exponential histograms with negative values')
  else {
    if (!hasSum && point.noValue !== true) unfit.change(noSum)
    points.push(point)
  }
}

function readBuckets(cursor: FieldCursor): { offset: number; counts: number[] } {
  const message = messageSchema('Buckets')
  const buckets = { offset: 0, counts: [] as number[] }
  for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
    if (field.name === 'offset') buckets.offset = cursor.number().sint32
    else cursor.numbers(field, () => buckets.counts.push(cursor.uint64))
  }
  return buckets
}
