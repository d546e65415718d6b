import type { Attributes } from '../../foundation/model/attributes.ts'
import { LogRecord } from '../../foundation/model/log.ts'
import type { Metric } from '../../foundation/model/metric.ts'
import type { Profile } from '../../foundation/model/profile.ts'
import type { Resource, Scope } from '../../foundation/model/resource.ts'
import type { Signal } from '../../foundation/model/signal.ts'
import { Span } from '../../foundation/model/span.ts'
import { type DecodedItem, decodeRequest } from '../exporters/otlp/decode.ts'
import { logEncoding } from '../exporters/otlp/encode-log.ts'
import { metricEncoding } from '../exporters/otlp/encode-metric.ts'
import { profileEncoding } from '../exporters/otlp/encode-profile.ts'
import { traceEncoding } from '../exporters/otlp/encode-trace.ts'
import { requestToJson } from '../exporters/otlp/json.ts'
import { type Encoding, RequestBuilder } from '../exporters/otlp/request.ts'
import { type Chain, type ChainSettings, compileChain, type Out } from '../processors/chain.ts'
import type { ProcessorEnv } from '../processors/processor.ts'
import {
  attributesSnapshot,
  type Change,
  changesBetween,
  type ItemSnapshot,
  pointTitle,
  resourceTitle,
  snapshotOf,
  titleOf,
} from './item-snapshot.ts'
import { droppedBy, type RuleCount, ruleCounts } from './rules.ts'

/** Result of one item, or of the resource of the following items. */
export interface ItemOutcome {
  readonly of: 'resource' | 'item' | 'point'
  readonly title: string
  /** Input line of its request. */
  readonly line: number
  readonly outcome: 'same' | 'changed' | 'dropped' | 'added'
  /** For a change. */
  readonly changes: readonly Change[]
  /** For a drop: the reason, and the processors or rules. */
  readonly reason: string
  readonly rules: readonly string[]
}

/** Sums over all requests of a signal, as receivers count items. */
export interface Tally {
  in: number
  out: number
  changed: number
  /** Series added by processors, such as overflow series. */
  added: number
  readonly dropped: Map<string, number>
  /** Data that the model cannot represent: parts of items by description, and whole items. */
  readonly lost: Map<string, number>
  readonly leftOut: Map<string, number>
}

export interface TrialOptions {
  readonly settings: ChainSettings
  readonly env: Omit<ProcessorEnv, 'signal' | 'nowMs'>
  /** Called for every item; without it, items are not compared individually. */
  readonly onOutcome?: (outcome: ItemOutcome) => void
}

type AnyItem = DecodedItem[Signal]

const encodings: { readonly [S in Signal]: () => Encoding<DecodedItem[S]> } = {
  traces: () => traceEncoding,
  metrics: () => metricEncoding,
  logs: () => logEncoding,
  profiles: profileEncoding,
}

