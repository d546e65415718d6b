// owns: ports
import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { AgentProcess, largeRing } from '../helpers/agent-process.ts'
import { Buyer, checkCounts, checkSpans, concurrency, output, plan, requests } from '../helpers/load.ts'
import { freePort } from '../helpers/program.ts'
import { client, server, Telemetry } from '../helpers/telemetry.ts'
import { type Shop, startNginx, startNodeShop, startPythonShop } from '../helpers/web-servers.ts'

let telemetry: Telemetry
const open: { close(): Promise<unknown> }[] = []

before(async () => {
  telemetry = await Telemetry.start()
})
after(() => telemetry.close())
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
  telemetry.forget()
})

function closing<T extends { close(): Promise<unknown> }>(one: T): T {
  open.push(one)
  return one
}

/** With room for what a fast machine asks in a second: here it counts that nothing is lost, not how fast it is sent. */
async function startAgent(port: number): Promise<AgentProcess> {
  const agent = await AgentProcess.start({
    endpoint: telemetry.endpoint,
    ports: [port],
    config: { agent: { ebpf: largeRing }, queues: { traces: { mem_limit: '512Mi' } } },
  })
  open.push({ close: () => agent.stop() })
  return agent
}

async function check(
  startShop: (port: number) => Promise<Shop>,
  kind: 'node' | 'python',
  { keepAlive, agentFirst }: { keepAlive: boolean; agentFirst: boolean },
): Promise<void> {
  const port = await freePort()
  let agent = agentFirst ? await startAgent(port) : undefined
  const shop = closing(await startShop(port))
  const buyer = closing(await Buyer.start(kind, shop, plan(requests, shop), keepAlive))
  if (agent === undefined) {
    await buyer.open()
    agent = await startAgent(port)
  }
  await buyer.go()
  await telemetry.arrived(2 * requests, shop.port)
  await telemetry.settle(agent)
  checkSpans(telemetry, shop, buyer)
  checkCounts(telemetry, shop, buyer)
}

test('every request of new connections has one span and one count on each side', async () => {
  const how = { keepAlive: false, agentFirst: true }
  await check(startNodeShop, 'python', how)
})

test('every request to a Node.js server over kept connections has one span and one count on each side', async () => {
  await check(startNodeShop, 'node', { keepAlive: true, agentFirst: true })
})

test('every request to a Python server over kept connections has one span and one count on each side', async () => {
  await check(startPythonShop, 'python', { keepAlive: true, agentFirst: true })
})

test('every request to nginx over new connections has one span and one count on each side', async () => {
  await check(startNginx, 'node', { keepAlive: false, agentFirst: true })
})

test('connections between Node.js programs that are older than the agent are seen exactly', async () => {
  await check(startNodeShop, 'node', { keepAlive: true, agentFirst: false })
})

test('connections between Python programs that are older than the agent are seen exactly', async () => {
  await check(startPythonShop, 'python', { keepAlive: true, agentFirst: false })
})

test('connections to nginx that are older than the agent are seen exactly', async () => {
  await check(startNginx, 'python', { keepAlive: true, agentFirst: false })
})

test('a curl of one request has one client span that is the parent of the one server span', async () => {
  const port = await freePort()
  const agent = await startAgent(port)
  const shop = closing(await startPythonShop(port))
  const count = requests / 50
  for (let i = 0; i < count; i++) await output('curl', '-sf', `http://127.0.0.1:${shop.port}/items/${i}`)
  await telemetry.arrived(2 * count, shop.port)
  await telemetry.settle(agent)
  const asked = telemetry.spans(shop.port, client)
  const served = telemetry.spans(shop.port, server)
  assert.equal(asked.length, count)
  assert.equal(served.length, count)
  assert.equal(telemetry.askedOf(shop.port), count)
  assert.equal(telemetry.servedBy(...shop.pids), count)
  const parents = new Set(asked.map(span => `${span.traceId} ${span.spanId}`))
  for (const { traceId, parentSpanId } of served) assert.ok(parents.has(`${traceId} ${parentSpanId}`))
  for (const { resource } of asked) assert.equal(resource['service.name'], 'curl')
})

test('wrk and nginx count as many requests as there are spans', async () => {
  const port = await freePort()
  const agent = await startAgent(port)
  const nginx = closing(await startNginx(port))
  const said = await output(
    'wrk',
    '-t1',
    `-c${concurrency}`,
    '-d1s',
    `http://127.0.0.1:${nginx.port}/items/1`,
  )
  const answered = Number(/(\d+) requests in/.exec(said)?.[1])
  const logged = nginx.requests().length
  assert.ok(answered > 100, said)
  await telemetry.arrived(answered, nginx.port, client)
  await telemetry.arrived(logged, nginx.port, server)
  await telemetry.settle(agent)
  const asked = telemetry.spans(nginx.port, client)
  // wrk leaves its last requests unanswered: those are errors of the client, not answers.
  const whole = asked.filter(({ attributes }) => attributes['error.type'] === undefined)
  assert.equal(whole.length, answered)
  assert.ok(asked.length <= answered + concurrency)
  assert.equal(telemetry.askedOf(nginx.port), asked.length)
  assert.equal(telemetry.spans(nginx.port, server).length, nginx.requests().length)
  assert.equal(telemetry.servedBy(...nginx.pids), nginx.requests().length)
})
