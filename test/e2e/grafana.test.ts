// owns: host
// A real agent, scraped by a real Prometheus, its OTLP taken by a VictoriaMetrics: what arrives is what is declared, and the
// dashboards show it.

import assert from 'node:assert/strict'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, test } from 'node:test'
import { AgentProcess } from '../helpers/agent-process.ts'
import { withoutBpf } from '../helpers/compile-bpf.ts'
import { dashboard, filledIn, knownSeries, panelsOf } from '../helpers/grafana.ts'
import { call } from '../helpers/http.ts'
import { startReceiver } from '../helpers/otlp-receiver.ts'
import { freePort, pause } from '../helpers/program.ts'
import { startPrometheus, withoutPrometheus } from '../helpers/prometheus-server.ts'
import { onlyInSoak } from '../helpers/soak.ts'
import { VictoriaMetrics, withoutVictoriaMetrics } from '../helpers/victoria-metrics.ts'
import { startPythonShop } from '../helpers/web-servers.ts'

const skip = onlyInSoak || withoutBpf || withoutPrometheus || withoutVictoriaMetrics

/** Panels that may have nothing to show on a host such as this one, by the reason. */
const mayBeEmpty: Readonly<Record<string, readonly string[]>> = {
  'no swap': ['host: SWAP Used'],
  'a virtual machine has no sensors, supplies or clocks of its own': [
    'host: CPU Frequency',
    'host: Hardware temperature monitor',
    'host: Throttle cooling device',
    'host: Power supply',
    'host: Memory errors',
  ],
  'no array of disks': ['host: RAID'],
  'no systemd': [
    'host: Systemd Units State',
    'host: Systemd Failed Units',
    'host: Systemd Sockets Current',
    'host: Systemd Sockets Accepted',
  ],
  'a kernel without accounting of interrupts': ['host: IRQ Pressure'],
  'a kernel without statistics of its scheduler': [
    'host: Process schedule stats Running / Waiting',
    'host: Schedule timeslices executed by each CPU',
  ],
  'a kernel without PSI': [
    'host: CPU Pressure',
    'host: Memory Pressure',
    'host: I/O Pressure',
    'host: Pressure',
  ],
  'a kernel without connection tracking': ['host: NF Conntrack'],
  'all requests of this test are of HTTP': [
    'gRPC servers',
    'gRPC clients',
    'Databases',
    'Messages',
    'Deliveries',
    'Lookups',
  ].flatMap(what => [`services: ${what}: rate`, `services: ${what}: errors`, `services: ${what}: p95`]),
  'nothing fails here': ['agent: Errors', 'agent: Degraded', 'services: Failed connections'],
  'logs and discovery are off in this test': ['agent: Log records', 'agent: Metadata'],
}

const open: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

interface Sample {
  readonly metric: Readonly<Record<string, string>>
  readonly value: readonly [seconds: number, value: string]
}
type Query = (expression: string) => Promise<readonly Sample[]>

interface Places {
  /** Both pages of the agent, as a Prometheus scrapes them. */
  readonly scraped: Query
  /** Its metrics over OTLP, as a VictoriaMetrics has them. */
  readonly sent: Query
  readonly hostPage: string
  readonly shop: number
}

async function start(): Promise<Places> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-grafana-'))
  open.push(async () => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'targets.json')
  const server = await startPrometheus({
    global: { scrape_interval: '1s', scrape_timeout: '1s' },
    scrape_configs: [{ job_name: 'svc', file_sd_configs: [{ files: [file], refresh_interval: '1s' }] }],
  })
  open.push(server.close)
  const storage = await VictoriaMetrics.start([
    '-opentelemetry.usePrometheusNaming',
    '-search.latencyOffset=0s',
    '-search.disableCache',
  ])
  open.push(() => storage.close())
  const receiver = await startReceiver({})
  open.push(() => receiver.close())
  const shop = await startPythonShop(await freePort())
  open.push(() => shop.close())
  const hostPort = await freePort()
  const agent = await AgentProcess.start({
    endpoint: receiver.endpoint,
    ports: [shop.port],
    config: {
      otlp: { metrics: { endpoint: `${storage.otlpUrl}/v1/metrics`, protocol: 'http/protobuf' } },
      pipeline: { export: { queue: { enabled: true, directory: join(folder, 'queue') } } },
      agent: {
        nodeexporter: {
          listen_address: `127.0.0.1:${hostPort}`,
          otlp: { interval: '2s' },
          collectors: { processes: true, tcpstat: true },
        },
        profiling: { enabled: true },
        ebpf: { process: { enabled: true }, network: { tcp_metrics: true, flows: true } },
      },
    },
  })
  open.push(() => agent.stop())
  const targets = [`127.0.0.1:${hostPort}`, `127.0.0.1:${agent.port}`]
  writeFileSync(`${file}.next`, JSON.stringify([{ targets }]))
  renameSync(`${file}.next`, file)
  const sent: Query = async expression => {
    await call(storage.port, '/internal/force_flush')
    return storage.query(expression)
  }
  return { scraped: server.query, sent, hostPage: targets[0]!, shop: shop.port }
}

