import type { CpuLever } from '../../foundation/lib/cpu-governor.ts'
import type { Owner } from '../../foundation/lib/fair-share.ts'
import { SharedBucket } from '../../foundation/lib/shared-bucket.ts'
import type { WallClock } from '../../foundation/lib/wall-clock.ts'
import type { Operation } from '../../foundation/model/stream.ts'
import type { Capture, CaptureRules } from '../../signals/capture/capture.ts'

export interface SpanBudgetOptions {
  readonly capture: Pick<Capture, 'hasBudget' | 'apply' | 'busyMs'>
  readonly clock: WallClock
  /** Current rules. */
  readonly rules: CaptureRules
  /** Names of protocols whose operations the kernel counts when they exceed its budget. */
  readonly counted: ReadonlySet<string>
  /** All spans since the start, including lost ones. */
  readonly spans: () => number
  /** Books earlier calls before the budget changes. */
  readonly sync: () => void
  /** Milliseconds of a monotonic clock, and since the Unix epoch. */
  readonly now?: () => number
  readonly wall?: () => number
}

/** Calls are judged by their end times, at most this long ago, in case the clock is set. */
const mostLateMs = 10_000

/** Period of measuring the rate of spans, in milliseconds. */
const rateMs = 5_000
/** Minimum spans per second: they cost one percent of a CPU, so an overload has another cause. */
const least = 200

/**
 * How many calls per second get spans: the configured number, or fewer under CPU reduction. The kernel side applies its
 * own budget to what it frames; what it passes on as bytes has one here, of the same size. Owners share both.
 */
export class SpanBudget implements CpuLever {
  /** Why calls above it have no span. */
  reason: 'over_budget' | 'cpu_limit' = 'over_budget'
  readonly #options: SpanBudgetOptions
  #rules: CaptureRules
  /** Budgets, one per step down: the last one applies. */
  readonly #steps: number[] = []
  /** Undefined: unlimited. */
  #bucket: SharedBucket | undefined
  /** For calls that failed or were slow. */
  #first: SharedBucket | undefined
  readonly #now: () => number
  readonly #wall: () => number
  #measuredMs: number
  #spans = 0
  #perSecond = 0

  constructor(options: SpanBudgetOptions) {
    this.#options = options
    this.#rules = options.rules
    this.#now = options.now ?? (() => performance.now())
    this.#wall = options.wall ?? Date.now
    this.#measuredMs = this.#now()
    this.#bound(this.#rules.maxPerSecond)
  }

  /** Spans per second under CPU reduction; undefined without it. */
  get lowered(): number | undefined {
    return this.#steps.at(-1)
  }

  /** Cost of reading calls and making spans. */
  costMs(): number {
    return this.#options.capture.busyMs
  }

  get effect(): string {
    const { lowered } = this
    if (lowered === undefined) return ''
    return `at most ${lowered} spans per second, and as many again for HTTP/2 and for messages (metrics count all calls)`
  }

  /** Applies changed rules. */
  change(rules: CaptureRules): void {
    this.#rules = rules
    this.#apply()
  }

  /**
   * Whether a call of `owner` gets a span. Call it once for each. Calls are read in batches: the budget is refilled by
   * their end times, or the first of a batch would use it up.
   */
  allows({ connection, call, durationNs, endNs }: Operation, owner: Owner): boolean {
    if (this.#bucket === undefined) return true
    const { capture, clock, counted } = this.#options
    if (capture.hasBudget && (!connection.fromBytes || counted.has(connection.protocol))) return true
    const { alwaysErrors, alwaysSlow, slowNs } = this.#rules
    const isFirst = (alwaysErrors && call.error !== '') || (alwaysSlow && durationNs > slowNs)
    const bucket = isFirst ? this.#first! : this.#bucket
    const lateMs = Math.min(mostLateMs, Math.max(0, this.#wall() - clock.microseconds(endNs) / 1000))
    return bucket.take(owner, this.#now() - lateMs)
  }

  /** Halves the budget. False: a lower one would be useless. */
  lower(): boolean {
    const asked =
      this.lowered ?? (this.#rules.maxPerSecond > 0 ? this.#rules.maxPerSecond : Number.POSITIVE_INFINITY)
    const next = Math.max(least, Math.floor(Math.min(asked, this.#perSecond) / 2))
    if (next >= asked) return false
    this.#apply(() => this.#steps.push(next))
    return true
  }

  /** Reverts the last step down. False: back at the configured budget. */
  raise(): boolean {
    if (this.#steps.length === 0) return false
    this.#apply(() => this.#steps.pop())
    return true
  }

  /** Call it periodically. */
  measure(): void {
    const nowMs = this.#now()
    const passedMs = nowMs - this.#measuredMs
    if (passedMs < rateMs) return
    const spans = this.#options.spans()
    this.#perSecond = ((spans - this.#spans) * 1000) / passedMs
    this.#spans = spans
    this.#measuredMs = nowMs
  }

  #apply(change?: () => void): void {
    this.#options.sync()
    change?.()
    const { lowered } = this
    this.reason = lowered === undefined ? 'over_budget' : 'cpu_limit'
    const rules = this.#rules
    // A reload may have set a lower limit.
    const isLess = lowered !== undefined && (rules.maxPerSecond === 0 || lowered < rules.maxPerSecond)
    this.#options.capture.apply(isLess ? { ...rules, maxPerSecond: lowered } : rules)
    this.#bound(isLess ? lowered : rules.maxPerSecond)
  }

  /** As in the kernel, a burst may use the budget of a full second. */
  #bound(perSecond: number): void {
    const bucketOf = (before: SharedBucket | undefined) =>
      perSecond === 0 ? undefined : new SharedBucket(perSecond, before?.level)
    this.#bucket = bucketOf(this.#bucket)
    this.#first = bucketOf(this.#first)
  }
}
