import type { ByteFlow } from '../../../../foundation/lib/byte-flow.ts'
import type { StreamConnection } from '../../../../foundation/model/stream.ts'
import { BrokerSide, BrokerStream } from '../broker-stream.ts'
import type { Channel, Content } from './channel.ts'
import { Conversation } from './conversation.ts'
import type { Messages } from './messages.ts'
import { frame, frameEnd, isMethod, method } from './methods.ts'

/** type, channel, size (AMQP 0-9-1, section 4.2.3). */
const frameHead = 7
/** Methods and headers up to this size are read whole; RabbitMQ's largest are a few hundred bytes. */
const maxRead = 8_192
/** Maximum frame size while the negotiated one is unknown; RabbitMQ offers 2^17. */
const maxFrame = 2 ** 22
/** RabbitMQ accepts messages of 2^29 bytes at most. */
const maxBody = 2 ** 32
/** "AMQP", 0, and the version 0-9-1 (section 4.2.2). */
const protocolHeader = [0x41, 0x4d, 0x51, 0x50, 0, 0, 9, 1]

/** One direction. */
class Side extends BrokerSide {
  /** The message and channel of the current frame. */
  content: Content | undefined = undefined
  channel: Channel | undefined = undefined
}

/** The frames of one connection. */
export class AmqpStream extends BrokerStream<Side> {
  protected readonly sent = new Side()
  protected readonly received = new Side()
  readonly #conversation: Conversation
  #frameLimit = maxFrame

  constructor(messages: Messages, connection: StreamConnection) {
    super(connection)
    this.#conversation = new Conversation(messages, this)
  }

  get bytes(): number {
    return this.#conversation.bytes
  }

  override fault(flow: ByteFlow): false {
    super.fault(flow, flow.at + 1)
    if (!this.over) this.#conversation.endContents(flow.request, flow.nowNs)
    return false
  }

  protected step(flow: ByteFlow, side: Side): boolean {
    if (flow.broken) return this.#resynchronise(flow)
    const first = flow.bytes[flow.at]!
    if (first === protocolHeader[0]) return this.#readProtocolHeader(flow)
    return this.#readFrame(flow, side)
  }

  /** The unread part of a frame has passed. */
  protected passed(flow: ByteFlow, side: Side): void {
    const { channel, content } = side
    side.content = undefined
    if (channel === undefined || content === undefined || !content.open) return
    if (content.got < content.size) return
    this.exact()
    this.#conversation.ended(channel, content, flow.request, flow.nowNs)
  }

  protected missed(flow: ByteFlow, side: Side): void {
    side.content = undefined
    this.#conversation.endContents(flow.request, flow.nowNs)
  }

  protected broken(error: string): void {
    this.#conversation.close(error)
  }

  protected forget(): void {
    this.#conversation.forget()
  }

  protected override endsWith(last: number): boolean {
    return last === frameEnd
  }

  protected override outlasts(flow: ByteFlow, { passage, content }: Side): boolean {
    if (passage.outlasts(flow)) return true
    if (passage.left === 0 || !content?.open || content.frameSize === 0) return false
    // Clients split a body into frames of one size, so its end can be computed without seeing the frames.
    const rest = content.size - content.got
    content.got = content.size
    passage.extend(rest + Math.ceil(rest / content.frameSize) * (frameHead + 1))
    return passage.outlasts(flow)
  }

