import { lengthEncoded, lengthSize, status, statusOf } from './packets.ts'

/** Kinds of responses, by command. */
export const Expect = {
  /** OK, EOF or an error. */
  one: 1,
  /** Results, one or several. */
  result: 2,
  /** Response of a preparation. */
  prepared: 3,
  /** Columns or rows up to an EOF. */
  rows: 4,
  /** One packet, of any kind. */
  any: 5,
  /** An authentication exchange. */
  login: 6,
} as const
export type Expect = (typeof Expect)[keyof typeof Expect]

/** Effect of a packet on its response. */
export const Outcome = { more: 0, done: 1, failed: 2, wantsFile: 3, strange: 4 } as const
export type Outcome = (typeof Outcome)[keyof typeof Outcome]

const atStart = 0
const inColumns = 1
const behindColumns = 2
const inRows = 3
const inDefinitions = 4

/** Parses the packets of responses, one response at a time. */
export class MysqlResponse {
  /** The server's status at the end of the newest result; -1 if it was not seen. */
  status = -1
  /** Number of an error. */
  code = 0
  /** Identifier of a prepared statement; -1 before its first packet. */
  statementId = -1
  /** The capability CLIENT_OPTIONAL_RESULTSET_METADATA of MySQL. */
  optionalMetadata = false
  #state: number = atStart
  #left = 0

  /** The next packet begins a response. */
  begin(): void {
    this.#state = atStart
    this.statementId = -1
    this.status = -1
  }

  /** The next packet is somewhere within a response. */
  join(): void {
    this.#state = inRows
  }

  /** Parses a packet of `length` bytes, of which `bytes[at, end)` are available. */
  packet(expect: Expect, bytes: Buffer, at: number, end: number, length: number): Outcome {
    const first = length === 0 ? -1 : bytes[at]!
    if (expect === Expect.any && first !== 0xff) return Outcome.done
    if (first === 0xff && length >= 3) return this.#error(bytes, at, length)
    switch (this.#state) {
      case inColumns:
        if (--this.#left === 0) this.#state = behindColumns
        return Outcome.more
      case behindColumns:
        this.#state = inRows
        if (first === 0xfe && length === 5) return this.#columnsEnd(bytes, at, end)
        return this.#row(bytes, at, end, length)
      case inRows:
        return this.#row(bytes, at, end, length)
      case inDefinitions:
        return this.#definition(first, length)
      default:
        return this.#start(expect, first, bytes, at, end, length)
    }
  }

  #start(expect: Expect, first: number, bytes: Buffer, at: number, end: number, length: number): Outcome {
    switch (expect) {
      case Expect.rows:
        this.#state = inRows
        return this.#row(bytes, at, end, length)
      case Expect.prepared:
        return first === 0 && length >= 12 ? this.#prepared(bytes, at, length) : Outcome.strange
      case Expect.login:
        if (first === 0) return this.#end(bytes, at, end)
        return first === 0xfe || first === 1 ? Outcome.more : Outcome.strange
      case Expect.one:
        return first === 0 || first === 0xfe ? this.#end(bytes, at, end) : Outcome.strange
      default:
        return this.#result(first, bytes, at, end, length)
    }
  }

  /** OK, a request for a file, or the number of columns. */
  #result(first: number, bytes: Buffer, at: number, end: number, length: number): Outcome {
    if (this.optionalMetadata && length < 7 && first <= 1) {
      return this.#columns(lengthEncoded(bytes, at + 1, end), first === 1)
    }
    if (first === 0) return length >= 7 ? this.#end(bytes, at, end) : Outcome.strange
    if (first === 0xfb) return Outcome.wantsFile
    const count = lengthEncoded(bytes, at, end)
    const extra = length - lengthSize(first)
    // MariaDB adds whether the columns follow, if the client asked for it (MARIADB_CLIENT_CACHE_METADATA).
    if (extra > 1 || extra < 0) return Outcome.strange
    return this.#columns(count, extra === 0 || bytes[at + length - 1] !== 0)
  }

  #columns(count: number, follow: boolean): Outcome {
    if (count <= 0 || count > 65_535) return Outcome.strange
    this.#left = count
    this.#state = follow ? inColumns : behindColumns
    return Outcome.more
  }

  /** Rows of a cursor are fetched later. */
  #columnsEnd(bytes: Buffer, at: number, end: number): Outcome {
    const flags = statusOf(bytes, at, end)
    return (flags & status.cursor) === 0 ? Outcome.more : this.#end(bytes, at, end)
  }

  /** Longer packets that begin with 0xfe are rows with a column of more than 2^24 bytes. */
  #row(bytes: Buffer, at: number, end: number, length: number): Outcome {
    return length > 0 && bytes[at] === 0xfe && length < 0xff_ffff ? this.#end(bytes, at, end) : Outcome.more
  }

  /** The statement's identifier, and how many definitions of parameters and columns follow. */
  #prepared(bytes: Buffer, at: number, length: number): Outcome {
    this.statementId = bytes.readUInt32LE(at + 1)
    this.#left = bytes.readUInt16LE(at + 5) + bytes.readUInt16LE(at + 7)
    if (this.optionalMetadata && length > 12 && bytes[at + 12] === 0) this.#left = 0
    this.#state = inDefinitions
    return this.#left === 0 ? Outcome.done : Outcome.more
  }

  /** There may be an EOF after the parameters; the one after the columns ends the response. */
  #definition(first: number, length: number): Outcome {
    if (first === 0xfe && length === 5) return Outcome.more
    return --this.#left === 0 ? Outcome.done : Outcome.more
  }

  #end(bytes: Buffer, at: number, end: number): Outcome {
    this.status = statusOf(bytes, at, end)
    if (this.status < 0 || (this.status & status.moreResults) === 0) return Outcome.done
    this.#state = atStart
    return Outcome.more
  }

  /** MariaDB reports the progress of long statements as errors with the number 0xffff. */
  #error(bytes: Buffer, at: number, length: number): Outcome {
    const code = bytes.readUInt16LE(at + 1)
    if (code === 0xffff) return Outcome.more
    if (length < 4 || code === 0) return Outcome.strange
    this.code = code
    return Outcome.failed
  }
}
