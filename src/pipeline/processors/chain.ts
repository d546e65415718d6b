import type { DropReasonName } from '../../foundation/model/drop-reasons.ts'
import type { LogRecord } from '../../foundation/model/log.ts'
import type { Metric } from '../../foundation/model/metric.ts'
import type { Profile } from '../../foundation/model/profile.ts'
import type { Resource, Scope } from '../../foundation/model/resource.ts'
import type { Signal } from '../../foundation/model/signal.ts'
import type { Span } from '../../foundation/model/span.ts'
import { processors } from './index.ts'
import type { LimitSettings } from './limit-settings.ts'
import { type Lasting, type MetricChain, metricChain } from './metric-chain.ts'
import type { ProcessorEnv, Stage, Verdict } from './processor.ts'
import type { RedactSettings } from './redact/settings.ts'
import type { TransformSettings } from './transform/settings.ts'

/** Settings of chains: their part of the `pipeline` branch of the configuration. */
export interface ChainSettings extends LimitSettings, RedactSettings, TransformSettings {
  /** If false, nothing is limited, changed or redacted. */
  readonly enabled: boolean
}

/** Form in which metrics leave the chain; used only by the chain of metrics. */
export interface MetricForm {
  readonly temporality: 'cumulative' | 'delta'
}

/** Receives the items that pass. An item is valid only during the call. */
export interface Out<T> {
  add(resource: Resource, scope: Scope, item: T): void
  /** Counts dropped items, as receivers count them. */
  drop(reason: DropReasonName, items: number): void
}

/** The stages of one signal, in order. */
export interface Chain<T> {
  readonly stages: readonly NamedStage[]
  /** May change the item. */
  run(resource: Resource, scope: Scope, item: T, out: Out<T>): void
  /** For metrics only, see `MetricChain`. */
  prepare?(resource: Resource, scope: Scope, item: T, out: Out<T>): Lasting | undefined
  again?(points: number): Verdict
}

export interface NamedStage {
  /** Name of the processor. */
  readonly name: string
  readonly stage: Stage
}

/** Item type of each signal. */
export interface ItemOf {
  traces: Span
  metrics: Metric
  logs: LogRecord
  profiles: Profile
}

/**
 * Compiles the chain of a signal; undefined if it would do nothing. Counts and state of `before` are kept. Throws an
 * error with a reason if settings contradict each other.
 */
export function compileChain<S extends Signal>(
  signal: S,
  settings: ChainSettings,
  env: Omit<ProcessorEnv, 'signal'>,
  form: MetricForm = { temporality: 'cumulative' },
  before?: Chain<ItemOf[S]>,
): Chain<ItemOf[S]> | undefined {
  const stages = settings.enabled ? stagesOf(signal, settings, { ...env, signal }, before?.stages ?? []) : []
  // Metrics always have a chain: it splits metrics that are too large for a request.
  if (stages.length === 0 && signal !== 'metrics') return undefined
  return makers[signal](stages, settings, form, before as never) as Chain<ItemOf[S]>
}

function stagesOf(
  signal: Signal,
  settings: ChainSettings,
  env: ProcessorEnv,
  before: readonly NamedStage[],
): NamedStage[] {
  const stages: NamedStage[] = []
  for (const { name, signals, compile } of processors) {
    if (!signals.includes(signal)) continue
    const stage = compile(settings, env, before.find(former => former.name === name)?.stage)
    if (stage !== undefined) stages.push({ name, stage })
  }
  return stages
}

type Maker<T> = (
  stages: readonly NamedStage[],
  settings: ChainSettings,
  form: MetricForm,
  before: Chain<T> | undefined,
) => Chain<T>

const makers: { readonly [S in Signal]: Maker<ItemOf[S]> } = {
  traces: stages => new ItemChain<Span>(stages, ({ span }) => span),
  logs: stages => new ItemChain<LogRecord>(stages, ({ log }) => log),
  profiles: stages => new ItemChain<Profile>(stages, ({ profile }) => profile),
  metrics: (stages, settings, form, before) => new SeriesChain(stages, settings, form, before as SeriesChain),
}

/** A resource after the stages, or the reason to drop its items. */
type Passed =
  | { readonly resource: Resource; readonly reason: undefined }
  | { readonly resource: undefined; readonly reason: DropReasonName }

/** Results of the stages for each resource, cached. */
class Resources {
  readonly #stages: readonly NamedStage[]
  #known = new WeakMap<Resource, Passed>()
  #last: Resource | undefined
  #lastKnown: Passed | undefined

  constructor(stages: readonly NamedStage[]) {
    this.#stages = stages.filter(({ stage }) => stage.resource !== undefined)
  }

  /** Result for a resource; if it was dropped, `reason` is the name of the processor. */
  after(resource: Resource): Passed {
    if (resource === this.#last) return this.#lastKnown!
    let known = this.#known.get(resource)
    if (known === undefined) {
      known = this.#pass(resource)
      this.#known.set(resource, known)
    }
    this.#last = resource
    this.#lastKnown = known
    return known
  }

  #pass(original: Resource): Passed {
    let resource = original
    for (const { name, stage } of this.#stages) {
      const next = stage.resource!(resource)
      // Such a processor is named for its reason.
      if (next === undefined) return { resource: undefined, reason: name as DropReasonName }
      resource = next
    }
    return { resource, reason: undefined }
  }
}

type Step<T> = (item: T, resource: Resource) => Verdict

class ItemChain<T> implements Chain<T> {
  readonly stages: readonly NamedStage[]
  readonly #steps: readonly Step<T>[]
  readonly #resources: Resources

  constructor(stages: readonly NamedStage[], stepOf: (stage: Stage) => Step<T> | undefined) {
    this.stages = stages
    this.#resources = new Resources(stages)
    this.#steps = stages.flatMap(({ stage }) => stepOf(stage)?.bind(stage) ?? [])
  }

  run(original: Resource, scope: Scope, item: T, out: Out<T>): void {
    const { resource, reason } = this.#resources.after(original)
    if (resource === undefined) {
      out.drop(reason, 1)
      return
    }
    const steps = this.#steps
    for (let i = 0; i < steps.length; i++) {
      const verdict = steps[i]!(item, resource)
      if (verdict === '') continue
      out.drop(verdict, 1)
      return
    }
    out.add(resource, scope, item)
  }
}

class SeriesChain implements Chain<Metric> {
  readonly stages: readonly NamedStage[]
  readonly #resources: Resources
  readonly #metrics: MetricChain

  constructor(
    stages: readonly NamedStage[],
    { limits }: ChainSettings,
    { temporality }: MetricForm,
    before: SeriesChain | undefined,
  ) {
    this.stages = stages
    this.#resources = new Resources(stages)
    this.#metrics = metricChain(
      stages.map(({ stage }) => stage),
      { temporality, maxSeries: limits.cardinality.global_max_series },
      before === undefined ? undefined : before.#metrics,
    )
  }

  run(original: Resource, scope: Scope, metric: Metric, out: Out<Metric>): void {
    const { resource, reason } = this.#resources.after(original)
    if (resource === undefined) out.drop(reason, metric.points.length)
    else this.#metrics.run(resource, scope, metric, out, original)
  }

  prepare(original: Resource, scope: Scope, metric: Metric, out: Out<Metric>): Lasting | undefined {
    const { resource, reason } = this.#resources.after(original)
    if (resource !== undefined) return this.#metrics.prepare(resource, scope, metric, out)
    out.drop(reason, metric.points.length)
    return { forMs: Number.POSITIVE_INFINITY, asksAgain: false }
  }

  again(points: number): Verdict {
    return this.#metrics.again(points)
  }
}
