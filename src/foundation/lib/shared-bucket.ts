import type { Owner } from './fair-share.ts'
import { OwnerMap } from './owner-map.ts'
import { type Level, TokenBucket } from './token-bucket.ts'

/** Half of what an owner has had is forgotten in this time, in milliseconds. */
const forgetMs = 256
/** One that is alone leaves a tenth of a full bucket to whoever comes. */
const fair = 8
/** Owners that are remembered; those that have had nothing of late are forgotten first. */
const mostOwners = 4_096

/** What was had of late. */
class Had {
  #amount = 0
  #tick = 0

  lately(tick: number): number {
    const passed = tick - this.#tick
    if (passed > 0) {
      this.#amount = passed < 32 ? this.#amount / 2 ** passed : 0
      this.#tick = tick
    }
    return this.#amount
  }

  more(): void {
    this.#amount++
  }
}

interface OwnersHad {
  readonly owner: Owner
  readonly had: Had
  readonly group: Had
}

/**
 * A bucket of tokens that owners share as they do the budget of the kernel (`bpf/include/share.h`): one may have more as
 * long as it has had less of late than a bound that falls with what is left. So those who want most get the same, whoever
 * wants less gets it all, and one alone gets everything. Groups share first, and owners what their group has.
 */
export class SharedBucket {
  readonly #bucket: TokenBucket
  readonly #owners = new OwnerMap<OwnersHad>()
  readonly #groups = new Map<string, Had>()
  #known = 0

  /** `perSecond` may come at once after a quiet time. */
  constructor(perSecond: number, level?: Level) {
    this.#bucket = new TokenBucket(perSecond, 1, level)
  }

  get level(): Level {
    return this.#bucket.level
  }

  /** Takes a token for `owner`. Times are monotonic, in milliseconds. */
  take(owner: Owner, nowMs: number): boolean {
    const bucket = this.#bucket
    bucket.fill(nowMs)
    const left = bucket.level.tokens
    const { capacity } = bucket
    const tick = Math.floor(nowMs / forgetMs)
    const { had, group } = this.#owners.get(owner) ?? this.#added(owner, tick)
    if (left < capacity) {
      const bound = (fair * left * capacity) / (capacity - left)
      const ofGroup = group.lately(tick)
      if (ofGroup >= bound || had.lately(tick) >= fair * (bound - ofGroup)) return false
    }
    if (!bucket.take(1, 0)) return false
    had.lately(tick)
    had.more()
    group.lately(tick)
    group.more()
    return true
  }

  #added(owner: Owner, tick: number): OwnersHad {
    if (this.#known >= mostOwners) this.#forget(tick)
    const key = groupKey(owner)
    let group = this.#groups.get(key)
    if (group === undefined) {
      group = new Had()
      this.#groups.set(key, group)
    }
    const added = { owner, had: new Had(), group }
    this.#owners.set(owner, added)
    this.#known++
    return added
  }

  /** Forgets owners that have had nothing of late; all of them where none has. */
  #forget(tick: number): void {
    const idle = [...this.#owners.values()].filter(({ had }) => had.lately(tick) < 1)
    for (const { owner } of idle) this.#owners.delete(owner)
    this.#known -= idle.length
    if (idle.length === 0) {
      this.#owners.clear()
      this.#known = 0
    }
    // A group that none of its owners is remembered of has had nothing of late either, or what it had is forgotten with them.
    this.#groups.clear()
    for (const { owner, group } of this.#owners.values()) this.#groups.set(groupKey(owner), group)
  }
}

/** Outside of all groups each user is one. */
function groupKey({ group, user }: Owner): string {
  return group === '' ? `user ${user}` : group
}
