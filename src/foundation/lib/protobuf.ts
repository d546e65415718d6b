/** Wire types of Protocol Buffers (encoding.md, "Message Structure"). */
export const WireType = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const
export type WireType = (typeof WireType)[keyof typeof WireType]

/** The key that precedes a field on the wire. Computed once for each field, when a module loads. */
export function fieldKey(field: number, type: WireType): number {
  return field * 8 + type
}

/** Varint size in bytes of a whole number of at most 2^53. */
export function varintSize(value: number): number {
  if (value < 0x80) return 1
  if (value < 0x4000) return 2
  if (value < 0x200000) return 3
  if (value < 0x10000000) return 4
  let size = 5
  for (let rest = value / 0x800000000; rest >= 1; rest /= 128) size++
  return size
}

/** True for a whole number within a signed 64-bit integer. */
export function fitsInt64(value: number): boolean {
  return Number.isInteger(value) && Math.abs(value) < two63
}

const two32 = 2 ** 32
const two63 = 2 ** 63
const two64 = 2 ** 64
/** Maximum size of a scalar field: a key takes at most 5 bytes and a varint at most 10. */
const scalarRoom = 15
const maxDepth = 16
/** Texts and bytes up to this length are copied in a loop, which is cheaper than a call into the runtime (measured). */
const shortText = 24
/** Longer texts are measured before room is reserved, so that they do not triple the buffer needlessly. */
const longText = 1024

/** Writes a whole number as `fixed64` or `sfixed64`, exact whenever the double is. */
export function setFixed64(view: DataView, at: number, value: number): void {
  view.setUint32(at, value, true)
  view.setUint32(at + 4, Math.floor(value / two32), true)
}

/**
 * Writes microseconds, including the fraction, as `fixed64` nanoseconds, rounded to the nearest. Exact where a product
 * of doubles is not: today's epoch in nanoseconds needs 61 bits. Invalid values (not a number, negative, after the year
 * 2554) are written as 0, which OTLP reads as unknown.
 */
export function setMicrosAsNanos(view: DataView, at: number, us: number): void {
  let low = 0
  let high = 0
  if (us > 0 && us < 18_446_744_073_709_550) {
    const whole = Math.floor(us)
    const wholeHigh = Math.floor(whole / two32)
    const rest = (whole - wholeHigh * two32) * 1000 + Math.round((us - whole) * 1000)
    low = rest >>> 0
    high = wholeHigh * 1000 + Math.floor(rest / two32)
  }
  view.setUint32(at, low, true)
  view.setUint32(at + 4, high, true)
}

/** Maximum encoded bytes of a text. */
function textRoom(text: string): number {
  return text.length < longText ? text.length * 3 : Buffer.byteLength(text)
}

/**
 * Writes protobuf fields, in order, into one buffer that grows by doubling and is reused after `clear`. Writing
 * allocates nothing unless the buffer grows. Every method writes its field whatever the value: for proto3's omission of
 * zero values, do not call it.
 */
export class Writer {
  #buffer: Buffer
  #view: DataView
  #at = 0
  #depth = 0
  readonly #starts = new Uint32Array(maxDepth)
  readonly #reserved = new Uint8Array(maxDepth)

  constructor(capacity = 4096) {
    this.#buffer = Buffer.allocUnsafeSlow(capacity)
    this.#view = new DataView(this.#buffer.buffer)
  }

  /** Bytes written so far. */
  get length(): number {
    return this.#at
  }

  get capacity(): number {
    return this.#buffer.length
  }

