import type { ByteFlow } from '../../lib/byte-flow.ts'
import { type Command, Effect, isLetter, otherCommand } from './commands.ts'
import type { Conversation } from './conversation.ts'
import { LengthLine, Line } from './length-line.ts'
import type { Telling } from './telling.ts'

const array = 0x2a
const bulk = 0x24
const newline = 0x0a
const carriageReturn = 0x0d

/** What Redis takes of an inline command is 64 KiB; people type less. */
const longestInline = 4_096
const longestWord = 32
const mostArguments = 2 ** 31
const longestArgument = 2 ** 40

/** Which commands get a reply: CLIENT REPLY ON, OFF and SKIP. */
const Reply = { on: 0, off: 1, skip: 2 } as const

/** The commands that a client sends: arrays of bulk strings, or lines. */
export class Requests {
  private readonly telling: Telling
  private readonly conversation: Conversation
  private readonly line = new LengthLine()
  private command: Command = otherCommand
  /** Words of the request, and how many of them are still to come. */
  private count = 0
  private left = 0
  /** The line end behind an argument comes next. */
  private atEnd = false
  private hasSubcommand = false
  private database = ''
  /** Of CLIENT REPLY: its argument. */
  private asksReply = ''
  private replies: 0 | 1 | 2 = Reply.on
  private startOffset = 0
  private lostNs = -1
  /** Bytes were left that may be a request's beginning, while framing is lost. */
  private hopeful = false

  constructor(telling: Telling, conversation: Conversation) {
    this.telling = telling
    this.conversation = conversation
  }

  read(flow: ByteFlow): void {
    const { order } = this.conversation
    let begins = flow.atCall && this.left === 0
    if (flow.broken) {
      const found = this.opens(flow)
      this.hopeful = found === Line.part
      if (found === Line.part) return
      if (found === Line.bad) {
        order.asked(false)
        flow.at = flow.end
        return
      }
      flow.broken = false
      begins = true
    }
    order.asked(begins)
    while (flow.at < flow.end) if (!(this.left === 0 ? this.begin(flow) : this.argument(flow))) return
  }

  lost(flow: ByteFlow): void {
    this.lostNs = flow.nowNs
    this.hopeful = false
    // Its command is known: it is one request, and will have its reply.
    if (this.left > 0 && (this.atEnd || this.left < this.count)) this.finish(flow, flow.received)
    else this.conversation.order.letGo()
    this.left = 0
    this.atEnd = false
    // Another database may have been chosen.
    this.conversation.database = ''
    this.conversation.order.lostRequests()
  }

  /** Whether a request begins here for sure: by the call's start and the first two lines. */
  private opens(flow: ByteFlow): Line {
    const { bytes, at, end } = flow
    if (!this.hopeful && (!flow.atCall || flow.nowNs === this.lostNs)) return Line.bad
    if (bytes[at] !== array) return Line.bad
    const count = this.line.read(bytes, at + 1, end)
    if (count !== Line.whole) return count
    if (this.line.streamed || this.line.value < 1) return Line.bad
    const second = this.line.next
    if (second === end) return Line.part
    if (bytes[second] !== bulk) return Line.bad
    const length = this.line.read(bytes, second + 1, end)
    if (length !== Line.whole) return length
    if (this.line.streamed || this.line.value < 1 || this.line.value > longestWord) return Line.bad
    if (this.line.next === end) return Line.part
    return isLetter(bytes[this.line.next]!) ? Line.whole : Line.bad
  }

  /** False: more bytes are needed. */
  private begin(flow: ByteFlow): boolean {
    if (flow.bytes[flow.at] !== array) return this.inline(flow)
    const { line } = this
    const found = line.read(flow.bytes, flow.at + 1, flow.end)
    if (found === Line.part) return false
    if (found === Line.bad || line.streamed || line.value > mostArguments) return this.contradict(flow)
    // An empty array is no command, and gets no reply.
    if (line.value > 0) this.start(flow, line.value)
    this.conversation.certain = true
    flow.at = line.next
    return true
  }

  private start(flow: ByteFlow, count: number): void {
    const { order } = this.conversation
    order.asking = order.connection.begin(flow)
    this.startOffset = flow.offset
    this.count = count
    this.left = count
    this.command = otherCommand
    this.hasSubcommand = false
    this.database = ''
    this.asksReply = ''
  }

  private argument(flow: ByteFlow): boolean {
    const { bytes, at, end } = flow
    if (this.atEnd) return this.argumentEnd(flow)
    if (bytes[at] !== bulk) return this.contradict(flow)
    const { line } = this
    const found = line.read(bytes, at + 1, end)
    if (found === Line.part) return false
    const length = line.value
    if (found === Line.bad || line.streamed || length < 0 || length > longestArgument)
      return this.contradict(flow)
    const index = this.count - this.left
    if (length <= longestWord && this.matters(index)) {
      if (line.next + length > end) return false
      this.word(index, bytes, line.next, line.next + length)
    }
    flow.at = line.next
    flow.skip(length)
    this.atEnd = true
    return true
  }