  #readProtocolHeader(flow: ByteFlow): boolean {
    const { bytes, at, end } = flow
    const have = Math.min(protocolHeader.length, end - at)
    for (let i = 0; i < have; i++) {
      if (bytes[at + i] === protocolHeader[i]) continue
      this.fault(flow)
      return true
    }
    if (have < protocolHeader.length) return false
    flow.at += have
    return true
  }

  #readFrame(flow: ByteFlow, side: Side): boolean {
    const { bytes, at, end } = flow
    const have = end - at
    const type = bytes[at]!
    if (!isFrameType(type)) {
      this.fault(flow)
      return true
    }
    if (have < frameHead) return false
    const size = bytes.readUInt32BE(at + 3)
    if (!this.#isPossible(bytes, at)) {
      this.fault(flow)
      return true
    }
    const whole = frameHead + size + 1
    if (type === frame.body) {
      this.#readBody(flow, side, size)
      return true
    }
    if (have < Math.min(whole, maxRead)) return false
    if (have >= whole && bytes[at + whole - 1] !== frameEnd) {
      this.fault(flow)
      return true
    }
    const payloadEnd = Math.min(end, at + whole - 1)
    if (type === frame.method) this.#readMethod(flow, payloadEnd)
    else if (type === frame.header) this.#readHeader(flow, side, payloadEnd)
    else if (!flow.request) this.confirm()
    if (this.over || flow.broken) return true
    if (have >= whole) flow.at += whole
    else {
      side.content = undefined
      side.passage.start(flow, whole)
    }
    return true
  }

  #readMethod(flow: ByteFlow, payloadEnd: number): void {
    const { bytes, at } = flow
    const id = bytes.readUInt32BE(at + frameHead)
    if (!isMethod(id, flow.request)) {
      this.fault(flow)
      return
    }
    this.good()
    if (!flow.request) this.confirm()
    const start = at + frameHead + 4
    if (id === method.connectionTuneOk && payloadEnd - start >= 6) {
      const limit = bytes.readUInt32BE(start + 2)
      if (limit > 0) this.#frameLimit = limit
    }
    this.#conversation.method(id, bytes.readUInt16BE(at + 1), flow, start, payloadEnd)
  }

  #readHeader(flow: ByteFlow, side: Side, payloadEnd: number): void {
    const { bytes, at } = flow
    const channel = this.#conversation.channel(bytes.readUInt16BE(at + 1))
    if (channel === undefined) return
    const content = flow.request ? channel.sent : channel.received
    if (!content.open || content.headed) return
    this.#conversation.header(content, bytes, at + frameHead, payloadEnd)
    if (content.size > maxBody) {
      this.fault(flow)
      return
    }
    if (content.size > 0) return
    // There is no body: the message ends with its header.
    side.content = undefined
    this.exact()
    this.#conversation.ended(channel, content, flow.request, flow.nowNs)
  }

  #readBody(flow: ByteFlow, side: Side, size: number): void {
    const channel = this.#conversation.channel(flow.bytes.readUInt16BE(flow.at + 1))
    const content = channel === undefined ? undefined : flow.request ? channel.sent : channel.received
    side.channel = channel
    side.content = content?.open && content.headed ? content : undefined
    if (side.content !== undefined) {
      side.content.got += size
      side.content.frameSize ||= size
    }
    side.passage.start(flow, frameHead + size + 1)
  }

  /** Searches for a method frame: at the beginning of a call, or after the end of another frame. */
  #resynchronise(flow: ByteFlow): boolean {
    const { bytes, end } = flow
    for (let at = flow.at; at + frameHead + 1 <= end; at++) {
      const begins = at === flow.at ? flow.atCall : bytes[at - 1] === frameEnd
      if (!begins || !this.#isWhole(bytes, at, end, flow.request)) continue
      flow.at = at
      flow.broken = false
      return true
    }
    flow.at = end
    return true
  }

  /** True for a whole frame with a method that this side sends, or a heartbeat. */
  #isWhole(bytes: Buffer, at: number, end: number, request: boolean): boolean {
    const type = bytes[at]
    if (type !== frame.method && type !== frame.heartbeat) return false
    if (!this.#isPossible(bytes, at)) return false
    const last = at + frameHead + bytes.readUInt32BE(at + 3)
    if (last >= end || bytes[last] !== frameEnd) return false
    return type === frame.heartbeat || isMethod(bytes.readUInt32BE(at + frameHead), request)
  }

  /** Checks the first seven bytes. */
  #isPossible(bytes: Buffer, at: number): boolean {
    const type = bytes[at]!
    const channel = bytes.readUInt16BE(at + 1)
    const size = bytes.readUInt32BE(at + 3)
    if (size + frameHead + 1 > this.#frameLimit) return false
    if (type === frame.heartbeat) return channel === 0 && size === 0
    if (type === frame.method) return size >= 4
    if (type === frame.header) return channel !== 0 && size >= 14
    return type === frame.body && channel !== 0
  }
}

function isFrameType(type: number): boolean {
  return type === frame.method || type === frame.header || type === frame.body || type === frame.heartbeat
}
