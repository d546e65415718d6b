// How CPU and memory of the agent grow with its host: processes, short processes, connections, services, routes, log
// files. Prints a table of slopes for docs/footprint.md, and which of them are worse than linear. Each step is an agent of
// its own with the defaults. Runs dist/svc.cjs through bin/svc, as users do. Options: --seconds N of each step, --part NAME.
// at most: 15 min

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { freePort } from '../test/helpers/program.ts'
import { BenchHost, cpuSeconds, memory } from './lib/bench-host.ts'
import { median, report } from './lib/figures.ts'

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '12' }, part: { type: 'string' } },
})
const seconds = Number(values.seconds)
/** Time in which the agent learns what is there. */
const settleMs = 6000
/** What measurements scatter by: each may be off by so much, and what is beyond the line by so many parts. */
const scatter = { factor: 1.25, cpuPercent: 1, mebibytes: 4 }

interface Axis {
  readonly name: string
  /** Of what one more is counted, for the table. */
  readonly what: string
  readonly steps: readonly number[]
  readonly config?: string
  /** Makes it, and returns what ends it and says what that says. */
  load(count: number): Promise<() => Promise<string>>
}

interface Cost {
  readonly cpuPercent: number
  readonly mebibytes: number
}

const host = new BenchHost()
const program = join(host.directory, 'scale-load')
const logs = join(host.directory, 'logs')

