import type { ByteFlow } from '../../lib/byte-flow.ts'
import type { Operation } from '../../model/stream.ts'
import { describeDatabaseError } from '../database-call.ts'
import type { InOrder } from '../in-order.ts'
import { Code, errorOf, headerBytes, isHeader, responseMagic } from './binary.ts'
import { quietBit } from './binary-requests.ts'
import type { Half } from './half.ts'

/** Of the binary protocol. Opcode and opaque tell which request a response belongs to. */
export class BinaryResponses implements Half {
  private readonly order: InOrder
  /** The last byte of a response comes next. */
  private atEnd = false
  /** Further responses to the same request follow (statistics). */
  private more = false
  /** It answers the first request that is under way. */
  private matches = false
  private startOffset = 0
  private lostNs = -1
  private hopeful = false

  constructor(order: InOrder) {
    this.order = order
  }

  read(flow: ByteFlow): void {
    const { order } = this
    if (flow.broken) {
      const start =
        !order.blind && order.expects && (this.hopeful || (flow.atCall && flow.nowNs !== this.lostNs))
      this.hopeful = start && flow.end - flow.at < headerBytes && flow.bytes[flow.at] === responseMagic
      if (this.hopeful) return
      if (!start || flow.end - flow.at < headerBytes || !isHeader(flow.bytes, flow.at, responseMagic)) {
        order.stray()
        order.answered(flow.nowNs, true)
        flow.at = flow.end
        return
      }
      flow.broken = false
    }
    while (flow.at < flow.end && !order.over && this.step(flow));
    if (!flow.broken) order.answered(flow.nowNs, !this.atEnd && !this.more && flow.at === flow.end)
  }

  lost(flow: ByteFlow): void {
    this.lostNs = flow.nowNs
    this.order.lostResponses(this.atEnd || this.more)
    this.forget()
  }

  /** Quiet commands have had what they get. */
  close(): void {
    for (let first = this.order.first; first !== undefined && isQuiet(first); first = this.order.first)
      this.silent(first)
  }

  /** False: more bytes are needed. */
  private step(flow: ByteFlow): boolean {
    const { bytes, at, end } = flow
    if (this.atEnd) {
      flow.at = at + 1
      this.finish(flow)
      return true
    }
    if (bytes[at] !== responseMagic) return this.contradict(flow)
    if (end - at < headerBytes) return false
    if (!isHeader(bytes, at, responseMagic)) return this.contradict(flow)
    const size = bytes.readUInt32BE(at + 8)
    const code = bytes[at + 1]!
    const status = bytes.readUInt16BE(at + 6)
    this.matches = this.find(code, bytes.readUInt32BE(at + 12))
    const first = this.matches ? this.order.first : undefined
    if (!this.more) this.startOffset = flow.offset
    this.more = code === Code.stat && status === 0 && size > 0
    if (first !== undefined) {
      if (first.responseNs === 0) first.responseNs = flow.startNs
      describeStatus(first, status)
    }
    flow.at = at + headerBytes
    if (size === 0) {
      this.finish(flow)
    } else {
      flow.skip(size - 1)
      this.atEnd = true
    }
    return true
  }

  /** Ends the quiet commands before the one that is answered. False: nobody asked that. */
  private find(code: number, opaque: number): boolean {
    for (;;) {
      const { first } = this.order
      // For a request that is not known, any answer may be its.
      if (first === undefined) return true
      if (first.id === opaque && (first.mark & 0xff) === code) return true
      if (!isQuiet(first)) return false
      this.silent(first)
    }
  }

  private silent(operation: Operation): void {
    this.order.take()
    this.order.connection.end(operation)
  }

  private finish(flow: ByteFlow): void {
    const { order } = this
    this.atEnd = false
    if (this.more || !this.matches) return
    const operation = order.answer(flow)
    if (operation === undefined) return
    operation.responseBytes = Math.max(0, flow.offset - this.startOffset)
    operation.endNs = flow.nowNs
    order.agree()
    order.connection.end(operation)
  }

  private contradict(flow: ByteFlow): boolean {
    const { order } = this
    const awaited = order.expects
    this.forget()
    flow.at = flow.end
    flow.broken = true
    order.answered(flow.nowNs, false)
    order.lostResponses(false)
    if (awaited) order.contradict()
    return false
  }

  private forget(): void {
    this.atEnd = false
    this.more = false
    this.hopeful = false
  }
}

function isQuiet(operation: Operation): boolean {
  return (operation.mark & quietBit) !== 0
}

function describeStatus({ call }: Operation, status: number): void {
  const error = errorOf(status)
  if (error !== undefined && call.error === '') describeDatabaseError(call, error.code, error.type)
}
