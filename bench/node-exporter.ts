// The system-metrics endpoint beside Debian's package of the exporter that it replaces, in one run and in turns: CPU of a
// scrape, latency, memory. Each scrape is a connection of its own that takes gzip, one a second as the busiest scrapers
// do. Options: --scrapes N, --rounds N.

import { readdirSync, readFileSync } from 'node:fs'
import { get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { exporterProgram, withoutExporter } from '../test/helpers/exporter-peer.ts'
import { freePort, until } from '../test/helpers/program.ts'
import { BenchHost, median, memory, statusOf } from './lib/bench-host.ts'

const { values } = parseArgs({
  options: { scrapes: { type: 'string', default: '20' }, rounds: { type: 'string', default: '3' } },
})
const scrapes = Number(values.scrapes)
const rounds = Number(values.rounds)
const host = new BenchHost()

interface Target {
  readonly name: string
  readonly pid: number
  readonly url: string
  readonly latencies: number[]
  /** Milliseconds of CPU of each scrape, by round. */
  readonly cpu: number[]
  /** Milliseconds of CPU in a second without scrapes. */
  idle: number
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
  return { name, pid: child.pid!, url, latencies: [], cpu: [], idle: 0, bytes: 0 }
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
    idle: 0,
    bytes: 0,
  }
}

async function measure(target: Target): Promise<void> {
  const idleFrom = cpuMs(target.pid)
  await sleep(3000)
  target.idle = (cpuMs(target.pid) - idleFrom) / 3
  const from = cpuMs(target.pid)
  const began = performance.now()
  for (let i = 0; i < scrapes; i++) {
    const { ms, bytes } = await scrape(target.url)
    target.latencies.push(ms)
    target.bytes = bytes
    await sleep(Math.max(0, began + (i + 1) * 1000 - performance.now()))
  }
  const seconds = (performance.now() - began) / 1000
  target.cpu.push((cpuMs(target.pid) - from - target.idle * seconds) / scrapes)
}

async function main(): Promise<void> {
  if (withoutExporter !== false) throw new Error(withoutExporter)
  try {
    const peer = await startCommand("Debian's exporter", exporterProgram, ['--no-collector.systemd'])
    const command = await startCommand('svc node-exporter', 'bin/svc', ['node-exporter'])
    const agent = await startAgent('agent with endpoint', true)
    const without = await startAgent('agent without endpoint', false)
    const targets = [peer, command, agent]
    for (let round = 0; round < rounds; round++) for (const target of targets) await measure(target)
    for (const { name, pid, latencies, cpu, idle, bytes } of targets) {
      const sorted = latencies.toSorted((a, b) => a - b)
      const { rss, anonymous } = memory(pid)
      console.log(
        `${name}: ${median(cpu).toFixed(2)} ms of CPU a scrape, latency median ${median(sorted).toFixed(1)} ms ` +
          `p95 ${sorted[Math.floor(sorted.length * 0.95)]!.toFixed(1)} ms, ${bytes} bytes gzipped, ` +
          `idle ${idle.toFixed(1)} ms a second, ${rss.toFixed(1)} MB resident, ${anonymous.toFixed(1)} MB anonymous`,
      )
    }
    console.log(
      `CPU of svc node-exporter to the exporter's: ${(median(command.cpu) / median(peer.cpu)).toFixed(2)} (bar 0.5), ` +
        `latency ${(median(command.latencies) / median(peer.latencies)).toFixed(2)} (bar 1)`,
    )
    console.log(
      `anonymous memory that the endpoint adds to the agent: ` +
        `${(memory(agent.pid).anonymous - memory(without.pid).anonymous).toFixed(1)} MB (bar 20)`,
    )
  } finally {
    await host.close()
  }
}

main().catch(error => {
  console.error(error)
  process.exitCode = 1
})
