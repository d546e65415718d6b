// What the whole agent costs: throughput of nginx under wrk with and without it (pairs, interleaved), its CPU time for
// each request, at saturation and at 10,000 requests a second, its memory over a million requests, and how fast it
// starts. Runs dist/svc.cjs through bin/svc, as users do. Options: --pairs N, --seconds N, --requests N, --node PATH
// (another runtime for the same bundle), --part NAME (only one of start, busy, idle, throughput, export, rate, memory).
// at most: 12 min
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { freePort } from '../test/helpers/program.ts'
import { withTracefs } from '../test/helpers/tracefs.ts'
import { BenchHost, cpuSeconds, fetchText, memory, statusOf } from './lib/bench-host.ts'
import { report } from './lib/figures.ts'

const { values: options } = parseArgs({
  options: {
    pairs: { type: 'string', default: '7' },
    seconds: { type: 'string', default: '3' },
    requests: { type: 'string', default: '1000000' },
    node: { type: 'string' },
    part: { type: 'string' },
  },
})
const pairs = Number(options.pairs)
const seconds = Number(options.seconds)
const requests = Number(options.requests)
const { node, part } = options
const host = new BenchHost()

/** Requests per second of wrk against a URL. */
function wrk(url: string, forSeconds: number): number {
  const { stdout } = spawnSync('wrk', ['-t1', '-c50', `-d${forSeconds}s`, url])
  return Number(/Requests\/sec:\s*([\d.]+)/.exec(stdout.toString())?.[1])
}

async function throughput(name: string, url: string, endpoint: string): Promise<void> {
  const without: number[] = []
  const withAgent: number[] = []
  const cpu: number[] = []
  for (let i = 0; i < pairs; i++) {
    without.push(wrk(url, seconds))
    const agent = await host.startAgent(endpoint, { node })
    const before = cpuSeconds(agent.pid)
    const rate = wrk(url, seconds)
    await sleep(300)
    cpu.push(((cpuSeconds(agent.pid) - before) * 1e6) / (rate * seconds))
    withAgent.push(rate)
    await host.end(agent.child)
  }
  const kept = withAgent.map((rate, i) => (100 * rate) / without[i]!)
  report(`agent.${name}.alone_per_s`, without, '{request}/s', 'more')
  report(`agent.${name}.observed_per_s`, withAgent, '{request}/s', 'more')
  report(`agent.${name}.kept_percent`, kept, '%', 'more')
  report(`agent.${name}.cpu_us_per_request`, cpu, 'us', 'less')
}

/** CPU time of the agent at a fixed rate of requests, of which each has two sides: all as spans, and above the budget. */
async function steadyRate(url: string, endpoint: string, rate: number): Promise<void> {
  const perConnection = rate / 50
  const windows = 5
  const windowSeconds = 2
  for (const [what, most] of [
    ['all_spans', 0],
    ['over_budget', 100],
  ] as const) {
    for (const backend of ['sock', 'syscalls']) {
      const network = `network: {sampling: {max_spans_per_second: ${most}}}`
      const config = `agent: {ebpf: {backend: ${backend}, ${network}}}\n`
      const agent = await host.startAgent(endpoint, {
        node,
        config,
        wrapper: backend === 'syscalls' ? withTracefs : [],
      })
      await sleep(1000)
      const rates: number[] = []
      const cpu: number[] = []
      for (let i = 0; i < windows; i++) {
        const before = cpuSeconds(agent.pid)
        const { stdout } = spawnSync('h2load', [
          ...['--h1', '-c50', `--rps=${perConnection}`, `-D${windowSeconds}`, url],
        ])
        await sleep(300)
        const done = Number(/(\d+) succeeded/.exec(stdout.toString())?.[1])
        rates.push(done / windowSeconds)
        cpu.push(((cpuSeconds(agent.pid) - before) * 1e6) / done)
      }
      report(`agent.rate.${backend}.${what}.requests_per_s`, rates, '{request}/s', 'more')
      report(`agent.rate.${backend}.${what}.cpu_us_per_request`, cpu, 'us', 'less')
      await host.end(agent.child)
    }
  }
}

