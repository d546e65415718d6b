import { BoundedMap } from '../../../../foundation/lib/bounded-map.ts'
import type { Operation } from '../../../../foundation/model/stream.ts'
import { RequestsInFlight, RisingRequests, type Tally } from '../requests-in-flight.ts'

/** A client's subscription to a queue. */
export interface Consumer {
  /** '' where the server named it. */
  readonly queue: string
  /** Its messages need no acknowledgement. */
  readonly noAck: boolean
}

/** A message whose parts come one after the other: the method, the header, the body. */
export class Content {
  /** The method was seen, the end was not yet. */
  open = false
  /** The header was seen. */
  headed = false
  operation: Operation | undefined = undefined
  /** For a delivery: waits for an acknowledgement behind its end. */
  tag = 0
  /** Bytes of the body: announced, and in frames whose headers were seen; the size of the first of these. */
  size = 0
  got = 0
  frameSize = 0

  begin(operation: Operation | undefined, tag: number): void {
    this.open = true
    this.headed = false
    this.operation = operation
    this.tag = tag
    this.size = 0
    this.got = 0
    this.frameSize = 0
  }

  end(): void {
    this.open = false
    this.operation = undefined
  }
}

/** Operations of a channel that may wait for an acknowledgement, in each direction. */
const mostWaiting = 2_048
const mostConsumers = 256
/** Bytes of a channel, and of a consumer without its texts (measured). */
const channelBytes = 750
const consumerBytes = 200
/** Requests of a channel that wait for their answers: clients send one at a time. */
const mostAsked = 64

/** What is known of a channel (AMQP 0-9-1, section 1.5). */
export class Channel {
  /** Messages that are being sent and received. */
  readonly sent = new Content()
  readonly received = new Content()
  /** Publishes without their confirmation, deliveries that are not acknowledged. */
  readonly published: RisingRequests
  readonly delivered: RisingRequests
  /** basic.get without its answer; undefined where there was no room for its operation. */
  readonly gets: RequestsInFlight
  /** The server confirms what is published; the tag that it gives the next message. */
  confirms = false
  nextTag = 1
  /** Messages published since the server last confirmed any, while it is not known whether it does. */
  unconfirmed = 0
  /** Acknowledgements of the client were seen. */
  acknowledges = false
  /** basic.consume without its answer whose tag the server makes up. */
  readonly consumes: Consumer[] = []
  #consumers: BoundedMap<string, Consumer> | undefined
  readonly #tally: Tally

  constructor(tally: Tally) {
    this.#tally = tally
    this.published = new RisingRequests(mostWaiting, tally)
    this.delivered = new RisingRequests(mostWaiting, tally)
    this.gets = new RequestsInFlight(mostAsked, tally)
    tally.bytes += channelBytes
  }

  /** Nothing of it is kept any more. */
  clear(): void {
    this.#tally.bytes -= channelBytes
    this.published.clear()
    this.delivered.clear()
    this.gets.clear()
    this.#consumers?.forEach((consumer, tag) => {
      this.#tally.bytes -= bytesOf(tag, consumer)
    })
    this.#consumers = undefined
    for (const consumer of this.consumes) this.#tally.bytes -= bytesOf('', consumer)
    this.consumes.length = 0
  }

  /** A consumer whose tag the server is to make up. */
  expectConsumer(consumer: Consumer): void {
    if (this.consumes.length >= mostAsked) return
    this.#tally.bytes += bytesOf('', consumer)
    this.consumes.push(consumer)
  }

  expectedConsumer(): Consumer | undefined {
    const consumer = this.consumes.shift()
    if (consumer !== undefined) this.#tally.bytes -= bytesOf('', consumer)
    return consumer
  }

  consumer(tag: string): Consumer | undefined {
    return this.#consumers?.get(tag)
  }

  addConsumer(tag: string, consumer: Consumer): void {
    this.removeConsumer(tag)
    this.#consumers ??= new BoundedMap(mostConsumers, (old, gone) => {
      this.#tally.bytes -= bytesOf(old, gone)
    })
    this.#tally.bytes += bytesOf(tag, consumer)
    this.#consumers.set(tag, consumer)
  }

  removeConsumer(tag: string): void {
    const consumer = this.#consumers?.get(tag)
    if (consumer === undefined) return
    this.#tally.bytes -= bytesOf(tag, consumer)
    this.#consumers?.delete(tag)
  }
}

function bytesOf(tag: string, { queue }: Consumer): number {
  return consumerBytes + tag.length + queue.length
}
