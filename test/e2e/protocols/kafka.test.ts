// owns: ports
import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { Kafka, logLevel, Partitioners, type Producer } from 'kafkajs'
import { AgentProcess, largeRing } from '../../helpers/agent-process.ts'
import { until } from '../../helpers/program.ts'
import { KafkaServer } from '../../helpers/servers/kafka.ts'
import { soak } from '../../helpers/soak.ts'
import { client, type SpanLine, Telemetry } from '../../helpers/telemetry.ts'

const producer = 4
const requests = soak ? 5_000 : 200

let telemetry: Telemetry
const open: (() => Promise<unknown>)[] = []

before(async () => {
  telemetry = await Telemetry.start()
})
after(() => telemetry.close())
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
  telemetry.forget()
})

async function startServer(): Promise<KafkaServer> {
  const server = await KafkaServer.start()
  open.push(() => server.close())
  return server
}

async function startAgent(port: number): Promise<AgentProcess> {
  const agent = await AgentProcess.start({
    endpoint: telemetry.endpoint,
    ports: [port],
    config: { agent: { ebpf: largeRing } },
  })
  open.push(() => agent.stop())
  return agent
}

function clientOf(server: KafkaServer): Kafka {
  const brokers = [`127.0.0.1:${server.port}`]
  const patient = { connectionTimeout: 20_000, authenticationTimeout: 20_000, retry: { retries: 0 } }
  return new Kafka({ clientId: 'shop', brokers, logLevel: logLevel.NOTHING, ...patient })
}

async function startProducer(kafka: Kafka): Promise<Producer> {
  const sender = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
  open.push(() => sender.disconnect())
  await sender.connect()
  return sender
}

async function send(sender: Producer, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const value = i % 20 === 0 ? 'x'.repeat(50_000) : `order ${i}`
    await sender.send({ topic: 'orders', messages: [{ value, partition: 0 }], acks: i % 10 === 1 ? 0 : -1 })
  }
}

/** Reads the topic from its beginning until so many messages came. Resolves when it does. */
async function startReading(kafka: Kafka, topic: string, wanted: number): Promise<() => Promise<void>> {
  const consumer = kafka.consumer({ groupId: 'readers', maxWaitTimeInMs: 200 })
  open.push(() => consumer.disconnect())
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  let came = 0
  await consumer.run({
    eachMessage: async () => {
      came++
    },
  })
  return () =>
    until(
      () => `${wanted} messages came: ${came} have`,
      30_000,
      () => came >= wanted,
    )
}

function countedOf(port: number, operation: string): number {
  return telemetry
    .counted(
      ({ metric, attributes }) =>
        metric === 'messaging.client.operation.duration' &&
        attributes['server.port'] === port &&
        attributes['messaging.operation.name'] === operation,
    )
    .reduce((sum, { count }) => sum + count, 0)
}

function spansOf(port: number, kind: number): SpanLine[] {
  return telemetry.spans(port).filter(span => span.kind === kind)
}

test('every request that sends has one span and one count, answered or not', async () => {
  const server = await startServer()
  const agent = await startAgent(server.port)
  const sender = await startProducer(clientOf(server))
  await send(sender, requests)
  for (let i = 0; i < 5; i++)
    await assert.rejects(sender.send({ topic: 'refused', messages: [{ value: 'no', partition: 1 }] }))
  const { produced } = await server.counts()
  assert.equal(produced, requests + 5)
  await telemetry.arrived(produced, server.port)
  await telemetry.settle(agent)
  const spans = spansOf(server.port, producer)
  assert.equal(spans.length, produced)
  assert.equal(telemetry.spans(server.port).length, produced)
  assert.equal(countedOf(server.port, 'send'), produced)
  for (const { name, status, attributes } of spans) {
    const refused = attributes['messaging.destination.name'] === 'refused'
    assert.equal(name, refused ? 'send refused' : 'send orders')
    assert.equal(status, refused ? 2 : 0)
    assert.equal(attributes['error.type'], refused ? 'TOPIC_AUTHORIZATION_FAILED' : undefined)
    assert.equal(attributes['messaging.destination.partition.id'], refused ? '1' : '0')
    assert.equal(attributes['messaging.batch.message_count'], 1)
    assert.equal(attributes['messaging.client.id'], 'shop')
  }
  assert.equal(spans.filter(({ status }) => status === 2).length, 5)
})

test('every answer with records has one span and one count, and those that waited in vain have none', async () => {
  const server = await startServer()
  const agent = await startAgent(server.port)
  const kafka = clientOf(server)
  const sender = await startProducer(kafka)
  await send(sender, 5)
  const read = await startReading(kafka, 'orders', 25)
  await send(sender, 20)
  await read()
  await until('the reader has waited in vain', 20_000, async () => (await server.counts()).waited > 3)
  const { fetched, produced } = await server.counts()
  await telemetry.arrived(produced + fetched, server.port)
  await telemetry.settle(agent)
  const spans = spansOf(server.port, client)
  assert.equal(spans.length, fetched)
  assert.equal(countedOf(server.port, 'poll'), fetched)
  for (const { name, status, attributes } of spans) {
    assert.equal(name, 'poll orders')
    assert.equal(status, 0)
    assert.equal(attributes['messaging.operation.type'], 'receive')
    assert.equal(attributes['messaging.consumer.group.name'], 'readers')
  }
})

test('connections that are older than the agent are seen exactly', async () => {
  const server = await startServer()
  const kafka = clientOf(server)
  const sender = await startProducer(kafka)
  await send(sender, 1)
  const read = await startReading(kafka, 'orders', requests + 1)
  await until('the reader has waited in vain', 20_000, async () => (await server.counts()).waited > 1)
  const agent = await startAgent(server.port)
  const before = await server.counts()
  // A fetch that the agent did not see begin has no span.
  await until(
    'the reader has asked again',
    20_000,
    async () => (await server.counts()).waited > before.waited + 1,
  )
  await send(sender, requests)
  await read()
  const { produced, fetched } = await server.counts()
  await telemetry.arrived(produced + fetched - before.produced - before.fetched, server.port)
  await telemetry.settle(agent)
  assert.equal(spansOf(server.port, producer).length, produced - before.produced)
  assert.equal(spansOf(server.port, client).length, fetched - before.fetched)
})
