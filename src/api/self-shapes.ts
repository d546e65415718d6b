// What svc says of itself in its documents.

import { runCauses } from '../model/run-cause.ts'
import { amount, count, list, object, oneOf, text } from './schema.ts'

export const memory = object('Memory of the agent, in bytes.', {
  limit: count('`limits.memory`.'),
  resident: count('Of the process, as `ps` has it.'),
  anonymous: count('Of the process, without the pages of files.'),
  heap: object('Heap of the runtime.', {
    live: count('After the last full collection.'),
    used: count('With garbage.'),
    limit: count('Beyond this the runtime ends the process.'),
  }),
  pressure: count(
    '0: enough; 1: caches shrink; 2: detail is left out; 3: nothing new is taken in but counted.',
  ),
  shortages: count('How often pressure rose above 0.'),
  tables: object('Tables of what was seen.', {
    held: count('All together.'),
    limit: count('For all together.'),
    largest: list(
      'The largest first.',
      object('A table.', {
        name: text('Its name.'),
        kind: oneOf('What is given back first: caches, then detail, then intake.', [
          'cache',
          'detail',
          'intake',
        ]),
        bytes: count('Now.'),
        limit: count('At most; 0: it has a bound of its own.'),
        shed: count('Given back since the start because memory was short.'),
      }),
    ),
  }),
})

export const cpu = object('CPU of the agent, with the programs that it started.', {
  limit_cores: amount('`limits.cpu`.'),
  used_cores: amount('Over the last ten seconds.'),
  changes: count('Steps down since the start because it took more than the limit.'),
  lowered: list(
    'What does less now.',
    object('A part.', {
      name: text('Its name.'),
      steps: count('Steps down.'),
      effect: text('What it leaves out.'),
    }),
  ),
})

export const lastRun = object('How the run before this one ended.', {
  ended: oneOf('`fault`: it was not asked to.', ['clean', 'fault']),
  cause: oneOf('What ended it.', runCauses),
  reason: text('The same as a sentence, with what is known besides.'),
  hint: text('What to do about it; empty where there is nothing to do.'),
  version: text('Its release version.'),
  at: text('ISO 8601, UTC: when it ended, or was last known to run.', { format: 'date-time' }),
  uptime_seconds: count('How long it ran.'),
})

export const eventLoop = object(
  'Turns of the event loop, waits left out: while one lasts, nothing else of the agent runs.',
  {
    turns: count('Since the start.'),
    longest_ms: count('The longest since the start was over, in milliseconds.'),
    longest_last_minute_ms: count('The longest of the last minute, in milliseconds.'),
  },
)
