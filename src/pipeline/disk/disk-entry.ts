import type { Batch } from '../../model/batch.ts'
import type { Signal } from '../../model/signal.ts'
import type { Entry } from '../batch-queue.ts'
import type { Stored } from './log.ts'

/** What an entry costs in memory beside its body. */
const entryBytes = 256

/**
 * Where a batch in memory is besides: on the `disk`; nowhere (`memory`), for it could not be written yet; nowhere any
 * more, because its segment gave way while it was under way (`evicted`), or because its record is `damaged`.
 */
export type Place = 'disk' | 'memory' | 'evicted' | 'damaged'

export interface DiskEntry extends Entry {
  place: Place
}

export function costOf({ batch }: Entry): number {
  return batch.body.byteLength + entryBytes
}

export function recordOf(batch: Batch, seq: number): Stored {
  const { items, plainBytes, lanes, encoding, body } = batch
  return { seq, items, plainBytes, lanes, encoding, timeMs: Date.now(), body }
}

export function entryOf(record: Stored, signal: Signal): DiskEntry {
  const { seq, items, plainBytes, lanes, encoding, timeMs, body } = record
  const batch: Batch = { signal, items, body, encoding, plainBytes, lanes }
  const queuedAt = performance.now() - Math.max(0, Date.now() - timeMs)
  return { ...newEntry(batch, seq), queuedAt, place: 'disk' }
}

export function newEntry(batch: Batch, number: number): DiskEntry {
  return {
    batch,
    number,
    queuedAt: performance.now(),
    firstTriedAt: 0,
    attempts: 0,
    left: batch.items,
    parts: undefined,
    place: 'memory',
  }
}
