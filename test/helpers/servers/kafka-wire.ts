/** Writes fields of Kafka messages (kafka.apache.org/protocol), in the old form or the flexible one. */
export class KafkaWriter {
  readonly #parts: Buffer[] = []
  readonly #flexible: boolean

  constructor(flexible = false) {
    this.#flexible = flexible
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#parts)
  }

  raw(bytes: Buffer): this {
    this.#parts.push(bytes)
    return this
  }

  int8(value: number): this {
    return this.raw(Buffer.from([value & 0xff]))
  }

  int16(value: number): this {
    const bytes = Buffer.alloc(2)
    bytes.writeInt16BE(value)
    return this.raw(bytes)
  }

  int32(value: number): this {
    const bytes = Buffer.alloc(4)
    bytes.writeInt32BE(value)
    return this.raw(bytes)
  }

  int64(value: number): this {
    const bytes = Buffer.alloc(8)
    bytes.writeBigInt64BE(BigInt(value))
    return this.raw(bytes)
  }

  unsigned(value: number): this {
    const bytes: number[] = []
    let rest = value
    for (; rest >= 0x80; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80)
    return this.raw(Buffer.from([...bytes, rest]))
  }

  text(value: string | null): this {
    const length = value === null ? -1 : Buffer.byteLength(value)
    if (this.#flexible) this.unsigned(length + 1)
    else this.int16(length)
    return this.raw(Buffer.from(value ?? ''))
  }

  content(value: Buffer | null): this {
    const length = value === null ? -1 : value.length
    if (this.#flexible) this.unsigned(length + 1)
    else this.int32(length)
    return this.raw(value ?? Buffer.alloc(0))
  }

  list<T>(values: readonly T[] | null, write: (value: T) => void): this {
    const length = values === null ? -1 : values.length
    if (this.#flexible) this.unsigned(length + 1)
    else this.int32(length)
    for (const value of values ?? []) write(value)
    return this
  }

  /** No tagged fields, where there may be some. */
  tags(): this {
    return this.#flexible ? this.int8(0) : this
  }
}

/** Reads fields of Kafka requests in the old form. */
export class KafkaReader {
  readonly #bytes: Buffer
  #at: number

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes
    this.#at = at
  }

  int8(): number {
    return this.#bytes.readInt8(this.#at++)
  }

  int16(): number {
    this.#at += 2
    return this.#bytes.readInt16BE(this.#at - 2)
  }

  int32(): number {
    this.#at += 4
    return this.#bytes.readInt32BE(this.#at - 4)
  }

  int64(): number {
    this.#at += 8
    return Number(this.#bytes.readBigInt64BE(this.#at - 8))
  }

  text(): string {
    return this.#range(this.int16()).toString()
  }

  content(): Buffer {
    return this.#range(this.int32())
  }

  list<T>(read: () => T): T[] {
    return Array.from({ length: Math.max(0, this.int32()) }, read)
  }

  #range(length: number): Buffer {
    const start = this.#at
    this.#at += Math.max(0, length)
    return this.#bytes.subarray(start, this.#at)
  }
}

/** A request with its length in front. */
export function kafkaRequest(
  key: number,
  version: number,
  id: number,
  client: string | null,
  body: Buffer,
  flexible = false,
): Buffer {
  const head = new KafkaWriter().int16(key).int16(version).int32(id).text(client)
  if (flexible) head.int8(0)
  return new KafkaWriter().content(head.raw(body).bytes).bytes
}

/** A response with its length in front. */
export function kafkaResponse(id: number, body: Buffer, flexible = false): Buffer {
  const head = new KafkaWriter().int32(id)
  if (flexible) head.int8(0)
  return new KafkaWriter().content(head.raw(body).bytes).bytes
}

/** A record batch of version 2 whose records are nothing but zeros. */
export function recordBatch(messages: number, recordBytes = 20, attributes = 0): Buffer {
  const records = Buffer.alloc(recordBytes)
  return new KafkaWriter()
    .int64(0)
    .int32(49 + records.length)
    .int32(0)
    .int8(2)
    .int32(0)
    .int16(attributes)
    .int32(messages - 1)
    .int64(0)
    .int64(0)
    .int64(-1)
    .int16(-1)
    .int32(-1)
    .int32(messages)
    .raw(records).bytes
}
