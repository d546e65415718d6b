import { BoundedMap } from '../../../../foundation/lib/bounded-map.ts'
import type { ByteFlow } from '../../../../foundation/lib/byte-flow.ts'
import type { ByteRange } from '../../../../foundation/lib/byte-range.ts'
import { SpanKind } from '../../../../foundation/model/span.ts'
import type { Operation } from '../../../../foundation/model/stream.ts'
import type { BrokerStream } from '../broker-stream.ts'
import { fail } from '../failure.ts'
import { NumberedRequests } from '../requests-in-flight.ts'

/** Requests and deliveries of a connection that may wait. */
const most = 1_024
const mostConsumers = 256
/** Bytes of a table entry (measured). */
const entryBytes = 80
/** Nanoseconds after which no response is expected: no client waits that long by default. */
const patienceNs = 60e9

/** Positions of the stream's and the consumer's name in the subject of an acknowledgement (NATS ADR-15, ADR-47). */
const consumerPart = 3
const consumerPartWithDomain = 5
const partsWithDomain = 11

/** Operations waiting for a message to a generated subject, which is identified by a hash of 53 bits. */
export class Waiting {
  readonly #stream: BrokerStream
  readonly #requests = new NumberedRequests(most)
  /** JetStream's consumers whose messages this client acknowledges. */
  #consumers: BoundedMap<number, true> | undefined
  #expiredNs = 0

  constructor(stream: BrokerStream) {
    this.#stream = stream
  }

  /** Bytes that it holds in addition to operations. */
  get bytes(): number {
    return this.#requests.bytes + (this.#consumers?.size ?? 0) * entryBytes
  }

  keyOf(bytes: Buffer, subject: ByteRange): number {
    return hashOf(bytes, subject.start, subject.end)
  }

  add(key: number, operation: Operation, nowNs: number): void {
    operation.endNs = nowNs
    const same = this.#requests.take(key)
    if (same !== undefined) this.#end(same, 'no_response', nowNs)
    if (this.#requests.isFull) this.#crowdedOut(this.#requests.shift()!)
    this.#requests.add(key, operation)
  }

  /** A message to a request's reply subject. Ignored if there is no such request. */
  answer(bytes: Buffer, subject: ByteRange, status: number, size: number, flow: ByteFlow): void {
    const operation = this.#requests.take(this.keyOf(bytes, subject))
    if (operation === undefined) return
    operation.responseNs = flow.startNs
    operation.responseBytes = size
    if (status === 503) fail(operation.call, 'no_responders')
    else if (status >= 400) fail(operation.call, String(status))
    this.#stream.end(operation, flow.nowNs)
  }

  /** Whether the client has acknowledged messages of this consumer. */
  acknowledges(bytes: Buffer, subject: ByteRange): boolean {
    return this.#consumers?.get(consumerOf(bytes, subject)) === true
  }

  /** An acknowledgement of JetStream, with the payload "+ACK" or none (NATS ADR-15 and JetStream's wire API). */
  acknowledge(bytes: Buffer, subject: ByteRange, start: number, size: number, nowNs: number): void {
    this.#consumers ??= new BoundedMap(mostConsumers)
    this.#consumers.set(consumerOf(bytes, subject), true)
    const said = size >= 4 ? bytes.readUInt32BE(start) : 0
    if (said === inProgress) return
    const operation = this.#requests.take(this.keyOf(bytes, subject))
    if (operation === undefined) return
    if (said === notAcknowledged) fail(operation.call, 'nak')
    else if (said === terminated) fail(operation.call, 'term')
    this.#stream.end(operation, nowNs)
  }

  /** The server rejected a message published to this destination. */
  refused(destination: string, error: string, nowNs: number): void {
    const requests = this.#requests
    for (let each = requests.oldest; each !== undefined; ) {
      const { call, newer } = each
      if (
        call.kind === SpanKind.client &&
        call.attributes.get('messaging.destination.name') === destination
      ) {
        requests.remove(each)
        this.#end(each, error, nowNs)
      }
      each = newer
    }
  }

  /** Gives up operations that wait too long. */
  expire(nowNs: number): void {
    if (nowNs - this.#expiredNs < patienceNs / 4) return
    this.#expiredNs = nowNs
    const requests = this.#requests
    for (let each = requests.oldest; each !== undefined; ) {
      const { newer } = each
      if (nowNs - each.startNs >= patienceNs) {
        requests.remove(each)
        this.#end(each, 'timeout', nowNs)
      }
      each = newer
    }
  }

  /** The connection ended, with this `error.type`. */
  close(error: string): void {
    this.#requests.drain(operation => this.#end(operation, error, 0))
  }

  forget(): void {
    this.#requests.drain(operation => this.#stream.connection.release(operation))
  }

  /** A request that has to make room may still be answered. */
  #crowdedOut(operation: Operation): void {
    if (operation.call.kind === SpanKind.client) this.#stream.abandon(operation)
    else this.#stream.end(operation, operation.endNs)
  }

  /** An unanswered request fails. A delivery ends normally, as it is unknown whether it was to be acknowledged. */
  #end(operation: Operation, error: string, nowNs: number): void {
    if (operation.call.kind === SpanKind.client) {
      fail(operation.call, error)
      this.#stream.end(operation, nowNs)
    } else this.#stream.end(operation, operation.endNs)
  }
}

/** "+WPI", "-NAK" and "+TER" of "+TERM" as numbers. */
const inProgress = 0x2b575049
const notAcknowledged = 0x2d4e414b
const terminated = 0x2b544552

/** Identifies a stream and a consumer by the part of the subject that ends with them. */
function consumerOf(bytes: Buffer, { start, end }: ByteRange): number {
  let parts = 1
  for (let at = start; at < end; at++) if (bytes[at] === dot) parts++
  const last = parts >= partsWithDomain ? consumerPartWithDomain : consumerPart
  let at = start
  for (let part = 0; at < end; at++) if (bytes[at] === dot && part++ === last) break
  return hashOf(bytes, start, at)
}

const dot = 0x2e

/** Two hashes combined (FNV-1a and a variant), never 0. */
function hashOf(bytes: Buffer, start: number, end: number): number {
  let one = 0x811c9dc5
  let two = end - start
  for (let at = start; at < end; at++) {
    one = Math.imul(one ^ bytes[at]!, 0x01000193)
    two = Math.imul(two ^ bytes[at]!, 0x5bd1e995)
    two ^= two >>> 15
  }
  return 1 + (one >>> 0) * 2 ** 20 + ((two >>> 0) & 0xfffff)
}
