import type { ByteFlow } from '../../../../foundation/lib/byte-flow.ts'
import { describeDatabaseCall } from '../database-call.ts'
import { RequestReader } from '../in-order-readers.ts'
import { Code, headerBegins, headerBytes, isHeader, opcodes, requestMagic } from './binary.ts'

/** Bit of an operation's `mark` above the opcode: it may get no response. */
export const quietBit = 0x100

/** Requests of the binary protocol: a header, extras, key and value. */
export class BinaryRequests extends RequestReader {
  /** The last byte of a request comes next. */
  #atEnd = false
  #code = 0
  #startOffset = 0

  override lost(flow: ByteFlow): void {
    if (this.#atEnd) this.#finish(flow.received)
    super.lost(flow)
  }

  protected get begun(): boolean {
    return this.#atEnd
  }

  protected reset(): void {
    this.#atEnd = false
  }

  protected opens({ bytes, at, end }: ByteFlow): boolean | undefined {
    return headerBegins(bytes, at, end, requestMagic)
  }

  protected step(flow: ByteFlow): boolean {
    const { bytes, at, end } = flow
    if (this.#atEnd) {
      flow.at = at + 1
      this.#finish(flow.offset)
      return true
    }
    if (bytes[at] !== requestMagic) return this.fault(flow)
    if (end - at < headerBytes) return false
    if (!isHeader(bytes, at, requestMagic)) return this.fault(flow)
    this.#code = bytes[at + 1]!
    this.#startOffset = flow.offset
    const size = bytes.readUInt32BE(at + 8)
    const operation = this.#isQuit() ? undefined : this.order.connection.begin(flow)
    if (operation !== undefined) operation.id = bytes.readUInt32BE(at + 12)
    this.order.asking = operation
    flow.at = at + headerBytes
    if (size === 0) {
      this.#finish(flow.offset)
    } else {
      flow.skip(size - 1)
      this.#atEnd = true
    }
    return true
  }

  #finish(endOffset: number): void {
    const { order } = this
    const code = this.#code
    const { asking: operation } = order
    const { name, quiet } = opcodes[code]!
    order.asking = undefined
    this.#atEnd = false
    if (operation !== undefined) {
      operation.requestBytes = Math.max(0, endOffset - this.#startOffset)
      operation.mark = quiet ? code | quietBit : code
      describeDatabaseCall(operation.call, order.connection, 'memcached', name, '', '')
      order.connection.asked(operation)
    }
    // A quiet command may get no response: an entry without an operation would never be removed.
    if (operation !== undefined || !(quiet || this.#isQuit())) order.add(operation)
  }

  #isQuit(): boolean {
    return this.#code === Code.quit || this.#code === Code.quitQuiet
  }
}
