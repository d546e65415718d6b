// Runs the agent until a signal ends it.

import { writeFileSync } from 'node:fs'
import { release } from 'node:os'
import { type LoadedConfig, notBuiltFeatures } from '../../config/index.ts'
import { build } from '../../foundation/lib/build.ts'
import { LogRing } from '../../foundation/lib/log-ring.ts'
import { createLogger, errorText, type Logger } from '../../foundation/lib/logger.ts'
import { agentBytes } from '../../foundation/lib/memory-room.ts'
import { raisePriority } from '../../foundation/lib/priority.ts'
import { ExitCode, StartError } from '../../foundation/lib/start-error.ts'
import type { RunCause } from '../../foundation/model/run-cause.ts'
import { ServiceNotify, type ServiceState } from '../../kernel/service-notify.ts'
import type { BannerLine, RunningAgent } from '../../view/api/types.ts'
import type { StartOptions } from '../agent/subsystem.ts'
import type { Arguments } from './arguments.ts'
import { configurationOf, exitOf, sayProblems } from './configuration.ts'
import { endProcess } from './end-process.ts'
import { fitHeap } from './fit-heap.ts'
import { say, terminal } from './terminal.ts'

/** Starts the agent. Rejects with a `StartError` if it refuses. */
export type StartAgent = (options: StartOptions) => Promise<RunningAgent>

/** Time beyond the configured timeout after which the process ends itself. */
const graceMs = 5000
/** Time that a busy host may need to end a process. */
const spareMs = 5000
/** The longest period of a timer. */
const mostTimerMs = 2 ** 31 - 1

/** Time after which a stopping process with this delivery timeout has certainly ended. */
export function endMs(timeoutMs: number): number {
  return timeoutMs + graceMs + spareMs
}

/** Resolves after a signal ended the agent and its data was delivered or counted, or when it refused to start. */
export async function runAgent(args: Arguments, start: StartAgent): Promise<ExitCode> {
  const loaded = configurationOf(args)
  if (loaded.problems.length > 0) {
    sayProblems(loaded)
    return exitOf(loaded)
  }
  fitHeap(agentBytes(loaded.config.limits.memory))
  nameProcess()
  const logRing = new LogRing()
  const log = loggerOf(loaded, logRing)
  logConfiguration(loaded, log)
  let agent: RunningAgent | undefined
  const note = (cause: RunCause, detail?: string) => agent?.ended(cause, detail)
  endOnBugs(log, note)
  const service = new ServiceNotify(log)
  // A reload may change it.
  const timeoutMs = () => agent?.shutdownTimeoutMs ?? loaded.config.pipeline.operations.shutdown.timeout
  // Before the start, which takes time: a first signal takes effect when it is complete, a second one at once.
  const ended = endOnSignals(timeoutMs, log, note)
  const answer = answerSignals(log, () => agent)
  raisePriority()
  try {
    agent = await start({
      loaded,
      log,
      logRing,
      load: () => configurationOf(args),
      aroundReload: attempt => service.reload(attempt),
    })
    introduce(loaded, agent, log)
    service.ready(stateOf(agent))
    const signal = await ended.signal
    log.info('stopping', { signal, timeout_ms: timeoutMs() })
    service.stopping(endMs(timeoutMs()), 'delivering queued data, then stopping')
    await agent.stop()
    note('stopped', signal)
    log.info('stopped')
    return ExitCode.ok
  } catch (error) {
    if (error instanceof StartError) {
      log.error(errorText(error))
      return error.exitCode
    }
    note('bug', errorText(error))
    sayBug(error, log)
    return ExitCode.general
  } finally {
    answer.stop()
    ended.stop()
    service.close()
  }
}

/** State for the service manager, by the same criteria as /healthz. */
function stateOf({ banner, view }: RunningAgent): ServiceState {
  return { status: () => statusLine(banner()), stuck: () => view.health().reason }
}

/** `failed: profiles; limited: queue; runs: traces, logs`, most urgent first. Disabled subsystems are omitted. */
export function statusLine(lines: readonly BannerLine[]): string {
  const named = (state: BannerLine['state']) => [
    ...new Set(lines.filter(line => line.state === state).map(({ name }) => name)),
  ]
  const groups = [
    ['failed', named('failed')],
    ['limited', named('limited')],
    ['runs', named('ok')],
  ] as const
  const text = groups
    .filter(([, names]) => names.length > 0)
    .map(([what, names]) => `${what}: ${names.join(', ')}`)
  const hint = named('failed').length + named('limited').length > 0 ? ' (why: svc status)' : ''
  return text.length > 0 ? `${text.join('; ')}${hint}` : 'nothing is enabled'
}

/** Appears as `svc` rather than `node` in ps and top; the command line is unchanged. */
function nameProcess(): void {
  try {
    writeFileSync('/proc/self/comm', 'svc')
  } catch {
    // Without /proc the name is not visible either.
  }
}

function loggerOf({ config, origins }: LoadedConfig, ring: LogRing): Logger {
  const { interactive, color } = terminal()
  const format = interactive && !origins.has('log_format') ? 'text' : config.log_format
  return createLogger({
    level: config.log_level,
    format,
    color: color && format === 'text',
    write: say,
    ring,
  })
}

