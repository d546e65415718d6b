import type { ByteFlow } from '../../../../foundation/lib/byte-flow.ts'
import type { Interner } from '../../../../foundation/lib/interner.ts'
import { describeDatabaseCall } from '../database-call.ts'
import { lineFeedAt } from '../framing.ts'
import type { InOrder } from '../in-order.ts'
import { RequestReader } from '../in-order-readers.ts'
import { otherCommand, Quiet, Shape, shapes, tokenOf } from './commands.ts'

const newline = 0x0a
const carriageReturn = 0x0d
const space = 0x20

/** Maximum length of lines that are read as a whole; memcached accepts 2,048 bytes. */
const longestLine = 2_048
const longestCommand = 16
const longestData = 2 ** 31

/** Requests of the text protocol: lines, and data after those that store something. */
export class TextRequests extends RequestReader {
  readonly #words: Interner
  /** A request is being read: in a line that is skipped, or at the line end after its data. */
  #inLine = false
  #atEnd = false
  #answered = true
  #name = ''
  #quiet = 0
  #token = 0
  #startOffset = 0
  /** Offsets of the last word found. */
  #wordStart = 0
  #wordEnd = 0

  constructor(words: Interner, order: InOrder) {
    super(order)
    this.#words = words
  }

  override lost(flow: ByteFlow): void {
    if (this.begun) this.#finish(flow, flow.received)
    super.lost(flow)
  }

  protected get begun(): boolean {
    return this.#inLine || this.#atEnd
  }

  protected reset(): void {
    this.#inLine = false
    this.#atEnd = false
  }

  /** Recognised by a known command. */
  protected opens({ bytes, at, end }: ByteFlow): boolean | undefined {
    const stop = commandEnd(bytes, at, end)
    if (stop === at || stop - at > longestCommand) return false
    if (stop === end) return undefined
    if (bytes[stop] !== space && bytes[stop] !== carriageReturn) return false
    return shapes.has(this.#words.intern(bytes, at, stop))
  }

  protected step(flow: ByteFlow): boolean {
    if (this.#inLine) return this.#passLine(flow)
    if (this.#atEnd) return this.#dataEnd(flow)
    return this.#begin(flow)
  }

  #begin(flow: ByteFlow): boolean {
    const { bytes, at, end } = flow
    const stop = commandEnd(bytes, at, end)
    if (stop - at > longestCommand) return this.fault(flow)
    if (stop === end) return false
    const delimiter = bytes[stop]!
    if (stop === at || (delimiter !== space && delimiter !== carriageReturn && delimiter !== newline))
      return this.fault(flow)
    const word = this.#words.intern(bytes, at, stop)
    const shape = shapes.get(word)
    if (shape === Shape.keys) {
      this.#start(flow, word)
      this.#inLine = true
      flow.at = stop
      return true
    }
    const lineEnd = lineFeedAt(bytes, stop, end)
    if (lineEnd === end) return end - at < longestLine ? false : this.fault(flow)
    if (shape === Shape.quit) {
      flow.at = lineEnd + 1
      return true
    }
    this.#start(flow, shape === undefined ? otherCommand : word)
    return this.#line(flow, shape, stop, lineEnd)
  }

  #start(flow: ByteFlow, name: string): void {
    this.order.asking = this.order.connection.begin(flow)
    this.#startOffset = flow.offset
    this.#name = name
    this.#answered = true
    this.#quiet = Quiet.no
    this.#token = 0
  }

  /** The rest of the line after the command: `lineEnd` is the offset of the line feed. */
  #line(flow: ByteFlow, shape: Shape | undefined, stop: number, lineEnd: number): boolean {
    const { bytes } = flow
    const end = bytes[lineEnd - 1] === carriageReturn ? lineEnd - 1 : lineEnd
    let size = -1
    if (shape === Shape.store) {
      size = this.#sizeAt(bytes, stop, end, 4)
      this.#answered = !endsWith(bytes, stop, end, 'noreply')
    } else if (shape === Shape.metaStore) {
      size = this.#sizeAt(bytes, stop, end, 2)
      this.#metaFlags(bytes, stop, end, 2, Quiet.store)
    } else if (shape === Shape.meta) {
      this.#metaFlags(bytes, stop, end, 1, this.#name === 'mg' ? Quiet.retrieval : Quiet.change)
    } else {
      this.#answered = !endsWith(bytes, stop, end, 'noreply')
    }
    flow.at = lineEnd + 1
    if (size < 0) {
      this.#finish(flow, flow.offset)
    } else {
      flow.skip(size)
      this.#atEnd = true
    }
    return true
  }

