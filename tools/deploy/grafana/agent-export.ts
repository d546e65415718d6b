// Export and queues of the agent.
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
      'Failed requests, by the error of the receiver or the network.',
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
      'Duration of an export request: median and 95th percentile.',
      's',
      {
        'p50 {{endpoint}}': `histogram_quantile(0.5, ${rate('export_latency_seconds_bucket', 'le, endpoint')})`,
        'p95 {{endpoint}}': `histogram_quantile(0.95, ${rate('export_latency_seconds_bucket', 'le, endpoint')})`,
      },
      { min: 0 },
    ),
    lines(
      'Items per request',
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
      'Items waiting for export.',
      'short',
      { '{{signal_type}}': 'sum by (signal_type) (svc_export_queue_size{AGENT})' },
      { min: 0 },
    ),
    lines(
      'Bytes waiting',
      'Bytes waiting, in memory or on disk.',
      'bytes',
      { '{{signal_type}}': 'sum by (signal_type) (svc_export_queue_bytes{AGENT})' },
      { min: 0 },
    ),
    lines(
      'Disk queue',
      'How full the disk queue is. When it is full, the oldest data is dropped.',
      'percentunit',
      { '{{instance}}': 'svc_disk_queue_bytes{AGENT} / (svc_disk_queue_max_bytes{AGENT} > 0)' },
      { min: 0, max: 1 },
    ),
    lines(
      'Time until the disk queue is full',
      'At the growth rate of the last ten minutes; no data if it does not grow.',
      's',
      {
        '{{instance}}':
          '(svc_disk_queue_max_bytes{AGENT} - svc_disk_queue_bytes{AGENT}) / (deriv(svc_disk_queue_bytes{AGENT}[10m]) > 0)',
      },
      { min: 0 },
    ),
    lines(
      'Disk rejects writes',
      '1 while batches are kept in memory because writing to the disk fails.',
      'short',
      { '{{instance}}': 'svc_disk_queue_degraded{AGENT}' },
      { min: 0, max: 1 },
    ),
    lines(
      'Recovered',
      'Items that a previous process left in the queue.',
      'short',
      { '{{signal_type}}': 'sum by (signal_type) (svc_export_queue_recovered_total{AGENT})' },
      { min: 0 },
    ),
  ],
}

export const exportRows: readonly Row[] = [exporting, queue]
