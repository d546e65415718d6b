import type { Operation } from '../../../../foundation/model/stream.ts'
import type { KeptHead } from '../http1/kept-heads.ts'
import type { NumberedRequests } from '../requests-in-flight.ts'
import { Tristate } from './fields.ts'

/** A request of HTTP/2 whose response is not whole yet. Used again. */
export class OpenStream {
  id = 0
  /** For the table. */
  older: OpenStream | undefined = undefined
  newer: OpenStream | undefined = undefined
  chain: OpenStream | undefined = undefined
  operation!: Operation
  head!: KeptHead
  hasPath = false
  https = false
  grpc: Tristate = Tristate.no
  /** Whether the request's first bytes are those of a gRPC message. */
  prefixed: Tristate = Tristate.unknown
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
export type StreamTable = NumberedRequests<OpenStream>

/** The first `most` streams that `wanted` says yes to, by number. Makes a list: not for each message. */
export function selectStreams(
  streams: StreamTable,
  wanted: (stream: OpenStream) => boolean,
  most = Number.POSITIVE_INFINITY,
): OpenStream[] {
  const list: OpenStream[] = []
  for (let each = streams.oldest; each !== undefined && list.length < most; each = each.newer)
    if (wanted(each)) list.push(each)
  return list
}
