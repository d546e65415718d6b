// owns: ports
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, afterEach, before, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { promisify } from 'node:util'
import { connectAsync, type MqttClient } from 'mqtt'
import { AgentProcess, largeRing } from '../../helpers/agent-process.ts'
import { until } from '../../helpers/program.ts'
import { type Mosquitto, startMosquitto, withoutMosquitto } from '../../helpers/servers/mosquitto.ts'
import { soak } from '../../helpers/soak.ts'
import { Telemetry } from '../../helpers/telemetry.ts'

const producer = 4
const consumer = 5
const messages = soak ? 3_000 : 200
const skip = withoutMosquitto

let telemetry: Telemetry
let mosquitto: Mosquitto
let agent: AgentProcess

before(async () => {
  if (skip) return
  telemetry = await Telemetry.start()
  mosquitto = await startMosquitto(['topic readwrite shop/#'])
  const { endpoint } = telemetry
  agent = await AgentProcess.start({
    endpoint,
    ports: [mosquitto.port],
    config: { agent: { ebpf: largeRing } },
  })
})

after(async () => {
  await agent?.stop()
  await mosquitto?.close()
  await telemetry?.close()
})

afterEach(() => telemetry?.forget())

/** How many spans there are of each name, kind and error */
async function told(count: number): Promise<Record<string, number>> {
  await telemetry.arrived(count, mosquitto.port)
  await telemetry.settle(agent)
  const counts: Record<string, number> = {}
  for (const { name, kind, attributes } of telemetry.spans(mosquitto.port)) {
    const key = `${kind} ${name} ${attributes['error.type'] ?? ''}`.trim()
    counts[key] = (counts[key] ?? 0) + 1
  }
  return counts
}

async function connect(protocolVersion: 4 | 5): Promise<MqttClient> {
  return connectAsync(`mqtt://127.0.0.1:${mosquitto.port}`, { protocolVersion })
}

for (const version of [4, 5] as const)
  for (const qos of [0, 1, 2] as const)
    test(`each message of quality ${qos} has two spans, by MQTT ${version}`, { skip }, async () => {
      const subscriber = await connect(version)
      const publisher = await connect(version)
      await subscriber.subscribeAsync('shop/#', { qos })
      let received = 0
      subscriber.on('message', () => received++)
      for (let i = 0; i < messages; i++) {
        await publisher.publishAsync('shop/orders', `message ${i}`, { qos })
        // A call has a bound of buffers and of bytes: mqtt.js gathers what is written in one turn of its loop, in five
        // buffers for a message, and a subscriber that was held up reads all that waits at once.
        if (i % 10 === 9) await setImmediate()
        if (i - received > 50) await until('the subscriber follows', 20_000, () => i - received < 10)
      }
      await until('all have come', 20_000, () => received === messages)
      await publisher.endAsync()
      await subscriber.endAsync()
      assert.deepEqual(await told(2 * messages), {
        [`${producer} publish shop/orders`]: messages,
        [`${consumer} process shop/orders`]: messages,
      })
    })

test('what the broker refuses is an error', { skip }, async () => {
  const publisher = await connect(5)
  await assert.rejects(publisher.publishAsync('secret/x', 'y', { qos: 1 }), /Not authorized/)
  await publisher.endAsync()
  assert.deepEqual(await told(1), { [`${producer} publish secret/x not_authorized`]: 1 })
})

test('messages of mosquitto_pub are told, by each version of MQTT', { skip }, async () => {
  for (const version of ['mqttv31', 'mqttv311', 'mqttv5']) {
    const where = ['-h', '127.0.0.1', '-p', String(mosquitto.port), '-V', version]
    await promisify(execFile)('mosquitto_pub', [
      ...where,
      '-t',
      'shop/bills',
      '-q',
      '1',
      '-m',
      'x'.repeat(100_000),
    ])
  }
  assert.deepEqual(await told(3), { [`${producer} publish shop/bills`]: 3 })
})
