import { Reader } from '../../../foundation/lib/protobuf.ts'
import type { Receipt } from '../../../foundation/model/batch.ts'

/** Maximum length of a server's message. */
const maxMessageBytes = 4096
const maxTypeUrlBytes = 256
const retryInfoType = 'google.rpc.RetryInfo'

/**
 * Reads the answer to an export request (Export*ServiceResponse; the four signals use the same field numbers). An empty
 * body means that everything was accepted. Throws a RangeError for invalid bytes.
 */
export function decodeReceipt(body: Uint8Array): Receipt {
  let rejected = 0
  let message = ''
  const response = new Reader(body)
  while (response.next()) {
    if (response.field !== 1 || response.type !== 2) {
      response.skip()
      continue
    }
    const partial = new Reader(response.bytes())
    while (partial.next()) {
      if (partial.field === 1 && partial.type === 0) rejected = Math.max(0, partial.int())
      else if (partial.field === 2 && partial.type === 2) message = partial.string(maxMessageBytes)
      else partial.skip()
    }
  }
  return { rejected, message }
}

/** A google.rpc.Status: the value of `grpc-status-details-bin`, and the body of an error over HTTP. */
export interface StatusDetails {
  /** gRPC status code, 0 when absent. */
  readonly code: number
  readonly message: string
  /**
   * Delay of its RetryInfo, in milliseconds, rounded up; 0 for one without a delay. Undefined without a
   * RetryInfo, which makes RESOURCE_EXHAUSTED final.
   */
  readonly retryAfterMs: number | undefined
}

/** Reads a google.rpc.Status. Throws a RangeError for invalid bytes. */
export function decodeStatus(bytes: Uint8Array): StatusDetails {
  let code = 0
  let message = ''
  let retryAfterMs: number | undefined
  const status = new Reader(bytes)
  while (status.next()) {
    if (status.field === 1 && status.type === 0) code = status.int()
    else if (status.field === 2 && status.type === 2) message = status.string(maxMessageBytes)
    else if (status.field === 3 && status.type === 2)
      retryAfterMs = decodeDetail(status.bytes()) ?? retryAfterMs
    else status.skip()
  }
  return { code, message, retryAfterMs }
}

/** Delay of a RetryInfo in a google.protobuf.Any, in milliseconds; undefined for any other message. */
function decodeDetail(bytes: Uint8Array): number | undefined {
  let type = ''
  let value: Uint8Array | undefined
  const any = new Reader(bytes)
  while (any.next()) {
    if (any.field === 1 && any.type === 2) type = any.string(maxTypeUrlBytes)
    else if (any.field === 2 && any.type === 2) value = any.bytes()
    else any.skip()
  }
  if (type.slice(type.lastIndexOf('/') + 1) !== retryInfoType) return undefined
  if (value === undefined) return 0
  let delayMs = 0
  const info = new Reader(value)
  while (info.next()) {
    if (info.field === 1 && info.type === 2) delayMs = decodeDuration(info.bytes())
    else info.skip()
  }
  return delayMs
}

/** A google.protobuf.Duration in milliseconds, rounded up; a negative one is 0. */
function decodeDuration(bytes: Uint8Array): number {
  let seconds = 0
  let nanos = 0
  const duration = new Reader(bytes)
  while (duration.next()) {
    if (duration.field === 1 && duration.type === 0) seconds = duration.int()
    else if (duration.field === 2 && duration.type === 0) nanos = duration.int()
    else duration.skip()
  }
  return Math.max(0, Math.ceil(seconds * 1000 + nanos / 1e6))
}
