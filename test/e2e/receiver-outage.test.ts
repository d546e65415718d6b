// owns: process
// What an outage of the receiver costs the process: CPU, attempts and memory. In a soak it lasts longer and the
// backlog is larger.
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Backlog, BacklogState } from '../helpers/backlog-shipper.ts'
import { startReceiver } from '../helpers/otlp-receiver.ts'
import { freePort, Program, pause, until } from '../helpers/program.ts'
import { runtimeEnv, runtimeFlags } from '../helpers/runtime-flags.ts'
import { soak } from '../helpers/soak.ts'

const exported = ['logs', 'traces', 'metrics'] as const

type Shipper = Program<object>

async function startShipper(t: TestContext, backlog: Omit<Backlog, 'directory'>): Promise<Shipper> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-backlog-'))
  let shipper: Shipper | undefined
  t.after(async () => {
    await shipper?.kill()
    rmSync(directory, { recursive: true })
  })
  const wanted: Backlog = { ...backlog, directory }
  shipper = await Program.start<object>('../../helpers/backlog-shipper.ts', wanted, runtimeEnv, runtimeFlags)
  return shipper
}

async function stateOf(shipper: Shipper): Promise<BacklogState> {
  const state = await shipper.ask<BacklogState>('')
  for (const signal of exported) {
    const { collected, exported, dropped, queued } = state[signal]
    assert.equal(collected, exported + dropped + queued, signal)
    assert.equal(dropped, 0, signal)
  }
  return state
}

/** Waits until the shipper's state is as wanted. */
async function untilState(shipper: Shipper, what: string, holds: (state: BacklogState) => boolean) {
  let state: BacklogState | undefined
  await until(
    () => `${what}: ${JSON.stringify(state)}`,
    60_000,
    async () => {
      state = await stateOf(shipper)
      return holds(state)
    },
  )
  return state!
}

/** CPU time of a process in seconds: utime and stime of proc(5), in the ticks of 10 ms that all of Linux shows. */
function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

/** A line of /proc/PID/status, in MiB. */
function mebibytes(pid: number, name: 'VmRSS' | 'VmHWM'): number {
  const found = readFileSync(`/proc/${pid}/status`, 'latin1').match(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm'))
  return Number(found![1]) / 1024
}

test('while the receiver refuses all, attempts are few and the CPU is left alone; then all is delivered', async t => {
  const seconds = soak ? 60 : 10
  const maxMs = 1000
  const receiver = await startReceiver({ keep: true })
  t.after(() => receiver.close())
  receiver.answer = () => ({ kind: 'refuse', code: 14 })
  const env = {
    SVC_OTLP_ENDPOINT: receiver.endpoint,
    SVC_OTLP_CONCURRENCY: '4',
    SVC_BACKOFF_INITIAL: '200ms',
    SVC_BACKOFF_MAX: `${maxMs}ms`,
  }
  const records = 20_000
  const shipper = await startShipper(t, { env, records, bytes: 100 })
  await untilState(shipper, 'there is a backlog', ({ made }) => made === records)
  // The ramp: 200, 400 and 800 ms.
  await pause(2000)
  const requestsBefore = receiver.requests.length
  const cpuBefore = cpuSeconds(shipper.pid)
  const since = performance.now()
  await pause(seconds * 1000)
  const tookMs = performance.now() - since
  const percent = (cpuSeconds(shipper.pid) - cpuBefore) / (tookMs / 100_000)
  const during = receiver.requests.slice(requestsBefore)
  t.diagnostic(`${percent.toFixed(2)} % of a CPU and ${during.length} attempts in ${Math.round(tookMs)} ms`)
  assert.ok(percent <= 5, `${percent} %`)
  for (const signal of exported) {
    const attempts = during.filter(request => request.signal === signal).length
    // Chance shortens a wait by a fifth at most.
    const most = tookMs / (maxMs * 0.8) + 1
    assert.ok(attempts >= 1 && attempts <= most, `${attempts} attempts for ${signal}, and ${most} at most`)
  }
  await stateOf(shipper)
  receiver.answer = () => ({ kind: 'ok' })
  await untilState(shipper, 'all is delivered', state => exported.every(signal => state[signal].queued === 0))
  assert.deepEqual(
    exported.map(signal => receiver.counts[signal]),
    [records, records / 100, records / 100],
  )
  assert.equal(new Set(receiver.lines.flatMap(({ body }) => body ?? [])).size, records)
})

test('a backlog far larger than the memory of its queue takes the disk, not the memory', async t => {
  const megabytes = soak ? 200 : 60
  const bytes = 1000
  const records = (megabytes * 1_000_000) / bytes
  const port = await freePort()
  const env = {
    SVC_OTLP_ENDPOINT: `127.0.0.1:${port}`,
    SVC_QUEUES_LOGS_MEM_LIMIT: '1Mi',
    SVC_OTLP_COMPRESSION: 'none',
  }
  const shipper = await startShipper(t, { env, records, bytes })
  const before = mebibytes(shipper.pid, 'VmRSS')
  await untilState(shipper, 'there is a backlog', ({ made }) => made === records)
  const full = mebibytes(shipper.pid, 'VmHWM')
  const { logs } = await stateOf(shipper)
  assert.equal(logs.queued, records)
  assert.ok(logs.queuedBytes > megabytes * 1_000_000, `${logs.queuedBytes}`)

  const arrived = new Uint8Array(records)
  const receiver = await startReceiver({ port })
  t.after(() => receiver.close())
  receiver.answer = ({ signal }, lines) => {
    if (signal === 'logs') for (const { body } of lines) arrived[Number.parseInt(body as string, 10)]!++
    return { kind: 'ok' }
  }
  await untilState(shipper, 'all is delivered', state => exported.every(signal => state[signal].queued === 0))
  const drained = mebibytes(shipper.pid, 'VmHWM')
  const text = [before, full, drained].map(Math.round).join(', ')
  t.diagnostic(`${text} MiB before, at the most with ${megabytes} MB queued, and after they were sent`)
  assert.ok(
    arrived.every(times => times === 1),
    'each arrived once',
  )
  assert.equal(receiver.counts.logs, records)
  assert.ok(drained - before < 60, text)
})
