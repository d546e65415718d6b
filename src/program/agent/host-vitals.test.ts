import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { hostTree } from '../../../test/helpers/collector.ts'
import { until } from '../../../test/helpers/program.ts'
import { type VitalId, Vitals, vitalSeries } from '../../view/window/vitals.ts'
import { HostVitals } from './host-vitals.ts'

/** A tree of files that a test changes, and its readings by a clock of the test. */
function start(t: TestContext) {
  const root = mkdtempSync(join(tmpdir(), 'svc-vitals-'))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  cpSync(join(hostTree, 'proc'), join(root, 'proc'), { recursive: true })
  cpSync(join(hostTree, 'sys/block'), join(root, 'sys/block'), { recursive: true })
  const clock = { ms: 1000 }
  const now = () => clock.ms
  const vitals = new Vitals({ windowMs: 900_000, maxBytes: 1 << 20, now })
  const paths = { procfs: join(root, 'proc'), sysfs: join(root, 'sys'), rootfs: root, udev: root }
  const reader = new HostVitals({ paths, vitals, now })
  t.after(() => reader.stop())
  const ids = Object.keys(vitalSeries) as VitalId[]
  return {
    root,
    vitals,
    look(): void {
      clock.ms += 1000
      reader.look()
    },
    pass(ms: number): void {
      clock.ms += ms
    },
    /** Replaces in a file of /proc. */
    edit(path: string, change: (text: string) => string): void {
      const file = join(root, 'proc', path)
      writeFileSync(file, change(readFileSync(file, 'latin1')))
    },
    value: (id: VitalId) => vitals.values(vitals.newest)[ids.indexOf(id)],
  }
}

test('CPU time is told as parts of all time that passed', t => {
  const host = start(t)
  const line = (ticks: readonly number[]) => (text: string) =>
    text.replace(/^cpu {2}.*$/m, `cpu  ${ticks.join(' ')} 0 0`)
  host.edit('stat', line([100, 0, 100, 1000, 50, 5, 5, 0]))
  host.look()
  assert.equal(host.value('cpuUser'), null, 'one reading says nothing')
  host.edit('stat', line([140, 10, 120, 1100, 60, 10, 10, 10]))
  host.look()
  const ids = ['cpuUser', 'cpuNice', 'cpuSystem', 'cpuIowait', 'cpuIrq', 'cpuSteal'] as const
  assert.deepEqual(ids.map(host.value), [20, 5, 10, 5, 5, 5])
  // Waiting time may fall.
  host.edit('stat', line([140, 10, 120, 1200, 40, 10, 10, 10]))
  host.look()
  assert.deepEqual(ids.map(host.value), [0, 0, 0, 0, 0, 0])
})

test('memory is what free(1) has, and its parts are all of it', t => {
  const host = start(t)
  host.edit(
    'meminfo',
    () =>
      'MemTotal:       1000 kB\nMemFree:         400 kB\nMemAvailable:    700 kB\nBuffers:          50 kB\n' +
      'Cached:          200 kB\nSwapCached:        0 kB\nSwapTotal:       100 kB\nSwapFree:         60 kB\n' +
      'SReclaimable:     50 kB\n',
  )
  host.look()
  const ids = ['memoryUsed', 'memoryBuffers', 'memoryCache', 'memoryFree', 'swapUsed'] as const
  assert.deepEqual(
    ids.map(id => host.value(id)! / 1024),
    [300, 50, 250, 400, 40],
  )
  assert.deepEqual(
    [host.vitals.facts.memoryBytes, host.vitals.facts.memoryAvailableBytes],
    [1000 * 1024, 700 * 1024],
  )
})

test('disks count, and what is built of them does not count again', t => {
  const host = start(t)
  host.look()
  host.edit(
    'diskstats',
    text =>
      text
        .replace(' 9216734 ', ' 9216744 ') // sda, 10 sectors
        .replace(' 9210118 ', ' 9210128 ') // sda1
        .replace(' 9190012 ', ' 9190022 ') // dm-0
        .replace(' 402112 ', ' 402116 '), // sdb, 4 sectors written
  )
  host.look()
  assert.deepEqual([host.value('diskRead'), host.value('diskWritten')], [5120, 2048])
  // A disk that is plugged in brings no leap.
  host.edit('diskstats', text => `${text}   8      32 sdc 1 0 999999 0 1 0 999999 0 0 0 0\n`)
  host.look()
  assert.deepEqual([host.value('diskRead'), host.value('diskWritten')], [0, 0])
})

test('network devices count by their bytes, loopback by itself', t => {
  const host = start(t)
  host.look()
  host.edit('net/dev', text =>
    text.replace('lo: 91234', 'lo: 92234').replace(' 812003311 ', ' 812003811 ').replace(' 1296 ', ' 1396 '),
  )
  host.look()
  // Neither is known to be of hardware, so both count.
  assert.deepEqual([host.value('netSent'), host.value('netLoopback')], [600, 1000])
})

