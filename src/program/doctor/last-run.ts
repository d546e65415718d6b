import { check } from './check.ts'

/** Requests wait for the end of a turn; /healthz must not take longer. */
const longTurnMs = 1000

export const lastRun = check({
  name: 'last run',
  group: 'runtime',
  summary: 'The previous run was stopped on request',
  impact: 'data in memory at that time, and data until the next start',
  faults: {
    fault: {
      state: 'note',
      what: 'the previous run ended with an error',
      hints: { any: 'follow the message; svc status shows it, too' },
    },
  },
  try: ({ status }) => {
    const last = status?.last_run
    if (last === undefined) return []
    if (last === null) return [{ ok: 'no previous run is known' }]
    const { ended, ended_at: at, reason, hint } = last
    if (ended === 'clean') return [{ ok: `it ended at ${at}: ${reason}` }]
    return [{ fault: 'fault', detail: `it ended at ${at}: ${reason}${hint === '' ? '' : `; ${hint}`}` }]
  },
})

export const eventLoop = check({
  name: 'event loop',
  group: 'runtime',
  summary: 'No turn of the event loop of the running agent took longer than a second',
  impact: 'timely answers: during a turn the agent does nothing else',
  faults: {
    long: {
      state: 'note',
      what: 'a turn of the event loop took more than a second',
      hints: {
        any: 'check svc status for high load and svc top for other processes that use the CPUs; if there are none, report it',
        systemd: 'CPUWeight= and Nice= of the unit',
        container: 'docker run --cpus=1',
        kubernetes: 'resources: {requests: {cpu: 500m}}',
      },
    },
  },
  try: ({ status }) => {
    const loop = status?.event_loop
    if (loop === undefined || loop === null) return []
    const text = `the longest turn took ${loop.longest_ms} ms, ${loop.longest_last_minute_ms} ms in the last minute`
    return [loop.longest_ms > longTurnMs ? { fault: 'long', detail: text } : { ok: text }]
  },
})
