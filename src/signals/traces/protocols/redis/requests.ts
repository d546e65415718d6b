import type { ByteFlow } from '../../../../foundation/lib/byte-flow.ts'
import { lineFeedAt } from '../framing.ts'
import { RequestReader } from '../in-order-readers.ts'
import { type Command, Effect, isLetter, otherCommand } from './commands.ts'
import type { Conversation } from './conversation.ts'
import type { CommandDescription } from './description.ts'
import { isFound, LengthLine, Line } from './length-line.ts'

const array = 0x2a
const bulk = 0x24
const carriageReturn = 0x0d

/** Redis accepts 64 KiB in an inline command; people type less. */
const longestInline = 4_096
const longestWord = 32
const mostArguments = 2 ** 31
const longestArgument = 2 ** 40

/** Which commands get a reply: CLIENT REPLY ON, OFF and SKIP. */
const Reply = { on: 0, off: 1, skip: 2 } as const

/** The commands that a client sends: arrays of bulk strings, or lines. */
export class Requests extends RequestReader {
  readonly #telling: CommandDescription
  readonly #conversation: Conversation
  readonly #line = new LengthLine()
  #command: Command = otherCommand
  /** Words of the request, and the number still to come. */
  #count = 0
  #left = 0
  /** The line end after an argument comes next. */
  #atEnd = false
  #hasSubcommand = false
  #database = ''
  /** The argument of CLIENT REPLY. */
  #asksReply = ''
  #replies: 0 | 1 | 2 = Reply.on
  #startOffset = 0

  constructor(telling: CommandDescription, conversation: Conversation) {
    super(conversation)
    this.#telling = telling
    this.#conversation = conversation
  }

  override lost(flow: ByteFlow): void {
    // Its command is known: it is one request, and will get its reply.
    if (this.#left > 0 && (this.#atEnd || this.#left < this.#count)) this.#finish(flow, flow.received)
    else this.order.discardPartial()
    this.reset()
    // Another database may have been selected.
    this.#conversation.database = ''
    super.lost(flow)
  }

  protected get begun(): boolean {
    return this.#left > 0
  }

  protected reset(): void {
    this.#left = 0
    this.#atEnd = false
  }

  /** Certain after the first two lines. */
  protected opens({ bytes, at, end }: ByteFlow): boolean | undefined {
    if (bytes[at] !== array) return false
    const line = this.#line
    const count = line.read(bytes, at + 1, end)
    if (count !== Line.whole) return isFound(count)
    if (line.streamed || line.value < 1) return false
    const second = line.next
    if (second === end) return undefined
    if (bytes[second] !== bulk) return false
    const length = line.read(bytes, second + 1, end)
    if (length !== Line.whole) return isFound(length)
    if (line.streamed || line.value < 1 || line.value > longestWord) return false
    return line.next === end ? undefined : isLetter(bytes[line.next]!)
  }

  protected step(flow: ByteFlow): boolean {
    return this.#left === 0 ? this.#begin(flow) : this.#argument(flow)
  }

  /** False if more bytes are needed. */
  #begin(flow: ByteFlow): boolean {
    if (flow.bytes[flow.at] !== array) return this.#inline(flow)
    const line = this.#line
    const found = line.read(flow.bytes, flow.at + 1, flow.end)
    if (found === Line.part) return false
    if (found === Line.bad || line.streamed || line.value > mostArguments) return this.fault(flow)
    // An empty array is not a command, and gets no reply.
    if (line.value > 0) this.#start(flow, line.value)
    this.#conversation.certain = true
    flow.at = line.next
    return true
  }

