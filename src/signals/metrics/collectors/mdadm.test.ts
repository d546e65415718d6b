import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { mdadm, parseMdstat } from './mdadm.ts'

test('an array that recovers is shown with its disks, its progress and its settings', async () => {
  const { lines, outcome } = await readWith(mdadm)
  assert.equal(outcome, 'success')
  assert.deepEqual(
    lines.filter(line => line.includes('"md2"')),
    [
      'node_md_blocks{device="md2"} 1.1720658432e+10',
      'node_md_blocks_synced{device="md2"} 4.9227776e+08',
      'node_md_degraded{device="md2"} 1',
      'node_md_disks{device="md2",state="active"} 3',
      'node_md_disks{device="md2",state="failed"} 1',
      'node_md_disks{device="md2",state="spare"} 1',
      'node_md_disks_required{device="md2"} 4',
      'node_md_raid_disks{device="md2"} 4',
      'node_md_state{device="md2",state="active"} 0',
      'node_md_state{device="md2",state="check"} 0',
      'node_md_state{device="md2",state="inactive"} 0',
      'node_md_state{device="md2",state="recovering"} 1',
      'node_md_state{device="md2",state="resync"} 0',
    ],
  )
  assert.ok(lines.includes('node_md_degraded{device="md4"} 0'), 'RAID 0 cannot be degraded')
  assert.ok(lines.includes('node_md_blocks_synced{device="md6"} 0'), 'its synchronisation waits')
  assert.ok(
    lines.includes('node_md_blocks_synced{device="md7"} 1.019732992e+09'),
    'behind the line of its bitmap',
  )
})

test('each array has one state and its number of disks', async () => {
  const { lines } = await readWith(mdadm)
  const found = (start: string, end: RegExp) =>
    lines.filter(line => line.startsWith(start) && end.test(line)).map(line => line.match(/"[^"]+"/g)!.join())
  assert.deepEqual(found('node_md_state', / 1$/), [
    '"md1","active"',
    '"md2","recovering"',
    '"md3","active"',
    '"md4","active"',
    '"md5","inactive"',
    '"md6","resync"',
    '"md7","check"',
    '"md8","resync"',
  ])
  assert.deepEqual(found('node_md_disks_required', / 2$/), ['"md1"', '"md3"', '"md4"', '"md6"', '"md8"'])
  assert.deepEqual(found('node_md_disks_required', / 0$/), ['"md5"'])
})

test('an array that is reshaped is in none of the states that are shown', async t => {
  const root = treeOf(t, {
    'proc/mdstat':
      'Personalities : [raid5]\nmd9 : active raid5 sdb1[1] sda1[0]\n      523712 blocks super 1.2 [3/2] [UU_]\n' +
      '      [=>...]  reshape =  5.7% (114176/1993728) finish=0.2min speed=114176K/sec\n\n',
    'sys/block/md9/md/level': 'raid5\n',
    'sys/block/md9/md/raid_disks': '3 (2)\n',
    'sys/block/md9/md/degraded': '1\n',
    'sys/block/md8/size': '1\n',
  })
  const { lines } = await readWith(mdadm, {}, root)
  assert.ok(lines.includes('node_md_raid_disks{device="md9"} 3'))
  assert.ok(lines.includes('node_md_blocks_synced{device="md9"} 114176'))
  assert.equal(lines.filter(line => line.startsWith('node_md_state') && line.endsWith(' 1')).length, 0)
})

test('a kernel without RAID has no data, one without arrays a success, junk is an error', async t => {
  const { outcome, reason } = await readWith(mdadm, {}, treeOf(t, {}))
  assert.equal(outcome, 'no_data')
  assert.match(reason, /no software RAID/)
  assert.deepEqual(parseMdstat('Personalities : \nunused devices: <none>\n'), [])
  const fails = (text: string, message: RegExp) =>
    assert.throws(() => parseMdstat(`Personalities :\n${text}`), message)
  fails('md1 : active raid1 sda1[0]\n', /entry of md1 is incomplete/)
  fails('md1 : active raid1 sda1[0]\n many blocks\n\n\n', /entry of md1 is incomplete/)
  fails('md1 : active raid1 sda1[0]\n 12 blocks\n\n\n', /no number of disks in 12 blocks/)
  fails('md1 : active raid1 sda1[0]\n 12 blocks [2/1] [U_]\n recovery = soon\n\n', /no progress of md1/)
  await survivesJunk(t, mdadm, ['proc/mdstat', 'sys/block/md2/md/raid_disks'])
})
