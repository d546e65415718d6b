/** Why a run ended. `stopped` is a requested stop; all others are faults, except a restart of the host. */
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
