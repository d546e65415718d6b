import { Texts } from '../texts.ts'
import { BsonWalk, bsonType, documentsIn, sameText } from './bson.ts'
import { flag, opcode } from './wire.ts'

/**
 * Commands between driver and server alone: the handshake, authentication, and the end of sessions. A hello may take
 * ten seconds.
 */
const silentCommands = new Set([
  'hello',
  'isMaster',
  'ismaster',
  'saslStart',
  'saslContinue',
  'authenticate',
  'getnonce',
  'endSessions',
])

/**
 * Commands whose first value is the name of a collection. In others that value may be anything, including code and
 * users.
 */
const collectionCommands = new Set([
  'aggregate',
  'collMod',
  'collStats',
  'compact',
  'convertToCapped',
  'count',
  'create',
  'createIndexes',
  'createSearchIndexes',
  'delete',
  'deleteIndexes',
  'distinct',
  'drop',
  'dropIndexes',
  'dropSearchIndex',
  'find',
  'findAndModify',
  'findandmodify',
  'geoSearch',
  'insert',
  'killCursors',
  'listIndexes',
  'mapReduce',
  'mapreduce',
  'planCacheClear',
  'reIndex',
  'update',
  'updateSearchIndex',
  'validate',
])

/** Fields with the documents of write commands: in the command, or in a separate section. */
const batchNames = ['documents', 'updates', 'deletes', 'ops']

const maxNameBytes = 64
const maxTextBytes = 255

/** A command, as far as it was captured. Never contains values of documents. */
export class Command {
  /** '' if unknown. */
  name = ''
  collection = ''
  database = ''
  /** Number of documents to write; 0 if unknown. */
  batch = 0
  /** The server does not answer. */
  oneWay = false
  /** The bytes are compressed and cannot be read. */
  compressed = false
  readonly #walk = new BsonWalk()
  readonly #inner = new BsonWalk()
  readonly #texts = new Texts({ slots: 4_096, maxLength: maxTextBytes })

  get silent(): boolean {
    return silentCommands.has(this.name)
  }

  clear(): void {
    this.name = ''
    this.collection = ''
    this.database = ''
    this.batch = 0
    this.oneWay = false
    this.compressed = false
  }

  /** Parses the message at `start`, of which the bytes up to `end` are available. */
  read(bytes: Buffer, start: number, end: number): void {
    this.clear()
    const length = bytes.readInt32LE(start)
    let code = bytes.readInt32LE(start + 12)
    let at = start + 16
    if (code === opcode.compressed) {
      code = end - at < 9 ? 0 : bytes.readInt32LE(at)
      this.compressed = end - at < 9 || bytes[at + 8] !== 0
      at += 9
    }
    if (this.compressed) return
    if (code === opcode.message) this.#readMessage(bytes, at, end, start + length)
    else if (code === opcode.query) this.#readQuery(bytes, at, end)
    else this.oneWay = code !== opcode.getMore
  }

  /**
   * The database is the last field of a command, which may be long: its name, if the last bytes of the message are that
   * field. `$db` may also occur inside a document, but then more ends follow.
   */
  databaseIn(bytes: Buffer, start: number, end: number): string {
    if (bytes[end - 1] !== 0 || bytes[end - 2] !== 0) return ''
    // Type, name and length, followed only by the text and the end of the document.
    for (let at = end - 12; at >= start; at--)
      if (
        bytes[at] === bsonType.string &&
        bytes[at + 4] === 0 &&
        sameText(bytes, at + 1, at + 4, '$db') &&
        bytes.readInt32LE(at + 5) === end - at - 10
      )
        return this.#text(bytes, at + 9, end - 2)
    return ''
  }

