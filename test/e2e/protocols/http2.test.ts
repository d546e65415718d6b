// owns: ports
import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { AgentProcess, largeRing } from '../../helpers/agent-process.ts'
import { freePort } from '../../helpers/program.ts'
import { GrpcShopper, startGrpc } from '../../helpers/servers/grpc.ts'
import {
  curlHttp2,
  h2load,
  startHttp2,
  withoutCurlHttp2,
  withoutH2load,
} from '../../helpers/servers/nghttp2.ts'
import { soak } from '../../helpers/soak.ts'
import { client, server, Telemetry } from '../../helpers/telemetry.ts'

const requests = soak ? 20_000 : 1_000
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

async function startAgent(port: number): Promise<AgentProcess> {
  const { endpoint } = telemetry
  const agent = await AgentProcess.start({ endpoint, ports: [port], config: { agent: { ebpf: largeRing } } })
  open.push({ close: () => agent.stop() })
  return agent
}

/** How many spans there are of each kind, name, status and error, once `count` are there. */
async function told(agent: AgentProcess, port: number, count: number): Promise<Record<string, number>> {
  await telemetry.arrived(count, port)
  await telemetry.settle(agent)
  const counts: Record<string, number> = {}
  for (const { kind, name, attributes } of telemetry.spans(port)) {
    const status = attributes['http.response.status_code'] ?? attributes['rpc.response.status_code']
    const side = kind === server ? 'server' : kind === client ? 'client' : kind
    const key = [side, name, status, attributes['error.type']].filter(word => word !== undefined).join(' ')
    counts[key] = (counts[key] ?? 0) + 1
  }
  return counts
}

test('each request of h2load has one span on each side', { skip: withoutH2load }, async () => {
  const port = await freePort()
  const agent = await startAgent(port)
  open.push(await startHttp2(port))
  const answered = await h2load(port, '/items/100', { requests, connections: 4, streams: 10 })
  assert.equal(answered, requests)
  assert.deepEqual(await told(agent, port, 2 * requests), {
    'server GET /items/* 200': requests,
    'client GET 200': requests,
  })
  const parents = new Set(telemetry.spans(port, client).map(({ traceId, spanId }) => `${traceId} ${spanId}`))
  for (const { traceId, parentSpanId } of telemetry.spans(port, server))
    assert.ok(parents.has(`${traceId} ${parentSpanId}`))
})

test('statuses, large bodies and cancelled requests are told of curl', {
  skip: withoutCurlHttp2,
}, async () => {
  const port = await freePort()
  const agent = await startAgent(port)
  open.push(await startHttp2(port))
  const url = `http://127.0.0.1:${port}`
  assert.equal(await curlHttp2(`${url}/big/300000`), 200)
  assert.equal(await curlHttp2(`${url}/missing`), 404)
  assert.equal(await curlHttp2(`${url}/failed`, '-d', 'x'.repeat(100_000)), 503)
  await curlHttp2(`${url}/never`, '-m', '3')
  const counts = await told(agent, port, 8)
  assert.equal(counts['server GET /big/* 200'], 1)
  assert.equal(counts['client GET 200'], 1)
  assert.equal(counts['server GET /* 404'], 1)
  assert.equal(counts['client GET 404 404'], 1)
  assert.equal(counts['server POST /failed 503 503'], 1)
  assert.equal(counts['client POST 503 503'], 1)
  // How curl leaves is its own affair: it resets the stream or closes the connection.
  assert.equal(
    Object.values(counts).reduce((sum, count) => sum + count),
    8,
  )
})

test('each gRPC call has one span on each side, with its method and status', async () => {
  const port = await freePort()
  const agent = await startAgent(port)
  open.push(await startGrpc(port))
  const shopper = new GrpcShopper(port)
  const calls = soak ? 1_000 : 200
  for (let wave = 0; wave < calls; wave += 50)
    await Promise.all(Array.from({ length: 50 }, () => shopper.call('Get')))
  assert.equal(await shopper.call('Fail', Buffer.from([5])), 5)
  assert.equal(await shopper.call('Fail', Buffer.from([13])), 13)
  assert.equal(await shopper.call('Nothing'), 12)
  assert.equal(await shopper.list(5, 4), 5)
  assert.equal(await shopper.cancel(), 1)
  shopper.close()
  assert.deepEqual(await told(agent, port, 2 * (calls + 5)), {
    'server shop.Items/Get OK': calls,
    'client shop.Items/Get OK': calls,
    'server shop.Items/Fail NOT_FOUND': 1,
    'client shop.Items/Fail NOT_FOUND NOT_FOUND': 1,
    'server shop.Items/Fail INTERNAL INTERNAL': 1,
    'client shop.Items/Fail INTERNAL INTERNAL': 1,
    'server grpc UNIMPLEMENTED UNIMPLEMENTED': 1,
    'client shop.Items/Nothing UNIMPLEMENTED UNIMPLEMENTED': 1,
    'server shop.Items/List OK': 1,
    'client shop.Items/List OK': 1,
    'server shop.Items/Hang CANCELLED': 1,
    'client shop.Items/Hang CANCELLED CANCELLED': 1,
  })
})

test('of a connection that is older than the agent each later call has its spans, named right or not at all', async () => {
  const port = await freePort()
  open.push(await startGrpc(port))
  const shopper = new GrpcShopper(port)
  const wave = async () => {
    for (let i = 0; i < 10; i++) await Promise.all(Array.from({ length: 50 }, () => shopper.call('Get')))
  }
  await wave()
  const agent = await startAgent(port)
  await wave()
  shopper.close()
  const counts = await told(agent, port, 1_000)
  assert.equal(
    Object.values(counts).reduce((sum, count) => sum + count),
    1_000,
  )
  for (const key of Object.keys(counts)) assert.match(key, /^(server|client) (grpc|shop\.Items\/Get)( OK)?$/)
})
