import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { copyOfTree, readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { dmmultipath } from './dmmultipath.ts'

test('multipath devices are shown with their paths, other mapped devices are not', async () => {
  const { lines, outcome } = await readWith(dmmultipath)
  assert.equal(outcome, 'success')
  assert.deepEqual(
    lines.filter(line => !line.startsWith('#')),
    [
      'node_dmmultipath_device_active{device="backup_lun",sysfs_name="dm-3"} 1',
      'node_dmmultipath_device_active{device="idle_lun",sysfs_name="dm-4"} 0',
      'node_dmmultipath_device_info{device="backup_lun",sysfs_name="dm-3",uuid="mpath-3600508b4000c4a37"} 1',
      'node_dmmultipath_device_info{device="idle_lun",sysfs_name="dm-4",uuid="mpath-3600508b4000c4a38"} 1',
      'node_dmmultipath_device_paths{device="backup_lun",sysfs_name="dm-3"} 3',
      'node_dmmultipath_device_paths{device="idle_lun",sysfs_name="dm-4"} 0',
      'node_dmmultipath_device_paths_active{device="backup_lun",sysfs_name="dm-3"} 2',
      'node_dmmultipath_device_paths_active{device="idle_lun",sysfs_name="dm-4"} 0',
      'node_dmmultipath_device_paths_failed{device="backup_lun",sysfs_name="dm-3"} 1',
      'node_dmmultipath_device_paths_failed{device="idle_lun",sysfs_name="dm-4"} 0',
      'node_dmmultipath_device_size_bytes{device="backup_lun",sysfs_name="dm-3"} 1.073741824e+09',
      'node_dmmultipath_device_size_bytes{device="idle_lun",sysfs_name="dm-4"} 0',
      'node_dmmultipath_path_state{device="backup_lun",path="nvme2n1",state="live"} 1',
      'node_dmmultipath_path_state{device="backup_lun",path="sdc",state="running"} 1',
      'node_dmmultipath_path_state{device="backup_lun",path="sdd",state="transport-offline"} 1',
    ],
  )
})

test('a path whose driver tells no state is not known to work', async t => {
  const root = copyOfTree(t)
  rmSync(join(root, 'sys/block/sdd/device/state'))
  const { lines, outcome } = await readWith(dmmultipath, {}, root)
  assert.equal(outcome, 'success')
  assert.ok(lines.includes('node_dmmultipath_path_state{device="backup_lun",path="sdd",state="unknown"} 1'))
  assert.ok(lines.includes('node_dmmultipath_device_paths_active{device="backup_lun",sysfs_name="dm-3"} 2'))
})

test('a host without block devices has no data, one that tells half is an error', async t => {
  assert.equal((await readWith(dmmultipath, {}, treeOf(t, {}))).outcome, 'no_data')
  const none = await readWith(dmmultipath, {}, treeOf(t, { 'sys/block/sda/size': '1' }))
  assert.deepEqual(none, { lines: [], outcome: 'success', reason: '' })
  const root = copyOfTree(t)
  rmSync(join(root, 'sys/block/dm-3/dm/name'))
  assert.match((await readWith(dmmultipath, {}, root)).reason, /ENOENT.*dm-3\/dm\/name/)
  await survivesJunk(t, dmmultipath, ['sys/block/dm-3/size'])
})
