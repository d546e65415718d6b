// One script of bench/, in a session of its own: time limit, reported figures, and leftover processes.
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { type Figure, type FiguresLine, figuresVariable } from '../../bench/lib/figures.ts'
import { endSession, type Members, sessionEnds, startWatchdog } from '../testing/sessions.ts'
import type { ScriptResult } from './results.ts'
import { figureFault } from './results-fault.ts'

/** Time for leftover processes of a script to end. */
const endMs = 500
/** In the environment of a script and its children: finds those that started a session of their own. */
const scriptVariable = 'BENCH_SCRIPT'

export interface ScriptOptions {
  /** Arguments of the script. */
  readonly args: readonly string[]
  /** Time limit in minutes. */
  readonly limit: number
  /** Aborts it. */
  readonly stop: AbortSignal
}

/**
 * The time limit of a script in minutes: a line `at most: N min` in its first comment, about twice its duration on a
 * quiet machine with two processors. Throws if it has none.
 */
export function limitMinutes(file: string): number {
  const lines = readFileSync(file, 'utf8').split('\n', 20).join('\n')
  const found = /^(?:\/\/| \*) at most: ([\d.]+) min$/m.exec(lines)
  if (found) return Number(found[1])
  throw new Error(`${file} has no time limit: add a line "at most: N min" to its first comment`)
}

/** Throws if the line is neither a figure nor a reason to skip. */
function parseLine(text: string): FiguresLine {
  let [line, fault]: [unknown, string] = [undefined, 'it is not JSON']
  try {
    line = JSON.parse(text)
    fault = figureFault(line)
  } catch {
    // The fault is set already.
  }
  if (fault === '') return line as Figure
  const { skipped } = (line ?? {}) as { skipped?: unknown }
  if (typeof skipped === 'string' && skipped !== '') return { skipped }
  throw new Error(`reports a line that is not a figure: ${fault}: ${text.slice(0, 80)}`)
}

/**
 * The report of a script. The fault is '' if each line is a figure of the script that occurs once, or one line skips
 * it.
 */
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
  if (figures.size === 0 && skipped === '') fault ||= 'reports neither a figure nor a reason to skip'
  return { figures: [...figures.values()], skipped, fault }
}

/** Runs a script to its end. Its output is inherited. */
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
      detached: true, // a session of its own, to find all of its descendants
    })
    const members: Members = { session: child.pid!, variable }
    const end = () => endSession(members)
    let late = false
    const timer = setTimeout(() => {
      late = true
      end()
    }, limit * 60_000)
    stop.addEventListener('abort', end)
    // Not "close": leftover processes may keep its output open.
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
