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
      'Reads and writes that were completed.',
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
      'Mean time of a request, waiting included.',
      's',
      {
        'Read {{device}}': mean('read_time_seconds_total', 'reads_completed_total'),
        'Write {{device}}': mean('write_time_seconds_total', 'writes_completed_total'),
      },
      { below: 'Write.*' },
    ),
    lines(
      'Average Queue Size',
      'Requests that wait or are served, on average.',
      'short',
      { '{{device}}': rate('io_time_weighted_seconds_total') },
      { min: 0 },
    ),
    lines(
      'Disk R/W Merged',
      'Requests that were put together with others.',
      'iops',
      {
        'Read {{device}}': rate('reads_merged_total'),
        'Write {{device}}': rate('writes_merged_total'),
      },
      { below: 'Write.*' },
    ),
    lines(
      'Time Spent Doing I/Os',
      'Part of the time in which a disk had something to do.',
      'percentunit',
      { '{{device}}': rate('io_time_seconds_total') },
      { min: 0 },
    ),
    lines(
      'Instantaneous Queue Size',
      'Requests under way at the time of the scrape.',
      'short',
      { '{{device}}': `node_disk_io_now{${disks},HOST}` },
      { min: 0 },
    ),
    lines(
      'Disk IOps Discards and Flushes',
      'Requests to forget blocks, and to write what disks keep back.',
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
      'Bytes that programs without rights may still write.',
      'bytes',
      { '{{mountpoint}}': `node_filesystem_avail_bytes{${real},HOST}` },
      { min: 0 },
    ),
    lines(
      'File Nodes Free',
      'Files that may still be made.',
      'short',
      { '{{mountpoint}}': `node_filesystem_files_free{${real},HOST}` },
      { min: 0 },
    ),
    lines(
      'File Nodes Used',
      'Part of the files that there may be.',
      'percentunit',
      {
        '{{mountpoint}}': `1 - node_filesystem_files_free{${real},HOST} / (node_filesystem_files{${real},HOST} > 0)`,
      },
      { min: 0, max: 1 },
    ),
    lines(
      'Filesystem in ReadOnly / Error',
      '1 where a file system is read-only, or could not be asked.',
      'short',
      {
        'Read-only {{mountpoint}}': `node_filesystem_readonly{${real},HOST}`,
        'Error {{mountpoint}}': `node_filesystem_device_error{${real},HOST}`,
      },
      { min: 0, max: 1 },
    ),
    table('File systems', 'All of them now.', 'bytes', {
      Used: `sum by (mountpoint, device, fstype) (node_filesystem_size_bytes{${real},HOST} - node_filesystem_avail_bytes{${real},HOST})`,
      Size: `sum by (mountpoint, device, fstype) (node_filesystem_size_bytes{${real},HOST})`,
      Available: `sum by (mountpoint, device, fstype) (node_filesystem_avail_bytes{${real},HOST})`,
    }),
    lines(
      'RAID',
      'Disks of arrays of md that are missing.',
      'short',
      { '{{device}}': 'node_md_degraded{HOST}' },
      { min: 0 },
    ),
  ],
}

export const hostStorage: readonly Row[] = [disk, filesystem]
