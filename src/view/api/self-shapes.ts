// State of svc itself, used in several documents.

import { runCauses } from '../../foundation/model/run-cause.ts'
import { amount, count, list, object, oneOf, text } from './schema.ts'

export const memory = object('Memory of the agent, in bytes.', {
  limit: count('`limits.memory`.'),
  resident: count('Resident memory, as in `ps`.'),
  anonymous: count('Memory without file pages.'),
  heap: object('Runtime heap.', {
    live: count('After the last full garbage collection.'),
    used: count('Including garbage.'),
    limit: count('Limit at which the runtime ends the process.'),
  }),
  pressure: count('0: enough memory; 1: caches shrink; 2: detail is left out; 3: new data is counted only.'),
  shortages: count('Times that pressure rose above 0.'),
  tables: object('Tables of observed data.', {
    used: count('All tables together.'),
    limit: count('Limit for all tables together.'),
    largest: list(
      'Tables, largest first.',
      object('A table.', {
        name: text('Table name.'),
        kind: oneOf('Order of release: caches first, then detail, then intake.', [
          'cache',
          'detail',
          'intake',
        ]),
        bytes: count('Current size.'),
        limit: count('Limit; 0 if it has its own limit.'),
        released: count('Memory released since the start because memory was short.'),
      }),
    ),
  }),
})

export const cpu = object('CPU usage of the agent and the programs that it started.', {
  limit_cores: amount('`limits.cpu`.'),
  used_cores: amount('Average of the last ten seconds.'),
  reductions: count('Reductions since the start because usage exceeded the limit.'),
  reduced: list(
    'Parts that are reduced now.',
    object('A part.', {
      name: text('Name of the part.'),
      steps: count('Steps of reduction.'),
      effect: text('Effect of the reduction.'),
    }),
  ),
})

export const lastRun = object('End of the previous run.', {
  ended: oneOf('`clean`, or `fault` if it ended unexpectedly.', ['clean', 'fault']),
  cause: oneOf('Cause.', runCauses),
  reason: text('Cause in one sentence, with further details.'),
  hint: text('How to fix it; empty if no action is needed.'),
  version: text('Release version of that run.'),
  ended_at: text('Time of its end, or the last time it was known to run (ISO 8601, UTC).', {
    format: 'date-time',
  }),
  uptime_seconds: count('Duration of the run.'),
})

export const eventLoop = object(
  'Turns of the event loop, without waits. During a turn, no other work of the agent runs.',
  {
    turns: count('Turns since the start.'),
    longest_ms: count('Longest turn since startup completed, in milliseconds.'),
    longest_last_minute_ms: count('Longest turn of the last minute, in milliseconds.'),
  },
)
