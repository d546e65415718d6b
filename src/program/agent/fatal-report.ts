// The report that the runtime writes in its last moment, when V8 has no memory left or finds a fault in itself
// (https://nodejs.org/docs/latest-v24.x/api/report.html).

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { readOwnFile } from '../../foundation/lib/own-directory.ts'

const name = 'fatal.json'
/** What is read of it stands before the lists of processors and libraries. */
const mostBytes = 4096

export interface FatalReport {
  readonly pid: number
  /** Milliseconds since the Unix epoch. */
  readonly atMs: number
  /** The heap reached its limit. */
  readonly isHeap: boolean
}

/**
 * Has the runtime write one into the directory, should it come to that; until then it costs nothing. Not where it would
 * hold the environment, with its secrets: of a full heap the report obeys what the runtime was started with, and not
 * `process.report.excludeEnv`.
 */
export function reportFatalErrors(directory: string): void {
  if (!process.execArgv.includes('--report-exclude-env')) return
  // Peers would be looked up by name.
  const settings = { excludeNetwork: true, directory, filename: name, reportOnFatalError: true }
  Object.assign(process.report, settings)
}

/** What the run before left there; it is taken away. */
export function takeFatalReport(directory: string): FatalReport | undefined {
  const path = join(directory, name)
  const text = readOwnFile(path, mostBytes)
  try {
    rmSync(path, { force: true })
  } catch {
    // Something else lies there, which is none of the runtime's.
  }
  const field = (key: string) =>
    new RegExp(`^\\s*"${key}": "?([^"\\n]{1,100}?)"?,?$`, 'm').exec(text ?? '')?.[1] ?? ''
  const [pid, atMs] = [Number(field('processId')), Number(field('dumpEventTimeStamp'))]
  if (!(pid > 0 && atMs > 0)) return undefined
  // V8 tells its own limit from a malloc that failed.
  const isHeap = field('trigger') === 'OOMError' && field('event').includes('JavaScript heap')
  return { pid, atMs, isHeap }
}
