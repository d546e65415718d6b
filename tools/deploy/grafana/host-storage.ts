// Disks and file systems of a host.
import type { Row } from './dashboard.ts'
import { lines, table } from './panel-kinds.ts'

const disks = 'device!~"loop.*|ram.*|sr.*"'
const real = 'fstype!="rootfs"'
const rate = (name: string) => `rate(node_disk_${name}{${disks},HOST}[RATE])`
const mean = (time: string, count: string) => `${rate(time)} / (${rate(count)} > 0)`

const disk: Row = {
  title: 'Storage Disk',
  folded: true,
  panels: [
    lines(
      'Disk Read/Write IOps',
      'Completed reads and writes.',
      'iops',
      {
        'Read {{device}}': rate('reads_completed_total'),
        'Write {{device}}': rate('writes_completed_total'),
      },
      { below: 'Write.*' },
    ),
    lines(
      'Disk Read/Write Data',
      'Bytes from and to disks.',
      'Bps',
      {
        'Read {{device}}': rate('read_bytes_total'),
        'Write {{device}}': rate('written_bytes_total'),
      },
      { below: 'Write.*' },
    ),
    lines(
      'Disk Average Wait Time',
      'Mean time of a request, including waiting.',
      's',
      {
        'Read {{device}}': mean('read_time_seconds_total', 'reads_completed_total'),
        'Write {{device}}': mean('write_time_seconds_total', 'writes_completed_total'),
      },
      { below: 'Write.*' },
    ),
    lines(
      'Average Queue Size',
      'Mean number of requests waiting or being served.',
      'short',
      { '{{device}}': rate('io_time_weighted_seconds_total') },
      { min: 0 },
    ),
    lines(
      'Disk R/W Merged',
      'Requests merged with others.',
      'iops',
      {
        'Read {{device}}': rate('reads_merged_total'),
        'Write {{device}}': rate('writes_merged_total'),
      },
      { below: 'Write.*' },
    ),
    lines(
      'Time Spent Doing I/Os',
      'Share of the time in which a disk was busy.',
      'percentunit',
      { '{{device}}': rate('io_time_seconds_total') },
      { min: 0 },
    ),
    lines(
      'Instantaneous Queue Size',
      'Requests in flight at the time of the scrape.',
      'short',
      { '{{device}}': `node_disk_io_now{${disks},HOST}` },
      { min: 0 },
    ),
    lines(
      'Disk IOps Discards and Flushes',
      'Requests to discard blocks, and to flush the disk cache.',
      'iops',
      {
        'Discard {{device}}': rate('discards_completed_total'),
        'Flush {{device}}': rate('flush_requests_total'),
      },
      { min: 0 },
    ),
  ],
}

const filesystem: Row = {
  title: 'Storage Filesystem',
  folded: true,
  panels: [
    lines(
      'Filesystem space available',
      'Bytes available to unprivileged programs.',
      'bytes',
      { '{{mountpoint}}': `node_filesystem_avail_bytes{${real},HOST}` },
      { min: 0 },
    ),
    lines(
      'File Nodes Free',
      'Free inodes.',
      'short',
      { '{{mountpoint}}': `node_filesystem_files_free{${real},HOST}` },
      { min: 0 },
    ),
    lines(
      'File Nodes Used',
      'Share of the inodes in use.',
      'percentunit',
      {
        '{{mountpoint}}': `1 - node_filesystem_files_free{${real},HOST} / (node_filesystem_files{${real},HOST} > 0)`,
      },
      { min: 0, max: 1 },
    ),
    lines(
      'Filesystem in ReadOnly / Error',
      '1 if a file system is read-only, or cannot be queried.',
      'short',
      {
        'Read-only {{mountpoint}}': `node_filesystem_readonly{${real},HOST}`,
        'Error {{mountpoint}}': `node_filesystem_device_error{${real},HOST}`,
      },
      { min: 0, max: 1 },
    ),
    table('File systems', 'Current values of all file systems.', 'bytes', {
      Used: `sum by (mountpoint, device, fstype) (node_filesystem_size_bytes{${real},HOST} - node_filesystem_avail_bytes{${real},HOST})`,
      Size: `sum by (mountpoint, device, fstype) (node_filesystem_size_bytes{${real},HOST})`,
      Available: `sum by (mountpoint, device, fstype) (node_filesystem_avail_bytes{${real},HOST})`,
    }),
    lines(
      'RAID',
      'Missing disks of md arrays.',
      'short',
      { '{{device}}': 'node_md_degraded{HOST}' },
      { min: 0 },
    ),
  ],
}

export const hostStorage: readonly Row[] = [disk, filesystem]
