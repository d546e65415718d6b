// owns: ports
import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { type Collection, MongoClient, type MongoClientOptions } from 'mongodb'
import { AgentProcess, largeRing } from '../../helpers/agent-process.ts'
import { MongodbServer } from '../../helpers/servers/mongodb.ts'
import { soak } from '../../helpers/soak.ts'
import { client, type SpanLine, Telemetry } from '../../helpers/telemetry.ts'

/** Commands between driver and server alone. */
const silent = ['hello', 'isMaster', 'ismaster', 'endSessions']
const rounds = soak ? 500 : 25
const concurrency = 4

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

async function startAgent(port: number): Promise<AgentProcess> {
  const agent = await AgentProcess.start({
    endpoint: telemetry.endpoint,
    ports: [port],
    config: { agent: { ebpf: largeRing } },
  })
  open.push({ close: () => agent.stop() })
  return agent
}

function clientOf(server: MongodbServer, options: MongoClientOptions = {}): MongoClient {
  return new MongoClient(server.url, { maxPoolSize: concurrency, ...options })
}

/** What an application does, failures included. */
async function use(users: Collection<{ _id?: string; i?: number; text?: string }>): Promise<void> {
  await users.insertMany(Array.from({ length: 30 }, (_, i) => ({ i, text: 'x'.repeat(2_000) })))
  await users.insertOne({ i: 1 }, { writeConcern: { w: 0 } })
  await users.find({}, { batchSize: 10 }).toArray()
  await users.updateOne({ i: 1 }, { $set: { i: 2 } })
  await users.aggregate([{ $match: { i: 2 } }]).toArray()
  await users.findOneAndUpdate({ i: 2 }, { $set: { i: 3 } })
  await assert.rejects(users.insertOne({ _id: 'twice' }))
  await assert.rejects(users.find({ fail: 1 } as never).toArray())
  await users.deleteMany({})
}

/** Uses the server from several sides at once, each with a collection of its own. */
async function useAll(mongo: MongoClient): Promise<void> {
  const side = async (name: string) => {
    for (let round = 0; round < rounds; round++) await use(mongo.db('shop').collection(name))
  }
  await Promise.all(Array.from({ length: concurrency }, (_, i) => side(`users${i}`)))
}

function countedOf(port: number): number {
  return telemetry
    .counted(
      ({ metric, attributes }) =>
        metric === 'db.client.operation.duration' && attributes['server.port'] === port,
    )
    .reduce((sum, { count }) => sum + count, 0)
}

function tally(names: Iterable<string>): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}

/** Holds the spans against the commands that the server has read since `before` of them. */
async function check(agent: AgentProcess, server: MongodbServer, before = 0): Promise<SpanLine[]> {
  const commands = (await server.commands()).slice(before).filter(name => !silent.includes(name))
  await telemetry.arrived(commands.length, server.port, client)
  await telemetry.settle(agent)
  const spans = telemetry.spans(server.port)
  assert.deepEqual(
    tally(spans.map(({ attributes }) => String(attributes['db.operation.name']))),
    tally(commands),
  )
  assert.equal(countedOf(server.port), commands.length)
  assert.ok(spans.every(({ kind }) => kind === client))
  const failed = spans
    .filter(({ status }) => status === 2)
    .map(({ attributes }) => String(attributes['error.type']))
  assert.deepEqual(tally(failed), { 11000: concurrency * rounds, 2: concurrency * rounds })
  return spans
}

test('every command of a driver has one span and one count', async () => {
  const server = closing(await MongodbServer.start())
  const agent = await startAgent(server.port)
  await useAll(closing(clientOf(server)))
  for (const { name, attributes } of await check(agent, server)) {
    assert.equal(name, `${attributes['db.operation.name']} ${attributes['db.collection.name']}`)
    assert.match(String(attributes['db.collection.name']), /^users\d$/)
    assert.equal(attributes['db.namespace'], 'shop')
  }
})

test('connections that are older than the agent are seen exactly', async () => {
  const server = closing(await MongodbServer.start())
  const mongo = closing(clientOf(server, { minPoolSize: concurrency }))
  await Promise.all(Array.from({ length: concurrency }, () => mongo.db('shop').command({ ping: 1 })))
  const agent = await startAgent(server.port)
  const before = (await server.commands()).length
  await useAll(mongo)
  await check(agent, server, before)
})

test('every compressed command has one span', async () => {
  const server = closing(await MongodbServer.start({ compress: true }))
  const agent = await startAgent(server.port)
  const mongo = clientOf(server, { compressors: ['zlib'] })
  await useAll(mongo)
  await mongo.close()
  const commands = (await server.commands()).filter(name => !silent.includes(name))
  await telemetry.arrived(commands.length, server.port, client)
  await telemetry.settle(agent)
  const spans = telemetry.spans(server.port)
  assert.deepEqual(tally(spans.map(({ name, status }) => `${name} ${status}`)), {
    'mongodb 0': commands.length,
  })
  assert.equal(countedOf(server.port), commands.length)
})
