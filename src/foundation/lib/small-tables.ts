/** A table of foreign data that is bounded in items, and counts its bytes. */
export interface SmallTable {
  readonly bytes: number
  /** Forgets about so many bytes, or more, and returns how many. */
  shed(bytes: number): number
}

/** Tables above which those that are gone are looked for. */
const leastLook = 64

/**
 * Small tables all over the program as one of the memory governor: dozens, each too small to be told of, which together can
 * hold much.
 */
export class SmallTables<T extends Pick<SmallTable, 'bytes'>> {
  /** Those of a configuration that is gone go with it. */
  readonly #tables = new Set<WeakRef<T>>()
  #lookAt = leastLook

  add(table: T): void {
    this.#tables.add(new WeakRef(table))
    if (this.#tables.size < this.#lookAt) return
    // Where nobody asks for bytes, those that are gone are let go of all the same.
    for (const _ of this.present());
    this.#lookAt = Math.max(leastLook, 2 * this.#tables.size)
  }

  get bytes(): number {
    let sum = 0
    for (const table of this.present()) sum += table.bytes
    return sum
  }

  *present(): Iterable<T> {
    for (const ref of this.#tables) {
      const table = ref.deref()
      if (table === undefined) this.#tables.delete(ref)
      else yield table
    }
  }
}

/** Small tables that lose nothing when they forget: what they had is made again. */
export class SmallCaches extends SmallTables<SmallTable> {
  /** The largest forget first. */
  shed(bytes: number): number {
    let freed = 0
    for (const table of [...this.present()].sort((a, b) => b.bytes - a.bytes)) {
      if (freed >= bytes) break
      freed += table.shed(bytes - freed)
    }
    return freed
  }
}

/** Those of this thread: caches, and such that must not forget and have bounds of their own. */
export const smallCaches = new SmallCaches()
export const smallTables = new SmallTables()

/** Has a cache counted, and forget where memory is short. */
export function small<T extends SmallTable>(cache: T): T {
  smallCaches.add(cache)
  return cache
}

/** Has a table counted that must not forget. */
export function counted<T extends Pick<SmallTable, 'bytes'>>(table: T): T {
  smallTables.add(table)
  return table
}