test('pressure is the part of the time in which tasks waited', t => {
  const host = start(t)
  const total = (us: number) => () => `some avg10=0.00 avg60=0.00 avg300=0.00 total=${us}\n`
  host.edit('pressure/io', total(5_000_000))
  host.look()
  host.edit('pressure/io', total(5_250_000))
  host.look()
  assert.equal(host.value('pressureIo'), 25)
})

test('TCP faults are found by their names, in whatever order the kernel has them', t => {
  const host = start(t)
  const snmp = (order: readonly string[], values: Readonly<Record<string, number>>) => () =>
    `Ip: Forwarding\nIp: 1\nTcp: ${order.join(' ')}\nTcp: ${order.map(name => values[name] ?? 0).join(' ')}\n`
  host.edit('net/snmp', snmp(['A', 'RetransSegs', 'OutRsts'], { RetransSegs: 10, OutRsts: 7 }))
  host.look()
  host.edit('net/snmp', snmp(['A', 'RetransSegs', 'OutRsts'], { RetransSegs: 14, OutRsts: 8 }))
  host.look()
  assert.deepEqual([host.value('tcpRetransmits'), host.value('tcpResets')], [4, 1])
  host.edit('net/snmp', snmp(['OutRsts', 'B', 'C', 'RetransSegs'], { RetransSegs: 15, OutRsts: 10 }))
  host.look()
  assert.deepEqual([host.value('tcpRetransmits'), host.value('tcpResets')], [1, 2])
})

test('a file that is not there leaves its lines empty until it comes, and others alone', t => {
  const host = start(t)
  rmSync(join(host.root, 'proc/meminfo'))
  rmSync(join(host.root, 'proc/pressure'), { recursive: true })
  writeFileSync(join(host.root, 'proc/stat'), '')
  writeFileSync(join(host.root, 'proc/net/snmp'), 'Tcp: RetransSegs\nTcp:')
  writeFileSync(join(host.root, 'proc/net/netstat'), 'TcpExt: ListenOverflows\nTcpExt: x\n')
  for (let i = 0; i < 3; i++) host.look()
  const missing = ['cpuUser', 'memoryUsed', 'pressureIo', 'tcpRetransmits', 'tcpRefused'] as const
  assert.deepEqual(
    missing.map(host.value),
    missing.map(() => null),
  )
  assert.equal(host.value('diskRead'), 0)
  cpSync(join(hostTree, 'proc/meminfo'), join(host.root, 'proc/meminfo'))
  host.pass(60_000)
  host.look()
  assert.ok(host.value('memoryFree')! > 0)
})

test('a gap makes no leap: after it rates begin anew', t => {
  const host = start(t)
  host.look()
  host.pass(30_000)
  host.edit('net/dev', text => text.replace('lo: 91234', 'lo: 9999999'))
  host.look()
  assert.deepEqual([host.value('netLoopback'), host.value('diskRead')], [null, null])
  host.look()
  assert.deepEqual([host.value('netLoopback'), host.value('diskRead')], [0, 0])
})

test('this host is read each second, and the process may end meanwhile', async t => {
  const vitals = new Vitals({ windowMs: 900_000, maxBytes: 1 << 20 })
  const paths = { procfs: '/proc', sysfs: '/sys', rootfs: '/', udev: '/run/udev/data' }
  const reader = new HostVitals({ paths, vitals })
  t.after(() => reader.stop())
  reader.start()
  const ids = Object.keys(vitalSeries) as VitalId[]
  const now = () => vitals.values(vitals.newest)
  const of = (id: VitalId) => now()[ids.indexOf(id)] ?? Number.NaN
  // Some of them are of two seconds that are not too far apart.
  const rates = ['cpuUser', 'netReceived', 'netLoopback', 'tcpRetransmits'] as const
  await until('two seconds are read', 60_000, () => rates.every(id => of(id) >= 0))
  const all = ['cpuUser', 'cpuNice', 'cpuSystem', 'cpuIowait', 'cpuIrq', 'cpuSteal'] as const
  const used = all.map(of).reduce((sum, value) => sum + value, 0)
  assert.ok(used >= 0 && used <= 100.1, String(used))
  const memory = (['memoryUsed', 'memoryBuffers', 'memoryCache', 'memoryFree'] as const).map(of)
  const sum = memory.reduce((total, value) => total + value, 0)
  assert.ok(Math.abs(sum - vitals.facts.memoryBytes) < 1 << 20, `${sum} of ${vitals.facts.memoryBytes}`)
  assert.ok(vitals.facts.agentCpuPercent >= 0)
})
