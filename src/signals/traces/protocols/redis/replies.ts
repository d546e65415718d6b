import { isDigit } from '../../../../foundation/lib/ascii.ts'
import type { ByteFlow } from '../../../../foundation/lib/byte-flow.ts'
import type { Operation } from '../../../../foundation/model/stream.ts'
import { lineFeedAt } from '../framing.ts'
import { ResponseReader } from '../in-order-readers.ts'
import { Effect } from './commands.ts'
import type { Conversation } from './conversation.ts'
import type { CommandDescription } from './description.ts'
import { isFound, LengthLine, Line } from './length-line.ts'

const newline = 0x0a
const carriageReturn = 0x0d
const zero = 0x30

/** Type bytes of RESP2 and RESP3. */
const Type = {
  simple: 0x2b,
  error: 0x2d,
  integer: 0x3a,
  bulk: 0x24,
  array: 0x2a,
  nothing: 0x5f,
  truth: 0x23,
  double: 0x2c,
  big: 0x28,
  bulkError: 0x21,
  verbatim: 0x3d,
  map: 0x25,
  set: 0x7e,
  push: 0x3e,
  attribute: 0x7c,
  chunk: 0x3b,
  end: 0x2e,
} as const

/** Relation of a message to the requests. */
const Message = { reply: 0, confirmation: 1, passing: 2 } as const
type Message = (typeof Message)[keyof typeof Message]

/** First words of unsolicited messages, which are arrays in RESP2. */
const pushWords = new Map<string, Message>([
  ['message', Message.passing],
  ['pmessage', Message.passing],
  ['smessage', Message.passing],
  ['subscribe', Message.confirmation],
  ['psubscribe', Message.confirmation],
  ['ssubscribe', Message.confirmation],
  ['unsubscribe', Message.confirmation],
  ['punsubscribe', Message.confirmation],
  ['sunsubscribe', Message.confirmation],
])
const longestPushWord = 12

/** An error's word is within this many bytes of its text. */
const errorText = 40
const longestInteger = 24
const longest = 2 ** 40
/** Maximum nesting of aggregates of unknown length. */
const mostStreams = 8

/** Messages of a server. Only the outermost level of a message is read; values inside it are counted and skipped. */
export class Replies extends ResponseReader {
  readonly #telling: CommandDescription
  readonly #conversation: Conversation
  readonly #line = new LengthLine()
  /** Values that the message still needs; 0: between messages. */
  #values = 0
  #message: Message = Message.reply
  /** The next value is the reply itself, not part of it. */
  #outermost = false
  /** Within the rest of a line, the line end after a string, or a string in chunks. */
  #inLine = false
  #atEnd = false
  #inChunks = false
  /** Values still needed after aggregates of unknown length. */
  readonly #behind = new Array<number>(mostStreams).fill(0)
  #depth = 0
  /** A confirmation reported that no subscription is left. */
  #noneLeft = false
  #startOffset = 0
  #pushed: Message | undefined

  constructor(telling: CommandDescription, conversation: Conversation) {
    super(conversation)
    this.#telling = telling
    this.#conversation = conversation
  }

  protected get begun(): boolean {
    return this.#values > 0
  }

