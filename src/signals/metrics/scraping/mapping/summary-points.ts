import type { SummaryPoint } from '../../../../foundation/model/metric.ts'
import { isCount } from './count.ts'
import { type Counted, CountedPoints } from './counted-points.ts'
import type { FamilyDraft } from './family-draft.ts'
import type { MappedSeries } from './mapped-family.ts'
import { numberOf } from './series-labels.ts'

interface Quantile {
  readonly quantile: number
  readonly value: number
}

/** The series of one summary. */
type Gathered = Counted & { readonly quantiles: Quantile[] }

/** A family of summaries. */
export class SummaryPoints {
  readonly #draft: FamilyDraft
  readonly #points: CountedPoints<Pick<Gathered, 'quantiles'>>

  constructor(draft: FamilyDraft) {
    this.#draft = draft
    this.#points = new CountedPoints(draft, () => ({ quantiles: [] }))
  }

  add(series: MappedSeries): void {
    // The label decides first: a summary itself may be called foo_count.
    if (series.labels.get('quantile')) this.#addQuantile(series)
    else this.#points.add(series)
  }

  finish(): void {
    const draft = this.#draft
    this.#points.metrics.forEach((byKey, origin, name) => {
      const points: SummaryPoint[] = []
      let isTold = false
      for (const gathered of byKey.values()) {
        const { count, sum, quantiles } = gathered
        isTold ||= count !== undefined
        if (count === undefined) {
          if (sum !== undefined || quantiles.length > 0) draft.drop('no_count')
        } else if (draft.numbers === 'values' && !isCount(count.value)) draft.drop('inconsistent_summary')
        else points.push(this.#point(gathered, count))
      }
      if (isTold) draft.emit(origin, { kind: 'summary', ...draft.described(name, 'summary'), points })
    })
    this.#points.finish()
  }

  #addQuantile(series: MappedSeries): void {
    const { origin, attributes, key, special } = this.#draft.labels.sort(series.labels, 'quantile')
    const quantile = numberOf(special)
    // OTLP requires the interval from 0 to 1.
    if (!(quantile >= 0 && quantile <= 1)) this.#draft.drop('bad_quantile')
    else
      this.#points.of(origin, series.name, key, attributes).quantiles.push({ quantile, value: series.value })
  }

  #point({ attributes, quantiles, sum, created }: Gathered, count: MappedSeries): SummaryPoint {
    const draft = this.#draft
    const times = draft.times(count, created)
    if (draft.numbers === 'ended')
      return { attributes, ...times, noValue: true, count: 0, sum: 0, quantiles: [], values: [] }
    const distinct: number[] = []
    const values: number[] = []
    for (const { quantile, value } of quantiles.sort((a, b) => a.quantile - b.quantile)) {
      if (distinct.at(-1) === quantile) draft.drop('duplicate_series')
      else {
        distinct.push(quantile)
        values.push(value)
      }
    }
    const total = sum === undefined ? draft.zero() : sum.value
    return { attributes, ...times, count: count.value, sum: total, quantiles: distinct, values }
  }
}
