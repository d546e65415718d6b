import { FairShare, isSameOwner, type Owner, type ShareLosses } from '../../foundation/lib/fair-share.ts'
import { cfaRule, ruleBytes, type UnwindTable } from '../../foundation/model/unwind-table.ts'

/** The kernel side's tables as memory (bpf/profile.bpf.c): what is written here is read there at once. */
export interface UnwindMemory {
  readonly rows: Uint32Array
  readonly pages: Uint32Array
  readonly rules: Uint8Array
  /** One entry of `fileWords` words for each id. */
  readonly files: Uint32Array
  readonly fileWords: {
    readonly size: number
    readonly firstPage: number
    readonly pages: number
    readonly firstRow: number
    readonly rows: number
    readonly runtime: number
    readonly used: number
  }
}

interface Range {
  readonly at: number
  readonly length: number
}

interface Held {
  readonly rows: Range
  readonly pages: Range
  readonly owner: Owner
  /** Tick at which its code was last met. */
  seenAt: number
}

/** Each has its own number from the start, 0 and 1. */
const firstRules = [cfaRule.none, cfaRule.unsupported]
const unsupportedRule = 1
/** A file whose code was not met for so many ticks may have to make room. */
const idleTicks = 3

/**
 * Puts the unwind tables of files into the memory that they share, and takes those out that were not used of late when
 * there is no room. Rules are shared by all files and are never taken out: there are some hundreds of distinct ones.
 */
export class UnwindArena {
  /** Tables that found no room, since the start. */
  refused = 0
  /** Of them those that had to make room while they were used: others had fewer. */
  taken = 0
  readonly #memory: UnwindMemory
  readonly #freeRows: Room
  readonly #freePages: Room
  readonly #held = new Map<number, Held>()
  /** Never make room. */
  readonly #pinned = new Set<number>()
  #tables = 0
  /** Rows of each owner. */
  readonly #share: FairShare
  readonly #ruleIds = new Map<bigint, number>()
  readonly #ruleView: DataView
  readonly #mostRules: number
  #tick = 0

  constructor(memory: UnwindMemory) {
    this.#memory = memory
    // Row 0 stays free: the walker takes the row before the one that it finds.
    this.#freeRows = new Room(1, memory.rows.length - 1)
    this.#share = new FairShare(memory.rows.length - 1)
    this.#freePages = new Room(0, memory.pages.length)
    this.#mostRules = Math.floor(memory.rules.length / ruleBytes)
    this.#ruleView = new DataView(memory.rules.buffer, memory.rules.byteOffset, memory.rules.byteLength)
    for (const rule of firstRules) this.#rule(BigInt(rule))
  }

  get files(): number {
    return this.#tables
  }

  get rows(): number {
    return this.#memory.rows.length - 1 - this.#freeRows.length
  }

  get losses(): ShareLosses {
    const { refused, taken } = this
    return { refused, taken }
  }

  get rules(): number {
    return this.#ruleIds.size
  }

  /** Bytes in use, of rows, pages and rules. */
  get bytes(): number {
    const pages = this.#memory.pages.length - this.#freePages.length
    return 4 * this.rows + 4 * pages + ruleBytes * this.rules
  }

  /**
   * Writes the table of a file; without one an empty entry, so that frame pointers are tried in its code. Calls
   * `unpublish` for each file that has to make room, from which on the kernel side must not know it. False: there is no
   * room even so, and the entry is empty.
   */
  put(
    id: number,
    table: UnwindTable | undefined,
    runtime: number,
    unpublish: (id: number) => void,
    owner = nobody,
  ): boolean {
    this.drop(id)
    const held = table && this.#allocate(table, owner, unpublish)
    if (table === undefined || held === undefined) {
      this.#held.set(id, { ...empty, seenAt: this.#tick })
      this.#write(id, empty, runtime)
      if (table !== undefined) this.refused++
      return table === undefined
    }
    this.#held.set(id, held)
    this.#share.add(owner, held.rows.length)
    this.#tables++
    this.#copy(table, held)
    this.#write(id, held, runtime)
    return true
  }

  /** Takes the table of a file out, of which the kernel side knows nothing any more. */
  drop(id: number): void {
    const { files, fileWords } = this.#memory
    files.fill(0, id * fileWords.size, (id + 1) * fileWords.size)
    const held = this.#held.get(id)
    if (held === undefined) return
    this.#held.delete(id)
    this.#pinned.delete(id)
    if (held.rows.length > 0) this.#tables--
    this.#share.remove(held.owner, held.rows.length)
    this.#freeRows.give(held.rows)
    this.#freePages.give(held.pages)
  }

  /** Takes note of which files were met since the last call: to be called every few seconds. */
  age(): void {
    this.#tick++
    this.#look()
  }

  /** This file does not make room until it is dropped. */
  pin(id: number): void {
    this.#pinned.add(id)
  }

