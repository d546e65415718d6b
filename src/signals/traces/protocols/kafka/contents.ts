import { BoundedMap } from '../../../../foundation/lib/bounded-map.ts'
import { Interner } from '../../../../foundation/lib/interner.ts'
import { small } from '../../../../foundation/lib/small-tables.ts'
import { type Destination, Destinations } from '../destinations.ts'
import type { Cursor } from './cursor.ts'

/** Bytes of a record batch before its records (kafka.apache.org/documentation/#recordbatch). */
const batchHeadBytes = 61
/** Bytes before the part that a batch's length counts. */
const batchLengthEnd = 12
/** Attribute of a batch that contains the end of a transaction instead of messages. */
const control = 0x20

/** Topics by name and by identifier. Identifiers are globally unique, so one table serves all connections. */
export class Topics {
  readonly #destinations = new Destinations(name => ({ template: name, anonymous: false }))
  readonly #identifiers = small(new Interner({ slots: 4_096, maxLength: 16 }))
  readonly #byIdentifier = small(new BoundedMap<string, Destination>(4_096))

  /** The topic whose name the cursor has read. */
  named(cursor: Cursor): Destination | undefined {
    const { bytes, textStart, textEnd } = cursor
    return textEnd > textStart ? this.#destinations.of(bytes, textStart, textEnd) : undefined
  }

  /** The topic whose identifier the cursor has read; undefined if its name is unknown. */
  identified(cursor: Cursor): Destination | undefined {
    return this.#byIdentifier.get(this.#identifierOf(cursor))
  }

  /** The cursor has read the identifier of a topic with a known name. */
  learn(cursor: Cursor, destination: Destination): void {
    const identifier = this.#identifierOf(cursor)
    if (identifier !== '' && identifier !== noTopic) this.#byIdentifier.set(identifier, destination)
  }

  #identifierOf(cursor: Cursor): string {
    return this.#identifiers.intern(cursor.bytes, cursor.textStart, cursor.textEnd)
  }
}

const noTopic = '\0'.repeat(16)

/** Contents of a message: topic, partition, and number of records. Reused. */
export class Contents {
  /** Everything was available and read. */
  whole = false
  /** Topics in the message, and partitions of the last one. */
  topicsNamed = 0
  partitionsNamed = 0
  /** Partitions that have records, or failed. */
  touched = 0
  /** The first error code that is not 0. */
  error = 0
  #topicsTouched = 0
  #topic = -1
  #destination: Destination | undefined
  #partition = 0
  #messagesSeen = 0
  #messagesKnown = true

  clear(): void {
    this.whole = false
    this.topicsNamed = 0
    this.partitionsNamed = 0
    this.touched = 0
    this.error = 0
    this.#topicsTouched = 0
    this.#topic = -1
    this.#destination = undefined
    this.#partition = 0
    this.#messagesSeen = 0
    this.#messagesKnown = true
  }

  /** The only topic; undefined if there are several, or it is unknown. */
  get soleTopic(): Destination | undefined {
    return this.#topicsTouched === 1 && (this.whole || this.topicsNamed === 1) ? this.#destination : undefined
  }

  /** The only partition; -1 if there are several. */
  get solePartition(): number {
    const sole = this.whole || (this.topicsNamed === 1 && this.partitionsNamed === 1)
    return this.touched === 1 && sole ? this.#partition : -1
  }

  /** Number of messages; -1 if unknown. */
  get messages(): number {
    return this.#messagesKnown && (this.whole || this.solePartition >= 0) ? this.#messagesSeen : -1
  }

  /** A partition of topic number `topic` has `messages` (-1: unknown number). */
  touch(topic: number, destination: Destination | undefined, partition: number, messages: number): void {
    if (topic !== this.#topic) {
      this.#topic = topic
      this.#topicsTouched++
      this.#destination = destination
    }
    this.touched++
    this.#partition = partition
    if (messages < 0) this.#messagesKnown = false
    else this.#messagesSeen += messages
  }

  failed(code: number): void {
    if (this.error === 0) this.error = code
  }
}

/**
 * Messages in the record batches at the cursor, which it skips; 0 if there are none, -1 if unknown: some batch heads
 * are missing, or have a format before version 2.
 */
export function messagesIn(cursor: Cursor): number {
  const length = cursor.bytesLength()
  const { bytes, at: start, end, ok } = cursor
  if (!ok || length === 0) return 0
  cursor.skip(length)
  const last = start + length
  let count = 0
  // A response may end with an incomplete batch, which clients ignore.
  for (let at = start; last - at >= batchHeadBytes; ) {
    if (end - at < batchHeadBytes) return -1
    const next = at + batchLengthEnd + bytes.readInt32BE(at + 8)
    const records = bytes.readInt32BE(at + 57)
    if (bytes[at + 16] !== 2 || next < at + batchHeadBytes || records < 0) return -1
    if (next > last) return count
    if ((bytes[at + 22]! & control) === 0) count += records
    at = next
  }
  return count
}
