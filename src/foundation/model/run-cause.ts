/** Why a run ended. `stopped` is what it was asked to do; all others are faults, but for a host that was restarted. */
export const runCauses = [
  'stopped',
  'host_restarted',
  'start_failed',
  'bug',
  'stopped_at_once',
  'stop_timeout',
  'heap_limit',
  'out_of_memory',
  'watchdog',
  'killed',
  'crash',
  'exit',
  'unknown',
] as const

export type RunCause = (typeof runCauses)[number]
