import { type DecodedItem, decodeRequest } from '../../exporters/otlp/decode.ts'
import { logEncoding } from '../../exporters/otlp/encode-log.ts'
import { metricEncoding } from '../../exporters/otlp/encode-metric.ts'
import { profileEncoding } from '../../exporters/otlp/encode-profile.ts'
import { traceEncoding } from '../../exporters/otlp/encode-trace.ts'
import { requestToJson } from '../../exporters/otlp/json.ts'
import { type Encoding, RequestBuilder } from '../../exporters/otlp/request.ts'
import { LogRecord } from '../../model/log.ts'
import type { Metric } from '../../model/metric.ts'
import type { Profile } from '../../model/profile.ts'
import type { Resource, Scope } from '../../model/resource.ts'
import type { Signal } from '../../model/signal.ts'
import { Span } from '../../model/span.ts'
import { type Chain, type ChainSettings, compileChain } from '../../processors/chain.ts'
import type { ProcessorEnv } from '../../processors/processor.ts'
import {
  attributesPortrait,
  type Change,
  changesBetween,
  type Portrait,
  pointTitle,
  portraitOf,
  resourceTitle,
  titleOf,
} from './portrait.ts'
import { droppedBy, type RuleCount, ruleCounts } from './rules.ts'

/** What became of one item, or of the resource of those that follow. */
export interface Fate {
  readonly title: string
  /** The line of the request that it stood in. */
  readonly line: number
  readonly fate: 'same' | 'changed' | 'dropped' | 'added'
  /** Of a change. */
  readonly changes: readonly Change[]
  /** Of a drop: its reason, and which processor or rule it was. */
  readonly reason: string
  readonly by: readonly string[]
}

/** Sums over all requests of a signal, as receivers count items. */
export interface Tally {
  in: number
  out: number
  changed: number
  /** Series that processors made, such as the one for what is above a bound. */
  added: number
  readonly dropped: Map<string, number>
  /** What the model has no place for: parts of items by what they are, and whole items. */
  readonly lost: Map<string, number>
  readonly leftOut: Map<string, number>
}

export interface TrialOptions {
  readonly settings: ChainSettings
  readonly env: Omit<ProcessorEnv, 'signal' | 'nowMs'>
  /** Told of every item; items are looked at closely only if there is one. */
  readonly onFate?: (fate: Fate) => void
}

type AnyItem = DecodedItem[Signal]

const encodings: { readonly [S in Signal]: () => Encoding<DecodedItem[S]> } = {
  traces: () => traceEncoding,
  metrics: () => metricEncoding,
  logs: () => logEncoding,
  profiles: profileEncoding,
}

/** Puts requests of one signal through the chain that a configuration makes. */
export class Trial {
  readonly signal: Signal
  readonly tally: Tally = {
    in: 0,
    out: 0,
    changed: 0,
    added: 0,
    dropped: new Map(),
    lost: new Map(),
    leftOut: new Map(),
  }
  private readonly chain: Chain<AnyItem> | undefined
  private readonly builder: RequestBuilder<AnyItem>
  private readonly onFate: TrialOptions['onFate']
  /** The chain's clock follows the items', so that rates are those of the input. */
  private nowMs = 0
  private line = 0
  private counts: readonly RuleCount[] = []
  private resourceSeen: Resource | undefined
  /** Start times of points, which are numbered while the chain has them: it leaves them as they are. */
  private readonly starts: number[] = []

  constructor(signal: Signal, { settings, env, onFate }: TrialOptions) {
    this.signal = signal
    this.onFate = onFate
    const full = { ...env, nowMs: () => this.nowMs }
    this.chain = compileChain(signal, settings, full) as Chain<AnyItem> | undefined
    this.builder = new RequestBuilder<AnyItem>(encodings[signal]() as Encoding<AnyItem>)
    this.counts = this.ruleCounts()
  }

  /** Whether the configuration leaves its items as they are. */
  get isIdle(): boolean {
    return this.chain === undefined
  }

  ruleCounts(): RuleCount[] {
    return ruleCounts(this.chain?.stages ?? [])
  }

  /** What an operator of this configuration would be told. */
  warnings(): string[] {
    return (this.chain?.stages ?? []).flatMap(({ stage }) => stage.warning || [])
  }

  /** The request that would be sent for this one, as OTLP JSON; undefined where nothing is left. */
  run(body: Uint8Array, line: number): string | undefined {
    this.line = line
    const { changed, leftOut } = decodeRequest(this.signal, body, (resource, scope, item) =>
      this.item(resource, scope, item),
    )
    for (const [what, count] of changed) add(this.tally.lost, what, count)
    for (const [what, count] of leftOut) {
      add(this.tally.leftOut, what, count)
      this.tally.in += count
    }
    const [batch] = this.builder.take()
    return batch && requestToJson(this.signal, batch.body)
  }

  private item(resource: Resource, scope: Scope, item: AnyItem): void {
    this.nowMs = Math.max(this.nowMs, timeOf(item) / 1000)
    const metric = metricOf(item)
    if (metric) this.metric(resource, scope, metric)
    else this.single(resource, scope, item as Span | LogRecord | Profile)
  }

  private single(resource: Resource, scope: Scope, item: Span | LogRecord | Profile): void {
    this.tally.in++
    const title = this.onFate && titleOf(item)
    const before = this.onFate && portraitOf(item)
    const resourceBefore = this.resourceBefore(resource)
    this.pass(resource, scope, item, {
      add: (to, group, left) => {
        this.builder.add(to, group, left)
        this.tally.out++
        if (title === undefined || before === undefined) return
        this.tellResource(resourceBefore, to)
        this.tellChange(title, before, portraitOf(left as typeof item))
      },
      miss: reason => {
        add(this.tally.dropped, reason, 1)
        if (title !== undefined) this.tellDrop([title], reason)
      },
    })
  }

  private metric(resource: Resource, scope: Scope, metric: Metric): void {
    const first = this.starts.length + 1
    const numbered = metric.points.map(point => ({
      ...point,
      startUs: this.starts.push(point.startUs),
    }))
    this.tally.in += metric.points.length
    const titles = this.onFate && metric.points.map(point => pointTitle(metric, point.attributes))
    const before = this.onFate && metric.points.map(point => attributesPortrait(point.attributes))
    const resourceBefore = this.resourceBefore(resource)
    const left = new Set(metric.points.keys())
    const reasons: string[] = []
    this.pass(resource, scope, { ...metric, points: numbered } as Metric, {
      add: (to, group, item) => {
        const out = item as Metric
        const points = out.points.map(point => ({ ...point, startUs: this.starts[point.startUs - 1] ?? 0 }))
        this.builder.add(to, group, { ...metric, ...plainMetric(out), points } as Metric)
        this.tally.out += points.length
        if (titles && before) this.tellResource(resourceBefore, to)
        for (const { startUs, attributes } of out.points) {
          const at = startUs - first
          // What was made of several points has the number of one of them, or of an earlier metric's.
          if (!left.delete(at) || isOverflow(attributes)) {
            if (at >= 0 && at < metric.points.length) left.add(at)
            this.tally.added++
            this.tell({ title: pointTitle(out, attributes), fate: 'added' })
          } else if (titles && before) this.tellChange(titles[at]!, before[at]!, attributesPortrait(attributes))
        }
      },
      miss: (reason, items) => {
        add(this.tally.dropped, reason, items)
        reasons.push(reason)
      },
    })
    if (titles && left.size > 0) this.tellDrop([...left].map(at => titles[at]!), reasons.join(' or '))
  }
}
