import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { tapestats } from './tapestats.ts'

test('a drive is shown once, under the name of its first mode', async () => {
  const { lines, outcome } = await readWith(tapestats)
  assert.equal(outcome, 'success')
  assert.deepEqual(
    lines.filter(line => line.includes('st0"')),
    [
      'node_tape_io_now{device="st0"} 1',
      'node_tape_io_others_total{device="st0"} 1409',
      'node_tape_io_time_seconds_total{device="st0"} 92233.720368547',
      'node_tape_read_bytes_total{device="st0"} 9.79383912e+08',
      'node_tape_read_time_seconds_total{device="st0"} 33.788355744',
      'node_tape_reads_completed_total{device="st0"} 3741',
      'node_tape_residual_total{device="st0"} 19',
      'node_tape_write_time_seconds_total{device="st0"} 5233.597394395',
      'node_tape_writes_completed_total{device="st0"} 5.3772916e+07',
      'node_tape_written_bytes_total{device="st0"} 1.496246784e+12',
    ],
  )
})

test('drives can be left out', async () => {
  const { lines } = await readWith(tapestats, { ignored_devices: '^st0$' })
  assert.deepEqual([...new Set(lines.join().match(/device="\w+"/g))], ['device="st1"'])
})

test('a host without tape drives has no data, junk is an error', async t => {
  assert.equal((await readWith(tapestats, {}, treeOf(t, {}))).outcome, 'no_data')
  const root = treeOf(t, { 'sys/class/scsi_tape/st0/stats/read_ns': 'soon' })
  assert.match((await readWith(tapestats, {}, root)).reason, /st0\/stats\/read_ns: no number/)
  await survivesJunk(t, tapestats, ['sys/class/scsi_tape/st0/stats/io_ns'])
})
