import type { Operation } from '../../../../foundation/model/stream.ts'
import type { KeptHead } from '../http1/kept-heads.ts'
import type { NumberedRequests } from '../requests-in-flight.ts'
import { Tristate } from './fields.ts'

/** An HTTP/2 request whose response is not complete yet. Reused. */
export class OpenStream {
  id = 0
  /** Links of the table. */
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
  /** `grpc-status`; -1: none came; -2: it came, but is unknown. */
  grpcStatus = -1
  /** Nanoseconds, 0 if there is none. */
  timeoutNs = 0
  requestBody = 0
  responseBody = 0
  /** The head of the final response was seen. */
  answered = false
  /** Nanoseconds of the time since when it may have ended unseen; 0 if it has not. */
  doubtNs = 0
}

/** Open streams, by number: a client's numbers are odd and ascending. */
export type StreamTable = NumberedRequests<OpenStream>

/** The first `most` streams that match `wanted`, by number. Allocates a list, so do not call it per message. */
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
