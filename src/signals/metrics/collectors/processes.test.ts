import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { readWith, treeOf } from '../../../../test/helpers/collector.ts'
import { silentLogger } from '../../../../test/helpers/silent-logger.ts'
import type { Family, Readings } from '../../../foundation/model/collector.ts'
import { HostFiles } from '../../../kernel/host.ts'
import { processes } from './processes.ts'

/** A line of /proc/<pid>/stat. */
function stat(pid: number, name: string, state: string, threads = 1): string {
  return `${pid} (${name}) ${state} 1 ${pid} ${pid} 0 -1 4194560 9 0 0 0 1 1 0 0 20 0 ${threads} 0 29 1096 25\n`
}

const limits = { 'proc/sys/kernel/threads-max': '127032\n', 'proc/sys/kernel/pid_max': '4194304\n' }

test('processes and threads are counted by state', async t => {
  const root = treeOf(t, {
    ...limits,
    'proc/1/stat': stat(1, 'init', 'S'),
    'proc/1/task/1/stat': stat(1, 'init', 'S'),
    'proc/70/stat': stat(70, 'a (b) R 1) c', 'S', 3),
    'proc/70/task/70/stat': stat(70, 'a', 'S', 3),
    'proc/70/task/71/stat': stat(71, 'a) D', 'R', 3),
    'proc/70/task/72/nothing': '',
    'proc/80/nothing': '',
    'proc/9x/stat': 'x',
  })
  const { lines, outcome } = await readWith(processes, {}, root)
  assert.equal(outcome, 'success')
  assert.deepEqual(
    lines.filter(line => !line.startsWith('#')),
    [
      'node_processes_max_processes 4.194304e+06',
      'node_processes_max_threads 127032',
      'node_processes_pids 2',
      'node_processes_state{state="S"} 2',
      'node_processes_threads 4',
      'node_processes_threads_state{thread_state="R"} 1',
      'node_processes_threads_state{thread_state="S"} 2',
    ],
  )
})

test('limits that are not there are a fault, as is a stat that is none', async t => {
  const noLimits = await readWith(processes, {}, treeOf(t, { 'proc/1/stat': stat(1, 'init', 'S') }))
  assert.equal(noLimits.outcome, 'failed')
  assert.match(noLimits.reason, /threads-max/)
  for (const junk of ['', '1 (init', '1 (init) S 1', stat(1, 'init', 'SS'), ') '.repeat(500_000)]) {
    const { outcome, lines } = await readWith(processes, {}, treeOf(t, { ...limits, 'proc/1/stat': junk }))
    assert.equal(outcome, 'failed', junk.slice(0, 40))
    assert.deepEqual(lines, [])
  }
})

test('the threads of this host are counted in pieces, and no file of theirs stays open', async t => {
  const workers = Array.from({ length: 8 }, () => new Worker('setInterval(() => {}, 1000)', { eval: true }))
  t.after(() => Promise.all(workers.map(worker => worker.terminate())))
  await Promise.all(workers.map(worker => once(worker, 'online')))
  const host = new HostFiles({ procfs: '/proc', sysfs: '/sys', rootfs: '/', udev: '' })
  t.after(() => host.close())
  const reader = processes.start({}, { host, log: silentLogger })
  const values = new Map<string, number>()
  const set = (family: Family, value: number) => void values.set(family.name, value)
  const open = readdirSync('/proc/self/fd').length
  await reader.wait!(new AbortController().signal)
  assert.equal(readdirSync('/proc/self/fd').length, open)
  reader.collect({ set } as Readings)
  assert.ok(values.get('processes_threads')! > values.get('processes_pids')! + 8)
  await assert.rejects(async () => reader.wait!(AbortSignal.abort()), { name: 'AbortError' })
})
