// Alerts about svc itself.
import { alert, type RuleGroup, value } from './rule.ts'

/** Bytes; `MemoryMax` of the unit, and the limit of the chart. */
const memoryLimit = 512 * 1024 * 1024
const on = '{{ $labels.instance }}'

export const agentAlerts: RuleGroup = {
  name: 'svc-agent',
  rules: [
    alert('SvcDown', 'critical', '5m', 'up == 0 and on (job, instance) max_over_time(svc_config_info[6h])', {
      summary: `svc on ${on} does not answer`,
      description: 'It answered within the last 6 hours. This host is not observed until svc runs again.',
    }),
    alert(
      'SvcItemsDropped',
      'warning',
      '5m',
      'svc:items_dropped:increase15m / on (job, instance, signal) group_left svc:items_collected:increase15m > 0.001',
      {
        summary: `svc on ${on} loses {{ $labels.signal }}: {{ $labels.reason }}`,
        description: `${value.percent} of the items collected in 15 minutes were lost for this reason.`,
      },
    ),
    alert(
      'SvcQueueFillsUp',
      'warning',
      '10m',
      // A full queue does not grow, because the oldest data is dropped: it must not look fixed.
      'svc_disk_queue_bytes > 0.2 * svc_disk_queue_max_bytes and predict_linear(svc_disk_queue_bytes[30m], 4 * 3600) > svc_disk_queue_max_bytes or svc_disk_queue_bytes > 0.9 * svc_disk_queue_max_bytes',
      {
        summary: `the queue of svc on ${on} is full, or will be within 4 hours`,
        description: `It has ${value.bytes}. The receiver is down or too slow; when the queue is full, the oldest data is lost.`,
      },
    ),
    alert(
      'SvcExportFails',
      'warning',
      '15m',
      'sum by (job, instance, endpoint, signal_type) (rate(svc_export_errors_total{error_type!="unimplemented"}[5m])) > 0 unless on (job, instance, endpoint, signal_type) rate(svc_export_requests_total{status="success"}[5m]) > 0',
      {
        summary: `svc on ${on} cannot send {{ $labels.signal_type }} to {{ $labels.endpoint }}`,
        description: 'No request succeeded. Collected data waits in the queue.',
      },
    ),
    alert('SvcDiskQueueDegraded', 'warning', '5m', 'svc_disk_queue_degraded == 1', {
      summary: `svc on ${on} cannot write its queue`,
      description:
        'The disk is full, read-only or broken. Batches wait in memory and do not survive a restart.',
    }),
    alert(
      'SvcRingLosses',
      'warning',
      '15m',
      'rate(svc_ebpf_ringbuf_lost_total[5m]) / (rate(svc_ebpf_ringbuf_events_total[5m]) + rate(svc_ebpf_ringbuf_lost_total[5m])) > 0.01',
      {
        summary: `svc on ${on} loses ${value.percent} of the kernel's records`,
        description: 'The ring buffer is full: spans are missing. Request metrics still count these calls.',
      },
    ),
    alert('SvcMemoryHigh', 'warning', '15m', `svc_process_resident_memory_bytes > 0.9 * ${memoryLimit}`, {
      summary: `svc on ${on} is near its memory limit`,
      description: `It uses ${value.bytes} of 512MiB, the limit of its unit and chart. Above it the kernel kills the agent.`,
    }),
    alert('SvcDegraded', 'warning', '15m', 'svc_degraded{subsystem!~"export.*|queue"} > 0', {
      summary: `svc on ${on} is degraded: {{ $labels.subsystem }}`,
      description:
        'A part did not start or is limited. svc status on the host shows the reason and the hint.',
    }),
    alert('SvcReloadFailed', 'warning', '5m', 'svc_config_last_reload_successful == 0', {
      summary: `svc on ${on} rejected its new configuration`,
      description:
        'The previous configuration is still active. svc validate reports each mistake with its line.',
    }),
  ],
}
