// owns: host
// A real Prometheus scrapes what the agent serves, the page about itself and that about its host, and finds nothing to
// say about either; nor does promtool.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { after, before, test } from 'node:test'
import { AgentProcess, type Tree } from '../helpers/agent-process.ts'
import { withoutBpf } from '../helpers/compile-bpf.ts'
import { exporterProgram, withoutExporter } from '../helpers/exporter-peer.ts'
import { ExporterProcess } from '../helpers/exporter-process.ts'
import { call } from '../helpers/http.ts'
import { MetricSink } from '../helpers/metric-sink.ts'
import { freePort, until } from '../helpers/program.ts'
import { promtoolProgram, startPrometheus, withoutPrometheus } from '../helpers/prometheus-server.ts'

const skip = withoutPrometheus

let agent: AgentProcess
let sink: MetricSink
let hostPort: number

before(async () => {
  if (skip !== false) return
  hostPort = await freePort()
  sink = await MetricSink.start()
  // All that it can tell of itself: it also captures, and scrapes its own page.
  const config = {
    agent: {
      ebpf: { enabled: withoutBpf === false },
      nodeexporter: { enabled: true, listen_address: `127.0.0.1:${hostPort}` },
    },
    collectors: {
      prometheus: {
        scrape_configs: [
          {
            job_name: 'host',
            scrape_interval: '1s',
            scrape_timeout: '1s',
            static_configs: [{ targets: [`127.0.0.1:${hostPort}`] }],
          },
        ],
      },
    },
  }
  agent = await AgentProcess.start({ endpoint: sink.grpcEndpoint, config: config as unknown as Tree })
  await until(
    () => `the agent exports what it scrapes:\n${agent.logText()}`,
    60_000,
    async () => (await sink.counts()).samples > 0,
  )
})
after(async () => {
  await agent?.stop()
  await sink?.close()
})

/** What promtool finds in a page. */
function complaints(page: Buffer): string[] {
  const { stdout, stderr } = spawnSync(promtoolProgram, ['check', 'metrics'], { input: page })
  return `${stdout}${stderr}`.split('\n').filter(line => line.trim() !== '')
}

async function pageAt(port: number): Promise<Buffer> {
  const { status, body } = await call(port, '/metrics')
  assert.equal(status, 200)
  return body
}

/** Names that the specification gives, and those of newer versions of the exporter. */
const given = /^node_(tcp_rtt_microseconds|netstat_TcpExt_TCP(OFOQueue|RcvQDrop)) /

test('promtool finds nothing to fix in the page of the agent’s own metrics', { skip }, async () => {
  assert.deepEqual(complaints(await pageAt(agent.port)), [])
})

test('promtool finds nothing in the page about the host but what it finds in that of the exporter', {
  skip: skip || withoutExporter,
}, async () => {
  const exporter = await ExporterProcess.start(exporterProgram, ['--no-collector.systemd'])
  try {
    const theirs = new Set(complaints(await pageAt(exporter.port)))
    const ours = complaints(await pageAt(hostPort)).filter(complaint => !theirs.has(complaint))
    assert.deepEqual(
      ours.filter(complaint => !given.test(complaint)),
      [],
    )
  } finally {
    await exporter.stop()
  }
})

test('Prometheus scrapes both pages and has nothing to say in its log', { skip }, async () => {
  const prometheus = await startPrometheus({
    // A scrape may take as long as a host stands still at times.
    global: { scrape_interval: '5s', scrape_timeout: '5s' },
    scrape_configs: [
      { job_name: 'svc', static_configs: [{ targets: [`127.0.0.1:${agent.port}`] }] },
      { job_name: 'host', static_configs: [{ targets: [`127.0.0.1:${hostPort}`] }] },
    ],
  })
  try {
    const value = async (expression: string) =>
      Number((await prometheus.query(expression))[0]?.value[1] ?? Number.NaN)
    await until(
      () => `Prometheus scraped both pages three times:\n${prometheus.log()}`,
      120_000,
      async () => (await value('min(count_over_time(up[5m]))')) >= 3 && (await value('count(up)')) === 2,
    )
    for (const { scrapeUrl, health, lastError } of (await prometheus.targets()).activeTargets)
      assert.deepEqual({ health, lastError }, { health: 'up', lastError: '' }, scrapeUrl)
    assert.equal(await value('min(min_over_time(up[5m]))'), 1)
    const lines = prometheus.log().split('\n')
    assert.deepEqual(
      lines.filter(line => /level=(warn|error)/.test(line)),
      [],
    )
  } finally {
    await prometheus.close()
  }
})
