// What is seen of the host and its services, as `documents.ts` has it.

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
  orNull,
  record,
  text,
  word,
} from '../schema.ts'

const values = list('By time; null where nothing is known.', orNull(amount('A value.')))

// Overview

const finding = object('Something that a person should know.', {
  level: oneOf('How much it matters.', ['bad', 'warn', 'note']),
  text: text('One sentence.'),
  link: text('A path of the page that shows more; empty for none.'),
  command: text('A command that shows or fixes it; empty for none.'),
})

const percentiles = {
  p50_ms: orNull(amount('Milliseconds; null where nothing was timed.')),
  p95_ms: orNull(amount('The same.')),
  p99_ms: orNull(amount('The same.')),
}

const service = object('What a service did in the last minute.', {
  name: text('`service.name`.'),
  namespace: text('`service.namespace`, or of its pod; empty for none.'),
  protocols: list('That it serves, or else speaks.', text('For example `http`.')),
  requests_per_s: amount('Requests that it answered; of one that only calls, calls.'),
  serves: flag('False: it only calls others.'),
  errors_percent: amount('Of them that failed.'),
  ...percentiles,
  calls: list('Whom it calls, the most asked first.', text('`redis`, `postgresql (10.0.0.7)`, a service.')),
  trend: list('Requests a second over the window, oldest first.', amount('A rate.')),
})

const agentCost = object('What the agent itself takes.', {
  cpu_percent: amount('Of one core.'),
  rss_bytes: count('Memory.'),
  dropped: count('Items lost since the start, all signals; those that nobody was to receive are left out.'),
  window_bytes: count('Memory of the window that the page looks at.'),
  window_max_bytes: count('`self_telemetry.ui.max_memory`.'),
})

const host = object('Where this is.', {
  name: text('Of the host.'),
  version: text('Of svc.'),
  mode: oneOf('What svc does here.', ['agent', 'collector']),
  system: text('Operating system, kernel and architecture.'),
  window_ms: count('How far the window goes back at most.'),
  redacted: flag('Personal data is redacted in what is shown.'),
})

const chartSeries = object('One line of a chart.', {
  chart: oneOf('Where it belongs.', ['cpu', 'memory', 'disk', 'network', 'pressure', 'tcp']),
  label: text('What it is.'),
  unit: oneOf('Of its values.', ['%', 'By', 'By/s', '1/s']),
  values,
})

export const overviewLine = named(
  'OverviewLine',
  either(
    'The first line has the past, each further one a second.',
    object('The past.', {
      kind: word('start'),
      host,
      from_ms: amount('Time of the first values.'),
      step_ms: count('From one value to the next.'),
      series: list('In the order of the values to come.', chartSeries),
    }),
    object('A second.', {
      kind: word('tick'),
      at_ms: amount('When.'),
      values,
      services: list('The worst first: errors, then slowness, then requests.', service),
      processes: list(
        'Those that take most.',
        object('A process.', {
          pid: count('Its number.'),
          name: text('Short.'),
          cpu_percent: amount('Of one core.'),
          rss_bytes: count('Memory.'),
        }),
      ),
      findings: list('The worst first.', finding),
      agent: agentCost,
    }),
  ),
)

// Map

export const mapLine = named(
  'MapLine',
  object('Who asks whom, in the last `seconds`.', {
    at_ms: amount('When.'),
    seconds: count('Over which the rates are.'),
    nodes: list(
      'Those that asked or were asked.',
      object('A node.', {
        id: text('Unique, and the same in every line.'),
        name: text('As it is shown.'),
        namespace: text('Empty for none.'),
        kind: oneOf('What it is.', ['service', 'store', 'broker', 'resolver', 'external']),
        probe: flag('It only asks for health or metrics: hidden unless asked for.'),
        requests_per_s: amount('That it answered.'),
        errors_percent: amount('Of them.'),
        p95_ms: percentiles.p95_ms,
      }),
    ),
    edges: list(
      'Between them.',
      object('Calls of one to another.', {
        from: text('`id` of who asks.'),
        to: text('`id` of who is asked.'),
        protocol: text('For example `postgresql`.'),
        requests_per_s: amount('Calls.'),
        errors_percent: amount('Of them.'),
        ...percentiles,
      }),
    ),
    left_out: count('Edges for which there was no room.'),
    lost: count('Requests for which there was none, since the start: they are in no rate here.'),
    off: text('Why there is nothing and will be nothing, with what fixes it; empty where all is well.'),
  }),
)

