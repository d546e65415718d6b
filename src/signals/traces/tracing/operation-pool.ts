import { Connection } from '../../../foundation/model/connection.ts'
import { Operation } from '../../../foundation/model/stream.ts'
import type { StreamRoom, Tenant } from './stream-room.ts'
import type { Tracer } from './tracer.ts'

/** Takes the operations that decoders find. Nothing of an operation may be kept after the call. */
export type OperationSink = Pick<Tracer, 'begin' | 'end' | 'abandon' | 'lost' | 'refuse'>

/** Bytes of an operation in progress with its attributes, without their texts (measured). */
const operationBytes = 1_360
/** Spare operations in the pool, beyond the number recently in use. */
const spare = 64
const mostSpare = 4_096
/** Operations that one segment may end immediately, and that are reported per turn of the event loop afterwards. */
const mostAtOnce = 64
/**
 * Bytes of operations that may wait to be reported. Above it, each operation that ends has two reported, however long
 * that takes.
 */
const mostWaitingBytes = 4 * 2 ** 20
/** Reported operations after which the front of the waiting list is cut off. */
const mostReported = 1_024

/** The connection of an unused operation. */
const none = Object.assign(new Connection(), { fromBytes: true })

/** Operations that are unused, in progress, or ended and not yet reported. */
export class OperationPool<Stream extends Tenant & { readonly connection: Connection }> {
  /** In progress or not yet reported. */
  used = 0
  ended = 0
  abandoned = 0
  refused = 0
  /** Bytes of operations in progress, and of those waiting to be reported. */
  bytes = 0
  waitingBytes = 0
  readonly sink: OperationSink
  readonly room: StreamRoom<Stream>
  readonly #pressure: { readonly pressure: number }
  readonly #free: Operation[] = []
  #peak = 0
  #reported = 0
  /** Ended and not yet reported. */
  #operations: Operation[] = []
  #next = 0
  #timer: NodeJS.Immediate | undefined

  constructor(sink: OperationSink, room: StreamRoom<Stream>, pressure: { readonly pressure: number }) {
    this.sink = sink
    this.room = room
    this.#pressure = pressure
  }

  /** Memory is so short that nothing new is accepted. */
  get isShut(): boolean {
    return this.#pressure.pressure >= 3
  }

  /** A new segment begins, with its own allowance of operations that it may end immediately. */
  turn(): void {
    this.#reported = 0
  }

  /** Undefined if there is no room. */
  take(stream: Stream, nowNs: number): Operation | undefined {
    if (this.isShut || !this.room.mayGrow(stream, operationBytes, nowNs)) return undefined
    this.used++
    if (this.used > this.#peak) this.#peak = this.used
    const operation = this.#free.pop() ?? new Operation()
    operation.taken = true
    operation.connection = stream.connection
    operation.kept = 0
    operation.bytes = 0
    this.#count(stream, operation, operationBytes)
    return operation
  }

  /** Counts the growth of the operation's memory. */
  weigh(stream: Stream, operation: Operation): void {
    const { call, context } = operation
    let bytes = operationBytes + operation.kept + call.name.length + call.path.length + context.state.length
    const { values, size } = call.attributes
    for (let i = 0; i < size; i++) {
      const value = values[i]!
      if (typeof value === 'string') bytes += value.length
      else if (typeof value === 'object') for (const text of value) bytes += text.length
    }
    this.#count(stream, operation, bytes)
  }

  give(stream: Stream, operation: Operation): void {
    if (!operation.taken) return
    this.#count(stream, operation, 0)
    this.#release(operation)
  }

  /** The operation ended. If many end at once, it is reported later so that it does not block the event loop. */
  end(stream: Stream, operation: Operation): void {
    this.ended++
    if (this.#reported < mostAtOnce && this.#operations.length === 0) {
      this.#reported++
      this.sink.end(operation)
      this.give(stream, operation)
      return
    }
    const { bytes } = operation
    this.#count(stream, operation, 0)
    operation.bytes = bytes
    this.waitingBytes += bytes
    this.#operations.push(operation)
    if (this.waitingBytes > mostWaitingBytes) this.#report(2)
    this.#timer ??= setImmediate(() => this.#tellSome())
  }

  /** Reports all that ended. */
  settle(): void {
    clearImmediate(this.#timer)
    this.#timer = undefined
    this.#report(Number.POSITIVE_INFINITY)
  }

  /** Frees operations that were not needed since the last call. */
  trim(): void {
    const needed = Math.min(mostSpare, this.#peak - this.used + spare)
    if (this.#free.length > needed) this.#free.length = needed
    this.#peak = this.used
  }

  #tellSome(): void {
    this.#report(mostAtOnce)
    this.#timer = this.#operations.length === 0 ? undefined : setImmediate(() => this.#tellSome())
  }

  #report(most: number): void {
    const stop = Math.min(this.#operations.length, this.#next + most)
    for (; this.#next < stop; this.#next++) {
      const operation = this.#operations[this.#next]!
      this.sink.end(operation)
      this.waitingBytes -= operation.bytes
      this.#release(operation)
    }
    if (this.#next < this.#operations.length && this.#next < mostReported) return
    this.#operations = this.#operations.slice(this.#next)
    this.#next = 0
  }

  #count(stream: Stream, operation: Operation, bytes: number): void {
    const more = bytes - operation.bytes
    operation.bytes = bytes
    this.bytes += more
    this.room.grow(stream, more)
  }

  #release(operation: Operation): void {
    operation.taken = false
    operation.connection = none
    this.used--
    if (this.#free.length >= mostSpare) return
    const { call } = operation
    call.attributes.forget()
    call.dimensions.forget()
    this.#free.push(operation)
  }
}
