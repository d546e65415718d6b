// What the whole agent costs: throughput of nginx under wrk with and without it (pairs, interleaved), its CPU time for
// each request, at saturation and at 10,000 requests a second, its memory over a million requests, and how fast it starts. Runs dist/svc.cjs through bin/svc, as users
// do. Options: --pairs N, --seconds N, --requests N, --node PATH (another runtime for the same bundle),
// --part NAME (only one of start, idle, throughput, export, rate, memory).
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { freePort } from '../test/helpers/program.ts'
import { withTracefs } from '../test/helpers/tracefs.ts'
import { BenchHost, cpuSeconds, fetchText, median, memory, statusOf } from './lib/bench-host.ts'

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

async function throughput(url: string, endpoint: string): Promise<void> {
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
  const ratios = withAgent.map((rate, i) => rate / without[i]!)
  console.log(
    `throughput ${endpoint === '' ? 'without' : 'with'} export: ${Math.round(median(without))} req/s alone, ` +
      `${Math.round(median(withAgent))} observed: ${(100 * median(ratios)).toFixed(1)} % ` +
      `(pairs ${ratios.map(ratio => (100 * ratio).toFixed(0)).join(' ')}); ` +
      `agent CPU ${median(cpu).toFixed(2)} µs a request`,
  )
}

/** CPU time of the agent at a fixed rate of requests, of which each has two sides: all as spans, and above the budget. */
async function steadyRate(url: string, endpoint: string, rate: number): Promise<void> {
  const perConnection = rate / 50
  for (const [what, most] of [
    ['all spans', 0],
    ['over budget', 100],
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
      const before = cpuSeconds(agent.pid)
      const { stdout } = spawnSync('h2load', ['--h1', '-c50', `--rps=${perConnection}`, '-D5', url])
      await sleep(300)
      const done = Number(/(\d+) succeeded/.exec(stdout.toString())?.[1])
      const cpu = ((cpuSeconds(agent.pid) - before) * 1e6) / done
      console.log(
        `${backend} at ${Math.round(done / 5)} req/s, ${what}: agent CPU ${cpu.toFixed(1)} µs a request`,
      )
      await host.end(agent.child)
    }
  }
}

async function memoryOverTime(url: string, endpoint: string): Promise<void> {
  const agent = await host.startAgent(endpoint, { node })
  const steps: string[] = []
  let sent = 0
  for (let next = 0; sent < requests; ) {
    sent += wrk(url, 5) * 5
    if (sent < next) continue
    const { rss, anonymous } = memory(agent.pid)
    steps.push(`${(sent / 1e6).toFixed(2)} M: ${rss.toFixed(0)} (${anonymous.toFixed(0)})`)
    next = sent + requests / 5
  }
  await sleep(3000)
  const { rss, anonymous } = memory(agent.pid)
  console.log(
    `memory, MB resident (anonymous) after requests: ${steps.join(', ')}; settled ${rss.toFixed(0)} (${anonymous.toFixed(0)})`,
  )
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
  console.log(
    `start: ${median(toHealth).toFixed(0)} ms to /healthz, ${median(toSpan).toFixed(0)} ms to the first span`,
  )
}

async function idle(): Promise<void> {
  const agent = await host.startAgent('', { node })
  await sleep(2000)
  const before = cpuSeconds(agent.pid)
  await sleep(8000)
  const { rss, anonymous } = memory(agent.pid)
  console.log(
    `idle: ${(((cpuSeconds(agent.pid) - before) / 8) * 100).toFixed(2)} % of a core, ${rss.toFixed(0)} MB resident (${anonymous.toFixed(0)} anonymous)`,
  )
  await host.end(agent.child)
}

async function main(): Promise<void> {
  try {
    const url = await host.startNginx()
    const endpoint = await host.startSink()
    const parts = {
      start: () => startTimes(url),
      idle,
      throughput: () => throughput(url, ''),
      export: () => throughput(url, endpoint),
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
