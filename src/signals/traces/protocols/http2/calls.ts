import { RequestHead } from '../../../../foundation/lib/http-head.ts'
import type { ProtocolOptions } from '../../../../foundation/model/protocol.ts'
import { Operation, type StreamConnection } from '../../../../foundation/model/stream.ts'
import { HttpCalls } from '../http-calls.ts'
import { KeptHead, KeptHeads } from '../http1/kept-heads.ts'
import { type Ending, failureOf } from './ending.ts'
import { Field, fields, isGrpc, keepHead, readContext, Tristate, timeoutOf } from './fields.ts'
import { GrpcCalls } from './grpc-calls.ts'
import { OpenStream } from './open-stream.ts'

/** Bytes of an open stream without its head (measured). */
const openStreamBytes = 150

/** Maximum number of spare streams in the pool. */
const mostFree = 256
/** Stand-ins in spare streams. */
const noOperation = new Operation()
const noHead = new KeptHead()

/** Requests in flight on all HTTP/2 connections: their kept heads, and how they end. */
export class Http2Calls {
  readonly #http: HttpCalls
  readonly #grpc = new GrpcCalls()
  readonly #heads = new KeptHeads()
  readonly #head = new RequestHead()
  readonly #free: OpenStream[] = []

  constructor(options: ProtocolOptions) {
    this.#http = new HttpCalls(options)
  }

  /** Reads a request from `fields`. */
  open(id: number, operation: Operation, connection: StreamConnection): OpenStream {
    const stream = this.#free.pop() ?? new OpenStream()
    stream.id = id
    stream.operation = operation
    stream.head = this.#heads.take()
    stream.hasPath = keepHead(this.#heads, stream.head)
    stream.https = fields.has(Field.scheme) ? fields.is(Field.scheme, 'https') : connection.tls
    stream.grpc = fields.has(Field.method) && !fields.is(Field.method, 'POST') ? Tristate.no : isGrpc()
    stream.prefixed = Tristate.unknown
    stream.grpcStatus = -1
    stream.timeoutNs = timeoutOf()
    stream.requestBody = 0
    stream.responseBody = 0
    stream.answered = false
    stream.doubtNs = 0
    operation.id = id
    operation.kept = openStreamBytes + stream.head.memory
    readContext(operation.context)
    return stream
  }

  /** It ended. `grpc`: whether it was gRPC. */
  end(stream: OpenStream, connection: StreamConnection, ending: Ending, grpc: boolean): void {
    const { operation, head: kept } = stream
    const head = this.#head
    head.read(kept.bytes, 0, kept.length)
    head.version = '2'
    if (stream.https && head.target.host.empty) head.scheme = 'https://'
    if (!stream.hasPath) {
      head.hasPath = false
      head.path.clear()
    }
    if (grpc) this.#grpc.describe(stream, head, connection, ending)
    else {
      operation.requestBodyBytes = stream.requestBody
      operation.responseBodyBytes = stream.responseBody
      // No answer was seen, but there may have been one: that is not an error.
      this.#http.describe(head, kept.bytes, operation, failureOf(ending, connection), ending.unseen)
    }
    connection.end(operation)
    this.#release(stream)
  }

  abandon(stream: OpenStream, connection: StreamConnection): void {
    connection.abandon(stream.operation)
    this.#release(stream)
  }

  /** The connection was not HTTP/2 after all. */
  forget(stream: OpenStream, connection: StreamConnection): void {
    connection.release(stream.operation)
    this.#release(stream)
  }

  #release(stream: OpenStream): void {
    this.#heads.give(stream.head)
    if (this.#free.length >= mostFree) return
    stream.head = noHead
    stream.operation = noOperation
    this.#free.push(stream)
  }
}
