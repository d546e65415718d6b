import { BoundedMap } from '../../lib/bounded-map.ts'
import type { Operation } from '../../model/stream.ts'
import { UnderWay } from './under-way.ts'

/** Somebody who takes the messages of a queue. */
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
/** Requests of a channel that wait for their answers: clients send one at a time. */
export const mostAsked = 64

/** What is known of a channel (AMQP 0-9-1, section 1.5). */
export class Channel {
  /** Messages that are being sent and received. */
  readonly sent = new Content()
  readonly received = new Content()
  /** Publishes without their confirmation, deliveries that are not acknowledged. */
  readonly published = new UnderWay(mostWaiting)
  readonly delivered = new UnderWay(mostWaiting)
  /** basic.get without its answer; undefined where there was no room for its operation. */
  readonly gets: (Operation | undefined)[] = []
  /** The server confirms what is published; the tag that it gives the next message. */
  confirms = false
  nextTag = 1
  /** Messages published since the server last confirmed any, while it is not known whether it does. */
  unconfirmed = 0
  /** Acknowledgements of the client were seen. */
  acknowledges = false
  /** basic.consume without its answer whose tag the server makes up. */
  readonly consumes: Consumer[] = []
  private consumers: BoundedMap<string, Consumer> | undefined

  consumer(tag: string): Consumer | undefined {
    return this.consumers?.get(tag)
  }

  addConsumer(tag: string, consumer: Consumer): void {
    this.consumers ??= new BoundedMap(mostConsumers)
    this.consumers.set(tag, consumer)
  }

  removeConsumer(tag: string): void {
    this.consumers?.delete(tag)
  }
}
