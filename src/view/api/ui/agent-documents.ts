// Documents about svc itself, for `documents.ts`.

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
  object('Data flow and losses.', {
    at_ms: amount('Time.'),
    signals: list(
      'The four signals.',
      object('Item balance of a signal since the start.', {
        signal: signalName,
        collected: count('Items received.'),
        recovered: count('Items found in the disk queue at the start.'),
        exported: count('Acknowledged items.'),
        rejected: count('Items that the receiver permanently rejected.'),
        dropped: list(
          'Lost items.',
          object('Lost items by reason.', {
            reason: text('Reason.'),
            items: count('Number of items.'),
            intended: flag(
              'True if the loss is intended: by a rule, by sampling, or because no endpoint is set.',
            ),
          }),
        ),
        queued: count('Items waiting and in flight.'),
        collected_per_s: amount('Current rate.'),
        exported_per_s: amount('Current rate.'),
        dropped_per_s: amount('Current rate, without intended losses.'),
        queued_bytes: count('Bytes in the queue.'),
        capacity_bytes: count('Current limit of the queue; on disk, all signals share one limit.'),
        full_in_s: orNull(
          amount('Time until the queue is full at the current rate; null if it does not grow.'),
        ),
        oldest_ms: amount('Age of the oldest batch.'),
        durable: flag('The queue survives a restart of the process.'),
      }),
    ),
    nodes: list(
      'Sources, processors, queues and exporters.',
      object('A stage.', {
        id: text('Unique ID, the same in all lines.'),
        kind: oneOf('Kind.', ['source', 'processor', 'queue', 'exporter']),
        name: text('Display name.'),
        signals: list('Signals that pass it.', signalName),
        state: oneOf('Current state.', ['ok', 'limited', 'failed', 'off']),
        reason: text('Why the state is not `ok`, and how to fix it.'),
        details: list(
          'Details: counters and settings.',
          object('A detail.', { name: text('Name.'), value: text('Display value.') }),
        ),
      }),
    ),
    edges: list(
      'Connections between stages.',
      object('The path of a signal.', {
        from: text('`id`.'),
        to: text('`id`.'),
        signal: signalName,
        per_s: amount('Current items per second.'),
      }),
    ),
  }),
)

export const tapLine = named(
  'TapLine',
  either(
    'An item after all processing, or the number of matching items that were skipped.',
    object('An item.', {
      kind: word('item'),
      signal: signalName,
      time_ms: amount('When it ended, was written or was measured.'),
      service: text('Service; empty if there is none.'),
      title: text('Name of the span or metric, body of the log record, kind of the profile.'),
      error: flag('A failed span, or a log record of level ERROR or above.'),
      duration_ms: orNull(amount('Duration of a span or profile.')),
      detail: text('Other details, in one line.'),
      otlp: optional(anything('The item as OTLP JSON, if requested.')),
    }),
    object('Skipped items.', { kind: word('skipped'), items: count('Number of items.') }),
  ),
)

export const tryBody = named(
  'TryBody',
  object('Rules to try.', {
    signal: signalName,
    rules: text('YAML as below `pipeline:`: `limits`, `transform`, `pii_redaction`.'),
    items: optional(count('Number of items to try them on: 1 to 50, default 20.')),
  }),
)

export const tryDocument = named(
  'Try',
  object('Effect of rules on items that have passed the running processors.', {
    problems: list(
      'Errors in the rules; if there are any, there are no items.',
      object('An error.', {
        line: count('Line, from 1; 0 for the whole text.'),
        column: count('Column, from 1, in UTF-16 units.'),
        length: count('Length of the faulty text.'),
        key: text('Key as written; empty if there is none.'),
        message: text('What is wrong, and what would be correct.'),
      }),
    ),
    items: list(
      'Items, in order of arrival.',
      object('An item and its outcome.', {
        time_ms: amount('When it ended, was written or was measured.'),
        service: text('Service; empty if there is none.'),
        title: text('Title, as in the tap.'),
        outcome: oneOf('Outcome.', ['same', 'changed', 'dropped']),
        reason: text('Processor and rule that drop it; empty otherwise.'),
        changes: list(
          'Changes.',
          object('A changed field.', {
            of: text('`resource`, or a point of a metric; empty for the item itself.'),
            field: text('`name`, `attributes.url.path`; empty for the whole.'),
            before: orNull(text('Value before; null if there was none.')),
            after: orNull(text('Value after; null if it is removed.')),
          }),
        ),
        more_changes: count('Further changes that are not listed.'),
        before: anything('The item as OTLP JSON.'),
        after: anything('The item as it would be sent; null if it is dropped.'),
      }),
    ),
    notes: list('Totals, effect of each rule, and remarks.', text('A sentence, as in `svc pipeline test`.')),
    skipped: count('Items that are too large to try.'),
    waited_ms: amount('Time spent waiting for items.'),
    no_data_reason: text('Why there are no items; empty if there are.'),
  }),
)

