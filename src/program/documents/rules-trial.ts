// Processor rules as text, and their effect on items. Foreign rules may take any amount of time, so this runs in a
// thread that can be terminated.

import { randomBytes } from 'node:crypto'
import { type Processing, readProcessing } from '../../config/index.ts'
import { createLogger, errorText } from '../../foundation/lib/logger.ts'
import { requestToJson } from '../../pipeline/exporters/otlp/json.ts'
import type { Change } from '../../pipeline/trial/item-snapshot.ts'
import { summaryText } from '../../pipeline/trial/report.ts'
import { type ItemOutcome, Trial } from '../../pipeline/trial/trial.ts'
import type { TryDocument } from '../../view/api/ui/documents.ts'
import type { SignalName } from '../../view/api/ui/source.ts'
import type { Summary } from './tapped-items.ts'

export type TriedItem = TryDocument['items'][number]

/** A received item, redacted. */
export interface Caught {
  readonly summary: Summary
  /** An export request with only this item. */
  readonly body: Uint8Array
}

const mostChanges = 50
const maxText = 300

export class RulesTrial {
  /** Errors in the rules; with any, nothing is tried. */
  readonly problems: TryDocument['problems']
  readonly #processing: Processing
  readonly #signal: SignalName
  readonly #trial: Trial | undefined
  readonly #outcomes: ItemOutcome[] = []
  #items = 0

  constructor(signal: SignalName, rules: string) {
    this.#signal = signal
    this.#processing = readProcessing('rules', rules)
    const { pipeline, problems } = this.#processing
    this.problems = problems.map(({ line, column, length, key, message }) => ({
      line,
      column,
      length,
      key: cut(key),
      message: cut(message),
    }))
    if (problems.length > 0) return
    // The key of this installation would allow hashes to be reversed by guessing.
    const key = randomBytes(32)
    const env = {
      log: createLogger({ level: 'error', format: 'text', write: () => {} }),
      installKey: () => key,
    }
    try {
      this.#trial = new Trial(signal, {
        settings: pipeline,
        env,
        onOutcome: outcome => this.#outcomes.push(outcome),
      })
    } catch (error) {
      this.problems = [{ line: 0, column: 0, length: 0, key: '', message: errorText(error) }]
    }
  }

  /** The outcome for an item. Throws if the rules have errors. */
  run({ summary, body }: Caught): TriedItem {
    if (this.#trial === undefined) throw new Error('cannot try rules with errors')
    this.#outcomes.length = 0
    this.#items++
    const sent = this.#trial.run(body, this.#items)
    const outcomes = this.#outcomes
    const changes = outcomes.flatMap(changesOf)
    const { time_ms, service, title } = summary
    const before = JSON.parse(requestToJson(this.#signal, body))
    const about = { time_ms, service, title, before }
    if (sent === undefined)
      return {
        ...about,
        outcome: 'dropped',
        reason: reasonOf(outcomes),
        changes: [],
        more_changes: 0,
        after: null,
      }
    return {
      ...about,
      outcome: changes.length > 0 ? 'changed' : 'same',
      reason: '',
      changes: changes.slice(0, mostChanges),
      more_changes: Math.max(0, changes.length - mostChanges),
      after: JSON.parse(sent),
    }
  }

  /** Remarks on the rules, and totals of the trial. */
  notes(): string[] {
    const { warnings } = this.#processing
    if (this.#trial === undefined || this.#items === 0) return [...warnings]
    const sums = summaryText({ trials: [this.#trial], hasChanges: true })
    return [...warnings, ...sums.split('\n').slice(0, -1).map(cut)]
  }
}

function reasonOf(outcomes: readonly ItemOutcome[]): string {
  const reasons = outcomes
    .filter(({ outcome }) => outcome === 'dropped')
    .map(({ reason, rules: by }) => (by.length > 0 ? by.join('; ') : reason))
  return cut([...new Set(reasons)].join(', '))
}

type Changed = TriedItem['changes'][number]

function changesOf(outcome: ItemOutcome): Changed[] {
  const { of: kind, title } = outcome
  const of = kind === 'resource' ? 'resource' : kind === 'point' ? cut(title) : ''
  if (outcome.outcome === 'dropped') return [{ of, field: '', before: reasonOf([outcome]), after: null }]
  if (outcome.outcome === 'added') return [{ of, field: '', before: null, after: 'created by the rules' }]
  return outcome.changes.map(({ key, before, after }) => ({
    of,
    field: cut(key),
    before: textOf(before),
    after: textOf(after),
  }))
}

/** As JSON, so that a number differs from a string. */
function textOf(value: Change['before']): string | null {
  return value === undefined ? null : cut(JSON.stringify(value))
}

function cut(text: string): string {
  return text.length > maxText ? `${text.slice(0, maxText)}…` : text
}
