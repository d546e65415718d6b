import { BsonWalk, bsonType } from './bson.ts'
import { flag, opcode } from './wire.ts'

/** The server's response, as far as it was captured. */
export class Reply {
  failed = false
  /** The server's error number (error_codes.yml); 0 if it sent none. */
  code = 0
  /** More responses to the same request follow. */
  moreToCome = false
  readonly #walk = new BsonWalk()
  readonly #inner = new BsonWalk()
  readonly #innermost = new BsonWalk()

  /** Parses the message at `start`, of which the bytes up to `end` are available. */
  read(bytes: Buffer, start: number, end: number): void {
    this.failed = false
    this.code = 0
    this.moreToCome = false
    let code = bytes.readInt32LE(start + 12)
    let at = start + 16
    if (code === opcode.compressed) {
      if (end - at < 9 || bytes[at + 8] !== 0) return
      code = bytes.readInt32LE(at)
      at += 9
    }
    if (code === opcode.message && end - at >= 5) {
      this.moreToCome = (bytes.readUInt32LE(at) & flag.moreToCome) !== 0
      if (bytes[at + 4] === 0) this.#readDocument(bytes, at + 5, end)
    } else if (code === opcode.reply && end - at >= 20) {
      // QueryFailure: the only document has `$err` and `code`.
      this.failed = (bytes[at]! & 2) !== 0
      this.#readDocument(bytes, at + 20, end)
    }
  }

  #readDocument(bytes: Buffer, start: number, end: number): void {
    const walk = this.#walk
    if (!walk.open(bytes, start, end)) return
    let code = 0
    let writeCode = -1
    while (walk.next()) {
      if (walk.named('ok')) this.failed ||= walk.number === 0
      else if (walk.named('code')) code = walk.number
      else if (walk.named('writeErrors')) writeCode = this.#firstOf(walk)
      else if (writeCode < 0 && walk.named('writeConcernError')) writeCode = codeIn(this.#inner, walk)
    }
    if (writeCode >= 0) this.failed = true
    const said = code > 0 ? code : writeCode
    this.code = this.failed && said > 0 ? said : 0
  }

  /** Code of the first document in the current array; -1 if it has none. */
  #firstOf(walk: BsonWalk): number {
    const inner = this.#inner
    if (walk.type !== bsonType.array || !inner.open(walk.bytes, walk.valueStart, walk.limit)) return -1
    return inner.next() ? codeIn(this.#innermost, inner) : -1
  }
}

/** `code` of the current document; 0 if it has none, -1 if there is no document. */
function codeIn(into: BsonWalk, at: BsonWalk): number {
  if (at.type !== bsonType.document || !into.open(at.bytes, at.valueStart, at.limit)) return -1
  while (into.next()) if (into.named('code')) return Math.max(0, into.number || 0)
  return 0
}
