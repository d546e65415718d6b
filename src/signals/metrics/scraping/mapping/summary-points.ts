import type { Attributes } from '../../../../foundation/model/attributes.ts'
import type { SummaryPoint } from '../../../../foundation/model/metric.ts'
import { isCount } from './count.ts'
import type { FamilyDraft } from './family-draft.ts'
import type { MappedSeries } from './mapped-family.ts'
import { isCreated, NumberPoints, withoutSuffix } from './number-points.ts'
import { ByName, entry, numberOf, type Origin } from './series-labels.ts'

/** The series of one summary. */
interface Gathered {
  readonly attributes: Attributes
  readonly quantiles: Quantile[]
  count: MappedSeries | undefined
  sum: MappedSeries | undefined
  created: MappedSeries | undefined
}

interface Quantile {
  readonly quantile: number
  readonly value: number
}

/** A family of summaries. */
export class SummaryPoints {
  readonly #draft: FamilyDraft
  readonly #metrics = new ByName(() => new Map<string, Gathered>())
  /** Series with names that are not part of a summary, after relabelling. */
  readonly #strays: NumberPoints

  constructor(draft: FamilyDraft) {
    this.#draft = draft
    this.#strays = new NumberPoints(draft, 'unknown')
  }

  add(series: MappedSeries): void {
    const { name } = series
    const { family } = this.#draft
    // The label decides first: a summary itself may be called foo_count.
    if (series.labels.get('quantile')) this.#addQuantile(series)
    else if (name === family.name) this.#draft.drop('unexpected_sample')
    else if (name.endsWith('_count')) this.#addPart(series, 'count', '_count')
    else if (name.endsWith('_sum')) this.#addPart(series, 'sum', '_sum')
    else if (isCreated(name, family.name)) this.#addPart(series, 'created', '_created')
    else this.#strays.add(series)
  }

  finish(): void {
    const draft = this.#draft
    this.#metrics.forEach((byKey, origin, name) => {
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
    this.#strays.finish()
  }

  #addQuantile(series: MappedSeries): void {
    const { origin, attributes, key, special } = this.#draft.labels.sort(series.labels, 'quantile')
    const quantile = numberOf(special)
    // OTLP requires the interval from 0 to 1.
    if (!(quantile >= 0 && quantile <= 1)) this.#draft.drop('bad_quantile')
    else
      this.#gathered(origin, series.name, key, attributes).quantiles.push({ quantile, value: series.value })
  }

  #addPart(series: MappedSeries, part: 'count' | 'sum' | 'created', suffix: string): void {
    const { origin, attributes, key } = this.#draft.labels.sort(series.labels, '')
    const gathered = this.#gathered(origin, withoutSuffix(series.name, suffix), key, attributes)
    if (gathered[part] === undefined) gathered[part] = series
    else this.#draft.drop('duplicate_series')
  }

  #gathered(origin: Origin, name: string, key: string, attributes: Attributes): Gathered {
    return entry(this.#metrics.of(origin, name), key, () => ({
      attributes,
      quantiles: [],
      count: undefined,
      sum: undefined,
      created: undefined,
    }))
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
