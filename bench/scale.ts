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
import { type ScaleName, scaleAxes, scaleTable } from './lib/scale-table.ts'

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '12' }, part: { type: 'string' } },
})
const seconds = Number(values.seconds)
/** Time in which the agent learns what is there. */
const settleMs = 6000
/** What measurements scatter by: each may be off by so much, and what is beyond the line by so many parts. */
const scatter = { factor: 1.25, cpuPercent: 1, mebibytes: 4 }

type Axis = (typeof scaleAxes)[number] & Load

/** How there becomes more of it. */
interface Load {
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

const loads: Readonly<Record<ScaleName, Load>> = {
  processes: { load: count => started('processes', count) },
  short_processes: { load: count => started('short', count) },
  connections: { load: count => started('connections', count) },
  services: { load: count => started('services', count, 400) },
  routes: {
    config: 'ebpf: {network: {routes: {unmatched: path}}}',
    load: count => started('routes', count, 1000),
  },
  log_files: { config: `logs: {paths: ["${logs}/*.log"]}`, load: writtenLogs },
}
const axes: readonly Axis[] = scaleAxes.map(axis => ({ ...axis, ...loads[axis.name] }))

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

const measured = new Map<string, number>()

function add(name: string, value: number, unit: string, note = ''): void {
  measured.set(name, report(name, value, unit, 'less', note))
}

/** Returns what is worse than linear. */
async function measure(axis: Axis, endpoint: string): Promise<string> {
  const costs: Cost[] = []
  for (const count of [0, ...axis.steps]) {
    const known = count === 0 ? unloaded.get(axis.config) : undefined
    const cost = known ?? (await costOf(axis, endpoint, count))
    if (count === 0) unloaded.set(axis.config, cost)
    costs.push(cost)
    const note = `${count} ${axis.what}`
    add(`scale.${axis.name}.n${count}.cpu_percent`, cost.cpuPercent, '%', note)
    add(`scale.${axis.name}.n${count}.anonymous_mib`, cost.mebibytes, 'MiB', note)
  }
  const [none, most] = [costs[0]!, costs.at(-1)!]
  const thousands = axis.steps.at(-1)! / 1000
  const of = `scale.${axis.name}`
  add(`${of}.cpu_percent_per_thousand`, (most.cpuPercent - none.cpuPercent) / thousands, '%')
  add(`${of}.mib_per_thousand`, (most.mebibytes - none.mebibytes) / thousands, 'MiB')
  const beyond = (['cpuPercent', 'mebibytes'] as const).filter(of => worse(axis, costs, of))
  const named = { cpuPercent: 'CPU', mebibytes: 'memory' }
  return beyond.length === 0
    ? 'at most linear'
    : `worse than linear: ${beyond.map(each => named[each]).join(', ')}`
}

async function main(): Promise<void> {
  try {
    execFileSync('gcc', ['-O2', '-o', program, join(import.meta.dirname, 'lib', 'scale-load.c')])
    const endpoint = await host.startSink()
    const wanted = axes.filter(({ name }) => values.part === undefined || values.part === name)
    const growth: string[] = []
    for (const axis of wanted) growth.push(`${axis.what}: ${await measure(axis, endpoint)}`)
    console.log(
      scaleTable(
        name => measured.get(name) ?? Number.NaN,
        wanted.map(({ name }) => name),
      ),
    )
    console.log(growth.join('\n'))
  } finally {
    await host.close()
  }
}

main().catch(error => {
  console.error(error)
  process.exitCode = 1
})
