// The thread that tries rules: its own program, started by try-thread.ts.

import { parentPort, workerData } from 'node:worker_threads'
import type { TryDocument } from '../../view/api/ui/documents.ts'
import type { SignalName } from '../../view/api/ui/source.ts'
import { type Caught, RulesTrial, type TriedItem } from './rules-trial.ts'

export interface TryOrder {
  readonly signal: SignalName
  readonly rules: string
}

/** Items, and the time to try them; the rest is skipped. */
export interface TryRequest {
  readonly caught: readonly Caught[]
  readonly forMs: number
}

/** The first answer is for the rules, the second for the items. */
export type TryAnswer =
  | { readonly kind: 'rules'; readonly problems: TryDocument['problems'] }
  | { readonly kind: 'items'; readonly items: readonly TriedItem[]; readonly notes: readonly string[] }

const { signal, rules } = workerData as TryOrder
const trial = new RulesTrial(signal, rules)

parentPort!.on('message', ({ caught, forMs }: TryRequest) => {
  const endMs = performance.now() + forMs
  const items: TriedItem[] = []
  for (const each of caught) {
    if (performance.now() > endMs) break
    items.push(trial.run(each))
  }
  answer({ kind: 'items', items, notes: trial.notes() })
})
answer({ kind: 'rules', problems: trial.problems })

function answer(message: TryAnswer): void {
  parentPort!.postMessage(message)
}
