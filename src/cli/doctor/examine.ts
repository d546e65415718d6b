import { arch, cpus, hostname, release, userInfo } from 'node:os'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Config, LoadedConfig } from '../../config/index.ts'
import { type Install, installOf } from '../../kernel/install.ts'
import { type Finding, groups, type Outcome, outcomeOf, type Topic } from '../../kernel/need.ts'
import { build } from '../../lib/build.ts'
import { errorText } from '../../lib/logger.ts'
import { protocols } from '../../protocols/index.ts'
import type { Check, Circumstances } from './check.ts'
import { table } from './table.ts'

/** What is known of the host that was examined. */
export interface Host {
  readonly name: string
  readonly os: string
  readonly kernel: string
  readonly arch: string
  readonly cpus: number
  readonly user: string
  readonly install: Install
  /** Of svc. */
  readonly version: string
}

export interface Examined extends Outcome {
  readonly name: string
}

export interface Diagnosis {
  readonly host: Host
  /** Nothing is missing or limited. */
  readonly ok: boolean
  readonly groups: readonly {
    readonly topic: Topic
    readonly title: string
    readonly checks: readonly Examined[]
  }[]
}

export const topics = Object.keys(groups) as Topic[]

/** Longest wait for another machine, in milliseconds. */
const patienceMs = 3000

/** Findings by the names of checks. */
export type Findings = ReadonlyMap<string, readonly Finding[]>

/**
 * Tries every need for a process that has other work: one after the other begins, with a turn of the event loop between.
 * Those of which `known` has findings are not tried. Never rejects.
 */
export async function examineGently(
  loaded: LoadedConfig,
  known: Findings,
  timeoutMs = patienceMs,
): Promise<Diagnosis['groups']> {
  const trying = topics.map(topic => ({ topic, checks: [] as Promise<Examined[]>[] }))
  for (const { topic, checks } of trying)
    for (const row of table) {
      if (row.group !== topic) continue
      const found = known.get(row.name)
      checks.push(outcomesOf(found === undefined ? row : { ...row, try: () => found }, { loaded, timeoutMs }))
      await nextTurn()
    }
  return Promise.all(
    trying.map(async ({ topic, checks }) => ({
      topic,
      title: groups[topic].title,
      checks: (await Promise.all(checks)).flat(),
    })),
  )
}

/** Tries every need, or those of one topic, all of them at once. Changes nothing, and never rejects. */
export async function examine(
  loaded: LoadedConfig,
  topic?: Topic,
  timeoutMs = patienceMs,
): Promise<Diagnosis> {
  const wanted = topics.filter(each => topic === undefined || each === topic)
  const tried = await Promise.all(
    wanted.map(async each => {
      const rows = table.filter(({ group }) => group === each)
      const checks = await Promise.all(rows.map(row => outcomesOf(row, { loaded, timeoutMs })))
      return { topic: each, title: groups[each].title, checks: checks.flat() }
    }),
  )
  const ok = tried.every(({ checks }) =>
    checks.every(({ state }) => state !== 'missing' && state !== 'limited'),
  )
  return { host: host(), ok, groups: tried }
}

async function outcomesOf(row: Check, circumstances: Circumstances): Promise<Examined[]> {
  const { name } = row
  const off = whyOff(row.group, circumstances.loaded.config)
  try {
    const findings = await bounded(async () => row.try(circumstances), 3 * circumstances.timeoutMs)
    return findings.map(finding => {
      const { lose, ...outcome } = outcomeOf(row, finding)
      if (off === undefined || outcome.state === 'ok') return { name, ...outcome, ...(lose && { lose }) }
      return { name, ...outcome, state: 'note', detail: `${outcome.detail} (not needed: ${off})` }
    })
  } catch (error) {
    // It fails in another way than it knows: that says nothing about the need.
    return [{ name, state: 'unknown', detail: `the check itself failed: ${errorText(error)}` }]
  }
}

/** What only an agent with eBPF needs. */
const ofKernel: ReadonlySet<Topic> = new Set(['traces', 'processes', 'profiles', 'kernel'])

/** Why nobody needs a group; undefined where it is needed. */
function whyOff(topic: Topic, { mode, agent }: Config): string | undefined {
  if (!ofKernel.has(topic)) return undefined
  if (mode === 'collector') return 'mode is collector'
  const { enabled, network } = agent.ebpf
  if (topic === 'profiles') {
    if (!enabled) return 'agent.ebpf is off'
    return agent.profiling.enabled ? undefined : 'agent.profiling is off'
  }
  if (topic === 'kernel') return enabled ? undefined : 'agent.ebpf is off'
  const switches: Readonly<Record<string, unknown>> = { ...network }
  const isAny = protocols.some(({ key }) => switches[key] !== false)
  return enabled && network.enabled && isAny ? undefined : 'agent.ebpf is off'
}

async function bounded<T>(work: () => Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms / 1000} s`)), ms)
  })
  try {
    return await Promise.race([work(), late])
  } finally {
    clearTimeout(timer)
  }
}

function host(): Host {
  return {
    name: hostname(),
    os: process.platform,
    kernel: release(),
    arch: arch(),
    cpus: cpus().length,
    user: userName(),
    install: installOf(),
    version: build().version,
  }
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    return String(process.geteuid?.() ?? 'unknown') // a user without an entry in /etc/passwd
  }
}
