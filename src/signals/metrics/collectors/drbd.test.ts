import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { drbd } from './drbd.ts'

test('devices are numbered, and KiB become bytes but for those received', async () => {
  const { lines, outcome } = await readWith(drbd)
  assert.equal(outcome, 'success')
  assert.deepEqual(
    lines.filter(line => line.includes('drbd0')),
    [
      'node_drbd_activitylog_writes_total{device="drbd0"} 7',
      'node_drbd_application_pending{device="drbd0"} 5',
      'node_drbd_bitmap_writes_total{device="drbd0"} 3',
      'node_drbd_connected{device="drbd0"} 1',
      'node_drbd_disk_read_bytes_total{device="drbd0"} 524288',
      'node_drbd_disk_state_is_up_to_date{device="drbd0",node="local"} 1',
      'node_drbd_disk_state_is_up_to_date{device="drbd0",node="remote"} 0',
      'node_drbd_disk_written_bytes_total{device="drbd0"} 1.048576e+06',
      'node_drbd_epochs{device="drbd0"} 1',
      'node_drbd_local_pending{device="drbd0"} 1',
      'node_drbd_network_received_bytes_total{device="drbd0"} 2048',
      'node_drbd_network_sent_bytes_total{device="drbd0"} 4.194304e+06',
      'node_drbd_node_role_is_primary{device="drbd0",node="local"} 1',
      'node_drbd_node_role_is_primary{device="drbd0",node="remote"} 0',
      'node_drbd_out_of_sync_bytes{device="drbd0"} 65536',
      'node_drbd_remote_pending{device="drbd0"} 2',
      'node_drbd_remote_unacknowledged{device="drbd0"} 4',
    ],
  )
  assert.ok(lines.includes('node_drbd_connected{device="drbd2"} 0'))
  assert.ok(lines.includes('node_drbd_disk_read_bytes_total{device="drbd2"} 204800'))
})

test('a kernel without DRBD has no data, junk is an error', async t => {
  const read = (content: string) => readWith(drbd, {}, treeOf(t, { 'proc/drbd': content }))
  const { outcome, reason } = await readWith(drbd, {}, treeOf(t, {}))
  assert.equal(outcome, 'no_data')
  assert.match(reason, /has no DRBD/)
  assert.match(
    (await read('version: 8.4.11\n 0: cs:x ns:many\n')).reason,
    /drbd: ns of drbd0 is not a number/,
  )
  assert.match(
    (await read('version: 8.4.11\n 0: cs:x ro:Primary\n')).reason,
    /drbd: ro of drbd0 is not a pair/,
  )
  await survivesJunk(t, drbd, ['proc/drbd'])
})
