import type { LogRecord } from '../model/log.ts'

/** Makes records of the lines of one file, in their order. Nothing here throws. */
export interface LineReader {
  /**
   * Takes a line without its end. The bytes are the caller's again after the call. `begin`: where it stands in the file.
   * What exceeds the longest record comes as several lines.
   */
  line(bytes: Uint8Array, from: number, to: number, begin: number): void
  /** Hands on what waits for more lines: what has waited for long enough, or `all`. */
  flush(all: boolean): void
  /** Where the first line begins that is not handed on yet; -1: all were. */
  readonly heldFrom: number
  /** Lines that are not in the form that was expected; they are handed on as they are. */
  readonly odd: number
}

/** Takes a record, which is filled again for the next one. */
export type EmitRecord = (record: LogRecord) => void

/** A file that is followed. */
export interface FollowedFile {
  /** As it was found. */
  readonly path: string
  readonly device: number
  readonly inode: number
  /** Whose it is: see `logOwner`. */
  readonly owner: string
}

/** Files of one form. */
export interface LogSource {
  /** `docker`, `cri` or `files`: also the label of metrics. */
  readonly name: string
  /** Absolute paths that may hold `*`, `?` and `**`, asked for with each look at the directories. */
  patterns(): readonly string[]
  /** Whether a file that the patterns mean is left out. */
  excluded(path: string): boolean
  /** Undefined: it is not followed. */
  reader(file: FollowedFile): LineReader | undefined
}
