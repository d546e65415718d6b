import type { RecordLog } from './log.ts'

/** Stands in for a log whose directory was removed, until there is a new one. Accepts no records. */
export const removedLog: RecordLog = {
  items: 0,
  records: 0,
  bytes: 0,
  lastSeq: 0,
  oldestSeq: Number.POSITIVE_INFINITY,
  oldestUnsynced: Number.POSITIVE_INFINITY,
  oldestTimeMs: 0,
  appendedItems: 0,
  damage: { records: 0, items: 0, skippedBytes: 0, torn: 0 },
  takeDamagedItems: () => 0,
  append() {
    throw new Error('cannot write a record: its directory was removed')
  },
  readFrom: () => undefined,
  has: () => false,
  settle() {},
  dropOldest: () => undefined,
  bury() {},
  sync: async () => {},
  close: async () => {},
}
