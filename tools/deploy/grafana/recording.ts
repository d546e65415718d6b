// Frequent queries of alerts and long ranges, precomputed.
import { signalItems, unintended } from './items.ts'
import type { Recording, RuleGroup } from './rule.ts'

/** The agent existed before. */
const known = 'on (job, instance) svc_config_info offset 15m'

/** A reason has no series before its first loss, which may be its only one: a new series counts in full. */
function dropped(items: string): string {
  const series = `svc_${items}_dropped_total{${unintended}}`
  return `sum by (job, instance, reason) (increase(${series}[15m]) > 0 or (${series} unless ${series} offset 15m) and ${known})`
}

const items: readonly Recording[] = Object.entries(signalItems).flatMap(([signal, name]) => [
  {
    record: 'svc:items_collected:increase15m',
    expr: `sum by (job, instance) (increase(svc_${name}_collected_total[15m]))`,
    labels: { signal },
  },
  { record: 'svc:items_dropped:increase15m', expr: dropped(name), labels: { signal } },
])

const count = 'http_server_request_duration_seconds_count'
/** If there is no label service.name, it is the job. */
const by = 'job, service_name'

const requests: readonly Recording[] = [
  { record: 'service:http_server_requests:rate5m', expr: `sum by (${by}) (rate(${count}[5m]))` },
  {
    record: 'service:http_server_errors:ratio_rate5m',
    expr: `sum by (${by}) (rate(${count}{error_type!=""}[5m])) / (sum by (${by}) (rate(${count}[5m])) > 0)`,
  },
  {
    record: 'service:http_server_duration_seconds:p95_5m',
    expr: `histogram_quantile(0.95, sum by (le, ${by}) (rate(http_server_request_duration_seconds_bucket[5m])))`,
  },
]

const host: readonly Recording[] = [
  {
    record: 'instance:node_cpu_busy:ratio_rate5m',
    expr: '1 - avg by (job, instance) (rate(node_cpu_seconds_total{mode="idle"}[5m]))',
  },
  {
    record: 'instance:node_memory_used:ratio',
    expr: '1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes',
  },
]

export const recordingGroups: readonly RuleGroup[] = [
  { name: 'svc-items', rules: items },
  { name: 'svc-services', rules: requests },
  { name: 'svc-hosts', rules: host },
]
