import type { Turn } from '../../../foundation/lib/turn.ts'
import type {
  PlacedMetric,
  PreparedIntake,
  PreparedMetric,
} from '../../../foundation/model/prepared-metric.ts'
import { type MappedSeries, mapFamily, staleMetrics } from './mapping/map-family.ts'
import type { DerivedNumber, MappingLoss } from './mapping/mapped-family.ts'
import { writeStarts } from './mapping/start-time.ts'
import { PageError } from './page-error.ts'
import type { PageLayout } from './page-layout.ts'
import { type PagePart, sampleAt } from './page-pieces.ts'
import type { ResourceTable } from './resource-table.ts'
import { sampleKey } from './sample-key.ts'
import { seriesId } from './series-id.ts'
import { type NamedSeries, seriesLabels } from './series-labels.ts'
import type { SeriesSink } from './series-sink.ts'
import type { Target } from './target.ts'

/** A parsed page, with the settings and resources for its series. */
export interface Reading {
  readonly target: Target
  readonly resources: ResourceTable
  readonly layout: PageLayout
  readonly values: Float64Array
  readonly timesUs: Float64Array
}

/** Series that are made, checked and encoded together. */
export interface Piece extends PagePart {
  /** Samples left after relabelling. */
  readonly kept: number
  /** Series ID of each sample; 0 if relabelling dropped it. */
  readonly ids: Float64Array
  /** Indexes of samples in the piece whose series is in an earlier piece. */
  readonly repeated: ReadonlySet<number>
  /** Whether some samples have their own timestamps. */
  readonly timed: boolean
  /** Whether some samples have exemplars, which prepared metrics cannot have. */
  readonly hasExemplars: boolean
  /** Prepared metrics; undefined if they are sent whole each time. */
  ready: PreparedMetric[] | undefined
  /** Series if they are sent whole; their value is the index of the sample in the piece. */
  whole: readonly MappedSeries[] | undefined
  /** Points that cannot be mapped, counted at each scrape. */
  readonly dropped: ReadonlyMap<MappingLoss, number>
  readonly starts: readonly DerivedNumber[]
  /** Values that the places refer to: a view of all values, or an array of its own. */
  readonly numbers: Float64Array
}

const noneRepeated: ReadonlySet<number> = new Set()

/** Series between two checks of the clock. */
const lookEvery = 64

/** Measured memory in bytes: of a piece with its arrays, a prepared metric, one of its points, a whole series. */
const pieceCost = 1000
const metricCost = 900
const pointCost = 24
const seriesCost = 600

/** Approximate memory of a piece, in bytes. */
export function pieceBytes({ size, ids, numbers, scattered, ready, whole }: Piece): number {
  const own = numbers.length * numbers.BYTES_PER_ELEMENT + ids.byteLength + (scattered?.byteLength ?? 0)
  return pieceCost + own + (whole?.length ?? 0) * seriesCost + readyBytes(ready) + size
}

function readyBytes(ready: readonly PreparedMetric[] = []): number {
  let bytes = 0
  for (const { parts } of ready)
    for (const { template } of parts) bytes += metricCost + template.sizeBytes + template.points * pointCost
  return bytes
}

/** Series of a sample; undefined if relabelling drops it. Throws a `PageError` if the page must be rejected. */
export function seriesAt({ target, layout }: Reading, sample: number): NamedSeries | undefined {
  const bytes = layout.keyBytes(sample)
  const key = sampleKey(bytes, 0, bytes.length)
  if (key === undefined) return undefined
  const found = seriesLabels(target.job, target, key)
  if (found !== undefined && 'reason' in found) throw new PageError(found.reason)
  return found
}

/** Makes the series of a part. Rejects with a `PageError` if the page must be rejected. */
export async function makePiece(
  part: PagePart,
  reading: Reading,
  prepared: PreparedIntake,
  turn: Turn,
  repeated = noneRepeated,
): Promise<Piece> {
  const { family, size, first, scattered } = part
  const timed = reading.target.job.honorTimestamps && someSample(part, i => !Number.isNaN(reading.timesUs[i]))
  const hasExemplars = hasSomeExemplar(part, reading.layout)
  const ids = new Float64Array(size)
  const series: MappedSeries[] = []
  for (let i = 0; i < size; i++) {
    if (i % lookEvery === 0 && turn.isOver) await turn.next()
    const sample = sampleAt(part, i)
    const found = seriesAt(reading, sample)
    if (found === undefined) continue
    ids[i] = seriesId(found.name, found.labels)
    if (repeated.has(i)) continue
    const isTimed = timed && !Number.isNaN(reading.timesUs[sample])
    series.push({ ...found, value: i, timeUs: isTimed ? 1 + size + i : 0 })
  }
  const startsAt = timed ? 2 * size : size
  const mapped = mapFamily({ family, series, numbers: 'places', startsAt })
  const ready = hasExemplars ? undefined : await preparedOf(mapped.metrics, reading.resources, prepared, turn)
  const isView = scattered === undefined && !timed && mapped.starts.length === 0
  return {
    ...part,
    kept: series.length + repeated.size,
    ids,
    repeated,
    timed,
    hasExemplars,
    ready,
    whole: ready === undefined ? series : undefined,
    dropped: withRepeated(mapped.dropped, repeated.size),
    starts: mapped.starts,
    numbers: isView
      ? reading.values.subarray(first, first + size)
      : new Float64Array(startsAt + mapped.starts.length),
  }
}