  /** Starts over, in the same buffer unless it has grown beyond `keepBytes`. */
  clear(keepBytes = Number.POSITIVE_INFINITY): void {
    this.#at = 0
    this.#depth = 0
    if (this.#buffer.length > keepBytes) this.#replace(keepBytes)
  }

  /** Removes everything after the first `length` bytes. */
  truncate(length: number): void {
    this.#at = length
    this.#depth = 0
  }

  /** Holds what was written in its first `length` bytes; valid until the next write. */
  get buffer(): Buffer {
    return this.#buffer
  }

  /** The written bytes, without a copy: valid until the next write. */
  written(): Buffer {
    return this.#buffer.subarray(0, this.#at)
  }

  /** A whole number of up to 64 bits as any varint integer or enum. A negative one takes ten bytes. */
  int(key: number, value: number): void {
    this.#reserve(scalarRoom)
    this.#varint(key)
    if (value < 0) this.#negativeVarint(value)
    else this.#varint(value)
  }

  bool(key: number, value: boolean): void {
    this.#reserve(scalarRoom)
    this.#varint(key)
    this.#buffer[this.#at++] = value ? 1 : 0
  }

  fixed32(key: number, value: number): void {
    this.#reserve(scalarRoom)
    this.#varint(key)
    this.#view.setUint32(this.#at, value, true)
    this.#at += 4
  }

  /** A whole number as `fixed64` or `sfixed64`, exact whenever the double is. */
  fixed64(key: number, value: number): void {
    this.#reserve(scalarRoom)
    this.#varint(key)
    this.#eightBytes(value)
  }

  double(key: number, value: number): void {
    this.#reserve(scalarRoom)
    this.#varint(key)
    this.#view.setFloat64(this.#at, value, true)
    this.#at += 8
  }

  /** Microseconds as `fixed64` nanoseconds, as `setMicrosAsNanos` writes them. */
  microsAsNanos(key: number, us: number): void {
    this.#reserve(scalarRoom)
    this.#varint(key)
    setMicrosAsNanos(this.#view, this.#at, us)
    this.#at += 8
  }

  /** Text as UTF-8; a lone surrogate becomes U+FFFD. */
  string(key: number, text: string): void {
    const length = text.length
    this.#reserve(scalarRoom + textRoom(text))
    this.#varint(key)
    if (length <= shortText && this.#ascii(this.#at + 1, text)) {
      this.#buffer[this.#at] = length
      this.#at += 1 + length
    } else this.#anyText(text)
  }

  /** A message whose only field is a text. */
  embeddedString(key: number, innerKey: number, text: string): void {
    const length = text.length
    this.#reserve(2 * scalarRoom + textRoom(text))
    if (length <= shortText && innerKey < 0x80) {
      this.#varint(key)
      if (this.#ascii(this.#at + 3, text)) {
        this.#buffer[this.#at] = length + 2
        this.#buffer[this.#at + 1] = innerKey
        this.#buffer[this.#at + 2] = length
        this.#at += 3 + length
        return
      }
      this.#openHere(length + 2)
    } else this.open(key, length + 2)
    this.#varint(innerKey)
    this.#anyText(text)
    this.close()
  }

  /** A field's key, and behind it what was encoded before. */
  keyed(key: number, field: PreparedField): void {
    this.#reserve(scalarRoom)
    this.#varint(key)
    this.prepared(field)
  }

  /** What was encoded before. */
  prepared(field: PreparedField): void {
    const { words, length } = field
    this.#reserve(words.length * 4)
    for (let i = 0; i < words.length; i++) this.#view.setUint32(this.#at + i * 4, words[i]!, true)
    this.#at += length
  }

  bytes(key: number, bytes: Uint8Array): void {
    this.header(key, bytes.length)
    this.raw(bytes)
  }

  /** Key and length of a length-delimited field whose content is written with `raw`. */
  header(key: number, length: number): void {
    this.#reserve(scalarRoom)
    this.#varint(key)
    this.#varint(length)
  }

  /** Bytes that are already protobuf. */
  raw(bytes: Uint8Array): void {
    const length = bytes.length
    this.#reserve(length)
    if (length <= shortText) for (let i = 0; i < length; i++) this.#buffer[this.#at + i] = bytes[i]!
    else this.#buffer.set(bytes, this.#at)
    this.#at += length
  }

  /** A packed repeated field of doubles. */
  packedDoubles(key: number, values: ArrayLike<number>): void {
    const count = values.length
    this.header(key, count * 8)
    this.#reserve(count * 8)
    for (let i = 0; i < count; i++) {
      this.#view.setFloat64(this.#at, values[i]!, true)
      this.#at += 8
    }
  }

  /** A packed repeated field of whole numbers as `fixed64`. */
  packedFixed64(key: number, values: ArrayLike<number>): void {
    const count = values.length
    this.header(key, count * 8)
    this.#reserve(count * 8)
    for (let i = 0; i < count; i++) this.#eightBytes(values[i]!)
  }

  /** One element of a packed repeated field of varints, between `open` and `close`. */
  element(value: number): void {
    this.#reserve(scalarRoom)
    if (value < 0) this.#negativeVarint(value)
    else this.#varint(value)
  }

  /**
   * Begins an embedded message; the fields written until `close` are its content. Its length is written afterwards:
   * room is reserved for that of `expected` bytes, and a wrong guess only costs that `close` moves the content by a
   * byte or more, never a longer encoding.
   */
  open(key: number, expected: number): void {
    this.#reserve(scalarRoom)
    this.#varint(key)
    this.#openHere(expected)
  }

  #openHere(expected: number): void {
    const reserved = varintSize(expected)
    this.#at += reserved
    this.#starts[this.#depth] = this.#at
    this.#reserved[this.#depth] = reserved
    this.#depth++
  }

  close(): void {
    this.#depth--
    this.#writeLength(this.#starts[this.#depth]!, this.#reserved[this.#depth]!)
  }

  /**
   * Writes the length of the bytes after `start` into the `reserved` bytes before it, resizing that space as needed.
   */
  #writeLength(start: number, reserved: number): void {
    const end = this.#at
    const length = end - start
    if (length < 0x80 && reserved === 1) {
      this.#buffer[start - 1] = length
      return
    }
    const shift = varintSize(length) - reserved
    if (shift !== 0) {
      this.#reserve(scalarRoom)
      this.#buffer.copyWithin(start + shift, start, end)
    }
    this.#at = start - reserved
    this.#varint(length)
    this.#at = end + shift
  }

