import { WireType } from '../../../foundation/lib/protobuf.ts'
import { type FieldSchema, type MessageSchema, wireTypes } from './schema-table.ts'

const two32 = 2 ** 32
/** From this high word on, a 64-bit number is not exact as a double. */
const exactHigh = 2 ** 21

/**
 * Iterates over the fields of one message within a larger buffer and returns their positions, so that fields can be
 * copied unchanged. Numbers of 64 bits are exact. Never reads outside its range. Invalid bytes throw a
 * RangeError.
 */
export class FieldCursor {
  /** Number and wire type of the current field. */
  field = 0
  type = 0
  /** Offset of the field, key included. */
  start = 0
  /** Range of its value, or of the content of a length-delimited field. The end is also that of the field. */
  valueStart = 0
  valueEnd = 0
  /** Last number read, as two unsigned words. */
  #low = 0
  #high = 0
  #at: number
  readonly #end: number
  readonly buffer: Buffer

  constructor(buffer: Buffer, start = 0, end = buffer.length) {
    this.buffer = buffer
    this.#at = start
    this.#end = end
  }

  /** Moves to the next field; false at the end. */
  next(): boolean {
    if (this.#at >= this.#end) return false
    this.start = this.#at
    this.#at = this.#varint(this.#at)
    // A key has 32 bits, of which three are the wire type.
    this.field = this.#low >>> 3
    this.type = this.#low & 7
    if (this.#high !== 0 || this.field === 0) throw this.#malformed('invalid field key')
    this.valueStart = this.#at
    if (this.type === WireType.varint) this.#at = this.#varint(this.#at)
    else if (this.type === WireType.fixed64) this.#at += 8
    else if (this.type === WireType.fixed32) this.#at += 4
    else if (this.type === WireType.bytes) {
      this.valueStart = this.#varint(this.#at)
      this.#at = this.valueStart + this.#high * two32 + this.#low
    } else throw this.#malformed(`wire type ${this.type}`)
    if (this.#at > this.#end) throw this.#malformed(`truncated in field ${this.field}`)
    this.valueEnd = this.#at
    return true
  }

  /**
   * Moves to the next known field of this message type; undefined at the end. A field with an unexpected wire type
   * counts as unknown.
   */
  nextOf({ byNumber }: MessageSchema): FieldSchema | undefined {
    while (this.next()) {
      const field = byNumber[this.field]
      if (field === undefined) continue
      const wireType = wireTypes[field.type] ?? WireType.bytes
      if (this.type === wireType || (field.repeated && this.type === WireType.bytes)) return field
    }
    return undefined
  }

  /** Message in the field. */
  message(): FieldCursor {
    return new FieldCursor(this.buffer, this.valueStart, this.valueEnd)
  }

  /** Reads each number of the field, packed or not, and calls `visit` for each with the number in this cursor. */
  numbers({ type }: FieldSchema, visit: () => void): void {
    if (this.type !== WireType.bytes) {
      this.number()
      visit()
      return
    }
    const packedAs = wireTypes[type]
    const width = packedAs === WireType.fixed64 ? 8 : packedAs === WireType.fixed32 ? 4 : 0
    if (width > 0 && (this.valueEnd - this.valueStart) % width !== 0)
      throw this.#malformed(`incomplete number in field ${this.field}`)
    for (let at = this.valueStart; at < this.valueEnd; ) {
      if (width > 0) this.#fixed(at, width)
      const after = width > 0 ? at + width : this.#varint(at)
      if (after > this.valueEnd) throw this.#malformed(`truncated in field ${this.field}`)
      visit()
      at = after
    }
  }

  /** Reads the field's number, whatever its wire type, for the methods below. */
  number(): this {
    if (this.type === WireType.varint) this.#varint(this.valueStart)
    else this.#fixed(this.valueStart, this.valueEnd - this.valueStart)
    return this
  }

  // Last number read, by the type of its field.

  get bool(): boolean {
    return (this.#low | this.#high) !== 0
  }

  get int32(): number {
    return this.#low | 0
  }

  get uint32(): number {
    return this.#low
  }

  /** Zigzag (encoding.md, "Signed Integers"). */
  get sint32(): number {
    return (this.#low >>> 1) ^ -(this.#low & 1)
  }

  get double(): number {
    words[0] = this.#low
    words[1] = this.#high
    return doubles[0]!
  }

  /** Rounded above 2^53. */
  get uint64(): number {
    return this.#high * two32 + this.#low
  }

  /** Rounded beyond 2^53 on either side. */
  get int64(): number {
    return (this.#high | 0) * two32 + this.#low
  }

  /** In decimal digits, exact. */
  get uint64Text(): string {
    if (this.#high < exactHigh) return String(this.uint64)
    return ((BigInt(this.#high) << 32n) | BigInt(this.#low)).toString()
  }

  get int64Text(): string {
    const high = this.#high | 0
    if (high >= -exactHigh && high < exactHigh) return String(this.int64)
    return ((BigInt(high) << 32n) | BigInt(this.#low)).toString()
  }

  /** Nanoseconds as microseconds, rounded to a quarter: the precision of a double for times of this century. */
  get nanosAsMicros(): number {
    const high = this.#high
    const low = this.#low
    if (high < exactHigh) return this.uint64 / 1000
    // Both words are divided by 1000 separately, so that the sum is exact in a double.
    const whole = Math.floor(high / 1000)
    const rest = (high - whole * 1000) * two32 + low
    return whole * two32 + rest / 1000
  }

  /** Text. Bytes that are not UTF-8 become U+FFFD. */
  text(): string {
    return this.buffer.toString('utf8', this.valueStart, this.valueEnd)
  }

  /** The content of a length-delimited field, without a copy. */
  bytes(): Buffer {
    return this.buffer.subarray(this.valueStart, this.valueEnd)
  }

  /** Reads a varint into `low` and `high` and returns its end. */
  #varint(from: number): number {
    const { buffer } = this
    const end = this.#end
    let low = 0
    let high = 0
    for (let i = 0; i < 10; i++) {
      if (from + i >= end) throw this.#malformed('truncated in a number')
      const byte = buffer[from + i]!
      const bits = byte & 0x7f
      if (i < 4) low |= bits << (7 * i)
      else if (i === 4) {
        low |= bits << 28
        high = bits >>> 4
      } else high |= bits << (7 * i - 32)
      if (byte < 0x80) {
        this.#low = low >>> 0
        this.#high = high >>> 0
        return from + i + 1
      }
    }
    throw this.#malformed('a number of more than ten bytes')
  }

  #fixed(at: number, width: number): void {
    this.#low = this.buffer.readUInt32LE(at)
    this.#high = width === 8 ? this.buffer.readUInt32LE(at + 4) : 0
  }

  #malformed(what: string): RangeError {
    return new RangeError(`cannot read OTLP request: ${what} (byte ${this.#at} of ${this.buffer.length})`)
  }
}

const words = new Uint32Array(2)
const doubles = new Float64Array(words.buffer)

/** A view of any bytes as a Buffer, without a copy. */
export function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}
