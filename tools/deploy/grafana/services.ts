// Services: rate, errors and duration of their requests, and the service map.
import { choiceVariable, type Dashboard, queryVariable, type Row, sourceVariable } from './dashboard.ts'
import { heatmap, lines, stat, table } from './panel-kinds.ts'
import { callRows } from './services-calls.ts'
import { mapRow } from './services-map.ts'

const service = '$label=~"$service"'
const count = `http_server_request_duration_seconds_count{${service}}`
const failed = `http_server_request_duration_seconds_count{${service},error_type!=""}`
const buckets = `http_server_request_duration_seconds_bucket{${service}}`
const rate = (series: string, by = '') => `sum${by === '' ? '' : ` by (${by})`} (rate(${series}[RATE]))`
const quantile = (part: number, by = '') =>
  `histogram_quantile(${part}, ${rate(buckets, by === '' ? 'le' : `le, ${by}`)})`
/** Zero if there is no series of failures. */
const errors = (by = '') => `(${rate(failed, by)} or 0 * ${rate(count, by)}) / (${rate(count, by)} > 0)`

const overview: Row = {
  title: 'HTTP and gRPC servers at a glance',
  panels: [
    stat('Requests', 'HTTP requests per second.', 'reqps', rate(count), { width: 6 }),
    stat(
      'Errors',
      'Share of failed requests: error_type is set, for example for a status of 500 and above.',
      'percentunit',
      errors(),
      {
        width: 6,
        warn: 0.01,
        bad: 0.05,
      },
    ),
    stat('p50', 'Half of the requests were at least this fast.', 's', quantile(0.5), { width: 6 }),
    stat('p99', 'One request in a hundred took longer.', 's', quantile(0.99), { width: 6, warn: 1, bad: 5 }),
    table(
      'Services',
      'Every service with HTTP requests.',
      'reqps',
      {
        Requests: rate(count, '$label'),
        Errors: errors('$label'),
        p50: quantile(0.5, '$label'),
        p99: quantile(0.99, '$label'),
      },
      { units: { Errors: 'percentunit', p50: 's', p99: 's' } },
    ),
  ],
}

const http: Row = {
  title: 'HTTP servers',
  panels: [
    lines(
      'Requests by service',
      'HTTP requests per second.',
      'reqps',
      { '{{$label}}': rate(count, '$label') },
      { min: 0 },
    ),
    lines(
      'Errors by service',
      'Share of failed requests.',
      'percentunit',
      { '{{$label}}': errors('$label') },
      { min: 0 },
    ),
    lines(
      'Duration',
      'Of all requests: median, 95th and 99th percentile.',
      's',
      {
        p50: quantile(0.5),
        p95: quantile(0.95),
        p99: quantile(0.99),
      },
      { min: 0 },
    ),
    heatmap(
      'Durations',
      'Distribution of request durations.',
      's',
      `sum by (le) (increase(${buckets}[RATE]))`,
    ),
    lines(
      'Requests by route',
      'By method and route.',
      'reqps',
      {
        '{{http_request_method}} {{http_route}}': rate(count, 'http_request_method, http_route'),
      },
      { min: 0 },
    ),
    lines(
      'p95 by route',
      'One request of this route in twenty took longer.',
      's',
      { '{{http_route}}': quantile(0.95, 'http_route') },
      { min: 0 },
    ),
    lines(
      'Responses by status',
      'Requests by response status.',
      'reqps',
      {
        '{{http_response_status_code}}': rate(count, 'http_response_status_code'),
      },
      { stack: true, min: 0 },
    ),
    lines(
      'Failures by kind',
      'Failed requests, by error_type: a status, or how the connection ended.',
      'reqps',
      {
        '{{error_type}}': rate(failed, 'error_type'),
      },
      { stack: true, min: 0 },
    ),
  ],
}

export const services: Dashboard = {
  uid: 'svc-services',
  title: 'svc / Services',
  description:
    'Rate, errors and duration of all observed calls, and the service map. From OTLP, with the names that Prometheus gives its metrics.',
  variables: [
    sourceVariable('datasource', 'Data source', 'prometheus'),
    choiceVariable('label', 'Service label', ['service_name', 'job']),
    queryVariable('service', 'Service', 'label_values(http_server_request_duration_seconds_count, $label)', {
      multi: true,
    }),
  ],
  rows: [overview, mapRow, http, ...callRows],
}
