import type { ByteFlow, FlowReader } from '../../../foundation/lib/byte-flow.ts'
import { lineFeedAt } from './framing.ts'
import type { InOrder } from './in-order.ts'

const lineFeed = 0x0a
const carriageReturn = 0x0d

/** Reads one direction of a connection that answers in order, and finds the next message after framing was lost. */
abstract class Reader implements FlowReader {
  protected readonly order: InOrder
  /** While framing is lost: some bytes were left in place that may begin a message. */
  #hopeful = false
  #lostNs = -1

  constructor(order: InOrder) {
    this.order = order
  }

  abstract read(flow: ByteFlow): void

  lost(flow: ByteFlow): void {
    this.#lostNs = flow.nowNs
    this.#hopeful = false
  }

  /**
   * While framing is lost: whether a message begins at `flow.at`, the start of a call. Undefined if more bytes are
   * needed.
   */
  protected abstract opens(flow: ByteFlow): boolean | undefined

  /** Reads the next part of a message. False if more bytes are needed, or there was a fault. */
  protected abstract step(flow: ByteFlow): boolean

  /** A message was read in part. */
  protected abstract get begun(): boolean

  /** The next byte begins a message. */
  protected abstract reset(): void

  /** The available bytes cannot be of the protocol. */
  protected abstract fault(flow: ByteFlow): false

  /** Whether a message would be recognised. */
  protected get findable(): boolean {
    return true
  }

  /** Searches for the next message, and clears `flow.broken` if it finds one. Undefined if more bytes are needed. */
  protected resynchronise(flow: ByteFlow): boolean | undefined {
    // The rest of a call with missing bytes may be anywhere in a message.
    const begins = this.#hopeful || (flow.atCall && flow.nowNs !== this.#lostNs)
    const found = begins && this.findable ? this.opens(flow) : false
    this.#hopeful = found === undefined
    if (found === true) flow.broken = false
    return found
  }

  /** Skips a line break, which must come next. False if more bytes are needed, or there was a fault. */
  protected lineBreak(flow: ByteFlow): boolean {
    const { bytes, at, end } = flow
    if (bytes[at] !== carriageReturn) return this.fault(flow)
    if (at + 1 === end) return false
    if (bytes[at + 1] !== lineFeed) return this.fault(flow)
    flow.at = at + 2
    return true
  }

  /** Skips the rest of a line. False if its end has not arrived. */
  protected restOfLine(flow: ByteFlow): boolean {
    const feed = lineFeedAt(flow.bytes, flow.at, flow.end)
    const ends = feed < flow.end
    flow.at = ends ? feed + 1 : feed
    return ends
  }
}

/** Reads the requests of the client. */
export abstract class RequestReader extends Reader {
  read(flow: ByteFlow): void {
    const { order } = this
    let begins = flow.atCall && !this.begun
    if (flow.broken) {
      const found = this.resynchronise(flow)
      if (found === undefined) return
      begins = found
    }
    order.asked(begins)
    if (flow.broken) flow.at = flow.end
    while (flow.at < flow.end && !order.over && this.step(flow));
  }

  override lost(flow: ByteFlow): void {
    super.lost(flow)
    this.order.lostRequests()
  }

  protected fault(flow: ByteFlow): false {
    this.order.discardPartial()
    this.reset()
    this.order.lostRequests()
    return this.order.fault(flow)
  }
}

/** Reads the responses of the server. */
export abstract class ResponseReader extends Reader {
  read(flow: ByteFlow): void {
    const { order } = this
    if (flow.broken) {
      const found = this.resynchronise(flow)
      if (found === undefined) return
      if (!found) {
        order.answered(flow.nowNs, this.mayEnd(flow))
        order.passOver(flow)
        return
      }
    }
    while (flow.at < flow.end && !order.over && this.step(flow));
    if (!flow.broken) order.answered(flow.nowNs, !this.begun && flow.at === flow.end)
  }

  override lost(flow: ByteFlow): void {
    super.lost(flow)
    this.order.lostResponses(this.begun)
    this.reset()
  }

  /** A response to an unseen request looks like the middle of a message. */
  protected override get findable(): boolean {
    return this.order.expects && !this.order.blind
  }

  /** While framing is lost: whether a response may end with the available bytes. */
  protected mayEnd({ bytes, end }: ByteFlow): boolean {
    return bytes[end - 1] === lineFeed
  }

  protected fault(flow: ByteFlow): false {
    const { order } = this
    const awaited = order.expects
    this.reset()
    order.answered(flow.nowNs, false)
    order.lostResponses(false)
    flow.broken = true
    flow.at = flow.end
    if (awaited) order.suspect()
    return false
  }
}
