// The report that the runtime writes as it dies, when V8 is out of memory or hits an internal error
// (https://nodejs.org/docs/latest-v24.x/api/report.html).

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { readOwnFile } from '../../foundation/lib/own-directory.ts'

const name = 'fatal.json'
/** The fields used here come before the lists of processors and libraries. */
const mostBytes = 4096

export interface FatalReport {
  readonly pid: number
  /** Milliseconds since the Unix epoch. */
  readonly atMs: number
  /** The heap reached its limit. */
  readonly isHeap: boolean
}

/**
 * Enables the report in a directory; it costs nothing until then. Does nothing if the report would include the
 * environment, with its secrets: for a full heap, the runtime follows its command line and ignores
 * `process.report.excludeEnv`.
 */
export function reportFatalErrors(directory: string): void {
  if (!process.execArgv.includes('--report-exclude-env')) return
  // Otherwise peers would be resolved by name.
  const settings = { excludeNetwork: true, directory, filename: name, reportOnFatalError: true }
  Object.assign(process.report, settings)
}

/** Reads and removes the report of the previous run. */
export function takeFatalReport(directory: string): FatalReport | undefined {
  const path = join(directory, name)
  const text = readOwnFile(path, mostBytes)
  try {
    rmSync(path, { force: true })
  } catch {
    // Something else is there, not written by the runtime.
  }
  const field = (key: string) =>
    new RegExp(`^\\s*"${key}": "?([^"\\n]{1,100}?)"?,?$`, 'm').exec(text ?? '')?.[1] ?? ''
  const [pid, atMs] = [Number(field('processId')), Number(field('dumpEventTimeStamp'))]
  if (!(pid > 0 && atMs > 0)) return undefined
  // V8 distinguishes its own limit from a failed malloc.
  const isHeap = field('trigger') === 'OOMError' && field('event').includes('JavaScript heap')
  return { pid, atMs, isHeap }
}
