import type { Owner } from './fair-share.ts'
import { OwnerMap } from './owner-map.ts'
import { type Level, TokenBucket } from './token-bucket.ts'

/** Half-life of an owner's past consumption, in milliseconds. */
const forgetMs = 256
/** A lone owner leaves a tenth of a full bucket for others. */
const fair = 8
/** Maximum remembered owners; those without recent consumption are dropped first. */
const mostOwners = 4_096

/** Recent consumption, decaying. */
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
 * A token bucket that owners share like the kernel's budget (`bpf/include/share.h`): an owner gets more as long as its
 * recent consumption is below a bound that falls with the tokens left. So owners with the highest demand get equal
 * shares, those that need less get everything they ask for, and a lone owner gets everything. Groups share first, then
 * the owners within a group.
 */
export class SharedBucket {
  readonly #bucket: TokenBucket
  readonly #owners = new OwnerMap<OwnersHad>()
  readonly #groups = new Map<string, Had>()
  #known = 0

  /** `perSecond` tokens may be taken at once after a quiet period. */
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

  /** Drops owners without recent consumption, or all of them if there are none. */
  #forget(tick: number): void {
    const idle = [...this.#owners.values()].filter(({ had }) => had.lately(tick) < 1)
    for (const { owner } of idle) this.#owners.delete(owner)
    this.#known -= idle.length
    if (idle.length === 0) {
      this.#owners.clear()
      this.#known = 0
    }
    // A group without remembered owners has no recent consumption either, or it is forgotten with them.
    this.#groups.clear()
    for (const { owner, group } of this.#owners.values()) this.#groups.set(groupKey(owner), group)
  }
}

/** Outside of groups each user is its own group. */
function groupKey({ group, user }: Owner): string {
  return group === '' ? `user ${user}` : group
}