  #start(flow: ByteFlow, count: number): void {
    const { order } = this
    order.asking = order.connection.begin(flow)
    this.#startOffset = flow.offset
    this.#count = count
    this.#left = count
    this.#command = otherCommand
    this.#hasSubcommand = false
    this.#database = ''
    this.#asksReply = ''
  }

  #argument(flow: ByteFlow): boolean {
    const { bytes, at, end } = flow
    if (this.#atEnd) return this.#argumentEnd(flow)
    if (bytes[at] !== bulk) return this.fault(flow)
    const line = this.#line
    const found = line.read(bytes, at + 1, end)
    if (found === Line.part) return false
    const length = line.value
    if (found === Line.bad || line.streamed || length < 0 || length > longestArgument) return this.fault(flow)
    const index = this.#count - this.#left
    if (length <= longestWord && this.#matters(index)) {
      if (line.next + length > end) return false
      this.#word(index, bytes, line.next, line.next + length)
    }
    flow.at = line.next
    flow.skip(length)
    this.#atEnd = true
    return true
  }

  #argumentEnd(flow: ByteFlow): boolean {
    if (!this.lineBreak(flow)) return false
    this.#atEnd = false
    this.#left--
    if (this.#left === 0) this.#finish(flow, flow.offset)
    return true
  }

  /** Whether the word with this index is read; all others are only counted. */
  #matters(index: number): boolean {
    if (index === 0) return true
    if (index === 1) return this.#command.subcommands !== undefined || this.#command.effect === Effect.select
    return index === 2 && this.#command.effect === Effect.client && this.#hasSubcommand
  }

  #word(index: number, bytes: Buffer, start: number, end: number): void {
    const { commands } = this.#telling
    if (index === 0) {
      this.#command = commands.of(bytes, start, end)
    } else if (index === 1 && this.#command.effect === Effect.select) {
      this.#database = this.#telling.databaseOf(bytes, start, end)
    } else if (index === 1) {
      const found = commands.subcommand(this.#command, bytes, start, end)
      if (found === undefined) return
      this.#command = found
      this.#hasSubcommand = true
    } else if (this.#command.text(0) === 'CLIENT REPLY') {
      this.#asksReply = commands.word(bytes, start, end)
    }
  }

  /** A command as typed by people and health checks: a line of words. */
  #inline(flow: ByteFlow): boolean {
    const { bytes, at } = flow
    const stop = lineFeedAt(bytes, at, flow.end)
    if (stop === flow.end) return stop - at < longestInline ? false : this.fault(flow)
    const end = stop > at && bytes[stop - 1] === carriageReturn ? stop - 1 : stop
    if (end > at) {
      const count = wordsIn(bytes, at, end)
      if (count === 0 || !isLetter(bytes[at]!)) return this.fault(flow)
      this.#start(flow, count)
      this.#inlineWords(bytes, at, end)
      this.#left = 0
    }
    flow.at = stop + 1
    if (end > at) this.#finish(flow, flow.offset)
    return true
  }

  #inlineWords(bytes: Buffer, start: number, end: number): void {
    let at = start
    for (let index = 0; index < 3 && at < end; index++) {
      const from = at
      while (at < end && bytes[at]! > 0x20) at++
      if (this.#matters(index)) this.#word(index, bytes, from, at)
      while (at < end && bytes[at]! <= 0x20) at++
    }
  }

  /** The request is complete; `endOffset` is the offset after it. */
  #finish(flow: ByteFlow, endOffset: number): void {
    const { order } = this
    const conversation = this.#conversation
    const command = this.#command
    const { connection, asking: operation } = order
    order.asking = undefined
    const before = conversation.database
    if (command.effect === Effect.select) conversation.database = this.#database
    else if (command.effect === Effect.reset) conversation.database = '0'
    const answered = this.#isAnswered()
    if (operation !== undefined) {
      operation.requestBytes = Math.max(0, endOffset - this.#startOffset)
      operation.id = command.effect
      operation.mark = command.effect === Effect.select ? Number(before || -1) : Math.max(1, this.#count - 1)
      const words = this.#hasSubcommand ? 2 : 1
      this.#telling.describe(operation.call, connection, command, this.#count - words, conversation.database)
      connection.asked(operation)
    }
    if (command.effect === Effect.subscribe) conversation.subscribed = true
    if (!answered) {
      if (operation === undefined) return
      operation.endNs = flow.nowNs
      connection.end(operation)
    } else if (operation !== undefined || command.effect !== Effect.subscribe) {
      // Confirmations of a subscription are not replies: an entry without an operation would never be removed.
      order.add(operation)
    }
  }

  /** False if CLIENT REPLY OFF or SKIP made the server silent. */
  #isAnswered(): boolean {
    if (this.#command.effect === Effect.reset || this.#asksReply === 'ON') this.#replies = Reply.on
    else if (this.#asksReply === 'OFF') this.#replies = Reply.off
    else if (this.#asksReply === 'SKIP') {
      if (this.#replies === Reply.on) this.#replies = Reply.skip
      return false
    }
    if (this.#replies !== Reply.skip) return this.#replies === Reply.on
    this.#replies = Reply.on
    return false
  }
}

/** Number of words on a line; 0 if it is not text. */
function wordsIn(bytes: Buffer, start: number, end: number): number {
  let count = 0
  let inside = false
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!
    if (byte < 0x20 && byte !== 0x09) return 0
    const space = byte <= 0x20
    if (!space && !inside) count++
    inside = !space
  }
  return count
}
