// Documents about the host and its services, for `documents.ts`.

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

const values = list('Values over time; null if unknown.', orNull(amount('A value.')))

// Overview

const finding = object('A finding.', {
  level: oneOf('Severity.', ['bad', 'warn', 'note']),
  text: text('The finding in one sentence.'),
  link: text('Page with more details; empty if there is none.'),
  command: text('Command that shows or fixes it; empty if there is none.'),
})

const percentiles = {
  p50_ms: orNull(amount('Median in milliseconds; null if nothing was timed.')),
  p95_ms: orNull(amount('95th percentile in milliseconds; null if nothing was timed.')),
  p99_ms: orNull(amount('99th percentile in milliseconds; null if nothing was timed.')),
}

const service = object('Activity of a service in the last minute.', {
  name: text('`service.name`.'),
  namespace: text('`service.namespace`, or the namespace of its pod; empty if there is none.'),
  protocols: list('Protocols that it serves, or else calls with.', text('For example `http`.')),
  requests_per_s: amount('Requests that it answered; for a service that only calls others, its calls.'),
  serves: flag('False if it only calls others.'),
  errors_percent: amount('Share of failed requests.'),
  ...percentiles,
  dependencies: list(
    'Dependencies, most called first.',
    text('`redis`, `postgresql (10.0.0.7)`, or a service.'),
  ),
  trend: list('Requests per second over the window, oldest first.', amount('A rate.')),
})

const agentCost = object('Resource usage of the agent.', {
  cpu_percent: amount('Percent of one core.'),
  rss_bytes: count('Resident memory.'),
  dropped: count(
    'Items lost since the start, all signals; items without a configured exporter do not count.',
  ),
  window_bytes: count('Memory of the window of recent data that the page shows.'),
  window_max_bytes: count('`self_telemetry.ui.max_memory`.'),
})

const host = object('Host and agent.', {
  name: text('Host name.'),
  version: text('Version of svc.'),
  mode: oneOf('Operating mode.', ['agent', 'collector']),
  system: text('Operating system, kernel and architecture.'),
  window_ms: count('Maximum age of data in the window.'),
  redacted: flag('Personal data is redacted.'),
})

const chartSeries = object('A line of a chart.', {
  chart: oneOf('Chart.', ['cpu', 'memory', 'disk', 'network', 'pressure', 'tcp']),
  label: text('Label.'),
  unit: oneOf('Unit of the values.', ['%', 'By', 'By/s', '1/s']),
  values,
})

export const overviewLine = named(
  'OverviewLine',
  either(
    'The first line has the history, each further line one second.',
    object('History.', {
      kind: word('start'),
      host,
      from_ms: amount('Time of the first values.'),
      step_ms: count('Time between values.'),
      series: list('Series, in the order of the values that follow.', chartSeries),
    }),
    object('One second.', {
      kind: word('tick'),
      at_ms: amount('Time.'),
      values,
      services: list('Services, worst first: by errors, then slowness, then requests.', service),
      processes: list(
        'Top processes.',
        object('A process.', {
          pid: count('Process ID.'),
          name: text('Short name.'),
          cpu_percent: amount('Percent of one core.'),
          rss_bytes: count('Resident memory.'),
        }),
      ),
      findings: list('Findings, worst first.', finding),
      agent: agentCost,
    }),
  ),
)

// Map

export const mapLine = named(
  'MapLine',
  object('Calls between services in the last `seconds`.', {
    at_ms: amount('Time.'),
    seconds: count('Period of the rates.'),
    nodes: list(
      'Callers and callees.',
      object('A node.', {
        id: text('Unique ID, the same in all lines.'),
        name: text('Display name.'),
        namespace: text('Namespace; empty if there is none.'),
        kind: oneOf('Kind.', ['service', 'store', 'broker', 'resolver', 'external']),
        probe: flag('It only requests health or metrics; hidden by default.'),
        requests_per_s: amount('Requests that it answered.'),
        errors_percent: amount('Share of failed requests.'),
        p95_ms: percentiles.p95_ms,
      }),
    ),
    edges: list(
      'Calls between nodes.',
      object('Calls from one node to another.', {
        from: text('`id` of the caller.'),
        to: text('`id` of the callee.'),
        protocol: text('For example `postgresql`.'),
        requests_per_s: amount('Calls per second.'),
        errors_percent: amount('Share of failed calls.'),
        ...percentiles,
      }),
    ),
    omitted: count('Edges omitted for lack of memory.'),
    lost: count('Requests missing from the rates for lack of memory, since the start.'),
    no_data_reason: text('Why there is no data and will be none, and how to fix it; empty if all is well.'),
  }),
)

