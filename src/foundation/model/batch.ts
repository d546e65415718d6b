import type { StatusName } from '../lib/grpc-status.ts'
import type { Signal } from './signal.ts'

/** Compression of a request's body, named as in `content-encoding` and `grpc-encoding`. */
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
   * The order keys of its resources, one bit each. Of the batches that share an order key, only the oldest is in flight, so that
   * data of one resource arrives in order.
   */
  readonly orderKeys: number
  /**
   * Returns the body's buffer to its encoder. Called once, by the code that replaced this batch with another, when
   * nothing reads the body any more.
   */
  readonly free?: (() => void) | undefined
}

/** All order keys: for a batch whose resources are unknown. */
export const allOrderKeys = 0xffffffff

/** Makes an uncompressed batch of an encoded request. */
export function plainBatch(signal: Signal, items: number, body: Uint8Array, orderKeys = allOrderKeys): Batch {
  return { signal, items, body, encoding: 'identity', plainBytes: body.length, orderKeys }
}

/** The receiver's response to a batch that it accepted. */
export interface Receipt {
  /** Items that it rejected permanently (partial success). They are never sent again. */
  readonly rejected: number
  /** The receiver's message, '' if there is none. May be a warning although nothing was rejected. */
  readonly message: string
  /** HTTP status of the response, if sent over HTTP. */
  readonly httpStatus?: number
}

/**
 * `error_type` of the metrics: a gRPC status in lower case (`unavailable`), `http_` and a status, or a transport fault
 * (`connect`, `tls`). `too_large`: the request exceeds the receiver's limit, whatever status the receiver used.
 */
export type SendFault = StatusName | `http_${number}` | 'connect' | 'dns' | 'tls' | 'too_large'

/** A batch that was not delivered. `retryable` follows the tables of the OTLP specification. */
export class SendError extends Error {
  readonly type: SendFault
  readonly retryable: boolean
  /** Delay that the server requested (RetryInfo, Retry-After), in milliseconds; 0 if none. */
  readonly retryAfterMs: number
  /** With `too_large`: the receiver's limit in bytes before compression, 0 if unknown. */
  readonly limitBytes: number
  /** HTTP status of the response, if there was one. */
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

/** Names one of svc's own requests, per the semantic conventions for clients. */
export type ExportCall =
  | { readonly protocol: 'grpc'; readonly method: string }
  | { readonly protocol: 'http'; readonly url: string }

/** A destination. `send` resolves when the receiver acknowledged the batch, otherwise rejects with a `SendError`. */
export interface Sender {
  /** `host:port`, as shown in documents and metric labels. */
  readonly endpoint: string
  /** Describes its requests for a signal. */
  callOf(signal: Signal): ExportCall
  send(batch: Batch, stop: AbortSignal): Promise<Receipt>
  /** Resolves when the requests in flight and their connections have ended. No request may follow. */
  close(): Promise<void>
}
