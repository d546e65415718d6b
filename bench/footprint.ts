// What svc takes of a host, as a Markdown table for docs/footprint.md: memory and CPU time on a quiet host, at 1,000 and at
// 10,000 requests a second, with everything on, and of its parts alone. All states within one run; each row is a process
// of its own. Runs dist/svc.cjs through bin/svc, as users do. Options: --seconds N of each row, --part NAME.
// at most: 8 min

import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { freePort, until } from '../test/helpers/program.ts'
import { BenchHost, cpuSeconds, fetchText, memory, statusOf } from './lib/bench-host.ts'
import { report } from './lib/figures.ts'
import { type FootprintPart, footprintTable } from './lib/footprint-table.ts'

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '20' }, part: { type: 'string' } },
})
const seconds = Number(values.seconds)
const host = new BenchHost()
const measured = new Map<string, number>()
const parts: FootprintPart[] = []

interface State {
  readonly part: FootprintPart
  readonly config: string
  /** HTTP requests a second, of which the agent sees both sides. */
  readonly rate: number
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
  { part: 'quiet', config: '', rate: 0 },
  { part: 'some', config: '', rate: 1000 },
  { part: 'many', config: '', rate: 10_000 },
  { part: 'all', config: everything, rate: 0 },
  { part: 'all-some', config: everything, rate: 1000 },
  { part: 'collector', config: 'mode: collector\n', rate: 0 },
  { part: 'host-metrics', config: hostMetricsOnly, rate: 0 },
]

/** What `watched` saw. */
interface Seen {
  /** Of one core. */
  readonly cpuPercent: number
  /** One each second. */
  readonly memory: readonly ReturnType<typeof memory>[]
  /** Of scrapes, in ms. */
  readonly times: readonly number[]
}

/** Reports what was seen of a state, which becomes a row of the table. */
function addRow(part: FootprintPart, { cpuPercent, memory, times }: Seen): void {
  const resident = memory.map(({ rss }) => rss)
  const anonymous = memory.slice(-5).map(each => each.anonymous)
  const add = (what: string, samples: number | readonly number[], unit: string, note = '') => {
    const name = `footprint.${part}.${what}`
    measured.set(name, report(name, samples, unit, 'less', note))
  }
  add('cpu_percent', cpuPercent, '%', 'of one core')
  add('rss_mib', resident.at(-1)!, 'MiB')
  add('anonymous_mib', anonymous, 'MiB')
  add('most_rss_mib', Math.max(...resident), 'MiB')
  if (times.length > 0) add('scrape_ms', times, 'ms')
  parts.push(part)
}

/** Watches a process for `seconds`, and scrapes a page each 15 s where it has one. */
async function watched(pid: number, page = ''): Promise<Seen> {
  const seen: ReturnType<typeof memory>[] = []
  const times: number[] = []
  const before = cpuSeconds(pid)
  const began = performance.now()
  for (let second = 0; second < seconds; second++) {
    await sleep(began + (second + 1) * 1000 - performance.now())
    seen.push(memory(pid))
    if (page === '' || second % 15 !== 14) continue
    const asked = performance.now()
    const { text } = await fetchText(page)
    if (text.length > 10_000) times.push(performance.now() - asked)
  }
  const took = (performance.now() - began) / 1000
  return { cpuPercent: ((cpuSeconds(pid) - before) / took) * 100, memory: seen, times }
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
  const page = state.part === 'host-metrics' ? `http://127.0.0.1:${exporter}/metrics` : ''
  addRow(state.part, await watched(agent.pid, page))
  if (load !== undefined) await host.end(load)
  await host.end(agent.child)
}

async function exporterRow(): Promise<void> {
  const port = await freePort()
  const child = host.start('bin/svc', ['node-exporter', `--web.listen-address=127.0.0.1:${port}`])
  const page = `http://127.0.0.1:${port}/metrics`
  await until('the exporter answers', 20_000, async () => (await statusOf(page)) === 200)
  addRow('exporter', await watched(child.pid!, page))
  await host.end(child)
}

async function main(): Promise<void> {
  try {
    const url = await host.startNginx()
    const endpoint = await host.startSink()
    const wanted = (part: string) => values.part === undefined || values.part === part
    for (const state of states) if (wanted(state.part)) await agentRow(state, url, endpoint)
    if (wanted('exporter')) await exporterRow()
    console.log(footprintTable(name => measured.get(name) ?? Number.NaN, parts))
  } finally {
    await host.close()
  }
}

main().catch(error => {
  console.error(error)
  process.exitCode = 1
})
