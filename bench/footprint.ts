// What svc takes of a host, as a Markdown table for docs/footprint.md: memory and CPU time on a quiet host, at 1,000 and at
// 10,000 requests a second, with everything on, and of its parts alone. All states within one run; each row is a process
// of its own. Runs dist/svc.cjs through bin/svc, as users do. Options: --seconds N of each row, --part NAME.

import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { freePort, until } from '../test/helpers/program.ts'
import { BenchHost, cpuSeconds, fetchText, median, memory, statusOf } from './lib/bench-host.ts'

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '60' }, part: { type: 'string' } },
})
const seconds = Number(values.seconds)
const host = new BenchHost()

interface State {
  readonly name: string
  readonly config: string
  /** HTTP requests a second, of which the agent sees both sides. */
  readonly rate: number
  readonly part: string
}

const everything = `
agent:
  ebpf: {syscalls: true}
  profiling: {off_cpu: true, memory: true}
  logs: {journald: true}
pipeline: {pii_redaction: true, transform: true, limits: {rate: true}}
`
const hostMetricsOnly = `
agent: {ebpf: false, profiling: false, logs: false, discovery: false, gpu: false}
collectors: {prometheus: false}
`

const states: readonly State[] = [
  { part: 'quiet', name: 'defaults, a quiet host', config: '', rate: 0 },
  { part: 'some', name: 'defaults, 1,000 requests a second', config: '', rate: 1000 },
  { part: 'many', name: 'defaults, 10,000 requests a second', config: '', rate: 10_000 },
  { part: 'all', name: 'everything on, a quiet host', config: everything, rate: 0 },
  { part: 'all-some', name: 'everything on, 1,000 requests a second', config: everything, rate: 1000 },
  { part: 'collector', name: '`mode: collector`, no targets', config: 'mode: collector\n', rate: 0 },
  {
    part: 'host-metrics',
    name: 'agent with host metrics alone, scraped each 15 s',
    config: hostMetricsOnly,
    rate: 0,
  },
]

/** A row: CPU of one core in percent, resident and anonymous memory in MiB at the end, and the highest resident. */
function row(name: string, cpu: number, samples: readonly { rss: number; anonymous: number }[]): string {
  const last = samples.at(-1)!
  const most = Math.max(...samples.map(({ rss }) => rss))
  const settled = median(samples.slice(-5).map(({ anonymous }) => anonymous))
  return `| ${name} | ${cpu.toFixed(2)} % | ${last.rss.toFixed(0)} | ${settled.toFixed(0)} | ${most.toFixed(0)} |`
}

/** Watches a process for `seconds`. */
async function watched(
  pid: number,
  each: () => Promise<void>,
): Promise<[cpu: number, ReturnType<typeof memory>[]]> {
  const samples = []
  const before = cpuSeconds(pid)
  const began = performance.now()
  for (let second = 0; second < seconds; second++) {
    await sleep(began + (second + 1) * 1000 - performance.now())
    samples.push(memory(pid))
    if (second % 15 === 14) await each()
  }
  return [((cpuSeconds(pid) - before) / ((performance.now() - began) / 1000)) * 100, samples]
}

async function agentRow(state: State, url: string, endpoint: string): Promise<void> {
  const exporter = await freePort()
  const listen = `nodeexporter: {listen_address: "127.0.0.1:${exporter}"}`
  const config = state.config.includes('agent:')
    ? state.config.replace('agent: {', `agent: {${listen}, `).replace('agent:\n', `agent:\n  ${listen}\n`)
    : `${state.config}agent: {${listen}}\n`
  const agent = await host.startAgent(endpoint, { config })
  await sleep(5000)
  const load =
    state.rate > 0
      ? spawn('h2load', ['--h1', '-c50', `--rps=${state.rate / 50}`, `-D${seconds + 5}`, url], {
          stdio: 'ignore',
        })
      : undefined
  const times: number[] = []
  const scrape = async () => {
    if (state.part !== 'host-metrics') return
    const began = performance.now()
    const { text } = await fetchText(`http://127.0.0.1:${exporter}/metrics`)
    if (text.length > 10_000) times.push(performance.now() - began)
  }
  const [cpu, samples] = await watched(agent.pid, scrape)
  const name = times.length > 0 ? `${state.name} (${median(times).toFixed(0)} ms a scrape)` : state.name
  console.log(row(name, cpu, samples))
  if (load !== undefined) await host.end(load)
  await host.end(agent.child)
}

async function exporterRow(): Promise<void> {
  const port = await freePort()
  const child = host.start('bin/svc', ['node-exporter', `--web.listen-address=127.0.0.1:${port}`])
  const page = `http://127.0.0.1:${port}/metrics`
  await until('the exporter answers', 20_000, async () => (await statusOf(page)) === 200)
  const times: number[] = []
  const [cpu, samples] = await watched(child.pid!, async () => {
    const began = performance.now()
    await fetchText(page)
    times.push(performance.now() - began)
  })
  const name = `\`svc node-exporter\`, scraped each 15 s (${median(times).toFixed(0)} ms a scrape)`
  console.log(row(name, cpu, samples))
  await host.end(child)
}

async function main(): Promise<void> {
  try {
    const url = await host.startNginx()
    const endpoint = await host.startSink()
    console.log(
      '| | CPU of one core | resident MiB | of it anonymous | highest resident |\n|---|---|---|---|---|',
    )
    const wanted = (part: string) => values.part === undefined || values.part === part
    for (const state of states) if (wanted(state.part)) await agentRow(state, url, endpoint)
    if (wanted('exporter')) await exporterRow()
  } finally {
    await host.close()
  }
}

main().catch(error => {
  console.error(error)
  process.exitCode = 1
})
