import { type Signal, signals } from '../../foundation/model/signal.ts'
import { valueText, visible } from './item-snapshot.ts'
import { addCounts, isIdle, neverMatched, type RuleCount, ruleTitle } from './rules.ts'
import type { ItemOutcome, Trial } from './trial.ts'

/** Colours a text for a terminal. */
export type Paint = (text: string, color: 'red' | 'green' | 'bold') => string

const codes = { red: 31, green: 32, bold: 1 } as const
export const painted: Paint = (text, color) => `\u001b[${codes[color]}m${text}\u001b[0m`
export const plain: Paint = text => text

/** Result of one item: a heading, and a line for each changed key before and after. '' for an unchanged item. */
export function outcomeText(
  signal: Signal,
  { title, line, outcome, changes, reason, rules }: ItemOutcome,
  paint: Paint,
): string {
  if (outcome === 'same') return ''
  const why = outcome === 'dropped' ? `: ${reason}${rules.length > 0 ? ` (${rules.join('; ')})` : ''}` : ''
  const lines = [paint(`line ${line}, ${signal}: ${title} ${outcome}${why}`, 'bold')]
  for (const { key, before, after } of changes) {
    if (before !== undefined) lines.push(paint(`- ${visible(key)}: ${valueText(before)}`, 'red'))
    if (after !== undefined) lines.push(paint(`+ ${visible(key)}: ${valueText(after)}`, 'green'))
  }
  return lines.map(each => `${each}\n`).join('')
}

/** The same as an object for one line of JSON. */
export function outcomeObject(
  signal: Signal,
  { line, title, outcome, changes, reason, rules }: ItemOutcome,
): object {
  return {
    signal,
    line,
    item: title,
    outcome,
    ...(changes.length > 0 && { changes }),
    ...(outcome === 'dropped' && { reason, rules }),
  }
}

/** All counts, in the order of the signals. */
export interface Summary {
  readonly trials: readonly Trial[]
  /** Whether items were compared individually. */
  readonly hasChanges: boolean
}

function inOrder({ trials }: Summary): readonly Trial[] {
  return trials.toSorted((a, b) => signals.indexOf(a.signal) - signals.indexOf(b.signal))
}

function rulesOf(summary: Summary): RuleCount[] {
  return inOrder(summary).reduce<RuleCount[]>((sums, trial) => addCounts(sums, trial.ruleCounts()), [])
}

export function summaryText(summary: Summary): string {
  const trials = inOrder(summary)
  const lines = trials.map(trial => tallyLine(trial, summary.hasChanges))
  for (const { signal, tally, hasChain } of trials) {
    if (!hasChain) lines.push(`${signal}: no processors are configured`)
    for (const [what, count] of tally.leftOut)
      lines.push(`${signal}: left out, because there is no field for it: ${what}: ${count}`)
    for (const [what, count] of tally.lost) lines.push(`${signal}: ${what}: ${count}`)
  }
  for (const trial of trials)
    for (const warning of trial.warnings()) lines.push(`${trial.signal}: warning: ${warning}`)
  const rules = rulesOf(summary)
  for (const count of rules)
    if (!neverMatched(count) && !isIdle(count))
      lines.push(
        `${ruleTitle(count)}: ${[...count.outcomes].map(([outcome, total]) => `${outcome} ${total}`).join(', ')}`,
      )
  lines.push(...idleLines(rules))
  return lines.map(line => `${line}\n`).join('')
}

/** Rules that never matched, in one line per processor. */
function idleLines(rules: readonly RuleCount[]): string[] {
  const names = new Map<string, string[]>()
  for (const count of rules.filter(neverMatched))
    names.set(count.processor, [...(names.get(count.processor) ?? []), valueText(count.rule)])
  return [...names].map(([processor, idle]) => `${processor}, never matched: ${idle.join(', ')}`)
}

function tallyLine({ signal, tally }: Trial, hasChanges: boolean): string {
  const { changed, added, dropped } = tally
  const parts = [`${tally.in} in`, `${tally.out} out`]
  if (hasChanges) parts.push(`${changed} changed`)
  if (added > 0) parts.push(`${added} added`)
  for (const [reason, count] of dropped) parts.push(`${count} dropped by ${reason}`)
  return `${signal}: ${parts.join(', ')}`
}

export function summaryObject(summary: Summary): object {
  const trials = inOrder(summary)
  return {
    summary: {
      signals: Object.fromEntries(
        trials.map(({ signal, tally }) => [
          signal,
          {
            in: tally.in,
            out: tally.out,
            changed: tally.changed,
            added: tally.added,
            dropped: Object.fromEntries(tally.dropped),
            omitted: Object.fromEntries(tally.leftOut),
            lost: Object.fromEntries(tally.lost),
          },
        ]),
      ),
      rules: rulesOf(summary).map(count => ({
        processor: count.processor,
        rule: count.rule,
        never_matched: neverMatched(count),
        outcomes: Object.fromEntries(count.outcomes),
      })),
      warnings: trials.flatMap(trial => trial.warnings()),
    },
  }
}
