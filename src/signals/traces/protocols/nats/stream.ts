import type { ByteFlow } from '../../../../foundation/lib/byte-flow.ts'
import type { ByteRange } from '../../../../foundation/lib/byte-range.ts'
import type { Operation, StreamConnection } from '../../../../foundation/model/stream.ts'
import { readTraceHeaders } from '../../../../foundation/model/trace-headers.ts'
import { BrokerSide, BrokerStream } from '../broker-stream.ts'
import { fail } from '../failure.ts'
import { lineFeedAt } from '../framing.ts'
import { describeMessage, type MessageOperation } from '../message-call.ts'
import { errorOfLine, isViolation, violatedSubject } from './errors.ts'
import { statusOf } from './headers.ts'
import { mayBegin, verb } from './lines.ts'
import { acknowledgement, inbox, operations, pull, type Subjects } from './subjects.ts'
import { Waiting } from './waiting.ts'

/** Maximum bytes of a line and of headers kept until the rest arrives; the list of servers in INFO may be longer. */
const maxRead = 8_192
const lineFeed = 0x0a
const carriageReturn = 0x0d

/** One direction. */
class Side extends BrokerSide {
  /** The rest of an overlong line is being skipped. */
  inLine = false
  /** The message whose payload is being skipped, and the key of its response; 0 if it ends with its last byte. */
  message: Operation | undefined = undefined
  key = 0
}

/** The lines and messages of one connection. */
export class NatsStream extends BrokerStream<Side> {
  protected readonly sent = new Side()
  protected readonly received = new Side()
  readonly #subjects: Subjects
  readonly #waiting: Waiting

  constructor(subjects: Subjects, connection: StreamConnection) {
    super(connection)
    this.#subjects = subjects
    this.#waiting = new Waiting(this)
  }

  get bytes(): number {
    return this.#waiting.bytes
  }

  protected step(flow: ByteFlow, side: Side): boolean {
    if (side.inLine) return this.#passLine(flow, side)
    if (flow.broken && !this.#resynchronise(flow)) return true
    return this.#readLine(flow, side)
  }

  /** The message's last byte passed. */
  protected passed(flow: ByteFlow, side: Side): void {
    const { message, key } = side
    if (message === undefined) return
    side.message = undefined
    if (!flow.request) {
      message.responseNs = flow.nowNs
      this.connection.asked(message)
    }
    if (!flow.broken) this.exact()
    if (key === 0) this.end(message, flow.nowNs)
    else this.#waiting.add(key, message, flow.nowNs)
  }

  protected missed(flow: ByteFlow, side: Side): void {
    side.inLine = false
    this.passed(flow, side)
  }

  protected broken(error: string): void {
    for (const { message } of [this.sent, this.received]) {
      if (message === undefined) continue
      fail(message.call, error)
      this.end(message, 0)
    }
    this.#waiting.close(error)
  }

  protected forget(): void {
    for (const { message } of [this.sent, this.received])
      if (message !== undefined) this.connection.release(message)
    this.#waiting.forget()
  }

  protected override endsWith(last: number): boolean {
    return last === lineFeed
  }

  #passLine(flow: ByteFlow, side: Side): boolean {
    const feed = lineFeedAt(flow.bytes, flow.at, flow.end)
    side.inLine = feed === flow.end
    flow.at = side.inLine ? flow.end : feed + 1
    return true
  }

