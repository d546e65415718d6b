// How the agent sends, and what waits.
import type { Row } from './dashboard.ts'
import { lines } from './panel-kinds.ts'

const rate = (name: string, by: string) => `sum by (${by}) (rate(svc_${name}{AGENT}[RATE]))`

const exporting: Row = {
  title: 'Export',
  panels: [
    lines(
      'Requests',
      'Export requests by endpoint, signal and outcome.',
      'reqps',
      {
        '{{endpoint}} {{signal_type}} {{status}}': rate(
          'export_requests_total',
          'endpoint, signal_type, status',
        ),
      },
      { min: 0 },
    ),
    lines(
      'Errors',
      'Requests that failed, by what the receiver or the network said.',
      'reqps',
      {
        '{{endpoint}} {{signal_type}} {{error_type}}': rate(
          'export_errors_total',
          'endpoint, signal_type, error_type',
        ),
      },
      { min: 0 },
    ),
    lines(
      'Latency',
      'Time of an export request: half of them and 19 in 20 took no longer.',
      's',
      {
        'p50 {{endpoint}}': `histogram_quantile(0.5, ${rate('export_latency_seconds_bucket', 'le, endpoint')})`,
        'p95 {{endpoint}}': `histogram_quantile(0.95, ${rate('export_latency_seconds_bucket', 'le, endpoint')})`,
      },
      { min: 0 },
    ),
    lines(
      'Items in a request',
      'Mean number of items.',
      'short',
      {
        '{{signal_type}}': `${rate('export_batch_size_sum', 'signal_type')} / (${rate('export_batch_size_count', 'signal_type')} > 0)`,
      },
      { min: 0 },
    ),
  ],
}

const queue: Row = {
  title: 'Queues',
  panels: [
    lines(
      'Items waiting',
      'Items that wait for export.',
      'short',
      { '{{signal_type}}': 'sum by (signal_type) (svc_export_queue_size{AGENT})' },
      { min: 0 },
    ),
    lines(
      'Bytes waiting',
      'Bytes that wait, in memory or on disk.',
      'bytes',
      { '{{signal_type}}': 'sum by (signal_type) (svc_export_queue_bytes{AGENT})' },
      { min: 0 },
    ),
    lines(
      'Disk queue',
      'How full the queue on disk is. At its end the oldest data goes.',
      'percentunit',
      { '{{instance}}': 'svc_disk_queue_bytes{AGENT} / (svc_disk_queue_max_bytes{AGENT} > 0)' },
      { min: 0, max: 1 },
    ),
    lines(
      'Time until the disk queue is full',
      'At the growth of the last ten minutes; nothing where it does not grow.',
      's',
      {
        '{{instance}}':
          '(svc_disk_queue_max_bytes{AGENT} - svc_disk_queue_bytes{AGENT}) / (deriv(svc_disk_queue_bytes{AGENT}[10m]) > 0)',
      },
      { min: 0 },
    ),
    lines(
      'Disk does not take it',
      '1 while batches are kept in memory because the disk refuses them.',
      'short',
      { '{{instance}}': 'svc_disk_queue_degraded{AGENT}' },
      { min: 0, max: 1 },
    ),
    lines(
      'Recovered',
      'Items that a former process had left in the queue.',
      'short',
      { '{{signal_type}}': 'sum by (signal_type) (svc_export_queue_recovered_total{AGENT})' },
      { min: 0 },
    ),
  ],
}

export const exportRows: readonly Row[] = [exporting, queue]
