// Losses, without intended drops.

import { dropReasons } from '../../foundation/model/drop-reasons.ts'
import { type Signal, signals } from '../../foundation/model/signal.ts'
import type { Pipeline } from '../../pipeline/pipeline.ts'

/** Reasons of intended drops. */
export const intended: ReadonlySet<string> = new Set(
  Object.entries(dropReasons).flatMap(([reason, { intended }]) => (intended ? [reason] : [])),
)

/** Reports losses since the start: items of a signal by reason. `rejected`: permanently rejected by the receiver. */
function eachLoss(
  pipeline: Pick<Pipeline, 'state'>,
  report: (signal: Signal, reason: string, items: number) => void,
): void {
  for (const signal of signals) {
    const { dropped, rejected } = pipeline.state(signal)
    for (const [reason, items] of dropped) if (!intended.has(reason)) report(signal, reason, items)
    if (rejected > 0) report(signal, 'rejected', rejected)
  }
}

/** Items lost since the start, all signals. */
export function lostItems(pipeline: Pick<Pipeline, 'state'>): number {
  let lost = 0
  eachLoss(pipeline, (_signal, _reason, items) => {
    lost += items
  })
  return lost
}

/** A recent loss. */
export interface Loss {
  readonly signal: Signal
  readonly reason: string
  /** Since the previous totals. */
  readonly items: number
  readonly perSecond: number
}

/** Losses of about the last ten seconds. */
export class RecentLosses {
  readonly #pipeline: Pick<Pipeline, 'state'>
  /** The totals ten to twenty seconds ago, and those after them. */
  #before: Books | undefined
  #after: Books | undefined

  constructor(pipeline: Pick<Pipeline, 'state'>) {
    this.#pipeline = pipeline
  }

  /** Current losses; none at the first call. */
  now(nowMs: number): Loss[] {
    const books: Books = { atMs: nowMs, items: new Map() }
    const losses: Loss[] = []
    const before = this.#before
    const passedS = before === undefined ? 0 : (nowMs - before.atMs) / 1000
    eachLoss(this.#pipeline, (signal, reason, items) => {
      const name = `${signal} ${reason}`
      books.items.set(name, items)
      if (before === undefined || passedS <= 0) return
      const lost = items - (before.items.get(name) ?? 0)
      if (lost > 0) losses.push({ signal, reason, items: lost, perSecond: lost / passedS })
    })
    if (this.#after === undefined || nowMs - this.#after.atMs >= booksMs) {
      this.#before = this.#after ?? books
      this.#after = books
    }
    return losses.sort((a, b) => b.items - a.items)
  }
}

interface Books {
  readonly atMs: number
  readonly items: Map<string, number>
}

const booksMs = 10_000