  /** Copies an ASCII text; returns false and leaves garbage there if it is not ASCII. */
  #ascii(at: number, text: string): boolean {
    const buffer = this.#buffer
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i)
      if (code > 0x7f) return false
      buffer[at + i] = code
    }
    return true
  }

  /** Length and content of a text. */
  #anyText(text: string): void {
    const reserved = varintSize(text.length)
    const start = this.#at + reserved
    this.#at = start + this.#buffer.write(text, start, 'utf8')
    this.#writeLength(start, reserved)
  }

  #varint(value: number): void {
    if (value < 0x80) {
      this.#buffer[this.#at++] = value
      return
    }
    // Infinity or NaN would loop forever.
    let rest = value < two64 ? value : 0
    while (rest >= 0x80000000) {
      this.#buffer[this.#at++] = (rest % 128) | 0x80
      rest = Math.floor(rest / 128)
    }
    while (rest >= 0x80) {
      this.#buffer[this.#at++] = (rest & 0x7f) | 0x80
      rest >>>= 7
    }
    this.#buffer[this.#at++] = rest
  }

  /** Two's complement in 64 bits, seven at a time, lowest first. */
  #negativeVarint(value: number): void {
    let low = value >>> 0
    let high = Math.floor(value / two32) >>> 0
    for (let i = 0; i < 9; i++) {
      this.#buffer[this.#at++] = (low & 0x7f) | 0x80
      low = ((low >>> 7) | (high << 25)) >>> 0
      high >>>= 7
    }
    this.#buffer[this.#at++] = low
  }

  #eightBytes(value: number): void {
    setFixed64(this.#view, this.#at, value)
    this.#at += 8
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes > this.#buffer.length) this.#grow(this.#at + bytes)
  }

  #grow(needed: number): void {
    let capacity = Math.max(this.#buffer.length, 64)
    while (capacity < needed) capacity *= 2
    this.#replace(capacity)
  }

  /** Switches to a buffer of another size. */
  #replace(capacity: number): void {
    const next = Buffer.allocUnsafeSlow(capacity)
    next.set(this.#buffer.subarray(0, this.#at))
    this.#buffer = next
    this.#view = new DataView(next.buffer)
  }
}

