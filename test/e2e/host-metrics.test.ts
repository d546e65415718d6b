// owns: host
// The agent's host metrics as a whole: its endpoint, its export, its reload, and a port that somebody else has.

import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { afterEach, test } from 'node:test'
import { AgentProcess, type Tree } from '../helpers/agent-process.ts'
import { withoutBpf } from '../helpers/compile-bpf.ts'
import { type Exposition, parseExposition } from '../helpers/exposition.ts'
import { call } from '../helpers/http.ts'
import { startReceiver } from '../helpers/otlp-receiver.ts'
import { freePort, until } from '../helpers/program.ts'

const open: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

interface Started {
  readonly agent: AgentProcess
  readonly port: number
}

async function start(
  nodeexporter: Tree = {},
  others: Tree = {},
  endpoint = '',
  ebpf: Tree = { enabled: false },
): Promise<Started> {
  const port = await freePort()
  const own: Tree = { enabled: true, listen_address: `127.0.0.1:${port}`, ...nodeexporter }
  const config: Tree = { agent: { ebpf, nodeexporter: own }, ...others }
  const agent = await AgentProcess.start({ endpoint, config })
  open.push(() => agent.stop())
  return { agent, port }
}

async function page(port: number, query = ''): Promise<Exposition> {
  const { status, body } = await call(port, `/metrics${query}`)
  assert.equal(status, 200, body.toString())
  return parseExposition(body.toString(), 'text')
}

const has = (found: Exposition, name: string) => found.families.has(name)

test('the agent serves the host metrics, what they are, and how it fares with them', async () => {
  const { port } = await start()
  const found = await page(port)
  for (const name of [
    'node_load1',
    'node_cpu_seconds_total',
    'node_memory_MemTotal_bytes',
    'node_boot_time_seconds',
  ])
    assert.ok(has(found, name), name)
  assert.ok(has(found, 'process_cpu_seconds_total'))
  assert.equal(found.sum('node_scrape_collector_success', { collector: 'loadavg' }), 1)
  assert.equal(found.sum('node_scrape_collector_timeout'), 0)
  // Why there is nothing is said for each collector that has nothing.
  const silent = found.families
    .get('node_scrape_collector_success')!
    .samples.filter(({ value }) => value === 0)
    .map(({ labels }) => labels.collector!)
  assert.deepEqual(
    found.values('node_scrape_collector_reason_info', 'collector').toSorted(),
    silent.toSorted(),
  )

  const document = JSON.parse((await call(port, '/metrics/description')).body.toString())
  const described = new Set<string>()
  for (const { count, metrics } of document.categories) {
    assert.equal(count, metrics.length)
    for (const { name } of metrics) described.add(name)
  }
  const unknown = [...found.families.keys()].filter(
    name => name.startsWith('node_') && !/^node_(scrape_|exporter_build)/.test(name) && !described.has(name),
  )
  assert.deepEqual(unknown, [])
  assert.equal(document.otel_info.version, '1.44.0')
  assert.ok(document.otel_info.mapped_count > 0)
  assert.equal(document.otel_info.total_metrics, document.total)

  const health = JSON.parse((await call(port, '/health')).body.toString())
  assert.deepEqual([health.status, health.namespace], ['healthy', 'node'])
  assert.equal(health.collectors, found.families.get('node_scrape_collector_success')!.samples.length)
  assert.equal((await call(port, '/ready')).body.toString(), 'Ready')
  assert.equal((await call(port, '/live')).body.toString(), 'OK')
  assert.equal((await call(port, '/nope')).status, 404)
})

test('what only eBPF and control groups tell is there unless it is switched off', {
  skip: withoutBpf,
}, async () => {
  // Nothing else of eBPF, which would be of the whole host.
  const ebpf = { enabled: true, network: { enabled: false } }
  const { port } = await start({}, {}, '', ebpf)
  const found = await page(port)
  for (const name of ['node_tcp_rtt_microseconds', 'node_tcp_retransmits_total', 'node_process_open_fds'])
    assert.ok(has(found, name), name)
  assert.equal(found.families.get('node_tcp_rtt_microseconds')!.type, 'histogram')
  const { port: plain } = await start({ ebpf_enhanced: false }, {}, '', ebpf)
  const without = await page(plain)
  for (const name of ['node_tcp_rtt_microseconds', 'node_process_open_fds', 'node_cgroup_memory_usage_bytes'])
    assert.ok(!has(without, name), name)
})

