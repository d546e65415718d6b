// owns: ports
import assert from 'node:assert/strict'
import { copyFileSync, writeFileSync } from 'node:fs'
import { after, afterEach, before, test } from 'node:test'
import type { StatusDocument } from '../../src/view/api/types.ts'
import { AgentProcess, largeRing, type Tree } from '../helpers/agent-process.ts'
import { makeCertificates } from '../helpers/certificates.ts'
import { call } from '../helpers/http.ts'
import { Buyer, plan, requests } from '../helpers/load.ts'
import { startReceiver } from '../helpers/otlp-receiver.ts'
import { freePort, until } from '../helpers/program.ts'
import { soak } from '../helpers/soak.ts'
import { client, server, Telemetry } from '../helpers/telemetry.ts'
import { startNodeShop } from '../helpers/web-servers.ts'

const reloads = soak ? 1000 : 24

let first: Telemetry
let second: Telemetry
const open: { close(): Promise<unknown> }[] = []

before(async () => {
  first = await Telemetry.start()
  second = await Telemetry.start()
})
after(async () => {
  await first?.close()
  await second?.close()
})
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
  first.forget()
  second.forget()
})

async function startAgent(ports: readonly number[], config: Tree = {}): Promise<AgentProcess> {
  const agent = await AgentProcess.start({ endpoint: first.endpoint, ports, config })
  open.push({ close: () => agent.stop() })
  return agent
}

interface Reloaded {
  readonly status: string
  readonly message: string
  readonly changed: readonly string[]
  readonly requires_restart: readonly string[]
  readonly details: { readonly problems: readonly { readonly key: string; readonly line: number }[] }
}

async function reload(agent: AgentProcess): Promise<Reloaded & { readonly code: number }> {
  const { status, body } = await call(agent.port, '/admin/reload', { method: 'POST' })
  return { ...(JSON.parse(body.toString()) as Reloaded), code: status }
}

test(`${reloads} reloads under traffic lose no span, no count, no descriptor and no memory`, async () => {
  const port = await freePort()
  const other = await freePort()
  const agent = await startAgent([port], { self_telemetry: { debug: true }, agent: { ebpf: largeRing } })
  const shop = await startNodeShop(port)
  open.push(shop)
  const rounds = 4
  const tally = () => first.spans(port).length + second.spans(port).length
  /** Differs from the last in everything that changes while the agent runs. */
  const variant = (i: number): Tree => ({
    log_level: i % 3 === 0 ? 'debug' : 'info',
    otlp: {
      endpoint: i % 2 === 0 ? first.endpoint : second.endpoint,
      headers: { 'x-round': String(i) },
      compression: i % 4 < 2 ? 'gzip' : 'none',
    },
    queues: { traces: { batch_size: 50 + (i % 7) * 100 } },
    pipeline: { export: { batch: { timeout: i % 2 === 0 ? '20ms' : '100ms' } } },
    agent: {
      ebpf: {
        debug: i % 5 === 0,
        network: {
          include_ports: i % 2 === 0 ? [port, agent.port] : [port, agent.port, other],
          exclude_paths: [`/never/${i}`],
          sampling: { ratio: 1, slow_threshold: `${500 + (i % 9)}ms` },
          metrics_interval: i % 2 === 0 ? '500ms' : '700ms',
        },
      },
    },
    self_telemetry: { rate_limit: { enabled: i % 2 === 0, requests_per_second: 10_000 } },
  })

  let done = 0
  let settled: { descriptors: number; heap: number } | undefined
  const state = async () => ({
    descriptors: agent.descriptors(),
    heap: (await agent.document<{ memstats: { Alloc: number } }>('/debug/vars')).memstats.Alloc,
  })
  for (let round = 0; round < rounds; round++) {
    const buyer = await Buyer.start('node', shop, plan(requests, shop), true)
    const load = buyer.go()
    for (let i = 0; i < reloads / rounds; i++) {
      agent.configure(variant(++done))
      const { code, status, message, changed } = await reload(agent)
      assert.equal(code, 200, message)
      assert.equal(status, 'ok')
      assert.ok(changed.includes('otlp.headers'), message)
    }
    await load
    await buyer.close()
    if (round === 0) settled = await state()
  }
  const wanted = 2 * requests * rounds
  await until(
    () => `${wanted} spans: ${tally()}\n${agent.logText().slice(-2000)}`,
    60_000,
    () => tally() >= wanted,
  )
  for (const kind of [client, server] as const) {
    const ids = [...first.spans(port, kind), ...second.spans(port, kind)].map(({ spanId }) => spanId)
    assert.equal(new Set(ids).size, requests * rounds)
    assert.equal(ids.length, requests * rounds, 'none came twice')
  }
  await until(
    'the counts of all requests are there',
    20_000,
    () => Math.max(first.servedBy(...shop.pids), second.servedBy(...shop.pids)) >= requests * rounds,
  )
  assert.equal(Math.max(first.servedBy(...shop.pids), second.servedBy(...shop.pids)), requests * rounds)
  const metrics = await agent.metrics()
  // The test's own requests for metrics are excluded by their path.
  const excluded = metrics.sum('svc_spans_dropped_total', 'reason="excluded_path"')
  assert.equal(metrics.sum('svc_spans_dropped_total') - excluded, 0)
  assert.equal(metrics.sum('svc_metrics_dropped_total'), 0)
  assert.equal(metrics.sum('svc_config_reloads_total', 'result="success"'), done)
  let now = await state()
  // Connections close, and garbage goes when the collector comes by, which requests bring about; what leaks stays.
  await until(
    () => `descriptors and heap are as they were: ${JSON.stringify(settled)} → ${JSON.stringify(now)}`,
    30_000,
    async () => {
      for (let i = 0; i < 20; i++) now = await state()
      return now.descriptors <= settled!.descriptors + 4 && now.heap <= settled!.heap + 12 * 2 ** 20
    },
  )
})

