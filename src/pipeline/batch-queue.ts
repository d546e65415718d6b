import type { Batch } from '../model/batch.ts'
import type { DropReasonName } from '../model/drop-reasons.ts'

/** A batch in a queue. Times are milliseconds of `performance.now()`, which no clock change touches. */
export interface Entry {
  readonly batch: Batch
  /** Position in the order of arrival. */
  readonly number: number
  readonly queuedAt: number
  /** 0 before the first attempt. */
  firstTriedAt: number
  attempts: number
  /** Items of it that are not dealt with yet: fewer than the batch has where it goes in parts. */
  left: number
  /** What is left of the batch where it goes in parts, the next part last; undefined: all of it, in one. */
  parts?: Batch[] | undefined
}

/** What a bound or a fault costs: items of batches that left the queue undelivered. */
export type Dropped = (reason: DropReasonName, items: number) => void

/**
 * Batches of one signal between the batcher and the senders, first in, first out. Two that share a lane are never
 * under way together. A batch leaves by `settle`, or is dropped with a reason. Nothing here throws or blocks for long.
 */
export interface BatchQueue {
  /** What waits here outlives the process. */
  readonly durable: boolean
  /** Items that a former process had left here, those included that turned out to be damaged. */
  readonly recoveredItems: number
  /** Of batches waiting and under way, exactly. */
  readonly items: number
  /** What they take of the bound: memory, or disk where the queue is there. */
  readonly bytes: number
  /** What they may take of it now: queues on disk share one bound, and what others take of it is taken off. */
  readonly capacityBytes: number
  /** Items that fit into it at the mean size of those seen so far, before the first at `usualItemBytes`. */
  readonly capacityItems: number
  /** How long the oldest batch has been here, in milliseconds; 0 when the queue is empty. */
  readonly oldestMs: number
  /** Batches under way. */
  readonly sending: number
  /** Batches that wait. */
  readonly waiting: number
  /** The number of the last batch that came; 0 before the first. */
  readonly lastNumber: number
  /** The least number that is still here; infinite when the queue is empty. */
  readonly oldestNumber: number
  /**
   * Batches up to this number need this process no longer: each left the queue, or outlives the process and a loss of
   * power. What is given up at the end never counts. May be above `lastNumber`.
   */
  readonly securedNumber: number
  /** How near it is to dropping batches for want of room: 0 to 1. */
  readonly fill: number
  /** Items of all batches that `push` was given so far. */
  readonly pushedItems: number
  /** Bytes of bodies in memory, with what goes with them. */
  readonly memory: number
  /**
   * Gives back about `bytes` of memory and returns how many it did: of bodies that the disk has as well, else of the
   * oldest batches that wait, which are dropped with the reason `memory_limit`.
   */
  shed(bytes: number): number
  push(batch: Batch): void
  /**
   * The oldest batch that waits and may start: one that shares no lane with a batch under way or with an older one
   * that waits. It then counts as being under way. Undefined where there is none now; where that changes without a
   * call of the owner's, the queue says so by the callback that it was made with.
   */
  take(): Entry | undefined
  /** Puts a batch that was not delivered back to its place in the order. */
  putBack(entry: Entry): void
  /** Takes items of a batch under way out of the books, because a part of it was dealt with. False as for `settle`. */
  settlePart(entry: Entry, items: number): boolean
  /** Takes a batch that was under way out of the books, with what is left of it. False when it was given up before. */
  settle(entry: Entry): boolean
  /** Keeps a copy of a batch that the receiver refuses for good, where the queue has a place for such; else nothing. */
  bury(batch: Batch, why: string): void
  /** Drops all there is, what is under way included. */
  clear(reason: DropReasonName): void
  /**
   * Ends: nothing may follow. Resolves with the items that outlive the process (0 for a queue in memory); the others
   * have been dropped with the reason `shutdown`.
   */
  close(): Promise<number>
}
