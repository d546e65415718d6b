import type { Batch } from '../foundation/model/batch.ts'
import type { DropReasonName } from '../foundation/model/drop-reasons.ts'

/** A batch in a queue. Times are milliseconds of `performance.now()`, which is monotonic. */
export interface Entry {
  readonly batch: Batch
  /** Position in the order of arrival. */
  readonly number: number
  readonly queuedAt: number
  /** 0 before the first attempt. */
  firstTriedAt: number
  attempts: number
  /** Items that are still pending: fewer than in the batch if it is sent in parts. */
  left: number
  /** Remaining parts of the batch, the next part last; undefined if it is sent as a whole. */
  parts?: Batch[] | undefined
}

/** Called with items of batches that left the queue undelivered, by a limit or a fault. */
export type Dropped = (reason: DropReasonName, items: number) => void

/**
 * Batches of one signal between the batcher and the senders, first in, first out. Two that share an order key are never
 * in flight together. A batch leaves by `settle`, or is dropped with a reason. Nothing here throws or blocks for long.
 */
export interface BatchQueue {
  /** Whether the content survives the process. */
  readonly durable: boolean
  /** Items left by an earlier process, including those found damaged. */
  readonly recoveredItems: number
  /** Exact number of items waiting and in flight. */
  readonly items: number
  /** Bytes used of the limit, in memory, or on disk for a disk queue. */
  readonly bytes: number
  /** Bytes available to this queue now: disk queues share one limit, from which the use of others is subtracted. */
  readonly capacityBytes: number
  /** Capacity in items at the mean size so far, or at `usualItemBytes` before the first batch. */
  readonly capacityItems: number
  /** Age of the oldest batch, in milliseconds; 0 for an empty queue. */
  readonly oldestMs: number
  /** Batches in flight. */
  readonly sending: number
  /** Waiting batches. */
  readonly waiting: number
  /** Number of the last batch; 0 before the first. */
  readonly lastNumber: number
  /** Lowest number still in the queue; infinite for an empty queue. */
  readonly oldestNumber: number
  /**
   * Batches up to this number no longer need this process: each left the queue, or survives the process and a loss of
   * power. Batches dropped at shutdown never count. May be above `lastNumber`.
   */
  readonly securedNumber: number
  /** Fill level, from 0 to 1; at 1 it drops batches. */
  readonly fill: number
  /** Items of all pushed batches so far. */
  readonly pushedItems: number
  /** Bytes in memory: bodies and their overhead. */
  readonly memory: number
  /**
   * Frees about `bytes` of memory and returns how many: of bodies that are also on disk, else of the
   * oldest waiting batches, which are dropped with the reason `memory_limit`.
   */
  shed(bytes: number): number
  push(batch: Batch): void
  /**
   * Starts and returns the oldest waiting batch whose order keys are free: no batch in flight and no older waiting batch has
   * them. Undefined if there is none now; if that changes without a call by the owner, the queue calls the callback
   * that it was created with.
   */
  take(): Entry | undefined
  /** Puts an undelivered batch back to its place in the order. */
  putBack(entry: Entry): void
  /** Settles a part of a batch in flight. False as for `settle`. */
  settlePart(entry: Entry, items: number): boolean
  /** Settles the rest of a batch in flight. False if it was dropped before. */
  settle(entry: Entry): boolean
  /** Stores a copy of a batch that the receiver rejected for good, if the queue has dead letters. */
  bury(batch: Batch, why: string): void
  /** Drops all batches, those in flight included. */
  clear(reason: DropReasonName): void
  /**
   * Closes the queue; no calls may follow. Resolves with the items that survive the process (0 in memory); the others
   * are dropped with the reason `shutdown`.
   */
  close(): Promise<number>
}