async function memoryOverTime(url: string, endpoint: string): Promise<void> {
  const agent = await host.startAgent(endpoint, { node })
  const resident: number[] = []
  const anonymous: number[] = []
  let sent = 0
  for (let next = 0; sent < requests; ) {
    sent += wrk(url, 5) * 5
    if (sent < next) continue
    const now = memory(agent.pid)
    resident.push(now.rss)
    anonymous.push(now.anonymous)
    next = sent + requests / 5
  }
  await sleep(3000)
  const settled = memory(agent.pid)
  report('agent.memory.loaded_rss_mib', resident, 'MiB', 'less')
  report('agent.memory.loaded_anonymous_mib', anonymous, 'MiB', 'less')
  report('agent.memory.settled_rss_mib', settled.rss, 'MiB', 'less')
  report('agent.memory.settled_anonymous_mib', settled.anonymous, 'MiB', 'less')
  await host.end(agent.child)
}

async function startTimes(url: string): Promise<void> {
  const toHealth: number[] = []
  const toSpan: number[] = []
  for (let i = 0; i < 5; i++) {
    const port = await freePort()
    const config = join(host.directory, 'start.yaml')
    writeFileSync(config, `self_telemetry: {listen: "127.0.0.1:${port}"}\n`)
    const began = performance.now()
    const child = host.start('bin/svc', ['run', '--config', config])
    while ((await statusOf(`http://127.0.0.1:${port}/healthz`)) !== 200) await sleep(5)
    toHealth.push(performance.now() - began)
    for (;;) {
      await statusOf(url)
      const { text } = await fetchText(`http://127.0.0.1:${port}/metrics`)
      if (/^svc_spans_collected_total\{.*\} [1-9]/m.test(text)) break
      await sleep(5)
    }
    toSpan.push(performance.now() - began)
    await host.end(child)
  }
  report('agent.start.to_healthz_ms', toHealth, 'ms', 'less')
  report('agent.start.to_first_span_ms', toSpan, 'ms', 'less')
}

/** Start beside four programs that never sleep until everything runs, and the longest answer of the seconds after it. */
async function busyStart(): Promise<void> {
  const toReady: number[] = []
  const answers: number[] = []
  const loops = Array.from({ length: 4 }, () => host.start('sh', ['-c', 'while :; do :; done']))
  for (let i = 0; i < 5; i++) {
    const port = await freePort()
    const config = join(host.directory, 'busy.yaml')
    writeFileSync(config, `self_telemetry: {listen: "127.0.0.1:${port}"}\n`)
    const began = performance.now()
    const child = host.start('bin/svc', ['run', '--config', config])
    while ((await statusOf(`http://127.0.0.1:${port}/ready`)) !== 200) await sleep(20)
    toReady.push(performance.now() - began)
    let longest = 0
    for (let request = 0; request < 50; request++) {
      const asked = performance.now()
      await statusOf(`http://127.0.0.1:${port}/healthz`)
      longest = Math.max(longest, performance.now() - asked)
      await sleep(50)
    }
    answers.push(longest)
    await host.end(child)
  }
  for (const loop of loops) await host.end(loop, 'SIGKILL')
  report('agent.busy_start.to_ready_ms', toReady, 'ms', 'less', 'beside four busy loops')
  report('agent.busy_start.longest_healthz_ms', answers, 'ms', 'less', 'in the seconds after it')
}

async function idle(): Promise<void> {
  const agent = await host.startAgent('', { node })
  await sleep(2000)
  const windowSeconds = 8
  const cpu: number[] = []
  const looks: ReturnType<typeof memory>[] = []
  for (let i = 0; i < 5; i++) {
    const before = cpuSeconds(agent.pid)
    await sleep(windowSeconds * 1000)
    cpu.push(((cpuSeconds(agent.pid) - before) / windowSeconds) * 100)
    looks.push(memory(agent.pid))
  }
  const resident = looks.map(({ rss }) => rss)
  const anonymous = looks.map(look => look.anonymous)
  report('agent.idle.cpu_percent', cpu, '%', 'less', 'of one core')
  report('agent.idle.rss_mib', resident, 'MiB', 'less')
  report('agent.idle.anonymous_mib', anonymous, 'MiB', 'less')
  await host.end(agent.child)
}

async function main(): Promise<void> {
  try {
    const url = await host.startNginx()
    const endpoint = await host.startSink()
    const parts = {
      start: () => startTimes(url),
      busy: busyStart,
      idle,
      throughput: () => throughput('throughput', url, ''),
      export: () => throughput('export', url, endpoint),
      rate: () => steadyRate(url, endpoint, 10_000),
      memory: () => memoryOverTime(url, endpoint),
    }
    for (const [name, run] of Object.entries(parts)) if (part === undefined || part === name) await run()
  } finally {
    await host.close()
  }
}

main().catch(error => {
  console.error(error)
  process.exitCode = 1
})
