import type { Batch } from '../../foundation/model/batch.ts'
import type { Signal } from '../../foundation/model/signal.ts'
import type { Entry } from '../batch-queue.ts'
import type { Stored } from './log.ts'

/** Memory of an entry without its body, in bytes. */
const entryBytes = 256

/**
 * Where else a batch in memory is stored: on the `disk`; nowhere (`memory`), as it could not be written yet; no
 * longer, as its segment was dropped while it was in flight (`evicted`), or as its record is `damaged`.
 */
export type Place = 'disk' | 'memory' | 'evicted' | 'damaged'

export interface DiskEntry extends Entry {
  place: Place
}

export function costOf({ batch }: Entry): number {
  return batch.body.byteLength + entryBytes
}

export function recordOf(batch: Batch, seq: number): Stored {
  const { items, plainBytes, orderKeys, encoding, body } = batch
  return { seq, items, plainBytes, orderKeys, encoding, timeMs: Date.now(), body }
}

export function entryOf(record: Stored, signal: Signal): DiskEntry {
  const { seq, items, plainBytes, orderKeys, encoding, timeMs, body } = record
  const batch: Batch = { signal, items, body, encoding, plainBytes, orderKeys }
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
