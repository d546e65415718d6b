// The disk queue, if it is configured and the directory is usable.

import type { Config } from '../../config/index.ts'
import { errorText, type Logger } from '../../foundation/lib/logger.ts'
import { DiskQueue } from '../../pipeline/disk/disk-queue.ts'
import { type DiskStore, openDiskStore } from '../../pipeline/disk/disk-store.ts'
import type { DurableQueues } from '../../pipeline/pipeline.ts'

/** Locks an open file without waiting; false if another process has the lock. */
export type TakeLock = (fd: number) => boolean

/** Opens the store, or returns why batches wait in memory. Undefined if no disk queue is configured. */
export function openQueues(config: Config, lock: TakeLock, log: Logger): DiskStore | string | undefined {
  const { enabled, directory } = config.pipeline.export.queue
  if (!enabled) return undefined
  try {
    return openDiskStore({ directory, ...boundsOf(config), lock, log })
  } catch (error) {
    return errorText(error)
  }
}

/** The settings of the queue that a reload may change. */
export function boundsOf({ pipeline }: Config): { readonly maxBytes: number; readonly fsyncMs: number } {
  const { max_size_bytes: maxBytes, fsync: fsyncMs } = pipeline.export.queue
  return { maxBytes, fsyncMs }
}

export function durableQueues(store: DiskStore): DurableQueues {
  return {
    open: (signal, { queueBytes: memoryBytes }, dropped, ready) =>
      store.queue({ signal, memoryBytes, dropped, ready }),
    limit: (queue, { queueBytes: memoryBytes }) => {
      if (queue instanceof DiskQueue) queue.limit({ memoryBytes })
    },
    close: () => store.close(),
  }
}
