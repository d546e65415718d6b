// What commands ask of the agent that runs, and what they say where it does not answer.

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

/** Of documents: a trace of all spans of the window is larger than any other. */
const mostBytes = 64 << 20
const patienceMs = 15_000

/** The agent of this host, or at `--url`. Throws a `StartError` that tells every way that was tried; `what` cannot be done. */
export async function runningAgent(args: Arguments, what: string): Promise<AgentClient> {
  const { client, tried } = await lookForAgent(args)
  // Where the agent is to be asked was taken from it.
  const [problem] = configurationOf(args).problems
  if (problem !== undefined && args.value('url') === undefined)
    say(`${formatProblems([problem], { terminal: false, color: false })}Defaults are used instead.\n`)
  if (client) return client
  throw new StartError(
    `cannot ${what}: no agent answers (${waysText(tried)}); start it with "svc run", or pass its address with --url`,
    noAgent(tried),
  )
}

/** The exit code where none of the ways leads to an agent. */
export function noAgent(tried: readonly Attempt[]): ExitCode {
  return tried.some(({ denied }) => denied) ? ExitCode.permission : ExitCode.general
}

/** The same without a complaint. */
export function lookForAgent(args: Arguments) {
  const settings = configurationOf(args).config.self_telemetry
  return withProgress(
    'looking for the agent',
    findAgent({ settings, url: args.value('url'), env: process.env }),
  )
}

/** A document. Throws a `StartError`: `what` cannot be done, and why. */
export async function documentOf<T>(
  client: AgentClient,
  path: string,
  what: string,
  timeoutMs = patienceMs,
): Promise<T> {
  return readAs<T>(await answerOf(client, path, what, timeoutMs), path, what)
}

/** The same of a document whose answer may be another status, too. */
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

/** What an answer holds. Throws where it is a refusal, or no JSON. */
export function readAs<T>({ status, body, cut }: AgentAnswer, path: string, what: string, fine = [200]): T {
  if (!fine.includes(status)) throw refusal(path, what, status, body)
  if (cut) throw new StartError(`cannot ${what}: the answer is over 64 MiB`, ExitCode.general)
  return parsed<T>(body.toString(), what)
}

/** Reads lines of JSON for as long as they come, or until `signal` is aborted. Throws as `documentOf` does. */
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

/** A line as the document that it should be. Throws where it is no JSON: a URL may be anybody's. */
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

/** What the agent said instead of a document, for a person. */
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

/** Hint for an answer that lacks a token; empty for others, and where the agent gave one. */
export function tokenHint(status: number, body: Buffer): string {
  if (status !== 401 || isForOthers({ status, body })) return ''
  return process.env.SVC_TOKEN
    ? '; the token in SVC_TOKEN is invalid: correct it, or use the admin socket as root'
    : '; set SVC_TOKEN, or use the admin socket as root'
}

function messageOf(body: Buffer): string {
  try {
    const { message } = JSON.parse(body.toString()) as { message?: unknown }
    return typeof message === 'string' ? message : ''
  } catch {
    return '' // no agent of ours: its status is all there is to tell
  }
}
