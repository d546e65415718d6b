import type { ByteFlow } from '../../lib/byte-flow.ts'
import { describeDatabaseCall } from '../database-call.ts'
import type { InOrder } from '../in-order.ts'
import { Code, headerBytes, isHeader, opcodes, requestMagic } from './binary.ts'
import type { Half } from './half.ts'

/** Bit of an operation's `mark` above the opcode: its answer may be silence. */
export const quietBit = 0x100

/** Of the binary protocol: a header, extras, key and value. */
export class BinaryRequests implements Half {
  private readonly order: InOrder
  /** The last byte of a request comes next. */
  private atEnd = false
  private code = 0
  private startOffset = 0
  private lostNs = -1
  private hopeful = false

  constructor(order: InOrder) {
    this.order = order
  }

  read(flow: ByteFlow): void {
    let begins = flow.atCall && !this.atEnd
    if (flow.broken) {
      const start = this.hopeful || (flow.atCall && flow.nowNs !== this.lostNs)
      this.hopeful = start && flow.end - flow.at < headerBytes && flow.bytes[flow.at] === requestMagic
      if (this.hopeful) return
      if (!start || flow.end - flow.at < headerBytes || !isHeader(flow.bytes, flow.at, requestMagic)) {
        this.order.asked(false)
        flow.at = flow.end
        return
      }
      flow.broken = false
      begins = true
    }
    this.order.asked(begins)
    while (flow.at < flow.end && !this.order.over && this.step(flow));
  }

  lost(flow: ByteFlow): void {
    this.lostNs = flow.nowNs
    this.hopeful = false
    if (this.atEnd) this.finish(flow.received)
    this.order.lostRequests()
  }

  /** False: more bytes are needed. */
  private step(flow: ByteFlow): boolean {
    const { bytes, at, end } = flow
    if (this.atEnd) {
      flow.at = at + 1
      this.finish(flow.offset)
      return true
    }
    if (bytes[at] !== requestMagic) return this.contradict(flow)
    if (end - at < headerBytes) return false
    if (!isHeader(bytes, at, requestMagic)) return this.contradict(flow)
    this.code = bytes[at + 1]!
    this.startOffset = flow.offset
    const size = bytes.readUInt32BE(at + 8)
    const operation = this.isQuit() ? undefined : this.order.connection.begin(flow)
    if (operation !== undefined) operation.id = bytes.readUInt32BE(at + 12)
    this.order.asking = operation
    flow.at = at + headerBytes
    if (size === 0) {
      this.finish(flow.offset)
    } else {
      flow.skip(size - 1)
      this.atEnd = true
    }
    return true
  }

  private finish(endOffset: number): void {
    const { order, code } = this
    const { asking: operation } = order
    const { name, quiet } = opcodes[code]!
    order.asking = undefined
    this.atEnd = false
    if (operation !== undefined) {
      operation.requestBytes = Math.max(0, endOffset - this.startOffset)
      operation.mark = quiet ? code | quietBit : code
      describeDatabaseCall(operation.call, order.connection, 'memcached', name, '', '')
      order.connection.asked(operation)
    }
    // Nothing may come for a quiet command: what stands for an unknown one would never be taken out.
    if (operation !== undefined || !(quiet || this.isQuit())) order.add(operation)
  }

  private isQuit(): boolean {
    return this.code === Code.quit || this.code === Code.quitQuiet
  }

  private contradict(flow: ByteFlow): boolean {
    this.order.letGo()
    this.atEnd = false
    this.hopeful = false
    flow.at = flow.end
    flow.broken = true
    this.order.lostRequests()
    this.order.contradict()
    return false
  }
}
