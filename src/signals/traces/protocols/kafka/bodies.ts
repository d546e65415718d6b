import { type Contents, messagesIn, type Topics } from './contents.ts'
import type { Cursor } from './cursor.ts'

// Bodies of messages, by the schemas of Kafka 4.1 (clients/src/main/resources/common/message). Each reader starts after
// the message's head, and reads as far as bytes are available.

/** Number of acknowledgements that a Produce request asks for: 0 means no response. NaN if it is missing. */
export function readProduceRequest(cursor: Cursor, version: number, topics: Topics, into: Contents): number {
  if (version >= 3) cursor.text()
  const acks = cursor.int16()
  const known = cursor.ok
  cursor.skip(4)
  const count = cursor.array()
  into.topicsNamed = count
  for (let topic = 0; topic < count && cursor.ok; topic++) {
    const destination = readTopic(cursor, version >= 13, topics)
    const partitions = cursor.array()
    into.partitionsNamed = partitions
    for (let i = 0; i < partitions && cursor.ok; i++) {
      const partition = cursor.int32()
      if (!cursor.ok) break
      into.touch(topic, destination, partition, messagesIn(cursor))
      cursor.tags()
    }
    cursor.tags()
  }
  cursor.tags()
  into.whole = cursor.ok
  return known ? acks : Number.NaN
}

export function readProduceResponse(cursor: Cursor, version: number, into: Contents): void {
  cursor.tags()
  for (let topics = cursor.array(); topics > 0 && cursor.ok; topics--) {
    if (version >= 13) cursor.uuid()
    else cursor.text()
    for (let partitions = cursor.array(); partitions > 0 && cursor.ok; partitions--) {
      cursor.skip(4)
      into.failed(cursor.int16())
      // Offset, then the time of the log and the log's start.
      cursor.skip(8 + (version >= 2 ? 8 : 0) + (version >= 5 ? 8 : 0))
      if (version >= 8) {
        for (let errors = cursor.array(); errors > 0 && cursor.ok; errors--) {
          cursor.skip(4)
          cursor.text()
          cursor.tags()
        }
        cursor.text()
      }
      cursor.tags()
    }
    cursor.tags()
  }
}

/** Whether a Fetch request comes from another broker, which replicates the records. */
export function isReplication(cursor: Cursor, version: number): boolean {
  if (version < 15) return cursor.int32() >= 0 && cursor.ok
  // Times and sizes, isolation, session; then topics, and among the tagged fields the replica's state.
  cursor.skip(12 + 1 + 8)
  for (let topics = cursor.array(); topics > 0 && cursor.ok; topics--) {
    cursor.uuid()
    for (let partitions = cursor.array(); partitions > 0 && cursor.ok; partitions--) {
      cursor.skip(4 + 4 + 8 + 4 + 8 + 4)
      cursor.tags()
    }
    cursor.tags()
  }
  for (let topics = cursor.array(); topics > 0 && cursor.ok; topics--) {
    cursor.uuid()
    cursor.skip(4 * cursor.array())
    cursor.tags()
  }
  cursor.text()
  for (let fields = cursor.unsigned(); fields > 0 && cursor.ok; fields--) {
    const tag = cursor.unsigned()
    const length = cursor.unsigned()
    if (tag === replicaStateTag) return cursor.int32() >= 0 && cursor.ok
    cursor.skip(length)
  }
  return false
}

const replicaStateTag = 1

export function readFetchResponse(cursor: Cursor, version: number, topics: Topics, into: Contents): void {
  cursor.tags()
  if (version >= 1) cursor.skip(4)
  if (version >= 7) {
    into.failed(cursor.int16())
    cursor.skip(4)
  }
  const count = cursor.array()
  into.topicsNamed = count
  for (let topic = 0; topic < count && cursor.ok; topic++) {
    const destination = readTopic(cursor, version >= 13, topics)
    const partitions = cursor.array()
    into.partitionsNamed = partitions
    for (let i = 0; i < partitions && cursor.ok; i++) {
      const partition = cursor.int32()
      const error = cursor.int16()
      // Partition end, last stable offset, and log start; then the preferred replica.
      cursor.skip(8 + (version >= 4 ? 8 : 0) + (version >= 5 ? 8 : 0))
      if (version >= 4) skipAborted(cursor)
      if (version >= 11) cursor.skip(4)
      const messages = messagesIn(cursor)
      into.failed(error)
      if (error !== 0 || messages !== 0) into.touch(topic, destination, partition, messages)
      cursor.tags()
    }
    cursor.tags()
  }
  cursor.tags()
  into.whole = cursor.ok
}

/** Learns the names of topics that later messages only identify. */
export function readMetadataResponse(cursor: Cursor, version: number, topics: Topics): void {
  if (version < 10) return
  cursor.tags()
  cursor.skip(4)
  for (let brokers = cursor.array(); brokers > 0 && cursor.ok; brokers--) {
    cursor.skip(4)
    cursor.text()
    cursor.skip(4)
    cursor.text()
    cursor.tags()
  }
  cursor.text()
  cursor.skip(4)
  for (let count = cursor.array(); count > 0 && cursor.ok; count--) {
    cursor.skip(2)
    cursor.text()
    const destination = topics.named(cursor)
    cursor.uuid()
    if (destination !== undefined && cursor.ok) topics.learn(cursor, destination)
    cursor.skip(1)
    for (let partitions = cursor.array(); partitions > 0 && cursor.ok; partitions--) {
      cursor.skip(2 + 4 + 4 + 4)
      // Replicas, in-sync replicas, offline replicas.
      for (let list = 0; list < 3; list++) cursor.skip(4 * cursor.array())
      cursor.tags()
    }
    cursor.skip(4)
    cursor.tags()
  }
}

function readTopic(cursor: Cursor, byIdentifier: boolean, topics: Topics) {
  if (byIdentifier) {
    cursor.uuid()
    return topics.identified(cursor)
  }
  cursor.text()
  return topics.named(cursor)
}

/** Aborted transactions: producer and offset each. */
function skipAborted(cursor: Cursor): void {
  for (let count = cursor.array(); count > 0 && cursor.ok; count--) {
    cursor.skip(16)
    cursor.tags()
  }
}
