import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { treeOf } from '../../../../test/helpers/collector.ts'
import { HostFiles } from '../../../kernel/host.ts'
import { cpuList, parseCpus } from './_cpus.ts'

test('a list of CPUs is numbers and ranges', () => {
  const check = (text: string, want: number[]) => assert.deepEqual(parseCpus(text, 'file'), want)
  check('', [])
  check('0', [0])
  check('1,3-5,9', [1, 3, 4, 5, 9])
  for (const text of ['a', '3-', '5-3', '-1', '0-99999', '1.5', '0-65535,0-65535'])
    assert.throws(() => parseCpus(text, 'file'), { message: 'cannot read file: not a list of CPUs' }, text)
})

test('the list stays the same until a CPU comes or goes, is switched on or off', t => {
  const root = treeOf(t, {
    'sys/devices/system/cpu/online': '0-1\n',
    'sys/devices/system/cpu/cpu0/x': '',
    'sys/devices/system/cpu/cpu1/x': '',
    'sys/devices/system/cpu/cpufreq/x': '',
  })
  const host = new HostFiles({ procfs: '', sysfs: join(root, 'sys'), rootfs: '', udev: '' })
  t.after(() => host.close())
  const cpus = cpuList(host.sys)
  const before = cpus()
  assert.deepEqual(before, [
    { number: '0', path: 'devices/system/cpu/cpu0' },
    { number: '1', path: 'devices/system/cpu/cpu1' },
  ])
  mkdirSync(join(root, 'sys/devices/system/cpu/cpu10'))
  assert.equal(cpus(), before)
  writeFileSync(join(root, 'sys/devices/system/cpu/online'), '0-1,10\n')
  assert.deepEqual(
    cpus().map(({ number }) => number),
    ['0', '1', '10'],
  )
})
