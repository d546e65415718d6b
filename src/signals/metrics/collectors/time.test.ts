import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { HostFiles } from '../../../kernel/host.ts'
import { time, zoneOf } from './time.ts'

/** A file of the zoneinfo database, old form: one type, no changes. */
function zoneFile(name: string, offset: number): Buffer {
  const bytes = Buffer.alloc(44 + 6 + name.length + 1)
  bytes.write('TZif')
  bytes.writeUInt32BE(1, 36)
  bytes.writeUInt32BE(name.length + 1, 40)
  bytes.writeInt32BE(offset, 44)
  bytes.write(name, 50)
  return bytes
}

function rootOf(t: TestContext, files: Record<string, Uint8Array>) {
  const root = treeOf(t, files)
  const host = new HostFiles({ procfs: '', sysfs: '', rootfs: join(root, 'rootfs'), udev: '' })
  t.after(() => host.close())
  return { root, tree: host.root }
}

test('clocks and the time of now are shown', async () => {
  const before = Date.now() / 1000
  const { lines, outcome } = await readWith(time)
  assert.equal(outcome, 'success')
  const seconds = Number(lines.find(line => line.startsWith('node_time_seconds '))!.split(' ')[1])
  assert.ok(seconds >= before && seconds <= Date.now() / 1000)
  assert.deepEqual(
    lines.filter(line => line.includes('clocksource')),
    [
      '# TYPE node_time_clocksource_available_info gauge',
      'node_time_clocksource_available_info{clocksource="acpi_pm",device="0"} 1',
      'node_time_clocksource_available_info{clocksource="hpet",device="0"} 1',
      'node_time_clocksource_available_info{clocksource="tsc",device="0"} 1',
      '# TYPE node_time_clocksource_current_info gauge',
      'node_time_clocksource_current_info{clocksource="tsc",device="0"} 1',
    ],
  )
})

test('the zone is what /etc/localtime links to below the host’s root', async t => {
  const files = { 'rootfs/usr/share/zoneinfo/Mars/Base': zoneFile('MBT', 37 * 60) }
  const { root } = rootOf(t, files)
  mkdirSync(join(root, 'rootfs/etc'))
  symlinkSync('/usr/share/zoneinfo/Mars/Alias', join(root, 'rootfs/etc/localtime'))
  symlinkSync('Base', join(root, 'rootfs/usr/share/zoneinfo/Mars/Alias'))
  const variable = process.env.TZ
  delete process.env.TZ
  t.after(() => {
    if (variable !== undefined) process.env.TZ = variable
  })
  const { lines } = await readWith(time, {}, root)
  assert.ok(lines.includes('node_time_zone_offset_seconds{time_zone="MBT"} 2220'))
})

test('TZ comes first, and what is no zone is UTC', t => {
  const { tree } = rootOf(t, {
    'rootfs/etc/localtime': zoneFile('LOC', 60),
    'rootfs/opt/zone': zoneFile('OPT', 120),
    'rootfs/usr/share/zoneinfo/A/B': zoneFile('AAB', 180),
    'rootfs/usr/share/zoneinfo/Junk': Buffer.alloc(1024 * 1024, 'TZif2'),
  })
  const check = (variable: string | undefined, name: string) =>
    assert.equal(zoneOf(tree, variable).at(0).name, name)
  check(undefined, 'LOC')
  check('', 'UTC')
  check('A/B', 'AAB')
  check(':A/B', 'AAB')
  check('/opt/zone', 'OPT')
  check('Junk', 'UTC')
  check('Nowhere', 'UTC')
  assert.equal(zoneOf(rootOf(t, {}).tree, undefined).at(0).name, 'UTC')
})

test('junk is no clock', t =>
  survivesJunk(t, time, ['sys/devices/system/clocksource/clocksource0/current_clocksource']))
