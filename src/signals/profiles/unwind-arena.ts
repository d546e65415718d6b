import { FairShare, isSameOwner, type Owner, type ShareLosses } from '../../foundation/lib/fair-share.ts'
import { cfaRule, ruleBytes, type UnwindTable } from '../../foundation/model/unwind-table.ts'

/** The kernel side's tables as shared memory (bpf/profile.bpf.c): writes take effect immediately. */
export interface UnwindMemory {
  readonly rows: Uint32Array
  readonly pages: Uint32Array
  readonly rules: Uint8Array
  /** One entry of `fileWords` words per id. */
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
  /** Tick at which its code was last sampled. */
  seenAt: number
}

/** Numbered 0 and 1. */
const firstRules = [cfaRule.none, cfaRule.unsupported]
const unsupportedRule = 1
/** Ticks without samples after which a file may be evicted. */
const idleTicks = 3

/**
 * Stores the unwind tables of files in shared memory, and evicts idle ones if there is no room. Rules are shared by all
 * files and never evicted: there are some hundred distinct ones.
 */
export class UnwindArena {
  /** Tables refused for lack of room, since the start. */
  refused = 0
  /** Tables evicted while in use, because other owners had fewer. */
  taken = 0
  readonly #memory: UnwindMemory
  readonly #freeRows: Room
  readonly #freePages: Room
  readonly #held = new Map<number, Held>()
  /** Never evicted. */
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
    // Row 0 stays free: the walker reads the row before the one it finds.
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

  /** Bytes in use for rows, pages and rules. */
  get bytes(): number {
    const pages = this.#memory.pages.length - this.#freePages.length
    return 4 * this.rows + 4 * pages + ruleBytes * this.rules
  }

  /**
   * Writes the table of a file; undefined writes an empty entry, so that its code is unwound by frame pointers. Calls
   * `unpublish` for each evicted file, after which the kernel side must not use it. False: no room; the entry is empty.
   */
  put(
    id: number,
    table: UnwindTable | undefined,
    runtime: number,
    unpublish: (id: number) => void,
    owner = noOwner,
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

  /** Removes the table of a file that the kernel side no longer uses. */
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

  /** Records which files were sampled since the last call. Call every few seconds. */
  age(): void {
    this.#tick++
    this.#look()
  }

  /** Protects this file from eviction until it is dropped. */
  pin(id: number): void {
    this.#pinned.add(id)
  }

  /** Files that may be evicted, longest idle first. */
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
    // No idle tables: owners with more than this one would have lose their least recently sampled table.
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

  /** Number of a rule; `unsupported` if there is no room for a new one. */
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
    // The last page number only marks the end of the one before.
    files[at + fileWords.pages] = Math.max(0, pages.length - 1)
    files[at + fileWords.firstRow] = rows.at
    files[at + fileWords.rows] = rows.length
    files[at + fileWords.runtime] = runtime
    files[at + fileWords.used] = 1
  }
}

/** Owner of the kernel's own code, which is pinned. */
const noOwner: Owner = { group: '', user: '' }
const nothing: Range = { at: 0, length: 0 }
const empty: Held = { rows: nothing, pages: nothing, owner: noOwner, seenAt: 0 }

/** Free ranges of an array in order, allocated first fit. */
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
