import type { ByteFlow } from '../../../../foundation/lib/byte-flow.ts'
import type { Operation } from '../../../../foundation/model/stream.ts'
import { describeDatabaseError } from '../database-call.ts'
import { ResponseReader } from '../in-order-readers.ts'
import { Code, errorOf, headerBegins, headerBytes, isHeader, responseMagic } from './binary.ts'
import { quietBit } from './binary-requests.ts'

/** Responses of the binary protocol. Opcode and opaque identify the request. */
export class BinaryResponses extends ResponseReader {
  /** The last byte of a response comes next. */
  #atEnd = false
  /** Further responses to the same request follow (statistics). */
  #more = false
  /** It answers the first request in flight. */
  #matches = false
  #startOffset = 0

  /** Quiet commands get no further response. */
  close(): void {
    for (let first = this.order.first; first !== undefined && isQuiet(first); first = this.order.first)
      this.#silent(first)
  }

  protected get begun(): boolean {
    return this.#atEnd || this.#more
  }

  protected reset(): void {
    this.#atEnd = false
    this.#more = false
  }

  protected opens({ bytes, at, end }: ByteFlow): boolean | undefined {
    return headerBegins(bytes, at, end, responseMagic)
  }

  /** Any byte may be the last one. */
  protected override mayEnd(): boolean {
    return true
  }

  protected step(flow: ByteFlow): boolean {
    const { bytes, at, end } = flow
    if (this.#atEnd) {
      flow.at = at + 1
      this.#finish(flow)
      return true
    }
    if (bytes[at] !== responseMagic) return this.fault(flow)
    if (end - at < headerBytes) return false
    if (!isHeader(bytes, at, responseMagic)) return this.fault(flow)
    const size = bytes.readUInt32BE(at + 8)
    const code = bytes[at + 1]!
    const status = bytes.readUInt16BE(at + 6)
    this.#matches = this.#find(code, bytes.readUInt32BE(at + 12))
    const first = this.#matches ? this.order.first : undefined
    if (!this.#more) this.#startOffset = flow.offset
    this.#more = code === Code.stat && status === 0 && size > 0
    if (first !== undefined) {
      if (first.responseNs === 0) first.responseNs = flow.startNs
      describeStatus(first, status)
    }
    flow.at = at + headerBytes
    if (size === 0) {
      this.#finish(flow)
    } else {
      flow.skip(size - 1)
      this.#atEnd = true
    }
    return true
  }

  /** Ends the quiet commands before the answered one. False if it answers no request. */
  #find(code: number, opaque: number): boolean {
    for (;;) {
      const { first } = this.order
      // Any response may belong to an unknown request.
      if (first === undefined) return true
      if (first.id === opaque && (first.mark & 0xff) === code) return true
      if (!isQuiet(first)) return false
      this.#silent(first)
    }
  }

  #silent(operation: Operation): void {
    this.order.take()
    this.order.connection.end(operation)
  }

  #finish(flow: ByteFlow): void {
    const { order } = this
    this.#atEnd = false
    if (this.#more || !this.#matches) return
    const operation = order.answer(flow)
    if (operation === undefined) return
    operation.responseBytes = Math.max(0, flow.offset - this.#startOffset)
    operation.endNs = flow.nowNs
    order.agree()
    order.connection.end(operation)
  }
}

function isQuiet(operation: Operation): boolean {
  return (operation.mark & quietBit) !== 0
}

function describeStatus({ call }: Operation, status: number): void {
  const error = errorOf(status)
  if (error !== undefined && call.error === '') describeDatabaseError(call, error.code, error.type)
}
