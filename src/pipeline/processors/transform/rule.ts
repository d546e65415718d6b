import type { Attributes } from '../../../foundation/model/attributes.ts'
import type { Resource } from '../../../foundation/model/resource.ts'
import { type Action, type ActionEnv, compileAction } from './actions.ts'
import { Effect } from './attribute-actions.ts'
import type { RuleSettings } from './keys.ts'
import { attributesTest, type Condition, type Item, itemConditions, itemKeys } from './match.ts'

/** Totals of a rule. */
export interface RuleCounts {
  matched: number
  dropped: number
  skipped: number
}

/** Reason why an item is dropped; '' to keep it. */
export type Reason = '' | 'transform' | 'sampled'

/** Adds the name of the rule to an error. */
function named<T>(name: string, make: () => T): T {
  try {
    return make()
  } catch (error) {
    throw new Error(`cannot use transform rule "${name}": ${(error as Error).message}`, {
      cause: error,
    })
  }
}

/** A compiled rule on items. */
export class ItemRule {
  readonly name: string
  readonly counts: RuleCounts
  /** Whether it drops all series of a matching metric, whatever their attributes. */
  readonly dropsMetrics: boolean
  readonly #conditions: readonly Condition[]
  readonly #actions: readonly Action[]

  constructor(settings: RuleSettings, counts: RuleCounts, env: ActionEnv) {
    const { name, match, actions } = settings
    this.name = name
    this.counts = counts
    this.#conditions = named(name, () => itemConditions(match))
    this.#actions = named(name, () => actions.map(action => compileAction(action, env)))
    this.dropsMetrics = !itemKeys(match).includes('attributes') && actions[0]?.type === 'drop'
  }

  matches(item: Item, attributes: Attributes, resource: Resource): boolean {
    const conditions = this.#conditions
    for (let i = 0; i < conditions.length; i++) if (!conditions[i]!(item, attributes, resource)) return false
    return true
  }

  /** Applies the actions to a matching item. */
  act(item: Item, attributes: Attributes): Reason {
    return run(this.#actions, this.counts, attributes, item)
  }
}

/** A compiled rule on resources. */
export class ResourceRule {
  readonly name: string
  readonly counts: RuleCounts
  readonly #matches: ((attributes: Attributes) => boolean) | undefined
  readonly #actions: readonly Action[]

  constructor(settings: RuleSettings, counts: RuleCounts, env: ActionEnv) {
    const { name, match, actions } = settings
    this.name = name
    this.counts = counts
    this.#matches = named(name, () => attributesTest(match.resource_attributes))
    this.#actions = named(name, () => actions.map(action => compileAction(action, env)))
  }

  apply(attributes: Attributes): Reason {
    return this.#matches?.(attributes) === false ? '' : run(this.#actions, this.counts, attributes, undefined)
  }
}

function run(
  actions: readonly Action[],
  counts: RuleCounts,
  attributes: Attributes,
  item: Item | undefined,
): Reason {
  counts.matched++
  for (let i = 0; i < actions.length; i++) {
    const effect = actions[i]!(attributes, item)
    if (effect === Effect.done) continue
    if (effect === Effect.skipped) counts.skipped++
    else {
      counts.dropped++
      return effect === Effect.sampled ? 'sampled' : 'transform'
    }
  }
  return ''
}
