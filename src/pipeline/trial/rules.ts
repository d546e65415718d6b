import type { NamedStage } from '../processors/chain.ts'
import { valueText } from './item-snapshot.ts'

/** Counts of a rule of a processor, or of a whole processor (with rule ''). */
export interface RuleCount {
  readonly processor: string
  readonly rule: string
  /** Totals by outcome. */
  readonly outcomes: ReadonlyMap<string, number>
}

/** Counts of all rules of these stages so far. */
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

/** Adds the counts of the same rules for other signals. */
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

/** Outcomes of limits. A limit that is idle is normal. */
const boundOutcomes = ['dropped', 'truncated', 'unscanned']

/** Whether a limit or a processor had nothing to do. */
export function isIdle({ outcomes }: RuleCount): boolean {
  return [...outcomes].every(([outcome, total]) => total === 0 && boundOutcomes.includes(outcome))
}

/** Whether a rule that searches for something found nothing. */
export function neverMatched(count: RuleCount): boolean {
  const { rule, outcomes } = count
  return rule !== '' && !isIdle(count) && [...outcomes.values()].every(total => total === 0)
}

/** A rule with its processor, or only the processor for its own counts. */
export function ruleTitle({ processor, rule }: RuleCount): string {
  return rule === '' ? processor : `${processor} ${valueText(rule)}`
}

/** Rules that dropped items between two sets of counts; the processor if no rule did. */
export function droppedBy(before: readonly RuleCount[], now: readonly RuleCount[]): string[] {
  const totals = new Map(before.map(count => [keyOf(count), count.outcomes.get('dropped') ?? 0]))
  const guilty = now.filter(count => (count.outcomes.get('dropped') ?? 0) > (totals.get(keyOf(count)) ?? 0))
  const byRule = new Set(guilty.flatMap(({ processor, rule }) => (rule === '' ? [] : [processor])))
  return guilty.filter(({ processor, rule }) => rule !== '' || !byRule.has(processor)).map(ruleTitle)
}

function keyOf({ processor, rule }: RuleCount): string {
  return `${processor}\n${rule}`
}
