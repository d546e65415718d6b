// owns: ports
import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { AgentProcess, type Tree } from '../helpers/agent-process.ts'
import { Buyer, plan, requests } from '../helpers/load.ts'
import { freePort, pause } from '../helpers/program.ts'
import { Telemetry } from '../helpers/telemetry.ts'
import { type Shop, startNodeShop } from '../helpers/web-servers.ts'

const open: { close(): Promise<unknown> }[] = []

afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
})

interface Scene {
  readonly agent: AgentProcess
  readonly telemetry: Telemetry
  readonly shop: Shop
  readonly buyer: Buyer
}

async function setUp(ebpf: Tree): Promise<Scene> {
  const telemetry = await Telemetry.start()
  open.push(telemetry)
  const port = await freePort()
  const shop = await startNodeShop(port)
  open.push(shop)
  const buyer = await Buyer.start('python', shop, plan(requests, shop), true)
  open.push(buyer)
  const agent = await AgentProcess.start({
    endpoint: telemetry.endpoint,
    ports: [port],
    config: { agent: { ebpf } },
  })
  open.push({ close: () => agent.stop() })
  return { agent, telemetry, shop, buyer }
}

/** Sends the load by `go`, and checks that what has no span is counted under `reason` and nowhere else. */
async function check(
  { agent, telemetry, shop, buyer }: Scene,
  reason: string,
  go: () => Promise<void>,
): Promise<void> {
  const before = await agent.counters()
  await pause(300) // the ring is empty again
  await go()
  // This question's own exchange ends after its answer, so that all that is counted here is of the load.
  const after = await agent.counters()
  const lost = (after[reason] ?? 0) - (before[reason] ?? 0)
  assert.ok(lost > requests / 10, `only ${lost} exchanges had no record`)
  await telemetry.arrived(2 * requests - lost, shop.port)
  await telemetry.settle(agent)
  assert.equal(telemetry.spans(shop.port).length, 2 * requests - lost)
  assert.equal(telemetry.servedBy(...shop.pids), requests)
  assert.equal(telemetry.askedOf(shop.port), requests)
  const methods = new Map<unknown, number>()
  for (const { attributes, count } of telemetry.counted(
    ({ metric, resource }) =>
      metric === 'http.server.request.duration' && resource['process.pid'] === shop.pids[0],
  )) {
    const key = `${attributes['http.request.method']} ${attributes['http.response.status_code']}`
    methods.set(key, (methods.get(key) ?? 0) + count)
  }
  const want = new Map<unknown, number>()
  for (const { method, status } of buyer.planned)
    want.set(`${method} ${status}`, (want.get(`${method} ${status}`) ?? 0) + 1)
  assert.deepEqual(methods, want)
  const counters = await agent.counters()
  const metrics = await agent.metrics()
  for (const name of ['ring_full', 'over_budget', 'red_full'])
    assert.equal(metrics.sum('svc_spans_dropped_total', `reason="${name}"`), counters[name], name)
  for (const name of ['red_full', 'desync', 'abandoned']) assert.equal(counters[name], 0, name)
}

test('a full ring costs spans, which are counted, and no request in the metrics', async () => {
  const scene = await setUp({ ringbuf_size: 4096 })
  await check(scene, 'ring_full', async () => {
    scene.agent.signal('SIGSTOP')
    try {
      await scene.buyer.go()
      await pause(50)
    } finally {
      scene.agent.signal('SIGCONT')
    }
  })
})

test('spans above the budget are counted, and no request is missing in the metrics', async () => {
  const sampling = { max_spans_per_second: 50, always_errors: false, always_slow: false }
  const scene = await setUp({ network: { sampling } })
  await check(scene, 'over_budget', async () => {
    await scene.buyer.go()
    await pause(150) // the next window's budget is for the question
  })
})
