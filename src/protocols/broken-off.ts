/** Linux's numbers. */
const types = new Map([
  [32, 'broken_pipe'],
  [104, 'connection_reset'],
  [110, 'timeout'],
])

/**
 * `error.type` of what was under way when its connection ended: `connection_reset`, `broken_pipe`, `timeout`,
 * `connection_closed` (errno 0: an orderly end before the response was whole), or `_OTHER` for any further errno.
 */
export function brokenOff(errno: number): string {
  return errno === 0 ? 'connection_closed' : (types.get(errno) ?? '_OTHER')
}
