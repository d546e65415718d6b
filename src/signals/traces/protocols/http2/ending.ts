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
  return ending.reset < 0 ? '' : (resets[ending.reset] ?? '_OTHER')
}

/** Names of error codes by number (RFC 9113, section 7). */
const resets = [
  'NO_ERROR',
  'PROTOCOL_ERROR',
  'INTERNAL_ERROR',
  'FLOW_CONTROL_ERROR',
  'SETTINGS_TIMEOUT',
  'STREAM_CLOSED',
  'FRAME_SIZE_ERROR',
  'REFUSED_STREAM',
  'CANCEL',
  'COMPRESSION_ERROR',
  'CONNECT_ERROR',
  'ENHANCE_YOUR_CALM',
  'INADEQUATE_SECURITY',
  'HTTP_1_1_REQUIRED',
]
