// Messages in the body of a gRPC response, each after a flag and its length (grpc/doc/PROTOCOL-HTTP2.md).

import { gunzip } from 'node:zlib'
import { GatheredBytes } from './gathered-bytes.ts'
import { GrpcError, GrpcStatus } from './grpc-status.ts'

export const prefixBytes = 5

/** Receives a response body in pieces. */
export interface AnswerBody {
  /** Accepted message compression, for `grpc-accept-encoding`. */
  readonly accepts: string
  /** Returns the error that ends the body; undefined: continue. */
  add(piece: Buffer): GrpcError | undefined
}

/** A response of one message; no message counts as an empty one. */
export class OneMessage implements AnswerBody {
  readonly accepts = 'identity,gzip'
  readonly #maxBytes: number
  readonly #body: GatheredBytes

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
    this.#body = new GatheredBytes(maxBytes + prefixBytes)
  }

  add(piece: Buffer): GrpcError | undefined {
    if (this.#body.add(piece)) return undefined
    return new GrpcError(tooLarge(this.#maxBytes), { code: GrpcStatus.resource_exhausted })
  }

  /** The message, once the status is ok. Throws or rejects with a `GrpcError` if it is invalid. */
  message(encoding: unknown): Uint8Array | Promise<Uint8Array> {
    const framed = this.#body.bytes
    if (framed.length === 0) return framed
    const length = framed.length < prefixBytes ? -1 : framed.readUInt32BE(1)
    if (length !== framed.length - prefixBytes) throw unreadable('the answer is not one gRPC message')
    const message = framed.subarray(prefixBytes)
    return framed[0] === 0 ? message : inflate(message, encoding, this.#maxBytes)
  }
}

/** Receives a response that is a stream of messages. */
export interface MessageStream {
  /** Larger messages are skipped. */
  readonly maxMessageBytes: number
  /** May throw, which ends the call. */
  take(message: Uint8Array): void
  /** A message was skipped. */
  missed(): void
}

/** A response of any number of messages, kept one at a time. */
export class EachMessage implements AnswerBody {
  readonly accepts = 'identity'
  readonly #stream: MessageStream
  #frame: GatheredBytes
  /** Known bytes of the frame: first the prefix, then all. */
  #wanted = prefixBytes
  /** Bytes to skip. */
  #passing = 0

  constructor(stream: MessageStream) {
    this.#stream = stream
    this.#frame = this.#emptyFrame()
  }

  add(piece: Buffer): GrpcError | undefined {
    try {
      for (let rest = piece; rest.length > 0; ) rest = this.#part(rest)
      return undefined
    } catch (error) {
      if (error instanceof GrpcError) return error
      const message = `a message of the stream cannot be read: ${(error as Error).message}`
      return new GrpcError(message, { code: GrpcStatus.internal, cause: error })
    }
  }

  /** Throws a `GrpcError` if the stream ended within a message. */
  end(): void {
    if (this.#frame.bytes.length > 0 || this.#passing > 0)
      throw unreadable('the stream ended within a message')
  }

  /** Consumes the first part of the bytes, and returns the rest. */
  #part(bytes: Buffer): Buffer {
    if (this.#passing > 0) {
      const passed = Math.min(this.#passing, bytes.length)
      this.#passing -= passed
      return bytes.subarray(passed)
    }
    const missing = this.#wanted - this.#frame.bytes.length
    // A copy: a slice would keep the whole piece.
    this.#frame.add(Buffer.from(bytes.subarray(0, missing)))
    if (this.#frame.bytes.length === this.#wanted) this.#complete()
    return bytes.subarray(missing)
  }

  #complete(): void {
    const frame = this.#frame.bytes
    if (this.#wanted === prefixBytes) {
      if (frame[0] !== 0) throw unreadable('a message of the stream is compressed')
      const length = frame.readUInt32BE(1)
      if (length > this.#stream.maxMessageBytes) {
        this.#passing = length
        this.#frame = this.#emptyFrame()
        this.#stream.missed()
        return
      }
      this.#wanted += length
      if (length > 0) return
    }
    this.#frame = this.#emptyFrame()
    this.#wanted = prefixBytes
    this.#stream.take(frame.subarray(prefixBytes))
  }

  #emptyFrame(): GatheredBytes {
    return new GatheredBytes(prefixBytes + this.#stream.maxMessageBytes)
  }
}

function inflate(message: Buffer, encoding: unknown, maxBytes: number): Promise<Uint8Array> {
  if (encoding !== 'gzip')
    throw unreadable(`the answer is compressed with ${String(encoding ?? 'an unknown method').slice(0, 32)}`)
  return new Promise((resolve, reject) => {
    gunzip(message, { maxOutputLength: maxBytes }, (error, plain) => {
      if (!error) resolve(plain)
      else if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE')
        reject(unreadable(tooLarge(maxBytes), GrpcStatus.resource_exhausted))
      else reject(unreadable(`the answer is not valid gzip: ${error.message}`))
    })
  })
}

/** A response with status ok. */
function unreadable(message: string, code: number = GrpcStatus.internal): GrpcError {
  return new GrpcError(message, { code, taken: true })
}

function tooLarge(maxBytes: number): string {
  return `the answer is larger than ${maxBytes} bytes`
}
