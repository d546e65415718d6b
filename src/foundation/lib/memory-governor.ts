// Tracks memory by table, and frees some when it runs short.

/**
 * A table's contents, in the order in which they are freed: data that can be rebuilt, data that enriches items, and
 * data that items are made from.
 */
export type MemoryKind = 'cache' | 'detail' | 'intake'

/** A table of foreign data. */
export interface MemoryTable {
  /** Name for people and for the label `table`: `processes`, `requests under way`. */
  readonly name: string
  readonly kind: MemoryKind
  /** Current bytes, as the table counts them. Constant time: read twice a second. */
  bytes(): number
  /**
   * Frees about `bytes` and returns how many it freed. The table counts the resulting losses by reason. Bounded in
   * time: it may free a part, and is called again.
   */
  shed(bytes: number): number
  /** Its maximum share of the budget, 0 to 1. Default: 1/4. */
  readonly share?: number
  /** Limited by its own key: takes nothing of the budget, and frees memory only if the process runs short. */
  readonly apart?: true
}

/** Memory pressure: 0 none; 1 caches shrink; 2 detail is dropped, too; 3 new data is only counted. */
export type MemoryPressure = 0 | 1 | 2 | 3

export interface MemoryReading {
  /** Live bytes on V8's heap after the last full collection. */
  readonly liveHeapBytes: number
  /** The same including garbage. */
  readonly usedHeapBytes: number
  /** Anonymous memory of the process, in bytes. */
  readonly anonymousBytes: number
}

export interface MemoryBounds {
  /** Bytes of all tables together. */
  readonly tablesBytes: number
  /** Live bytes of V8's heap at which no new data is accepted. */
  readonly heapBytes: number
  /** Anonymous memory of the process at which no new data is accepted. */
  readonly processBytes: number
}

export interface TableState {
  readonly name: string
  readonly kind: MemoryKind
  readonly bytes: number
  /** 0: its own key limits it. */
  readonly limit: number
  /** Bytes freed since the start because memory was short. */
  readonly released: number
}

const order: readonly MemoryKind[] = ['cache', 'detail', 'intake']
const usualShare = 1 / 4
/** Parts of a limit at which pressure rises to 1, 2 and 3. It falls a tenth below. */
const steps = [0.75, 0.85, 0.95] as const
const fall = 0.1
/** Part of its contents that a kind frees at once if the process, rather than its tables, is short of memory. */
const turnPart = 1 / 4
/** Tables above their limit are shrunk to this part of it. */
const relief = 0.9

interface Entry {
  readonly table: MemoryTable
  shedBytes: number
}

/**
 * Keeps all tables within one budget. There are two kinds of shortage: tables above their limit free the excess at
 * once; a process or heap near its limit raises `pressure`, which intakes check: a plain number, since it is read on
 * hot paths.
 */
export class MemoryGovernor {
  pressure: MemoryPressure = 0
  /** How often pressure rose above 0. */
  shortages = 0
  /**
   * Receives the error of a table that fails to free memory, so that the others still do. Undefined: the error is
   * thrown.
   */
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

  /** From the last check. */
  get reading(): MemoryReading {
    return this.#reading
  }

  /** Bytes of all tables. */
  get bytes(): number {
    return this.#bytesOf(this.#entries.filter(({ table }) => !table.apart))
  }

  /** Maximum bytes of a table with this share. */
  limitOf(share = usualShare): number {
    return Math.floor(this.#bounds.tablesBytes * share)
  }

  /** Registers a table; the returned function unregisters it. */
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

  /** Checks memory and frees the excess. Call twice a second. */
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
