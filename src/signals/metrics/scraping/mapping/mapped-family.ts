import type { Attributes } from '../../../../foundation/model/attributes.ts'
import type { ReasonAt } from '../../../../foundation/model/drop-reasons.ts'
import type { Metric } from '../../../../foundation/model/metric.ts'
import type { Scope } from '../../../../foundation/model/resource.ts'
import type { Family, LineExemplar } from '../exposition.ts'

/** What a family's metadata says. The name is the page's own, also where relabelling has given its series others. */
export type FamilyMetadata = Pick<Family, 'name' | 'type' | 'help' | 'unit'>

/** A series as relabelling left it. */
export interface MappedSeries {
  readonly name: string
  /** Without `__name__`. */
  readonly labels: ReadonlyMap<string, string>
  /** With `places` the place of the value. */
  value: number
  /** Microseconds since the Unix epoch, 0 is not known; with `places` 0, or one more than the place of the time. */
  timeUs: number
  /** Not looked at with `places`. */
  exemplar?: LineExemplar | undefined
}

/** Whom series are about: their labels `job` and `instance`, '' where they have none. */
export interface Identity {
  readonly job: string
  readonly instance: string
}

export interface MappedMetric {
  readonly identity: Identity
  readonly scope: Scope
  readonly metric: Metric
}

/** The labels of a series `target_info`, for `targetResource`. */
export interface TargetInfo {
  readonly identity: Identity
  readonly labels: Attributes
}

/** A number of a placed metric that stands on no line: a start, which a series of its own tells in seconds, or 0. */
export interface DerivedNumber {
  /** The place of the seconds; -1: the number is 0. */
  readonly from: number
  /** As `timeUs` of a placed metric. */
  readonly time: number
}

/** Why points go no further, as the accounting names it. */
export type MappingLoss = ReasonAt<'scraping'>

export interface MappedFamily {
  /**
   * Several of one name where identity, scope or bounds of the points differ. With `places` they are placed metrics.
   * With the values of the same series they are the same in the same order, if need be without points.
   */
  readonly metrics: readonly MappedMetric[]
  /** Points by reason. A sample that is left out of its histogram or summary counts as one. */
  readonly dropped: ReadonlyMap<MappingLoss, number>
  readonly targetInfo: readonly TargetInfo[]
  /** With `places`: what `writeStarts` computes after each reading, into the places from `startsAt` on. */
  readonly starts: readonly DerivedNumber[]
}
