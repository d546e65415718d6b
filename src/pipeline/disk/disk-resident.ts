import { costOf, type DiskEntry } from './disk-entry.ts'
import { Lineup } from './disk-lineup.ts'

/** How many waiting batches are looked at for one whose lanes are free. */
export const maxLooks = 64

/** The batches of a queue on disk whose bodies are in memory. */
export class Resident {
  /** Waiting, before all that is on the disk only. */
  readonly front = new Lineup<DiskEntry>()
  /** Waiting, after all that is on the disk only. */
  readonly behind = new Lineup<DiskEntry>()
  readonly sending = new Set<DiskEntry>()
  /** Of the batches under way. */
  lanes = 0
  /** Of all bodies, with what goes with them. */
  bytes = 0
  /** Batches that could not be written, those under way included. */
  unwritten = 0

  /** Counts a batch that comes, and gives it back. */
  enter(entry: DiskEntry): DiskEntry {
    this.bytes += costOf(entry)
    if (entry.place === 'memory') this.unwritten++
    return entry
  }

  /** Counts a batch that goes. */
  leave(entry: DiskEntry): void {
    this.bytes -= costOf(entry)
    if (entry.place === 'memory') this.unwritten--
  }

  /** Lets go of the newest body that the disk has as well, where none is tried again; undefined where there is none. */
  leaveOnDisk(): DiskEntry | undefined {
    const { last } = this.front
    if (last?.place !== 'disk' || last.attempts > 0) return undefined
    this.front.pop()
    this.leave(last)
    return last
  }

  begin(entry: DiskEntry): void {
    this.sending.add(entry)
    this.lanes |= entry.batch.lanes
  }

  /** False where the batch was not under way. */
  end(entry: DiskEntry): boolean {
    if (!this.sending.delete(entry)) return false
    this.lanes = 0
    for (const { batch } of this.sending) this.lanes |= batch.lanes
    return true
  }

  isUnderWay(number: number): boolean {
    for (const entry of this.sending) if (entry.number === number) return true
    return false
  }

  /** Takes out the unwritten batch that has waited longest. */
  removeOldestUnwritten(): DiskEntry | undefined {
    for (let at = 0; at < this.behind.length; at++)
      if (this.behind.at(at)!.place === 'memory') return this.behind.remove(at)
    return undefined
  }

  /** In order, those under way included. */
  unwrittenInOrder(): DiskEntry[] {
    const entries = [...this.sending, ...this.behind].filter(({ place }) => place === 'memory')
    return entries.sort((a, b) => a.number - b.number)
  }

  *[Symbol.iterator](): Generator<DiskEntry> {
    yield* this.sending
    yield* this.front
    yield* this.behind
  }

  /** Items that are in memory and nowhere else. */
  get itemsOnlyHere(): number {
    let items = 0
    for (const { place, left } of this) if (place !== 'disk') items += left
    return items
  }

  /** The least number of a batch that was never written, or whose segment gave way; infinite where there is none. */
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

  /** Batches that were on the disk and are no longer. */
  get orphans(): number {
    let batches = 0
    for (const { place } of this) if (place === 'evicted' || place === 'damaged') batches++
    return batches
  }

  /**
   * The disk lost its records up to a number: what waits goes with them, what is under way may still be delivered.
   * Returns how many of their items are not lost.
   */
  evict(lastSeq: number): number {
    const isGone = ({ place, number }: DiskEntry) => place === 'disk' && number <= lastSeq
    let kept = 0
    for (const entry of this.sending) {
      if (!isGone(entry)) continue
      entry.place = 'evicted'
      kept += entry.batch.items
    }
    for (const lineup of [this.front, this.behind])
      for (const entry of lineup.removeWhere(isGone)) {
        this.leave(entry)
        kept += entry.batch.items - entry.left
      }
    return kept
  }

  /** Batches whose records turn out to be damaged stay in memory. Returns how many items that keeps. */
  keepDamaged(disk: { has(number: number): boolean }): number {
    let kept = 0
    for (const entry of this) {
      if (entry.place !== 'disk' || disk.has(entry.number)) continue
      entry.place = 'damaged'
      kept += entry.batch.items
    }
    return kept
  }

  /** The disk lost all: what is in memory waits to be written again. Returns how many items of the disk that keeps. */
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

  /** When the oldest came, by `performance.now()`; infinite where there is none. */
  get oldestQueuedAt(): number {
    let oldest = (this.front.at(0) ?? this.behind.at(0))?.queuedAt ?? Number.POSITIVE_INFINITY
    for (const { queuedAt } of this.sending) oldest = Math.min(oldest, queuedAt)
    return oldest
  }

  /** The least number; infinite where there is none. */
  get oldestNumber(): number {
    let oldest = (this.front.at(0) ?? this.behind.at(0))?.number ?? Number.POSITIVE_INFINITY
    for (const { number } of this.sending) oldest = Math.min(oldest, number)
    return oldest
  }

  clear(): void {
    this.sending.clear()
    this.front.drain()
    this.behind.drain()
    this.lanes = 0
    this.bytes = 0
    this.unwritten = 0
  }
}
