import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { copyOfTree, readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { bcache } from './bcache.ts'

const uuid = '6f0c4a52-3b1d-4a77-9b1e-2f8d11a0c9e4'
const set = `sys/fs/bcache/${uuid}`

test('a cache set is shown with its devices, sizes in bytes', async () => {
  const { lines, outcome } = await readWith(bcache)
  assert.equal(outcome, 'success')
  const check = (name: string, value: string, device = '') =>
    assert.ok(lines.includes(`node_bcache_${name}{${device}uuid="${uuid}"} ${value}`), name)
  const bdev0 = 'backing_device="bdev0",'
  check('average_key_size_sectors', '12')
  // A fraction counts 1024ths of ten: 3.5M are 3 + 5 / 10.24 MiB.
  check('btree_cache_size_bytes', '3.657728e+06')
  check('btree_read_average_duration_seconds', '1.2900000000000001e-06')
  check('cache_read_races_total', '2')
  check('bypassed_bytes_total', '10540', bdev0)
  check('cache_hits_total', '100', bdev0)
  check('cache_readaheads_total', '6', bdev0)
  check('dirty_data_bytes', '2.147483648e+09', bdev0)
  check('dirty_target_bytes', '4.389339136e+10', bdev0)
  check('writeback_rate', '4096', bdev0)
  check('writeback_rate_proportional_term', '-1.150976e+06', bdev0)
  check('writeback_change', '-3272', bdev0)
  check('dirty_data_bytes', '0', 'backing_device="bdev11",')
  check('io_errors', '3', 'cache_device="cache0",')
  check('written_bytes_total', '2.122317824e+09', 'cache_device="cache0",')
  assert.equal(
    lines.some(line => line.includes('priority_stats')),
    false,
  )
})

test('priority statistics are shown when asked for', async () => {
  const { lines } = await readWith(bcache, { priorityStats: true })
  assert.deepEqual(
    lines.filter(line => line.startsWith('node_bcache_priority')),
    [
      `node_bcache_priority_stats_metadata_percent{cache_device="cache0",uuid="${uuid}"} 2`,
      `node_bcache_priority_stats_unused_percent{cache_device="cache0",uuid="${uuid}"} 61`,
    ],
  )
})

test('a kernel that counts no readaheads shows none', async t => {
  const root = copyOfTree(t)
  rmSync(join(root, set, 'bdev0/stats_total/cache_readaheads'))
  writeFileSync(join(root, set, 'bdev11/stats_total/cache_readaheads'), '0\n')
  const { lines, outcome } = await readWith(bcache, {}, root)
  assert.equal(outcome, 'success')
  assert.equal(
    lines.some(line => line.includes('readaheads')),
    false,
  )
})

test('a host without bcache is a success, junk is an error', async t => {
  assert.deepEqual(await readWith(bcache, {}, treeOf(t, {})), { lines: [], outcome: 'success', reason: '' })
  const root = copyOfTree(t)
  writeFileSync(join(root, set, 'bdev0/writeback_rate_debug'), 'rate: 1\n')
  assert.match((await readWith(bcache, {}, root)).reason, /bdev0\/writeback_rate_debug: a line is missing/)
  rmSync(join(root, set, 'tree_depth'))
  assert.match((await readWith(bcache, {}, root)).reason, /ENOENT.*tree_depth/)
  await survivesJunk(t, bcache, [`${set}/cache0/priority_stats`, `${set}/congested`], { priorityStats: true })
})
