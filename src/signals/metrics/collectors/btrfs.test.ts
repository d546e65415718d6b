import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { copyOfTree, readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { btrfs } from './btrfs.ts'

const large = '2c91f0e4-88aa-4d0a-9b7e-4a1d2b3c4d5e'
const small = 'fe0d7c1a-1111-4222-8333-444455556666'

test('file systems are shown with what their space is for', async () => {
  const { lines, outcome } = await readWith(btrfs)
  assert.equal(outcome, 'success')
  assert.deepEqual(
    lines.filter(line => line.includes(large)).map(line => line.slice(11).replace(`uuid="${large}"`, 'uuid')),
    [
      'allocation_ratio{block_group_type="data",mode="raid5",uuid} 1.5',
      'allocation_ratio{block_group_type="metadata",mode="raid1c3",uuid} 3',
      'allocation_ratio{block_group_type="system",mode="raid1",uuid} 2',
      'commit_seconds_total{uuid} 90.311',
      'commits_total{uuid} 412',
      'device_size_bytes{device="sdx",uuid} 1.073741824e+10',
      'device_size_bytes{device="sdy",uuid} 1.073741824e+10',
      'device_size_bytes{device="sdz",uuid} 1.073741824e+10',
      'global_rsv_size_bytes{uuid} 2.68435456e+08',
      'info{label="pool of three",uuid} 1',
      'last_commit_seconds{uuid} 0.031',
      'max_commit_seconds{uuid} 2.75',
      'reserved_bytes{block_group_type="data",uuid} 8192',
      'reserved_bytes{block_group_type="metadata",uuid} 0',
      'reserved_bytes{block_group_type="system",uuid} 0',
      'size_bytes{block_group_type="data",mode="raid5",uuid} 4.294967296e+09',
      'size_bytes{block_group_type="metadata",mode="raid1c3",uuid} 1.073741824e+09',
      'size_bytes{block_group_type="system",mode="raid1",uuid} 8.388608e+06',
      'used_bytes{block_group_type="data",mode="raid5",uuid} 1.073741824e+09',
      'used_bytes{block_group_type="metadata",mode="raid1c3",uuid} 2.097152e+08',
      'used_bytes{block_group_type="system",mode="raid1",uuid} 16384',
    ],
  )
  assert.ok(
    lines.includes(`node_btrfs_commits_total{uuid="${small}"} 0`),
    'a kernel that does not count them',
  )
})

test('a mount that is no btrfs, or not there, leaves the sizes to sysfs', async t => {
  const root = copyOfTree(t)
  const line = (point: string) => `9 1 0:9 / ${point} rw - btrfs /dev/sdx rw\n`
  mkdirSync(join(root, 'proc/1'), { recursive: true })
  mkdirSync(join(root, 'rootfs/data'), { recursive: true })
  writeFileSync(join(root, 'proc/1/mountinfo'), line('/data') + line('/absent'))
  const { lines, outcome } = await readWith(btrfs, {}, root)
  assert.equal(outcome, 'success')
  assert.ok(lines.includes(`node_btrfs_device_size_bytes{device="sdw",uuid="${small}"} 2.68435456e+08`))
})

test('a host without btrfs is a success, junk is an error', async t => {
  const none = await readWith(btrfs, {}, treeOf(t, { 'sys/fs/btrfs/features/raid56': '0\n' }))
  assert.deepEqual(none, { lines: [], outcome: 'success', reason: '' })
  const root = copyOfTree(t)
  rmSync(join(root, `sys/fs/btrfs/${small}/allocation/system`), { recursive: true })
  assert.match((await readWith(btrfs, {}, root)).reason, /ENOENT.*system\/bytes_reserved/)
  await survivesJunk(t, btrfs, [`sys/fs/btrfs/${large}/allocation/data/raid5/used_bytes`])
  await survivesJunk(t, btrfs, [`sys/fs/btrfs/${large}/commit_stats`], {}, true)
})
