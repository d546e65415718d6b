// owns: ports
import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { connect, type NatsConnection } from 'nats'
import { AgentProcess, largeRing } from '../../helpers/agent-process.ts'
import { type Nats, startNats, withoutNats } from '../../helpers/servers/nats.ts'
import { soak } from '../../helpers/soak.ts'
import { Telemetry } from '../../helpers/telemetry.ts'

const client = 3
const producer = 4
const consumer = 5
const messages = soak ? 5_000 : 300
const skip = withoutNats
/** A host that stands still for a second is not what is tested. */
const patient = { timeout: 20_000 }

let telemetry: Telemetry
let server: Nats
let agent: AgentProcess

before(async () => {
  if (skip) return
  telemetry = await Telemetry.start()
  server = await startNats()
  agent = await AgentProcess.start({
    endpoint: telemetry.endpoint,
    ports: [server.port],
    config: { agent: { ebpf: largeRing } },
  })
})

after(async () => {
  await agent?.stop()
  await server?.close()
  await telemetry?.close()
})

afterEach(() => telemetry?.forget())

/** How many spans there are of each name, kind and error */
async function told(count: number): Promise<Record<string, number>> {
  await telemetry.arrived(count, server.port)
  await telemetry.settle(agent)
  const counts: Record<string, number> = {}
  for (const { name, kind, attributes } of telemetry.spans(server.port)) {
    const key = `${kind} ${name} ${attributes['error.type'] ?? ''}`.trim()
    counts[key] = (counts[key] ?? 0) + 1
  }
  return counts
}

async function open(): Promise<NatsConnection> {
  return connect({ servers: `127.0.0.1:${server.port}` })
}

test('each message that is published and delivered has two spans', { skip }, async () => {
  const subscriber = await open()
  const publisher = await open()
  const subscription = subscriber.subscribe('orders.*', { max: messages })
  await subscriber.flush()
  for (let i = 0; i < messages; i++) {
    publisher.publish('orders.new', `message ${i}`)
    if (i % 20 === 19) await publisher.flush()
  }
  await publisher.flush()
  let received = 0
  for await (const _message of subscription) received++
  assert.equal(received, messages)
  assert.deepEqual(await told(2 * messages), {
    [`${producer} publish orders.new`]: messages,
    [`${consumer} process orders.new`]: messages,
  })
  await publisher.close()
  await subscriber.close()
})

test('each request has one span of the client, and an error where nobody answers', { skip }, async () => {
  const [asking, answering] = [await open(), await open()]
  answering.subscribe('prices.get', { callback: (_error, message) => message.respond('12.50') })
  await answering.flush()
  for (let i = 0; i < messages; i++) await asking.request('prices.get', '?', patient)
  await assert.rejects(asking.request('nobody', '?', patient), /503|NoResponders|no responders/i)
  await asking.close()
  await answering.close()
  assert.deepEqual(await told(3 * messages + 1), {
    [`${client} request prices.get`]: messages,
    [`${consumer} process prices.get`]: messages,
    [`${producer} publish _INBOX.*`]: messages,
    [`${client} request nobody no_responders`]: 1,
  })
})

test('messages of JetStream are published with their answer and processed until they are acknowledged', {
  skip,
}, async () => {
  const connection = await open()
  const manager = await connection.jetstreamManager(patient)
  await manager.streams.add({ name: 'EVENTS', subjects: ['events.*'] })
  await manager.consumers.add('EVENTS', { durable_name: 'worker', ack_policy: 'explicit' as never })
  const jetstream = connection.jetstream(patient)
  for (let i = 0; i < 20; i++) await jetstream.publish('events.made', `event ${i}`)
  const worker = await jetstream.consumers.get('EVENTS', 'worker')
  for (let i = 0; i < 20; i++) await (await worker.next())!.ackAck()
  await connection.close()
  const counts = await told(60)
  assert.equal(counts[`${client} request events.made`], 20)
  assert.equal(counts[`${consumer} process events.made`], 20)
  assert.equal(counts[`${client} receive $JS.API.CONSUMER.MSG.NEXT.*.*`], 20)
})