export const serviceLine = named(
  'ServiceLine',
  object('One service, over the window.', {
    found: flag('False: nothing of it was seen in the window, and all else is empty.'),
    service,
    from_ms: amount('Time of the first values.'),
    step_ms: count('From one value to the next.'),
    requests_per_s: values,
    errors_per_s: values,
    p95_ms: values,
    callers: list('Who asks it.', object('One.', { name: text('Who.'), requests_per_s: amount('Calls.') })),
    callees: list('Whom it asks.', object('One.', { name: text('Who.'), requests_per_s: amount('Calls.') })),
    routes: list(
      'What is asked of it, of the spans in the window.',
      object('An operation.', {
        name: text('Name of its spans.'),
        spans: count('In the window.'),
        errors: count('Of them.'),
        slowest_ms: amount('The slowest of them.'),
        trace_id: text('Its trace.'),
      }),
    ),
    resource: record('Attributes of its resource, the newest.', anything('A value.')),
    off: text('Why there is nothing and will be nothing, with what fixes it; empty where all is well.'),
  }),
)

// Traces

export const tracesLine = named(
  'TracesLine',
  object('Spans of the window.', {
    from_ms: amount('Of the oldest column.'),
    to_ms: amount('Of the end of the newest.'),
    heatmap: object(
      'How many spans began when and took how long: those of kind server or consumer, and those without a parent. All such spans count, also those that are not kept, and those that the question leaves out.',
      {
        step_ms: count('Time of a column.'),
        columns: count('How many.'),
        bounds_ms: list(
          'Upper bounds of the rows, the fastest first; the last row has none.',
          amount('A bound.'),
        ),
        counts: list('Row by row, `columns` of each.', count('Spans.')),
        errors: list('The same, of those that failed.', count('Spans.')),
      },
    ),
    traces: list(
      'Those that fit the question, in its order.',
      object('A trace, as far as it is kept.', {
        trace_id: text('32 hexadecimal digits.'),
        name: text(
          'Of its first span; where that is a client’s, of the first that answered, for it knows the route.',
        ),
        service: text('Of its first span.'),
        services: list('All.', text('`service.name`.')),
        start_ms: amount('When it began.'),
        duration_ms: amount('From the first beginning to the last end.'),
        spans: count('That are kept.'),
        errors: count('Of them.'),
        kept: oneOf('Why it is kept: it is among the last, it failed, it was slow, it is an example.', [
          'recent',
          'error',
          'slow',
          'example',
        ]),
      }),
    ),
    services: list('Services of which there are spans.', text('`service.name`.')),
    matched: count('Traces that fit; no more than `limit` are listed.'),
    spans_seen: count('Since the start.'),
    spans_kept: count('In the window.'),
    off: text('Why there are none and will be none, with what fixes it; empty where all is well.'),
  }),
)

export const traceDocument = named(
  'Trace',
  object('One trace, as far as it is kept.', {
    trace_id: text('32 hexadecimal digits.'),
    start_ms: amount('When it began.'),
    duration_ms: amount('From the first beginning to the last end.'),
    resources: list('Who made the spans.', record('Attributes.', anything('A value.'))),
    left_out: count('Spans, the latest, for which there was no room.'),
    spans: list(
      'The earliest first.',
      object('A span.', {
        span_id: text('16 hexadecimal digits.'),
        parent_id: text('The same; empty: it has none.'),
        estimated_parent: flag('The parent was inferred from what its process did, not read from a header.'),
        name: text('Its name.'),
        kind: oneOf('What it is.', ['internal', 'server', 'client', 'producer', 'consumer']),
        resource: count('Index of who made it.'),
        service: text('`service.name` of that.'),
        pid: count('0: not known.'),
        start_ms: amount('Since the trace began.'),
        duration_ms: amount('How long it took.'),
        error: flag('It failed.'),
        status_message: text('Empty for none.'),
        attributes: record('Of the span.', anything('A value.')),
      }),
    ),
  }),
)

// Metrics

const family = object('A metric.', {
  name: text('As Prometheus knows it.'),
  otel_name: text('Of the semantic conventions; empty where they have none.'),
  help: text('What it is.'),
  type: text('`counter`, `gauge`, `histogram`, `summary`, `untyped`.'),
  unit: text('UCUM; empty where it is a number of things.'),
  series: count('How many there are.'),
  value: orNull(amount('Of the only series; null where there are more or none.')),
})

