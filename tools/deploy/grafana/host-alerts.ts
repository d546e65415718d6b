// Alerts about hosts.
import { alert, type RuleGroup, value } from './rule.ts'

const on = '{{ $labels.instance }}'
const local = 'fstype!~"tmpfs|ramfs|overlay|squashfs|iso9660"'

export const hostAlerts: RuleGroup = {
  name: 'svc-host',
  rules: [
    alert(
      'HostFilesystemFull',
      'critical',
      '10m',
      `node_filesystem_avail_bytes{${local}} / node_filesystem_size_bytes{${local}} < 0.03 and node_filesystem_readonly{${local}} == 0`,
      {
        summary: `{{ $labels.mountpoint }} on ${on} is full`,
        description: `${value.percent} is free.`,
      },
    ),
    alert(
      'HostFilesystemFullSoon',
      'warning',
      '1h',
      `node_filesystem_avail_bytes{${local}} / node_filesystem_size_bytes{${local}} < 0.2 and predict_linear(node_filesystem_avail_bytes{${local}}[6h], 24 * 3600) < 0 and node_filesystem_readonly{${local}} == 0`,
      {
        summary: `{{ $labels.mountpoint }} on ${on} will be full within a day`,
        description: `${value.percent} is free; at the growth of the last 6 hours it is full within 24 hours.`,
      },
    ),
    alert('HostOutOfMemoryKill', 'warning', '0m', 'increase(node_vmstat_oom_kill[15m]) > 0', {
      summary: `the kernel of ${on} killed a process because memory ran out`,
      description: 'The log record svc.process.oom_kill and the kernel log name it.',
    }),
    alert(
      'HostMemoryPressure',
      'warning',
      '15m',
      'rate(node_pressure_memory_stalled_seconds_total[5m]) > 0.1',
      {
        summary: `${on} is short of memory`,
        description: `In ${value.percent} of the time all tasks waited for memory.`,
      },
    ),
    alert('HostDiskPressure', 'warning', '30m', 'rate(node_pressure_io_stalled_seconds_total[5m]) > 0.5', {
      summary: `the disks of ${on} are too slow`,
      description: `In ${value.percent} of the time all tasks waited for disks.`,
    }),
    alert(
      'HostClockNotSynchronized',
      'warning',
      '30m',
      'node_timex_sync_status == 0 and node_timex_maxerror_seconds >= 16',
      {
        summary: `the clock of ${on} is not synchronized`,
        description: 'Times of spans and logs from several hosts do not match.',
      },
    ),
    alert('HostRaidDegraded', 'critical', '5m', 'node_md_degraded > 0', {
      summary: `{{ $labels.device }} on ${on} lacks ${value.plain} disks`,
      description: 'The next disk that fails may take the data with it.',
    }),
  ],
}
