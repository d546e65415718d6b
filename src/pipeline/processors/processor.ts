import type { Logger } from '../../foundation/lib/logger.ts'
import type { Attributes } from '../../foundation/model/attributes.ts'
import type { DropReasonName } from '../../foundation/model/drop-reasons.ts'
import type { LogRecord } from '../../foundation/model/log.ts'
import type { Metric } from '../../foundation/model/metric.ts'
import type { Profile } from '../../foundation/model/profile.ts'
import type { Resource, Scope } from '../../foundation/model/resource.ts'
import type { Signal } from '../../foundation/model/signal.ts'
import type { Span } from '../../foundation/model/span.ts'

/** Drop reason of an item, as in the label `reason`; '' passes the item. */
export type Verdict = DropReasonName | ''

/**
 * Verdict on a series: its points are summed in one point of the metric that is marked `otel.metric.overflow` if they
 * can be (monotonic sums, histograms), and dropped otherwise. Both are counted under this reason.
 */
export const overflow = 'cardinality'

/** Environment of a processor. */
export interface ProcessorEnv {
  readonly signal: Signal
  readonly log: Logger
  /** Secret of this installation, 32 bytes, for keyed hashes. Read or created at the first call. */
  readonly installKey: () => Uint8Array
  /** Monotonic clock, in milliseconds. */
  readonly nowMs: () => number
}

/**
 * A processor compiled for one signal and its settings. It is on the hot path: it must not throw, log, wait, or
 * allocate per item. It changes items in place; the chain passes copies of shared originals.
 */
export interface Stage {
  /**
   * Called once per resource. Returns it or a replacement; undefined drops all of its items, counted under the
   * processor's name.
   */
  resource?(resource: Resource): Resource | undefined
  /** As `resource`, for the scopes of metrics, which may come from foreign pages. Scopes cannot be dropped. */
  scope?(scope: Scope): Scope
  span?(span: Span, resource: Resource): Verdict
  log?(record: LogRecord, resource: Resource): Verdict
  /** A whole metric, before its series. Must not change it. */
  metric?(metric: Metric, resource: Resource): Verdict
  /** One series of a metric, as a copy of its attributes that may be changed. */
  series?(attributes: Attributes, metric: Metric, resource: Resource, scope?: Scope): Verdict
  /** Attributes of an exemplar of a series that passed, as a copy that may be changed. */
  exemplar?(attributes: Attributes): void
  profile?(profile: Profile, resource: Resource): Verdict
  /**
   * Time in milliseconds for which verdicts on, and changes of, a metric and its series apply to later occurrences with
   * other numbers, because they depend only on names, attributes and resource. The stage is called once in that time,
   * so that each series is counted once. Undefined if the results depend on more.
   */
  readonly lastingMs?: number
  /**
   * Called instead of `metric` for each recurrence of a metric that passed: for a stage whose verdict depends only on
   * number and time of points.
   */
  again?(points: number): Verdict
  /** Totals so far, for status pages and metrics: `outcome` is a word such as `matched`, `truncated`, `dropped`. */
  counters(emit: (rule: string, outcome: string, total: number) => void): void
  /** Current advice for operators, such as which label makes too many series; '' for none. */
  readonly warning?: string
}

/** A processing step between collection and export: the unit of this area. Its name is its file, with `_` for `-`. */
export interface Processor<S> {
  readonly name: string
  /** Summary in one line, without a full stop. */
  readonly summary: string
  readonly signals: readonly Signal[]
  /**
   * Makes the stage; undefined if the settings leave it nothing to do. `before` is its stage under the former settings,
   * whose counts and state are kept. Throws an error with a reason if settings contradict each other.
   */
  compile(settings: S, env: ProcessorEnv, before: Stage | undefined): Stage | undefined
}
