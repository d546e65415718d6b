import { join } from 'node:path'
import type { Files, Stored } from './log.ts'
import {
  encodeReason,
  encodeRecordHead,
  encodeSegmentHead,
  firstSeqOf,
  recordHeadBytes,
  segmentHeadBytes,
  segmentName,
} from './record-format.ts'

/** Directory of dead letters, below that of their log. */
export const deadLetterDirectory = 'dlq'

export interface DeadLettersOptions {
  /** Directory of the log. */
  readonly directory: string
  readonly files: Files
  readonly kind: number
  /** Limit for all of them together; the oldest file is removed first. */
  readonly maxBytes: number
  readonly nowMs: () => number
}

interface DeadFile {
  readonly number: number
  readonly path: string
  size: number
}

/**
 * Batches that the receiver rejected for good, with its reason, for later analysis. Files have the format of segments,
 * are named by a counter, and contain an eighth of the limit each. Dead letters are rare, so each is written with its
 * own open and close, without a sync.
 */
export class DeadLetters {
  readonly #options: DeadLettersOptions
  readonly #directory: string
  /** Ascending. */
  readonly #list: DeadFile[]
  /** Current file; files of earlier processes are never written. */
  #current: DeadFile | undefined

  /** Never throws: an unreadable directory counts as empty until the first dead letter. */
  constructor(options: DeadLettersOptions) {
    this.#options = options
    this.#directory = join(options.directory, deadLetterDirectory)
    this.#list = this.#read()
  }

  get bytes(): number {
    let bytes = 0
    for (const file of this.#list) bytes += file.size
    return bytes
  }

  /** Stores a dead letter; one over the limit is ignored. Throws the error of the system call. */
  bury(record: Stored, why: string): void {
    const { files, kind, maxBytes } = this.#options
    const head = Buffer.alloc(recordHeadBytes)
    const reason = encodeReason(why)
    encodeRecordHead(head, record, kind, 0, reason, record.body)
    const bytes = head.length + reason.length + record.body.length
    if (segmentHeadBytes + bytes > maxBytes) return
    files.makeDirectory(this.#directory)
    const file = this.#fileFor(bytes)
    this.#removeAbove(maxBytes - bytes - (file.size === 0 ? segmentHeadBytes : 0), file)
    this.#write(file, [head, reason, record.body], bytes)
  }

  #write(file: DeadFile, parts: readonly Uint8Array[], bytes: number): void {
    const { files, kind, nowMs } = this.#options
    const head = encodeSegmentHead({ createdMs: nowMs(), firstSeq: file.number, itemsBefore: 0 }, kind)
    const whole = file.size === 0 ? [head, ...parts] : parts
    const length = file.size === 0 ? head.length + bytes : bytes
    this.#current = undefined
    const fd = files.open(file.path, 'append')
    try {
      const written = files.write(fd, whole)
      file.size += written
      if (written < length)
        throw new Error(`cannot write ${file.path}: only ${written} of ${length} bytes were written`)
    } finally {
      files.close(fd)
    }
    this.#current = file
  }

  #fileFor(bytes: number): DeadFile {
    const current = this.#current
    if (current && current.size + bytes <= this.#options.maxBytes / 8) return current
    const number = (this.#list.at(-1)?.number ?? 0) + 1
    const file = { number, path: join(this.#directory, segmentName(number)), size: 0 }
    this.#list.push(file)
    return file
  }

  /** Removes the oldest files until the others are below `maxBytes`. */
  #removeAbove(maxBytes: number, keep: DeadFile): void {
    for (
      let oldest = this.#list[0];
      oldest && oldest !== keep && this.bytes > maxBytes;
      oldest = this.#list[0]
    ) {
      this.#options.files.remove(oldest.path)
      this.#list.shift()
    }
  }

  #read(): DeadFile[] {
    const { files } = this.#options
    const list: DeadFile[] = []
    try {
      for (const name of files.list(this.#directory)) {
        const number = firstSeqOf(name)
        if (number === undefined) continue
        const path = join(this.#directory, name)
        const fd = files.open(path, 'read')
        list.push({ number, path, size: files.size(fd) })
        files.close(fd)
      }
    } catch {
      // Usually it does not exist.
    }
    return list.sort((one, other) => one.number - other.number)
  }
}
