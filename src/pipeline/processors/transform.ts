import { Attributes } from '../../foundation/model/attributes.ts'
import type { LogRecord } from '../../foundation/model/log.ts'
import type { Metric } from '../../foundation/model/metric.ts'
import type { Profile } from '../../foundation/model/profile.ts'
import type { Resource } from '../../foundation/model/resource.ts'
import { signals } from '../../foundation/model/signal.ts'
import type { Span } from '../../foundation/model/span.ts'
import type { Processor, Stage, Verdict } from './processor.ts'
import { type Item, signalsOf } from './transform/match.ts'
import { ItemRule, ResourceRule, type RuleCounts } from './transform/rule.ts'
import type { TransformSettings } from './transform/settings.ts'

/** Changes, samples and drops telemetry by the rules of `pipeline.transform`; see docs/transform.md. */
export const transform: Processor<TransformSettings> = {
  name: 'transform',
  summary: 'Changes, samples and drops items by rules',
  signals,
  compile({ transform: { enabled, rules } }, env, before) {
    const own = rules.filter(rule => enabled && rule.enabled && signalsOf(rule.match).includes(env.signal))
    if (own.length === 0) return undefined
    const counts = before instanceof TransformStage ? before.counts : new Map<string, RuleCounts>()
    const compiled = own.map(rule => {
      const kept = counts.get(rule.name) ?? { matched: 0, dropped: 0, skipped: 0 }
      const isForResources = rule.actions.some(({ on }) => on === 'resource')
      return new (isForResources ? ResourceRule : ItemRule)(rule, kept, env)
    })
    return new TransformStage(compiled)
  },
}

class TransformStage implements Stage {
  /** Rules depend on names and attributes, and no action for metrics is random. */
  readonly lastingMs = Number.POSITIVE_INFINITY
  /** By rule name. */
  readonly counts: ReadonlyMap<string, RuleCounts>
  readonly #items: readonly ItemRule[]
  readonly #resources: readonly ResourceRule[]
  /** Number of rules at the start that can drop a metric before its series are checked. */
  readonly #first: number
  readonly #none = new Attributes()
  /** Last rule that dropped something. */
  #dropper: ItemRule | undefined

  constructor(rules: readonly (ItemRule | ResourceRule)[]) {
    this.counts = new Map(rules.map(({ name, counts }) => [name, counts]))
    this.#items = rules.filter(rule => rule instanceof ItemRule)
    this.#resources = rules.filter(rule => rule instanceof ResourceRule)
    const other = this.#items.findIndex(rule => !rule.dropsMetrics)
    this.#first = other < 0 ? this.#items.length : other
  }

  resource(resource: Resource): Resource | undefined {
    if (this.#resources.length === 0) return resource
    const attributes = resource.attributes.copy()
    for (const rule of this.#resources) if (rule.apply(attributes) !== '') return undefined
    return same(attributes, resource.attributes) ? resource : { attributes }
  }

  span(span: Span, resource: Resource): Verdict {
    return this.#apply(span, span.attributes, resource, 0)
  }

  log(record: LogRecord, resource: Resource): Verdict {
    return this.#apply(record, record.attributes, resource, 0)
  }

  metric(metric: Metric, resource: Resource): Verdict {
    for (let i = 0; i < this.#first; i++) {
      const rule = this.#items[i]!
      if (!rule.matches(metric, this.#none, resource)) continue
      rule.counts.matched += metric.points.length
      rule.counts.dropped += metric.points.length
      return 'transform'
    }
    return ''
  }

  series(attributes: Attributes, metric: Metric, resource: Resource): Verdict {
    return this.#apply(metric, attributes, resource, this.#first)
  }

  /** Rules check and change samples, but drop only whole profiles. */
  profile(profile: Profile, resource: Resource): Verdict {
    const { samples } = profile
    if (samples.length === 0) {
      this.#none.clear()
      return this.#apply(profile, this.#none, resource, 0)
    }
    let reason: Verdict = ''
    const by: ItemRule[] = []
    for (const { attributes } of samples) {
      const verdict = this.#apply(profile, attributes, resource, 0)
      if (verdict === '') continue
      reason = verdict
      by.push(this.#dropper!)
    }
    if (by.length === samples.length) return reason
    for (const { counts } of by) {
      counts.dropped--
      counts.skipped++
    }
    return ''
  }

  counters(emit: (rule: string, outcome: string, total: number) => void): void {
    for (const [rule, counts] of this.counts) {
      emit(rule, 'matched', counts.matched)
      emit(rule, 'dropped', counts.dropped)
      emit(rule, 'skipped', counts.skipped)
    }
  }

  #apply(item: Item, attributes: Attributes, resource: Resource, from: number): Verdict {
    const rules = this.#items
    for (let i = from; i < rules.length; i++) {
      const rule = rules[i]!
      if (!rule.matches(item, attributes, resource)) continue
      const reason = rule.act(item, attributes)
      if (reason === '') continue
      this.#dropper = rule
      return reason
    }
    return ''
  }
}

function same(one: Attributes, other: Attributes): boolean {
  if (one.size !== other.size) return false
  for (let i = 0; i < one.size; i++)
    if (one.keys[i] !== other.keys[i] || one.values[i] !== other.values[i]) return false
  return true
}
