import type { Attributes } from '../../../../foundation/model/attributes.ts'
import type { NumberPoint } from '../../../../foundation/model/metric.ts'
import type { FamilyType } from '../exposition.ts'
import { otlpExemplar } from './exemplar.ts'
import type { FamilyDraft } from './family-draft.ts'
import type { MappedSeries } from './mapped-family.ts'
import { ByName, type SeriesLabels } from './series-labels.ts'

/** A family with one point per series. Its metrics have the names of the series. */
export class NumberPoints {
  readonly #draft: FamilyDraft
  readonly #type: FamilyType
  readonly #metrics = new ByName(() => new Map<string, NumberPoint>())
  /** By counter name without `_created` and `_total`. */
  readonly #created = new ByName(() => new Map<string, MappedSeries>())

  constructor(draft: FamilyDraft, type: FamilyType) {
    this.#draft = draft
    this.#type = type
  }

  add(series: MappedSeries): void {
    const labels = this.#draft.labels.sort(series.labels, '')
    if (this.#type === 'counter' && isCreated(series.name, this.#draft.family.name))
      addFirst(this.#created.of(labels.origin, withoutSuffix(series.name, '_created')), labels.key, series)
    else if (!this.#isTargetInfo(series, labels)) {
      const points = this.#metrics.of(labels.origin, series.name)
      if (points.has(labels.key)) this.#draft.drop('duplicate_series')
      else points.set(labels.key, this.#point(series, labels.attributes))
    }
  }

  finish(): void {
    const draft = this.#draft
    const type = this.#type
    this.#metrics.forEach((byKey, origin, name) => {
      const created = this.#created.find(origin, withoutSuffix(name, '_total'))
      const points = created === undefined ? [...byKey.values()] : this.#withStarts(byKey, created)
      const described = draft.described(name, type)
      if (type === 'gauge' || type === 'unknown') draft.emit(origin, { kind: 'gauge', ...described, points })
      else
        draft.emit(origin, {
          kind: 'sum',
          ...described,
          // An info or a state is a 1 or a 0 that is meaningful when summed.
          monotonic: type === 'counter',
          // Values of Prometheus are doubles.
          integer: false,
          points,
        })
    })
  }

  #withStarts(
    byKey: ReadonlyMap<string, NumberPoint>,
    created: ReadonlyMap<string, MappedSeries>,
  ): NumberPoint[] {
    const points: NumberPoint[] = []
    for (const [key, point] of byKey) {
      const start = created.get(key)
      points.push(
        start === undefined ? point : { ...point, startUs: this.#draft.startUs(start, point.timeUs) },
      )
    }
    return points
  }

  #point({ value, timeUs, exemplar }: MappedSeries, attributes: Attributes): NumberPoint {
    const { numbers } = this.#draft
    if (numbers === 'ended') return { attributes, startUs: 0, timeUs, noValue: true, value: 0 }
    if (numbers === 'values' && exemplar !== undefined)
      return { attributes, startUs: 0, timeUs, value, exemplars: [otlpExemplar(exemplar)] }
    return { attributes, startUs: 0, timeUs, value }
  }

  /** `target_info` is not a point: its labels describe the target. */
  #isTargetInfo({ name }: MappedSeries, { origin, attributes }: SeriesLabels): boolean {
    if (name !== 'target_info' || this.#type === 'counter' || this.#type === 'stateset') return false
    if (!this.#draft.addTarget(origin.identity, attributes)) this.#draft.drop('duplicate_series')
    return true
  }
}

/** A counter itself may have this suffix; its family's name then has it too. */
export function isCreated(name: string, family: string): boolean {
  return name.endsWith('_created') && !family.endsWith('_created')
}

export function withoutSuffix(name: string, suffix: string): string {
  return name.endsWith(suffix) && name.length > suffix.length ? name.slice(0, -suffix.length) : name
}

function addFirst<T>(map: Map<string, T>, key: string, value: T): void {
  if (!map.has(key)) map.set(key, value)
}
