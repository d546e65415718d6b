// The queue on disk, where the configuration wants one and the directory can be used.

import type { Config } from '../../config/index.ts'
import { errorText, type Logger } from '../../foundation/lib/logger.ts'
import { DiskQueue } from '../../pipeline/disk/disk-queue.ts'
import { type DiskStore, openDiskStore } from '../../pipeline/disk/disk-store.ts'
import type { DurableQueues } from '../../pipeline/pipeline.ts'

/** Takes the lock of an open file without waiting; false where another process has it. */
export type TakeLock = (fd: number) => boolean

/** Opens the store, or says why batches wait in memory. Undefined where no queue on disk is wanted. */
export function openQueues(config: Config, lock: TakeLock, log: Logger): DiskStore | string | undefined {
  const { enabled, directory } = config.pipeline.export.queue
  if (!enabled) return undefined
  try {
    return openDiskStore({ directory, ...boundsOf(config), lock, log })
  } catch (error) {
    return errorText(error)
  }
}

/** What a reload may change of it. */
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
