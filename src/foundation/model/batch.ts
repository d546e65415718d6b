import type { StatusName } from '../lib/grpc-status.ts'
import type { Signal } from './signal.ts'

/** How a request's body is compressed, as `content-encoding` and `grpc-encoding` name it. */
export type BodyEncoding = 'identity' | 'gzip' | 'zstd'

/** Items of one signal, encoded as one OTLP export request (protobuf), ready to be queued and sent. */
export interface Batch {
  readonly signal: Signal
  readonly items: number
  readonly body: Uint8Array
  readonly encoding: BodyEncoding
  /** Size of the request before compression. */
  readonly plainBytes: number
  /**
   * The order keys of the resources in it, one bit each. Of batches that share an order key one at a time is under way, the older
   * first, so that what is told of one resource arrives in order.
   */
  readonly orderKeys: number
  /**
   * Gives the memory of the body back to who encoded it: for who made another batch of it, once, when nobody reads it
   * any more.
   */
  readonly free?: (() => void) | undefined
}

/** Every order key: for a batch of which nothing is known. */
export const allOrderKeys = 0xffffffff

/** A request as it was encoded, not compressed. */
export function plainBatch(signal: Signal, items: number, body: Uint8Array, orderKeys = allOrderKeys): Batch {
  return { signal, items, body, encoding: 'identity', plainBytes: body.length, orderKeys }
}

/** What the receiver said to a batch that it took. */
export interface Receipt {
  /** Items that it refused for good (partial success). They are never sent again. */
  readonly rejected: number
  /** Its words, '' when it had none. May be a warning with nothing rejected. */
  readonly message: string
  /** Of its answer, over HTTP. */
  readonly httpStatus?: number
}

/**
 * `error_type` of the metrics: a gRPC status in lower case (`unavailable`), `http_` and a status, or a fault of the
 * transport (`connect`, `tls`). `too_large` is a request that is above the receiver's limit, whatever it calls that.
 */
export type SendFault = StatusName | `http_${number}` | 'connect' | 'dns' | 'tls' | 'too_large'

/** A batch that was not delivered. `retryable` follows the tables of the OTLP specification. */
export class SendError extends Error {
  readonly type: SendFault
  readonly retryable: boolean
  /** What the server asked to wait (RetryInfo, Retry-After), in milliseconds; 0 when it said nothing. */
  readonly retryAfterMs: number
  /** With `too_large`: the receiver's limit in bytes before compression, 0 when it did not say. */
  readonly limitBytes: number
  /** Of its answer, where there was one over HTTP. */
  readonly httpStatus: number | undefined
  constructor(
    message: string,
    options: {
      type: SendFault
      retryable: boolean
      retryAfterMs?: number
      limitBytes?: number
      httpStatus?: number
      cause?: unknown
    },
  ) {
    super(message, { cause: options.cause })
    this.name = 'SendError'
    this.type = options.type
    this.retryable = options.retryable
    this.retryAfterMs = options.retryAfterMs ?? 0
    this.limitBytes = options.limitBytes ?? 0
    this.httpStatus = options.httpStatus
  }
}

/** What a request of ours is called by the conventions for clients. */
export type ExportCall =
  | { readonly protocol: 'grpc'; readonly method: string }
  | { readonly protocol: 'http'; readonly url: string }

/** A destination. `send` resolves when the receiver acknowledged the batch, and rejects with a `SendError` else. */
export interface Sender {
  /** `host:port`, as documents and metric labels show it. */
  readonly endpoint: string
  /** What its requests of a signal are. */
  callOf(signal: Signal): ExportCall
  send(batch: Batch, stop: AbortSignal): Promise<Receipt>
  /** Resolves when requests under way have ended, and the connections with them. None may follow. */
  close(): Promise<void>
}
