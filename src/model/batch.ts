import type { Signal } from './signal.ts'

/** Items of one signal, encoded as one OTLP export request (the protobuf body), ready to be queued and sent. */
export interface Batch {
  readonly signal: Signal
  readonly items: number
  readonly body: Uint8Array
}

/** What the receiver said to a batch that it took. */
export interface Receipt {
  /** Items that it refused for good (partial success). They are never sent again. */
  readonly rejected: number
  /** Its words, '' when it had none. May be a warning with nothing rejected. */
  readonly message: string
}

/** A batch that was not delivered. `retryable` follows the tables of the OTLP specification. */
export class SendError extends Error {
  /** `error_type` of the metrics: a gRPC status in lower case (`unavailable`) or a transport fault (`connect`, `tls`). */
  readonly type: string
  readonly retryable: boolean
  /** What the server asked to wait (RetryInfo, Retry-After), in milliseconds; 0 when it said nothing. */
  readonly retryAfterMs: number
  constructor(
    message: string,
    options: { type: string; retryable: boolean; retryAfterMs?: number; cause?: unknown },
  ) {
    super(message, { cause: options.cause })
    this.name = 'SendError'
    this.type = options.type
    this.retryable = options.retryable
    this.retryAfterMs = options.retryAfterMs ?? 0
  }
}

/** A destination. `send` resolves when the receiver acknowledged the batch, and rejects with a `SendError` else. */
export interface Sender {
  /** `host:port`, as documents and metric labels show it. */
  readonly endpoint: string
  send(batch: Batch, stop: AbortSignal): Promise<Receipt>
  /** Resolves when requests under way have ended, and the connections with them. None may follow. */
  close(): Promise<void>
}
