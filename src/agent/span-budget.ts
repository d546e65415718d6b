import type { Capture, CaptureRules } from '../probes/capture.ts'

export interface SpanBudgetOptions {
  readonly capture: Pick<Capture, 'hasBudget' | 'apply'>
  /** What the configuration says. */
  readonly rules: CaptureRules
  /** All spans since the start, those that were lost included. */
  readonly spans: () => number
  /** Brings the books up to date: calls until now are judged by the budget until now. */
  readonly sync: () => void
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number
}

/** Over which the rate of spans is measured, in milliseconds. */
const rateMs = 5_000
/** Spans a second that are always made: they cost a hundredth of a CPU. What costs more then is something else. */
const least = 200

/** How many calls a second have spans: as many as the configuration says, or fewer while svc takes too much CPU. */
export class SpanBudget {
  /** Why calls above it have no span. */
  reason: 'over_budget' | 'cpu_limit' = 'over_budget'
  readonly #options: SpanBudgetOptions
  #rules: CaptureRules
  /** Budgets, one for each step down: the last one holds. */
  readonly #steps: number[] = []
  readonly #now: () => number
  #measuredMs: number
  #spans = 0
  #perSecond = 0

  constructor(options: SpanBudgetOptions) {
    this.#options = options
    this.#rules = options.rules
    this.#now = options.now ?? (() => performance.now())
    this.#measuredMs = this.#now()
  }

  /** Spans a second while svc takes too much CPU; undefined: it does not. */
  get lowered(): number | undefined {
    return this.#steps.at(-1)
  }

  /** The configuration says otherwise from now on. */
  change(rules: CaptureRules): void {
    this.#rules = rules
    this.#apply()
  }

  /** Half as many spans as now. False: fewer would be of no use, or this back end has no budget. */
  lower(): boolean {
    if (!this.#options.capture.hasBudget) return false
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
  }
}
