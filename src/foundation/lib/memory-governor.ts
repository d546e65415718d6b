// Who holds how much memory, and who gives some back when it runs short.

/**
 * What a table holds, in the order in which it is given back: what can be made again, what makes items richer, and
 * what items are made from.
 */
export type MemoryKind = 'cache' | 'detail' | 'intake'

/** A table that keeps foreign data. */
export interface MemoryTable {
  /** Name for people and for the label `table`: `processes`, `requests under way`. */
  readonly name: string
  readonly kind: MemoryKind
  /** Bytes held now, as the table counts them. Constant time: it is asked twice a second. */
  bytes(): number
  /**
   * Gives back about `bytes` and returns how many it did. The table counts by reason what is lost by it. Bounded in
   * time: it may give back a part, and is asked again.
   */
  shed(bytes: number): number
  /** Part of the budget that it may hold at most, 0 to 1. Default: 1/4. */
  readonly share?: number
  /** A key of its own bounds it: it takes nothing of the budget, and gives back only where the process runs short. */
  readonly apart?: true
}

/** How short memory is: 0 not; 1 caches shrink; 2 detail is left out as well; 3 nothing new is taken in but counted. */
export type MemoryPressure = 0 | 1 | 2 | 3

export interface MemoryReading {
  /** Bytes on V8's heap that were alive after the last full collection. */
  readonly liveHeapBytes: number
  /** The same with garbage. */
  readonly usedHeapBytes: number
  /** Anonymous memory of the process, in bytes. */
  readonly anonymousBytes: number
}

export interface MemoryBounds {
  /** Bytes of all tables together. */
  readonly tablesBytes: number
  /** Live bytes of V8's heap at which nothing new is taken in. */
  readonly heapBytes: number
  /** Anonymous memory of the process at which nothing new is taken in. */
  readonly processBytes: number
}

export interface TableState {
  readonly name: string
  readonly kind: MemoryKind
  readonly bytes: number
  /** 0: a key of its own bounds it. */
  readonly limit: number
  /** Bytes given back since the start because memory was short. */
  readonly released: number
}

const order: readonly MemoryKind[] = ['cache', 'detail', 'intake']
const usualShare = 1 / 4
/** Parts of a bound at which pressure rises to 1, 2 and 3. It falls a tenth below. */
const steps = [0.75, 0.85, 0.95] as const
const fall = 0.1
/** Part of what a kind holds that it gives back in one turn while the process, not its tables, is short of memory. */
const turnPart = 1 / 4
/** Below its bound by so much, a set of tables that was over it is left alone again. */
const relief = 0.9

interface Entry {
  readonly table: MemoryTable
  shedBytes: number
}

/**
 * Holds all tables within one budget. Two kinds of shortness are told apart: tables that hold more than theirs give
 * that back at once; a process or heap that comes near its bound raises `pressure`, which those who take things in
 * read on their way: a plain number, as it stands on hot paths.
 */
export class MemoryGovernor {
  pressure: MemoryPressure = 0
  /** How often pressure rose above 0. */
  shortages = 0
  /** Takes what a table that cannot give back throws, so that it ends nobody, and others give back. Left out: it is thrown. */
  onFault: ((table: string, error: unknown) => void) | undefined
  readonly #bounds: MemoryBounds
  readonly #read: () => MemoryReading
  readonly #entries: Entry[] = []
  #reading: MemoryReading

  constructor(bounds: MemoryBounds, read: () => MemoryReading) {
    this.#bounds = bounds
    this.#read = read
    this.#reading = read()
  }

  get bounds(): MemoryBounds {
    return this.#bounds
  }

  /** As of the last look. */
  get reading(): MemoryReading {
    return this.#reading
  }

  /** Bytes of all tables. */
  get bytes(): number {
    return this.#bytesOf(this.#entries.filter(({ table }) => !table.apart))
  }

  /** Bytes that a table with this share may hold. */
  limitOf(share = usualShare): number {
    return Math.floor(this.#bounds.tablesBytes * share)
  }

  /** Takes a table in; the function that is returned lets it go. */
  register(table: MemoryTable): () => void {
    const entry = { table, shedBytes: 0 }
    this.#entries.push(entry)
    return () => {
      const at = this.#entries.indexOf(entry)
      if (at >= 0) this.#entries.splice(at, 1)
    }
  }

  tables(): TableState[] {
    return this.#entries.map(({ table, shedBytes }) => ({
      name: table.name,
      kind: table.kind,
      bytes: table.bytes(),
      limit: table.apart ? 0 : this.limitOf(table.share),
      released: shedBytes,
    }))
  }

  /** Looks at memory and gives back what is too much. To be called twice a second. */
  look(): void {
    this.#reading = this.#read()
    this.#weigh()
    for (const entry of this.#entries) {
      const over = entry.table.bytes() - this.limitOf(entry.table.share)
      if (over > 0 && !entry.table.apart) this.#shed(entry, over)
    }
    let over = this.bytes - this.#bounds.tablesBytes
    if (over > 0) over += this.#bounds.tablesBytes * (1 - relief)
    for (const kind of order) {
      const isShort = order.indexOf(kind) < this.pressure
      const entries = this.#entries.filter(({ table }) => table.kind === kind && (isShort || !table.apart))
      const held = this.#bytesOf(entries)
      const wanted = Math.max(over, isShort ? held * turnPart : 0)
      if (wanted <= 0 || held <= 0) continue
      for (const entry of entries) over -= this.#shed(entry, (wanted * entry.table.bytes()) / held)
    }
  }

  #shed(entry: Entry, bytes: number): number {
    const wanted = Math.ceil(bytes)
    if (wanted <= 0) return 0
    try {
      const freed = entry.table.shed(wanted)
      entry.shedBytes += freed
      return freed
    } catch (error) {
      if (this.onFault === undefined) throw error
      this.onFault(entry.table.name, error)
      return 0
    }
  }

  #weigh(): void {
    const { liveHeapBytes, anonymousBytes } = this.#reading
    const part = Math.max(liveHeapBytes / this.#bounds.heapBytes, anonymousBytes / this.#bounds.processBytes)
    const rising = steps.filter(step => part >= step).length as MemoryPressure
    const falling = steps.filter(step => part >= step - fall).length as MemoryPressure
    if (rising > this.pressure) {
      if (this.pressure === 0) this.shortages++
      this.pressure = rising
    } else if (falling < this.pressure) this.pressure = falling
  }

  #bytesOf(entries: readonly Entry[]): number {
    let sum = 0
    for (const { table } of entries) sum += table.bytes()
    return sum
  }
}
