import type { Signal } from '../../model/signal.ts'
import type { Dropped } from '../batch-queue.ts'
import type { DiskFault } from './disk-fault.ts'
import type { RecordLog } from './log.ts'

/** A store as one of its queues sees it. */
export interface DiskSpace {
  readonly maxBytes: number
  /** What the queue may take before it is its own batches that give way. */
  readonly shareBytes: number
  /** Makes room on the disk by dropping what is oldest. Says why there is none. Throws the error of the system call. */
  makeRoom(bytes: number): DiskFault | undefined
  /** Writes and removes a file beside the records. Throws the error of the system call. */
  probe(signal: Signal): void
  /** What became of the directory of a signal, where it is ours no longer: removed, replaced, or another process has it. */
  directoryGone(signal: Signal): string | undefined
  /** Makes the directory of a signal anew, and an empty log in it. Throws in words. */
  openLog(signal: Signal): RecordLog
  /** A queue's fault came, changed or went. */
  changed(): void
}

export interface DiskQueueOptions {
  readonly signal: Signal
  readonly directory: string
  readonly log: RecordLog
  /** Bound for bodies in memory, those under way included. */
  readonly memoryBytes: number
  readonly dropped: Dropped
  /** `take` may give a batch now where it gave none before. */
  readonly ready: () => void
  readonly space: DiskSpace
}
