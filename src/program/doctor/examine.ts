import { arch, cpus, hostname, release, userInfo } from 'node:os'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Config, LoadedConfig } from '../../config/index.ts'
import { build } from '../../foundation/lib/build.ts'
import { errorText } from '../../foundation/lib/logger.ts'
import { ExitCode } from '../../foundation/lib/start-error.ts'
import { within } from '../../foundation/lib/within.ts'
import { type Install, installOf } from '../../kernel/install.ts'
import { type Finding, groups, outcomeOf, type Topic } from '../../kernel/need.ts'
import { protocols } from '../../signals/traces/protocols/index.ts'
import type { Degradation, StatusDocument } from '../../view/api/types.ts'
import { type AgentFindings, askAgent, degradedIn } from './ask-agent.ts'
import type { Check, Circumstances, Examined } from './check.ts'
import { table } from './table.ts'

/** The examined host. */
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

/** Origin of the results. */
export interface Sources {
  /** Address of the agent; '' if none answers. */
  readonly address: string
  readonly version: string
  readonly mode: string
  readonly uptime: string
  /** Its answers. */
  readonly answered: readonly ('status' | 'configuration' | 'tries')[]
  /** Why answers are missing; '' if none are. */
  readonly why: string
  /** The configuration used for tests here: `running`, `defaults` or a file. */
  readonly configuration: string
}

export interface Diagnosis {
  readonly host: Host
  readonly sources: Sources
  /** Subsystems that the agent could not start, or that work only in part. */
  readonly degraded: readonly Degradation[]
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
 * Tests every need for a process with other work: starts them one after the other, with a turn of the event loop in
 * between. Skips those with findings in `known`. Never rejects.
 */
export async function examineGently(
  loaded: LoadedConfig,
  known: Findings,
  status: StatusDocument,
  timeoutMs = patienceMs,
): Promise<Diagnosis['groups']> {
  const trying = topics.map(topic => ({ topic, checks: [] as Promise<Examined[]>[] }))
  for (const { topic, checks } of trying)
    for (const row of table) {
      if (row.group !== topic) continue
      const found = known.get(row.name)
      const circumstances = { loaded, status, timeoutMs }
      checks.push(outcomesOf(found === undefined ? row : { ...row, try: () => found }, circumstances))
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

/** The running agent, and the requested checks. */
export interface ExamineOptions {
  readonly topic?: Topic | undefined
  /** Test only the file, whatever an agent reports: only its status counts. */
  readonly isOfFile?: boolean
}

/**
 * Queries the running agent, and tests every need that it did not test, or those of one topic, all of them at once.
 * Changes nothing, never rejects, and takes 35 s at most.
 */
export async function examine(
  ofFile: LoadedConfig,
  { topic, isOfFile = false }: ExamineOptions = {},
): Promise<Diagnosis> {
  const answers = await askAgent(ofFile, table, !isOfFile)
  const { status, tries } = answers
  const circumstances = { loaded: answers.loaded ?? ofFile, status, timeoutMs: patienceMs }
  const isAsked = tries !== undefined || answers.loaded !== undefined
  const outcomes = async (row: Check): Promise<readonly Examined[]> => {
    const known = row.reads === 'file' ? undefined : tries?.get(row.name)
    if (known !== undefined) return known
    const here = isAsked ? ({ by: 'here' } as const) : {}
    if (circumstances.loaded !== ofFile && row.reads === 'secrets') return [{ ...here, ...notTold(row) }]
    const tried = await outcomesOf(
      row,
      row.reads === 'file' ? { ...circumstances, loaded: ofFile } : circumstances,
    )
    return tried.map(each => ({ ...each, ...here }))
  }
  const wanted = topics.filter(each => topic === undefined || each === topic)
  const tried = await Promise.all(
    wanted.map(async each => {
      const rows = table.filter(({ group }) => group === each)
      const checks = await Promise.all(rows.map(outcomes))
      return { topic: each, title: groups[each].title, checks: checks.flat() }
    }),
  )
  const degraded = topic === undefined && !isOfFile ? degradedIn(answers) : []
  const ok =
    degraded.length === 0 &&
    tried.every(({ checks }) => checks.every(({ state }) => state !== 'missing' && state !== 'limited'))
  return { host: host(), sources: sourcesOf(answers, ofFile), degraded, ok, groups: tried }
}

/** The exit code of the only check that is missing or limited, if it has one. */
export function exitCodeFor({ ok, degraded, groups: tried }: Diagnosis): ExitCode {
  if (ok) return ExitCode.ok
  const faulty = tried
    .flatMap(({ checks }) => checks)
    .filter(({ state }) => state === 'missing' || state === 'limited')
  const codes = new Set(faulty.map(({ name }) => table.find(row => row.name === name)?.exit))
  // The agent also reports receivers, by signal.
  for (const { subsystem } of degraded)
    codes.add(subsystem.startsWith('export') ? ExitCode.exporting : undefined)
  const [code = ExitCode.general] = codes
  return codes.size === 1 ? code : ExitCode.general
}

function notTold({ name }: Check): Examined {
  return {
    name,
    state: 'unknown',
    detail: 'not checked: it needs secrets that the agent does not show; run svc doctor --config FILE',
  }
}

function sourcesOf({ address, why, status, loaded, tries }: AgentFindings, ofFile: LoadedConfig): Sources {
  const answers = { status, configuration: loaded, tries }
  const names = Object.keys(answers) as (keyof typeof answers)[]
  return {
    address,
    version: textOf(status?.version),
    mode: textOf(status?.mode),
    uptime: textOf(status?.uptime),
    answered: names.filter(name => answers[name] !== undefined),
    why,
    configuration: loaded === undefined || loaded === ofFile ? (ofFile.file ?? 'defaults') : 'running',
  }
}

/** A word of an answer that may be another server's. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, 100) : ''
}

async function outcomesOf(row: Check, circumstances: Circumstances): Promise<Examined[]> {
  const { name } = row
  const off = whyOff(row.group, circumstances.loaded.config)
  try {
    const findings = await bounded(async () => row.try(circumstances), 3 * circumstances.timeoutMs)
    return findings.map(finding => {
      const { impact, ...outcome } = outcomeOf(row, finding)
      if (off === undefined || outcome.state === 'ok') return { name, ...outcome, ...(impact && { impact }) }
      return { name, ...outcome, state: 'note', detail: `${outcome.detail} (not needed: ${off})` }
    })
  } catch (error) {
    // An unexpected failure: the need remains unknown.
    return [{ name, state: 'unknown', detail: `the check itself failed: ${errorText(error)}` }]
  }
}

/** Topics that only an agent with eBPF needs. */
const ofKernel: ReadonlySet<Topic> = new Set(['traces', 'processes', 'profiles', 'kernel'])

/** Why a group is not needed; undefined if it is. */
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

function bounded<T>(work: () => Promise<T>, ms: number): Promise<T> {
  return within(ms, work(), () => {
    throw new Error(`no answer within ${ms / 1000} s`)
  })
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