  /** The `index`th word as a number; -1 if it is none: the server rejects the line, and reads no data. */
  #sizeAt(bytes: Buffer, start: number, end: number, index: number): number {
    if (!this.#wordAt(bytes, start, end, index)) return -1
    let size = 0
    for (let at = this.#wordStart; at < this.#wordEnd; at++) {
      const digit = bytes[at]! - 0x30
      if (digit < 0 || digit > 9) return -1
      size = size * 10 + digit
      if (size > longestData) return -1
    }
    return size
  }

  /** `before`: words before the flags, of which the first is the key. */
  #metaFlags(bytes: Buffer, start: number, end: number, before: number, quiet: number): void {
    let key = 0
    let token = 0
    let returnsKey = false
    let at = start
    for (let index = 1; this.#wordAt(bytes, at, end, 1); index++) {
      at = this.#wordEnd
      const flag = bytes[this.#wordStart]!
      if (index === 1) key = tokenOf(bytes, this.#wordStart, this.#wordEnd)
      if (index <= before) continue
      if (flag === 0x71) this.#quiet = quiet
      else if (flag === 0x6b) returnsKey = true
      else if (flag === 0x4f) token = tokenOf(bytes, this.#wordStart, this.#wordEnd)
    }
    this.#token = token !== 0 ? token : returnsKey ? key : 0
  }

  /** Finds the `index`th word from `start` on, the first being 1. */
  #wordAt(bytes: Buffer, start: number, end: number, index: number): boolean {
    let at = start
    for (let count = 0; count < index; count++) {
      while (at < end && bytes[at] === space) at++
      this.#wordStart = at
      while (at < end && bytes[at] !== space) at++
      this.#wordEnd = at
    }
    return this.#wordEnd > this.#wordStart
  }

  #passLine(flow: ByteFlow): boolean {
    if (this.restOfLine(flow)) this.#finish(flow, flow.offset)
    return true
  }

  #dataEnd(flow: ByteFlow): boolean {
    if (!this.lineBreak(flow)) return false
    this.#finish(flow, flow.offset)
    return true
  }

  #finish(flow: ByteFlow, endOffset: number): void {
    const { order } = this
    const { asking: operation } = order
    order.asking = undefined
    this.reset()
    if (operation !== undefined) {
      operation.requestBytes = Math.max(0, endOffset - this.#startOffset)
      operation.id = this.#token
      operation.mark = this.#quiet
      describeDatabaseCall(operation.call, order.connection, 'memcached', this.#name, '', '')
      order.connection.asked(operation)
    }
    if (this.#answered) {
      // A quiet command may get no response: an entry without an operation would never be removed.
      if (operation !== undefined || this.#quiet === Quiet.no) order.add(operation)
    } else if (operation !== undefined) {
      operation.endNs = flow.nowNs
      order.connection.end(operation)
    }
  }
}

/** Offset after the lower-case letters and underscores of a command. */
function commandEnd(bytes: Buffer, start: number, end: number): number {
  let at = start
  while (at < end && at - start <= longestCommand) {
    const byte = bytes[at]!
    if (!(byte >= 0x61 && byte <= 0x7a) && byte !== 0x5f) break
    at++
  }
  return at
}

function endsWith(bytes: Buffer, start: number, end: number, word: string): boolean {
  const from = end - word.length
  if (from <= start) return false
  for (let i = 0; i < word.length; i++) if (bytes[from + i] !== word.charCodeAt(i)) return false
  return true
}
