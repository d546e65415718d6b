import type { CpuLever } from '../../foundation/lib/cpu-governor.ts'
import type { Owner } from '../../foundation/lib/fair-share.ts'
import { SharedBucket } from '../../foundation/lib/shared-bucket.ts'
import type { WallClock } from '../../foundation/lib/wall-clock.ts'
import type { Operation } from '../../foundation/model/stream.ts'
import type { Capture, CaptureRules } from '../../signals/capture/capture.ts'

export interface SpanBudgetOptions {
  readonly capture: Pick<Capture, 'hasBudget' | 'apply' | 'busyMs'>
  readonly clock: WallClock
  /** What the configuration says. */
  readonly rules: CaptureRules
  /** Names of protocols whose turns the kernel counts where they are above its budget. */
  readonly counted: ReadonlySet<string>
  /** All spans since the start, those that were lost included. */
  readonly spans: () => number
  /** Brings the books up to date: calls until now are judged by the budget until now. */
  readonly sync: () => void
  /** Milliseconds of a monotonic clock, and since the Unix epoch. */
  readonly now?: () => number
  readonly wall?: () => number
}

/** Calls are judged as of their ends, so many milliseconds ago at most: clocks may be set meanwhile. */
const mostLateMs = 10_000

/** Over which the rate of spans is measured, in milliseconds. */
const rateMs = 5_000
/** Spans a second that are always made: they cost a hundredth of a CPU. What costs more then is something else. */
const least = 200

/**
 * How many calls a second have spans: as many as the configuration says, or fewer while svc takes too much CPU. The kernel
 * side has the budget of what it frames. What it hands on as bytes has one here, of the same size. Owners share both.
 */
export class SpanBudget implements CpuLever {
  /** Why calls above it have no span. */
  reason: 'over_budget' | 'cpu_limit' = 'over_budget'
  readonly #options: SpanBudgetOptions
  #rules: CaptureRules
  /** Budgets, one for each step down: the last one holds. */
  readonly #steps: number[] = []
  /** Undefined: no bound. */
  #bucket: SharedBucket | undefined
  /** Of calls that failed or were slow. */
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

  /** Spans a second while svc takes too much CPU; undefined: it does not. */
  get lowered(): number | undefined {
    return this.#steps.at(-1)
  }

  /** Reading calls and making spans. */
  costMs(): number {
    return this.#options.capture.busyMs
  }

  get effect(): string {
    const { lowered } = this
    if (lowered === undefined) return ''
    return `at most ${lowered} spans per second, and as many again for HTTP/2 and for messages (metrics count all calls)`
  }

  /** The configuration says otherwise from now on. */
  change(rules: CaptureRules): void {
    this.#rules = rules
    this.#apply()
  }

  /**
   * Whether a call of `owner` may have a span. To be asked once for each. Calls are read in batches: what came to the budget
   * between two of a batch is counted between them, or the first of it would have it all.
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

  /** Half as many spans as now. False: fewer would be of no use. */
  lower(): boolean {
    const asked =
      this.lowered ?? (this.#rules.maxPerSecond > 0 ? this.#rules.maxPerSecond : Number.POSITIVE_INFINITY)
    const next = Math.max(least, Math.floor(Math.min(asked, this.#perSecond) / 2))
    if (next >= asked) return false
    this.#apply(() => this.#steps.push(next))
    return true
  }

  /** As many as before the last step down. False: it is what the configuration says. */
  raise(): boolean {
    if (this.#steps.length === 0) return false
    this.#apply(() => this.#steps.pop())
    return true
  }

  /** To be called now and then. */
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
    // A reload may have asked for less than that.
    const isLess = lowered !== undefined && (rules.maxPerSecond === 0 || lowered < rules.maxPerSecond)
    this.#options.capture.apply(isLess ? { ...rules, maxPerSecond: lowered } : rules)
    this.#bound(isLess ? lowered : rules.maxPerSecond)
  }

  /** As the kernel has it, what a second allows may come at once. */
  #bound(perSecond: number): void {
    const bucketOf = (before: SharedBucket | undefined) =>
      perSecond === 0 ? undefined : new SharedBucket(perSecond, before?.level)
    this.#bucket = bucketOf(this.#bucket)
    this.#first = bucketOf(this.#first)
  }
}
