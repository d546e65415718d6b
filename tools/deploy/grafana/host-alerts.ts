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
        description: `${value.percent} of it is left.`,
      },
    ),
    alert(
      'HostFilesystemFullSoon',
      'warning',
      '1h',
      `node_filesystem_avail_bytes{${local}} / node_filesystem_size_bytes{${local}} < 0.2 and predict_linear(node_filesystem_avail_bytes{${local}}[6h], 24 * 3600) < 0 and node_filesystem_readonly{${local}} == 0`,
      {
        summary: `{{ $labels.mountpoint }} on ${on} is full within a day`,
        description: `${value.percent} of it is left, for less than 24 hours at the growth rate of the last 6 hours.`,
      },
    ),
    alert('HostOutOfMemoryKill', 'warning', '0m', 'increase(node_vmstat_oom_kill[15m]) > 0', {
      summary: `the kernel of ${on} killed a process because memory ran out`,
      description: 'The log record svc.process.oom_kill and the kernel log name the process.',
    }),
    alert(
      'HostMemoryPressure',
      'warning',
      '15m',
      'rate(node_pressure_memory_stalled_seconds_total[5m]) > 0.1',
      {
        summary: `${on} lacks memory`,
        description: `All tasks waited for memory ${value.percent} of the time.`,
      },
    ),
    alert('HostDiskPressure', 'warning', '30m', 'rate(node_pressure_io_stalled_seconds_total[5m]) > 0.5', {
      summary: `the disks of ${on} are too slow`,
      description: `All tasks waited for disks ${value.percent} of the time.`,
    }),
    alert(
      'HostClockNotSynchronized',
      'warning',
      '30m',
      'node_timex_sync_status == 0 and node_timex_maxerror_seconds >= 16',
      {
        summary: `the clock of ${on} is not synchronised`,
        description: 'Times of spans and logs from several hosts do not line up.',
      },
    ),
    alert('HostRaidDegraded', 'critical', '5m', 'node_md_degraded > 0', {
      summary: `{{ $labels.device }} on ${on} lacks ${value.plain} disks`,
      description: 'If another disk fails, the data may be lost.',
    }),
  ],
}