  /** Sections of a message (MongoDB wire protocol, OP_MSG). */
  #readMessage(bytes: Buffer, start: number, end: number, messageEnd: number): void {
    if (end - start < 5) return
    const flags = bytes.readUInt32LE(start)
    this.oneWay = (flags & flag.moreToCome) !== 0
    const last = Math.min(end, messageEnd - ((flags & flag.checksum) === 0 ? 0 : 4))
    for (let at = start + 4; last - at >= 6; ) {
      const kind = bytes[at]!
      const length = bytes.readInt32LE(at + 1)
      if (kind > 1 || length < 5) return
      const sectionEnd = at + 1 + length
      if (kind === 0) this.#readBody(bytes, at + 1, Math.min(last, sectionEnd))
      else if (sectionEnd <= last) this.#readSequence(bytes, at + 5, sectionEnd)
      at = sectionEnd
    }
  }

  #readBody(bytes: Buffer, start: number, end: number): void {
    const walk = this.#walk
    if (!walk.open(bytes, start, end) || !walk.next()) return
    this.name = this.#nameOf(walk)
    if (collectionCommands.has(this.name)) this.collection = this.#textOf(walk)
    const more = this.name === 'getMore'
    while (walk.next()) {
      if (walk.type === bsonType.string) {
        if (walk.named('$db')) this.database = this.#textOf(walk)
        else if (more && walk.named('collection')) this.collection = this.#textOf(walk)
      } else if (walk.type === bsonType.array && isBatch(bytes, walk.nameStart, walk.nameEnd)) {
        this.batch = this.#elementsOf(walk)
      }
    }
  }

  /** A zero-terminated name, then consecutive documents. */
  #readSequence(bytes: Buffer, start: number, end: number): void {
    let nameEnd = start
    while (nameEnd < end && bytes[nameEnd] !== 0) nameEnd++
    if (isBatch(bytes, start, nameEnd)) this.batch = Math.max(0, documentsIn(bytes, nameEnd + 1, end))
  }

  /** Flags, zero-terminated namespace, two numbers, and the query (MongoDB wire protocol, OP_QUERY). */
  #readQuery(bytes: Buffer, start: number, end: number): void {
    let nameEnd = start + 4
    let dot = -1
    for (; nameEnd < end && bytes[nameEnd] !== 0; nameEnd++)
      if (dot < 0 && bytes[nameEnd] === 0x2e) dot = nameEnd
    if (nameEnd >= end || dot < 0) return
    if (sameText(bytes, dot + 1, nameEnd, '$cmd')) this.#readBody(bytes, nameEnd + 9, end)
    else {
      this.name = 'find'
      this.collection = this.#text(bytes, dot + 1, nameEnd)
    }
    this.database = this.#text(bytes, start + 4, dot)
  }

  #elementsOf(walk: BsonWalk): number {
    if (!walk.whole || !this.#inner.open(walk.bytes, walk.valueStart, walk.valueEnd)) return 0
    let count = 0
    while (this.#inner.next()) count++
    return count
  }

  /** Names of commands are words; anything else is not reported. */
  #nameOf(walk: BsonWalk): string {
    const { bytes, nameStart, nameEnd } = walk
    if (nameEnd === nameStart || nameEnd - nameStart > maxNameBytes) return ''
    for (let i = nameStart; i < nameEnd; i++) if (!isWordByte(bytes[i]!)) return ''
    return this.#texts.of(bytes, nameStart, nameEnd)
  }

  #textOf(walk: BsonWalk): string {
    return walk.type === bsonType.string && walk.whole
      ? this.#text(walk.bytes, walk.textStart, walk.textEnd)
      : ''
  }

  #text(bytes: Buffer, start: number, end: number): string {
    return end <= start || end - start > maxTextBytes ? '' : this.#texts.of(bytes, start, end)
  }
}

function isBatch(bytes: Buffer, start: number, end: number): boolean {
  for (const name of batchNames) if (sameText(bytes, start, end, name)) return true
  return false
}

/** Letters, digits, `_` and `$`. */
function isWordByte(byte: number): boolean {
  const letter = byte | 0x20
  return (
    (letter >= 0x61 && letter <= 0x7a) || (byte >= 0x30 && byte <= 0x39) || byte === 0x5f || byte === 0x24
  )
}
