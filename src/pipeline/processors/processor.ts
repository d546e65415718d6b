import type { Logger } from '../../foundation/lib/logger.ts'
import type { Attributes } from '../../foundation/model/attributes.ts'
import type { DropReasonName } from '../../foundation/model/drop-reasons.ts'
import type { LogRecord } from '../../foundation/model/log.ts'
import type { Metric } from '../../foundation/model/metric.ts'
import type { Profile } from '../../foundation/model/profile.ts'
import type { Resource, Scope } from '../../foundation/model/resource.ts'
import type { Signal } from '../../foundation/model/signal.ts'
import type { Span } from '../../foundation/model/span.ts'

/** Why an item goes no further, as the label `reason` of the dropped items; '' lets it pass. */
export type Verdict = DropReasonName | ''

/**
 * A verdict on a series: its points are added up in one point of the metric that is marked `otel.metric.overflow`,
 * where that is right (sums that only grow, histograms); others are dropped. Either way they count under this reason.
 */
export const overflow = 'cardinality'

/** All the world that a processor gets. */
export interface ProcessorEnv {
  readonly signal: Signal
  readonly log: Logger
  /** A secret of this installation, 32 bytes, for keyed hashes. Read or made at the first call. */
  readonly installKey: () => Uint8Array
  /** Monotonic, in milliseconds. */
  readonly nowMs: () => number
}

/**
 * A processor made for one signal and its settings. It is on the hot path: it must not throw, log, wait, or allocate
 * for each item. What it changes it changes in place; the chain hands it copies where others hold the original.
 */
export interface Stage {
  /**
   * Called once for each resource. Returns it, or another in its place; undefined drops all of its items, counted under
   * the processor's name.
   */
  resource?(resource: Resource): Resource | undefined
  /** As `resource`, for the scopes of metrics: foreign pages tell those. None is dropped. */
  scope?(scope: Scope): Scope
  span?(span: Span, resource: Resource): Verdict
  log?(record: LogRecord, resource: Resource): Verdict
  /** A whole metric, before its series. It must not be changed. */
  metric?(metric: Metric, resource: Resource): Verdict
  /** One series of a metric, by a copy of its attributes that may be changed. */
  series?(attributes: Attributes, metric: Metric, resource: Resource, scope?: Scope): Verdict
  /** What exemplars of a series that passed say beside it, by a copy that may be changed. */
  exemplar?(attributes: Attributes): void
  profile?(profile: Profile, resource: Resource): Verdict
  /**
   * For how long, in milliseconds, what is said to a metric and its series, and made of their attributes, holds for all
   * that come again with other numbers: it depends on nothing but names, attributes and resource. They are asked about
   * once in that time, so that whatever is counted counts once. Undefined: it does not hold.
   */
  readonly lastingMs?: number
  /**
   * In place of `metric`, each time that one comes again which passed: for a stage whose verdict on it depends on how many
   * points come when, and on nothing else.
   */
  again?(points: number): Verdict
  /** What it did so far, for people and for metrics: `outcome` is a word such as `matched`, `truncated`, `dropped`. */
  counters(emit: (rule: string, outcome: string, total: number) => void): void
  /** What an operator should know now, in words, such as which label makes too many series; '' for nothing. */
  readonly warning?: string
}

/** One stage of what happens between collection and export: the unit of this area. Its name is its file, with `_` for `-`. */
export interface Processor<S> {
  readonly name: string
  /** What it does, in one line without a full stop. */
  readonly summary: string
  readonly signals: readonly Signal[]
  /**
   * Makes the stage; undefined where the settings leave it nothing to do. Throws, in words, where they contradict each
   * other. What `before` (its own stage under former settings) has counted and remembered goes on.
   */
  compile(settings: S, env: ProcessorEnv, before: Stage | undefined): Stage | undefined
}