/** Runs requests of one signal through the chain of a configuration. */
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
  readonly #chain: Chain<AnyItem> | undefined
  readonly #builder: RequestBuilder<AnyItem>
  readonly #onOutcome: TrialOptions['onOutcome']
  /** The chain's clock follows the times of items, so that rates are those of the input. */
  #nowMs = 0
  #line = 0
  #counts: readonly RuleCount[]
  /** Resource of the last item, and its original state until a change of it is reported. */
  #resource: Resource | undefined
  #unreported: ItemSnapshot | undefined
  /**
   * Start times of points. While the chain has them, points carry an index into this list instead: the chain does not
   * change start times.
   */
  readonly #starts: number[] = []

  constructor(signal: Signal, { settings, env, onOutcome }: TrialOptions) {
    this.signal = signal
    this.#onOutcome = onOutcome
    const full = { ...env, nowMs: () => this.#nowMs }
    this.#chain = compileChain(signal, settings, full) as Chain<AnyItem> | undefined
    this.#builder = new RequestBuilder<AnyItem>(encodings[signal]() as Encoding<AnyItem>)
    this.#counts = this.ruleCounts()
  }

  /** False if the configuration changes none of its items. */
  get hasChain(): boolean {
    return this.#chain !== undefined && this.#chain.stages.length > 0
  }

  ruleCounts(): RuleCount[] {
    return ruleCounts(this.#chain?.stages ?? [])
  }

  /** Warnings that an operator of this configuration would get. */
  warnings(): string[] {
    return (this.#chain?.stages ?? []).flatMap(({ stage }) => stage.warning || [])
  }

  /** The request that would be sent, as OTLP JSON; undefined if nothing is left. */
  run(body: Uint8Array, line: number): string | undefined {
    this.#line = line
    const { changed, leftOut } = decodeRequest(this.signal, body, (resource, scope, item) =>
      this.#item(resource, scope, item),
    )
    for (const [what, count] of changed) add(this.tally.lost, what, count)
    for (const [what, count] of leftOut) {
      add(this.tally.leftOut, what, count)
      this.tally.in += count
    }
    const [batch] = this.#builder.take()
    return batch && requestToJson(this.signal, batch.body)
  }

  #item(resource: Resource, scope: Scope, item: AnyItem): void {
    this.#nowMs = Math.max(this.#nowMs, timeOf(item) / 1000)
    if (this.#onOutcome && resource !== this.#resource) {
      this.#resource = resource
      this.#unreported = attributesSnapshot(resource.attributes)
    }
    if ('points' in item) this.#metric(resource, scope, item)
    else this.#single(resource, scope, item)
  }

  #single(resource: Resource, scope: Scope, item: Span | LogRecord | Profile): void {
    this.tally.in++
    const title = this.#onOutcome ? titleOf(item) : ''
    const before = this.#onOutcome && snapshotOf(item)
    this.#pass(resource, scope, item, {
      add: (to, group, left) => {
        this.#builder.add(to, group, left)
        this.tally.out++
        if (!before) return
        this.#reportResource(to)
        this.#reportChange('item', title, changesBetween(before, snapshotOf(left as typeof item)))
      },
      drop: reason => {
        add(this.tally.dropped, reason, 1)
        if (this.#onOutcome) this.#reportDrop('item', [title], reason)
      },
    })
  }

  #metric(resource: Resource, scope: Scope, metric: Metric): void {
    const { points } = metric
    const offset = this.#starts.length + 1
    const numbered = points.map(point => ({ ...point, startUs: this.#starts.push(point.startUs) }))
    const left = new Set(points.keys())
    const reasons: string[] = []
    this.tally.in += points.length
    this.#pass(resource, scope, { ...metric, points: numbered } as Metric, {
      add: (to, group, item) => {
        const out = item as Metric
        const restored = out.points.map(point => ({
          ...point,
          startUs: this.#starts[point.startUs - 1] ?? 0,
        }))
        this.#builder.add(to, group, { ...out, points: restored } as Metric)
        this.tally.out += restored.length
        this.#reportResource(to)
        for (const { startUs, attributes } of out.points) {
          const at = startUs - offset
          const source = left.has(at) ? points[at] : undefined
          // A point made of several has the index of one of them, or of an earlier point.
          if (source && (!isOverflow(attributes) || isOverflow(source.attributes))) {
            left.delete(at)
            this.#reportPoint(metric, source.attributes, attributes)
          } else this.#reportAdded(metric, attributes)
        }
      },
      drop: (reason, items) => {
        add(this.tally.dropped, reason, items)
        reasons.push(reason)
      },
    })
    if (this.#onOutcome && left.size > 0)
      this.#reportDrop(
        'point',
        [...left].map(at => pointTitle(metric, points[at]!.attributes)),
        reasons.join(' or '),
      )
  }

  #pass(resource: Resource, scope: Scope, item: AnyItem, out: Out<AnyItem>): void {
    if (this.#chain) this.#chain.run(resource, scope, item, out)
    else out.add(resource, scope, item)
  }

  /** Reports a change of the resource, before the first of its items that passes. */
  #reportResource({ attributes }: Resource): void {
    if (!this.#unreported) return
    const changes = changesBetween(this.#unreported, attributesSnapshot(attributes))
    if (changes.length > 0)
      this.#report({
        of: 'resource',
        title: resourceTitle(this.#resource!.attributes),
        outcome: 'changed',
        changes,
      })
    this.#unreported = undefined
  }

  #reportPoint(metric: Metric, before: Attributes, after: Attributes): void {
    if (!this.#onOutcome) return
    const changes = changesBetween(attributesSnapshot(before), attributesSnapshot(after))
    this.#reportChange('point', pointTitle(metric, before), changes)
  }

  #reportAdded(metric: Metric, attributes: Attributes): void {
    this.tally.added++
    if (this.#onOutcome)
      this.#report({ of: 'point', title: pointTitle(metric, attributes), outcome: 'added' })
  }

  #reportChange(of: ItemOutcome['of'], title: string, changes: readonly Change[]): void {
    if (changes.length > 0) this.tally.changed++
    this.#report({ of, title, outcome: changes.length > 0 ? 'changed' : 'same', changes })
  }

  #reportDrop(of: ItemOutcome['of'], titles: readonly string[], reason: string): void {
    const counts = this.ruleCounts()
    const by = droppedBy(this.#counts, counts)
    this.#counts = counts
    for (const title of titles) this.#report({ of, title, outcome: 'dropped', reason, rules: by })
  }

  #report(outcome: Pick<ItemOutcome, 'of' | 'title' | 'outcome'> & Partial<ItemOutcome>): void {
    this.#onOutcome?.({ line: this.#line, changes: [], reason: '', rules: [], ...outcome })
  }
}

function add(to: Map<string, number>, what: string, count: number): void {
  to.set(what, (to.get(what) ?? 0) + count)
}

/** Mark of a series that sums many others (SDK specification, "Cardinality limits"). */
function isOverflow({ keys, size }: Attributes): boolean {
  return size === 1 && keys[0] === 'otel.metric.overflow'
}

/** Time of an item, in microseconds since the Unix epoch; 0 if it has none. */
function timeOf(item: AnyItem): number {
  if (item instanceof Span) return item.endUs
  if (item instanceof LogRecord) return item.observedUs || item.timeUs
  return 'points' in item ? (item.points[0]?.timeUs ?? 0) : item.startUs
}
