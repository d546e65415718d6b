// The system-metrics endpoint beside Debian's package of the exporter that it replaces, in one run and in turns: CPU of a
// scrape, latency, memory. Each scrape is a connection of its own that takes gzip, one a second as the busiest scrapers
// do. Options: --scrapes N, --rounds N.
// at most: 8 min

import { readdirSync, readFileSync } from 'node:fs'
import { get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { exporterProgram, withoutExporter } from '../test/helpers/exporter-peer.ts'
import { freePort, until } from '../test/helpers/program.ts'
import { BenchHost, memory, statusOf } from './lib/bench-host.ts'
import { median, report, skip } from './lib/figures.ts'

const { values } = parseArgs({
  options: { scrapes: { type: 'string', default: '8' }, rounds: { type: 'string', default: '5' } },
})
const scrapes = Number(values.scrapes)
const rounds = Number(values.rounds)
const host = new BenchHost()

interface Target {
  /** In the names of figures. */
  readonly name: string
  readonly pid: number
  readonly url: string
  readonly latencies: number[]
  /** Milliseconds of CPU of each scrape, by round. */
  readonly cpu: number[]
  /** Milliseconds of CPU in a second without scrapes, by round. */
  readonly idle: number[]
  bytes: number
}

/** CPU of a process in milliseconds, to the nanosecond that the scheduler counts. */
function cpuMs(pid: number): number {
  let nanoseconds = 0
  for (const task of readdirSync(`/proc/${pid}/task`))
    nanoseconds += Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'latin1').split(' ')[0])
  return nanoseconds / 1e6
}

/** One scrape: milliseconds until the last byte, and how many came. */
function scrape(url: string): Promise<{ ms: number; bytes: number }> {
  const began = performance.now()
  return new Promise((resolve, reject) => {
    get(url, { agent: false, headers: { 'Accept-Encoding': 'gzip' } }, response => {
      let bytes = 0
      response.on('data', part => {
        bytes += part.length
      })
      response.on('end', () => resolve({ ms: performance.now() - began, bytes }))
    }).on('error', reject)
  })
}

async function startCommand(name: string, command: string, args: readonly string[]): Promise<Target> {
  const port = await freePort()
  const child = host.start(command, [...args, `--web.listen-address=127.0.0.1:${port}`])
  const url = `http://127.0.0.1:${port}/metrics`
  await until(`${name} has started`, 20_000, async () => (await statusOf(url)) === 200)
  return { name, pid: child.pid!, url, latencies: [], cpu: [], idle: [], bytes: 0 }
}

async function startAgent(name: string, endpoint: boolean): Promise<Target> {
  const port = await freePort()
  const metrics = endpoint ? `{listen_address: "127.0.0.1:${port}", otlp: false}` : 'false'
  const agent = await host.startAgent('', {
    config: `agent: {ebpf: {enabled: false}, nodeexporter: ${metrics}}\n`,
  })
  return {
    name,
    pid: agent.pid,
    url: endpoint ? `http://127.0.0.1:${port}/metrics` : '',
    latencies: [],
    cpu: [],
    idle: [],
    bytes: 0,
  }
}

async function measure(target: Target): Promise<void> {
  const idleFrom = cpuMs(target.pid)
  await sleep(3000)
  const idle = (cpuMs(target.pid) - idleFrom) / 3
  target.idle.push(idle)
  const from = cpuMs(target.pid)
  const began = performance.now()
  for (let i = 0; i < scrapes; i++) {
    const { ms, bytes } = await scrape(target.url)
    target.latencies.push(ms)
    target.bytes = bytes
    await sleep(Math.max(0, began + (i + 1) * 1000 - performance.now()))
  }
  const seconds = (performance.now() - began) / 1000
  target.cpu.push((cpuMs(target.pid) - from - idle * seconds) / scrapes)
}

async function main(): Promise<void> {
  if (withoutExporter !== false) {
    skip(withoutExporter)
    return
  }
  try {
    const peer = await startCommand('debian', exporterProgram, ['--no-collector.systemd'])
    const command = await startCommand('svc', 'bin/svc', ['node-exporter'])
    const agent = await startAgent('agent', true)
    const without = await startAgent('agent_without', false)
    const targets = [peer, command, agent]
    for (let round = 0; round < rounds; round++) for (const target of targets) await measure(target)
    for (const { name, pid, latencies, cpu, idle, bytes } of targets) {
      const sorted = latencies.toSorted((a, b) => a - b)
      const { rss, anonymous } = memory(pid)
      const of = `node-exporter.${name}`
      report(`${of}.cpu_ms_per_scrape`, cpu, 'ms', 'less')
      report(`${of}.latency_ms`, latencies, 'ms', 'less')
      report(`${of}.latency_p95_ms`, sorted[Math.floor(sorted.length * 0.95)]!, 'ms', 'less')
      report(`${of}.gzip_bytes`, bytes, 'By', 'less')
      report(`${of}.idle_cpu_ms_per_s`, idle, 'ms/s', 'less')
      report(`${of}.rss_mib`, rss, 'MiB', 'less')
      report(`${of}.anonymous_mib`, anonymous, 'MiB', 'less')
    }
    const cpuRatios = command.cpu.map((each, round) => each / peer.cpu[round]!)
    const latencyRatio = median(command.latencies) / median(peer.latencies)
    const added = memory(agent.pid).anonymous - memory(without.pid).anonymous
    report('node-exporter.svc.cpu_ratio', cpuRatios, '1', 'less', "to Debian's, bar 0.5")
    report('node-exporter.svc.latency_ratio', latencyRatio, '1', 'less', "to Debian's, bar 1")
    report('node-exporter.agent.added_anonymous_mib', added, 'MiB', 'less', 'by the endpoint, bar 20')
  } finally {
    await host.close()
  }
}

main().catch(error => {
  console.error(error)
  process.exitCode = 1
})
