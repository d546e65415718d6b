import type { Signal } from '../../foundation/model/signal.ts'
import type { Dropped } from '../batch-queue.ts'
import type { DiskFault } from './disk-fault.ts'
import type { RecordLog } from './log.ts'

/** The part of a store that one of its queues uses. */
export interface DiskSpace {
  readonly maxBytes: number
  /** Bytes that the queue may use before its own batches are dropped. */
  readonly shareBytes: number
  /**
   * Makes room on disk by dropping the oldest data. Returns a fault if there is none. Throws the error of the system
   * call.
   */
  makeRoom(bytes: number): DiskFault | undefined
  /** Test write: writes and removes a file beside the records. Throws the error of the system call. */
  probe(signal: Signal): void
  /** Reason why the directory of a signal is no longer ours: removed, replaced, or locked by another process. */
  directoryGone(signal: Signal): string | undefined
  /** Creates the directory of a signal again, with an empty log. Throws an error with a reason. */
  openLog(signal: Signal): RecordLog
  /** Called when the fault of a queue changes. */
  changed(): void
}

export interface DiskQueueOptions {
  readonly signal: Signal
  readonly directory: string
  readonly log: RecordLog
  /** Limit for bodies in memory, those in flight included, in bytes. */
  readonly memoryBytes: number
  readonly dropped: Dropped
  /** Called when `take` may return a batch again. */
  readonly ready: () => void
  readonly space: DiskSpace
}
