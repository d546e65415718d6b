// One script of bench/, in a session of its own: how long it may take, what it reports, and what it leaves running.
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { type Figure, type FiguresLine, figuresVariable } from '../../bench/lib/figures.ts'
import { endSession, type Members, sessionEnds, startWatchdog } from '../testing/sessions.ts'
import type { ScriptResult } from './results.ts'
import { figureFault } from './results-fault.ts'

/** How long processes of a script have to end after it. */
const endMs = 500
/** In the environment of a script and of all that it starts: finds those that began a session of their own. */
const scriptVariable = 'BENCH_SCRIPT'

export interface ScriptOptions {
  /** Given to the script. */
  readonly args: readonly string[]
  /** Minutes; then it is ended. */
  readonly limit: number
  /** Ends it, too. */
  readonly stop: AbortSignal
}

/**
 * The minutes that a script may take: a line `at most: N min` in its first comment, about twice what it takes on a quiet
 * machine with two processors. Throws where it has none.
 */
export function limitMinutes(file: string): number {
  const lines = readFileSync(file, 'utf8').split('\n', 20).join('\n')
  const found = /^(?:\/\/| \*) at most: ([\d.]+) min$/m.exec(lines)
  if (found) return Number(found[1])
  throw new Error(`${file} has no limit of time: add a line "at most: N min" to its first comment`)
}

/** Throws where the line is neither a figure nor a reason to skip. */
function parseLine(text: string): FiguresLine {
  let [line, fault]: [unknown, string] = [undefined, 'it is not JSON']
  try {
    line = JSON.parse(text)
    fault = figureFault(line)
  } catch {
    // The fault is set.
  }
  if (fault === '') return line as Figure
  const { skipped } = (line ?? {}) as { skipped?: unknown }
  if (typeof skipped === 'string' && skipped !== '') return { skipped }
  throw new Error(`reports a line that is no figure: ${fault}: ${text.slice(0, 80)}`)
}

/** What a script reported. The fault is '' where each line is a figure of the script that comes once, or one skips. */
function readFigures(name: string, path: string): { figures: Figure[]; skipped: string; fault: string } {
  const written = existsSync(path) ? readFileSync(path, 'utf8') : ''
  const figures = new Map<string, Figure>()
  let [skipped, fault] = ['', '']
  for (const text of written === '' ? [] : written.replace(/\n$/, '').split('\n'))
    try {
      const line = parseLine(text)
      if ('skipped' in line) skipped = line.skipped
      else if (figures.has(line.name)) throw new Error(`reports ${line.name} twice`)
      else if (!line.name.startsWith(`${name}.`))
        throw new Error(`reports ${line.name}, which does not begin with ${name}.`)
      else figures.set(line.name, line)
    } catch (error) {
      fault ||= (error as Error).message
    }
  if (figures.size === 0 && skipped === '') fault ||= 'reports no figure, and no reason to skip'
  return { figures: [...figures.values()], skipped, fault }
}

/** Runs a script to its end. What it prints goes where this program prints. */
export async function runScript(file: string, { args, limit, stop }: ScriptOptions): Promise<ScriptResult> {
  const name = basename(file, '.ts')
  const load = loadavg()
  const began = performance.now()
  const folder = mkdtempSync(join(tmpdir(), 'svc-figures-'))
  try {
    const path = join(folder, 'figures')
    const id = randomUUID()
    const variable = `${scriptVariable}=${id}`
    const endWatchdog = startWatchdog(variable)
    const child = spawn(process.execPath, ['--expose-gc', file, ...args], {
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, [figuresVariable]: path, [scriptVariable]: id },
      detached: true, // a session of its own, so that all that it starts can be found
    })
    const members: Members = { session: child.pid!, variable }
    const end = () => endSession(members)
    let late = false
    const timer = setTimeout(() => {
      late = true
      end()
    }, limit * 60_000)
    stop.addEventListener('abort', end)
    // Not "close": what a script leaves may hold its output open.
    const how = await new Promise<string>(resolve =>
      child.once('exit', (code, signal) => resolve(signal ?? (code === 0 ? '' : `code ${code}`))),
    )
    clearTimeout(timer)
    stop.removeEventListener('abort', end)
    const interrupted = stop.aborted
    const wall = Math.round(performance.now() - began)
    const left = await sessionEnds(members, endMs)
    endWatchdog()
    const { figures, skipped, fault } = readFigures(name, path)
    let reason = how === '' ? fault : `ends with ${how}`
    if (late) reason = `takes more than ${limit} minutes`
    if (interrupted) reason = 'was interrupted'
    const common = { name, reason: reason || skipped, wall_ms: wall, load, left }
    if (reason === '') return { ...common, result: skipped === '' ? 'passed' : 'skipped', figures }
    return { ...common, result: 'failed', figures: figures.map(figure => ({ ...figure, failed: true })) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
