// How a span stands in a ring: a head of 18 words, then its texts in UTF-8: the name, the message of its status, and the
// attributes, each with its key.

import { isZero } from '../../foundation/lib/is-zero.ts'
import type { AttributeValue } from '../../foundation/model/attributes.ts'
import { type Span, SpanKind, StatusCode } from '../../foundation/model/span.ts'
import type { SpanKeys } from './span-keys.ts'
import { mostRecordBytes, type SpanRing } from './span-ring.ts'
import type { Interest } from './span-routes.ts'

/** Of one value, and of the name and of the message. */
export const mostTextBytes = 1024
export const mostAttributes = 32
const mostKeyBytes = 128
const mostListItems = 64

// Words of the head; the first is the record's length.
const originAt = 1
const traceAt = 2
const spanAt = 6
const parentAt = 8
const startAt = 10
const endAt = 12
/** Kind in the lowest 3 bits, interest in the next 2, then the flags; above 16 bits the number of attributes. */
const flagsAt = 14
/** Bytes of the name, and above 16 bits those of the message. */
const textsAt = 15
const headBytes = 72

const isFailed = 1 << 5
const hasParent = 1 << 6
const isEntry = 1 << 7
const isParentInferred = 1 << 8

/** SpanFlags of OTLP: whether it is known if the parent is in another process, and that it is. */
const knowsRemote = 0x100
const isRemote = 0x200

// Types of values.
const textValue = 0
const numberValue = 1
const trueValue = 2
const falseValue = 3
const listValue = 4

/** Before a key that stands in the record itself, with its length in a byte. */
const ownKey = 0xffff

/** A span as it was kept. */
export interface StoredSpan {
  readonly spanId: string
  /** Empty: it has none. */
  readonly parentId: string
  /** The parent was inferred from what the process did meanwhile. */
  readonly parentInferred: boolean
  readonly name: string
  readonly kind: SpanKind
  readonly startUs: number
  readonly endUs: number
  readonly failed: boolean
  readonly statusMessage: string
  readonly attributes: Readonly<Record<string, AttributeValue>>
}

/** Writes all but the origin and the interest; returns the record's length. What there is no room for is left out. */
export function writeSpan(ring: SpanRing, at: number, span: Span, keys: SpanKeys): number {
  const { bytes, words, doubles } = ring
  const word = at >> 2
  copyBytes(span.traceId, bytes, at + traceAt * 4)
  copyBytes(span.spanId, bytes, at + spanAt * 4)
  copyBytes(span.parentSpanId, bytes, at + parentAt * 4)
  doubles[(word + startAt) >> 1] = span.startUs
  doubles[(word + endAt) >> 1] = span.endUs
  const from = at + headBytes
  const nameEnd = writeText(bytes, from, span.name, mostTextBytes)
  const messageEnd =
    span.statusMessage === '' ? nameEnd : writeText(bytes, nameEnd, span.statusMessage, mostTextBytes)
  words[word + textsAt] = (nameEnd - from) | ((messageEnd - nameEnd) << 16)
  const { attributes } = span
  const size = Math.min(attributes.size, mostAttributes)
  const limit = at + mostRecordBytes - 8
  let end = messageEnd
  let written = 0
  for (let i = 0; i < size; i++) {
    const next = writeAttribute(ring, end, limit, keys, attributes.keys[i]!, attributes.values[i]!)
    if (next === end) continue
    end = next
    written++
  }
  const orphan = isZero(span.parentSpanId)
  const answers = span.kind === SpanKind.server || span.kind === SpanKind.consumer
  const inferred = !orphan && (span.flags & (knowsRemote | isRemote)) === knowsRemote
  words[word + flagsAt] =
    (span.kind & 7) |
    (span.status === StatusCode.error ? isFailed : 0) |
    (orphan ? 0 : hasParent) |
    (answers || orphan ? isEntry : 0) |
    (inferred ? isParentInferred : 0) |
    (written << 16)
  return (end - at + 7) & ~7
}

/** A record in a ring; one instance is moved from record to record. */
export class SpanRecord {
  #ring: SpanRing | undefined
  #at = 0
  #word = 0

  of(ring: SpanRing, at: number): this {
    this.#ring = ring
    this.#at = at
    this.#word = at >> 2
    return this
  }

  get length(): number {
    return this.#ring!.words[this.#word]!
  }

  get origin(): number {
    return this.#ring!.words[this.#word + originAt]!
  }

  set origin(number: number) {
    this.#ring!.words[this.#word + originAt] = number
  }

