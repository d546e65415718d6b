import { isDigit } from '../../../../foundation/lib/ascii.ts'
import type { ByteFlow } from '../../../../foundation/lib/byte-flow.ts'
import type { Interner } from '../../../../foundation/lib/interner.ts'
import type { Operation } from '../../../../foundation/model/stream.ts'
import { describeDatabaseError } from '../database-call.ts'
import { lineFeedAt } from '../framing.ts'
import type { InOrder } from '../in-order.ts'
import { ResponseReader } from '../in-order-readers.ts'
import { Quiet, tokenOf } from './commands.ts'

const carriageReturn = 0x0d
const space = 0x20

/** MN, EN, HD, NF. */
const noOperation = 0x4d4e
const miss = 0x454e
const done = 0x4844
const notFound = 0x4e46

const longestLine = 2_048
const longestWord = 16
const longestData = 2 ** 31

/** Kind of a line, by its first word. */
const Kind = {
  /** The response ends with it. */
  last: 0,
  /** That many bytes of data follow, then further lines. */
  value: 1,
  /** Data follows, then the response ends. */
  metaValue: 2,
  /** Further lines follow. */
  more: 3,
  error: 4,
} as const
type Kind = (typeof Kind)[keyof typeof Kind]

const kinds = new Map<string, Kind>([
  ['VALUE', Kind.value],
  ['VA', Kind.metaValue],
  ['STAT', Kind.more],
  ['ITEM', Kind.more],
  ['PREFIX', Kind.more],
  ['ERROR', Kind.error],
  ['CLIENT_ERROR', Kind.error],
  ['SERVER_ERROR', Kind.error],
])
for (const word of [
  ...['END', 'STORED', 'NOT_STORED', 'EXISTS', 'NOT_FOUND', 'DELETED', 'TOUCHED', 'OK', 'VERSION', 'RESET'],
  ...['BUSY', 'BADCLASS', 'NOSPARE', 'NOTFULL', 'UNSAFE', 'SAME', 'MN', 'HD', 'EN', 'NF', 'NS', 'EX', 'ME'],
])
  kinds.set(word, Kind.last)

/** Responses of the text protocol. A response is recognised by its lines, whatever the request was. */
export class TextResponses extends ResponseReader {
  readonly #words: Interner
  /** Lines or data of the response are still to come. */
  #open = false
  /** The line end after data comes next, and the response ends there. */
  #atEnd = false
  #endsThere = false
  #startOffset = 0

  constructor(words: Interner, order: InOrder) {
    super(order)
    this.#words = words
  }

  /** Quiet commands get no further response. */
  close(): void {
    for (
      let first = this.order.first;
      first !== undefined && first.mark !== Quiet.no;
      first = this.order.first
    )
      this.#silent(first)
  }

  protected get begun(): boolean {
    return this.#open
  }

  protected reset(): void {
    this.#open = false
    this.#atEnd = false
  }

  protected step(flow: ByteFlow): boolean {
    return this.#atEnd ? this.#dataEnd(flow) : this.#line(flow)
  }

  protected opens({ bytes, at, end }: ByteFlow): boolean | undefined {
    const stop = lineFeedAt(bytes, at, end)
    if (stop === end) return end - at > longestLine ? false : undefined
    return this.#kindOf(bytes, at, stop) !== undefined
  }

  /** False if more bytes are needed. */
  #line(flow: ByteFlow): boolean {
    const { bytes, at, end } = flow
    const stop = lineFeedAt(bytes, at, end)
    if (stop === end) return end - at < longestLine ? false : this.fault(flow)
    const kind = this.#kindOf(bytes, at, stop)
    if (kind === undefined) return this.fault(flow)
    if (!this.#open) this.#begin(flow, kind, stop)
    if (kind === Kind.value || kind === Kind.metaValue) {
      const size = sizeIn(bytes, at, stop, kind === Kind.value ? 3 : 1)
      if (size < 0) return this.fault(flow)
      flow.at = stop + 1
      flow.skip(size)
      this.#atEnd = true
      this.#endsThere = kind === Kind.metaValue
      return true
    }
    const first = this.order.first
    if (kind === Kind.error && first !== undefined)
      describeDatabaseError(first.call, this.#words.intern(bytes, at, wordEnd(bytes, at, stop)))
    flow.at = stop + 1
    if (kind !== Kind.more) this.#end(flow)
    return true
  }

  /** Kind of the line; undefined if memcached sends no such line. */
  #kindOf(bytes: Buffer, start: number, stop: number): Kind | undefined {
    const end = wordEnd(bytes, start, stop)
    if (end === start) return undefined
    if (isDigit(bytes[start]!)) return isNumber(bytes, start, stop) ? Kind.last : undefined
    // The items of `lru_crawler metadump`.
    if (bytes[start] === 0x6b && stop - start > 4 && bytes[start + 3] === 0x3d) return Kind.more
    return end - start > longestWord ? undefined : kinds.get(this.#words.intern(bytes, start, end))
  }

  #begin(flow: ByteFlow, kind: Kind, stop: number): void {
    this.#passQuiet(flow.bytes, flow.at, stop, kind)
    const { first } = this.order
    if (first !== undefined) first.responseNs = flow.startNs
    this.#open = true
    this.#startOffset = flow.offset
  }

