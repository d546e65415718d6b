import { check } from './check.ts'

/** Requests wait for the end of a turn; /healthz may not take longer. */
const longTurnMs = 1000

export const lastRun = check({
  name: 'last run',
  group: 'runtime',
  summary: 'The run before the one that runs now ended because it was asked to',
  lose: 'what was in memory then, and what happened until the next start',
  faults: {
    fault: {
      state: 'note',
      what: 'the run before the one that runs now ended by a fault',
      hints: { any: 'what the line says; svc status shows it, too' },
    },
  },
  try: ({ status }) => {
    const last = status?.last_run
    if (last === undefined) return []
    if (last === null) return [{ ok: 'nothing is known of a run before' }]
    const { ended, at, reason, hint } = last
    if (ended === 'clean') return [{ ok: `it ended at ${at}: ${reason}` }]
    return [{ fault: 'fault', detail: `it ended at ${at}: ${reason}${hint === '' ? '' : `; ${hint}`}` }]
  },
})

export const eventLoop = check({
  name: 'event loop',
  group: 'runtime',
  summary: 'No turn of the event loop took longer than a second, as far as the running agent knows',
  lose: 'answers in time: while a turn lasts, nothing else of the agent runs',
  faults: {
    long: {
      state: 'note',
      what: 'a turn of the event loop took more than a second',
      hints: {
        any: 'svc status shows what is much; svc top whether others keep the CPUs busy; report it where neither does',
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
