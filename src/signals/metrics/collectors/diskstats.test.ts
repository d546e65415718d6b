import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { copyOfTree, readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { diskstats } from './diskstats.ts'

const of = (lines: readonly string[], device: string) =>
  lines.filter(line => line.includes(`device="${device}"`))

test('counters are shown in bytes and seconds, facts from udev beside them', async () => {
  const { lines, outcome } = await readWith(diskstats)
  assert.equal(outcome, 'success')
  assert.deepEqual(of(lines, 'sda'), [
    'node_disk_ata_rotation_rate_rpm{device="sda"} 5400',
    'node_disk_ata_write_cache{device="sda"} 1',
    'node_disk_ata_write_cache_enabled{device="sda"} 0',
    'node_disk_discard_time_seconds_total{device="sda"} 0.911',
    'node_disk_discarded_sectors_total{device="sda"} 8.8310272e+07',
    'node_disk_discards_completed_total{device="sda"} 1210',
    'node_disk_discards_merged_total{device="sda"} 4',
    'node_disk_flush_requests_time_seconds_total{device="sda"} 16.273',
    'node_disk_flush_requests_total{device="sda"} 20413',
    'node_disk_info{device="sda",major="8",minor="0",model="STARLING_SL2000",path="pci-0000:00:1f.2-ata-1.0",revision="SC61",rotational="1",serial="ZX10A7Q2",wwn="0x5000c500a1b2c3d4"} 1',
    'node_disk_io_now{device="sda"} 3',
    'node_disk_io_time_seconds_total{device="sda"} 702.155',
    'node_disk_io_time_weighted_seconds_total{device="sda"} 2001.432',
    'node_disk_read_bytes_total{device="sda"} 4.718967808e+09',
    'node_disk_read_time_seconds_total{device="sda"} 51.230000000000004',
    'node_disk_reads_completed_total{device="sda"} 184213',
    'node_disk_reads_merged_total{device="sda"} 20417',
    'node_disk_write_time_seconds_total{device="sda"} 1933.017',
    'node_disk_writes_completed_total{device="sda"} 642301',
    'node_disk_writes_merged_total{device="sda"} 318822',
    'node_disk_written_bytes_total{device="sda"} 1.4751367168e+10',
  ])
})

test('how many columns a line has decides what is shown', async () => {
  const { lines } = await readWith(diskstats)
  const names = (device: string) => of(lines, device).map(line => /^node_disk_(\w+)/.exec(line)![1]!)
  const isDiscard = (name: string) => name.startsWith('discard')
  const isFlush = (name: string) => name.startsWith('flush')
  assert.equal(names('dm-0').some(isDiscard), false)
  assert.equal(names('sdb').filter(isDiscard).length, 4)
  assert.equal(names('sdb').some(isFlush), false)
  assert.equal(names('nvme1n1').filter(isFlush).length, 2)
})

test('the printed serial number goes before others; what udev does not know is empty', async () => {
  const { lines } = await readWith(diskstats)
  assert.deepEqual(
    lines.filter(line => /_info\{device="(sdb|dm-0|nvme1n1)"/.test(line)),
    [
      'node_disk_device_mapper_info{device="dm-0",lv_layer="",lv_name="home",name="vg0-home",uuid="LVM-Qn3tWzYb1",vg_name="vg0"} 1',
      'node_disk_filesystem_info{device="dm-0",type="ext4",usage="filesystem",uuid="8d0e",version="1.0"} 1',
      'node_disk_filesystem_info{device="sdb",type="xfs",usage="filesystem",uuid="5b1f8a3e-1c2d-4e5f-8a9b-0c1d2e3f4a5b",version=""} 1',
      'node_disk_info{device="dm-0",major="252",minor="0",model="",path="",revision="",rotational="0",serial="",wwn=""} 1',
      'node_disk_info{device="nvme1n1",major="259",minor="2",model="",path="",revision="",rotational="0",serial="",wwn=""} 1',
      'node_disk_info{device="sdb",major="8",minor="16",model="Caf\ufffd_\\"quoted\\"",path="",revision="",rotational="0",serial="printed",wwn=""} 1',
    ],
  )
  assert.equal(lines.includes('node_disk_ata_rotation_rate_rpm{device="sdb"} 0'), false, 'it is no number')
})

test('devices are chosen by name', async () => {
  const devices = async (options: Record<string, unknown>) =>
    (await readWith(diskstats, options)).lines
      .filter(line => line.startsWith('node_disk_io_now'))
      .map(line => /device="([^"]+)"/.exec(line)![1])
  assert.deepEqual(await devices({}), ['dm-0', 'nvme1n1', 'sda', 'sdb'])
  assert.deepEqual(await devices({ device_include: ['^sda', '^loop'] }), ['loop0', 'sda', 'sda1'])
  assert.deepEqual(await devices({ device_exclude: ['^(loop|sd)'] }), ['dm-0', 'nvme1n1'])
  await assert.rejects(
    devices({ device_include: ['a'], device_exclude: ['b'] }),
    /diskstats: include and exclude are both set/,
  )
})

test('a device that takes the place of another one is looked at anew', async t => {
  const root = copyOfTree(t)
  const line = (name: string, minor: number) => `8 ${minor} ${name} 1 2 3 4 5 6 7 8 9 10 11\n`
  writeFileSync(join(root, 'proc/diskstats'), line('sda', 0))
  const texts = await readWith(diskstats, {}, root, async () =>
    writeFileSync(join(root, 'proc/diskstats'), line('sda', 16)),
  )
  assert.match(texts.lines.join('\n'), /node_disk_info\{device="sda",major="8",minor="16".*serial="printed"/)
})

test('a host without block devices is a success, junk is not', async t => {
  const read = (content: string) => readWith(diskstats, {}, treeOf(t, { 'proc/diskstats': content }))
  assert.deepEqual(await read(''), { lines: [], outcome: 'success', reason: '' })
  assert.deepEqual((await read('8 0 sda 1 2 3\n')).lines, [], 'columns of an old kernel')
  assert.match(
    (await read('8 0 sda 1 2 x 4 5 6 7 8 9 10 11\n')).reason,
    /diskstats: no number in the line of sda/,
  )
  assert.match((await read('what is this\n')).reason, /diskstats: a line has no device/)
  assert.match((await read('8 0\n')).reason, /diskstats: a line has no device/)
  const { outcome, reason } = await readWith(diskstats, {}, treeOf(t, {}))
  assert.equal(outcome, 'failed')
  assert.match(reason, /ENOENT.*diskstats/)
  await survivesJunk(t, diskstats, ['proc/diskstats', 'udev/b8:0'], {}, true)
})
