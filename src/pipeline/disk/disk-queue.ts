import type { Batch } from '../../foundation/model/batch.ts'
import type { DropReasonName } from '../../foundation/model/drop-reasons.ts'
import type { BatchQueue, Dropped, Entry } from '../batch-queue.ts'
import { ItemSize } from '../item-size.ts'
import { BodyCache, maxLooks } from './body-cache.ts'
import { costOf, type DiskEntry, entryOf, newEntry, recordOf } from './disk-entry.ts'
import { type DiskFault, faultOf } from './disk-fault.ts'
import type { DiskQueueOptions } from './disk-space.ts'
import type { RecordLog, Stored } from './log.ts'
import { mostBodyBytes, recordHeadBytes, segmentHeadBytes } from './record-format.ts'
import { removedLog } from './removed-log.ts'

/** Overhead of a record on disk, a segment header included, in bytes. */
const recordBytes = recordHeadBytes + segmentHeadBytes
/** Maximum waiting batches in memory for reading ahead. */
const readAhead = 16
/** Minimum interval of write retries caused by deliveries, in milliseconds. */
const retryMs = 100
/** Bytes written per slice after a longer fault. */
const sliceBytes = 4 * 1024 * 1024

/**
 * Disk queue of one signal: each batch is written on arrival. Bodies also stay in memory while there is room and
 * no older batch is only on disk, so that they are rarely read back:
 *
 *     #front (in memory) │ on disk only, from #readFrom on │ #behind (in memory)
 *
 * While the disk does not accept data, batches are kept in memory after all others, and written as soon as possible.
 */
export class DiskQueue implements BatchQueue {
  readonly durable = true
  /** Recovered items of earlier processes, including those immediately found damaged. */
  readonly recoveredItems: number

  readonly #options: DiskQueueOptions
  readonly #dropped: Dropped
  #log: RecordLog
  #memoryBytes: number
  readonly #here = new BodyCache()
  /** All unsettled records before this number are in memory. */
  #readFrom: number
  /** `items` minus those counted by the log: items of batches only in memory, minus settled parts. */
  #beside = 0
  #lastNumber: number
  readonly #itemSize: ItemSize
  #fault: DiskFault | undefined
  #triedAt = 0
  /** Whether the log of a removed directory is being closed. */
  #closing = false
  /** Memory needed for the next record, if it was read and did not fit. */
  #nextCost = 0
  /** Fault of the next record, and whether to wait before a retry. */
  #unreadable: { readonly fault: DiskFault; wait: boolean } | undefined
  /** First batch dropped at shutdown. */
  #lostFrom = Number.POSITIVE_INFINITY
  #closed: Promise<number> | undefined

  constructor(options: DiskQueueOptions) {
    this.#options = options
    this.#dropped = options.dropped
    this.#itemSize = new ItemSize(options.signal)
    this.#log = options.log
    this.#memoryBytes = options.memoryBytes
    this.#lastNumber = this.#log.lastSeq
    this.#readFrom = Math.min(this.#log.oldestSeq, this.#log.lastSeq + 1)
    const damaged = this.#log.takeDamagedItems()
    this.recoveredItems = this.#log.items + damaged
    if (damaged > 0) this.#dropped('corrupt', damaged)
  }

  get items(): number {
    return this.#log.items + this.#beside
  }

  get bytes(): number {
    return this.#log.bytes
  }

  get capacityBytes(): number {
    return this.#options.space.shareBytes
  }

  get capacityItems(): number {
    return this.#itemSize.fitting(this.capacityBytes)
  }

