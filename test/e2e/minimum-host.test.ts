// owns: processor
// The smallest host that the specification names: 200m of CPU and 256 MB for an agent with everything on, under light
// load, while its receiver is away. Light load is of the host: nothing else starts processes meanwhile.

import assert from 'node:assert/strict'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, test } from 'node:test'
import { AgentProcess, type Tree } from '../helpers/agent-process.ts'
import { withoutBpf } from '../helpers/compile-bpf.ts'
import { type Peers, startPeers } from '../helpers/peers.ts'
import { freePort, pause, until } from '../helpers/program.ts'
import { ResourceGroup, withoutResourceGroup } from '../helpers/resource-group.ts'
import { soak } from '../helpers/soak.ts'
import { client, server, Telemetry } from '../helpers/telemetry.ts'

const skip = withoutBpf || withoutResourceGroup
const awaySeconds = soak ? 600 : 8
/** What waited is sent beside what comes, with a fifth of a core. */
const arriveMs = 60_000 + awaySeconds * 1000
const timeout = awaySeconds * 1000 + 3 * arriveMs
/** Left out by settings: paths such as /ready, and what a busy host has beyond the most series. */
const asSet = new Set(['excluded_path', 'cardinality'])
/** Every tenth of a second. */
const perStep = { requests: 2, lines: 3 }
const memoryBytes = 256_000_000
const open: { close(): Promise<unknown> }[] = []

afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
})

/** Everything that can be switched on, the processors included. What else stays is as it is by default. */
function everythingOn(directory: string, exporterPort: number): Tree {
  const on = { enabled: true }
  return {
    agent: {
      ebpf: {
        process: on,
        syscalls: on,
        network: { tcp_metrics: true, flows: true, sampling: { max_spans_per_second: 20_000 } },
      },
      profiling: { enabled: true, cpu: true, off_cpu: true, memory: true },
      logs: {
        enabled: true,
        journald: true,
        paths: [join(directory, '*.log')],
        position_file: join(directory, 'positions'),
        multiline: { enabled: true, pattern: '^\\s' },
      },
      discovery: on,
      gpu: on,
      nodeexporter: { enabled: true, listen_address: `127.0.0.1:${exporterPort}`, otlp: on },
    },
    pipeline: {
      pii_redaction: on,
      transform: on,
      limits: { rate: on },
      export: { queue: { enabled: true, directory: join(directory, 'queue') } },
    },
    self_telemetry: { debug: true, tracing: { enabled: true, sample_rate: 1 } },
    // Retries as users have them.
    backoff: { initial: '500ms', max: '30s' },
  }
}

/** Requests and lines at an even pace; returns how many there were of each. */
async function lightLoad(
  peers: Peers,
  log: string,
  seconds: number,
): Promise<{ requests: number; lines: number }> {
  let requests = 0
  let lines = 0
  const until = performance.now() + seconds * 1000
  while (performance.now() < until) {
    await peers.requests(perStep.requests, '/status/200')
    requests += perStep.requests
    for (let i = 0; i < perStep.lines; i++) appendFileSync(log, `line ${lines++} of a shop that sells\n`)
    await pause(100)
  }
  return { requests, lines }
}

test('with 200m of CPU and 256 MB it lives through an absent receiver, and loses nothing', {
  skip,
  timeout,
}, async t => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-minimum-'))
  open.push({ close: async () => rmSync(directory, { recursive: true, force: true }) })
  const group = new ResourceGroup({ cpus: 0.2, memoryBytes })
  open.push({ close: () => group.end() })
  const peers = await startPeers()
  open.push(peers)
  const log = join(directory, 'shop.log')
  writeFileSync(log, '')
  const receiverPort = await freePort()
  const agent = await AgentProcess.start({
    endpoint: `127.0.0.1:${receiverPort}`,
    ports: [peers.port],
    config: everythingOn(directory, await freePort()),
    wrapper: group.wrapper,
    shipped: true,
    readyMs: 120_000,
    // The receiver is away from the beginning.
    readyStatus: 503,
  })
  open.push({ close: () => agent.stop() })
  await until('everything but the receiver is ready', 120_000, async () => {
    const { checks } = await agent.document<{ checks: Record<string, unknown> }>('/ready')
    return checks.ebpf === 'ok'
  })
  // What is written before the first look for files is older than the agent.
  await until('the log is followed', 60_000, async () => (await agent.metrics()).sum('svc_log_files') === 1)
  const asked = await lightLoad(peers, log, awaySeconds)
  await until('it is well', 60_000, async () => (await agent.get('/healthz')).status === 200)

  const telemetry = await Telemetry.start(receiverPort)
  open.push({ close: () => telemetry.close() })
  await telemetry.arrived(asked.requests, peers.port, server, arriveMs)
  await telemetry.arrived(asked.requests, peers.port, client, arriveMs)
  const told = () => new Set(telemetry.bodies().filter(body => body.startsWith('line ')))
  await until(
    () => `all lines have arrived: ${told().size} of ${asked.lines}`,
    arriveMs,
    () => told().size === asked.lines,
  )
  assert.equal(telemetry.spans(peers.port, server).length, asked.requests)
  assert.equal(telemetry.spans(peers.port, client).length, asked.requests)
  let balances = await agent.balances()
  // A retry after a refused request may still be half a minute away.
  const silent = () =>
    Object.keys(balances).filter(signal => signal !== 'profiles' && balances[signal]!.exported === 0)
  await until(
    () => `each signal is sent: not ${silent()} of ${JSON.stringify(balances)}`,
    arriveMs,
    async () => {
      balances = await agent.balances()
      return silent().length === 0
    },
  )
  for (const [signal, balance] of Object.entries(balances)) {
    const lost = Object.entries(balance.dropped).filter(([why, items]) => items > 0 && !asSet.has(why))
    assert.deepEqual(lost, [], `${signal} ${JSON.stringify(balance)}`)
    assert.equal(balance.rejected, 0, signal)
  }
  const counters = await agent.counters()
  for (const lost of ['segments_lost', 'ring_full']) assert.equal(counters[lost], 0, lost)

  const usage = group.usage()
  const rss = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${agent.pid}/status`, 'utf8'))?.[1]
  t.diagnostic(
    `${asked.requests} requests and ${asked.lines} lines in ${awaySeconds} s; ${Math.round(Number(rss) / 1024)} MiB resident; ` +
      `the group had ${Math.round(usage.peakBytes / 2 ** 20)} MiB at its highest`,
  )
  assert.equal(usage.kills, 0)
  assert.equal(agent.log.filter(({ level }) => level === 'error').length, 0, agent.logText())
})
