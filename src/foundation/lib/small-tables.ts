/** A table of foreign data with a limited number of items, which counts its bytes. */
export interface SmallTable {
  readonly bytes: number
  /** Drops about this many bytes, or more, and returns how many. */
  shed(bytes: number): number
}

/** Number of tables above which collected ones are removed. */
const leastLook = 64

/**
 * Presents many small tables to the memory governor as one: dozens, each too small to list, which together can be
 * large.
 */
export class SmallTables<T extends Pick<SmallTable, 'bytes'>> {
  /** Weak: the tables of a replaced configuration are collected with it. */
  readonly #tables = new Set<WeakRef<T>>()
  #lookAt = leastLook

  add(table: T): void {
    this.#tables.add(new WeakRef(table))
    if (this.#tables.size < this.#lookAt) return
    // Removes collected tables even if no caller reads the bytes.
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

/** Small tables that lose nothing when they are emptied: their contents can be rebuilt. */
export class SmallCaches extends SmallTables<SmallTable> {
  /** Shrinks the largest first. */
  shed(bytes: number): number {
    let freed = 0
    for (const table of [...this.present()].sort((a, b) => b.bytes - a.bytes)) {
      if (freed >= bytes) break
      freed += table.shed(bytes - freed)
    }
    return freed
  }
}

/** Those of this thread: caches, and tables that must not be emptied and have their own limits. */
export const smallCaches = new SmallCaches()
export const smallTables = new SmallTables()

/** Registers a cache: counted, and emptied if memory is short. */
export function small<T extends SmallTable>(cache: T): T {
  smallCaches.add(cache)
  return cache
}

/** Registers a table that must not be emptied: only counted. */
export function counted<T extends Pick<SmallTable, 'bytes'>>(table: T): T {
  smallTables.add(table)
  return table
}
