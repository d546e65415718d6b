import { nearest } from '../../../foundation/lib/nearest.ts'
import { ExitCode, StartError } from '../../../foundation/lib/start-error.ts'
import type { ProfileFormat } from '../../../foundation/model/taken-profile.ts'
import { printable } from '../../../signals/profiles/frame-text.ts'
import type { FlameDocument } from '../../../view/api/schemas.ts'
import type { AgentAnswer, AgentClient } from '../../client/agent-client.ts'
import type { Arguments } from '../arguments.ts'
import { startProgress } from '../progress.ts'
import { runningAgent, tokenHint } from '../running-agent.ts'
import { outputColumns, print, say, writeToStdout } from '../terminal.ts'
import type { ProfileOrder } from './order.ts'
import { checkOutput, writeOutput } from './output-file.ts'
import { tableOf } from './table.ts'

/** Maximum size of an answer: drawings have 500 KB, folded stacks 16 MiB. */
const mostBytes = 64 << 20
/** Time beyond the recording, for symbols and the answer. */
const patienceMs = 30_000
const mostNear = 5

/** Has the agent record a profile, and writes or prints it. */
export async function record(
  args: Arguments,
  order: ProfileOrder,
  output: string | undefined,
): Promise<ExitCode> {
  const format = output === undefined ? 'json' : formatOf(output)
  if (output !== undefined && output !== '-') checkOutput(output)
  const client = await runningAgent(args, 'take a profile')
  await sayWhatStarts(client, order)
  const answer = await recorded(client, order, format)
  if (answer.status !== 200) throw refusal(answer, order)
  if (answer.cut) throw new StartError('cannot read the profile: it is over 64 MiB', ExitCode.general)
  if (output === undefined && !args.has('json')) {
    print(readable(answer.body))
  } else if (output === undefined || output === '-') {
    await writeToStdout(answer.body, 'the profile')
  } else {
    writeOutput(output, answer.body)
    say(`wrote ${output} (${answer.body.length} bytes)${howToRead(format, output)}\n`)
  }
  return ExitCode.ok
}

function formatOf(output: string): ProfileFormat {
  if (output === '-' || /\.(folded|txt)$/.test(output)) return 'folded'
  if (/\.(pb|pb\.gz|pprof)$/.test(output)) return 'pprof'
  if (output.endsWith('.svg')) return 'svg'
  if (output.endsWith('.json')) return 'json'
  throw new StartError(
    `cannot determine the format of ${output}; use a name that ends in .pb.gz, .folded, .svg or .json`,
    ExitCode.usage,
  )
}

function howToRead(format: ProfileFormat, output: string): string {
  if (format === 'svg') return ': open it in a browser'
  return format === 'pprof' ? `: go tool pprof ${output}` : ''
}

/** Announces kinds that are not sampled continuously: they cost something only now. */
async function sayWhatStarts(client: AgentClient, { kind }: ProfileOrder): Promise<void> {
  if (kind === 'cpu') return
  try {
    const { status, body } = await client.get('/config', { timeoutMs: 5000, mostBytes: 1 << 20 })
    if (status !== 200) return
    const config = JSON.parse(body.toString()) as { agent?: { profiling?: Record<string, unknown> } }
    if (config.agent?.profiling?.[kind] !== false) return
    say(`agent.profiling.${kind} is off: profiling runs only for the duration of the recording\n`)
  } catch {
    // Only a hint: the request for the profile will report any error.
  }
}

async function recorded(
  client: AgentClient,
  order: ProfileOrder,
  format: ProfileFormat,
): Promise<AgentAnswer> {
  const { kind, seconds, target, rate } = order
  const query = new URLSearchParams({ kind, seconds: String(seconds), format })
  if (/^\d+$/.test(target)) query.set('pid', target)
  else if (target !== '') query.set('service', target)
  if (rate > 0) query.set('rate', String(rate))
  const done = sayProgress(order)
  try {
    return await client.get(`/profiles?${query}`, { timeoutMs: seconds * 1000 + patienceMs, mostBytes })
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new StartError(`cannot take a profile at ${client.address}: ${why}`, ExitCode.general, error)
  } finally {
    done()
  }
}

/** Shows progress on a terminal. */
function sayProgress({ target, seconds }: ProfileOrder): () => void {
  const whose = target === '' ? 'all processes' : printable(target, 60)
  return startProgress(
    gone => `${whose}, ${gone < seconds ? `recording: ${gone} s of ${seconds} s` : 'resolving symbols'}`,
    0,
  )
}

/** The agent's refusal, for display. */
function refusal({ status, body }: AgentAnswer, { target }: ProfileOrder): StartError {
  const { message, details } = errorOf(body)
  if (status === 404 && message.startsWith('cannot answer /profiles'))
    return new StartError('cannot take a profile: the agent is older than this command', ExitCode.general)
  const hint = typeof details.hint === 'string' && details.hint !== '' ? `; ${details.hint}` : ''
  const near = status === 404 ? nearServices(target, details.services) : ''
  const text = message === '' ? `the agent answered ${status}` : message
  const code = status === 401 || status === 403 ? ExitCode.permission : ExitCode.general
  return new StartError(printable(`${text}${hint}${near}${tokenHint(status, body)}`, 4000), code)
}

function nearServices(target: string, services: unknown): string {
  if (!Array.isArray(services)) return ''
  const names = services.filter(name => typeof name === 'string')
  if (names.length === 0) return ''
  const best = nearest(target, names)
  const lower = target.toLowerCase()
  const like = names.filter(name => name !== best && lower !== '' && name.toLowerCase().includes(lower))
  const near = [...(best === undefined ? [] : [best]), ...like].slice(0, mostNear)
  if (near.length > 0) return `; did you mean ${near.join(' or ')}?`
  return `; there are ${names.slice(0, mostNear).join(', ')}${names.length > mostNear ? ' and others' : ''}`
}

function errorOf(body: Buffer): { message: string; details: Record<string, unknown> } {
  try {
    const { message, details } = JSON.parse(body.toString())
    if (typeof message === 'string' && typeof details === 'object' && details !== null)
      return { message, details }
  } catch {
    // Not an answer of an agent: report the status.
  }
  return { message: '', details: {} }
}

/** Throws if it is not a profile: the URL may be another server's. */
function readable(body: Buffer): string {
  try {
    const document = JSON.parse(body.toString()) as FlameDocument
    const { parent } = document.nodes
    if (parent.some((above, node) => !(above < node) && node > 0)) throw new Error('its nodes are not a tree')
    return tableOf(document, outputColumns())
  } catch {
    throw new StartError('cannot read the profile: invalid answer', ExitCode.general)
  }
}
