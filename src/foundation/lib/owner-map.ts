import type { Owner } from './fair-share.ts'

/** Values by owner. Owners are compared by content, and lookups create no strings. */
export class OwnerMap<T> {
  readonly #groups = new Map<string, Map<string, T>>()

  get({ group, user }: Owner): T | undefined {
    return this.#groups.get(group)?.get(user)
  }

  set({ group, user }: Owner, value: T): void {
    const users = this.#groups.get(group)
    if (users === undefined) this.#groups.set(group, new Map([[user, value]]))
    else users.set(user, value)
  }

  delete({ group, user }: Owner): void {
    const users = this.#groups.get(group)
    if (users?.delete(user) && users.size === 0) this.#groups.delete(group)
  }

  *values(): IterableIterator<T> {
    for (const users of this.#groups.values()) yield* users.values()
  }

  clear(): void {
    this.#groups.clear()
  }
}
