import { Attributes } from '../../../../foundation/model/attributes.ts'
import type { Metric } from '../../../../foundation/model/metric.ts'
import type { FamilyType } from '../exposition.ts'
import type {
  DerivedNumber,
  FamilyMetadata,
  Identity,
  MappedFamily,
  MappedMetric,
  MappedSeries,
  MappingLoss,
  TargetInfo,
} from './mapped-family.ts'
import { LabelSorter, type Origin } from './series-labels.ts'
import { startUsOf } from './start-time.ts'
import { ucumUnit } from './ucum-unit.ts'

/** Meaning of the values of series: places in an array of values, the values, or nothing because the series ended. */
export type Numbers = 'places' | 'values' | 'ended'

/** Metadata by type: one object for all metrics. */
const metadataOf = new Map<FamilyType, Attributes>()

function metadata(type: FamilyType): Attributes {
  let attributes = metadataOf.get(type)
  if (attributes === undefined) {
    attributes = Attributes.of({ 'prometheus.type': type })
    metadataOf.set(type, attributes)
  }
  return attributes
}

/** A mapped family in the making. */
export class FamilyDraft {
  readonly family: FamilyMetadata
  readonly numbers: Numbers
  readonly labels = new LabelSorter()
  readonly #targetInfo = new Map<string, TargetInfo>()
  readonly #dropped = new Map<MappingLoss, number>()
  readonly #metrics: MappedMetric[] = []
  readonly #starts: DerivedNumber[] = []
  readonly #unit: string
  readonly #startsAt: number

  constructor(family: FamilyMetadata, numbers: Numbers, startsAt: number) {
    this.family = family
    this.numbers = numbers
    this.#startsAt = startsAt
    this.#unit = ucumUnit(family.unit)
  }

  /** False if there is data about this target already. */
  addTarget(identity: Identity, labels: Attributes): boolean {
    const key = JSON.stringify([identity.job, identity.instance])
    if (this.#targetInfo.has(key)) return false
    this.#targetInfo.set(key, { identity, labels })
    return true
  }

  drop(reason: MappingLoss): void {
    this.#dropped.set(reason, (this.#dropped.get(reason) ?? 0) + 1)
  }

  /** `startUs` and `timeUs` of a point. `created`: the series with its start. */
  times(series: MappedSeries, created: MappedSeries | undefined): { startUs: number; timeUs: number } {
    const { timeUs } = series
    return { startUs: created === undefined ? 0 : this.startUs(created, timeUs), timeUs }
  }

  startUs(created: MappedSeries, timeUs: number): number {
    if (this.numbers === 'values') return startUsOf(created.value, timeUs)
    return this.numbers === 'places' ? 1 + this.#derive(created.value, timeUs) : 0
  }

  /** Value or place of 0. */
  zero(): number {
    return this.numbers === 'places' ? this.#derive(-1, 0) : 0
  }

  /** Name, description, unit and metadata of a metric. */
  described(
    name: string,
    type: FamilyType,
  ): Readonly<{ name: string; description: string; unit: string; metadata: Attributes }> {
    return { name, description: this.family.help, unit: this.#unit, metadata: metadata(type) }
  }

  emit({ identity, scope }: Origin, metric: Metric): void {
    this.#metrics.push({ identity, scope, metric })
  }

  finish(): MappedFamily {
    return {
      metrics: this.#metrics,
      dropped: this.#dropped,
      targetInfo: [...this.#targetInfo.values()],
      starts: this.#starts,
    }
  }

  /** Returns the place of the number. */
  #derive(from: number, time: number): number {
    this.#starts.push({ from, time })
    return this.#startsAt + this.#starts.length - 1
  }
}
