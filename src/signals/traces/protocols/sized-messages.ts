import type { ByteFlow, FlowReader } from '../../../foundation/lib/byte-flow.ts'
import type { Numbered } from './numbered.ts'

/** What a protocol makes of the messages of one direction, each of which begins with its length. Never throws. */
export abstract class MessageReader<S extends Numbered = Numbered> {
  readonly stream: S
  /** From so many bytes a message's length is known. */
  abstract readonly headBytes: number
  /** Of a longer message so many bytes are shown at once, and not the rest. At most what a flow keeps. */
  readonly bodyBytes: number = 4_096
  /** Of a longer message the last ones are shown, too: 1 at least, so that its end is noticed when it comes. */
  readonly tailBytes: number = 1

  constructor(stream: S) {
    this.stream = stream
  }

  /** Length of the message whose head is at `at`; 0: there is none. */
  abstract length(bytes: Buffer, at: number): number

  /** Whether a message begins there, beyond doubt, while framing is lost. Undefined: too few bytes to tell. */
  abstract begins(bytes: Buffer, at: number, end: number): boolean | undefined

  /** A message begins at `flow.at`. */
  abstract opened(flow: ByteFlow, length: number): void

  /** Its first bytes. Left out where they were not captured. */
  abstract body(bytes: Buffer, start: number, end: number): void

  /** The last bytes of a message that is longer, or some of them. */
  tail(_bytes: Buffer, _start: number, _end: number): void {}

  /** Its last byte has passed. */
  abstract closed(flow: ByteFlow): void
}

const atHead = 0
const inBody = 1
const inTail = 2

/** Frames one direction of a connection. A gap inside of a message does no harm to those behind it. */
export class SizedMessages implements FlowReader {
  readonly #reader: MessageReader
  #state = atHead
  #length = 0
  /** Where in the flow the message ends. */
  #endAt = 0
  /** While framing is lost: bytes that were left of an earlier call, at whose start a message may begin. */
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

  /** False: more bytes are needed. */
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

  /** Looks where messages begin as a rule: at the start of a call. Some clients read a message's head by a call of its own. */
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

  /** Messages may have passed unseen. */
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

  /** Bytes of the message behind that place of the flow. */
  #leftOf(offset: number): number {
    return this.#endAt - offset
  }
}
