import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { until } from '../../../test/helpers/program.ts'
import { pageSizeBytes } from '../../foundation/lib/page-size.ts'
import { TopProcesses } from './top-processes.ts'

/** A /proc of files, by a clock of the test. */
function start(t: TestContext, most = 10, mostProcesses = 4096) {
  const procfs = mkdtempSync(join(tmpdir(), 'svc-top-'))
  t.after(() => rmSync(procfs, { recursive: true, force: true }))
  const clock = { ms: 0 }
  const top = new TopProcesses({ procfs, most, mostProcesses, now: () => clock.ms })
  return {
    top,
    clock,
    uptime: (seconds: number) => writeFileSync(join(procfs, 'uptime'), `${seconds}.00 1.00\n`),
    process(pid: number, name: string, utime: number, stime: number, start: number, rssPages: number): void {
      mkdirSync(join(procfs, String(pid)), { recursive: true })
      const before = `S 1 1 1 0 -1 4194560 1 2 3 4 ${utime} ${stime} 0 0 20 0 1 0 ${start} 999 ${rssPages} 1`
      writeFileSync(join(procfs, String(pid), 'stat'), `${pid} (${name}) ${before}\n`)
    },
    end: (pid: number) => rmSync(join(procfs, String(pid)), { recursive: true }),
  }
}

const page = pageSizeBytes()

test('processes are told by what they took since the last look, at first since they began', async t => {
  const { top, clock, uptime, process, end } = start(t)
  uptime(100)
  process(10, 'idle', 0, 0, 0, 7)
  process(11, 'old', 3000, 2000, 0, 5) // 50 of 100 seconds
  process(12, 'a) R (b', 100, 0, 9000, 3) // 1 of 10 seconds
  await top.look()
  assert.deepEqual(top.list, [
    { pid: 11, comm: 'old', cpuPercent: 50, rssBytes: 5 * page },
    { pid: 12, comm: 'a) R (b', cpuPercent: 10, rssBytes: 3 * page },
    { pid: 10, comm: 'idle', cpuPercent: 0, rssBytes: 7 * page },
  ])
  clock.ms = 100
  await top.look()
  assert.equal(top.list[0]!.cpuPercent, 50, 'it is not due yet')
  clock.ms = 4000
  uptime(104)
  process(12, 'a) R (b', 400, 200, 9000, 3)
  end(10)
  await top.look()
  assert.deepEqual(
    top.list.map(({ pid, cpuPercent }) => [pid, cpuPercent]),
    [
      [12, 125],
      [11, 0],
    ],
  )
  // Another process has the number now.
  clock.ms = 8000
  uptime(108)
  process(12, 'new', 100, 0, 10_400, 3)
  await top.look()
  assert.deepEqual(top.list[0], { pid: 12, comm: 'new', cpuPercent: 25, rssBytes: 3 * page })
})

test('only the first are told, in their order, and no more are read than may be', async t => {
  const { top, uptime, process } = start(t, 5, 50)
  uptime(10)
  for (let pid = 1; pid <= 60; pid++) process(pid, `p${pid}`, (pid * 37) % 101, 0, 0, pid)
  await top.look()
  const want = Array.from({ length: 50 }, (_, i) => ((i + 1) * 37) % 101)
    .sort((a, b) => b - a)
    .slice(0, 5)
  assert.deepEqual(
    top.list.map(({ cpuPercent }) => cpuPercent * 10),
    want,
  )
})

test('without a /proc there are none, and what is no stat is passed over', async t => {
  const { top, clock, uptime, process, end } = start(t)
  uptime(10)
  process(5, 'x', 1, 1, 0, 1)
  await top.look()
  assert.equal(top.list.length, 1)
  end(5)
  clock.ms = 1e6
  await top.look()
  assert.deepEqual(top.list, [])
  const none = new TopProcesses({ procfs: '/nonexistent' })
  await none.look()
  assert.deepEqual(none.list, [])
})

test('a process that works is found on this host', async t => {
  const child = spawn(process.execPath, ['-e', 'for (;;) Math.random()'], { stdio: 'ignore' })
  t.after(() => child.kill('SIGKILL'))
  const top = new TopProcesses({ procfs: '/proc', most: 64 })
  const find = () => top.list.find(({ pid }) => pid === child.pid)
  await until('it is found at work', 30_000, async () => {
    await top.look()
    return (find()?.cpuPercent ?? 0) > 5
  })
  assert.ok(find()!.rssBytes > 10e6)
})
