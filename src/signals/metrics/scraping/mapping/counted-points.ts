import type { Attributes } from '../../../../foundation/model/attributes.ts'
import type { FamilyDraft } from './family-draft.ts'
import type { MappedSeries } from './mapped-family.ts'
import { isCreated, NumberPoints, withoutSuffix } from './number-points.ts'
import { ByName, entry, type Origin } from './series-labels.ts'

/** The series of one histogram or summary. */
export interface Counted {
  readonly attributes: Attributes
  count: MappedSeries | undefined
  sum: MappedSeries | undefined
  created: MappedSeries | undefined
}

/** A family whose points have a count, a sum and a start, each a series of its own. */
export class CountedPoints<Parts> {
  readonly metrics = new ByName(() => new Map<string, Counted & Parts>())
  readonly #draft: FamilyDraft
  readonly #parts: () => Parts
  /** Series with names of no part, after relabelling. */
  readonly #strays: NumberPoints

  /** `parts` makes what a point has beside these. */
  constructor(draft: FamilyDraft, parts: () => Parts) {
    this.#draft = draft
    this.#parts = parts
    this.#strays = new NumberPoints(draft, 'unknown')
  }

  /** Adds a series that is none of the other parts. */
  add(series: MappedSeries): void {
    const { name } = series
    const { family } = this.#draft
    if (name === family.name) this.#draft.drop('unexpected_sample')
    else if (name.endsWith('_count')) this.#addPart(series, 'count', '_count')
    else if (name.endsWith('_sum')) this.#addPart(series, 'sum', '_sum')
    else if (isCreated(name, family.name)) this.#addPart(series, 'created', '_created')
    else this.#strays.add(series)
  }

  finish(): void {
    this.#strays.finish()
  }

  of(origin: Origin, name: string, key: string, attributes: Attributes): Counted & Parts {
    return entry(this.metrics.of(origin, name), key, () => ({
      attributes,
      count: undefined,
      sum: undefined,
      created: undefined,
      ...this.#parts(),
    }))
  }

  #addPart(series: MappedSeries, part: 'count' | 'sum' | 'created', suffix: string): void {
    const { origin, attributes, key } = this.#draft.labels.sort(series.labels, '')
    const gathered = this.of(origin, withoutSuffix(series.name, suffix), key, attributes)
    if (gathered[part] === undefined) gathered[part] = series
    else this.#draft.drop('duplicate_series')
  }
}