function logConfiguration({ config, origins, notes, warnings, file }: LoadedConfig, log: Logger): void {
  const { version, commit } = build()
  log.info('starting', { version, commit, mode: config.mode, config: file ?? 'no file (defaults)' })
  for (const note of notes) log.debug(note)
  for (const warning of warnings) log.warn(warning)
  for (const { key, why, explicit } of notBuiltFeatures(config, origins)) {
    if (explicit) log.warn('a configured feature is not built in this version', { key, why })
  }
}

type Note = (cause: RunCause, detail?: string) => void

/** An uncaught error leaves an undefined state: report it, and leave the restart to the supervisor. */
function endOnBugs(log: Logger, note: Note): void {
  const end = (error: unknown) => {
    note('bug', errorText(error))
    sayBug(error, log)
    endProcess(ExitCode.general)
  }
  process.on('uncaughtException', end)
  process.on('unhandledRejection', end)
}

function sayBug(error: unknown, log: Logger): void {
  log.error('the agent failed and is stopping; please report this', {
    error: error instanceof Error ? (error.stack ?? error.message) : String(error),
  })
}

interface End {
  /** Resolves with the name of the first signal to stop. */
  readonly signal: Promise<string>
  stop(): void
}

function endOnSignals(timeoutMs: () => number, log: Logger, note: Note): End {
  let asked = false
  let overdue: NodeJS.Timeout | undefined
  let resolve: (signal: string) => void
  const signal = new Promise<string>(done => {
    resolve = done
  })
  const onSignal = (name: string) => {
    if (asked) {
      note('stopped_at_once', name)
      log.warn('stopped immediately by a second signal; data in memory is lost', { signal: name })
      endProcess(ExitCode.general)
    }
    asked = true
    const boundMs = timeoutMs()
    overdue = setTimeout(() => {
      note('stop_timeout')
      log.error('stopping took too long; data in memory is lost', { timeout_ms: boundMs })
      endProcess(ExitCode.general)
    }, boundMs + graceMs)
    resolve(name)
  }
  for (const name of ['SIGTERM', 'SIGINT']) process.on(name, onSignal)
  // Periodic work keeps no process alive, and servers may be off.
  const alive = setInterval(() => {}, mostTimerMs)
  return {
    signal,
    stop: () => {
      clearInterval(alive)
      clearTimeout(overdue)
      for (const name of ['SIGTERM', 'SIGINT']) process.off(name, onSignal)
    },
  }
}

/**
 * SIGUSR1 writes the status document to the log, whatever its level, SIGHUP reloads the configuration. Listening also
 * keeps Node from opening its debugger on the first, and the kernel from ending the process on the second.
 */
function answerSignals(log: Logger, running: () => RunningAgent | undefined): { stop(): void } {
  const status = () => log.answer('status', { status: running()?.view.status() ?? 'starting' })
  const reload = () => {
    const agent = running()
    if (agent === undefined) log.warn('SIGHUP during startup is ignored; send it again')
    else agent.reload('signal').catch(error => log.error('cannot reload', { error }))
  }
  process.on('SIGUSR1', status)
  process.on('SIGHUP', reload)
  return {
    stop: () => {
      process.off('SIGUSR1', status)
      process.off('SIGHUP', reload)
    },
  }
}

/** Shows what works, what does not and why, and where to look: formatted on a terminal, as records in a log. */
function introduce({ file }: LoadedConfig, agent: RunningAgent, log: Logger): void {
  const { interactive, color } = terminal()
  const lines = agent.banner()
  const links = agent.links()
  if (interactive) {
    const title = `svc ${build().version}, ${process.platform} ${release()} ${process.arch}, ${file ?? 'no configuration file, using defaults'}`
    // The link gives access to the page: print it to the terminal, never to the log.
    const link = agent.pageLink()
    const shown = links.map(each =>
      each.what === 'page' && link !== undefined ? { ...each, url: link } : each,
    )
    say(bannerText(title, lines, shown, color))
    return
  }
  for (const { state, name, detail, hint } of lines) {
    const level = state === 'failed' || state === 'limited' ? 'warn' : 'info'
    log[level](`${name}: ${detail}`, { subsystem: name, state, hint })
  }
  const hint =
    agent.pageLink() === undefined ? {} : { hint: '"sudo svc ui" prints a link that opens the page' }
  log.info('started', { ...Object.fromEntries(links.map(({ what, url }) => [what, url])), ...hint })
}

const stateColours: Record<BannerLine['state'], number> = {
  ok: 32,
  limited: 33,
  off: 90,
  none: 90,
  failed: 31,
}

export function bannerText(
  title: string,
  lines: readonly BannerLine[],
  links: readonly { what: string; url: string }[],
  color: boolean,
): string {
  const state = (line: BannerLine) =>
    color ? `\x1b[${stateColours[line.state]}m${line.state.padEnd(7)}\x1b[0m` : line.state.padEnd(7)
  const nameWidth = Math.max(0, ...lines.map(({ name }) => name.length))
  const text = [title]
  for (const line of lines) {
    const head = `  ${state(line)} ${line.name.padEnd(nameWidth)}  `
    text.push(`${head}${line.detail}`)
    if (line.hint) text.push(`${' '.repeat(nameWidth + 12)}Hint: ${line.hint}`)
  }
  const whatWidth = Math.max(0, ...links.map(({ what }) => what.length))
  for (const { what, url } of links) text.push(`  ${what.padEnd(whatWidth)}  ${url}`)
  return `${text.join('\n')}\n`
}