export const metricsDocument = named(
  'Metrics',
  object('What this host and svc itself measure.', {
    at_ms: amount('When they were read.'),
    sections: list(
      'By what reads them.',
      object('Metrics of one collector.', {
        name: text('Of the collector; `svc` are the agent’s own.'),
        source: text('Where they are read, for example `/proc/stat`; empty where it is not told.'),
        fault: text('Why the collector told nothing; empty where all is well.'),
        families: list('Its metrics.', family),
      }),
    ),
    off: text('Why there are none, with what fixes it; empty where all is well.'),
  }),
)

export const seriesLine = named(
  'SeriesLine',
  either(
    'The first line has the past, each further one a reading.',
    object('The past.', {
      kind: word('start'),
      family,
      from_ms: amount('Time of the first values.'),
      step_ms: count('From one value to the next.'),
      rate: flag('The values are rates a second, for the metric is a counter.'),
      series: list(
        'The largest, in the order of the values to come.',
        object('A series.', {
          labels: record('Its labels.', text('A value.')),
          line: text('As it stands on the page that Prometheus scrapes.'),
          values,
        }),
      ),
      left_out: count('Series for which there was no room.'),
    }),
    object('A reading.', { kind: word('tick'), at_ms: amount('When.'), values }),
  ),
)

// Logs

const logRecord = object('A log record.', {
  id: count('Rises from record to record.'),
  time_ms: amount('When it was written.'),
  severity: count('OTLP SeverityNumber; 0: unknown.'),
  body: text('At most 4 KiB of it.'),
  service: text('Empty for none.'),
  pid: count('0: unknown.'),
  container: text('`container.id`; empty outside of containers.'),
  trace_id: text('Empty for none.'),
  span_id: text('Empty for none.'),
})

export const logsLine = named(
  'LogsLine',
  either(
    'The first line has the past, further ones what is new.',
    object('The past.', {
      kind: word('start'),
      histogram: object('Records of the window that fit, by time and level.', {
        from_ms: amount('Of the first column.'),
        step_ms: count('Time of a column.'),
        levels: list(
          'A row each.',
          object('Records of one level.', {
            level: oneOf('Of them.', ['unknown', 'trace', 'debug', 'info', 'warn', 'error', 'fatal']),
            counts: list('By column.', count('Records.')),
          }),
        ),
      }),
      records: list('The newest that fit, the oldest first.', logRecord),
      services: list('Services of which there are records.', text('`service.name`.')),
      off: text('Why there are none, with what fixes it; empty where all is well.'),
    }),
    object('What is new.', {
      kind: word('records'),
      records: list('The oldest first.', logRecord),
      skipped: count('Records that fit and came faster than they could be shown.'),
    }),
  ),
)

// Profiles

export const profilesLine = named(
  'ProfilesLine',
  object('Profiles of the window.', {
    kinds: list('Of which there are any.', oneOf('A kind.', ['cpu', 'off_cpu', 'memory'])),
    unit: text('Of the values, `nanoseconds` or `bytes`.'),
    from_ms: amount('Of the first interval.'),
    to_ms: amount('Of the end of the last.'),
    intervals: list(
      'Of the kind and the service that was asked for, the oldest first.',
      object('An interval.', { from_ms: amount('Begin.'), to_ms: amount('End.'), value: amount('Sum.') }),
    ),
    services: list(
      'The largest first.',
      object('A service.', { name: text('`service.name`.'), value: amount('Sum over the window.') }),
    ),
    off: text('Why there are none, with what fixes it; empty where all is well.'),
  }),
)

export const flameDocument = named(
  'FlameOfWindow',
  object('Stacks as one tree, in columns. Node 0 is the root; parents stand before their children.', {
    unit: text('Of the values.'),
    total: amount('Sum of all.'),
    base_total: amount('The same of what it is compared with; 0: nothing.'),
    names: list('Texts that nodes refer to.', text('A function.')),
    files: list('Texts that nodes refer to.', text('A source file, or the program.')),
    types: list('Texts that nodes refer to.', text('`profile.frame.type`, or empty.')),
    parent: list('By node; -1: none.', amount('A node.')),
    name: list('By node.', count('Into `names`.')),
    file: list('By node.', count('Into `files`.')),
    type: list('By node.', count('Into `types`.')),
    self: list('By node: of the function itself.', amount('A value.')),
    sum: list('By node: with all that it called.', amount('A value.')),
    base: list('By node: `sum` in what it is compared with; empty without one.', amount('A value.')),
    cut: amount('Sum of what was too small to be told.'),
    missing: list(
      'Why functions have no names, the most frequent first.',
      object('A reason.', { reason: text('In words.'), value: amount('Their sum.') }),
    ),
  }),
)
