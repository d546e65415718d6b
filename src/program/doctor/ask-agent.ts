// Queries the running agent before anything is tested here.

import { type LoadedConfig, loadConfig, redacted } from '../../config/index.ts'
import type { State } from '../../kernel/need.ts'
import type { Degradation, StatusDocument } from '../../view/api/types.ts'
import type { DoctorDocument } from '../../view/api/ui/documents.ts'
import {
  type AgentClient,
  type Bounds,
  findAgent,
  isForOthers,
  strangerAt,
  strangerAtSocket,
  waysText,
} from '../client/agent-client.ts'
import type { Check, Examined } from './check.ts'

/** The answers of an agent. */
export interface AgentFindings {
  /** Its address; '' if none answers. */
  readonly address: string
  /** Why answers are missing; '' if none are. */
  readonly why: string
  readonly status: StatusDocument | undefined
  /** Its effective configuration, without secrets and origins; that of the file if both are equal. */
  readonly loaded: LoadedConfig | undefined
  /** Results of its own tests, by check; undefined if there are none. */
  readonly tries: ReadonlyMap<string, readonly Examined[]> | undefined
}

const statusBounds = { timeoutMs: 5000, mostBytes: 1 << 20 }
const configBounds = statusBounds
/** Each of its tests ends within 9 s, and they run concurrently. */
const triesBounds = { timeoutMs: 15_000, mostBytes: 4 << 20 }
/** Longest text to accept; it may be another server's. */
const longest = 2000
const mostOutcomes = 1000

/**
 * Queries the agent of this host, found like in `svc status`. Never rejects, and takes 25 s at most. Ignores processes
 * of other users: the paths and addresses of a configuration are opened by the user who runs this.
 *
 * @param isWhole false queries only the status
 */
export async function askAgent(
  loaded: LoadedConfig,
  table: readonly Check[],
  isWhole: boolean,
): Promise<AgentFindings> {
  const nothing = { address: '', status: undefined, loaded: undefined, tries: undefined }
  const settings = loaded.config.self_telemetry
  const { SVC_TOKEN } = process.env
  const { client, tried } = await findAgent({ settings, env: { SVC_TOKEN } })
  if (client === undefined) return { ...nothing, why: waysText(tried) }
  const { address } = client
  const stranger = strangerOf(client)
  if (stranger !== '') return { ...nothing, why: `${address}: not queried: ${stranger} is listening there` }
  const toConfiguration = (document: object) => configurationIn(document, address, loaded)
  const [status, config, tries] = await Promise.all([
    asked(client, '/status', statusBounds, document => document as StatusDocument),
    isWhole ? asked(client, '/config', configBounds, toConfiguration) : undefined,
    isWhole ? asked(client, '/ui/api/doctor', triesBounds, document => triesIn(document, table)) : undefined,
  ])
  const whys = [status, config, tries].flatMap(answer => (answer?.why ? [answer.why] : []))
  return {
    address,
    why: [...new Set(whys)].join('; '),
    status: status.value,
    loaded: config?.value,
    tries: tries?.value,
  }
}

function strangerOf({ address, port }: AgentClient): string {
  if (address.startsWith('unix:')) return strangerAtSocket(address.slice('unix:'.length))
  return port === undefined ? '' : strangerAt(port, new URL(address).hostname)
}

interface Answer<T> {
  /** Undefined: no answer. */
  readonly value: T | undefined
  readonly why: string
}

async function asked<T>(
  client: AgentClient,
  path: string,
  bounds: Bounds,
  read: (document: object) => T,
): Promise<Answer<T>> {
  const failed = (why: string) => ({ value: undefined, why: `${path}: ${why}` })
  try {
    const answer = await client.get(path, bounds)
    if (isForOthers(answer)) return failed('needs root or the user of svc: use sudo')
    if (answer.status === 401 || answer.status === 403) return failed('needs a token: set SVC_TOKEN')
    if (answer.status === 404)
      return failed(path.startsWith('/ui/') ? 'self_telemetry.ui.enabled is false' : 'is not served')
    if (answer.status !== 200) return failed(`answered ${answer.status}`)
    if (answer.cut) return failed('is too large')
    const document: unknown = JSON.parse(answer.body.toString())
    return typeof document === 'object' && document !== null
      ? { value: read(document), why: '' }
      : failed('is not a JSON object')
  } catch (error) {
    // Endless nesting can be parsed, but not be written.
    if (error instanceof RangeError) return failed('is not a JSON object')
    return failed(error instanceof SyntaxError ? 'is not JSON' : (error as Error).message)
  }
}

/** The agent's configuration, with defaults for missing keys. Which keys are set is unknown. */
function configurationIn(document: object, name: string, ofFile: LoadedConfig): LoadedConfig {
  const text = JSON.stringify(document)
  if (text === JSON.stringify(redacted(ofFile.config, ofFile.origins))) return ofFile
  return {
    ...loadConfig({ explicit: false, env: {}, document: { name, text } }),
    problems: [],
    warnings: [],
    origins: new Map(),
  }
}

const states: ReadonlySet<string> = new Set<State>(['ok', 'limited', 'missing', 'note'])

/** Omits what it did not test, and unknown checks: those are tested here. */
function triesIn(document: object, table: readonly Check[]): Map<string, Examined[]> {
  const tries = new Map<string, Examined[]>()
  const untried = new Set<string>()
  const { checks } = document as Partial<DoctorDocument>
  for (const each of Array.isArray(checks) ? checks.slice(0, mostOutcomes) : []) {
    const outcome = outcomeIn(each, table)
    if (outcome === undefined) continue
    if (!states.has(outcome.state) || outcome.fault === 'untried') untried.add(outcome.name)
    const before = tries.get(outcome.name)
    if (before === undefined) tries.set(outcome.name, [outcome])
    else before.push(outcome)
  }
  for (const name of untried) tries.delete(name)
  // Checks for which it reported that there is nothing to test.
  for (const { name, reads } of table)
    if (reads === 'secrets' && !tries.has(name) && !untried.has(name)) tries.set(name, [])
  return tries
}

function outcomeIn(
  each: Partial<DoctorDocument['checks'][number]>,
  table: readonly Check[],
): Examined | undefined {
  const { name, state, detail, fault = '', impact = '' } = each ?? {}
  const row = table.find(check => check.name === name)
  const isText = [state, detail, fault, impact].every(text => typeof text === 'string')
  if (row === undefined || !isText) return undefined
  const declared = Object.hasOwn(row.faults, fault) ? row.faults[fault] : undefined
  return {
    name: row.name,
    state: state as State,
    detail: detail!.slice(0, longest),
    by: 'agent',
    ...(fault !== '' && { fault: fault.slice(0, longest) }),
    ...(impact !== '' && { impact: impact.slice(0, longest) }),
    ...(declared !== undefined && { hints: declared.hints }),
  }
}

/** Subsystems that it could not start, or that work only in part. */
export function degradedIn({ status }: AgentFindings): Degradation[] {
  const degraded: unknown = status?.degraded
  if (!Array.isArray(degraded)) return []
  return degraded.slice(0, mostOutcomes).flatMap(each => {
    const { subsystem, reason, hint } = (each ?? {}) as Partial<Degradation>
    if (typeof subsystem !== 'string' || typeof reason !== 'string' || typeof hint !== 'string') return []
    return {
      subsystem: subsystem.slice(0, 100),
      reason: reason.slice(0, longest),
      hint: hint.slice(0, longest),
    }
  })
}