test('the same readings go out over OTLP, by the names of the conventions', async () => {
  const receiver = await startReceiver({ keep: true })
  open.push(() => receiver.close())
  const { agent, port } = await start({ otlp: { interval: '1s' } }, {}, receiver.endpoint)
  const named = (name: string) => receiver.lines.filter(line => line.name === name)
  await until('two exports', 20_000, () => named('system.cpu.time').length >= 2)
  const [first] = named('system.cpu.time') as unknown as {
    points: { attributes: Record<string, unknown> }[]
  }[]
  const cpus = (await page(port)).families.get('node_cpu_seconds_total')!.samples
  assert.equal(first!.points.length, cpus.length)
  assert.deepEqual(Object.keys(first!.points[0]!.attributes).toSorted(), ['cpu.logical_number', 'cpu.mode'])
  for (const name of ['system.memory.usage', 'system.network.io', 'node_load1'])
    assert.ok(named(name).length > 0, name)
  assert.equal(receiver.lines.filter(({ name }) => name.startsWith('node_scrape_')).length, 0)
  const { sum } = await agent.metrics().then(metrics => ({ sum: metrics.sum.bind(metrics) }))
  assert.ok(sum('svc_metrics_collected_total', 'signal_type="host"') > 100)
  assert.equal(sum('svc_metrics_dropped_total'), 0)
})

test('a reload changes collectors, options, bounds and the export without a pause', async () => {
  const receiver = await startReceiver({ keep: true })
  open.push(() => receiver.close())
  const { agent, port } = await start({ otlp: { enabled: false } }, {}, receiver.endpoint)
  assert.ok(has(await page(port), 'node_load1'))
  assert.ok(!has(await page(port), 'node_softirqs_functions_total'))
  const before = agent.descriptors()
  for (let i = 0; i < 10; i++) {
    agent.configure({
      agent: {
        nodeexporter: {
          collectors: { loadavg: i % 2 === 0, softirqs: true },
          vmstat: { fields: '^pgfault$' },
          otlp: { enabled: true, interval: '1s' },
        },
      },
    })
    const { body, status } = await call(agent.port, '/admin/reload', { method: 'POST' })
    assert.equal(status, 200, body.toString())
  }
  const found = await page(port)
  assert.ok(has(found, 'node_load1') === false && has(found, 'node_softirqs_functions_total'))
  assert.ok(has(found, 'node_vmstat_pgfault') && !has(found, 'node_vmstat_pgpgin'))
  await until('an export', 20_000, () => receiver.lines.some(({ name }) => name === 'system.cpu.time'))
  await page(port)
  // What the collectors before had open is closed.
  assert.ok(agent.descriptors() < before + 60, `${before} → ${agent.descriptors()} descriptors`)
})

test('options that contradict each other are refused, and what runs goes on', async () => {
  const { agent, port } = await start()
  agent.configure({
    agent: { nodeexporter: { diskstats: { device_include: ['sda'], device_exclude: ['sdb'] } } },
  })
  const { body, status } = await call(agent.port, '/admin/reload', { method: 'POST' })
  assert.equal(status, 400)
  assert.match(body.toString(), /include.*exclude/)
  assert.ok(has(await page(port), 'node_load1'))
})

test('scrapes are answered from readings in the background where an interval is set', async () => {
  const { port } = await start({ collector_interval: '1h' })
  await until('the first reading', 20_000, async () => (await call(port, '/ready')).status === 200)
  const faults = async () => (await page(port, '?collect[]=vmstat')).sum('node_vmstat_pgfault')
  const first = await faults()
  assert.ok(first > 0)
  assert.equal(await faults(), first)
})

test('a port that is taken stops the agent only if the endpoint was asked for', async () => {
  const holder = createServer()
  await new Promise<void>(resolve => holder.listen(0, '127.0.0.1', resolve))
  open.push(() => new Promise(resolve => holder.close(resolve)))
  const { port } = holder.address() as { port: number }
  const listen_address = `127.0.0.1:${port}`
  const agent = await AgentProcess.spawn({
    config: { agent: { ebpf: { enabled: false }, nodeexporter: { enabled: true, listen_address } } },
  })
  const { code } = await agent.exited
  assert.equal(code, 1)
  assert.match(agent.logText(), /cannot listen on .*agent\.nodeexporter\.listen_address.*in use by/)

  const other = await AgentProcess.start({
    config: { agent: { ebpf: { enabled: false }, nodeexporter: { listen_address } } },
  })
  open.push(() => other.stop())
  const { degraded } = await other.document<{ degraded: { subsystem: string; reason: string }[] }>('/status')
  assert.deepEqual(
    degraded.map(({ subsystem }) => subsystem),
    ['host metrics'],
  )
  assert.match(degraded[0]!.reason, /in use by/)
})
