// Processor, memory, network and disks of a host in detail.
import type { Row } from './dashboard.ts'
import { lines } from './panel-kinds.ts'

const disks = 'device!~"loop.*|ram.*|sr.*"'
const memory = (field: string) => `node_memory_${field}_bytes{HOST}`

export const resourceRow: Row = {
  title: 'CPU / Memory / Net / Disk',
  panels: [
    lines(
      'CPU',
      'CPU time by mode, in CPUs.',
      'short',
      { '{{mode}}': 'sum by (mode) (rate(node_cpu_seconds_total{HOST}[RATE]))' },
      { stack: true, min: 0 },
    ),
    lines(
      'Memory Stack',
      'Memory by use; the parts add up to the total.',
      'bytes',
      {
        'Apps, kernel': `${memory('MemTotal')} - ${['MemFree', 'Buffers', 'Cached', 'Slab', 'PageTables', 'SwapCached'].map(memory).join(' - ')}`,
        'Page tables': memory('PageTables'),
        'Swap cache': memory('SwapCached'),
        Slab: memory('Slab'),
        Cache: memory('Cached'),
        Buffers: memory('Buffers'),
        Unused: memory('MemFree'),
      },
      { stack: true, min: 0 },
    ),
    lines(
      'Network Traffic',
      'Bits in and out by device.',
      'bps',
      {
        'Rx {{device}}': 'rate(node_network_receive_bytes_total{HOST}[RATE]) * 8',
        'Tx {{device}}': 'rate(node_network_transmit_bytes_total{HOST}[RATE]) * 8',
      },
      { below: 'Tx.*' },
    ),
    lines(
      'Disk Space Used',
      'Bytes in use by file system.',
      'bytes',
      {
        '{{mountpoint}}':
          'node_filesystem_size_bytes{fstype!="rootfs",HOST} - node_filesystem_avail_bytes{fstype!="rootfs",HOST}',
      },
      { min: 0 },
    ),
    lines(
      'Disk IOps',
      'Completed reads and writes.',
      'iops',
      {
        'Read {{device}}': `rate(node_disk_reads_completed_total{${disks},HOST}[RATE])`,
        'Write {{device}}': `rate(node_disk_writes_completed_total{${disks},HOST}[RATE])`,
      },
      { below: 'Write.*' },
    ),
    lines(
      'I/O Usage Read / Write',
      'Bytes from and to disks.',
      'Bps',
      {
        'Read {{device}}': `rate(node_disk_read_bytes_total{${disks},HOST}[RATE])`,
        'Write {{device}}': `rate(node_disk_written_bytes_total{${disks},HOST}[RATE])`,
      },
      { below: 'Write.*' },
    ),
    lines(
      'I/O Utilization',
      'Share of the time in which a disk was busy. A disk that serves many requests in parallel is not saturated at 100 %.',
      'percentunit',
      { '{{device}}': `rate(node_disk_io_time_seconds_total{${disks},HOST}[RATE])` },
      { min: 0 },
    ),
    lines(
      'CPU spent seconds in guests',
      'CPU time of virtual machines of this host, in CPUs.',
      'short',
      { '{{mode}}': 'sum by (mode) (rate(node_cpu_guest_seconds_total{HOST}[RATE]))' },
      { min: 0 },
    ),
  ],
}
