// owns: host
// Tracing by perf buffers, which stand in for the ring before Linux 5.8, on a kernel that has both.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { startPeers } from '../../../test/helpers/peers.ts'
import { until } from '../../../test/helpers/program.ts'
import { hasTracefs, withoutTracepoints, withTracefs } from '../../../test/helpers/tracefs.ts'
import { loadConfig } from '../../config/index.ts'
import { createLogger } from '../../foundation/lib/logger.ts'
import { ProcessTable } from '../../identity/entities/process-table.ts'
import { openLedger } from '../../pipeline/ledger.ts'
import type { Backend } from '../../signals/capture/capture.ts'
import { SyscallCapture } from '../../signals/capture/syscall-capture.ts'
import { syscalls } from '../../signals/capture/syscalls.ts'
import { declareMetrics, type Running } from '../subsystems/running.ts'
import { traces } from '../subsystems/traces.ts'
import { Events } from './subsystem.ts'
import { Tracing } from './tracing.ts'

const skip = withoutTracepoints
const byPerf: Backend = {
  ...syscalls,
  open: (native, options, sink) => new SyscallCapture(native, syscalls, { ...options, perf: true }, sink),
}

function startTracing(env: Record<string, string>): {
  tracing: Tracing
  ledger: ReturnType<typeof openLedger>
} {
  const ledger = openLedger()
  const names = Object.entries(env).map(([key, value]) => [`SVC_AGENT_EBPF_${key}`, value])
  const { config, problems } = loadConfig({
    explicit: false,
    cwd: '/nonexistent',
    systemFile: '/nonexistent',
    env: Object.fromEntries(names),
  })
  assert.deepEqual(problems, [])
  const tracing = new Tracing(byPerf, {
    config,
    pipeline: { ledger, intake: () => ({ add: () => {} }) },
    processes: new ProcessTable({ hostName: 'here', bootId: 'boot', version: '1' }),
    log: createLogger({ level: 'error', format: 'json', write: () => {} }),
  })
  return { tracing, ledger }
}

/** What the metrics about svc tell of buffers. */
function buffers(tracing: Tracing): { received: number; lost: number; ring: readonly number[] } {
  const agent = { of: () => tracing, faults: () => [] } as unknown as Running
  const page = declareMetrics([traces], 'svc', new Events(), () => agent).registry.write()
  const sum = (name: string) =>
    [...page.matchAll(new RegExp(`^svc_ebpf_${name}(?:\\{.*\\})? (\\d+)$`, 'gm'))].reduce(
      (all, [, events]) => all + Number(events),
      0,
    )
  const ring = [sum('ringbuf_events_total'), sum('ringbuf_lost_total')]
  return { received: sum('perf_events_total'), lost: sum('perf_lost_total'), ring }
}

function check(name: string, body: () => Promise<void>): void {
  if (hasTracefs || skip !== false) test(name, { skip }, body)
}

if (!hasTracefs && skip === false)
  test('where tracefs is mounted', () => {
    const [command, ...args] = [...withTracefs, process.execPath, '--test', import.meta.filename]
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const { status, stdout } = spawnSync(command!, args, { env, encoding: 'utf8' })
    assert.equal(status, 0, stdout)
  })

check(
  'events of perf buffers are counted by CPU, and what finds no room has a reason of its own',
  async () => {
    const peers = await startPeers()
    const { tracing, ledger } = startTracing({
      PERF_BUFFER_SIZE: '32Ki',
      NETWORK_INCLUDE_PORTS: String(peers.port),
    })
    try {
      await until('requests are told', 20_000, async () => {
        await peers.requests(2, '/status/200')
        tracing.sync()
        return (tracing.collected.get('http') ?? 0) > 0
      })
      assert.deepEqual(buffers(tracing).ring, [0, 0])
      assert.ok(buffers(tracing).received > 0)
      const before = buffers(tracing).lost
      const asked = peers.requests(3_000, '/status/200')
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_500)
      await asked
      await peers.requests(100, '/status/200') // behind a loss the kernel tells of it
      await until('what was lost is told', 20_000, () => {
        tracing.sync()
        return buffers(tracing).lost > before && (ledger.traces.dropped.get('perf_full') ?? 0) > 0
      })
      assert.equal(ledger.traces.dropped.get('ring_full'), undefined)
    } finally {
      tracing.stop()
      await tracing.close()
      await peers.close()
    }
  },
)
