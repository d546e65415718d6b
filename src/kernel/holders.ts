// Who let questions about its processes wait. Reading what processes keep (strings, memory, lists of mappings) may wait
// for ever, for a lock that they hold or a file system of theirs. So whoever asks gives up, and then asks nothing of such
// an owner (user within a container, unit or session) until the question was answered and a while after.

import type { Owner } from '../foundation/lib/fair-share.ts'

/** Questions that nobody answers, of all and of one group: each is a thread of svc-probe. */
const mostHeld = 64
const mostHeldOfGroup = 3
/** How long nothing is asked of who let a question wait, once it was answered; twice as long each time after. */
const firstPenaltyMs = 10_000
const longestPenaltyMs = 600_000
/** Owners that are remembered for it. */
const mostOwners = 1_024

interface Holder {
  readonly owner: Owner
  /** Questions without an answer. */
  held: number
  penaltyMs: number
  untilMs: number
}

export class Holders {
  readonly #now: () => number
  readonly #holders = new Map<string, Holder>()
  /** Those that wait, by the number of their question. */
  readonly #held = new Map<number, Holder>()

  /** `now`: milliseconds of a clock that never goes back. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** How many questions nobody has answered yet. */
  get held(): number {
    return this.#held.size
  }

  /** Nobody ever let a question wait: whose it is need not be known. */
  get areNone(): boolean {
    return this.#holders.size === 0
  }

  isRefused(owner: Owner): boolean {
    if (this.#held.size >= mostHeld) return true
    const own = this.#holders.get(keyOf(owner))
    if (own !== undefined && this.#isPenalised(own)) return true
    if (owner.group === '') return false
    // Users of a group may be made by one of them, as many as it likes.
    let ofGroup = 0
    for (const holder of this.#holders.values())
      if (holder.owner.group === owner.group && this.#isPenalised(holder)) ofGroup++
    return ofGroup >= mostHeldOfGroup
  }

  /** A question was not answered in time. */
  hold(id: number, owner: Owner): void {
    const key = keyOf(owner)
    const holder = this.#holders.get(key) ?? { owner, held: 0, penaltyMs: 0, untilMs: 0 }
    this.#holders.delete(key)
    this.#holders.set(key, holder)
    holder.held++
    this.#held.set(id, holder)
    if (this.#holders.size <= mostOwners) return
    for (const [other, { held }] of this.#holders) {
      if (held > 0) continue
      this.#holders.delete(other)
      return
    }
  }

  /** One that was held has been answered, or never will be. */
  answered(id: number): void {
    const holder = this.#held.get(id)
    if (holder === undefined) return
    this.#held.delete(id)
    holder.held--
    holder.penaltyMs = Math.min(longestPenaltyMs, Math.max(firstPenaltyMs, holder.penaltyMs * 2))
    holder.untilMs = this.#now() + holder.penaltyMs
  }

  /** Whoever was asked has ended. */
  answeredAll(): void {
    for (const id of [...this.#held.keys()]) this.answered(id)
  }

  #isPenalised({ held, untilMs }: Holder): boolean {
    return held > 0 || this.#now() < untilMs
  }
}

export function keyOf({ group, user }: Owner): string {
  return `${group}\0${user}`
}
