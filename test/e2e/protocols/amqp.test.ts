// owns: ports
import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import amqplib, { type ChannelModel, type ConfirmChannel } from 'amqplib'
import { AgentProcess, largeRing } from '../../helpers/agent-process.ts'
import { type Rabbitmq, startRabbitmq, withoutRabbitmq } from '../../helpers/servers/rabbitmq.ts'
import { soak } from '../../helpers/soak.ts'
import { type SpanLine, Telemetry } from '../../helpers/telemetry.ts'

const producer = 4
const consumer = 5
const client = 3
const messages = soak ? 5_000 : 300
const skip = withoutRabbitmq

let telemetry: Telemetry
let rabbitmq: Rabbitmq
let agent: AgentProcess
let connection: ChannelModel

before(async () => {
  if (skip) return
  telemetry = await Telemetry.start()
  rabbitmq = await startRabbitmq()
  agent = await AgentProcess.start({
    endpoint: telemetry.endpoint,
    ports: [rabbitmq.port],
    config: { agent: { ebpf: largeRing } },
  })
  connection = await amqplib.connect(`amqp://127.0.0.1:${rabbitmq.port}`)
})

after(async () => {
  await connection?.close()
  await agent?.stop()
  await rabbitmq?.close()
  await telemetry?.close()
})

afterEach(() => telemetry?.forget())

/** How many spans there are of each name, kind and error. */
function told(): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { name, kind, attributes } of telemetry.spans(rabbitmq.port)) {
    const key = `${kind} ${name} ${attributes['error.type'] ?? ''}`.trim()
    counts[key] = (counts[key] ?? 0) + 1
  }
  return counts
}

async function all(count: number): Promise<SpanLine[]> {
  await telemetry.arrived(count, rabbitmq.port)
  await telemetry.settle(agent)
  return telemetry.spans(rabbitmq.port)
}

async function publish(channel: ConfirmChannel, exchange: string, key: string, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    channel.publish(exchange, key, Buffer.from(`message ${i}`))
    if (i % 10 === 9) await channel.waitForConfirms()
  }
  await channel.waitForConfirms()
}

test('each message that is published, confirmed, delivered and acknowledged has two spans', {
  skip,
}, async () => {
  const channel = await connection.createConfirmChannel()
  await channel.assertExchange('shop', 'topic')
  await channel.assertQueue('orders')
  await channel.bindQueue('orders', 'shop', 'order.*')
  await publish(channel, 'shop', 'order.created', messages)
  await channel.prefetch(10)
  let received = 0
  await new Promise<void>(resolve => {
    void channel.consume('orders', message => {
      channel.ack(message!)
      if (++received === messages) resolve()
    })
  })
  const spans = await all(2 * messages)
  assert.deepEqual(told(), {
    [`${producer} publish shop:order.created`]: messages,
    [`${consumer} process shop:order.created:orders`]: messages,
  })
  const counted = telemetry.counted(({ attributes }) => attributes['server.port'] === rabbitmq.port)
  assert.deepEqual(counted.map(({ metric, count }) => [metric, count]).sort(), [
    ['messaging.client.operation.duration', messages],
    ['messaging.process.duration', messages],
  ])
  const published = spans.find(({ kind }) => kind === producer)!
  assert.equal(published.attributes['messaging.system'], 'rabbitmq')
  assert.equal(published.attributes['messaging.message.body.size'], 9)
  await channel.close()
})

test('what the broker and the consumer refuse are errors', { skip }, async () => {
  const channel = await connection.createConfirmChannel()
  channel.on('return', () => {})
  await channel.assertQueue('refused')
  channel.publish('', 'nowhere', Buffer.from('x'), { mandatory: true })
  await publish(channel, '', 'refused', 2)
  const got = await channel.get('refused')
  assert.ok(got)
  channel.reject(got, false)
  await new Promise<void>(resolve => {
    void channel.consume('refused', message => {
      channel.nack(message!, false, false)
      resolve()
    })
  })
  const other = await connection.createConfirmChannel()
  const closed = new Promise(resolve => other.once('error', resolve))
  other.publish('missing', 'key', Buffer.from('x'))
  await closed
  await all(6)
  assert.deepEqual(told(), {
    [`${producer} publish nowhere no_route`]: 1,
    [`${producer} publish refused`]: 2,
    [`${client} receive refused`]: 1,
    [`${consumer} process refused nack`]: 1,
    [`${producer} publish missing:key not_found`]: 1,
  })
  await channel.close()
})

test('messages of a megabyte are told like small ones', { skip }, async () => {
  const channel = await connection.createConfirmChannel()
  await channel.assertQueue('big')
  for (let i = 0; i < 10; i++) {
    channel.sendToQueue('big', Buffer.alloc(1 << 20, i))
    await channel.waitForConfirms()
  }
  const spans = await all(10)
  assert.deepEqual(told(), { [`${producer} publish big`]: 10 })
  assert.ok(spans.every(({ attributes }) => attributes['messaging.message.body.size'] === 1 << 20))
  await channel.close()
})