  /** Ends the quiet commands that this line cannot answer. */
  #passQuiet(bytes: Buffer, start: number, stop: number, kind: Kind): void {
    let token = -1
    for (
      let first = this.order.first;
      first !== undefined && first.mark !== Quiet.no;
      first = this.order.first
    ) {
      // An error identifies no request.
      if (kind === Kind.error) return
      if (token < 0) token = tokenIn(bytes, start, stop, kind === Kind.metaValue ? 2 : 1)
      if (first.id !== 0 ? first.id === token : speaks(first, bytes, start)) return
      this.#silent(first)
    }
  }

  #silent(operation: Operation): void {
    this.order.take()
    this.order.connection.end(operation)
  }

  #dataEnd(flow: ByteFlow): boolean {
    if (!this.lineBreak(flow)) return false
    this.#atEnd = false
    if (this.#endsThere) this.#end(flow)
    return true
  }

  #end(flow: ByteFlow): void {
    const { order } = this
    this.#open = false
    const operation = order.answer(flow)
    if (operation === undefined) return
    operation.responseBytes = Math.max(0, flow.offset - this.#startOffset)
    operation.endNs = flow.nowNs
    order.agree()
    order.connection.end(operation)
    // From now on the connection carries the server's log.
    if (operation.call.name === 'watch' && operation.call.error === '') order.refuse()
  }
}

/** Whether a line may answer this quiet command: a response that it omits belongs to a later one. */
function speaks(operation: Operation, bytes: Buffer, start: number): boolean {
  const code = (bytes[start]! << 8) | bytes[start + 1]!
  if (code === noOperation) return false
  if (operation.mark === Quiet.retrieval) return code !== miss
  return code !== done && (code !== notFound || operation.mark === Quiet.change)
}

/**
 * The number of an opaque token or a key among a line's flags, the first of which is the `index`th word; 0 if there is
 * none.
 */
function tokenIn(bytes: Buffer, start: number, stop: number, index: number): number {
  let token = 0
  let count = 0
  for (let at = start; at < stop; ) {
    const end = wordEnd(bytes, at, stop)
    if (count++ >= index && end > at) {
      if (bytes[at] === 0x4f) return tokenOf(bytes, at, end)
      if (bytes[at] === 0x6b) token = tokenOf(bytes, at + 1, end)
    }
    at = end
    while (at < stop && bytes[at]! <= space) at++
  }
  return token
}

/** The `index`th word after the first as a size in bytes; -1 if it is none. */
function sizeIn(bytes: Buffer, start: number, stop: number, index: number): number {
  let at = start
  for (let count = 0; count < index; count++) {
    at = wordEnd(bytes, at, stop)
    while (at < stop && bytes[at] === space) at++
  }
  const end = wordEnd(bytes, at, stop)
  let size = end === at ? -1 : 0
  for (; at < end; at++) {
    const byte = bytes[at]!
    if (!isDigit(byte)) return -1
    size = size * 10 + byte - 0x30
    if (size > longestData) return -1
  }
  return size
}

/** The new value of a counter; memcached pads it with spaces if it became shorter. */
function isNumber(bytes: Buffer, start: number, stop: number): boolean {
  for (let at = start; at < stop; at++) {
    const byte = bytes[at]!
    if (!isDigit(byte) && byte !== space && (byte !== carriageReturn || at !== stop - 1)) return false
  }
  return true
}

/** End of the word that begins at `start`: a space or the end of the line. */
function wordEnd(bytes: Buffer, start: number, stop: number): number {
  let at = start
  while (at < stop && bytes[at]! > space) at++
  return at
}
