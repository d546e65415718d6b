import type { NamedStage } from '../../processors/chain.ts'

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
      let outcomes = rules.get(rule)
      if (outcomes === undefined) rules.set(rule, (outcomes = new Map()))
      outcomes.set(outcome, total)
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

/** Whether a rule found nothing to do. One that only drops is a bound, which is there to be idle. */
export function neverMatched({ rule, outcomes }: RuleCount): boolean {
  const looksForItems = [...outcomes.keys()].some(outcome => outcome !== 'dropped' && outcome !== 'unscanned')
  return rule !== '' && looksForItems && [...outcomes.values()].every(total => total === 0)
}

/** Who has dropped items between two looks: the rules, or the processors where no rule did. */
export function droppedBy(before: readonly RuleCount[], now: readonly RuleCount[]): string[] {
  const totals = new Map(before.map(count => [keyOf(count), count.outcomes.get('dropped') ?? 0]))
  const guilty = now.filter(count => (count.outcomes.get('dropped') ?? 0) > (totals.get(keyOf(count)) ?? 0))
  const byRule = new Set(guilty.flatMap(({ processor, rule }) => (rule === '' ? [] : [processor])))
  return guilty
    .filter(({ processor, rule }) => rule !== '' || !byRule.has(processor))
    .map(({ processor, rule }) => (rule === '' ? processor : `${processor}, rule "${rule}"`))
}

function keyOf({ processor, rule }: RuleCount): string {
  return `${processor}\n${rule}`
}