/** Starts the program that makes the load. */
async function started(...args: readonly (string | number)[]): Promise<() => Promise<string>> {
  const child: ChildProcess = spawn(program, args.map(String), {
    detached: true, // the group that it ends at last is its own
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let said = ''
  child.stdout!.setEncoding('latin1').on('data', text => {
    said += text
  })
  const ended = once(child, 'close')
  await Promise.race([
    once(child.stdout!, 'data'),
    ended.then(() => {
      throw new Error(`scale-load ${args.join(' ')} ended before it was ready`)
    }),
  ])
  return async () => {
    child.stdin!.end()
    await ended
    return said
  }
}

/** Appends 400 lines a second to so many files in turn. */
async function writtenLogs(count: number): Promise<() => Promise<string>> {
  mkdirSync(logs)
  const file = (i: number) => join(logs, `${i % count}.log`)
  for (let i = 0; i < count; i++) appendFileSync(file(i), '')
  let written = 0
  const timer = setInterval(() => {
    for (let i = 0; i < 40; i++) appendFileSync(file(written++), 'INFO GET /users/17 answered 200 in 12 ms\n')
  }, 100)
  return async () => {
    clearInterval(timer)
    rmSync(logs, { recursive: true })
    return ''
  }
}

const axes: readonly Axis[] = [
  {
    name: 'processes',
    what: 'processes that sleep',
    steps: [100, 1000, 10_000],
    load: count => started('processes', count),
  },
  {
    name: 'short_processes',
    what: 'short processes a second',
    steps: [100, 300, 1000],
    load: count => started('short', count),
  },
  {
    name: 'connections',
    what: 'idle connections, both ends here',
    steps: [100, 1000, 10_000, 50_000],
    load: count => started('connections', count),
  },
  {
    name: 'services',
    what: 'services that make 400 requests a second together',
    steps: [10, 100, 500, 2000],
    load: count => started('services', count, 400),
  },
  {
    name: 'routes',
    what: 'routes of 1,000 requests a second together',
    steps: [100, 1000, 5000],
    config: 'ebpf: {network: {routes: {unmatched: path}}}',
    load: count => started('routes', count, 1000),
  },
  {
    name: 'log_files',
    what: 'log files with 400 lines a second together',
    steps: [20, 200, 2000],
    config: `logs: {paths: ["${logs}/*.log"]}`,
    load: writtenLogs,
  },
]

/** What an agent takes beside a load. */
async function costOf(axis: Axis, endpoint: string, count: number): Promise<Cost> {
  const exporter = await freePort()
  const agentConfig = [`nodeexporter: {listen_address: "127.0.0.1:${exporter}"}`, axis.config ?? ''].filter(
    Boolean,
  )
  const state = join(host.directory, `state-${axis.name}-${count}`)
  const positions = `position_file: "${state}-positions"`
  const config = `agent: {${agentConfig.join(', ')}}\n`.replace('logs: {', `logs: {${positions}, `)
  const queue = `pipeline: {export: {queue: {directory: "${state}-queue"}}}\n`
  const agent = await host.startAgent(endpoint, { config: config + queue })
  const end = count === 0 ? async () => '' : await axis.load(count)
  try {
    await sleep(settleMs)
    const anonymous: number[] = []
    const before = cpuSeconds(agent.pid)
    const began = performance.now()
    for (let second = 0; second < seconds; second++) {
      await sleep(began + (second + 1) * 1000 - performance.now())
      anonymous.push(memory(agent.pid).anonymous)
    }
    const took = (performance.now() - began) / 1000
    return {
      cpuPercent: ((cpuSeconds(agent.pid) - before) / took) * 100,
      mebibytes: median(anonymous.slice(-5)),
    }
  } finally {
    const reached = Number(/[\d.]+$/m.exec(await end())?.[0] ?? 0)
    if (reached > 0) report(`scale.${axis.name}.n${count}.reached_per_s`, reached, '{process}/s', 'more')
    await host.end(agent.child)
  }
}

/** Whether a step costs more than its part of the largest step before it allows. */
function worse(axis: Axis, costs: readonly Cost[], of: keyof Cost): boolean {
  const [none, ...steps] = costs.map(cost => cost[of])
  return steps.some((cost, i) => {
    if (i === 0) return false
    const before = Math.max(0, steps[i - 1]! - none!) + scatter[of]
    return cost - none! > before * (axis.steps[i]! / axis.steps[i - 1]!) * scatter.factor
  })
}

/** What agents of each configuration take without a load: axes share it. */
const unloaded = new Map<string | undefined, Cost>()

async function measure(axis: Axis, endpoint: string): Promise<string> {
  const costs: Cost[] = []
  for (const count of [0, ...axis.steps]) {
    const known = count === 0 ? unloaded.get(axis.config) : undefined
    const cost = known ?? (await costOf(axis, endpoint, count))
    if (count === 0) unloaded.set(axis.config, cost)
    costs.push(cost)
    const note = `${count} ${axis.what}`
    report(`scale.${axis.name}.n${count}.cpu_percent`, cost.cpuPercent, '%', 'less', note)
    report(`scale.${axis.name}.n${count}.anonymous_mib`, cost.mebibytes, 'MiB', 'less', note)
  }
  const [none, most] = [costs[0]!, costs.at(-1)!]
  const thousands = axis.steps.at(-1)! / 1000
  const cpu = report(
    `scale.${axis.name}.cpu_percent_per_thousand`,
    (most.cpuPercent - none.cpuPercent) / thousands,
    '%',
    'less',
  )
  const mebibytes = report(
    `scale.${axis.name}.mib_per_thousand`,
    (most.mebibytes - none.mebibytes) / thousands,
    'MiB',
    'less',
  )
  const beyond = (['cpuPercent', 'mebibytes'] as const).filter(of => worse(axis, costs, of))
  const named = { cpuPercent: 'CPU', mebibytes: 'memory' }
  const verdict =
    beyond.length === 0
      ? 'at most linear'
      : `**worse than linear: ${beyond.map(of => named[of]).join(', ')}**`
  const steps = costs.map(cost => `${cost.cpuPercent.toFixed(1)} %, ${cost.mebibytes.toFixed(0)} MiB`)
  const counts = ['0', ...axis.steps.map(step => step.toLocaleString('en'))]
  const cells = counts.map((count, i) => `${count}: ${steps[i]}`).join('; ')
  return `| ${axis.what} | ${cells} | ${cpu.toFixed(2)} % | ${mebibytes.toFixed(1)} MiB | ${verdict} |`
}

async function main(): Promise<void> {
  try {
    execFileSync('gcc', ['-O2', '-o', program, join(import.meta.dirname, 'lib', 'scale-load.c')])
    const endpoint = await host.startSink()
    const rows = [
      '| of what | how many: CPU of one core, anonymous memory | CPU per 1,000 | memory per 1,000 | growth |',
      '|---|---|---|---|---|',
    ]
    for (const axis of axes)
      if (values.part === undefined || values.part === axis.name) rows.push(await measure(axis, endpoint))
    console.log(rows.join('\n'))
  } finally {
    await host.close()
  }
}

main().catch(error => {
  console.error(error)
  process.exitCode = 1
})