  private argumentEnd(flow: ByteFlow): boolean {
    const { bytes, at, end } = flow
    if (bytes[at] !== carriageReturn) return this.contradict(flow)
    if (at + 1 === end) return false
    if (bytes[at + 1] !== newline) return this.contradict(flow)
    flow.at = at + 2
    this.atEnd = false
    this.left--
    if (this.left === 0) this.finish(flow, flow.offset)
    return true
  }

  /** The word with this index is looked at; all others are only counted. */
  private matters(index: number): boolean {
    if (index === 0) return true
    if (index === 1) return this.command.subcommands !== undefined || this.command.effect === Effect.select
    return index === 2 && this.command.effect === Effect.client && this.hasSubcommand
  }

  private word(index: number, bytes: Buffer, start: number, end: number): void {
    const { commands } = this.telling
    if (index === 0) {
      this.command = commands.of(bytes, start, end)
    } else if (index === 1 && this.command.effect === Effect.select) {
      this.database = this.telling.databaseOf(bytes, start, end)
    } else if (index === 1) {
      const found = commands.subcommand(this.command, bytes, start, end)
      if (found === undefined) return
      this.command = found
      this.hasSubcommand = true
    } else if (this.command.text(0) === 'CLIENT REPLY') {
      this.asksReply = commands.word(bytes, start, end)
    }
  }

  /** A command as people and health checks type it: a line of words. */
  private inline(flow: ByteFlow): boolean {
    const { bytes, at } = flow
    let stop = at
    while (stop < flow.end && bytes[stop] !== newline) stop++
    if (stop === flow.end) return stop - at < longestInline ? false : this.contradict(flow)
    const end = stop > at && bytes[stop - 1] === carriageReturn ? stop - 1 : stop
    if (end > at) {
      const count = wordsIn(bytes, at, end)
      if (count === 0 || !isLetter(bytes[at]!)) return this.contradict(flow)
      this.start(flow, count)
      this.inlineWords(bytes, at, end)
      this.left = 0
    }
    flow.at = stop + 1
    if (end > at) this.finish(flow, flow.offset)
    return true
  }

  private inlineWords(bytes: Buffer, start: number, end: number): void {
    let at = start
    for (let index = 0; index < 3 && at < end; index++) {
      const from = at
      while (at < end && bytes[at]! > 0x20) at++
      if (this.matters(index)) this.word(index, bytes, from, at)
      while (at < end && bytes[at]! <= 0x20) at++
    }
  }

  /** The request is whole; `endOffset`: of the byte behind it. */
  private finish(flow: ByteFlow, endOffset: number): void {
    const { conversation, command } = this
    const { order } = conversation
    const { connection, asking: operation } = order
    order.asking = undefined
    const before = conversation.database
    if (command.effect === Effect.select) conversation.database = this.database
    else if (command.effect === Effect.reset) conversation.database = '0'
    const answered = this.isAnswered()
    if (operation !== undefined) {
      operation.requestBytes = Math.max(0, endOffset - this.startOffset)
      operation.id = command.effect
      operation.mark = command.effect === Effect.select ? Number(before || -1) : Math.max(1, this.count - 1)
      const words = this.hasSubcommand ? 2 : 1
      this.telling.describe(operation.call, connection, command, this.count - words, conversation.database)
      connection.asked(operation)
    }
    if (command.effect === Effect.subscribe) conversation.subscribed = true
    if (!answered) {
      if (operation === undefined) return
      operation.endNs = flow.nowNs
      connection.end(operation)
    } else if (operation !== undefined || command.effect !== Effect.subscribe) {
      // What confirms a subscription is no reply: nothing would take out what stands for an unknown one.
      order.add(operation)
    }
  }

  /** False: CLIENT REPLY OFF or SKIP made the server silent. */
  private isAnswered(): boolean {
    if (this.command.effect === Effect.reset || this.asksReply === 'ON') this.replies = Reply.on
    else if (this.asksReply === 'OFF') this.replies = Reply.off
    else if (this.asksReply === 'SKIP') {
      if (this.replies === Reply.on) this.replies = Reply.skip
      return false
    }
    if (this.replies !== Reply.skip) return this.replies === Reply.on
    this.replies = Reply.on
    return false
  }

  private contradict(flow: ByteFlow): boolean {
    const { order } = this.conversation
    order.letGo()
    this.left = 0
    this.atEnd = false
    this.hopeful = false
    flow.at = flow.end
    flow.broken = true
    order.lostRequests()
    order.contradict()
    return false
  }
}

/** How many words stand on a line; 0 where it is no text. */
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
