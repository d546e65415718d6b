import type { Operation } from '../../model/stream.ts'
import type { KeptHead } from '../http1/kept-heads.ts'
import type { RisingRequests } from '../requests-in-flight.ts'
import { Said } from './fields.ts'

/** A request of HTTP/2 whose response is not whole yet. Used again. */
export class OpenStream {
  id = 0
  operation!: Operation
  head!: KeptHead
  hasPath = false
  https = false
  grpc: Said = Said.no
  /** Whether the request's first bytes are those of a gRPC message. */
  prefixed: Said = Said.unknown
  /** `grpc-status`; -1: none came; -2: it came, and cannot be known. */
  grpcStatus = -1
  /** Nanoseconds, 0 for none. */
  timeoutNs = 0
  requestBody = 0
  responseBody = 0
  /** The head of the final response was there. */
  answered = false
  /** Nanoseconds: since then it may have ended unseen. 0: it has not. */
  doubtNs = 0
}

/** Streams that are open, by number: a client's numbers are odd and rise. */
export type StreamTable = RisingRequests<OpenStream>

/** The first `most` streams that `wanted` says yes to, by number. Makes a list: not for each message. */
export function selectStreams(
  streams: StreamTable,
  wanted: (stream: OpenStream) => boolean,
  most = Number.POSITIVE_INFINITY,
): OpenStream[] {
  const list: OpenStream[] = []
  for (let i = 0; i < streams.size && list.length < most; i++) {
    const stream = streams.at(i)!
    if (wanted(stream)) list.push(stream)
  }
  return list
}
