// The management API: small answers a second on one core, and how fast /healthz answers while the agent handles a busy
// host. Runs dist/svc.cjs through bin/svc. Options: --runs N, --seconds N, --connections N.
// at most: 5 min
import { spawn, spawnSync } from 'node:child_process'
import { Agent as Connections, get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Agent, BenchHost, cpuSeconds } from './lib/bench-host.ts'
import { report } from './lib/figures.ts'

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
    connections: { type: 'string', default: '16' },
  },
})
const runs = Number(values.runs)
const seconds = Number(values.seconds)
const host = new BenchHost()

/** Requests per second of wrk on CPU 1, the agent being on CPU 0. */
function rate(url: string): number {
  const args = ['-c', '1', 'wrk', '-t1', `-c${values.connections}`, `-d${seconds}s`, url]
  const { stdout } = spawnSync('taskset', args)
  return Number(/Requests\/sec:\s*([\d.]+)/.exec(stdout.toString())?.[1])
}

async function smallAnswers(): Promise<void> {
  const agent = await host.startAgent('', { config: 'agent: {ebpf: {enabled: false}}\n' })
  spawnSync('taskset', ['-ap', '-c', '0', String(agent.pid)])
  for (const path of ['/healthz', '/ready', '/status', '/metrics']) {
    const rates: number[] = []
    const cpu: number[] = []
    for (let i = 0; i < runs; i++) {
      const before = cpuSeconds(agent.pid)
      rates.push(rate(agent.base + path))
      cpu.push(((cpuSeconds(agent.pid) - before) / (rates.at(-1)! * seconds)) * 1e6)
    }
    report(`api${path.replace('/', '.')}.answers_per_s`, rates, '{answer}/s', 'more', 'on one core')
    report(`api${path.replace('/', '.')}.cpu_us`, cpu, 'us', 'less')
  }
  await host.end(agent.child)
}

/** Milliseconds until /healthz answered, each on the one kept connection. */
async function latencies(agent: Agent, forMs: number): Promise<number[]> {
  const connections = new Connections({ keepAlive: true, maxSockets: 1 })
  const found: number[] = []
  for (const end = performance.now() + forMs; performance.now() < end; await sleep(10)) {
    const began = performance.now()
    await new Promise<void>((resolve, reject) => {
      get(`${agent.base}/healthz`, { agent: connections }, response => {
        response.resume().on('end', resolve)
      }).on('error', reject)
    })
    found.push(performance.now() - began)
  }
  connections.destroy()
  return found
}

function reportLatencies(when: 'quiet' | 'busy', found: readonly number[], note = ''): void {
  const sorted = found.toSorted((a, b) => a - b)
  report(`api.healthz.${when}.latency_ms`, found, 'ms', 'less')
  report(`api.healthz.${when}.p99_ms`, sorted[Math.floor(sorted.length * 0.99)]!, 'ms', 'less', note)
  report(`api.healthz.${when}.worst_ms`, sorted.at(-1)!, 'ms', 'less')
}

async function underLoad(): Promise<void> {
  const url = await host.startNginx()
  const agent = await host.startAgent(await host.startSink())
  const quiet = await latencies(agent, seconds * 1000)
  const load = spawn('wrk', ['-t1', '-c50', `-d${2 * seconds}s`, url], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const ended = new Promise(resolve => load.once('close', resolve))
  let said = ''
  load.stdout.on('data', part => {
    said += part
  })
  await sleep(1000)
  const busy = await latencies(agent, seconds * 1000)
  await ended
  const requests = Number(/Requests\/sec:\s*([\d.]+)/.exec(said)?.[1])
  reportLatencies('quiet', quiet)
  console.log('busy: wrk and nginx exchange requests, both sides traced and exported')
  report('api.healthz.busy.requests_per_s', requests, '{request}/s', 'more')
  reportLatencies('busy', busy, 'bar 50 ms')
  await host.end(agent.child)
}

async function main(): Promise<void> {
  try {
    await smallAnswers()
    await underLoad()
  } finally {
    await host.close()
  }
}

main().catch(error => {
  console.error(error)
  process.exitCode = 1
})
