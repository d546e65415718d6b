// Overview of a host: its state in numbers, then processor, memory, network and disks.
import type { Row } from './dashboard.ts'
import { gauge, lines, stat } from './panel-kinds.ts'

const share = { max: 1, warn: 0.85, bad: 0.95 }
const cores = 'count(count by (cpu) (node_cpu_seconds_total{HOST}))'
const busy = '1 - avg(rate(node_cpu_seconds_total{mode="idle",HOST}[RATE]))'
const ramUsed = '1 - node_memory_MemAvailable_bytes{HOST} / node_memory_MemTotal_bytes{HOST}'
const swapUsed = '(node_memory_SwapTotal_bytes{HOST} - node_memory_SwapFree_bytes{HOST})'
const rootUsed =
  '1 - max(node_filesystem_avail_bytes{mountpoint="/",fstype!="rootfs",HOST}) / max(node_filesystem_size_bytes{mountpoint="/",fstype!="rootfs",HOST})'
const real = 'device!~"lo|veth.*|cali.*|cni.*"'
const modes = { irq: 'irq|softirq', other: 'nice|steal' }
const cpuOf = (mode: string) =>
  `sum(rate(node_cpu_seconds_total{mode=~"${mode}",HOST}[RATE])) / scalar(${cores})`

const quick: Row = {
  title: 'Quick CPU / Mem / Disk',
  panels: [
    gauge(
      'Pressure',
      'Share of the time in which at least one task waited for CPU, memory or disks (PSI). Needs a kernel with PSI.',
      'percentunit',
      {
        CPU: 'irate(node_pressure_cpu_waiting_seconds_total{HOST}[RATE])',
        Mem: 'irate(node_pressure_memory_waiting_seconds_total{HOST}[RATE])',
        'I/O': 'irate(node_pressure_io_waiting_seconds_total{HOST}[RATE])',
      },
      { width: 4, max: 1, warn: 0.7, bad: 0.9 },
    ),
    gauge('CPU Busy', 'Share of the time in which the CPUs were not idle.', 'percentunit', busy, share),
    gauge(
      'Sys Load',
      'Load of the last minute for each CPU.',
      'percentunit',
      `node_load1{HOST} / scalar(${cores})`,
      share,
    ),
    gauge('RAM Used', 'Memory that is not available to programs.', 'percentunit', ramUsed, share),
    gauge(
      'SWAP Used',
      'Swap in use; no data if there is no swap.',
      'percentunit',
      `${swapUsed} / (node_memory_SwapTotal_bytes{HOST} > 0)`,
      { max: 1, warn: 0.1, bad: 0.25 },
    ),
    gauge('Root FS Used', 'Used space of the root file system.', 'percentunit', rootUsed, share),
    stat('CPU Cores', 'Online CPUs.', 'short', cores, { width: 2 }),
    stat('Uptime', 'Time since boot.', 's', 'node_time_seconds{HOST} - node_boot_time_seconds{HOST}', {
      width: 3,
    }),
    stat(
      'RootFS Total',
      'Size of the root file system.',
      'bytes',
      'max(node_filesystem_size_bytes{mountpoint="/",fstype!="rootfs",HOST})',
    ),
    stat('RAM Total', 'Total memory.', 'bytes', 'node_memory_MemTotal_bytes{HOST}'),
    stat('SWAP Total', 'Total swap.', 'bytes', 'node_memory_SwapTotal_bytes{HOST}'),
    stat('Tasks', 'Tasks that are running or waiting for a CPU.', 'short', 'node_procs_running{HOST}'),
  ],
}

const basic: Row = {
  title: 'Basic CPU / Mem / Net / Disk',
  panels: [
    lines(
      'CPU Basic',
      'CPU time by mode, as a share of all CPUs.',
      'percentunit',
      {
        'Busy System': cpuOf('system'),
        'Busy User': cpuOf('user'),
        'Busy Iowait': cpuOf('iowait'),
        'Busy IRQs': cpuOf(modes.irq),
        'Busy Other': cpuOf(modes.other),
        Idle: cpuOf('idle'),
      },
      { stack: true, min: 0, max: 1 },
    ),
    lines(
      'Memory Basic',
      'Memory used by programs, cached files, and free memory.',
      'bytes',
      {
        Total: 'node_memory_MemTotal_bytes{HOST}',
        Used: 'node_memory_MemTotal_bytes{HOST} - node_memory_MemFree_bytes{HOST} - (node_memory_Cached_bytes{HOST} + node_memory_Buffers_bytes{HOST} + node_memory_SReclaimable_bytes{HOST})',
        'Cache and buffers':
          'node_memory_Cached_bytes{HOST} + node_memory_Buffers_bytes{HOST} + node_memory_SReclaimable_bytes{HOST}',
        Free: 'node_memory_MemFree_bytes{HOST}',
        'Swap used': swapUsed,
      },
      { min: 0 },
    ),
    lines(
      'Network Traffic Basic',
      'Bits in and out by device, without loopback and container interfaces.',
      'bps',
      {
        'Rx {{device}}': `rate(node_network_receive_bytes_total{${real},HOST}[RATE]) * 8`,
        'Tx {{device}}': `rate(node_network_transmit_bytes_total{${real},HOST}[RATE]) * 8`,
      },
      { below: 'Tx.*' },
    ),
    lines(
      'Disk Space Used Basic',
      'Used share of each file system.',
      'percentunit',
      {
        '{{mountpoint}}':
          '1 - node_filesystem_avail_bytes{fstype!="rootfs",HOST} / node_filesystem_size_bytes{fstype!="rootfs",HOST}',
      },
      { min: 0, max: 1 },
    ),
  ],
}

export const hostOverview: readonly Row[] = [quick, basic]
