// What profiles of the whole host cost: nanoseconds of the kernel side for a sample, memory of its maps, memory of the
// agent while tables are made and after, CPU time of the agent, and what a busy program loses. Runs dist/svc.cjs
// through bin/svc, as users do. Options: --seconds N, --pairs N, --part NAME (only one of kernel, memory, cpu,
// throughput). The switch kernel.bpf_stats_enabled is on meanwhile.
// at most: 15 min
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Agent, BenchHost, cpuSeconds, memory } from './lib/bench-host.ts'
import { report } from './lib/figures.ts'

const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '15' },
    pairs: { type: 'string', default: '5' },
    part: { type: 'string' },
  },
})
const seconds = Number(options.seconds)
const pairs = Number(options.pairs)
const statistics = '/proc/sys/kernel/bpf_stats_enabled'
const host = new BenchHost()

const programs = join(import.meta.dirname, '..', 'test', 'helpers', 'profiles', 'programs')
const rounds = join(host.directory, 'rounds')
const source = join(programs, 'rounds.c')
execFileSync('gcc', ['-O2', '-fomit-frame-pointer', '-o', rounds, source, '-pthread'])

/** An agent that does nothing but take profiles, or not even that. */
function startAgent(endpoint: string, rate: number): Promise<Agent> {
  const profiling = rate === 0 ? 'enabled: false' : `enabled: true, sample_rate: ${rate}`
  const rest = 'network: {enabled: false}, process: {enabled: false}'
  return host.startAgent(endpoint, {
    config: `agent: {profiling: {${profiling}}, ebpf: {${rest}}, nodeexporter: {enabled: false}}\n`,
  })
}

/** Programs in C, JavaScript and Python that keep the host busy with code of many kinds. */
function startLoad(): () => Promise<void> {
  const started = [
    host.start(rounds, ['100000000']),
    host.start(process.execPath, [join(programs, 'ratio.js')]),
    host.start('/usr/bin/python3', [join(programs, 'ratio.py')]),
    host.start('/bin/bash', ['-c', 'while :; do gzip < /bin/bash > /dev/null; done']),
  ]
  return async () => {
    for (const child of started) await host.end(child, 'SIGKILL')
  }
}

/** What proc_pid_fdinfo(5) says of the BPF programs or maps that a process holds, each object once. */
function held(pid: number, what: 'prog' | 'map'): Record<string, number>[] {
  const objects = new Map<number, Record<string, number>>()
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    const info = descriptor(pid, fd, what)
    if (info !== undefined) objects.set(info[`${what}_id`]!, info)
  }
  return [...objects.values()]
}

function descriptor(pid: number, fd: string, what: 'prog' | 'map'): Record<string, number> | undefined {
  try {
    if (readlinkSync(`/proc/${pid}/fd/${fd}`) !== `anon_inode:bpf-${what}`) return undefined
    const lines = readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'latin1').split('\n')
    return Object.fromEntries(
      lines.map(line => line.split(':\t')).map(([key, value]) => [key, Number(value)]),
    )
  } catch {
    return undefined // closed since it was listed
  }
}

/** BPF_PROG_TYPE_PERF_EVENT of linux/bpf.h. */
const perfEventProgram = 7

async function kernel(endpoint: string): Promise<void> {
  const before = readFileSync(statistics, 'latin1')
  const endLoad = startLoad()
  const agent = await startAgent(endpoint, 199)
  try {
    await sleep(10_000)
    writeFileSync(statistics, '1')
    const runs = () => held(agent.pid, 'prog').filter(({ prog_type: type }) => type === perfEventProgram)
    const sum = (key: string) => runs().reduce((all, run) => all + (run[key] ?? 0), 0)
    const times: number[] = []
    const windows = 5
    for (let i = 0; i < windows; i++) {
      const [count, time] = [sum('run_cnt'), sum('run_time_ns')]
      await sleep((seconds / windows) * 1000)
      times.push((sum('run_time_ns') - time) / (sum('run_cnt') - count))
    }
    const bytes = held(agent.pid, 'map').reduce((all, map) => all + (map.memlock ?? 0), 0)
    report('profiling.kernel.ns_per_sample', times, 'ns', 'less', 'of a busy host')
    report('profiling.kernel.maps_mib', bytes / 2 ** 20, 'MiB', 'less')
    report('profiling.kernel.verified_instructions', sum('verified_insns'), '{instruction}', 'less')
  } finally {
    writeFileSync(statistics, before)
    await host.end(agent.child)
    await endLoad()
  }
}

/** Resident memory without profiles, at most while tables are made, and after. */
async function memoryAdded(endpoint: string): Promise<void> {
  const endLoad = startLoad()
  const measured: Record<number, { most: number; settled: number }> = {}
  for (const rate of [0, 19]) {
    const agent = await startAgent(endpoint, rate)
    let most = 0
    for (let i = 0; i < seconds * 20; i++) {
      most = Math.max(most, memory(agent.pid).rss)
      await sleep(50)
    }
    measured[rate] = { most, settled: memory(agent.pid).rss }
    await host.end(agent.child)
  }
  await endLoad()
  const [without, taken] = [measured[0]!, measured[19]!]
  report('profiling.memory.without_rss_mib', without.settled, 'MiB', 'less')
  report('profiling.memory.added_most_mib', taken.most - without.settled, 'MiB', 'less')
  report('profiling.memory.added_settled_mib', taken.settled - without.settled, 'MiB', 'less')
}

async function cpu(endpoint: string): Promise<void> {
  const percent = async (agent: Agent): Promise<number> => {
    await sleep(15_000)
    const before = cpuSeconds(agent.pid)
    await sleep(seconds * 1000)
    return ((cpuSeconds(agent.pid) - before) / seconds) * 100
  }
  for (const what of ['silent', 'busy']) {
    const endLoad = what === 'busy' ? startLoad() : async () => {}
    for (const rate of [0, 19, 99]) {
      const agent = await startAgent(endpoint, rate)
      report(`profiling.cpu.${what}_${rate}_hz_percent`, await percent(agent), '%', 'less', 'of one core')
      await host.end(agent.child)
    }
    await endLoad()
  }
}

/** Time of a program that works on two CPUs, without and with the agent, in pairs. */
async function throughput(endpoint: string): Promise<void> {
  const run = () => Number(execFileSync(rounds, ['10000']))
  for (const rate of [19, 99, 997]) {
    const kept: number[] = []
    for (let i = 0; i < pairs; i++) {
      const alone = run()
      const agent = await startAgent(endpoint, rate)
      await sleep(2000)
      kept.push((100 * alone) / run())
      await host.end(agent.child)
    }
    report(`profiling.throughput.${rate}_hz_kept_percent`, kept, '%', 'more')
  }
}

async function main(): Promise<void> {
  const parts = { kernel, memory: memoryAdded, cpu, throughput }
  try {
    const endpoint = await host.startSink()
    for (const [name, run] of Object.entries(parts))
      if (options.part === undefined || options.part === name) await run(endpoint)
  } finally {
    await host.close()
  }
}

main().catch(error => {
  console.error(error)
  process.exitCode = 1
})