test('an invalid configuration is refused with every problem, and the old one goes on', async () => {
  const agent = await startAgent([])
  const before = (await agent.get('/config')).text
  writeFileSync(agent.file, 'otlp:\n  endpiont: a:1\n  timeout: 5\nlog_level: loud\n')
  const { code, message, details } = await reload(agent)
  assert.equal(code, 400)
  assert.match(message, /^reload rejected: .*config\.yaml:2:3: otlp\.endpiont/)
  assert.deepEqual(
    details.problems.map(({ key, line }) => [key, line]),
    [
      ['otlp.endpiont', 2],
      ['otlp.timeout', 3],
      ['log_level', 4],
    ],
  )
  assert.equal((await agent.get('/config')).text, before)
  const metrics = await agent.metrics()
  assert.equal(metrics.sum('svc_config_last_reload_successful'), 0)
  assert.equal(metrics.sum('svc_config_reloads_total', 'result="failure"'), 1)
  assert.ok(agent.log.some(({ level, msg }) => level === 'error' && /reload/.test(msg)))
  // It is told where one looks, without an end to being ready.
  const told = await agent.document<StatusDocument>('/status')
  assert.equal(told.reload.successful, false)
  assert.match(told.reload.place, /config\.yaml:2:3$/)
  assert.match(told.reload.reason, /otlp\.endpiont: unknown key/)
  const degraded = told.degraded.find(({ subsystem }) => subsystem === 'reload')!
  assert.match(degraded.reason, /^rejected at \d{4}-\S+Z: .*config\.yaml:2:3/)
  assert.match(degraded.hint, /svc validate lists all errors.*systemctl reload svc/)
  const ready = await agent.get('/ready')
  const { status, warnings = [] } = JSON.parse(ready.text) as { status: string; warnings?: string[] }
  assert.deepEqual([ready.status, status, warnings.length], [200, 'ready', 1])
  assert.match(
    warnings[0]!,
    /^reload: rejected at \S+Z; previous configuration still active: .*config\.yaml:2:3; see svc status/,
  )
  assert.doesNotMatch(warnings[0]!, /loud/)
  agent.configure({})
  assert.equal((await reload(agent)).code, 200)
  assert.equal((await agent.document<StatusDocument>('/status')).reload.reason, '')
  assert.doesNotMatch((await agent.get('/ready')).text, /warnings/)
})

test('what cannot be applied is told with its part, and nothing of it is applied', async () => {
  const agent = await startAgent([])
  agent.configure({
    log_level: 'debug',
    otlp: { endpoint: first.endpoint, insecure: false, tls: { ca_file: '/nonexistent/ca.pem' } },
  })
  const { code, message } = await reload(agent)
  assert.equal(code, 500)
  assert.match(
    message,
    /cannot apply the configuration: .*\/nonexistent\/ca\.pem.*; previous configuration still active/,
  )
  const config = await agent.document<{ log_level: string }>('/config')
  assert.equal(config.log_level, 'info')
})

test('what needs a restart is named, keeps its value, and is told again', async () => {
  const agent = await startAgent([])
  agent.configure({ service_name: 'another', log_level: 'warn' })
  const { changed, requires_restart, message } = await reload(agent)
  assert.deepEqual(changed, ['log_level'])
  assert.deepEqual(requires_restart, ['service_name'])
  assert.match(message, /service_name/)
  const config = await agent.document<{ service_name: string; log_level: string }>('/config')
  assert.deepEqual([config.service_name, config.log_level], ['svc', 'warn'])
  const again = await reload(agent)
  assert.deepEqual([again.changed, again.requires_restart], [[], ['service_name']])
})

test('SIGHUP and the look at the file take up changes; the same content does nothing', async () => {
  const hot_reload = { check_interval: '1s' }
  const agent = await startAgent([], { pipeline: { operations: { hot_reload } } })
  const level = async () => (await agent.document<{ log_level: string }>('/config')).log_level
  agent.configure({ log_level: 'debug', pipeline: { operations: { hot_reload: { check_interval: '1h' } } } })
  agent.signal('SIGHUP')
  await until('SIGHUP took effect', 20_000, async () => (await level()) === 'debug')
  agent.configure({ log_level: 'warn', pipeline: { operations: { hot_reload } } })
  const { changed } = await reload(agent)
  assert.deepEqual(changed.toSorted(), ['log_level', 'pipeline.operations.hot_reload.check_interval'])
  assert.match((await reload(agent)).message, /unchanged/)
  agent.configure({ log_level: 'error', pipeline: { operations: { hot_reload } } })
  await until('the look at the file took effect', 20_000, async () => (await level()) === 'error')
})