// Agent

export const agentDocument = named(
  'AgentPage',
  object('Configuration of svc, and its eBPF programs and maps.', {
    version: text('Version of svc.'),
    commit: text('Commit of the build.'),
    built: text('Time of the build.'),
    runtime: text('Node.js version.'),
    pid: count('Process ID of the agent.'),
    uptime_s: amount('Time since the start.'),
    config_file: text('Configuration file; empty without one (defaults).'),
    config: list(
      'All keys.',
      object('A key.', {
        key: text('Path of the key.'),
        value: text('Value in YAML; secrets are omitted.'),
        default: text('Default value in YAML.'),
        origin: text('`default`, a variable, or file, line and column.'),
        summary: text('Description.'),
        requires_restart: flag('A change takes effect after a restart.'),
      }),
    ),
    reload: object('Reload of the configuration.', {
      last: text('Time and result; empty if there was none.'),
      requires_restart: list('Keys whose change takes effect after a restart.', text('A key.')),
    }),
    degraded: list(
      'Degraded features.',
      object('A degraded feature.', {
        subsystem: text('Subsystem name.'),
        reason: text('Reason.'),
        hint: text('How to fix it.'),
      }),
    ),
    memory,
    programs: list(
      'Programs in the kernel.',
      object('A program.', {
        name: text('Program name.'),
        type: text('Program type.'),
        attached: text('Place of attachment.'),
        run_count: orNull(count('Number of runs; null if not counted.')),
        ns_per_run: orNull(amount('Time per run; null if not counted.')),
      }),
    ),
    maps: list(
      'Maps in the kernel.',
      object('A map.', {
        name: text('Map name.'),
        type: text('Map type.'),
        entries: count('Entries in use.'),
        max_entries: count('Maximum number of entries.'),
      }),
    ),
    attachments: list(
      'Files with probes.',
      object('A file.', {
        path: text('Path of the file.'),
        functions: text('Probed functions.'),
        pids: list('Processes that use it.', count('A process ID.')),
      }),
    ),
  }),
)

/** The results of `svc doctor`. */
export const doctorDocument = named(
  'Doctor',
  object('Host checks.', {
    checks: list(
      'Checks, in display order.',
      object('A check.', {
        group: text('Group.'),
        name: text('Check name.'),
        state: oneOf('Result.', ['ok', 'limited', 'missing', 'unknown', 'note']),
        fault: text('Name in the table of needs; empty if the check passed or could not run.'),
        detail: text('Details of the result.'),
        impact: text('Features that do not work without it; empty if there are none.'),
        hint: list('Ways to fix it.', text('One of them.')),
      }),
    ),
  }),
)

// Explain

export const explainDocument = named(
  'Explanation',
  object('Why a process is observed or not, and where its data went.', {
    target: text('Requested target.'),
    subjects: list(
      'Matching subjects: processes, usually one.',
      object('A subject.', {
        title: text('`port 8080 → pid 4121 node /app/server.js`.'),
        pid: count('Process ID; 0 if there is no process.'),
        verdict: oneOf('Verdict.', ['observed', 'limited', 'not_observed']),
        cause: text('Known cause: `excluded_port`, `not_selected`, `sampled`, …; empty if there is none.'),
        steps: list(
          'Steps, from selection to export.',
          object('A step.', {
            topic: text('`selected`, `probes`, `seen`, `spans`, `export`, ….'),
            state: oneOf('Current state.', ['ok', 'limited', 'missing', 'note']),
            text: text('Explanation.'),
            hint: text('How to fix it; empty if there is nothing to fix.'),
          }),
        ),
      }),
    ),
    hint: text('If nothing was found: what was searched for, and similar names; empty otherwise.'),
  }),
)
