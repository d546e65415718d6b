import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { zfs } from './zfs.ts'

const header = '1 1 0x01 7 1904 1 2\nname                            type data\n'

test('numbers of known kstats are shown, named by file and field', async () => {
  const { lines, outcome } = await readWith(zfs)
  assert.equal(outcome, 'success')
  assert.deepEqual(
    lines.filter(line => line.startsWith('node_zfs') && !line.includes('zpool')),
    [
      'node_zfs_arc_anon_size 1.91744e+06',
      'node_zfs_arc_c_max 1.8446744073709552e+19',
      'node_zfs_arc_hits 8.772612e+06',
      'node_zfs_arc_l2_hdr_size 0',
      'node_zfs_arc_memory_available_bytes -9.22337203e+08',
      'node_zfs_arc_misses 604635',
      'node_zfs_fm_erpt_dropped 18',
      'node_zfs_vdev_cache_hits 9',
      'node_zfs_vdev_mirror_rotating_linear 5',
      'node_zfs_zil_zil_commit_count 10',
    ],
  )
  assert.ok(lines.includes('# TYPE node_zfs_arc_hits untyped'))
})

test('pools have a state and traffic, data sets keep the spaces of their names', async () => {
  const { lines } = await readWith(zfs)
  assert.deepEqual(
    lines.filter(line => /^node_zfs_zpool_(state.* 1$|n|dataset)/.test(line)),
    [
      'node_zfs_zpool_dataset_nwritten{dataset="tank/my  home",zpool="tank"} 12302',
      'node_zfs_zpool_dataset_writes{dataset="tank/my  home",zpool="tank"} 4',
      'node_zfs_zpool_dataset_zil_itx_count{dataset="tank/my  home",zpool="tank"} 77',
      'node_zfs_zpool_nread{zpool="tank"} 1.88416e+06',
      'node_zfs_zpool_nwritten{zpool="tank"} 3.206144e+06',
      'node_zfs_zpool_state{state="degraded",zpool="tank"} 1',
      'node_zfs_zpool_state{state="online",zpool="dozer"} 1',
    ],
  )
  assert.equal(lines.filter(line => line.startsWith('node_zfs_zpool_state{')).length, 14)
})

test('a kernel without ZFS has no data, junk is an error', async t => {
  const read = (files: Record<string, string>) => readWith(zfs, {}, treeOf(t, files))
  assert.equal((await read({})).outcome, 'no_data')
  const root = 'proc/spl/kstat/zfs'
  assert.equal((await read({ [`${root}/zil`]: header })).outcome, 'success')
  assert.match((await read({ [`${root}/zil`]: `${header}x 4 y\n` })).reason, /zil: x is not a number/)
  assert.match((await read({ [`${root}/zil`]: 'x 4 1\n' })).reason, /zil: no header line/)
  assert.match((await read({ [`${root}/tank/io`]: 'nread reads\n1 2\n' })).reason, /tank\/io: no header/)
  const names = 'nread a b c d e f g h i j k'
  assert.match((await read({ [`${root}/tank/io`]: `${names}\n1 2\n` })).reason, /tank\/io: b is not a number/)
  await survivesJunk(t, zfs, [`${root}/arcstats`, `${root}/tank/objset-0x36`])
  await survivesJunk(t, zfs, [`${root}/tank/state`], {}, true)
})
