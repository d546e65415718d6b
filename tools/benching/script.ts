// One script of bench/, in a session of its own: how long it may take, what it reports, and what it leaves behind.
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { type Figure, type FiguresLine, figuresVariable } from '../../bench/lib/figures.ts'
import { endSession, sessionEnds } from '../testing/sessions.ts'
import type { ScriptResult } from './results.ts'

/** How long processes of a script have to end behind it. */
const endMs = 500

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
  throw new Error(
    `${file} does not say how long it may take: add a line "at most: N min" to its first comment`,
  )
}

/** What a script reported. The fault is '' where each figure has the script's name in front and comes once. */
function readFigures(name: string, path: string): { figures: Figure[]; skipped: string; fault: string } {
  const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : []
  const figures = new Map<string, Figure>()
  let [skipped, fault] = ['', '']
  for (const line of lines.map(text => JSON.parse(text) as FiguresLine))
    if ('skipped' in line) skipped = line.skipped
    else if (figures.has(line.name)) fault = `reports ${line.name} twice`
    else if (!line.name.startsWith(`${name}.`))
      fault = `reports ${line.name}, which does not begin with ${name}.`
    else figures.set(line.name, line)
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
    const child = spawn(process.execPath, ['--expose-gc', file, ...args], {
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, [figuresVariable]: path },
      detached: true, // a session of its own, so that all that it starts can be found
    })
    const session = child.pid!
    const end = () => endSession({ session })
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
    const wall = Math.round(performance.now() - began)
    const left = await sessionEnds({ session }, endMs)
    const { figures, skipped, fault } = readFigures(name, path)
    let reason = how === '' ? fault : `ends with ${how}`
    if (late) reason = `takes more than ${limit} minutes`
    if (stop.aborted) reason = 'was interrupted'
    const result = reason !== '' ? 'failed' : skipped !== '' ? 'skipped' : 'passed'
    return { name, result, reason: reason || skipped, wall_ms: wall, load, left, figures }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
