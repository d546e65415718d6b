import { http2Errors } from '../../../../foundation/lib/grpc-status.ts'
import type { StreamConnection } from '../../../../foundation/model/stream.ts'
import { brokenOff } from '../failure.ts'

/** How a stream ended. Reused. */
export class Ending {
  /** Error code of RST_STREAM, -1 if there was none. */
  reset = -1
  /** The client reset it. */
  byClient = false
  /** The connection ended first. */
  broken = false
  /** Its end was not seen. */
  unseen = false

  set(reset: number, byClient: boolean, broken: boolean, unseen: boolean): this {
    this.reset = reset
    this.byClient = byClient
    this.broken = broken
    this.unseen = unseen
    return this
  }
}

/**
 * `error.type` of a stream that ended without a status: the error code's name, or the reason why the connection ended.
 */
export function failureOf(ending: Ending, connection: StreamConnection): string {
  if (ending.broken) return brokenOff(connection.errno)
  return ending.reset < 0 ? '' : (http2Errors[ending.reset] ?? '_OTHER')
}
