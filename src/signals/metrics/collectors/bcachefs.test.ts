import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { bcachefs } from './bcachefs.ts'

const uuid = '3d1c9a70-5d5e-4c2a-8f65-0b9d6f7e1a22'
const path = `sys/fs/bcachefs/${uuid}`

test('a file system is shown with its tables, counters and devices', async () => {
  const { lines, outcome } = await readWith(bcachefs)
  assert.equal(outcome, 'success')
  assert.deepEqual(
    lines.filter(line => !line.startsWith('#')).map(line => line.slice(14).replace(`uuid="${uuid}"`, 'uuid')),
    [
      'btree_cache_size_bytes{uuid} 5.36870912e+08',
      'btree_node_read_total{uuid} 1.03284736e+08',
      'btree_write_average_size_bytes{type="cache_reclaim",uuid} 3328',
      'btree_write_average_size_bytes{type="initial",uuid} 110592',
      'btree_writes_total{type="cache_reclaim",uuid} 77',
      'btree_writes_total{type="initial",uuid} 19004',
      'compression_compressed_bytes{algorithm="none",uuid} 0',
      'compression_compressed_bytes{algorithm="zstd",uuid} 1.610612736e+09',
      'compression_uncompressed_bytes{algorithm="none",uuid} 0',
      'compression_uncompressed_bytes{algorithm="zstd",uuid} 4.563402752e+09',
      'device_bucket_size_bytes{device="0",uuid} 262144',
      'device_bucket_size_bytes{device="3",uuid} 1.048576e+06',
      'device_buckets{device="0",uuid} 762954',
      'device_buckets{device="3",uuid} 10',
      'device_durability{device="0",uuid} 1',
      'device_durability{device="3",uuid} 0',
      'device_info{device="0",label="ssd.fast1",state="rw",uuid} 1',
      'device_info{device="3",label="",state="ro",uuid} 1',
      'device_io_done_bytes_total{data_type="btree",device="0",operation="read",uuid} 1.23456789e+08',
      'device_io_done_bytes_total{data_type="sb",device="0",operation="read",uuid} 8192',
      'device_io_done_bytes_total{data_type="sb",device="0",operation="write",uuid} 16384',
      'device_io_done_bytes_total{data_type="user",device="0",operation="write",uuid} 9.87654321e+09',
      'device_io_errors_total{device="0",type="read",uuid} 3',
      'device_io_errors_total{device="0",type="write",uuid} 0',
      'errors_total{error_type="bset_bad_csum",uuid} 3',
      'errors_total{error_type="lru_entry_bad",uuid} 4517',
      'gc_gens_end_total{uuid} 7',
      'info{uuid} 1',
    ],
  )
})

test('a host without bcachefs has no data, junk is an error', async t => {
  assert.equal((await readWith(bcachefs, {}, treeOf(t, {}))).outcome, 'no_data')
  const read = (file: string, content: string) =>
    readWith(bcachefs, {}, treeOf(t, { [`sys/fs/bcachefs/a/${file}`]: content }))
  assert.match((await read('counters/x', 'lately: 4\n')).reason, /counters\/x: no counter/)
  assert.match((await read('errors', 'bad many\n')).reason, /errors: no number/)
  assert.match((await read('btree_cache_size', '1.5 M\n')).reason, /btree_cache_size: no number/)
  await survivesJunk(t, bcachefs, [`${path}/dev-0/nbuckets`, `${path}/counters/btree_node_read`])
  await survivesJunk(t, bcachefs, [`${path}/dev-0/io_done`, `${path}/errors`], {}, true)
})
