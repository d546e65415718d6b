import { FamilyDraft, type Numbers } from './family-draft.ts'
import { HistogramPoints } from './histogram-points.ts'
import type { FamilyMetadata, MappedFamily, MappedMetric, MappedSeries } from './mapped-family.ts'
import { NumberPoints, withoutSuffix } from './number-points.ts'
import { SummaryPoints } from './summary-points.ts'

export type { MappedFamily, MappedMetric, MappedSeries } from './mapped-family.ts'

export interface FamilyInput {
  readonly family: FamilyMetadata
  readonly series: readonly MappedSeries[]
}

interface Points {
  add(series: MappedSeries): void
  finish(): void
}

/**
 * Maps a family to OTLP metrics (OpenTelemetry specification, compatibility/prometheus_and_openmetrics). With `places`,
 * the values of series are places in an array of values, and the metrics are placed ones; derived numbers have their
 * places from `startsAt` on.
 */
export function mapFamily(
  input: FamilyInput & { readonly numbers: 'places' | 'values'; readonly startsAt?: number },
): MappedFamily {
  return mapped(input, input.numbers, input.startsAt ?? 0)
}

/**
 * Metrics that mark series as ended at a time: the same as were made from them, with points without values. A histogram
 * or a summary ends with its `_count`; the end of one bucket alone ends nothing.
 */
export function staleMetrics(input: FamilyInput, timeUs: number): readonly MappedMetric[] {
  const series = input.series.map(one => ({ ...one, timeUs }))
  return mapped({ ...input, series }, 'ended', 0).metrics
}

function mapped({ family, series }: FamilyInput, numbers: Numbers, startsAt: number): MappedFamily {
  const draft = new FamilyDraft(family, numbers, startsAt)
  const points = pointsOf(draft)
  for (const one of series) points.add(one)
  points.finish()
  return draft.finish()
}

function pointsOf(draft: FamilyDraft): Points {
  const { type } = draft.family
  if (type === 'histogram') return new HistogramPoints(draft)
  if (type === 'summary') return new SummaryPoints(draft)
  if (type === 'gaugehistogram') return new GaugeHistograms(draft)
  return new NumberPoints(draft, type)
}

/** They have no counterpart in OTLP, so they are only counted. */
class GaugeHistograms implements Points {
  readonly #draft: FamilyDraft
  readonly #seen = new Set<string>()

  constructor(draft: FamilyDraft) {
    this.#draft = draft
  }

  add({ name, labels }: MappedSeries): void {
    const isBucket = name.endsWith('_bucket')
    const { origin, key } = this.#draft.labels.sort(labels, isBucket ? 'le' : '')
    const base = ['_bucket', '_gcount', '_gsum'].reduce(withoutSuffix, name)
    this.#seen.add(JSON.stringify([base, origin.identity, origin.scope, key]))
  }

  finish(): void {
    for (const _ of this.#seen) this.#draft.drop('gauge_histogram')
  }
}