test('concurrent reloads come one after another, and each is answered', async () => {
  const agent = await startAgent([])
  const answers = await Promise.all(
    Array.from({ length: 40 }, async (_, i) => {
      agent.configure({ otlp: { endpoint: first.endpoint, headers: { 'x-try': String(i) } } })
      return reload(agent)
    }),
  )
  assert.ok(answers.every(({ code }) => code === 200))
  const last = await reload(agent)
  assert.match(last.message, /unchanged/)
})

test('a flush tells what the receiver took', async () => {
  const port = await freePort()
  const slow = { export: { batch: { timeout: '60s' } } }
  const agent = await startAgent([port], { pipeline: slow })
  const shop = await startNodeShop(port)
  open.push(shop)
  const buyer = await Buyer.start('node', shop, plan(100, shop), true)
  open.push(buyer)
  await buyer.go()
  // Two sides of each exchange, which the agent has seen when it has collected them.
  await until(
    'all is seen',
    20_000,
    async () => (await agent.metrics()).sum('svc_spans_collected_total') >= 200,
  )
  assert.equal(first.spans(port).length, 0)
  await until('no span waits for its other side', 20_000, async () => {
    const { body, status } = await call(agent.port, '/admin/flush', { method: 'POST' })
    assert.equal(status, 200)
    const { flushed, remaining } = JSON.parse(body.toString())
    assert.ok(flushed.traces >= 0 && flushed.metrics > 0)
    assert.deepEqual(remaining, { traces: 0, metrics: 0, logs: 0, profiles: 0 })
    return first.spans(port).length >= 200
  })
})

test('a renewed certificate of the export is taken up by a new connection', async t => {
  const certificates = makeCertificates()
  t.after(() => certificates.remove())
  const { file, text } = certificates
  const tls = { cert: text('server.pem'), key: text('server.key'), clientCa: text('ca.pem') }
  const receiver = await startReceiver({ tls })
  t.after(() => receiver.close())
  const [cert_file, key_file] = [file('mine.pem'), file('mine.key')]
  const show = (name: string) => {
    copyFileSync(file(`${name}.pem`), cert_file)
    copyFileSync(file(`${name}.key`), key_file)
  }
  show('client')
  const agent = await startAgent([], {
    otlp: {
      endpoint: receiver.endpoint,
      insecure: false,
      tls: { ca_file: file('ca.pem'), cert_file, key_file },
    },
    self_telemetry: { tracing: { enabled: true, sample_rate: 1 } },
  })
  await until('spans arrive', 20_000, () => receiver.counts.traces > 0)
  assert.equal(receiver.counts.connections, 1)
  const before = agent.log.length
  show('server')
  const { code, changed } = await reload(agent)
  assert.equal(code, 200)
  const renewed = ['otlp.tls.cert_file', 'otlp.tls.key_file']
  assert.deepEqual(
    changed.filter(key => !renewed.includes(key)),
    [],
  )
  // The agent's own look at the files may have come before.
  const told = [...changed, ...agent.log.slice(before).map(({ msg }) => msg)].join()
  for (const key of renewed) assert.ok(told.includes(key), told)
  await until('another connection', 20_000, async () => {
    await agent.get('/status')
    return receiver.counts.connections > 1
  })
})

test('the end may take what the configuration that runs allows', async () => {
  const shutdown = (timeout: string, drain_timeout?: string): Tree => ({
    pipeline: { operations: { shutdown: { timeout, ...(drain_timeout && { drain_timeout }) } } },
    self_telemetry: { tracing: { enabled: true, sample_rate: 1 } },
  })
  /** Ends with a span that nobody takes. */
  const end = async (agent: AgentProcess) => {
    await agent.get('/status')
    await until('a span waits', 20_000, async () => {
      const queues = await agent.document<{ queues: { traces: { size: number } } }>('/status/export')
      return queues.queues.traces.size > 0
    })
    const { code } = await agent.stop()
    assert.equal(code, 0, agent.logText())
    const drained = agent.log.find(({ msg }) => msg === 'drained')
    assert.ok((drained!.dropped as { traces: number }).traces > 0)
    return agent.log.find(({ msg }) => msg === 'stopping')!.timeout_ms
  }
  const away = { endpoint: '127.0.0.1:1', ports: [], readyStatus: 503 } as const
  // The default of drain_timeout is longer than all of this; the agent ends itself 5 s after its time is over.
  assert.equal(await end(await AgentProcess.start({ ...away, config: shutdown('1s') })), 1000)
  const agent = await AgentProcess.start({ ...away, config: shutdown('1s', '1s') })
  agent.configure(shutdown('15s', '2s'))
  assert.equal((await reload(agent)).code, 200)
  assert.equal(await end(agent), 15_000)
})
