// owns: ports
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { Agent, get } from 'node:http'
import { after, afterEach, before, test } from 'node:test'
import { AgentProcess, largeRing } from '../helpers/agent-process.ts'
import { withoutBpf } from '../helpers/compile-bpf.ts'
import { freePort, Program } from '../helpers/program.ts'
import { type Postgres, postgresName, startPostgres, withoutPostgres } from '../helpers/servers/postgres.ts'
import { type RedisServer, startRedis, withoutRedis } from '../helpers/servers/redis.ts'
import { soak } from '../helpers/soak.ts'
import { client, type SpanLine, server, Telemetry } from '../helpers/telemetry.ts'
import { withoutTracepoints, withTracefs } from '../helpers/tracefs.ts'
import { startProxy } from '../helpers/web-servers.ts'

const skip = withoutBpf || withoutPostgres || withoutRedis || withoutTracepoints
const requests = soak ? 2_000 : 200
const items = 64

let telemetry: Telemetry
let postgres: Postgres
let redis: RedisServer
let open: { close(): Promise<unknown> }[] = []

before(async () => {
  if (skip) return
  telemetry = await Telemetry.start()
  postgres = await startPostgres()
  redis = await startRedis()
  const tables = Array.from({ length: items }, (_, i) => `CREATE TABLE item_${i} (id int, name text);`)
  const account = ['-h', '127.0.0.1', '-p', String(postgres.port), '-U', postgresName, '-d', postgresName]
  execFileSync(postgres.program('psql'), ['-q', '-X', ...account], { input: tables.join('\n') })
})
after(async () => {
  await redis?.close()
  await postgres?.close()
  await telemetry?.close()
})
afterEach(async () => {
  for (const one of open.reverse()) await one.close()
  open = []
  telemetry.forget()
})

interface Chain {
  readonly front: number
  readonly app: number
}

/** nginx before Node.js before PostgreSQL and Redis, and an agent that looks at all of them. */
async function startChain(backend: string): Promise<Chain & { agent: AgentProcess }> {
  const app = await Program.start('chain-node.ts', {
    port: 0,
    postgres: postgres.port,
    user: postgresName,
    redis: redis.port,
  })
  open.push(app)
  const front = await startProxy(await freePort(), app.ready.port)
  open.push(front)
  const agent = await AgentProcess.start({
    wrapper: backend === 'syscalls' ? withTracefs : [],
    endpoint: telemetry.endpoint,
    ports: [front.port, app.ready.port, postgres.port, redis.port],
    config: { agent: { ebpf: { backend, ...largeRing } } },
  })
  open.push({ close: () => agent.stop() })
  return { front: front.port, app: app.ready.port, agent }
}

/** Asks for /jobs/N so many times, at most `concurrency` at once. */
async function ask(port: number, concurrency: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: concurrency })
  let next = 0
  const one = (path: string) =>
    new Promise<void>((resolve, reject) => {
      get({ agent, port, host: '127.0.0.1', path }, response => {
        response.resume().on('end', () => {
          if (response.statusCode === 200) resolve()
          else reject(new Error(`${path} was answered by ${response.statusCode}`))
        })
      }).on('error', reject)
    })
  const worker = async () => {
    while (next < requests) await one(`/jobs/${next++ % items}`)
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  agent.destroy()
}

/** For which request a span is. */
function numberOf({ attributes, name }: SpanLine): number {
  const url = String(attributes['url.path'] ?? attributes['url.full'] ?? '')
  const found = /\/jobs\/(\d+)/.exec(url) ?? /item_(\d+)/.exec(name)
  if (found !== null) return Number(found[1])
  return String(attributes['db.query.text']).split('?').length - 2
}

/** Parents of spans, held against what they are for. Returns how many have one. */
function checkParents(children: readonly SpanLine[], parents: readonly SpanLine[], modulo: number): number {
  const byId = new Map(parents.map(span => [span.spanId, span]))
  let joined = 0
  for (const child of children) {
    if (child.parentSpanId === '') continue
    const parent = byId.get(child.parentSpanId)
    assert.ok(parent, `the parent of "${child.name}" is not among those that it may have`)
    assert.equal(numberOf(child) % modulo, numberOf(parent) % modulo, 'a wrong parent')
    assert.equal(child.traceId, parent.traceId)
    joined++
  }
  return joined
}

interface Spans {
  readonly asked: SpanLine[]
  readonly front: SpanLine[]
  readonly passedOn: SpanLine[]
  readonly app: SpanLine[]
  readonly queries: SpanLine[]
  readonly lookups: SpanLine[]
}

async function spansOf({ front, app, agent }: Chain & { agent: AgentProcess }): Promise<Spans> {
  await telemetry.arrived(2 * requests, front)
  await telemetry.arrived(2 * requests, app)
  await telemetry.arrived(requests, postgres.port)
  await telemetry.arrived(requests, redis.port)
  await telemetry.settle(agent)
  return {
    asked: telemetry.spans(front, client),
    front: telemetry.spans(front, server),
    passedOn: telemetry.spans(app, client),
    app: telemetry.spans(app, server),
    queries: telemetry.spans(postgres.port).filter(({ name }) => name.includes('item_')),
    lookups: telemetry.spans(redis.port).filter(({ name }) => name === 'EXISTS'),
  }
}

/** Each hop of each request has one span. Where one has not, every span near it is told. */
function checkCounts(spans: Spans, { front, app }: Chain): void {
  const wrong = Object.entries(spans).filter(([, some]) => some.length !== requests)
  if (wrong.length === 0) return
  const counts = Object.entries(spans).map(([hop, some]) => `${hop} ${some.length}`)
  const strange = [front, app, postgres.port, redis.port]
    .flatMap(port => telemetry.spans(port))
    .filter(span => !Object.values(spans).some(some => some.includes(span)))
  assert.fail(`not ${requests} of each: ${counts.join(', ')}; besides ${JSON.stringify(strange.slice(0, 5))}`)
}

const back = ['sock', 'syscalls'] as const

for (const backend of back) {
  test(`${backend}: one request at a time through nginx and Node.js to PostgreSQL and Redis is one trace`, {
    skip,
  }, async () => {
    const chain = await startChain(backend)
    await ask(chain.front, 1)
    const spans = await spansOf(chain)
    checkCounts(spans, chain)
    const { asked, front, passedOn, app, queries, lookups } = spans
    assert.equal(checkParents(front, asked, items), requests)
    assert.equal(checkParents(passedOn, front, items), requests)
    assert.equal(checkParents(app, passedOn, items), requests)
    assert.equal(checkParents(queries, app, items), requests)
    assert.equal(checkParents(lookups, app, 8), requests)
    // The asking process of this test has no request that it serves.
    assert.ok(asked.every(({ parentSpanId }) => parentSpanId === ''))
    assert.equal(new Set([...asked, ...queries].map(({ traceId }) => traceId)).size, requests)
  })

  test(`${backend}: twenty requests at a time have no wrong parent`, { skip }, async () => {
    const chain = await startChain(backend)
    await ask(chain.front, 20)
    const spans = await spansOf(chain)
    checkCounts(spans, chain)
    const { asked, front, passedOn, app, queries, lookups } = spans
    // What the two ends of a connection tell is certain, whatever else happens.
    assert.equal(checkParents(front, asked, items), requests)
    assert.equal(checkParents(app, passedOn, items), requests)
    checkParents(passedOn, front, items)
    checkParents(queries, app, items)
    checkParents(lookups, app, 8)
  })
}
