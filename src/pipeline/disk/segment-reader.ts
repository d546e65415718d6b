import { crc32 } from 'node:zlib'
import type { Files } from './log.ts'
import {
  decodeRecordHead,
  decodeSegmentHead,
  type RecordHead,
  recordHeadBytes,
  recordMagic,
  type SegmentHead,
  segmentHeadBytes,
  segmentHeadProbeBytes,
} from './record-format.ts'

/** Content at an offset of a segment: a record, or unknown bytes at the end. */
export interface Found {
  /** Offset of the record header, or of the unknown bytes. */
  readonly offset: number
  readonly record: RecordHead | undefined
  /** Damaged bytes before the record. */
  readonly skippedBytes: number
}

export interface ReaderOptions {
  readonly files: Files
  readonly path: string
  /** Expected kind; records of another kind are damage. Undefined for any. */
  readonly kind: number | undefined
  /** Whether sequence numbers and totals must rise from record to record; not so for dead letters. */
  readonly ascending: boolean
}

const chunkBytes = 64 * 1024
const pageBytes = 4096

/**
 * Reads one segment from its start, record by record, and finds the next one after damage: the next magic whose
 * header verifies. Throws the error of the system call. The creator closes it.
 */
export class SegmentReader {
  /** Whether unreadable pages count as zeros, and so as damage, instead of throwing EIO. */
  tolerant = false
  /** Whether there were unreadable pages. */
  hasUnreadable = false
  readonly #options: ReaderOptions
  readonly #fd: number
  readonly #headBuffer = Buffer.alloc(recordHeadBytes)
  #offset = segmentHeadBytes
  #seq = 0
  #total = 0

  constructor(options: ReaderOptions) {
    this.#options = options
    this.#fd = options.files.open(options.path, 'read')
  }

  /** Another reader of the same file, at its first record. */
  fromStart(): SegmentReader {
    const reader = new SegmentReader(this.#options)
    reader.tolerant = this.tolerant
    return reader
  }

  /** Current size of the file. */
  get size(): number {
    return this.#options.files.size(this.#fd)
  }

  /** Segment header; undefined if damaged, 'later' if a newer version wrote the file. */
  readHead(): SegmentHead | 'later' | undefined {
    const probe = Buffer.alloc(segmentHeadProbeBytes)
    return decodeSegmentHead(probe.subarray(0, this.#read(probe, 0)))
  }

  /**
   * Next record that ends at or before `size`; undefined at the end. After damage only numbers up to `mostSeq` are
   * accepted, so that a lookalike in the body of a damaged record does not hide later records.
   */
  next(size: number, mostSeq: number): Found | undefined {
    const offset = this.#offset
    if (offset >= size) return undefined
    const record = this.#recordAt(offset, size)
    const found = record ? { offset, record, skippedBytes: 0 } : this.#search(offset, size, mostSeq)
    if (!found?.record) {
      this.#offset = size
      return { offset, record: undefined, skippedBytes: size - offset }
    }
    this.#offset = found.offset + recordHeadBytes + found.record.bodyBytes
    this.#seq = found.record.seq
    this.#total = found.record.itemsBefore + found.record.items
    return found
  }

  /** Body of a record from `next`, in its own buffer; undefined if damaged. */
  readBody(offset: number, record: RecordHead): Buffer | undefined {
    const body = Buffer.allocUnsafeSlow(record.bodyBytes)
    const length = this.#read(body, offset + recordHeadBytes)
    return length === body.length && crc32(body) === record.bodyCrc ? body : undefined
  }

  close(): void {
    this.#options.files.close(this.#fd)
  }

  #recordAt(offset: number, size: number): RecordHead | undefined {
    if (this.#read(this.#headBuffer, offset) < recordHeadBytes) return undefined
    return this.#accept(decodeRecordHead(this.#headBuffer, 0), offset, size)
  }

  #accept(record: RecordHead | undefined, offset: number, size: number): RecordHead | undefined {
    const { kind, ascending } = this.#options
    if (!record || offset + recordHeadBytes + record.bodyBytes > size) return undefined
    if (kind !== undefined && record.kind !== kind) return undefined
    if (ascending && (record.seq <= this.#seq || record.itemsBefore < this.#total)) return undefined
    return record
  }

  /** First record after `start`. In linear time: each byte is tried once as a header. */
  #search(start: number, size: number, mostSeq: number): Found | undefined {
    const chunk = Buffer.allocUnsafe(chunkBytes)
    for (let base = start + 1; base + recordHeadBytes <= size; ) {
      const length = this.#read(chunk, base)
      const bytes = chunk.subarray(0, length)
      let at = bytes.indexOf(recordMagic)
      for (; at >= 0 && at + recordHeadBytes <= length; at = bytes.indexOf(recordMagic, at + 1)) {
        const record = this.#accept(decodeRecordHead(bytes, at), base + at, size)
        if (record && record.seq <= mostSeq)
          return { offset: base + at, record, skippedBytes: base + at - start }
      }
      if (length < recordHeadBytes) return undefined
      // The next chunk starts with a header that may be cut off at the end of this one.
      base += length - recordHeadBytes + 1
    }
    return undefined
  }

  /** Fills `into` up to the end of the file. */
  #read(into: Buffer, position: number): number {
    let length = 0
    while (length < into.length) {
      const part = this.#readPart(into.subarray(length), position + length)
      if (part === 0) break
      length += part
    }
    return length
  }

  #readPart(into: Buffer, position: number): number {
    try {
      return this.#options.files.read(this.#fd, into, position)
    } catch (error) {
      if (!this.tolerant || (error as NodeJS.ErrnoException).code !== 'EIO') throw error
      return this.#readPage(into, position)
    }
  }

  /** Reads to the end of one page, as zeros if it is unreadable. */
  #readPage(into: Buffer, position: number): number {
    const page = into.subarray(0, pageBytes - (position % pageBytes))
    try {
      return this.#options.files.read(this.#fd, page, position)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EIO') throw error
      this.hasUnreadable = true
      return page.fill(0).length
    }
  }
}
