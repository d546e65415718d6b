// Owners of processes that did not answer. Reading private data of processes (strings, memory, lists of mappings) may
// block forever, on a lock or a file system of theirs. So callers give up, and then send no requests for that owner (a
// user within a container, unit or session) until the request is answered and for a while afterwards.

import type { Owner } from '../foundation/lib/fair-share.ts'

/** Maximum unanswered requests, in total and per group: each blocks a thread of svc-probe. */
const mostHeld = 64
const mostHeldOfGroup = 3
/** How long an owner gets no requests after an overdue one was answered; doubled each time. */
const firstPenaltyMs = 10_000
const longestPenaltyMs = 600_000
/** Maximum remembered owners. */
const mostOwners = 1_024

interface Holder {
  readonly owner: Owner
  /** Unanswered requests. */
  held: number
  penaltyMs: number
  untilMs: number
}

export class Holders {
  readonly #now: () => number
  readonly #holders = new Map<string, Holder>()
  /** Owners of unanswered requests, by request number. */
  readonly #held = new Map<number, Holder>()

  /** `now`: milliseconds of a monotonic clock. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Number of unanswered requests. */
  get held(): number {
    return this.#held.size
  }

  /** True if no owner ever delayed a request, in which case callers need not determine owners. */
  get areNone(): boolean {
    return this.#holders.size === 0
  }

  isRefused(owner: Owner): boolean {
    if (this.#held.size >= mostHeld) return true
    const own = this.#holders.get(keyOf(owner))
    if (own !== undefined && this.#isPenalised(own)) return true
    if (owner.group === '') return false
    // A group's users may all be created by one of them, without limit.
    let ofGroup = 0
    for (const holder of this.#holders.values())
      if (holder.owner.group === owner.group && this.#isPenalised(holder)) ofGroup++
    return ofGroup >= mostHeldOfGroup
  }

  /** A request was not answered in time. */
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

  /** An overdue request was answered, or never will be. */
  answered(id: number): void {
    const holder = this.#held.get(id)
    if (holder === undefined) return
    this.#held.delete(id)
    holder.held--
    holder.penaltyMs = Math.min(longestPenaltyMs, Math.max(firstPenaltyMs, holder.penaltyMs * 2))
    holder.untilMs = this.#now() + holder.penaltyMs
  }

  /** The answering program ended. */
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