  /** Files that may make room, those first that were not met for the longest time. */
  idle(): number[] {
    this.#look()
    return [...this.#held]
      .filter(([id, { seenAt }]) => this.#tick - seenAt >= idleTicks && !this.#pinned.has(id))
      .sort(([, a], [, b]) => a.seenAt - b.seenAt)
      .map(([id]) => id)
  }

  #look(): void {
    for (const [id, held] of this.#held) if (this.#met(id)) held.seenAt = this.#tick
  }

  #met(id: number): boolean {
    const { files, fileWords } = this.#memory
    const at = id * fileWords.size + fileWords.used
    const met = files[at] !== 0
    files[at] = 0
    return met
  }

  #allocate(table: UnwindTable, owner: Owner, unpublish: (id: number) => void): Held | undefined {
    const { rows, pages } = table
    const take = () => this.#take(rows.length, pages.length, owner)
    if (rows.length >= this.#memory.rows.length || pages.length > this.#memory.pages.length) return undefined
    const taken = take()
    if (taken !== undefined) return taken
    for (const id of this.idle()) {
      if (this.#held.get(id)!.rows.length === 0) continue
      unpublish(id)
      this.drop(id)
      const found = take()
      if (found !== undefined) return found
    }
    // Nobody's is idle: whoever has more than this owner would have gives the table up that was met least of late.
    for (;;) {
      const giver = this.#share.giver(owner, rows.length)
      if (giver === undefined || isSameOwner(giver, owner)) return undefined
      const id = this.#oldestOf(giver)
      if (id === undefined) return undefined
      this.taken++
      unpublish(id)
      this.drop(id)
      const found = take()
      if (found !== undefined) return found
    }
  }

  #oldestOf(owner: Owner): number | undefined {
    let oldest: number | undefined
    let seenAt = Number.POSITIVE_INFINITY
    for (const [id, held] of this.#held) {
      if (held.rows.length === 0 || held.seenAt >= seenAt) continue
      if (this.#pinned.has(id) || !isSameOwner(held.owner, owner)) continue
      oldest = id
      seenAt = held.seenAt
    }
    return oldest
  }

  #take(rows: number, pages: number, owner: Owner): Held | undefined {
    const forRows = this.#freeRows.take(rows)
    if (forRows === undefined) return undefined
    const forPages = this.#freePages.take(pages)
    if (forPages !== undefined) return { rows: forRows, pages: forPages, owner, seenAt: this.#tick }
    this.#freeRows.give(forRows)
    return undefined
  }

  #copy({ rows, pages, rules }: UnwindTable, held: Held): void {
    const ids = new Uint32Array(Math.floor(rules.length / ruleBytes))
    const view = new DataView(rules.buffer, rules.byteOffset, rules.byteLength)
    for (let i = 0; i < ids.length; i++) ids[i] = this.#rule(view.getBigUint64(i * ruleBytes, true))
    const memory = this.#memory
    const { at } = held.rows
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i]!
      memory.rows[at + i] = ((row & 0xffff0000) | (ids[row & 0xffff] ?? unsupportedRule)) >>> 0
    }
    for (let i = 0; i < pages.length; i++) memory.pages[held.pages.at + i] = at + pages[i]!
  }

  /** The number of a rule; where there is no room for another one it is one that is not followed. */
  #rule(bits: bigint): number {
    const known = this.#ruleIds.get(bits)
    if (known !== undefined) return known
    if (this.#ruleIds.size >= this.#mostRules) return unsupportedRule
    const id = this.#ruleIds.size
    this.#ruleView.setBigUint64(id * ruleBytes, bits, true)
    this.#ruleIds.set(bits, id)
    return id
  }

  #write(id: number, { rows, pages }: Held, runtime: number): void {
    const { files, fileWords } = this.#memory
    const at = id * fileWords.size
    files[at + fileWords.firstPage] = pages.at
    // The last page number only ends the one before it.
    files[at + fileWords.pages] = Math.max(0, pages.length - 1)
    files[at + fileWords.firstRow] = rows.at
    files[at + fileWords.rows] = rows.length
    files[at + fileWords.runtime] = runtime
    files[at + fileWords.used] = 1
  }
}

/** The kernel's own code, which is pinned. */
const nobody: Owner = { group: '', user: '' }
const nothing: Range = { at: 0, length: 0 }
const empty: Held = { rows: nothing, pages: nothing, owner: nobody, seenAt: 0 }

/** Free places of an array, in order; the first that is large enough is taken. */
class Room {
  length: number
  readonly #free: { at: number; length: number }[]

  constructor(at: number, length: number) {
    this.length = length
    this.#free = [{ at, length }]
  }

  take(length: number): Range | undefined {
    if (length === 0) return nothing
    const index = this.#free.findIndex(range => range.length >= length)
    const range = this.#free[index]
    if (range === undefined) return undefined
    const taken = { at: range.at, length }
    range.at += length
    range.length -= length
    if (range.length === 0) this.#free.splice(index, 1)
    this.length -= length
    return taken
  }

  give({ at, length }: Range): void {
    if (length === 0) return
    this.length += length
    let index = this.#free.findIndex(range => range.at > at)
    if (index < 0) index = this.#free.length
    const before = this.#free[index - 1]
    const behind = this.#free[index]
    const joinsBefore = before !== undefined && before.at + before.length === at
    const joinsBehind = behind !== undefined && at + length === behind.at
    if (joinsBefore && joinsBehind) {
      before.length += length + behind.length
      this.#free.splice(index, 1)
    } else if (joinsBefore) {
      before.length += length
    } else if (joinsBehind) {
      behind.at = at
      behind.length += length
    } else {
      this.#free.splice(index, 0, { at, length })
    }
  }
}
