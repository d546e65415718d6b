import type { Call } from '../../../foundation/model/call.ts'

/** Errno numbers of Linux. */
const types = new Map([
  [32, 'broken_pipe'],
  [104, 'connection_reset'],
  [110, 'timeout'],
])

/**
 * `error.type` of a request in flight when its connection ended: `connection_reset`, `broken_pipe`, `timeout`,
 * `connection_closed` (errno 0: an orderly end before the response was complete), or `_OTHER` for any other errno.
 */
export function brokenOff(errno: number): string {
  return errno === 0 ? 'connection_closed' : (types.get(errno) ?? '_OTHER')
}

/** Marks a call as failed with this `error.type`. The first reason is kept. */
export function fail(call: Call, type: string): void {
  if (call.error !== '') return
  call.error = type
  call.attributes.add('error.type', type)
  call.dimensions.add('error.type', type)
}
