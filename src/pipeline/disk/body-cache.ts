import { costOf, type DiskEntry } from './disk-entry.ts'
import { WaitingBatches } from './waiting-batches.ts'

/** Maximum waiting batches checked for one with free order keys. */
export const maxLooks = 64

/** Batches of a disk queue whose bodies are in memory. */
export class BodyCache {
  /** Waiting batches before all that are only on disk. */
  readonly front = new WaitingBatches<DiskEntry>()
  /** Waiting batches after all that are only on disk. */
  readonly behind = new WaitingBatches<DiskEntry>()
  readonly sending = new Set<DiskEntry>()
  /** Order keys of the batches in flight. */
  orderKeys = 0
  /** Bytes of all bodies and their overhead. */
  bytes = 0
  /** Batches that could not be written, those in flight included. */
  unwritten = 0

  /** Counts an arriving batch, and returns it. */
  enter(entry: DiskEntry): DiskEntry {
    this.bytes += costOf(entry)
    if (entry.place === 'memory') this.unwritten++
    return entry
  }

  /** Counts a leaving batch. */
  leave(entry: DiskEntry): void {
    this.bytes -= costOf(entry)
    if (entry.place === 'memory') this.unwritten--
  }

  /** Frees the newest body that is also on disk, not one being retried; undefined if there is none. */
  leaveOnDisk(): DiskEntry | undefined {
    const { last } = this.front
    if (last?.place !== 'disk' || last.attempts > 0) return undefined
    this.front.pop()
    this.leave(last)
    return last
  }

  begin(entry: DiskEntry): void {
    this.sending.add(entry)
    this.orderKeys |= entry.batch.orderKeys
  }

  /** Marks a batch as no longer in flight; false if it was not. */
  end(entry: DiskEntry): boolean {
    if (!this.sending.delete(entry)) return false
    this.orderKeys = 0
    for (const { batch } of this.sending) this.orderKeys |= batch.orderKeys
    return true
  }

  isInFlight(number: number): boolean {
    for (const entry of this.sending) if (entry.number === number) return true
    return false
  }

  /** Removes the oldest unwritten batch. */
  removeOldestUnwritten(): DiskEntry | undefined {
    for (let at = 0; at < this.behind.length; at++)
      if (this.behind.at(at)!.place === 'memory') return this.behind.remove(at)
    return undefined
  }

  /** Unwritten batches in order, those in flight included. */
  unwrittenInOrder(): DiskEntry[] {
    const entries = [...this.sending, ...this.behind].filter(({ place }) => place === 'memory')
    return entries.sort((a, b) => a.number - b.number)
  }

  *[Symbol.iterator](): Generator<DiskEntry> {
    yield* this.sending
    yield* this.front
    yield* this.behind
  }

  /** Items that are only in memory. */
  get itemsOnlyHere(): number {
    let items = 0
    for (const { place, left } of this) if (place !== 'disk') items += left
    return items
  }

  /** Lowest number of a batch that was never written, or whose segment was dropped; infinite for none. */
  get oldestUnwritten(): number {
    let oldest = Number.POSITIVE_INFINITY
    for (const { place, number } of this.sending)
      if (place === 'memory' || place === 'evicted') oldest = Math.min(oldest, number)
    if (this.unwritten === 0) return oldest
    for (let at = 0; at < this.behind.length; at++) {
      const { place, number } = this.behind.at(at)!
      if (place === 'memory') return Math.min(oldest, number)
    }
    return oldest
  }

  /** Number of batches that are no longer on disk. */
  get orphans(): number {
    let batches = 0
    for (const { place } of this) if (place === 'evicted' || place === 'damaged') batches++
    return batches
  }

  /**
   * Records up to a number were dropped from disk: waiting batches are lost, those in flight may still be delivered.
   * Returns the number of their items that are not lost.
   */
  evict(lastSeq: number): number {
    const isGone = ({ place, number }: DiskEntry) => place === 'disk' && number <= lastSeq
    let kept = 0
    for (const entry of this.sending) {
      if (!isGone(entry)) continue
      entry.place = 'evicted'
      kept += entry.batch.items
    }
    for (const batches of [this.front, this.behind])
      for (const entry of batches.removeWhere(isGone)) {
        this.leave(entry)
        kept += entry.batch.items - entry.left
      }
    return kept
  }

  /** Keeps batches with damaged records in memory. Returns the number of their items. */
  keepDamaged(disk: { has(number: number): boolean }): number {
    let kept = 0
    for (const entry of this) {
      if (entry.place !== 'disk' || disk.has(entry.number)) continue
      entry.place = 'damaged'
      kept += entry.batch.items
    }
    return kept
  }

  /** All records on disk are lost: batches in memory wait to be written again. Returns the number of their items. */
  loseDisk(): number {
    let kept = 0
    for (const entry of this) {
      if (entry.place === 'memory') continue
      if (entry.place === 'disk') kept += entry.batch.items
      entry.place = 'memory'
      this.unwritten++
    }
    const behind = this.behind.drain()
    for (const entry of this.front.drain().concat(behind)) this.behind.push(entry)
    return kept
  }

  /** Arrival time of the oldest batch, by `performance.now()`; infinite for none. */
  get oldestQueuedAt(): number {
    let oldest = (this.front.at(0) ?? this.behind.at(0))?.queuedAt ?? Number.POSITIVE_INFINITY
    for (const { queuedAt } of this.sending) oldest = Math.min(oldest, queuedAt)
    return oldest
  }

  /** Lowest number of a batch; infinite for none. */
  get oldestNumber(): number {
    let oldest = (this.front.at(0) ?? this.behind.at(0))?.number ?? Number.POSITIVE_INFINITY
    for (const { number } of this.sending) oldest = Math.min(oldest, number)
    return oldest
  }

  clear(): void {
    this.sending.clear()
    this.front.drain()
    this.behind.drain()
    this.orderKeys = 0
    this.bytes = 0
    this.unwritten = 0
  }
}
