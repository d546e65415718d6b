import type { ByteFlow, FlowReader } from '../../../foundation/lib/byte-flow.ts'
import type { Numbered } from './numbered.ts'

/** Handles the messages of one direction, each of which begins with its length. Never throws. */
export abstract class MessageReader<S extends Numbered = Numbered> {
  readonly stream: S
  /** Bytes from which a message's length can be read. */
  abstract readonly headBytes: number
  /** Maximum bytes of a longer message passed to `body`. At most what a flow keeps. */
  readonly bodyBytes: number = 4_096
  /** Number of last bytes of a longer message passed to `tail`: at least 1, so that its end is noticed. */
  readonly tailBytes: number = 1

  constructor(stream: S) {
    this.stream = stream
  }

  /** Length of the message whose head is at `at`; 0 if there is none. */
  abstract length(bytes: Buffer, at: number): number

  /** While framing is lost: whether a message certainly begins there. Undefined if there are too few bytes. */
  abstract begins(bytes: Buffer, at: number, end: number): boolean | undefined

  /** A message begins at `flow.at`. */
  abstract opened(flow: ByteFlow, length: number): void

  /** Its first bytes. Not called if they were not captured. */
  abstract body(bytes: Buffer, start: number, end: number): void

  /** The last bytes of a longer message, or some of them. */
  tail(_bytes: Buffer, _start: number, _end: number): void {}

  /** Its last byte has passed. */
  abstract closed(flow: ByteFlow): void
}

const atHead = 0
const inBody = 1
const inTail = 2

/** Frames one direction of a connection. A gap within a message does not affect later ones. */
export class SizedMessages implements FlowReader {
  readonly #reader: MessageReader
  #state = atHead
  #length = 0
  /** Offset in the flow at which the message ends. */
  #endAt = 0
  /** While framing is lost: bytes left from an earlier call, at whose start a message may begin. */
  #begun = 0

  constructor(reader: MessageReader) {
    this.#reader = reader
  }

  read(flow: ByteFlow): void {
    while (flow.at < flow.end && this.#step(flow));
  }

  lost(flow: ByteFlow): void {
    this.#begun = 0
    if (this.#state === atHead) {
      this.#missed(flow)
      return
    }
    const left = this.#leftOf(flow.received)
    if (left >= 0) flow.broken = false
    if (left > 0) {
      this.#state = inTail
      flow.skip(Math.max(0, left - this.#reader.tailBytes))
      return
    }
    this.#state = atHead
    this.#reader.closed(flow)
    if (left < 0) this.#missed(flow)
  }

  /** False if more bytes are needed. */
  #step(flow: ByteFlow): boolean {
    if (this.#state === atHead) return this.#open(flow)
    return this.#state === inBody ? this.#readBody(flow) : this.#readTail(flow)
  }

  #open(flow: ByteFlow): boolean {
    const reader = this.#reader
    if (flow.broken && !this.#findStart(flow)) return false
    if (flow.end - flow.at < reader.headBytes) return false
    const length = reader.length(flow.bytes, flow.at)
    if (length === 0) {
      this.#missed(flow)
      return reader.stream.fault(flow)
    }
    this.#state = inBody
    this.#length = length
    this.#endAt = flow.offset + length
    reader.opened(flow, length)
    return true
  }

  /**
   * Searches at the start of a call, where messages usually begin. Some clients read a message's head in a separate
   * call.
   */
  #findStart(flow: ByteFlow): boolean {
    const reader = this.#reader
    const begun = this.#begun
    this.#begun = 0
    if (begun > 0 || flow.atCall) {
      let begins = reader.begins(flow.bytes, flow.at, flow.end)
      if (begins === false && begun > 0) {
        flow.at += begun
        begins = reader.begins(flow.bytes, flow.at, flow.end)
      }
      if (begins === true) flow.broken = false
      if (begins === undefined) this.#begun = flow.end - flow.at
      if (begins !== false) return begins === true
    }
    this.#missed(flow)
    return reader.stream.passOver(flow)
  }

  /** Messages may have been missed. */
  #missed(flow: ByteFlow): void {
    if (!flow.request) this.#reader.stream.doubt()
  }

  #readBody(flow: ByteFlow): boolean {
    const reader = this.#reader
    const length = this.#length
    const have = flow.end - flow.at
    if (have < length && have < reader.bodyBytes) return false
    reader.body(flow.bytes, flow.at, flow.at + Math.min(have, length))
    if (have < length) {
      this.#state = inTail
      flow.skip(length - reader.tailBytes)
      return true
    }
    flow.at += length
    this.#state = atHead
    reader.closed(flow)
    return true
  }

  #readTail(flow: ByteFlow): boolean {
    const left = this.#leftOf(flow.offset)
    if (flow.end - flow.at < left) return false
    if (left > 0) {
      this.#reader.tail(flow.bytes, flow.at, flow.at + left)
      flow.at += left
    }
    this.#state = atHead
    this.#reader.closed(flow)
    return true
  }

  /** Bytes of the message after that offset of the flow. */
  #leftOf(offset: number): number {
    return this.#endAt - offset
  }
}
