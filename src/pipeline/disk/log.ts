// The contract between the log of records on disk and the queue that uses it.

import type { BodyEncoding } from '../../foundation/model/batch.ts'

/** File operations of a log, so that tests can simulate a file system that fails and loses power. */
export interface Files {
  /** Names in a directory. */
  list(directory: string): string[]
  makeDirectory(directory: string): void
  /**
   * Opens for appending (created with mode 0600 if missing), for writing from the beginning on, or for reading; also a
   * directory, for a sync.
   */
  open(path: string, mode: 'append' | 'update' | 'read'): number
  /** May write fewer bytes, like writev(2). */
  write(fd: number, parts: readonly Uint8Array[]): number
  /** May read fewer bytes; 0 at the end. */
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
  /** Bytes available to unprivileged processes, and the size of the file system. */
  space(directory: string): { readonly free: number; readonly total: number }
}

/** A batch as stored in the log. */
export interface Stored {
  readonly seq: number
  readonly items: number
  readonly plainBytes: number
  readonly orderKeys: number
  readonly encoding: BodyEncoding
  /** Write time, in milliseconds since the Unix epoch. */
  readonly timeMs: number
  readonly body: Uint8Array
}

/** Damage found since the log was opened. */
export interface Damage {
  /** Unreadable records, as far as known from the sequence numbers. */
  readonly records: number
  /** Their items; exact, by the totals in the segment headers. */
  readonly items: number
  readonly skippedBytes: number
  /** Incomplete records at the end, cut off when the log was opened: they were never accepted. */
  readonly torn: number
}

/**
 * Records of one signal: segments of 8 MiB in one directory, a CRC for each record, a cursor that moves only by
 * `settle`. Content never makes `open` fail; an unusable directory does, with the error of the system call.
 */
export interface RecordLog {
  /**
   * Unsettled items, records of earlier processes included. Items of a damaged record leave when the damage is found:
   * they are then in `takeDamagedItems`. So the recovered items are `items` plus `takeDamagedItems()` after `open`.
   */
  readonly items: number
  readonly records: number
  /** Size of all files, dead letters included. */
  readonly bytes: number
  /** Last assigned sequence number; 0 in an empty log. */
  readonly lastSeq: number
  /** Lowest unsettled sequence number; infinite for none. */
  readonly oldestSeq: number
  /** Lowest unsettled sequence number that may not be on disk; infinite for none. */
  readonly oldestUnsynced: number
  /** Write time of the oldest unsettled record, in milliseconds since the Unix epoch; 0 for none. */
  readonly oldestTimeMs: number
  /** Items appended since `open`. */
  readonly appendedItems: number
  readonly damage: Damage
  /** Items of damaged records found since the last call, to be counted as dropped. */
  takeDamagedItems(): number

  /**
   * Writes a record; when this returns it survives the process. `seq` must be above all before. Throws the error of the
   * system call (ENOSPC, EROFS, EIO …) with the log unchanged, or a `RangeError` for a body above 64 MiB or a `seq`
   * that is not above all before. Data is synced within `fsyncMs`. The body must not change until then.
   */
  append(record: Stored): void
  /**
   * Next unsettled record at or after `seq`; undefined at the end. Reads one record, without reading ahead; its body
   * has its own buffer. Damage is skipped and counted. Throws the error of the system call; a record that the disk
   * cannot read (EIO) counts as damaged at the fourth attempt.
   */
  readFrom(seq: number): Stored | undefined
  /** Whether a record exists, neither settled nor lost, as far as known without reading. */
  has(seq: number): boolean
  /** Settles a delivered or dropped record: it is not returned again, and a segment without others is removed. */
  settle(seq: number, items: number): void
  /**
   * Removes the oldest segment with its records and returns the unsettled items, and the last removed sequence
   * number. The segment being written is closed first. Undefined in an empty log, or if the file cannot
   * be removed.
   */
  dropOldest(): { readonly items: number; readonly lastSeq: number } | undefined
  /** Stores a copy of a rejected batch in the dead letters, within their limit. Never throws. */
  bury(record: Stored, why: string): void
  /** Syncs all data, the cursor included. Throws the error of the system call. */
  sync(): Promise<void>
  /** `sync` as far as possible, then closes the files. Never throws. */
  close(): Promise<void>
}
