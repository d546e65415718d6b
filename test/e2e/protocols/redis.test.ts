// owns: ports
import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { Redis } from 'ioredis'
import { AgentProcess, largeRing } from '../../helpers/agent-process.ts'
import { output } from '../../helpers/load.ts'
import { type RedisServer, startRedis, withoutRedis } from '../../helpers/servers/redis.ts'
import { soak } from '../../helpers/soak.ts'
import { client, type SpanLine, Telemetry } from '../../helpers/telemetry.ts'

const count = soak ? 20_000 : 1_000
const skip = withoutRedis

let telemetry: Telemetry
let server: RedisServer
let agent: AgentProcess
/** Spans of the tests before. */
let earlier = 0

before(async () => {
  if (skip) return
  telemetry = await Telemetry.start()
  server = await startRedis()
  agent = await AgentProcess.start({
    endpoint: telemetry.endpoint,
    ports: [server.port],
    config: { agent: { ebpf: largeRing }, queues: { traces: { mem_limit: '512Mi' } } },
  })
})

after(async () => {
  await agent?.stop()
  await server?.close()
  await telemetry?.close()
})

afterEach(() => {
  if (!skip) earlier = telemetry.spans(server.port).length
})

/** How many operations the metric has counted. */
function counted(): number {
  const ours = telemetry.counted(
    ({ metric, attributes }) =>
      metric === 'db.client.operation.duration' && attributes['server.port'] === server.port,
  )
  return ours.reduce((sum, { count }) => sum + count, 0)
}

async function all(atLeast: number): Promise<SpanLine[]> {
  await telemetry.arrived(earlier + atLeast, server.port)
  await telemetry.settle(agent)
  const spans = telemetry.spans(server.port)
  assert.equal(counted(), spans.length)
  return spans.slice(earlier)
}

/** How many spans there are of each name and error. */
function told(spans: readonly SpanLine[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { name, kind, attributes } of spans) {
    assert.equal(kind, client)
    assert.equal(attributes['db.system.name'], 'redis')
    const key = `${name} ${attributes['error.type'] ?? ''}`.trim()
    counts[key] = (counts[key] ?? 0) + 1
  }
  return counts
}

/** A connection of ioredis, which asks who it talks to. */
async function open(): Promise<Redis> {
  const redis = new Redis(server.port, '127.0.0.1', {
    enableReadyCheck: false,
    disableClientInfo: true,
    protocol: 2,
  })
  await redis.echo('ready')
  return redis
}

test('each command of redis-cli has one span with its error', { skip }, async () => {
  const lines = [
    'set a 1',
    'get a',
    'lpush a 1',
    'select 2',
    'multi',
    'incr x',
    'exec',
    'foo bar',
    'object encoding a',
  ]
  await output('sh', '-c', `printf '${lines.join('\\n')}\\n' | redis-cli -p ${server.port}`)
  const spans = await all(lines.length)
  assert.deepEqual(told(spans.filter(({ name }) => name !== 'COMMAND')), {
    SET: 1,
    GET: 1,
    'LPUSH WRONGTYPE': 1,
    SELECT: 1,
    MULTI: 1,
    INCR: 1,
    EXEC: 1,
    'FOO ERR': 1,
    OBJECT: 1,
  })
})

test('pipelines of a hundred commands have a span for each of them', { skip }, async () => {
  const tests = ['set', 'get', 'lpush']
  await output(
    'redis-benchmark',
    ...['-p', `${server.port}`, '-P', '100', '-n', `${count}`, '-c', '4', '-q', '-t', tests.join(',')],
  )
  const spans = await all(tests.length * count)
  const { CONFIG: _config, ...counts } = told(spans)
  assert.deepEqual(counts, { SET: count, GET: count, LPUSH: count })
})

test('each command of ioredis has one span, in pipelines and out of them', { skip }, async () => {
  const redis = await open()
  const pipeline = redis.pipeline()
  for (let i = 0; i < 100; i++) pipeline.set(`key${i}`, `value${i}`)
  await pipeline.exec()
  for (let i = 0; i < 50; i++) await redis.get(`key${i}`)
  await Promise.all(Array.from({ length: 50 }, (_, i) => redis.incr(`counter${i}`)))
  await assert.rejects(redis.lpush('key1', 'a'))
  await redis.set('big', 'x'.repeat(200_000))
  assert.equal((await redis.get('big'))!.length, 200_000)
  await redis.rpush('list', ...Array(5_000).fill('item'))
  assert.equal((await redis.lrange('list', 0, -1)).length, 5_000)
  await redis.blpop('empty', 0.05)
  await redis.quit()
  assert.deepEqual(told(await all(207)), {
    ECHO: 1,
    SET: 101,
    GET: 51,
    INCR: 50,
    'LPUSH WRONGTYPE': 1,
    RPUSH: 1,
    LRANGE: 1,
    BLPOP: 1,
    QUIT: 1,
  })
})

test('published messages are no operations of the subscriber', { skip }, async () => {
  const [subscriber, publisher] = [await open(), await open()]
  let received = 0
  const done = new Promise<void>(resolve =>
    subscriber.on('message', () => {
      if (++received === 100) resolve()
    }),
  )
  await subscriber.subscribe('news', 'more')
  for (let i = 0; i < 100; i++) await publisher.publish('news', `message ${i}`)
  await done
  await subscriber.unsubscribe('news', 'more')
  await subscriber.get('a')
  await subscriber.quit()
  await publisher.quit()
  assert.deepEqual(told(await all(107)), {
    ECHO: 2,
    SUBSCRIBE: 1,
    PUBLISH: 100,
    UNSUBSCRIBE: 1,
    GET: 1,
    QUIT: 2,
  })
})

test('a command whose connection is cut has a span that failed', { skip }, async () => {
  const redis = new Redis(server.port, '127.0.0.1', {
    enableReadyCheck: false,
    disableClientInfo: true,
    protocol: 2,
    retryStrategy: null,
  })
  const id = await redis.client('ID')
  const waiting = assert.rejects(redis.blpop('empty', 0))
  const killer = await open()
  await killer.client('KILL', 'ID', id)
  await waiting
  await killer.quit()
  assert.deepEqual(told(await all(5)), { CLIENT: 2, 'BLPOP connection_closed': 1, ECHO: 1, QUIT: 1 })
})

test('a connection that is older than the agent is seen', { skip }, async () => {
  const redis = await open()
  await redis.set('old', '1')
  await all(2)
  await agent.stop()
  earlier = telemetry.spans(server.port).length
  agent = await AgentProcess.start({ endpoint: telemetry.endpoint, ports: [server.port] })
  for (let i = 0; i < 50; i++) await redis.get('old')
  await redis.quit()
  const counts = told(await all(51))
  assert.deepEqual(counts, { GET: 50, QUIT: 1 })
})
