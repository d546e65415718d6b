// The contract between the log of records on disk and the queue that stands on it.

import type { BodyEncoding } from '../../model/batch.ts'

/** The file operations of a log, so that tests can put a file system below it that fails and loses power. */
export interface Files {
  /** Names in a directory. */
  list(directory: string): string[]
  makeDirectory(directory: string): void
  /** Opens for appending (made with mode 0600 where absent) or for reading; a directory too, to be synced. */
  open(path: string, mode: 'append' | 'read'): number
  /** May write less than asked, as writev(2) does. */
  write(fd: number, parts: readonly Uint8Array[]): number
  /** May read less than asked; 0 at the end. */
  read(fd: number, into: Uint8Array, position: number): number
  size(fd: number): number
  truncate(fd: number, size: number): void
  /** In the thread pool. */
  sync(fd: number): Promise<void>
  syncNow(fd: number): void
  syncDirectory(directory: string): void
  close(fd: number): void
  rename(from: string, to: string): void
  remove(path: string): void
  /** Bytes that a process without privileges may still write, and the size of the file system. */
  space(directory: string): { readonly free: number; readonly total: number }
}

/** A batch as the log keeps it. */
export interface Stored {
  readonly seq: number
  readonly items: number
  readonly plainBytes: number
  readonly lanes: number
  readonly encoding: BodyEncoding
  /** When it was written, milliseconds since the Unix epoch. */
  readonly timeMs: number
  readonly body: Uint8Array
}

/** What damage and repair came to since the log was opened. */
export interface Damage {
  /** Records that could not be read, as far as the sequence numbers tell. */
  readonly records: number
  /** Their items: exact, by the totals in the heads of the segments. */
  readonly items: number
  readonly skippedBytes: number
  /** Half-written records at the end, cut off when the log was opened: they were never accepted. */
  readonly torn: number
}

/**
 * The records of one signal: segments of 8 MiB in one directory, a CRC for each record, a cursor that moves only by
 * `settle`. Content never makes `open` fail; a directory that cannot be used does, with the error of the system call.
 */
export interface RecordLog {
  /**
   * Not settled yet, records of former processes included. Items of a damaged record leave when the damage is found:
   * they are in `takeDamagedItems` then. So what was recovered is `items` and `takeDamagedItems()` after `open`.
   */
  readonly items: number
  readonly records: number
  /** Of all files, those of the dead letters included. */
  readonly bytes: number
  /** The last sequence number that was given out; 0 in an empty log. */
  readonly lastSeq: number
  /** The least sequence number that is not settled; infinite when there is none. */
  readonly oldestSeq: number
  /** The least sequence number that is not settled and may not be on the disk; infinite when there is none. */
  readonly oldestUnsynced: number
  /** When the oldest record that is not settled was written, milliseconds since the Unix epoch; 0: none. */
  readonly oldestTimeMs: number
  /** Items appended since `open`. */
  readonly appendedItems: number
  readonly damage: Damage
  /** Items of damaged records that were found out since the last call: to be counted as dropped. */
  takeDamagedItems(): number

  /**
   * Writes a record; when this returns it survives the process. `seq` must be above all before. Throws the error of the
   * system call (ENOSPC, EROFS, EIO …), and then the log is as it was; a `RangeError` for a body above 64 MiB or a `seq`
   * that is not above all before. Bytes are forced to the disk within `fsyncMs`. The body must not change until then.
   */
  append(record: Stored): void
  /**
   * The next unsettled record at or after `seq`; undefined at the end. Reads ahead of nothing: one record, whose body
   * is a buffer of its own. Damage is skipped and counted. Throws the error of the system call; a record that the disk
   * cannot read (EIO) counts as damaged when it is asked for the fourth time.
   */
  readFrom(seq: number): Stored | undefined
  /** Whether a record is here, neither settled nor lost, as far as that is known without reading. */
  has(seq: number): boolean
  /** The record was delivered or given up: it is not given again, and a segment without others is removed. */
  settle(seq: number, items: number): void
  /**
   * Removes the oldest segment with what is in it and returns the items that were not settled, and the last sequence
   * number that went. The segment being written is closed first. Undefined in an empty log, or where the file cannot
   * be removed.
   */
  dropOldest(): { readonly items: number; readonly lastSeq: number } | undefined
  /** Keeps a copy of a refused batch in the dead letters, bounded. Never throws. */
  bury(record: Stored, why: string): void
  /** Forces all to the disk, the cursor included. Throws the error of the system call. */
  sync(): Promise<void>
  /** `sync` as far as that works, and lets go of the files. Never throws. */
  close(): Promise<void>
}