/** Piece of the previous page, for the same part of a new reading. */
export function reusedPiece(before: Piece, part: PagePart, { values }: Reading): Piece {
  const { first, size } = part
  const isView = before.numbers.length === size && part.scattered === undefined
  const numbers = isView ? values.subarray(first, first + size) : new Float64Array(before.numbers.length)
  return { ...before, ...part, numbers }
}

export function hasSomeExemplar(part: PagePart, { exemplars }: PageLayout): boolean {
  return exemplars.size > 0 && someSample(part, i => exemplars.has(i))
}

/** Copies the numbers of a reading into a piece. */
export function fillPiece(piece: Piece, { values, timesUs }: Reading, timeUs: number): void {
  const { numbers, size, timed, starts } = piece
  if (numbers.buffer === values.buffer) return
  for (let i = 0; i < size; i++) numbers[i] = values[sampleAt(piece, i)]!
  if (timed) for (let i = 0; i < size; i++) numbers[size + i] = otlpTime(timesUs[sampleAt(piece, i)]!)
  writeStarts(starts, numbers, timed ? 2 * size : size, timeUs)
}

/** Sends the metrics of a piece whole: all, or those with the given indexes. */
export function sendWhole(
  sink: SeriesSink,
  piece: Piece,
  reading: Reading,
  timeUs: number,
  wanted?: ReadonlySet<number>,
): void {
  const { family, timed } = piece
  const { exemplars } = reading.layout
  const series: MappedSeries[] = []
  for (const { name, labels, value: i } of piece.whole ?? seriesOf(piece, reading)) {
    const sample = sampleAt(piece, i)
    const ownUs = timed ? reading.timesUs[sample]! : Number.NaN
    series.push({
      name,
      labels,
      value: reading.values[sample]!,
      timeUs: Number.isNaN(ownUs) ? timeUs : otlpTime(ownUs),
      exemplar: exemplars.get(sample),
    })
  }
  const { metrics, dropped } = mapFamily({ family, series, numbers: 'values' })
  for (const [i, { identity, scope, metric }] of metrics.entries())
    if (metric.points.length > 0 && (wanted === undefined || wanted.has(i)))
      sink.add(reading.resources.of(identity), scope, metric)
  // Drops by name are already counted; drops by value are only known here.
  for (const [reason, points] of dropped) {
    const counted = piece.dropped.get(reason) ?? 0
    if (points > counted) sink.drop(reason, points - counted)
  }
}

/** Marks series of a piece as ended: all, or those in `ended`, which are removed from it. */
export async function reportEnds(
  sink: SeriesSink,
  piece: Piece,
  reading: Reading,
  timeUs: number,
  turn: Turn,
  ended?: Set<number>,
): Promise<void> {
  const { family, ids, size, repeated } = piece
  const series: MappedSeries[] = []
  for (let i = 0; i < size; i++) {
    const id = ids[i]!
    if (id === 0 || (ended === undefined ? repeated.has(i) : !ended.delete(id))) continue
    if (i % lookEvery === 0 && turn.isOver) await turn.next()
    const sample = sampleAt(piece, i)
    if (hasNoEnd(reading, sample)) continue
    const found = seriesAt(reading, sample)
    if (found !== undefined) series.push({ ...found, value: 0, timeUs: 0 })
  }
  if (series.length === 0) return
  for (const { identity, scope, metric } of staleMetrics({ family, series }, timeUs))
    sink.add(reading.resources.of(identity), scope, metric)
}

/**
 * Series with their own timestamps end without a marker, when the source stops sending them: that is the purpose of
 * such timestamps.
 */
function hasNoEnd({ target: { job }, timesUs }: Reading, sample: number): boolean {
  return job.honorTimestamps && !job.trackTimestampsStaleness && !Number.isNaN(timesUs[sample])
}

function seriesOf(piece: Piece, reading: Reading): MappedSeries[] {
  const series: MappedSeries[] = []
  for (let i = 0; i < piece.size; i++) {
    const found = piece.repeated.has(i) ? undefined : seriesAt(reading, sampleAt(piece, i))
    if (found !== undefined) series.push({ ...found, value: i, timeUs: 0 })
  }
  return series
}

async function preparedOf(
  metrics: ReturnType<typeof mapFamily>['metrics'],
  resources: ResourceTable,
  intake: PreparedIntake,
  turn: Turn,
): Promise<PreparedMetric[] | undefined> {
  const ready: PreparedMetric[] = []
  for (const { identity, scope, metric } of metrics) {
    const prepared = intake.prepare(resources.of(identity), scope, metric as PlacedMetric)
    if (prepared === undefined) return undefined
    ready.push(prepared)
    if (turn.isOver) await turn.next()
  }
  return ready
}

function someSample(part: PagePart, is: (sample: number) => boolean): boolean {
  for (let i = 0; i < part.size; i++) if (is(sampleAt(part, i))) return true
  return false
}

function withRepeated(
  dropped: ReadonlyMap<MappingLoss, number>,
  repeated: number,
): ReadonlyMap<MappingLoss, number> {
  if (repeated === 0) return dropped
  return new Map(dropped).set('duplicate_series', (dropped.get('duplicate_series') ?? 0) + repeated)
}

/** Time that fits OTLP's 64-bit nanoseconds; otherwise 0, for unknown. */
function otlpTime(timeUs: number): number {
  return timeUs > 0 && timeUs < 2 ** 63 / 1000 ? timeUs : 0
}
