import type { LogRecord } from '../../foundation/model/log.ts'

/** Makes records from the lines of one file, in order. Nothing here throws. */
export interface LineReader {
  /**
   * Takes a line without its terminator. The bytes are valid only during the call. `begin`: its offset in the file.
   * Lines over the maximum record length come as several lines.
   */
  line(bytes: Uint8Array, from: number, to: number, begin: number): void
  /** Passes on text that waits for more lines: text that has waited long enough, or `all`. */
  flush(all: boolean): void
  /** Offset of the first line that is not yet passed on; -1 for none. */
  readonly heldFrom: number
  /** Number of lines in an unexpected form; they are passed on unchanged. */
  readonly odd: number
}

/** Receives a record, which is reused for the next one. */
export type EmitRecord = (record: LogRecord) => void

/** A followed file. */
export interface FollowedFile {
  /** Path as found. */
  readonly path: string
  readonly device: number
  readonly inode: number
  /** Owner: see `logOwner`. */
  readonly owner: string
}

/** Log files of one form. */
export interface LogSource {
  /** `docker`, `cri` or `files`: also the label value in metrics. */
  readonly name: string
  /** Absolute paths that may contain `*`, `?` and `**`, requested at each scan. */
  patterns(): readonly string[]
  /** Whether a matching file is excluded. */
  excluded(path: string): boolean
  /** Reader of a file; undefined if it is not followed. */
  reader(file: FollowedFile): LineReader | undefined
}