  #readLine(flow: ByteFlow, side: Side): boolean {
    const { bytes, at, end, request } = flow
    const { line } = this.#subjects
    const feed = lineFeedAt(bytes, at, end)
    if (feed === end) {
      if (!mayBegin(bytes, at, end, request)) return this.#noLine(flow)
      if (end - at < maxRead) return false
      side.inLine = true
      return true
    }
    const lineEnd = feed > at && bytes[feed - 1] === carriageReturn ? feed - 1 : feed
    if (!line.read(bytes, at, lineEnd, request)) return this.#noLine(flow)
    if (!line.isMessage) {
      this.#wellFormed(flow)
      this.#control(flow)
      if (!this.over) flow.at = feed + 1
      return true
    }
    // An acknowledgement is recognised by its payload, any other message by its headers.
    const needed = Math.min(maxRead, Math.max(line.headerBytes, Math.min(5, line.payloadBytes)))
    if (end - feed - 1 < needed) return false
    this.#wellFormed(flow)
    this.#message(flow, side, feed + 1)
    side.passage.start(flow, feed + 1 - at + line.payloadBytes + 2)
    return true
  }

  #wellFormed(flow: ByteFlow): void {
    this.good()
    if (!flow.request) this.confirm()
  }

  #noLine(flow: ByteFlow): true {
    this.fault(flow, flow.at + 1)
    return true
  }

  #control(flow: ByteFlow): void {
    const { line } = this.#subjects
    const { bytes, nowNs } = flow
    if (line.verb === verb.ping || line.verb === verb.pong) this.#waiting.expire(nowNs)
    if (line.verb !== verb.err) return
    const error = errorOfLine(bytes, line.rest.start, line.rest.end)
    const subject = violatedSubject(bytes, line.rest.start, line.rest.end)
    if (!isViolation(error)) this.reason = error
    else if (!subject.empty) {
      const { name } = this.#subjects.destinations.of(bytes, subject.start, subject.end)
      this.#waiting.refused(name, error, nowNs)
    }
  }

  /** A message whose headers begin at `start`. */
  #message(flow: ByteFlow, side: Side, start: number): void {
    side.key = 0
    if (flow.request) this.#publish(flow, side, start)
    else this.#deliver(flow, side, start)
  }

  #publish(flow: ByteFlow, side: Side, start: number): void {
    const { bytes } = flow
    const { subject, reply, payloadBytes } = this.#subjects.line
    if (starts(bytes, subject, acknowledgement)) {
      this.#waiting.acknowledge(bytes, subject, start, payloadBytes, flow.nowNs)
      return
    }
    const pulls = starts(bytes, subject, pull)
    const requests = !pulls && starts(bytes, reply, inbox)
    const operation = this.#begin(
      flow,
      start,
      pulls ? operations.receive : requests ? operations.request : operations.publish,
    )
    if (operation === undefined) return
    operation.requestBytes = payloadBytes
    this.connection.asked(operation)
    side.message = operation
    if (requests) side.key = this.#waiting.keyOf(bytes, reply)
  }

  #deliver(flow: ByteFlow, side: Side, start: number): void {
    const { bytes } = flow
    const { line } = this.#subjects
    const { subject, reply, headerBytes, payloadBytes } = line
    const headersEnd = Math.min(flow.end, start + headerBytes)
    const status = statusOf(bytes, start, headersEnd)
    if (starts(bytes, subject, inbox)) {
      this.#waiting.answer(bytes, subject, status, payloadBytes, flow)
      return
    }
    // A message of the server itself: a heartbeat of JetStream, or that there is nothing (more) to pull.
    if (status !== 0) return
    const operation = this.#begin(flow, start, operations.process)
    if (operation === undefined) return
    operation.responseBytes = payloadBytes
    side.message = operation
    if (starts(bytes, reply, acknowledgement) && this.#waiting.acknowledges(bytes, reply))
      side.key = this.#waiting.keyOf(bytes, reply)
  }

  #begin(flow: ByteFlow, start: number, of: MessageOperation): Operation | undefined {
    const { bytes } = flow
    const { line, destinations } = this.#subjects
    const operation = this.connection.begin(flow)
    if (operation === undefined) return undefined
    const { subject, headerBytes, payloadBytes } = line
    const headersEnd = Math.min(flow.end, start + headerBytes)
    if (headerBytes > 0) readTraceHeaders(bytes, start, headersEnd, operation.context)
    const { call } = operation
    describeMessage(call, this.connection, of, destinations.of(bytes, subject.start, subject.end))
    call.attributes.add('messaging.message.body.size', payloadBytes - headerBytes)
    return operation
  }

  /** Searches for a line of a message, or of PING and PONG: at the beginning of a call, or after a line break. */
  #resynchronise(flow: ByteFlow): boolean {
    const { bytes, end } = flow
    for (let at = flow.at; at < end; ) {
      const begins = at === flow.at ? flow.atCall : true
      if (begins && this.#isLine(bytes, at, end, flow.request)) {
        flow.at = at
        flow.broken = false
        return true
      }
      at = lineFeedAt(bytes, at, end) + 1
    }
    flow.at = end
    return false
  }

  /** True for a whole line that identifies the sender, with its whole message. */
  #isLine(bytes: Buffer, at: number, end: number, request: boolean): boolean {
    const { line } = this.#subjects
    const feed = lineFeedAt(bytes, at, end)
    if (feed === at || feed === end || bytes[feed - 1] !== carriageReturn) return false
    if (!line.read(bytes, at, feed - 1, request)) return false
    if (!line.isMessage) return true
    const messageEnd = feed + 1 + line.payloadBytes + 2
    return messageEnd <= end && bytes[messageEnd - 1] === lineFeed && bytes[messageEnd - 2] === carriageReturn
  }
}

/** True if the range begins with that text. */
function starts(bytes: Buffer, range: ByteRange, text: string): boolean {
  if (range.end - range.start <= text.length) return false
  for (let i = 0; i < text.length; i++) if (bytes[range.start + i] !== text.charCodeAt(i)) return false
  return true
}