export const serviceLine = named(
  'ServiceLine',
  object('One service over the window.', {
    found: flag('False if the window has no data of the service; all other fields are then empty.'),
    service,
    from_ms: amount('Time of the first values.'),
    step_ms: count('Time between values.'),
    requests_per_s: values,
    errors_per_s: values,
    p95_ms: values,
    callers: list(
      'Callers.',
      object('A caller.', { name: text('Name.'), requests_per_s: amount('Calls per second.') }),
    ),
    callees: list(
      'Dependencies.',
      object('A dependency.', { name: text('Name.'), requests_per_s: amount('Calls per second.') }),
    ),
    routes: list(
      'Operations, from the spans in the window.',
      object('An operation.', {
        name: text('Span name.'),
        spans: count('Spans in the window.'),
        errors: count('Failed spans.'),
        slowest_ms: amount('Duration of the slowest span.'),
        trace_id: text('Trace of the slowest span.'),
      }),
    ),
    resource: record('Latest resource attributes.', anything('A value.')),
    no_data_reason: text('Why there is no data and will be none, and how to fix it; empty if all is well.'),
  }),
)

// Traces

export const tracesLine = named(
  'TracesLine',
  object('Traces in the window.', {
    from_ms: amount('Start of the oldest column.'),
    to_ms: amount('End of the newest column.'),
    heatmap: object(
      'Number of spans by start time and duration: server and consumer spans, and spans without a parent. All of them count, also spans that were not retained or do not match the query.',
      {
        step_ms: count('Width of a column.'),
        columns: count('Number of columns.'),
        bounds_ms: list(
          'Upper bounds of the rows, fastest first; the last row has none.',
          amount('A bound.'),
        ),
        counts: list('Counts row by row, `columns` of each.', count('Spans.')),
        errors: list('Counts of failed spans, in the same order.', count('Spans.')),
      },
    ),
    traces: list(
      'Matching traces, in the requested order.',
      object('A trace, as far as it is retained.', {
        trace_id: text('32 hexadecimal digits.'),
        name: text(
          'Name of the first span; if that is a client span, of the first server span, which knows the route.',
        ),
        service: text('Service of the first span.'),
        services: list('All services.', text('`service.name`.')),
        start_ms: amount('Start time.'),
        duration_ms: amount('Time from the first start to the last end.'),
        spans: count('Retained spans.'),
        errors: count('Retained spans that failed.'),
        retained: oneOf('Why it is retained: recent, failed, slow or an example.', [
          'recent',
          'error',
          'slow',
          'example',
        ]),
      }),
    ),
    services: list('Services with spans.', text('`service.name`.')),
    matched: count('Matching traces; at most `limit` are listed.'),
    spans_seen: count('Spans since the start.'),
    spans_retained: count('Spans in the window.'),
    no_data_reason: text(
      'Why there are no traces and will be none, and how to fix it; empty if all is well.',
    ),
  }),
)

export const traceDocument = named(
  'Trace',
  object('One trace, as far as it is retained.', {
    trace_id: text('32 hexadecimal digits.'),
    start_ms: amount('Start time.'),
    duration_ms: amount('Time from the first start to the last end.'),
    resources: list('Resources of the spans.', record('Attributes.', anything('A value.'))),
    omitted: count('Latest spans, omitted for lack of memory.'),
    spans: list(
      'Spans, earliest first.',
      object('A span.', {
        span_id: text('16 hexadecimal digits.'),
        parent_id: text('16 hexadecimal digits; empty if there is no parent.'),
        estimated_parent: flag(
          'The parent was inferred from the activity of the process, not read from a header.',
        ),
        name: text('Span name.'),
        kind: oneOf('Span kind.', ['internal', 'server', 'client', 'producer', 'consumer']),
        resource: count('Index into `resources`.'),
        service: text('`service.name` of the resource.'),
        pid: count('Process ID; 0 if unknown.'),
        start_ms: amount('Start, relative to the start of the trace.'),
        duration_ms: amount('Duration.'),
        error: flag('The span failed.'),
        status_message: text('Status message; empty if there is none.'),
        attributes: record('Span attributes.', anything('A value.')),
      }),
    ),
  }),
)

// Metrics

const family = object('A metric.', {
  name: text('Prometheus name.'),
  otel_name: text('Name in the semantic conventions; empty if there is none.'),
  help: text('Help text.'),
  type: text('`counter`, `gauge`, `histogram`, `summary`, `untyped`.'),
  unit: text('UCUM unit; empty for a count.'),
  series: count('Number of series.'),
  value: orNull(amount('Value of the only series; null if there are several or none.')),
})

