// How a span is stored in a ring: a head of 12 words, then the content of its OTLP message as it is exported.

import { hexOf } from '../../foundation/lib/hex.ts'
import { isZero } from '../../foundation/lib/is-zero.ts'
import { ownText } from '../../foundation/lib/own-text.ts'
import { Writer } from '../../foundation/lib/protobuf.ts'
import type { AttributeValue } from '../../foundation/model/attributes.ts'
import { Span, SpanKind, StatusCode } from '../../foundation/model/span.ts'
import { decodeSpan, spanName } from '../../pipeline/exporters/otlp/decode.ts'
import { traceEncoding } from '../../pipeline/exporters/otlp/encode-trace.ts'
import type { EncodedItem } from '../../pipeline/exporters/otlp/request.ts'
import { mostRecordBytes, type SpanRing } from './span-ring.ts'
import type { Interest } from './span-routes.ts'

// Words of the head; the first is the record's length.
const originAt = 1
const traceAt = 2
/** Kind in the lowest 3 bits, interest in the next 2, then the flags. */
const flagsAt = 6
/** Bytes of the message. */
const messageAt = 7
const startAt = 8
const endAt = 10
const headBytes = 48

const isFailed = 1 << 5
const hasParent = 1 << 6
const isEntry = 1 << 7

/** SpanFlags of OTLP: whether it is known that the parent is remote, and that it is. */
const knowsRemote = 0x100
const isRemote = 0x200

const mostMessageBytes = mostRecordBytes - headBytes
/** What is kept of a larger span, tried in this order: bytes of each text, and number of attributes. */
const cuts = [
  { bytes: 1024, attributes: 32 },
  { bytes: 256, attributes: 32 },
  { bytes: 64, attributes: 16 },
  { bytes: 64, attributes: 0 },
] as const

/** A stored span. */
export interface StoredSpan {
  readonly spanId: string
  /** Empty: none. */
  readonly parentId: string
  /** The parent was inferred from the activity of the process. */
  readonly parentInferred: boolean
  readonly name: string
  readonly kind: SpanKind
  readonly startUs: number
  readonly endUs: number
  readonly failed: boolean
  readonly statusMessage: string
  readonly attributes: Readonly<Record<string, AttributeValue>>
}

/** Writes all but the origin and the interest; returns the record's length. */
export function writeSpan(ring: SpanRing, at: number, span: Span, encoded: EncodedItem): number {
  const start = contentOf(encoded)
  if (encoded.end - start > mostMessageBytes) {
    const shorter = shortened(span)
    return writeMessage(ring, at, span, shorter, contentOf(shorter))
  }
  return writeMessage(ring, at, span, encoded, start)
}

function writeMessage(
  { bytes, words, doubles }: SpanRing,
  at: number,
  span: Span,
  { buffer, end }: EncodedItem,
  start: number,
): number {
  const word = at >> 2
  for (let i = 0; i < 16; i++) bytes[at + traceAt * 4 + i] = span.traceId[i]!
  doubles[(word + startAt) >> 1] = span.startUs
  doubles[(word + endAt) >> 1] = span.endUs
  const orphan = isZero(span.parentSpanId)
  const answers = span.kind === SpanKind.server || span.kind === SpanKind.consumer
  words[word + flagsAt] =
    (span.kind & 7) |
    (span.status === StatusCode.error ? isFailed : 0) |
    (orphan ? 0 : hasParent) |
    (answers || orphan ? isEntry : 0)
  words[word + messageAt] = end - start
  buffer.copy(bytes, at + headBytes, start, end)
  return (headBytes + end - start + 7) & ~7
}

/** Where the message begins behind its key, of one byte, and its length. */
function contentOf({ buffer, start }: EncodedItem): number {
  let at = start + 1
  while (buffer[at]! >= 0x80) at++
  return at + 1
}

const cutWriter = new Writer(mostRecordBytes)

/** The bytes of as much of a large span as has room. */
function shortened(span: Span): EncodedItem {
  const cut = new Span()
  cut.traceId.set(span.traceId)
  cut.spanId.set(span.spanId)
  cut.parentSpanId.set(span.parentSpanId)
  cut.kind = span.kind
  cut.startUs = span.startUs
  cut.endUs = span.endUs
  cut.status = span.status
  cut.flags = span.flags
  for (const { bytes, attributes } of cuts) {
    cut.name = ownText(span.name, bytes)
    cut.statusMessage = ownText(span.statusMessage, bytes)
    cut.attributes.clear()
    for (let i = 0; i < Math.min(span.attributes.size, attributes); i++)
      cut.attributes.add(
        ownText(span.attributes.keys[i]!, bytes),
        shortValue(span.attributes.values[i]!, bytes),
      )
    cutWriter.clear(4 * mostRecordBytes)
    traceEncoding.encode(cutWriter, cut)
    if (cutWriter.length <= mostMessageBytes) break
  }
  return { buffer: cutWriter.buffer, start: 0, end: cutWriter.length }
}

function shortValue(value: AttributeValue, bytes: number): AttributeValue {
  if (typeof value === 'string') return ownText(value, bytes)
  if (typeof value !== 'object') return value
  const texts: string[] = []
  let left = bytes
  for (const text of value) {
    if (left <= 0) break
    texts.push(ownText(text, left))
    left -= text.length + 1
  }
  return texts
}

/** A cursor on the records of a ring: one instance is moved from record to record. */
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

  /** Whether it is the entry of a trace into a service: it handles a request, or has no parent. */
  get isEntry(): boolean {
    return (this.#flags & isEntry) !== 0
  }

  get startUs(): number {
    return this.#ring!.doubles[(this.#word + startAt) >> 1]!
  }

  get endUs(): number {
    return this.#ring!.doubles[(this.#word + endAt) >> 1]!
  }

  /** A quarter of the trace ID. */
  trace(word: 0 | 1 | 2 | 3): number {
    return this.#ring!.words[this.#word + traceAt + word]!
  }

  get traceId(): string {
    const from = this.#at + traceAt * 4
    return this.#ring!.bytes.toString('hex', from, from + 16)
  }

  get name(): string {
    return spanName(this.#ring!.bytes, this.#at + headBytes, this.#messageEnd)
  }

  /** All texts of the record, with the bytes in between; as Latin-1 for ASCII searches, which is faster. */
  allTexts(encoding: 'latin1' | 'utf8'): string {
    return this.#ring!.bytes.toString(encoding, this.#at + headBytes, this.#messageEnd)
  }

  read(): StoredSpan {
    const span = this.#span
    // A key such as `__proto__` is one like any other.
    const attributes: Record<string, AttributeValue> = Object.create(null)
    for (let i = 0; i < span.attributes.size; i++)
      attributes[span.attributes.keys[i]!] = span.attributes.values[i]!
    return {
      spanId: hexOf(span.spanId),
      parentId: this.isRoot ? '' : hexOf(span.parentSpanId),
      parentInferred: !this.isRoot && (span.flags & (knowsRemote | isRemote)) === knowsRemote,
      name: span.name,
      kind: span.kind,
      startUs: this.startUs,
      endUs: this.endUs,
      failed: this.failed,
      statusMessage: span.statusMessage,
      attributes,
    }
  }

  get #span(): Span {
    return decodeSpan(this.#ring!.bytes, this.#at + headBytes, this.#messageEnd)
  }

  get #messageEnd(): number {
    return this.#at + headBytes + this.#ring!.words[this.#word + messageAt]!
  }

  get #flags(): number {
    return this.#ring!.words[this.#word + flagsAt]!
  }
}
