/** The owner of an entry. Owners in one group share the group's part: one of them may have made the others. */
export interface Owner {
  readonly group: string
  readonly user: string
}

/** Entries that owners were refused, or gave up for others, since the start. */
export type ShareLosses = {
  readonly refused: number
  readonly taken: number
}

interface Holder {
  readonly owner: Owner
  amount: number
}

interface Group {
  readonly users: Map<string, Holder>
  amount: number
}

/**
 * A bounded resource (places, bytes) shared by owners. While there is room, any owner may take it. When it is full, an
 * owner with less takes from the one with most, so that no owner can starve the others: an owner is never refused, and
 * gives nothing up, while its group has at most the capacity divided by the number of groups, and it has at most that
 * divided by the group's users.
 */
export class FairShare {
  readonly capacity: number
  #used = 0
  readonly #groups = new Map<string, Group>()

  constructor(capacity: number) {
    this.capacity = capacity
  }

  get used(): number {
    return this.#used
  }

  usedBy({ group, user }: Owner): number {
    return this.#groups.get(group)?.users.get(user)?.amount ?? 0
  }

  hasRoom(amount: number): boolean {
    return this.#used + amount <= this.capacity
  }

  add(owner: Owner, amount: number): void {
    if (amount <= 0) return
    const group = this.#groups.get(owner.group) ?? { users: new Map<string, Holder>(), amount: 0 }
    const holder = group.users.get(owner.user) ?? { owner, amount: 0 }
    this.#groups.set(owner.group, group)
    group.users.set(owner.user, holder)
    holder.amount += amount
    group.amount += amount
    this.#used += amount
  }

  remove(owner: Owner, amount: number): void {
    const group = this.#groups.get(owner.group)
    const holder = group?.users.get(owner.user)
    if (group === undefined || holder === undefined) return
    const removed = Math.min(holder.amount, amount)
    holder.amount -= removed
    group.amount -= removed
    this.#used -= removed
    if (holder.amount === 0) group.users.delete(owner.user)
    if (group.users.size === 0) this.#groups.delete(owner.group)
  }

  clear(): void {
    this.#groups.clear()
    this.#used = 0
  }

  /**
   * The owner that must give something up so that `owner` can get `amount` more: the one with most, or `owner` itself
   * if no other would have more. Undefined: nothing may be taken, and the request is refused.
   */
  giver(owner: Owner, amount: number): Owner | undefined {
    if (amount > this.capacity) return undefined
    const own = this.#groups.get(owner.group)
    const richest = this.richest()
    if (richest === undefined) return undefined
    const wanted = (own?.amount ?? 0) + amount
    if (richest.group !== owner.group && this.#groups.get(richest.group)!.amount > wanted) return richest
    const most = own && richestOf(own)
    if (most === undefined) return undefined
    const mine = this.usedBy(owner)
    return most.amount > mine + amount || mine === 0 ? most.owner : owner
  }

  /**
   * Whether an owner may grow by `amount` if nothing can be taken back: only up to what remains free for others, so
   * that one owner never has more than half, and the next still has room. Outside of groups each user counts alone.
   * Within a group that has its part, the other users get a quarter of what is free, except for a last quarter of
   * everything, which is reserved for other groups.
   */
  mayGrow(owner: Owner, amount: number): boolean {
    const free = this.capacity - this.#used
    const user = this.usedBy(owner) + amount
    const group = (this.#groups.get(owner.group)?.amount ?? 0) + amount
    if ((owner.group === '' ? user : group) <= free) return true
    return user <= free / 4 && this.#used + amount <= this.capacity * (3 / 4)
  }

  /** The owner with most in the group with most; undefined: nothing is used. */
  richest(): Owner | undefined {
    let most: Group | undefined
    for (const group of this.#groups.values())
      if (most === undefined || group.amount > most.amount) most = group
    return most && richestOf(most)?.owner
  }
}

function richestOf({ users }: Group): Holder | undefined {
  let most: Holder | undefined
  for (const holder of users.values()) if (most === undefined || holder.amount > most.amount) most = holder
  return most
}

export function isSameOwner(a: Owner, b: Owner | undefined): boolean {
  return a.group === b?.group && a.user === b.user
}

/** An owner's name for people. */
export function ownerText({ group, user }: Owner): string {
  return group === '' ? `user ${user}` : `user ${user} of ${group}`
}