export const metricsDocument = named(
  'Metrics',
  object('Metrics of this host and of svc.', {
    at_ms: amount('Time of the reading.'),
    sections: list(
      'Metrics by collector.',
      object('Metrics of one collector.', {
        name: text('Collector name; `svc` for the agent’s own metrics.'),
        source: text('Data source, for example `/proc/stat`; empty if unknown.'),
        fault: text('Why the collector returned no data; empty if all is well.'),
        families: list('Metrics.', family),
      }),
    ),
    no_data_reason: text('Why there are no metrics, and how to fix it; empty if all is well.'),
  }),
)

export const seriesLine = named(
  'SeriesLine',
  either(
    'The first line has the history, each further line one reading.',
    object('History.', {
      kind: word('start'),
      family,
      from_ms: amount('Time of the first values.'),
      step_ms: count('Time between values.'),
      rate: flag('Values are rates per second, as the metric is a counter.'),
      series: list(
        'The largest series, in the order of the values that follow.',
        object('A series.', {
          labels: record('Labels.', text('A value.')),
          line: text('The line that Prometheus scrapes.'),
          values,
        }),
      ),
      omitted: count('Series omitted for lack of memory.'),
    }),
    object('A reading.', { kind: word('tick'), at_ms: amount('Time.'), values }),
  ),
)

// Logs

const logRecord = object('A log record.', {
  id: count('Record number; increases.'),
  time_ms: amount('Time of the record.'),
  severity: count('OTLP SeverityNumber; 0 if unknown.'),
  body: text('Body, at most 4 KiB.'),
  service: text('Service; empty if there is none.'),
  pid: count('Process ID; 0 if unknown.'),
  container: text('`container.id`; empty outside containers.'),
  trace_id: text('Trace ID; empty if there is none.'),
  span_id: text('Span ID; empty if there is none.'),
})

export const logsLine = named(
  'LogsLine',
  either(
    'The first line has the history, further lines new records.',
    object('History.', {
      kind: word('start'),
      histogram: object('Matching records of the window by time and level.', {
        from_ms: amount('Start of the first column.'),
        step_ms: count('Width of a column.'),
        levels: list(
          'One row per level.',
          object('Records of one level.', {
            level: oneOf('Level.', ['unknown', 'trace', 'debug', 'info', 'warn', 'error', 'fatal']),
            counts: list('Counts by column.', count('Records.')),
          }),
        ),
      }),
      records: list('Latest matching records, oldest first.', logRecord),
      services: list('Services with records.', text('`service.name`.')),
      no_data_reason: text('Why there are no logs, and how to fix it; empty if all is well.'),
    }),
    object('New records.', {
      kind: word('records'),
      records: list('Records, oldest first.', logRecord),
      skipped: count('Matching records that were skipped because they came too fast.'),
    }),
  ),
)

// Profiles

export const profilesLine = named(
  'ProfilesLine',
  object('Profiles in the window.', {
    kinds: list('Kinds with profiles.', oneOf('A kind.', ['cpu', 'off_cpu', 'memory'])),
    unit: text('Unit of the values, `nanoseconds` or `bytes`.'),
    from_ms: amount('Start of the first interval.'),
    to_ms: amount('End of the last interval.'),
    intervals: list(
      'Intervals of the requested kind and service, oldest first.',
      object('An interval.', { from_ms: amount('Start.'), to_ms: amount('End.'), value: amount('Sum.') }),
    ),
    services: list(
      'Services, largest first.',
      object('A service.', { name: text('`service.name`.'), value: amount('Sum over the window.') }),
    ),
    no_data_reason: text('Why there are no profiles, and how to fix it; empty if all is well.'),
  }),
)

export const flameDocument = named(
  'FlameOfWindow',
  object('Stacks as one tree, in columns. Node 0 is the root; parents come before their children.', {
    unit: text('Unit of the values.'),
    total: amount('Sum of all values.'),
    base_total: amount('Sum of the profile to compare with; 0 without one.'),
    names: list('Functions, referenced by nodes.', text('A function.')),
    files: list('Files, referenced by nodes.', text('A source file or program.')),
    types: list('Frame types, referenced by nodes.', text('`profile.frame.type`, or empty.')),
    parent: list('Parent by node; -1 for none.', amount('A node.')),
    name: list('Function by node.', count('Index into `names`.')),
    file: list('File by node.', count('Index into `files`.')),
    type: list('Frame type by node.', count('Index into `types`.')),
    self: list('Value of the function alone, by node.', amount('A value.')),
    sum: list('Value of the function and its callees, by node.', amount('A value.')),
    base: list('`sum` in the profile to compare with, by node; empty without one.', amount('A value.')),
    omitted: amount('Sum of the stacks that are too small to be listed.'),
    missing_names: list(
      'Why functions have no names, most frequent first.',
      object('A reason.', { reason: text('Reason.'), value: amount('Sum of the affected values.') }),
    ),
  }),
)
