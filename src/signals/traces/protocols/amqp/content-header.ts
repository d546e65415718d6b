import { ByteRange } from '../../../../foundation/lib/byte-range.ts'
import type { TraceContext } from '../../../../foundation/model/stream.ts'
import { MessageContext } from '../message-context.ts'
import { Fields } from './fields.ts'

/** Bits of the property flags (AMQP 0-9-1, section 4.2.6.1), the highest first. */
const contentType = 0x8000
const contentEncoding = 0x4000
const headers = 0x2000
/** A further word of flags follows. */
const continued = 1

/** Sizes of the values of a field table, by their type (section 4.2.5.5, as RabbitMQ reads it). */
const sizes = new Int8Array(128).fill(-1)
for (const [types, size] of [
  ['V', 0],
  ['tbB', 1],
  ['sUu', 2],
  ['Iif', 4],
  ['D', 5],
  ['LldT', 8],
] as const)
  for (const type of types) sizes[type.charCodeAt(0)] = size
const longString = 'S'.charCodeAt(0)
const lengthFirst = ['S', 'x', 'A', 'F'].map(type => type.charCodeAt(0))
const maxEntries = 256

/** The header of a message: body size and trace context. Reused. */
export class ContentHeader {
  bodySize = 0
  readonly #fields = new Fields()
  readonly #name = new ByteRange()
  readonly #place = new MessageContext()

  /** Reads the payload of a header frame, or its beginning. */
  read(bytes: Buffer, start: number, end: number, context: TraceContext | undefined): void {
    const fields = this.#fields.set(bytes, start, end)
    fields.skip(4)
    this.bodySize = fields.longLong()
    if (context !== undefined) this.#readProperties(context)
    fields.clear()
  }

  #readProperties(context: TraceContext): void {
    const fields = this.#fields
    const name = this.#name
    const flags = fields.short()
    let more = flags
    while ((more & continued) !== 0 && fields.whole) more = fields.short()
    if ((flags & headers) === 0) return
    this.#place.clear()
    if ((flags & contentType) !== 0) fields.shortString(name)
    if ((flags & contentEncoding) !== 0) fields.shortString(name)
    const tableEnd = Math.min(fields.end, fields.at + 4 + fields.long())
    for (let i = 0; i < maxEntries && fields.whole && fields.at < tableEnd; i++) this.#readEntry()
    this.#place.settle(fields.bytes, context)
  }

  #readEntry(): void {
    const fields = this.#fields
    const name = this.#name
    fields.shortString(name)
    const type = fields.octet()
    const size = lengthFirst.includes(type) ? fields.long() : (sizes[type & 0x7f] ?? -1)
    const { at, bytes } = fields
    if (size < 0) fields.at = fields.end
    else fields.skip(size)
    if (type === longString && fields.whole) this.#place.property(bytes, name, at, at + size)
  }
}
