import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { copyOfTree, readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { silentLogger } from '../../../../test/helpers/silent-logger.ts'
import type { Family, Readings } from '../../../foundation/model/collector.ts'
import { HostFiles } from '../../../kernel/host.ts'
import { cpu, parseCpuinfo } from './cpu.ts'

const of = (lines: readonly string[], family: string) =>
  lines.filter(line => line.startsWith(`node_cpu_${family}{`)).map(line => line.slice('node_cpu_'.length))

test('ticks become seconds, by CPU and mode', async () => {
  const { lines, outcome } = await readWith(cpu)
  assert.equal(outcome, 'success')
  assert.deepEqual(of(lines, 'seconds_total').slice(0, 8), [
    'seconds_total{cpu="0",mode="idle"} 9170',
    'seconds_total{cpu="0",mode="iowait"} 14',
    'seconds_total{cpu="0",mode="irq"} 0',
    'seconds_total{cpu="0",mode="nice"} 3',
    'seconds_total{cpu="0",mode="softirq"} 5',
    'seconds_total{cpu="0",mode="steal"} 0.32',
    'seconds_total{cpu="0",mode="system"} 62',
    'seconds_total{cpu="0",mode="user"} 201.1',
  ])
  assert.equal(of(lines, 'seconds_total').length, 3 * 8)
  assert.deepEqual(of(lines, 'guest_seconds_total').slice(0, 3), [
    'guest_seconds_total{cpu="0",mode="nice"} 0.2',
    'guest_seconds_total{cpu="0",mode="user"} 40',
    'guest_seconds_total{cpu="1",mode="nice"} 0',
  ])
})

test('heat is shown once by core and by processor, isolation by CPU', async () => {
  const { lines } = await readWith(cpu, { guest: false })
  assert.deepEqual(
    lines.filter(line => !line.includes('cpu_seconds_total')),
    [
      '# TYPE node_cpu_core_throttles_total counter',
      'node_cpu_core_throttles_total{core="0",package="0"} 10',
      'node_cpu_core_throttles_total{core="1",package="0"} 11',
      '# TYPE node_cpu_isolated gauge',
      'node_cpu_isolated{cpu="1"} 1',
      'node_cpu_isolated{cpu="2"} 1',
      '# TYPE node_cpu_package_throttles_total counter',
      'node_cpu_package_throttles_total{package="0"} 40',
    ],
  )
})

test('which CPUs are on is shown where the first one can be switched off', async t => {
  const root = copyOfTree(t)
  writeFileSync(join(root, 'sys/devices/system/cpu/cpu0/online'), '1\n')
  const { lines } = await readWith(cpu, {}, root)
  assert.deepEqual(of(lines, 'online'), [
    'online{cpu="0"} 1',
    'online{cpu="1"} 1',
    'online{cpu="2"} 1',
    'online{cpu="3"} 0',
  ])
})

test('a description is shown where it, its flags or its bugs are asked for', async () => {
  const { lines } = await readWith(cpu, { info: true })
  assert.deepEqual(
    of(lines, 'info').map(line => line.replace(/,family.*(?=,package)/, '')),
    [
      'info{cachesize="22528 KB",core="0",cpu="0",package="0",stepping="7",vendor="GenuineIntel"} 1',
      'info{cachesize="22528 KB",core="1",cpu="1",package="0",stepping="7",vendor="GenuineIntel"} 1',
    ],
  )
  assert.match(
    of(lines, 'info')[0]!,
    /,family="6",microcode="0x5003604",model="85",model_name="Intel\(R\) Xeon\(R\) Gold 6226R CPU @ 2.90GHz",/,
  )
  assert.deepEqual(of(lines, 'frequency_hertz'), [
    'frequency_hertz{core="0",cpu="0",package="0"} 2.893202e+09',
    'frequency_hertz{core="1",cpu="1",package="0"} 1.2005e+09',
  ])
  assert.deepEqual(of(lines, 'flag_info'), [])
  const flags = await readWith(cpu, { info_flags_include: '^avx.?$' })
  assert.deepEqual(of(flags.lines, 'flag_info'), ['flag_info{flag="avx"} 1', 'flag_info{flag="avx2"} 1'])
  assert.equal(of(flags.lines, 'info').length, 2)
  assert.deepEqual(of(flags.lines, 'bug_info'), [])
  const bugs = await readWith(cpu, { info_bugs_include: '^mds$' })
  assert.deepEqual(of(bugs.lines, 'bug_info'), ['bug_info{bug="mds"} 1'])
})

test('on arm64 the kernel says less', () => {
  const block = (number: number) =>
    `processor\t: ${number}\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd\nCPU part\t: 0xd0c\n\n`
  const all = parseCpuinfo(`${block(0)}${block(1)}Hardware\t: none\n`)
  assert.deepEqual(
    all.map(fields => [fields.get('processor'), fields.get('Features'), fields.has('Hardware')]),
    [
      ['0', 'fp asimd', false],
      ['1', 'fp asimd', false],
    ],
  )
})

/** Reads a tree again and again with one reader: what it answers are values by `<cpu> <mode>`. */
function watch(t: TestContext, stat: string) {
  const root = treeOf(t, { 'proc/stat': stat })
  const host = new HostFiles({ procfs: join(root, 'proc'), sysfs: join(root, 'sys'), rootfs: '', udev: '' })
  t.after(() => host.close())
  const reader = cpu.start(
    { guest: false, info: false, info_flags_include: '', info_bugs_include: '' },
    { host, log: silentLogger },
  )
  return (next = stat) => {
    writeFileSync(join(root, 'proc/stat'), next)
    const values = new Map<string, number>()
    const set = (_family: Family, value: number, number?: string, mode?: string) =>
      void values.set(`${number} ${mode}`, value)
    reader.collect({ set } as Readings)
    return values
  }
}

test('times never fall, unless idle time falls by three seconds: then the CPU is another one', t => {
  const read = watch(t, 'cpu0 1000 0 500 90000 70 0 0 0 0 0\n')
  read()
  const less = read('cpu0 999 0 501 89701 60 0 0 0 0 0\n')
  assert.equal(less.get('0 user'), 10)
  assert.equal(less.get('0 system'), 5.01)
  assert.equal(less.get('0 idle'), 900)
  assert.equal(less.get('0 iowait'), 0.7)
  const reset = read('cpu0 3 0 2 89700 1 0 0 0 0 0\n')
  assert.equal(reset.get('0 user'), 0.03)
  assert.equal(reset.get('0 idle'), 897)
})

test('a CPU that is switched off is no longer shown, and begins anew when it is back', t => {
  const zero = 'cpu0 1 0 0 500 0 0 0 0 0 0\n'
  const read = watch(t, `${zero}cpu1 900 0 0 600 0 0 0 0 0 0\n`)
  assert.equal(read().size, 16)
  assert.equal(read(zero).size, 8)
  assert.equal(read(`${zero}cpu1 5 0 0 599 0 0 0 0 0 0\n`).get('1 user'), 0.05)
})

test('old kernels have fewer modes', t => {
  const values = watch(t, 'cpu0 100 0 300 400\nctxt 1\n')()
  assert.equal(values.get('0 idle'), 4)
  assert.equal(values.get('0 steal'), 0)
})

test('junk is no success', async t => {
  await survivesJunk(t, cpu, ['proc/stat'])
  await survivesJunk(t, cpu, ['proc/cpuinfo'], { info: true })
  await survivesJunk(t, cpu, ['sys/devices/system/cpu/isolated'], {}, true)
  await survivesJunk(t, cpu, ['sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count'])
})

test('what was read before a fault stays on the page', async t => {
  const root = copyOfTree(t)
  rmSync(join(root, 'proc/stat'))
  const { lines, outcome } = await readWith(cpu, { info: true }, root)
  assert.equal(outcome, 'failed')
  assert.equal(of(lines, 'info').length, 2)
})