/**
 * Bytes that are written again and again. They are copied four at a time: a third of the time that encoding a text takes
 * (measured for names of 24 characters).
 */
export class PreparedField {
  /** Valid bytes; the words have up to three more. */
  readonly length: number
  readonly words: Uint32Array

  constructor(bytes: Uint8Array) {
    this.length = bytes.length
    this.words = new Uint32Array(Math.ceil(bytes.length / 4))
    for (let i = 0; i < bytes.length; i++) this.words[i >> 2]! |= bytes[i]! << ((i & 3) * 8)
  }

  /** A text field. */
  static text(key: number, text: string): PreparedField {
    const out = new Writer(64)
    out.string(key, text)
    return new PreparedField(out.written())
  }
}

/**
 * Reads the fields of one message. Meant for small responses of an untrusted server: never reads outside its range, and
 * throws a RangeError if the bytes are not a message.
 */
export class Reader {
  /** Number and wire type of the field that `next` stopped at. */
  field = 0
  type = 0
  #at = 0
  readonly #source: Uint8Array

  constructor(source: Uint8Array) {
    this.#source = source
  }

  /** Moves to the next field; false at the end. Its value must be read or skipped before the next call. */
  next(): boolean {
    if (this.#at >= this.#source.length) return false
    const key = this.uint()
    this.field = Math.floor(key / 8)
    this.type = key % 8
    if (this.field === 0) throw this.#malformed('field number 0')
    return true
  }

  /** A varint as an unsigned number, rounded above 2^53. */
  uint(): number {
    let value = 0
    let unit = 1
    for (let i = 0; i < 10; i++) {
      const byte = this.#source[this.#at]
      if (byte === undefined) throw this.#malformed('it ends inside a number')
      this.#at++
      value += (byte & 0x7f) * unit
      if (byte < 0x80) return value
      unit *= 128
    }
    throw this.#malformed('a number of more than ten bytes')
  }

  /** A varint as `int32` or `int64`. */
  int(): number {
    const start = this.#at
    const value = this.uint()
    if (value < two63) return value
    // Above 2^53 a double has lost the low bits of a small negative number: take them from the bytes.
    let low = 0n
    for (let i = start, shift = 0n; i < this.#at; i++, shift += 7n)
      low |= BigInt(this.#source[i]! & 0x7f) << shift
    return Number(BigInt.asIntN(64, low))
  }

  /** The content of a length-delimited field, without a copy. */
  bytes(): Uint8Array {
    const length = this.uint()
    const start = this.#at
    if (length > this.#source.length - start) throw this.#malformed(`it ends inside field ${this.field}`)
    this.#at = start + length
    return this.#source.subarray(start, this.#at)
  }

  /** A text truncated to `limit` bytes. Bytes that are not UTF-8 become U+FFFD. */
  string(limit: number): string {
    const bytes = this.bytes()
    return Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, limit)).toString('utf8')
  }

  /** Skips the value of the field. */
  skip(): void {
    if (this.type === WireType.varint) this.uint()
    else if (this.type === WireType.bytes) this.bytes()
    else if (this.type === WireType.fixed64) this.#advance(8)
    else if (this.type === WireType.fixed32) this.#advance(4)
    else throw this.#malformed(`wire type ${this.type}`)
  }

  #advance(bytes: number): void {
    if (bytes > this.#source.length - this.#at) throw this.#malformed(`it ends inside field ${this.field}`)
    this.#at += bytes
  }

  #malformed(what: string): RangeError {
    return new RangeError(
      `cannot read protobuf message: ${what} (byte ${this.#at} of ${this.#source.length})`,
    )
  }
}
