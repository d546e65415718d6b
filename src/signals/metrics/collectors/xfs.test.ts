import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { xfs } from './xfs.ts'

test('counters are shown by file system, those of lines that nobody asks for are not', async () => {
  const { lines, outcome } = await readWith(xfs)
  assert.equal(outcome, 'success')
  const values = lines.filter(line => !line.startsWith('#'))
  assert.equal(values.length, 39)
  const check = (name: string, value: string) =>
    assert.ok(values.includes(`node_xfs_${name}_total{device="sdb"} ${value}`), name)
  check('extent_allocation_blocks_freed', '40021')
  check('allocation_btree_compares', '12')
  check('block_mapping_extent_list_lookups', '110233')
  check('block_map_btree_records_deleted', '24')
  check('directory_operation_getdents', '90211')
  check('inode_operation_attribute_changes', '8801')
  check('write_calls', '4.294967295e+09')
  check('read_calls', '301177')
  check('vnode_remove', '11')
})

test('a host without XFS is a success, junk is an error', async t => {
  assert.deepEqual(await readWith(xfs, {}, treeOf(t, {})), { lines: [], outcome: 'success', reason: '' })
  const read = (content: string) => readWith(xfs, {}, treeOf(t, { 'sys/fs/xfs/sda1/stats/stats': content }))
  assert.match((await read('rw 1\n')).reason, /sda1\/stats\/stats: not the counters/)
  assert.match((await read('constructor 1 2\n')).reason, /not the counters/)
  await survivesJunk(t, xfs, ['sys/fs/xfs/sdb/stats/stats'])
})
