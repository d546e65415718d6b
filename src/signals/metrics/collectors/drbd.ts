import { decimal } from '../../../foundation/lib/scanner.ts'
import { collector, counter, type Family, gauge, NoData } from './collector.ts'

const labels = ['device']
const kibibyte = 1024

/** Families by key of /proc/drbd (drbdsetup(8), "performance indicators"). */
const numbers: ReadonlyMap<string, readonly [family: Family, factor: number]> = new Map([
  ['ns', [counter('drbd_network_sent_bytes_total', 'Bytes sent to the peer.', { labels }), kibibyte]],
  // Also in KiB, but the replaced exporter shows the number unchanged, and queries rely on it.
  [
    'nr',
    [
      counter('drbd_network_received_bytes_total', 'Data received from the peer; in KiB despite the name.', {
        labels,
        unit: 'KiBy',
      }),
      1,
    ],
  ],
  [
    'dw',
    [counter('drbd_disk_written_bytes_total', 'Bytes written to the local disk.', { labels }), kibibyte],
  ],
  ['dr', [counter('drbd_disk_read_bytes_total', 'Bytes read from the local disk.', { labels }), kibibyte]],
  ['al', [counter('drbd_activitylog_writes_total', 'Writes of the activity log.', { labels }), 1]],
  ['bm', [counter('drbd_bitmap_writes_total', 'Writes of the bitmap.', { labels }), 1]],
  ['lo', [gauge('drbd_local_pending', 'Requests that the local disk has not answered yet.', { labels }), 1]],
  ['pe', [gauge('drbd_remote_pending', 'Requests that the peer has not answered yet.', { labels }), 1]],
  [
    'ua',
    [gauge('drbd_remote_unacknowledged', 'Requests of the peer that were not answered yet.', { labels }), 1],
  ],
  [
    'ap',
    [
      gauge('drbd_application_pending', 'Requests of applications that were not answered yet.', { labels }),
      1,
    ],
  ],
  ['ep', [gauge('drbd_epochs', 'Epochs under way: sets of writes that keep their order.', { labels }), 1]],
  ['oos', [gauge('drbd_out_of_sync_bytes', 'Bytes known to differ from the peer.', { labels }), kibibyte]],
])

/** States of both nodes, and the word for 1. */
const pairs: ReadonlyMap<string, readonly [family: Family, good: string]> = new Map([
  [
    'ro',
    [
      gauge('drbd_node_role_is_primary', 'Whether a node is the primary one (1), or not (0).', {
        labels: ['device', 'node'],
      }),
      'Primary',
    ],
  ],
  [
    'ds',
    [
      gauge('drbd_disk_state_is_up_to_date', 'Whether the disk of a node is up to date (1), or not (0).', {
        labels: ['device', 'node'],
      }),
      'UpToDate',
    ],
  ],
])

const connected = gauge('drbd_connected', 'Whether there is a connection to the peer (1), or not (0).', {
  labels,
})

/** Replicated block devices of DRBD 8.4, from /proc/drbd: words `key:value` after the number of their device. */
export const drbd = collector({
  name: 'drbd',
  summary: 'Replicated block devices of DRBD',
  source: '/proc/drbd',
  enabledByDefault: false,
  metrics: [...[...numbers.values(), ...pairs.values()].map(([family]) => family), connected],
  start: (_options, { host }) => ({
    collect(readings) {
      if (!host.proc.exists('drbd')) throw new NoData('/proc/drbd not found: the kernel has no DRBD 8')
      const text = host.proc.text('drbd')
      if (!text.startsWith('version:')) throw new Error('cannot read /proc/drbd: no version')
      let device = ''
      for (const [, key, value] of text.matchAll(/(?<!\S)([^\s:]+):([^\s:]*)(?!\S)/g) as Iterable<
        readonly [string, string, string]
      >) {
        const number = numbers.get(key)
        const pair = pairs.get(key)
        if (value === '' && /^\d+$/.test(key)) device = `drbd${Number(key)}`
        else if (device === '') continue
        else if (number !== undefined) {
          const reading = decimal(value)
          if (Number.isNaN(reading))
            throw new Error(`cannot read /proc/drbd: ${key} of ${device} is not a number`)
          readings.set(number[0], reading * number[1], device)
        } else if (pair !== undefined) {
          const [local, remote] = value.split('/')
          if (remote === undefined)
            throw new Error(`cannot read /proc/drbd: ${key} of ${device} is not a pair`)
          readings.set(pair[0], local === pair[1] ? 1 : 0, device, 'local')
          readings.set(pair[0], remote === pair[1] ? 1 : 0, device, 'remote')
        } else if (key === 'cs') readings.set(connected, value === 'Connected' ? 1 : 0, device)
      }
    },
  }),
})
