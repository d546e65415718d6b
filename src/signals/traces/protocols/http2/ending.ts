import type { StreamConnection } from '../../../../foundation/model/stream.ts'
import { brokenOff } from '../failure.ts'

/** How a stream ended. Filled again and again. */
export class Ending {
  /** Error code of RST_STREAM, -1 for none. */
  reset = -1
  /** It was the client who reset it. */
  byClient = false
  /** The connection ended before it. */
  broken = false
  /** It ended unseen. */
  unseen = false

  set(reset: number, byClient: boolean, broken: boolean, unseen: boolean): this {
    this.reset = reset
    this.byClient = byClient
    this.broken = broken
    this.unseen = unseen
    return this
  }
}

/** `error.type` of what ended without a status: the error code's name, or what ended the connection. */
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