/** Panels without any answer. */
async function emptyPanels({ scraped, sent, hostPage }: Places): Promise<readonly string[]> {
  const values = { __rate_interval: '15s', node: hostPage, job: 'svc' }
  const empty: string[] = []
  for (const name of ['host', 'services', 'agent', 'profiles'] as const)
    for (const { title, targets = [] } of panelsOf(dashboard(name))) {
      let series = 0
      const asked = targets.flatMap(({ expr }) => (expr === undefined ? [] : [expr]))
      for (const expr of asked) {
        const query = name === 'services' ? sent : scraped
        series += (await query(filledIn(expr, values))).length
      }
      if (asked.length > 0 && series === 0) empty.push(`${name}: ${title}`)
    }
  return empty
}

test('what arrives is declared, and the dashboards show it', { skip }, async () => {
  const places = await start()
  let done = false
  const load = (async () => {
    for (let i = 0; !done; i++) {
      await call(places.shop, i % 10 === 0 ? '/fail' : `/users/${i}`)
      await pause(20)
    }
  })()
  open.push(async () => {
    done = true
    await load
  })
  const allowed = new Set(Object.values(mayBeEmpty).flat())
  const titles = ['host', 'services', 'agent'].flatMap(name =>
    panelsOf(dashboard(name as 'host')).map(({ title }) => `${name}: ${title}`),
  )
  assert.deepEqual(
    [...allowed].filter(panel => !titles.includes(panel)),
    [],
  )
  const deadline = performance.now() + 90_000
  let missing: readonly string[]
  do {
    await pause(2000)
    missing = (await emptyPanels(places)).filter(panel => !allowed.has(panel))
  } while (missing.length > 0 && performance.now() < deadline)
  assert.deepEqual(missing, [])
  await balances(places.scraped)
  const known = await knownSeries()
  for (const query of [places.scraped, places.sent]) {
    const series = await query('{__name__=~".+"}')
    assert.ok(series.length > 300)
    assert.deepEqual([...new Set(series.flatMap(({ metric }) => faultsOf(metric, known)))], [])
  }
})

/** The balance sheet adds up at every scrape. */
async function balances(query: Query): Promise<void> {
  const { targets = [] } = panelsOf(dashboard('agent')).find(({ title }) => title === 'Unaccounted')!
  for (const { expr = '', legendFormat } of targets)
    for (const { value } of await query(filledIn(expr))) assert.equal(value[1], '0', legendFormat)
}

/** Labels of resources and of targets. */
const ofOthers = /^(job|instance|(service|host|os|process|telemetry|container|k8s|cloud)_\w+)$/
/** Named by what collectors read, as those of `dynamicCollectors` are; of these the conventions have names. */
const byReading = /^system_(memory|paging)_/

function faultsOf(
  metric: Readonly<Record<string, string>>,
  known: ReadonlyMap<string, ReadonlySet<string>>,
): readonly string[] {
  const { __name__: name = '', ...labels } = metric
  if (byReading.test(name)) return []
  const own = known.get(name)
  if (own === undefined) return [`${name} is declared by no unit`]
  const others = Object.keys(labels).filter(label => !own.has(label) && !ofOthers.test(label))
  return others.map(label => `${name} has no label ${label}`)
}
