import { TokenBucket } from '../../foundation/lib/token-bucket.ts'
import type { LogRecord } from '../../foundation/model/log.ts'
import type { Metric } from '../../foundation/model/metric.ts'
import type { Signal } from '../../foundation/model/signal.ts'
import type { Span } from '../../foundation/model/span.ts'
import { TraceShare } from './limit-rate/trace-share.ts'
import type { LimitSettings } from './limit-settings.ts'
import type { Processor, ProcessorEnv, Stage, Verdict } from './processor.ts'

/** Limits the items per second: spans by whole traces, logs by severity, metrics by whole metrics. */
export const limitRate: Processor<LimitSettings> = {
  name: 'limit_rate',
  summary: 'Limits items per second; drops whole traces, and the least severe logs first',
  signals: ['traces', 'metrics', 'logs'],
  compile({ limits }, env, before) {
    const { rate } = limits
    if (!rate.enabled) return undefined
    return makers[env.signal]?.(rate, env, before instanceof RateLimit ? before : undefined)
  },
}

type RateSettings = LimitSettings['limits']['rate']

const verdict = 'rate_limited'
/** How long a loss stays in the warning, in milliseconds. */
const recentMs = 60_000

/** State kept across changes of settings. */
interface Counts {
  passed: number
  dropped: number
  droppedMs: number
}

/** Common part of the limits of all signals. */
abstract class RateLimit implements Stage {
  protected readonly bucket: TokenBucket
  protected readonly nowMs: () => number
  readonly #counts: Counts

  constructor(perSecond: number, burst: number, env: ProcessorEnv, before: RateLimit | undefined) {
    this.bucket = new TokenBucket(perSecond, burst, before?.bucket.level)
    this.nowMs = env.nowMs
    this.#counts =
      before === undefined ? { passed: 0, dropped: 0, droppedMs: Number.NEGATIVE_INFINITY } : before.#counts
  }

  counters(emit: (rule: string, outcome: string, total: number) => void): void {
    emit('', 'passed', this.#counts.passed)
    emit('', 'dropped', this.#counts.dropped)
  }

  get warning(): string {
    return this.nowMs() - this.#counts.droppedMs < recentMs ? this.loss : ''
  }

  /** Description of the current loss. */
  protected abstract readonly loss: string

  protected judge(passes: boolean, items: number, nowMs: number): Verdict {
    const counts = this.#counts
    if (passes) {
      counts.passed += items
      return ''
    }
    counts.dropped += items
    counts.droppedMs = nowMs
    return verdict
  }
}

class SpanRate extends RateLimit {
  readonly #traces: TraceShare

  constructor(rate: RateSettings, env: ProcessorEnv, before: RateLimit | undefined) {
    super(rate.traces_per_second, rate.burst, env, before)
    this.#traces = before instanceof SpanRate ? before.#traces : new TraceShare()
  }

  span(span: Span): Verdict {
    const now = this.nowMs()
    this.bucket.fill(now)
    return this.judge(this.#traces.admits(span.traceId, this.bucket, now), 1, now)
  }

  protected override get loss(): string {
    const { share, offeredPerSecond } = this.#traces
    const came = Math.round(offeredPerSecond)
    return `keeping ${(share * 100).toPrecision(2)} % of traces: ${came} spans/s received, limit ${this.bucket.perSecond}`
  }
}

/** Part of the bucket reserved for more severe records (SeverityNumber: below INFO, below WARN, below ERROR). */
const levels = [
  { name: 'debug', below: 9, reserve: 0.5 },
  { name: 'info', below: 13, reserve: 0.25 },
  { name: 'warn', below: 17, reserve: 0.1 },
  { name: 'error', below: Number.POSITIVE_INFINITY, reserve: 0 },
] as const
const unknownSeverity = 0
const info = 1

class LogRate extends RateLimit {
  readonly #droppedBy: number[]

  constructor(rate: RateSettings, env: ProcessorEnv, before: RateLimit | undefined) {
    super(rate.logs_per_second, rate.burst, env, before)
    this.#droppedBy = before instanceof LogRate ? before.#droppedBy : levels.map(() => 0)
  }

  log(record: LogRecord): Verdict {
    const now = this.nowMs()
    const level = levelOf(record.severity)
    this.bucket.fill(now)
    const passes = this.bucket.take(1, levels[level]!.reserve)
    if (!passes) this.#droppedBy[level]!++
    return this.judge(passes, 1, now)
  }

  override counters(emit: (rule: string, outcome: string, total: number) => void): void {
    super.counters(emit)
    for (const [i, { name }] of levels.entries()) emit(name, 'dropped', this.#droppedBy[i]!)
  }

  protected override get loss(): string {
    return `more than ${this.bucket.perSecond} log records/s: dropping the least severe`
  }
}

function levelOf(severity: number): number {
  if (severity === unknownSeverity) return info
  let level = 0
  while (severity >= levels[level]!.below) level++
  return level
}

class MetricRate extends RateLimit {
  constructor(rate: RateSettings, env: ProcessorEnv, before: RateLimit | undefined) {
    super(rate.metrics_per_second, rate.burst, env, before)
  }

  /** `again` repeats everything that is checked here. */
  readonly lastingMs = Number.POSITIVE_INFINITY

  /** Metrics come in the same order each time, so the same ones pass, without gaps. */
  metric(metric: Metric): Verdict {
    return this.again(metric.points.length)
  }

  again(points: number): Verdict {
    const now = this.nowMs()
    this.bucket.fill(now)
    return this.judge(this.bucket.take(points, 0), points, now)
  }

  protected override get loss(): string {
    return `more than ${this.bucket.perSecond} data points/s: dropping the last metrics of each interval`
  }
}

const makers: Partial<
  Record<Signal, (rate: RateSettings, env: ProcessorEnv, before: RateLimit | undefined) => RateLimit>
> = {
  traces: (rate, env, before) => new SpanRate(rate, env, before),
  logs: (rate, env, before) => new LogRate(rate, env, before),
  metrics: (rate, env, before) => new MetricRate(rate, env, before),
}
