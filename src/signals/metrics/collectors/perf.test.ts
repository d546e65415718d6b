import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { readWith, treeOf } from '../../../../test/helpers/collector.ts'
import { loadNative, Unsupported } from '../../../kernel/native.ts'
import { parseCpus, perf } from './perf.ts'

const skip = whyNot()
const onlySoftware = { disable_hardware_profilers: true, disable_cache_profilers: true }

/** Why this host counts nothing: the kernel or this process's rights. */
function whyNot(): string | false {
  const native = loadNative()
  if (native instanceof Unsupported) return native.reason
  return process.getuid?.() === 0 ? false : 'needs root'
}

/** A tree with this host's CPUs. */
function treeWithCpus(t: TestContext): string {
  return treeOf(t, { 'sys/devices/system/cpu/online': readFileSync('/sys/devices/system/cpu/online') })
}

const openEvents = () =>
  readdirSync('/proc/self/fd').filter(fd => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).includes('perf_event')
    } catch {
      return false // the directory's own descriptor
    }
  }).length

test('counters of the kernel rise on each CPU', { skip }, async t => {
  const cpus = parseCpus(readFileSync('/sys/devices/system/cpu/online', 'utf8').trim())
  let during = 0
  const { lines, outcome, reason } = await readWith(perf, onlySoftware, treeWithCpus(t), async () => {
    during = openEvents()
    await new Promise(resolve => setTimeout(resolve, 20))
  })
  assert.equal(outcome, 'success', reason)
  assert.equal(during, cpus.length * 5)
  assert.equal(openEvents(), 0)
  const names = ['context_switches', 'cpu_migrations', 'major_faults', 'minor_faults', 'page_faults']
  assert.deepEqual(
    lines.map(line => line.replace(/ \d+(\.\d+e\+\d+)?$/, '')),
    names.flatMap(name => [
      `# TYPE node_perf_${name}_total counter`,
      ...cpus.map(cpu => `node_perf_${name}_total{cpu="${cpu}"}`),
    ]),
  )
  const sum = lines
    .filter(line => /context_switches_total\{/.test(line))
    .map(line => Number(line.split(' ')[1]))
  assert.ok(sum.reduce((a, b) => a + b) > 0)
})

test('counters and CPUs are chosen by name; what this machine has not is left out', { skip }, async t => {
  const options = { software_profilers: ['ContextSwitch', 'NoSuch'], cpus: '0' }
  const { lines, outcome } = await readWith(perf, options, treeWithCpus(t))
  assert.equal(outcome, 'success')
  const kernels = lines.filter(line => /^node_perf_(context|page|cpu_m|m)/.test(line))
  assert.equal(kernels.length, 1)
  assert.match(kernels[0]!, /^node_perf_context_switches_total\{cpu="0"\} \d/)
})

test('tracepoints are counted; one that does not exist fails, and all else is shown', { skip }, async t => {
  const root = treeWithCpus(t)
  const tracing = join(root, 'sys/kernel/tracing')
  mkdirSync(tracing, { recursive: true })
  execFileSync('mount', ['-t', 'tracefs', 'tracefs', tracing])
  try {
    const only = { ...onlySoftware, disable_software_profilers: true, cpus: '0' }
    const good = await readWith(perf, { ...only, tracepoint: ['sched:sched_switch'] }, root, async () => {
      await new Promise(resolve => setTimeout(resolve, 20))
    })
    assert.equal(good.reason, '')
    assert.match(good.lines.join('\n'), /^# TYPE node_perf_sched_sched_switch counter\n.*\{cpu="0"\} \d/)
    const bad = await readWith(perf, { ...onlySoftware, cpus: '0', tracepoint: ['no:such'] }, root)
    assert.equal(bad.outcome, 'failed')
    assert.match(bad.reason, /cannot count the tracepoint no:such/)
    assert.equal(bad.lines.filter(line => !line.startsWith('#')).length, 5)
  } finally {
    // Before the tree is deleted.
    execFileSync('umount', [tracing])
  }
})

test('where nothing can be counted there is no data', { skip }, async t => {
  const root = treeWithCpus(t)
  const none = { ...onlySoftware, disable_software_profilers: true }
  assert.equal((await readWith(perf, none, root)).outcome, 'no_data')
  const { outcome, reason } = await readWith(perf, { ...onlySoftware, cpus: '65535' }, root)
  assert.equal(outcome, 'no_data')
  assert.match(reason, /cannot count MajorFault/)
  const junk = await readWith(
    perf,
    onlySoftware,
    treeOf(t, { 'sys/devices/system/cpu/online': 'x '.repeat(500_000) }),
  )
  assert.equal(junk.outcome, 'failed')
})

test('lists of CPUs are read as they are written', async () => {
  const check = (text: string, cpus: readonly number[]) => assert.deepEqual(parseCpus(text), cpus)
  check('3', [3])
  check('0-3,8', [0, 1, 2, 3, 8])
  check('1-10:5, 2', [1, 6, 2])
  for (const bad of ['', 'a', '1-', '0-99999999', '0-70000', '0-3:0', '-1', '1,,2'])
    assert.throws(() => parseCpus(bad), /use a form such as 0-3,8/)
  await assert.rejects(readWith(perf, { cpus: 'all' }), /invalid CPU list/)
  for (const tracepoint of ['sched', 'a:b:c', '../a:b', 'a:'])
    await assert.rejects(readWith(perf, { tracepoint: [tracepoint] }), /use group:name/)
})
