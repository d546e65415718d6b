// What svc tells of itself, as `documents.ts` has it.

import {
  amount,
  anything,
  count,
  either,
  flag,
  list,
  named,
  object,
  oneOf,
  optional,
  orNull,
  text,
  word,
} from '../schema.ts'
import { memory } from '../self-shapes.ts'

// Pipeline

const signalName = oneOf('A signal.', ['traces', 'metrics', 'logs', 'profiles'])

export const pipelineLine = named(
  'PipelineLine',
  object('Where data goes, and where it is lost.', {
    at_ms: amount('When.'),
    signals: list(
      'The four.',
      object('The balance of a signal, in items since the start.', {
        signal: signalName,
        collected: count('Taken in.'),
        recovered: count('Found in the queue on disk at the start.'),
        exported: count('Acknowledged.'),
        rejected: count('Refused for good by the receiver.'),
        dropped: list(
          'Not delivered, and never to be.',
          object('By reason.', {
            reason: text('Why.'),
            items: count('How many.'),
            wished: flag('Somebody asked for it: a rule, sampling, no endpoint. All others are losses.'),
          }),
        ),
        queued: count('Waiting and under way.'),
        collected_per_s: amount('Now.'),
        exported_per_s: amount('Now.'),
        dropped_per_s: amount('Now, without those that somebody asked for.'),
        queued_bytes: count('Of the queue.'),
        capacity_bytes: count('What the queue may have now; on disk all signals share one bound.'),
        full_in_s: orNull(amount('Until the queue is full if it goes on so; null where it does not grow.')),
        oldest_ms: amount('How long the oldest batch has waited.'),
        durable: flag('The queue outlives the process.'),
      }),
    ),
    nodes: list(
      'Sources, processors, queues, exporters.',
      object('A part.', {
        id: text('Unique, and the same in every line.'),
        kind: oneOf('What it is.', ['source', 'processor', 'queue', 'exporter']),
        name: text('As it is shown.'),
        signals: list('That pass it.', signalName),
        state: oneOf('How it is.', ['ok', 'limited', 'failed', 'off']),
        reason: text('Why, where it is not `ok`; with what fixes it.'),
        facts: list(
          'More about it: counters, settings.',
          object('One.', { name: text('What.'), value: text('As it is shown.') }),
        ),
      }),
    ),
    edges: list(
      'Between them.',
      object('The way of a signal.', {
        from: text('`id`.'),
        to: text('`id`.'),
        signal: signalName,
        per_s: amount('Items a second, now.'),
      }),
    ),
  }),
)

export const tapLine = named(
  'TapLine',
  either(
    'An item as it is after all processing, or how many fitted and were not shown.',
    object('An item.', {
      kind: word('item'),
      signal: signalName,
      time_ms: amount('When it ended, or was written or measured.'),
      service: text('Empty for none.'),
      title: text('Name of the span or metric, body of the record, kind of the profile.'),
      error: flag('A span that failed, a record from ERROR on.'),
      duration_ms: orNull(amount('Of a span, or a profile.')),
      detail: text('What else matters, in one line.'),
      otlp: optional(anything('The item in the JSON form of OTLP, where that was asked for.')),
    }),
    object('What was not shown.', { kind: word('skipped'), items: count('How many.') }),
  ),
)

export const tryBody = named(
  'TryBody',
  object('Rules to be tried.', {
    signal: signalName,
    rules: text('YAML as it stands below `pipeline:`: `limits`, `transform`, `pii_redaction`.'),
    items: optional(count('To be tried on; 1 to 50, 20 where it is left out.')),
  }),
)

