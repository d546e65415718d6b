import { fieldKey, varintSize, WireType } from '../../../foundation/lib/protobuf.ts'

/**
 * Writes protobuf from end to start: the content of a message is written before its length, so that any nesting takes
 * linear time. Fields, and elements of repeated fields, are written in reverse order. Supports 64-bit numbers, unlike
 * `Writer`.
 */
export class BackwardWriter {
  #buffer = Buffer.allocUnsafeSlow(4096)
  /** Number of bytes written, at the end of the buffer. */
  length = 0

  /** Bytes written, without a copy: valid until the next write. */
  written(): Buffer {
    return this.#buffer.subarray(this.#buffer.length - this.length)
  }

  raw(bytes: Uint8Array): void {
    const at = this.#room(bytes.length)
    this.#buffer.set(bytes, at)
  }

  /** Text as UTF-8, without its length. */
  text(text: string): void {
    const size = Buffer.byteLength(text)
    const at = this.#room(size)
    this.#buffer.write(text, at, 'utf8')
  }

  fixed32(value: number): void {
    const at = this.#room(4)
    this.#buffer.writeUInt32LE(value >>> 0, at)
  }

  /** A 64-bit number, signed or unsigned. */
  fixed64(value: bigint): void {
    const at = this.#room(8)
    this.#buffer.writeBigUInt64LE(BigInt.asUintN(64, value), at)
  }

  double(value: number): void {
    const at = this.#room(8)
    this.#buffer.writeDoubleLE(value, at)
  }

  /** A whole number of 0 to 2^53. */
  varint(value: number): void {
    let at = this.#room(varintSize(value))
    let rest = value
    for (; rest >= 0x80; rest = Math.floor(rest / 128)) this.#buffer[at++] = (rest % 128) | 0x80
    this.#buffer[at] = rest
  }

  /** A 64-bit number as a varint; a negative one takes ten bytes. */
  varint64(value: bigint): void {
    let rest = BigInt.asUintN(64, value)
    if (rest <= BigInt(Number.MAX_SAFE_INTEGER)) {
      this.varint(Number(rest))
      return
    }
    const bytes: number[] = []
    for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80)
    bytes.push(Number(rest))
    this.raw(Uint8Array.from(bytes))
  }

  /** Key and length of a message: all that was written since `length` was `before`. */
  header(field: number, before: number): void {
    this.varint(this.length - before)
    this.key(field, WireType.bytes)
  }

  key(field: number, type: WireType): void {
    this.varint(fieldKey(field, type))
  }

  /** Makes room for `bytes` before those already written. Returns their offset; may reallocate the buffer. */
  #room(bytes: number): number {
    const needed = this.length + bytes
    if (needed > this.#buffer.length) {
      const next = Buffer.allocUnsafeSlow(Math.max(this.#buffer.length * 2, needed))
      next.set(this.written(), next.length - this.length)
      this.#buffer = next
    }
    this.length = needed
    return this.#buffer.length - needed
  }
}
