import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, treeOf } from '../../../../test/helpers/collector.ts'
import { cgroup_usage } from './cgroup_usage.ts'

const v2 = 'cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n'

const readings = async (root: string) => {
  const { lines, outcome, reason } = await readWith(cgroup_usage, {}, root)
  return { lines: lines.filter(line => !line.startsWith('#')), outcome, reason }
}

test('leaf groups of version 2 are shown', async t => {
  const group = (usec: number, bytes: number) => [`usage_usec ${usec}\nuser_usec 1\n`, `${bytes}\n`] as const
  const files: Record<string, string> = {
    'proc/1/mounts': `proc /proc proc rw 0 0\n${v2}`,
    'rootfs/sys/fs/cgroup/cgroup.controllers': 'cpuset cpu io memory pids\n',
    'rootfs/sys/fs/cgroup/system.slice/cpu.stat': 'usage_usec 999\n',
  }
  for (const [name, [cpu, memory]] of [
    ['system.slice/ssh.service', group(2_500_000, 4096)],
    ['system.slice/cron.service', group(0, 0)],
    ['kubepods/pod1/app', group(7_000_000_000, 1_073_741_824)],
  ] as const) {
    files[`rootfs/sys/fs/cgroup/${name}/cpu.stat`] = cpu
    files[`rootfs/sys/fs/cgroup/${name}/memory.current`] = memory
  }
  const { lines, outcome } = await readings(treeOf(t, files))
  assert.equal(outcome, 'success')
  assert.deepEqual(lines, [
    'node_cgroup_cpu_usage_seconds_total{cgroup="/kubepods/pod1/app"} 7000',
    'node_cgroup_cpu_usage_seconds_total{cgroup="/system.slice/cron.service"} 0',
    'node_cgroup_cpu_usage_seconds_total{cgroup="/system.slice/ssh.service"} 2.5',
    'node_cgroup_memory_usage_bytes{cgroup="/kubepods/pod1/app"} 1.073741824e+09',
    'node_cgroup_memory_usage_bytes{cgroup="/system.slice/cron.service"} 0',
    'node_cgroup_memory_usage_bytes{cgroup="/system.slice/ssh.service"} 4096',
  ])
})

test('version 1, and version 2 beside it without controllers', async t => {
  const root = treeOf(t, {
    'proc/1/mounts': [
      'cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0',
      'cgroup /sys/fs/cgroup/with\\040space cgroup rw,memory 0 0',
      'cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0',
      '',
    ].join('\n'),
    'rootfs/sys/fs/cgroup/unified/cgroup.controllers': '\n',
    'rootfs/sys/fs/cgroup/unified/web/cpu.stat': 'usage_usec 5\n',
    'rootfs/sys/fs/cgroup/cpu,cpuacct/web/cpuacct.usage': '1500000000\n',
    'rootfs/sys/fs/cgroup/with space/web/memory.usage_in_bytes': '12288\n',
  })
  const { lines } = await readings(root)
  assert.deepEqual(lines, [
    'node_cgroup_cpu_usage_seconds_total{cgroup="/web"} 1.5',
    'node_cgroup_memory_usage_bytes{cgroup="/web"} 12288',
  ])
})

test('the number of groups is bounded', async t => {
  const files: Record<string, string> = {
    'proc/1/mounts': v2,
    'rootfs/sys/fs/cgroup/cgroup.controllers': 'memory\n',
  }
  for (let i = 0; i < 600; i++) files[`rootfs/sys/fs/cgroup/g${i}/memory.current`] = `${i}\n`
  const { lines } = await readings(treeOf(t, files))
  assert.equal(lines.length, 500)
})

test('no control groups are no data, and junk is a failure', async t => {
  assert.deepEqual(
    (await readings(treeOf(t, { 'proc/1/mounts': 'proc /proc proc rw 0 0\n' }))).outcome,
    'no_data',
  )
  assert.deepEqual((await readings(treeOf(t, { 'proc/1/mounts': '\0\xff'.repeat(1000) }))).outcome, 'no_data')
  for (const junk of ['', 'many', '\0\x01', 'x '.repeat(500_000)]) {
    const root = treeOf(t, {
      'proc/1/mounts': v2,
      'rootfs/sys/fs/cgroup/cgroup.controllers': 'memory\n',
      'rootfs/sys/fs/cgroup/a/memory.current': junk,
    })
    assert.equal((await readings(root)).outcome, 'failed', JSON.stringify(junk.slice(0, 20)))
  }
})
