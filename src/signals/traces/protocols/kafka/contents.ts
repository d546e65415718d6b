import { BoundedMap } from '../../../../foundation/lib/bounded-map.ts'
import { Interner } from '../../../../foundation/lib/interner.ts'
import { small } from '../../../../foundation/lib/small-tables.ts'
import { type Destination, Destinations } from '../destinations.ts'
import type { Cursor } from './cursor.ts'

/** Bytes of a record batch up to its records (kafka.apache.org/documentation/#recordbatch). */
const batchHeadBytes = 61
/** Bytes before what a batch's length counts. */
const batchLengthEnd = 12
/** Attribute of a batch that holds no messages but the end of a transaction. */
const control = 0x20

/** Topics by name and by identifier. Identifiers are unique among all clusters, so that one table serves all connections. */
export class Topics {
  readonly #destinations = new Destinations(name => ({ template: name, anonymous: false }))
  readonly #identifiers = small(new Interner({ slots: 4_096, maxLength: 16 }))
  readonly #byIdentifier = small(new BoundedMap<string, Destination>(4_096))

  /** Whose name the cursor has read. */
  named(cursor: Cursor): Destination | undefined {
    const { bytes, textStart, textEnd } = cursor
    return textEnd > textStart ? this.#destinations.of(bytes, textStart, textEnd) : undefined
  }

  /** Whose identifier the cursor has read; undefined where its name is not known. */
  identified(cursor: Cursor): Destination | undefined {
    return this.#byIdentifier.get(this.#identifierOf(cursor))
  }

  /** The cursor has read the identifier of a topic whose name is known. */
  learn(cursor: Cursor, destination: Destination): void {
    const identifier = this.#identifierOf(cursor)
    if (identifier !== '' && identifier !== noTopic) this.#byIdentifier.set(identifier, destination)
  }

  #identifierOf(cursor: Cursor): string {
    return this.#identifiers.intern(cursor.bytes, cursor.textStart, cursor.textEnd)
  }
}

const noTopic = '\0'.repeat(16)

/** What a message holds: of which topic and partition, and how many records. Filled again for each message. */
export class Contents {
  /** Everything was there and read. */
  whole = false
  /** Topics that the message names, and partitions of the last one. */
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

  /** The topic that it is all about; undefined where there are several, or none that is known. */
  get soleTopic(): Destination | undefined {
    return this.#topicsTouched === 1 && (this.whole || this.topicsNamed === 1) ? this.#destination : undefined
  }

  /** The partition that it is all about; -1 where there are several. */
  get solePartition(): number {
    const sole = this.whole || (this.topicsNamed === 1 && this.partitionsNamed === 1)
    return this.touched === 1 && sole ? this.#partition : -1
  }

  /** How many messages; -1 where it is not known. */
  get messages(): number {
    return this.#messagesKnown && (this.whole || this.solePartition >= 0) ? this.#messagesSeen : -1
  }

  /** A partition of topic number `topic` has `messages` (-1: nobody knows how many). */
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
 * Messages in the record batches that the cursor stands at, and passes over; 0 where there are none, -1 where that is not
 * known: not all heads of batches are there, or they are of a format before version 2.
 */
export function messagesIn(cursor: Cursor): number {
  const length = cursor.bytesLength()
  const { bytes, at: start, end, ok } = cursor
  if (!ok || length === 0) return 0
  cursor.skip(length)
  const last = start + length
  let count = 0
  // An answer may end with a part of a batch, which the client leaves aside.
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
