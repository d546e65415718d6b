// owns: ports
// The end of an agent while its receiver is away: with the queue on disk nothing is lost and nobody waits; without it
// the agent waits as long as it was told to, and says what it gave up.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, test } from 'node:test'
import { AgentProcess, type Balance, type Tree } from '../helpers/agent-process.ts'
import { withoutBpf } from '../helpers/compile-bpf.ts'
import { spawnReceiver } from '../helpers/otlp-receiver.ts'
import { type Peers, startPeers } from '../helpers/peers.ts'
import { freePort, until } from '../helpers/program.ts'

const kernel = { skip: withoutBpf }
const requests = 2000
/** Less than the drain_timeout that holds where nothing is said, 10 s. */
const fullDrainMs = 8000
const open: { close(): Promise<unknown> }[] = []

afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
})

function start(endpoint: string, peers: Peers, exporting: Tree): Promise<AgentProcess> {
  const config = {
    self_telemetry: { debug: true },
    pipeline: { export: { batch: { timeout: '50ms' }, ...exporting } },
  }
  return AgentProcess.start({ endpoint, ports: [peers.port], config })
}

async function traces(agent: AgentProcess): Promise<Balance> {
  const balance = (await agent.balances()).traces!
  const dropped = Object.values(balance.dropped).reduce((sum, items) => sum + items, 0)
  assert.equal(
    balance.received + balance.recovered,
    balance.exported + balance.rejected + dropped + balance.queued,
  )
  return balance
}

/** An agent that took in both sides of every request, and whose receiver has gone away since. */
async function cutOff(peers: Peers, exporting: Tree): Promise<{ agent: AgentProcess; port: number }> {
  const receiver = await spawnReceiver({ port: await freePort() })
  const agent = await start(receiver.endpoint, peers, exporting)
  open.push({ close: () => agent.kill() })
  await receiver.close()
  await peers.requests(requests, '/status/200')
  let balance: Balance | undefined
  await until(
    () => `all spans are taken in: ${JSON.stringify(balance)}`,
    20_000,
    async () => {
      balance = await traces(agent)
      return balance.received >= 2 * requests && balance.queued >= 2 * requests
    },
  )
  return { agent, port: receiver.port }
}

test('with the queue on disk it ends at once, and the next one delivers everything', kernel, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-outage-'))
  open.push({ close: async () => rmSync(directory, { recursive: true }) })
  const queue = { enabled: true, directory }
  const peers = await startPeers()
  open.push(peers)
  const { agent, port } = await cutOff(peers, { queue })
  const asked = performance.now()
  const exit = await agent.stop()
  const tookMs = performance.now() - asked
  assert.deepEqual(exit, { code: 0, signal: null })
  assert.ok(tookMs < fullDrainMs, `${Math.round(tookMs)} ms`)
  const drained = agent.log.find(({ msg }) => msg === 'drained') as unknown as {
    kept: Record<string, number>
    dropped: Record<string, number>
  }
  // The test's own questions to the agent are requests as well.
  const kept = drained.kept.traces!
  assert.ok(kept >= 2 * requests, String(kept))
  assert.deepEqual(Object.values(drained.dropped), [0, 0, 0, 0])

  const receiver = await spawnReceiver({ port })
  open.push(receiver)
  const next = await start(receiver.endpoint, peers, { queue })
  open.push({ close: () => next.stop() })
  let balance: Balance | undefined
  await until(
    () => `what was kept is delivered: ${JSON.stringify(balance)}`,
    20_000,
    async () => {
      balance = await traces(next)
      return balance.exported >= kept
    },
  )
  assert.equal(balance!.recovered, kept)
  const metrics = await next.metrics()
  assert.equal(metrics.sum('svc_export_queue_recovered_total', 'signal_type="traces"'), kept)
  // Asking makes spans as well: what is compared are counts of a moment in which none was on its way.
  let delivered: number[] = []
  await until(
    () => `the receiver has what was exported: ${delivered}`,
    20_000,
    async () => {
      const before = (await traces(next)).exported
      const { traces: received } = await receiver.counts()
      delivered = [before, received, (await traces(next)).exported]
      return delivered.every(count => count === before)
    },
  )
})

test('without it the agent ends in the time it was given, and says how much was lost', kernel, async () => {
  const peers = await startPeers()
  open.push(peers)
  const { agent } = await cutOff(peers, { queue: { enabled: false } })
  // The time for draining is a key of its own; a reload takes it up.
  agent.configure({ pipeline: { operations: { shutdown: { drain_timeout: '1s' } } } })
  agent.signal('SIGHUP')
  await until(
    () => 'the configuration is reloaded',
    60_000,
    async () => agent.log.some(({ msg }) => /reloaded/.test(msg)),
  )
  const asked = performance.now()
  const exit = await agent.stop()
  const tookMs = performance.now() - asked
  assert.deepEqual(exit, { code: 0, signal: null })
  assert.ok(tookMs < fullDrainMs, `${Math.round(tookMs)} ms`)
  const drained = agent.log.find(({ msg }) => msg === 'drained') as unknown as {
    dropped: Record<string, number>
  }
  assert.ok(drained.dropped.traces! >= 2 * requests, String(drained.dropped.traces))
})
