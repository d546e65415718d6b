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

  /** Counts a batch that comes. */
  enter(entry: DiskEntry): void {
    this.bytes += costOf(entry)
    if (entry.place === 'memory') this.unwritten++
  }

  /** Counts a batch that goes. */
  leave(entry: DiskEntry): void {
    this.bytes -= costOf(entry)
    if (entry.place === 'memory') this.unwritten--
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

  /** Items that are in memory and nowhere else. */
  get itemsOnlyHere(): number {
    let items = 0
    for (const { place, left } of this.sending) if (place !== 'disk') items += left
    for (const { place, left } of this.behind) if (place !== 'disk') items += left
    return items
  }

  /** Batches under way that are no longer on the disk, though they were. */
  get evicted(): number {
    let batches = 0
    for (const { place } of this.sending) if (place === 'evicted') batches++
    return batches
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
