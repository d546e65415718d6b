import { BoundedMap } from '../../../../foundation/lib/bounded-map.ts'
import type { Operation } from '../../../../foundation/model/stream.ts'
import { RequestsInFlight, RisingRequests, type Tally } from '../requests-in-flight.ts'

/** A client's subscription to a queue. */
export interface Consumer {
  /** '' if the server chose the name. */
  readonly queue: string
  /** Its messages need no acknowledgement. */
  readonly noAck: boolean
}

/** A message, which arrives in parts: method, header, body. */
export class Content {
  /** The method was seen, the end was not yet. */
  open = false
  /** The header was seen. */
  headed = false
  operation: Operation | undefined = undefined
  /** For a delivery: it waits for an acknowledgement after its end. */
  tag = 0
  /** Bytes of the body: announced, and in frames whose headers were seen; size of the first of these frames. */
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
/** Requests of a channel that wait for their responses: clients send one at a time. */
const mostAsked = 64

/** State of a channel (AMQP 0-9-1, section 1.5). */
export class Channel {
  /** Messages being sent and received. */
  readonly sent = new Content()
  readonly received = new Content()
  /** Unconfirmed publishes, and unacknowledged deliveries. */
  readonly published: RisingRequests
  readonly delivered: RisingRequests
  /** Unanswered basic.get requests; an entry is undefined if there was no room for the operation. */
  readonly gets: RequestsInFlight
  /** The channel is in confirm mode; delivery tag of the next message. */
  confirms = false
  nextTag = 1
  /** Messages published since the last confirmation, while it is unknown whether the channel is in confirm mode. */
  unconfirmed = 0
  /** Acknowledgements from the client were seen. */
  acknowledges = false
  /** basic.consume without a response yet whose consumer tag the server chooses. */
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

  /** Releases everything. */
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

  /** Adds a consumer whose tag the server chooses. */
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
