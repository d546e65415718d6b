// Queries of commands to the running agent, and their errors if it does not answer.

import { formatProblems } from '../../config/index.ts'
import { ExitCode, StartError } from '../../foundation/lib/start-error.ts'
import { terminalText } from '../../foundation/lib/terminal-text.ts'
import {
  type AgentAnswer,
  type AgentClient,
  type Attempt,
  findAgent,
  isForOthers,
  type OnLine,
  waysText,
} from '../client/agent-client.ts'
import type { Arguments } from './arguments.ts'
import { configurationOf } from './configuration.ts'
import { withProgress } from './progress.ts'
import { say } from './terminal.ts'

/** Limit for documents: the largest is a trace of all spans of the window. */
const mostBytes = 64 << 20
const patienceMs = 15_000

/** The agent of this host, or at `--url`. Throws a `StartError` that lists every attempt, after "cannot `what`". */
export async function runningAgent(args: Arguments, what: string): Promise<AgentClient> {
  const { client, tried } = await lookForAgent(args)
  // The address came from this configuration.
  const [problem] = configurationOf(args).problems
  if (problem !== undefined && args.value('url') === undefined)
    say(`${formatProblems([problem], { terminal: false, color: false })}Defaults are used instead.\n`)
  if (client) return client
  throw new StartError(
    `cannot ${what}: no agent answers (${waysText(tried)}); start it with "svc run", or pass its address with --url`,
    noAgent(tried),
  )
}

/** The exit code if no attempt reached an agent. */
export function noAgent(tried: readonly Attempt[]): ExitCode {
  return tried.some(({ denied }) => denied) ? ExitCode.permission : ExitCode.general
}

/** The same without an error message. */
export function lookForAgent(args: Arguments) {
  const settings = configurationOf(args).config.self_telemetry
  return withProgress(
    'looking for the agent',
    findAgent({ settings, url: args.value('url'), env: process.env }),
  )
}

/** A document. Throws a `StartError`: "cannot `what`", and why. */
export async function documentOf<T>(
  client: AgentClient,
  path: string,
  what: string,
  timeoutMs = patienceMs,
): Promise<T> {
  return readAs<T>(await answerOf(client, path, what, timeoutMs), path, what)
}

/** The same for a document that may come with another status. */
export async function answerOf(
  client: AgentClient,
  path: string,
  what: string,
  timeoutMs = patienceMs,
): Promise<AgentAnswer> {
  try {
    return await client.get(path, { timeoutMs, mostBytes })
  } catch (error) {
    throw notAnswered(client, what, error)
  }
}

/** The parsed answer. Throws if it is a refusal, or not JSON. */
export function readAs<T>({ status, body, cut }: AgentAnswer, path: string, what: string, fine = [200]): T {
  if (!fine.includes(status)) throw refusal(path, what, status, body)
  if (cut) throw new StartError(`cannot ${what}: the answer is over 64 MiB`, ExitCode.general)
  return parsed<T>(body.toString(), what)
}

/** Reads lines of JSON until the end, or until `signal` is aborted. Throws as `documentOf` does. */
export async function followLines(
  client: AgentClient,
  path: string,
  what: string,
  onLine: OnLine,
  signal: AbortSignal,
): Promise<void> {
  let followed: Awaited<ReturnType<AgentClient['follow']>>
  try {
    followed = await client.follow(path, onLine, signal)
  } catch (error) {
    throw error instanceof StartError ? error : notAnswered(client, what, error)
  }
  if (followed.status !== 200) throw refusal(path, what, followed.status, followed.body)
}

/** Parses a line as the expected document. Throws if it is not JSON: the URL may be another server's. */
export function parsed<T>(line: string, what: string): T {
  try {
    return JSON.parse(line) as T
  } catch (error) {
    throw new StartError(
      `cannot ${what}: the answer is not that of an svc agent: it is not JSON`,
      ExitCode.general,
      error,
    )
  }
}

function notAnswered({ address }: AgentClient, what: string, error: unknown): StartError {
  const why = error instanceof Error ? error.message : String(error)
  return new StartError(`cannot ${what} at ${address}: ${why}`, ExitCode.general, error)
}

/** The agent's refusal, for display. */
function refusal(path: string, what: string, status: number, body: Buffer): StartError {
  const said = messageOf(body)
  if (status === 404 && said !== '' && path.startsWith('/ui/api/'))
    return new StartError(
      `cannot ${what}: the agent does not serve it; it is older than this command, or was started with self_telemetry.ui.enabled: false`,
      ExitCode.general,
    )
  const code = status === 401 || status === 403 ? ExitCode.permission : ExitCode.general
  const message = said || `the answer is not that of an svc agent: only status ${status}`
  return new StartError(`cannot ${what}: ${terminalText(message, true)}${tokenHint(status, body)}`, code)
}

/** Hint for an answer that lacks a token; empty for others, and if the agent gave one. */
export function tokenHint(status: number, body: Buffer): string {
  if (status !== 401 || isForOthers({ status, body })) return ''
  return process.env.SVC_TOKEN
    ? '; the token in SVC_TOKEN is invalid: correct it, or use the admin socket as root'
    : '; set SVC_TOKEN, or use the admin socket as root'
}

/** The `message` of an error object; '' for another answer. */
export function messageOf(body: Buffer): string {
  try {
    const { message } = JSON.parse(body.toString()) as { message?: unknown }
    return typeof message === 'string' ? message : ''
  } catch {
    return '' // not an answer of an agent: report the status
  }
}
