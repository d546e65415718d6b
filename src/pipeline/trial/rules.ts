import type { NamedStage } from '../processors/chain.ts'
import { valueText } from './item-snapshot.ts'

/** What a rule of a processor did, or a processor as a whole (its rule is ''). */
export interface RuleCount {
  readonly processor: string
  readonly rule: string
  /** Totals by outcome. */
  readonly outcomes: ReadonlyMap<string, number>
}

/** What all rules of these stages have done so far. */
export function ruleCounts(stages: readonly NamedStage[]): RuleCount[] {
  const counts: RuleCount[] = []
  for (const { name, stage } of stages) {
    const rules = new Map<string, Map<string, number>>()
    stage.counters((rule, outcome, total) => {
      const outcomes = rules.get(rule) ?? new Map<string, number>()
      rules.set(rule, outcomes.set(outcome, total))
    })
    for (const [rule, outcomes] of rules) counts.push({ processor: name, rule, outcomes })
  }
  return counts
}

/** Adds what the same rules did to other signals. */
export function addCounts(to: RuleCount[], more: readonly RuleCount[]): RuleCount[] {
  const sums = [...to]
  for (const count of more) {
    const at = sums.findIndex(({ processor, rule }) => processor === count.processor && rule === count.rule)
    if (at < 0) {
      sums.push(count)
      continue
    }
    const outcomes = new Map(sums[at]!.outcomes)
    for (const [outcome, total] of count.outcomes) outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + total)
    sums[at] = { ...count, outcomes }
  }
  return sums
}

/** What bounds do. One that is idle is as it should be. */
const boundOutcomes = ['dropped', 'truncated', 'unscanned']

/** Whether a bound, or a processor, had nothing to do. */
export function isIdle({ outcomes }: RuleCount): boolean {
  return [...outcomes].every(([outcome, total]) => total === 0 && boundOutcomes.includes(outcome))
}

/** Whether a rule that looks for something found nothing. */
export function neverMatched(count: RuleCount): boolean {
  const { rule, outcomes } = count
  return rule !== '' && !isIdle(count) && [...outcomes.values()].every(total => total === 0)
}

/** A rule with its processor, or the processor where it is meant as a whole. */
export function ruleTitle({ processor, rule }: RuleCount): string {
  return rule === '' ? processor : `${processor} ${valueText(rule)}`
}

/** Who has dropped items between two looks: the rules, or the processors where no rule did. */
export function droppedBy(before: readonly RuleCount[], now: readonly RuleCount[]): string[] {
  const totals = new Map(before.map(count => [keyOf(count), count.outcomes.get('dropped') ?? 0]))
  const guilty = now.filter(count => (count.outcomes.get('dropped') ?? 0) > (totals.get(keyOf(count)) ?? 0))
  const byRule = new Set(guilty.flatMap(({ processor, rule }) => (rule === '' ? [] : [processor])))
  return guilty.filter(({ processor, rule }) => rule !== '' || !byRule.has(processor)).map(ruleTitle)
}

function keyOf({ processor, rule }: RuleCount): string {
  return `${processor}\n${rule}`
}