  get oldestMs(): number {
    // Batches only on disk are older than those in `#behind`.
    const { front, sending } = this.#here
    if (front.length === 0 && sending.size === 0 && this.#log.oldestTimeMs > 0)
      return Math.max(0, Date.now() - this.#log.oldestTimeMs)
    const { oldestQueuedAt } = this.#here
    return Number.isFinite(oldestQueuedAt) ? performance.now() - oldestQueuedAt : 0
  }

  get sending(): number {
    return this.#here.sending.size
  }

  get waiting(): number {
    const { unwritten, orphans, sending } = this.#here
    // Damage in unread segments makes the log's count too large, never too small.
    return this.#log.records + unwritten + orphans - sending.size
  }

  get lastNumber(): number {
    return this.#lastNumber
  }

  get oldestNumber(): number {
    return Math.min(this.#log.oldestSeq, this.#here.oldestNumber)
  }

  get securedNumber(): number {
    return Math.min(this.#lostFrom, this.#here.oldestUnwritten, this.#log.oldestUnsynced) - 1
  }

  get fill(): number {
    const memory = this.#fault ? this.#here.bytes / this.#memoryBytes : 0
    return Math.min(1, Math.max(memory, this.bytes / this.capacityBytes))
  }

  get pushedItems(): number {
    return this.#itemSize.items
  }

  get memory(): number {
    return this.#here.bytes
  }

  /** Current fault; undefined for none. */
  get fault(): DiskFault | undefined {
    return this.#fault ?? this.#unreadable?.fault
  }

  /** Sets the memory limit. Bodies over it stay only on disk. */
  limit({ memoryBytes }: { readonly memoryBytes: number }): void {
    this.#memoryBytes = memoryBytes
    this.#nextCost = 0
    this.#makeMemory(0)
  }

  push(batch: Batch): void {
    const { space } = this.#options
    this.#itemSize.add(batch.items, batch.body.byteLength + recordBytes)
    if (this.#closed) {
      this.#dropped('shutdown', batch.items)
      return
    }
    const number = ++this.#lastNumber
    const bytes = batch.body.byteLength + recordBytes
    // A batch that can never fit must not evict others.
    if (bytes > space.maxBytes || batch.body.byteLength > mostBodyBytes) {
      this.#dropped('queue_full', batch.items)
      return
    }
    const entry = newEntry(batch, number)
    if (this.#fault) this.#keepInMemory(entry)
    else {
      const alone = !this.#hasMore
      if (!this.#write(entry)) this.#keepInMemory(entry)
      else if (alone) this.#keepCopy(entry)
    }
  }

  take(): Entry | undefined {
    if (this.#closed) return undefined
    const entry = this.#next()
    if (!entry) return undefined
    this.#here.begin(entry)
    entry.firstTriedAt ||= performance.now()
    entry.attempts++
    return entry
  }

  putBack(given: Entry): void {
    const entry = given as DiskEntry
    if (!this.#here.end(entry)) return
    if (entry.place === 'evicted') {
      this.#forget(entry)
      this.#dropped('queue_full', entry.left)
    } else if (entry.place === 'memory' || entry.number >= this.#readFrom) this.#here.behind.insert(entry)
    else this.#here.front.insert(entry)
    this.#makeMemory(0) // the bound may have become smaller in the meantime
  }

  settlePart(entry: Entry, items: number): boolean {
    if (!this.#here.sending.has(entry as DiskEntry)) return false
    entry.left -= items
    this.#beside -= items
    return true
  }

  settle(given: Entry): boolean {
    const entry = given as DiskEntry
    if (!this.#here.end(entry)) return false
    this.#forget(entry)
    if (this.#fault && performance.now() - this.#triedAt >= retryMs) this.#heal()
    return true
  }

  bury(batch: Batch, why: string): void {
    // Only the rest of a nearly full disk is left, for other programs.
    if (this.#fault?.reason === 'disk_full') return
    this.#log.bury(recordOf(batch, Math.max(1, this.#lastNumber)), why)
  }

  clear(reason: DropReasonName): void {
    const items = this.items
    try {
      while (this.#log.dropOldest());
    } catch (error) {
      this.#degrade(faultOf(error, this.#options.directory))
    }
    this.#log.takeDamagedItems()
    this.#forgetAll()
    this.#readFrom = Math.min(this.#log.oldestSeq, this.#log.lastSeq + 1)
    this.#dropped(reason, items - this.items)
  }

  close(): Promise<number> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  /** Drops the oldest segment on disk; false if there is none. Throws the error of the system call. */
  evict(reason: DropReasonName): boolean {
    const gone = this.#log.dropOldest()
    if (!gone) return false
    this.#lose(reason, gone.items, this.#here.evict(gone.lastSeq))
    this.#readFrom = Math.max(this.#readFrom, gone.lastSeq + 1)
    this.#nextCost = 0
    this.#countDamage()
    return true
  }

  /** Retries failed operations; to be called every 2 s. */
  tick(): void {
    if (this.#closed) return
    const { signal, space } = this.#options
    const gone = this.#log === removedLog ? undefined : space.directoryGone(signal)
    if (gone !== undefined) this.#loseDirectory(gone)
    if (this.#fault) this.#heal()
    if (this.#unreadable) this.#unreadable.wait = false
    this.#options.ready()
  }

  /** To be called when more data is synced. */
  synced(): void {
    if (!this.#closed) this.#options.ready()
  }

  /** Whether records are only on disk, as far as known without reading. */
  get #hasMore(): boolean {
    return this.#readFrom <= this.#log.lastSeq
  }

  #next(): DiskEntry | undefined {
    let taken = this.#here.orderKeys
    let looks = 0
    for (const batches of [this.#here.front, this.#here.behind]) {
      for (let at = 0; ; at++) {
        if (looks++ === maxLooks) return undefined
        if (batches === this.#here.front && at === batches.length && at < readAhead) this.#load()
        const entry = batches.at(at)
        if (!entry) break
        const { orderKeys } = entry.batch
        if ((orderKeys & taken) === 0) return batches.remove(at)
        taken |= orderKeys
        if (~taken === 0) return undefined
      }
      // An unreadable record must not delay the others.
      if (this.#hasMore && !this.#unreadable) return undefined
    }
    return undefined
  }

  /** Reads the next record that is only on disk, if memory has room. A single one is always accepted. */
  #load(): void {
    if (this.#unreadable?.wait) return
    const alone = this.#here.sending.size === 0 && this.#here.front.length === 0
    while (this.#hasMore) {
      if (!alone && this.#here.bytes + this.#nextCost > this.#memoryBytes) return
      const record = this.#read()
      if (!record) return
      const { seq } = record
      const here = this.#here.behind.removeNumber(seq)
      if (here) this.#here.front.push(here)
      else if (!this.#here.isInFlight(seq)) {
        const entry = entryOf(record, this.#options.signal)
        this.#nextCost = costOf(entry)
        if (!alone && this.#here.bytes + this.#nextCost > this.#memoryBytes) return
        this.#nextCost = 0
        this.#here.enter(entry)
        this.#here.front.push(entry)
      }
      this.#readFrom = seq + 1
      if (this.#here.front.last?.number === seq) return
    }
  }

  #read(): Stored | undefined {
    try {
      const record = this.#log.readFrom(this.#readFrom)
      this.#countDamage()
      if (!record) this.#readFrom = this.#log.lastSeq + 1
      if (this.#unreadable) {
        this.#unreadable = undefined
        this.#options.space.changed()
      }
      return record
    } catch (error) {
      this.#waitToRead(error)
      return undefined
    }
  }

  /** Waits before a retry; the log drops a record that stays unreadable. */
  #waitToRead(error: unknown): void {
    this.#unreadable = { fault: faultOf(error, this.#options.directory), wait: true }
    this.#options.space.changed()
  }

  /** Writes a batch; false, with a fault, on an error. */
  #write(entry: DiskEntry): boolean {
    const { space, directory } = this.#options
    try {
      const fault = space.makeRoom(entry.batch.body.byteLength + recordBytes)
      if (!fault) {
        this.#log.append(recordOf(entry.batch, entry.number))
        entry.place = 'disk'
        return true
      }
      this.#degrade(fault)
    } catch (error) {
      this.#degrade(faultOf(error, directory))
    }
    return false
  }

  /** Keeps the body of the last written batch, if no older one is only on disk and memory has room. */
  #keepCopy(entry: DiskEntry): void {
    if (this.#here.bytes + costOf(entry) > this.#memoryBytes) return
    this.#here.front.push(this.#here.enter(entry))
    this.#readFrom = entry.number + 1
  }

  /** Keeps a batch that cannot be written. */
  #keepInMemory(entry: DiskEntry): void {
    const cost = costOf(entry)
    if (cost <= this.#memoryBytes) this.#makeMemory(cost)
    if (this.#here.bytes + cost > this.#memoryBytes) {
      this.#dropped(this.#fault?.reason ?? 'disk_error', entry.left)
      return
    }
    this.#beside += entry.left
    this.#here.behind.push(this.#here.enter(entry))
  }

  shed(bytes: number): number {
    const before = this.#here.bytes
    while (before - this.#here.bytes < bytes && this.#leaveOnDisk());
    return before - this.#here.bytes
  }

  /** Frees the newest body that is also on disk; false if there is none. */
  #leaveOnDisk(): boolean {
    const left = this.#unreadable ? undefined : this.#here.leaveOnDisk()
    if (left) [this.#readFrom, this.#nextCost] = [left.number, 0]
    return left !== undefined
  }

  /** Frees memory until there is room for `bytes`: first bodies that are also on disk, the newest first. */
  #makeMemory(bytes: number): void {
    while (this.#here.bytes + bytes > this.#memoryBytes) {
      if (this.#leaveOnDisk()) continue
      const oldest = this.#fault && this.#here.removeOldestUnwritten()
      if (!oldest || !this.#fault) return
      this.#forget(oldest)
      this.#dropped(this.#fault.reason, oldest.left)
    }
  }

  #degrade(fault: DiskFault): void {
    this.#fault = fault
    this.#triedAt = performance.now()
    this.#options.space.changed()
  }

  /** Writes unwritten batches in order: all of them at shutdown, otherwise in slices. */
  #heal(atOnce = false): void {
    if (!this.#fault || this.#closing) return
    if (!this.#diskWorks()) return
    let bytes = 0
    for (const entry of this.#here.unwrittenInOrder()) {
      if (bytes >= sliceBytes && !atOnce) {
        setImmediate(() => this.#closed || this.#heal())
        return
      }
      const alone = !this.#hasMore
      if (!this.#write(entry)) return
      bytes += entry.batch.body.byteLength
      this.#here.unwritten--
      this.#beside -= entry.batch.items
      this.#settleIn(entry, alone)
    }
    this.#fault = undefined
    this.#options.space.changed()
  }

  /** Whether a write can be tried; otherwise sets the fault again. */
  #diskWorks(): boolean {
    const { space, signal, directory } = this.#options
    this.#triedAt = performance.now()
    try {
      if (this.#log === removedLog) this.#log = space.openLog(signal)
      const fault = space.makeRoom(0)
      if (!fault && this.#here.unwritten === 0) space.probe(signal)
      if (!fault) return true
      this.#degrade(fault)
    } catch (error) {
      this.#degrade(faultOf(error, directory))
    }
    return false
  }

  /** Moves a newly written batch to its place among those on disk. */
  #settleIn(entry: DiskEntry, alone: boolean): void {
    const waits = !this.#here.sending.has(entry)
    if (alone) {
      if (waits) this.#here.front.push(this.#here.behind.removeNumber(entry.number)!)
      this.#readFrom = entry.number + 1
    } else if (waits && entry.attempts === 0) {
      this.#here.behind.removeNumber(entry.number)
      this.#here.leave(entry)
    }
  }

  /** The directory is gone: only the batches in memory are left, and are written to a new one. */
  #loseDirectory(words: string): void {
    const old = this.#log
    const kept = this.#here.loseDisk()
    this.#log = removedLog
    this.#readFrom = this.#lastNumber + 1
    this.#nextCost = 0
    this.#unreadable = undefined
    // A new log may be opened only afterwards: the old one still writes its cursor.
    this.#closing = true
    void old.close().finally(() => {
      this.#closing = false
      if (!this.#closed) this.#heal()
    })
    this.#lose('disk_error', old.items, kept)
    this.#degrade({
      reason: 'disk_error',
      words,
      hint: 'svc creates it again if it can; data that was queued only there is lost',
    })
  }

  /** Removes a batch from the accounts and from disk. */
  #forget(entry: DiskEntry): void {
    this.#here.leave(entry)
    if (entry.place === 'disk') {
      this.#beside += entry.batch.items - entry.left
      this.#log.settle(entry.number, entry.batch.items)
    } else this.#beside -= entry.left
  }

  /** Forgets all batches in memory; those on disk stay. */
  #forgetAll(): void {
    this.#here.clear()
    this.#beside = 0
    this.#nextCost = 0
  }

  /** Counts items lost by the log, some of which may still be in memory. */
  #lose(reason: DropReasonName, items: number, kept: number): void {
    this.#beside += kept
    if (items > kept) this.#dropped(reason, items - kept)
  }

  #countDamage(): void {
    const items = this.#log.takeDamagedItems()
    if (items > 0) this.#lose('corrupt', items, this.#here.keepDamaged(this.#log))
  }

  async #close(): Promise<number> {
    this.#heal(true)
    const lost = this.#here.itemsOnlyHere
    const kept = this.items - lost
    this.#lostFrom = this.#here.oldestUnwritten
    this.#forgetAll()
    // Delivered parts of a batch come again with the batch, but are no longer in the accounts.
    this.#beside = kept - this.#log.items
    if (lost > 0) this.#dropped('shutdown', lost)
    await this.#log.close()
    return kept
  }
}