  /** Whether a reply to a waiting request begins here. */
  protected opens({ bytes, at, end }: ByteFlow): boolean | undefined {
    switch (bytes[at]) {
      case Type.simple:
      case Type.error:
        return at + 1 === end ? undefined : bytes[at + 1]! >= 0x20 && bytes[at + 1]! < 0x7f
      case Type.integer:
      case Type.bulk:
      case Type.array:
      case Type.map:
      case Type.set:
        return isFound(this.#line.read(bytes, at + 1, end))
      default:
        return false
    }
  }

  /** Reads one value's beginning or end. */
  protected step(flow: ByteFlow): boolean {
    if (this.#inLine) return this.#passLine(flow)
    if (this.#atEnd) return this.#stringEnd(flow)
    if (this.#values === 0 && !this.#open(flow)) return false
    const { bytes, at } = flow
    if (this.#inChunks && bytes[at] !== Type.chunk) return this.fault(flow)
    switch (bytes[at]) {
      case Type.simple:
      case Type.integer:
      case Type.nothing:
      case Type.truth:
      case Type.double:
      case Type.big:
        return this.#text(flow)
      case Type.error:
        return this.#error(flow)
      case Type.bulk:
      case Type.bulkError:
      case Type.verbatim:
        return this.#string(flow)
      case Type.array:
      case Type.set:
      case Type.push:
      case Type.map:
      case Type.attribute:
        return this.#aggregate(flow)
      case Type.chunk:
        return this.#chunk(flow)
      case Type.end:
        return this.#streamEnd(flow)
      default:
        return this.fault(flow)
    }
  }

  /** A message begins: determines what it belongs to. */
  #open(flow: ByteFlow): boolean {
    const { bytes, at, end } = flow
    const conversation = this.#conversation
    const type = bytes[at]
    let message: Message = Message.reply
    if (type === Type.attribute) {
      message = Message.passing
    } else if (type === Type.push || (type === Type.array && conversation.subscribed)) {
      if (this.#peek(flow) === Line.part) return false
      message = this.#pushed ?? (type === Type.push ? Message.passing : Message.reply)
    } else if (type === Type.simple && conversation.monitoring) {
      if (at + 1 === end) return false
      if (isDigit(bytes[at + 1]!)) message = Message.passing
    }
    this.#message = message
    const answered = this.#answered
    if (answered !== undefined && answered.responseNs === 0) answered.responseNs = flow.startNs
    this.#values = 1
    this.#outermost = true
    this.#noneLeft = false
    this.#startOffset = flow.offset
    return true
  }

  /** The request that the message belongs to. */
  get #answered(): Operation | undefined {
    const { first } = this.order
    if (this.#message === Message.reply) return first
    return this.#message === Message.confirmation && first?.id === Effect.subscribe ? first : undefined
  }

  /** Reads the first value of an array: `pushed` is the kind of message that its word indicates. */
  #peek(flow: ByteFlow): Line {
    const { bytes, at, end } = flow
    const line = this.#line
    this.#pushed = undefined
    const count = line.read(bytes, at + 1, end)
    if (count !== Line.whole || line.streamed || line.value < 1) return count
    const second = line.next
    if (second === end) return Line.part
    if (bytes[second] !== Type.bulk) return Line.whole
    const length = line.read(bytes, second + 1, end)
    if (length !== Line.whole || line.streamed || line.value < 1 || line.value > longestPushWord)
      return length
    if (line.next + line.value > end) return Line.part
    this.#pushed = pushWords.get(this.#telling.word(bytes, line.next, line.next + line.value))
    return Line.whole
  }

  /** A value that is the rest of its line. */
  #text(flow: ByteFlow): boolean {
    const { bytes, at, end } = flow
    if (bytes[at] === Type.integer && this.#message === Message.confirmation) {
      if (lineFeedAt(bytes, at, end) === end && end - at < longestInteger) return false
      this.#noneLeft = bytes[at + 1] === zero
    }
    this.#outermost = false
    return this.#passLine(flow)
  }

  #passLine(flow: ByteFlow): boolean {
    this.#inLine = !this.restOfLine(flow)
    if (!this.#inLine) this.#valueEnd(flow)
    return true
  }

  #error(flow: ByteFlow): boolean {
    const { bytes, at, end } = flow
    if (this.#outermost && this.#message === Message.reply) {
      const stop = lineFeedAt(bytes, at, end)
      if (stop === end && end - at <= errorText) return false
      this.#describeError(bytes, at + 1, stop)
    }
    return this.#text(flow)
  }

  #string(flow: ByteFlow): boolean {
    const { bytes, at, end } = flow
    const line = this.#line
    const found = line.read(bytes, at + 1, end)
    if (found === Line.part) return false
    if (found === Line.bad || line.value > longest) return this.fault(flow)
    if (
      bytes[at] === Type.bulkError &&
      this.#outermost &&
      this.#message === Message.reply &&
      line.value > 0
    ) {
      const stop = line.next + Math.min(line.value, errorText)
      if (stop > end) return false
      this.#describeError(bytes, line.next, stop)
    }
    this.#outermost = false
    flow.at = line.next
    if (line.streamed) {
      this.#inChunks = true
    } else if (line.value < 0) {
      this.#valueEnd(flow)
    } else {
      flow.skip(line.value)
      this.#atEnd = true
    }
    return true
  }

  #stringEnd(flow: ByteFlow): boolean {
    if (!this.lineBreak(flow)) return false
    this.#atEnd = false
    if (!this.#inChunks) this.#valueEnd(flow)
    return true
  }

  /** RESP3: a piece of a string of unknown length; an empty piece is the last one. */
  #chunk(flow: ByteFlow): boolean {
    const line = this.#line
    if (!this.#inChunks) return this.fault(flow)
    const found = line.read(flow.bytes, flow.at + 1, flow.end)
    if (found === Line.part) return false
    if (found === Line.bad || line.streamed || line.value < 0 || line.value > longest) return this.fault(flow)
    flow.at = line.next
    if (line.value > 0) {
      flow.skip(line.value)
      this.#atEnd = true
    } else {
      this.#inChunks = false
      this.#valueEnd(flow)
    }
    return true
  }

  #aggregate(flow: ByteFlow): boolean {
    const line = this.#line
    const type = flow.bytes[flow.at]
    const found = line.read(flow.bytes, flow.at + 1, flow.end)
    if (found === Line.part) return false
    if (found === Line.bad || line.value > longest) return this.fault(flow)
    if (line.streamed && (this.#depth === mostStreams || type === Type.attribute)) return this.fault(flow)
    flow.at = line.next
    if (line.streamed) {
      this.#outermost = false
      this.#behind[this.#depth++] = this.#values - 1
      this.#values = Number.POSITIVE_INFINITY
      return true
    }
    const pairs = type === Type.map || type === Type.attribute
    this.#values += Math.max(0, pairs ? 2 * line.value : line.value)
    // Within a message, an attribute precedes a value and does not count as one.
    if (type !== Type.attribute || this.#outermost) this.#valueEnd(flow)
    this.#outermost = false
    return true
  }

  #streamEnd(flow: ByteFlow): boolean {
    const { bytes, at, end } = flow
    if (this.#depth === 0) return this.fault(flow)
    if (end - at < 3) return false
    if (bytes[at + 1] !== carriageReturn || bytes[at + 2] !== newline) return this.fault(flow)
    flow.at = at + 3
    // The aggregate was counted when it began.
    this.#values = this.#behind[--this.#depth]! + 1
    this.#valueEnd(flow)
    return true
  }

  #valueEnd(flow: ByteFlow): void {
    this.#values--
    if (this.#values === 0) this.#messageEnd(flow)
  }

  #messageEnd(flow: ByteFlow): void {
    const { order } = this
    if (this.#message === Message.reply) {
      const operation = order.answer(flow)
      if (operation !== undefined) this.#finish(flow, operation)
    } else if (this.#message === Message.confirmation) {
      if (this.#noneLeft) this.#conversation.subscribed = false
      const answered = this.#answered
      if (answered === undefined || --answered.mark > 0) return
      order.take()
      this.#finish(flow, answered)
    }
  }

  #finish(flow: ByteFlow, operation: Operation): void {
    const { order } = this
    const conversation = this.#conversation
    const failed = operation.call.error !== ''
    const effect = operation.id
    operation.responseBytes = Math.max(0, flow.offset - this.#startOffset)
    operation.endNs = flow.nowNs
    if (effect === Effect.monitor && !failed) conversation.monitoring = true
    if (effect === Effect.select && failed)
      conversation.database = operation.mark < 0 ? '' : String(operation.mark)
    if (effect === Effect.reset) {
      conversation.monitoring = false
      conversation.subscribed = false
    }
    order.agree()
    order.connection.end(operation)
    if (effect === Effect.replicate && !failed) order.refuse()
  }

  #describeError(bytes: Buffer, start: number, end: number): void {
    const { first } = this.order
    if (first !== undefined && first.call.error === '')
      this.#telling.describeError(first.call, bytes, start, end)
  }

  protected reset(): void {
    this.#values = 0
    this.#depth = 0
    this.#inLine = false
    this.#atEnd = false
    this.#inChunks = false
  }
}