  get interest(): Interest {
    return ((this.#flags >> 3) & 3) as Interest
  }

  set interest(interest: Interest) {
    this.#ring!.words[this.#word + flagsAt] = (this.#flags & ~(3 << 3)) | (interest << 3)
  }

  get kind(): SpanKind {
    return (this.#flags & 7) as SpanKind
  }

  get failed(): boolean {
    return (this.#flags & isFailed) !== 0
  }

  get isRoot(): boolean {
    return (this.#flags & hasParent) === 0
  }

  /** Whether a trace begins with it on some side: it answers somebody, or has no parent. */
  get isEntry(): boolean {
    return (this.#flags & isEntry) !== 0
  }

  get startUs(): number {
    return this.#ring!.doubles[(this.#word + startAt) >> 1]!
  }

  get endUs(): number {
    return this.#ring!.doubles[(this.#word + endAt) >> 1]!
  }

  /** A quarter of the trace's id. */
  trace(word: 0 | 1 | 2 | 3): number {
    return this.#ring!.words[this.#word + traceAt + word]!
  }

  get traceId(): string {
    return this.#hex(traceAt, 16)
  }

  get name(): string {
    return this.#text(this.#at + headBytes, this.#texts & 0xffff)
  }

  /** All texts that it holds, with what lies between them; as Latin-1 for those who look for ASCII, which is faster. */
  allTexts(encoding: 'latin1' | 'utf8'): string {
    return this.#ring!.bytes.toString(encoding, this.#at + headBytes, this.#at + this.length)
  }

  read(keys: SpanKeys): StoredSpan {
    const nameBytes = this.#texts & 0xffff
    return {
      spanId: this.#hex(spanAt, 8),
      parentId: this.isRoot ? '' : this.#hex(parentAt, 8),
      parentInferred: (this.#flags & isParentInferred) !== 0,
      name: this.name,
      kind: this.kind,
      startUs: this.startUs,
      endUs: this.endUs,
      failed: this.failed,
      statusMessage: this.#text(this.#at + headBytes + nameBytes, this.#texts >>> 16),
      attributes: this.#attributes(keys),
    }
  }

  get #flags(): number {
    return this.#ring!.words[this.#word + flagsAt]!
  }

  get #texts(): number {
    return this.#ring!.words[this.#word + textsAt]!
  }

  #text(from: number, bytes: number): string {
    return this.#ring!.bytes.toString('utf8', from, from + bytes)
  }

  #hex(word: number, bytes: number): string {
    const from = this.#at + word * 4
    return this.#ring!.bytes.toString('hex', from, from + bytes)
  }

  #attributes(keys: SpanKeys): Record<string, AttributeValue> {
    const ring = this.#ring!
    // A key such as `__proto__` is one like any other.
    const attributes: Record<string, AttributeValue> = Object.create(null)
    const reader = new ValueReader(ring, this.#at + headBytes + (this.#texts & 0xffff) + (this.#texts >>> 16))
    for (let left = this.#flags >>> 16; left > 0; left--) {
      const number = reader.uint16()
      const key = number === ownKey ? reader.text(reader.byte()) : keys.at(number)
      attributes[key] = reader.value()
    }
    return attributes
  }
}

/** Reads what `writeAttribute` wrote. */
class ValueReader {
  readonly #ring: SpanRing
  #at: number

  constructor(ring: SpanRing, at: number) {
    this.#ring = ring
    this.#at = at
  }

  byte(): number {
    return this.#ring.bytes[this.#at++]!
  }

  uint16(): number {
    this.#at += 2
    return this.#ring.view.getUint16(this.#at - 2, true)
  }

  text(bytes: number): string {
    this.#at += bytes
    return this.#ring.bytes.toString('utf8', this.#at - bytes, this.#at)
  }

  value(): AttributeValue {
    const type = this.byte()
    if (type === textValue) return this.text(this.uint16())
    if (type === listValue) return Array.from({ length: this.byte() }, () => this.text(this.uint16()))
    if (type !== numberValue) return type === trueValue
    this.#at += 8
    return this.#ring.view.getFloat64(this.#at - 8, true)
  }
}

/** Where it ends; where it begins, if there is no room for it before `limit`. */
function writeAttribute(
  ring: SpanRing,
  at: number,
  limit: number,
  keys: SpanKeys,
  key: string,
  value: AttributeValue,
): number {
  const { bytes, view } = ring
  // The longest key, its head, the type of the value and a number, or the length of a text.
  if (limit - at < mostKeyBytes + 16) return at
  const number = keys.numberOf(key)
  let end = at + 2
  view.setUint16(at, number < 0 ? ownKey : number, true)
  if (number < 0) {
    end = writeText(bytes, at + 3, key, mostKeyBytes)
    bytes[at + 2] = end - at - 3
  }
  if (typeof value === 'string') {
    bytes[end] = textValue
    return writeSized(ring, end + 1, limit, value)
  }
  if (typeof value === 'number') {
    bytes[end] = numberValue
    view.setFloat64(end + 1, value, true)
    return end + 9
  }
  if (typeof value === 'boolean') {
    bytes[end] = value ? trueValue : falseValue
    return end + 1
  }
  bytes[end] = listValue
  const countAt = end + 1
  end += 2
  let items = 0
  let left = mostTextBytes
  while (items < value.length && items < mostListItems && limit - end > 2 && left > 0) {
    const next = writeSized(ring, end, Math.min(limit, end + 2 + left), value[items]!)
    left -= next - end
    end = next
    items++
  }
  bytes[countAt] = items
  return end
}

/** Writes a text behind its length. */
function writeSized(ring: SpanRing, at: number, limit: number, text: string): number {
  const from = at + 2
  const end = writeText(ring.bytes, from, text, Math.min(mostTextBytes, limit - from))
  ring.view.setUint16(at, end - from, true)
  return end
}

/** Up to here a loop is faster than a call of the buffer's. */
const shortLength = 40

/** Writes what there is room for of a text, whole characters only; returns where it ends. */
function writeText(bytes: Buffer, at: number, text: string, most: number): number {
  const { length } = text
  if (length > shortLength || length > most) return at + bytes.write(text, at, most, 'utf8')
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i)
    if (code > 0x7f) return at + bytes.write(text, at, most, 'utf8')
    bytes[at + i] = code
  }
  return at + length
}

function copyBytes(from: Uint8Array, to: Uint8Array, at: number): void {
  for (let i = 0; i < from.length; i++) to[at + i] = from[i]!
}
