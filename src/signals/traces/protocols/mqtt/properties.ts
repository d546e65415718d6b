import { ByteRange } from '../../../../foundation/lib/byte-range.ts'
import type { TraceContext } from '../../../../foundation/model/stream.ts'
import { MessageContext } from '../message-context.ts'

/** Identifiers (MQTT 5.0, section 2.2.2.2). */
const topicAlias = 0x23
const userProperty = 0x26

/** Sizes of values by identifier: bytes, or one of the two below. */
const text = -1
const varint = -2
const unknown = -3
const sizes = new Int8Array(64).fill(unknown)
for (const [size, ids] of [
  [1, [0x01, 0x17, 0x19, 0x24, 0x25, 0x28, 0x29, 0x2a]],
  [2, [0x13, 0x21, 0x22, topicAlias]],
  [4, [0x02, 0x11, 0x18, 0x27]],
  [text, [0x03, 0x08, 0x09, 0x12, 0x15, 0x16, 0x1a, 0x1c, 0x1f]],
  [varint, [0x0b]],
] as const)
  for (const id of ids) sizes[id] = size

/** Properties of a PUBLISH. Reused. */
export class Properties {
  /** 0: none. */
  alias = 0
  readonly #key = new ByteRange()
  readonly #value = new ByteRange()
  readonly #place = new MessageContext()
  #at = 0

  /** Reads them, as far as they are in `bytes[start, end)`. */
  read(bytes: Buffer, start: number, end: number, context: TraceContext | undefined): void {
    this.alias = 0
    this.#at = start
    this.#place.clear()
    while (this.#at >= 0 && this.#at < end) this.#readOne(bytes, end)
    if (context !== undefined) this.#place.settle(bytes, context)
  }

  #readOne(bytes: Buffer, end: number): void {
    const id = bytes[this.#at++]!
    if (id === userProperty) {
      const key = this.#key
      const value = this.#value
      if (this.#readText(bytes, end, key) && this.#readText(bytes, end, value))
        this.#place.property(bytes, key, value.start, value.end)
      return
    }
    const size = sizes[id] ?? unknown
    if (size === text) this.#readText(bytes, end, this.#value)
    else if (size === varint) while (this.#at < end && (bytes[this.#at++]! & 0x80) !== 0);
    else if (size === unknown) this.#at = -1
    else {
      if (id === topicAlias && this.#at + 2 <= end) this.alias = bytes.readUInt16BE(this.#at)
      this.#at += size
    }
  }

  #readText(bytes: Buffer, end: number, into: ByteRange): boolean {
    const start = this.#at + 2
    this.#at = start > end ? -1 : start + bytes.readUInt16BE(start - 2)
    if (this.#at > end) this.#at = -1
    into.set(start, Math.max(start, this.#at))
    return this.#at >= 0
  }
}
