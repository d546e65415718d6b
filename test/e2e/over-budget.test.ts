// owns: ports
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Redis } from 'ioredis'
import { AgentProcess } from '../helpers/agent-process.ts'
import { checkBooks } from '../helpers/books.ts'
import { withoutBpf } from '../helpers/compile-bpf.ts'
import { EmptyGroup } from '../helpers/empty-group.ts'
import { parseExposition } from '../helpers/exposition.ts'
import { startPeers } from '../helpers/peers.ts'
import { pause, until } from '../helpers/program.ts'
import { type RedisServer, startRedis, withoutRedis } from '../helpers/servers/redis.ts'
import { client, Telemetry } from '../helpers/telemetry.ts'
import { withoutTracepoints, withTracefs } from '../helpers/tracefs.ts'

const skip = withoutRedis
const operations = 2_000

let telemetry: Telemetry
let server: RedisServer
let agent: AgentProcess

before(async () => {
  if (skip) return
  telemetry = await Telemetry.start()
  server = await startRedis()
  agent = await AgentProcess.start({
    endpoint: telemetry.endpoint,
    ports: [server.port],
    config: { agent: { ebpf: { network: { sampling: { max_spans_per_second: 50 } } } } },
  })
})

after(async () => {
  await agent?.stop()
  await server?.close()
  await telemetry?.close()
})

test('what is above the budget is counted: spans and counts together are all operations', {
  skip,
}, async () => {
  const redis = new Redis(server.port, '127.0.0.1', {
    enableReadyCheck: false,
    disableClientInfo: true,
    protocol: 2,
  })
  let failures = 0
  await redis.rpush('list', 'a')
  for (let i = 0; i < operations - 2; i++)
    await (i % 2 === 0 ? redis.get('key') : redis.incr('list')).catch(() => {
      failures++
    })
  await redis.quit()
  assert.equal(failures, operations / 2 - 1)
  await telemetry.settle(agent)

  const spans = telemetry.spans(server.port, client)
  const series = telemetry.counted(
    ({ metric, attributes }) =>
      metric === 'db.client.operation.duration' && attributes['server.port'] === server.port,
  )
  const count = (wanted: (attributes: Readonly<Record<string, unknown>>) => boolean): number =>
    series.reduce((sum, one) => sum + (wanted(one.attributes) ? one.count : 0), 0)
  assert.equal(
    count(() => true),
    operations,
  )
  assert.equal(
    count(attributes => attributes['db.operation.name'] !== undefined),
    spans.length,
  )
  for (const { attributes } of series) assert.equal(attributes['db.system.name'], 'redis')
  assert.ok(spans.length >= 20, `${spans.length} spans`)
  assert.ok(spans.length < operations, `${spans.length} spans`)
  // Responses behind what was only counted are read, too.
  for (const { name, attributes } of spans)
    assert.equal(attributes['error.type'], name === 'INCR' ? 'WRONGTYPE' : undefined)

  const metrics = await agent.metrics()
  const dropped = metrics.sum('svc_spans_dropped_total')
  const excluded = metrics.sum('svc_spans_dropped_total', 'reason="excluded_path"')
  const overBudget = metrics.sum('svc_spans_dropped_total', 'reason="over_budget"')
  const collected = metrics.sum('svc_spans_collected_total')
  assert.equal(metrics.sum('svc_spans_collected_total', 'signal_type="redis"'), operations)
  assert.ok(overBudget >= operations - spans.length)
  assert.equal(dropped - excluded, overBudget) // what is excluded are questions to the agent itself
  assert.equal(metrics.sum('svc_spans_exported_total') + dropped, collected)
  const { abandoned, desync, red_full, ring_full } = await agent.counters()
  assert.deepEqual(
    { abandoned, desync, red_full, ring_full },
    { abandoned: 0, desync: 0, red_full: 0, ring_full: 0 },
  )
})

for (const [backend, without] of [
  ['sock', withoutBpf],
  ['syscalls', withoutTracepoints],
] as const)
  test(`${backend}: a flood above the budget costs another user no span`, { skip: without }, async () => {
    const asUser = (uid: number) => ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups']
    const received = await Telemetry.start()
    const groups = [new EmptyGroup(), new EmptyGroup()] as const
    const [flooder, quiet] = await Promise.all([
      startPeers([...groups[0].wrapper, ...asUser(65_534)]),
      startPeers([...groups[1].wrapper, ...asUser(65_532)]),
    ])
    const shared = await AgentProcess.start({
      endpoint: received.endpoint,
      ports: [flooder.port, quiet.port],
      wrapper: withTracefs,
      config: { agent: { ebpf: { backend, network: { sampling: { max_spans_per_second: 500 } } } } },
    })
    const dropped = async () =>
      (await shared.metrics()).sum('svc_spans_dropped_total', 'reason="over_budget"')
    try {
      let over = false
      let flood = 0
      const flooding = (async () => {
        for (; !over; flood += 100) await flooder.requests(100, '/status/200')
      })()
      await until('the budget is used up', 30_000, async () => (await dropped()) > 0)
      const beganMs = performance.now()
      for (let i = 0; i < 50; i++) {
        await quiet.requests(1, '/status/200')
        await pause(Math.max(0, beganMs + i * 20 - performance.now()))
      }
      over = true
      await flooding
      await received.settle(shared)
      assert.equal(received.spans(quiet.port).length, 100)
      const made = received.spans(flooder.port).length
      assert.ok(made >= 500, `${made} spans`)
      // Questions to the agent itself are among them.
      assert.ok(made + (await dropped()) >= 2 * flood)
      for (const [peers, asked] of [
        [quiet, 50],
        [flooder, flood],
      ] as const)
        assert.deepEqual([received.servedBy(peers.serverPid), received.askedOf(peers.port)], [asked, asked])
      checkBooks(parseExposition((await shared.get('/metrics')).text, 'text'))
    } finally {
      await shared.stop()
      await Promise.all([flooder.close(), quiet.close(), received.close()])
      for (const group of groups) group.close()
    }
  })
