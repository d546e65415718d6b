// owns: ports
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Redis } from 'ioredis'
import { AgentProcess } from '../helpers/agent-process.ts'
import { type RedisServer, startRedis, withoutRedis } from '../helpers/servers/redis.ts'
import { client, Telemetry } from '../helpers/telemetry.ts'

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