export const tryDocument = named(
  'Try',
  object('What rules would do to items that have passed the processors that run.', {
    problems: list(
      'What is wrong with the rules; then there are no items.',
      object('One.', {
        line: count('From 1; 0: the text as a whole.'),
        column: count('From 1, in UTF-16 units.'),
        length: count('Characters that are meant.'),
        key: text('As it was written; empty for none.'),
        message: text('What is wrong, and what would be right.'),
      }),
    ),
    items: list(
      'As they came by.',
      object('One, and what became of it.', {
        time_ms: amount('When it ended, or was written or measured.'),
        service: text('Empty for none.'),
        title: text('As the tap calls it.'),
        fate: oneOf('In one word.', ['same', 'changed', 'dropped']),
        reason: text('Why it is dropped: the processor, and the rule; else empty.'),
        changes: list(
          'What would differ.',
          object('A field.', {
            of: text('`resource`, or a point of a metric; empty for the item itself.'),
            field: text('`name`, `attributes.url.path`; empty: all of it.'),
            before: orNull(text('null: it was not there.')),
            after: orNull(text('null: it is gone.')),
          }),
        ),
        more_changes: count('That are not listed.'),
        before: anything('The item in the JSON form of OTLP.'),
        after: anything('The same as it would be sent; null: nothing of it.'),
      }),
    ),
    notes: list(
      'Sums, what each rule did, and what is to be known.',
      text('A sentence, as `svc pipeline test` says it.'),
    ),
    skipped: count('Items that came by and are too large to be tried.'),
    waited_ms: amount('For items.'),
    off: text('Why there are none; empty where there are.'),
  }),
)

// Agent

export const agentDocument = named(
  'AgentPage',
  object('How svc is set up, and what it has in the kernel.', {
    version: text('Of svc.'),
    commit: text('It was built from.'),
    built: text('When.'),
    runtime: text('Version of Node.js.'),
    pid: count('Of the agent.'),
    uptime_s: amount('Since the start.'),
    config_file: text('Empty: none, defaults serve.'),
    config: list(
      'Every key.',
      object('A key.', {
        key: text('Its path.'),
        value: text('In YAML; secrets are left out.'),
        fallback: text('The default, in YAML.'),
        origin: text('`default`, a variable, or file, line and column.'),
        summary: text('What it means.'),
        restart: flag('A change waits for a restart.'),
      }),
    ),
    reload: object('Of the configuration.', {
      last: text('When, and how it ended; empty: not yet.'),
      waiting: list('Keys whose change waits for a restart.', text('A key.')),
    }),
    degraded: list(
      'What does less than it was asked to.',
      object('One.', { subsystem: text('What.'), reason: text('Why.'), hint: text('What to do about it.') }),
    ),
    memory,
    programs: list(
      'In the kernel.',
      object('A program.', {
        name: text('Of it.'),
        type: text('Kind of program.'),
        attached: text('Where to.'),
        run_count: orNull(count('Times that it ran; null: not counted.')),
        ns_per_run: orNull(amount('Each time; null: not counted.')),
      }),
    ),
    maps: list(
      'In the kernel.',
      object('A map.', {
        name: text('Of it.'),
        type: text('Kind of map.'),
        entries: count('Used.'),
        max_entries: count('At most.'),
      }),
    ),
    attachments: list(
      'Files in whose code probes are.',
      object('A file.', {
        path: text('Its path.'),
        what: text('Of which functions.'),
        pids: list('That use it.', count('A process.')),
      }),
    ),
  }),
)

/** What `svc doctor` found. */
export const doctorDocument = named(
  'Doctor',
  object('What this host can and cannot do.', {
    checks: list(
      'In their order.',
      object('A check.', {
        group: text('What it is about.'),
        name: text('Of the check.'),
        state: oneOf('How it went.', ['ok', 'limited', 'missing', 'unknown', 'note']),
        fault: text('Its name in the table of needs; empty where it works, or could not be tried.'),
        detail: text('What was found.'),
        lose: text('What does not work without it; empty for nothing.'),
        hint: list('What to do about it.', text('One way.')),
      }),
    ),
  }),
)

// Explain

export const explainDocument = named(
  'Explanation',
  object('Why something is observed or not, and where its data went.', {
    target: text('What was asked for.'),
    subjects: list(
      'What that is: processes, mostly one.',
      object('One of them.', {
        title: text('`port 8080 → pid 4121 node /app/server.js`.'),
        pid: count('0: there is no process.'),
        verdict: oneOf('In one word.', ['observed', 'limited', 'not_observed']),
        cause: text(
          'Which of the known causes: `excluded_port`, `not_selected`, `sampled`, …; empty for none.',
        ),
        lines: list(
          'From the selection to the export.',
          object('One.', {
            topic: text('`selected`, `probes`, `seen`, `spans`, `export`, ….'),
            state: oneOf('How it is.', ['ok', 'limited', 'missing', 'note']),
            text: text('What is so.'),
            hint: text('What to do about it; empty for nothing.'),
          }),
        ),
      }),
    ),
    hint: text('Where nothing was found: what was looked for, and what is near; else empty.'),
  }),
)
