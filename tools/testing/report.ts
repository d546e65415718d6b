// The printed output of a run, and its report.
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { dirname } from 'node:path'
import { countResults, type FileResult, hasFailed } from './results.ts'

/** The report of a run: one JSON document. Times are in milliseconds. */
export interface Report {
  readonly kind: 'test' | 'soak'
  readonly commit: string
  /** Whether files differed from the commit. */
  readonly changed: boolean
  readonly node: string
  /** ISO 8601. */
  readonly began: string
  readonly wall_ms: number
  /** Load averages of the host over 15 minutes, at the beginning and at the end. */
  readonly load: readonly [number, number]
  readonly passed: number
  readonly failed: number
  readonly skipped: number
  /** A test is never repeated. */
  readonly retries: 0
  readonly files: readonly FileResult[]
}

const slowest = 10
const indent = (text: string, by: string) => text.replaceAll(/^/gm, by)
const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`

/** `3:05`, in minutes and seconds. */
export function clock(ms: number): string {
  const all = Math.round(ms / 1000)
  return `${Math.floor(all / 60)}:${String(all % 60).padStart(2, '0')}`
}

/** A failed file, with all details. */
export function failureText({ file, ms, tests, faults, output }: FileResult): string {
  const lines = [`✖ ${file} (${seconds(ms)})`]
  for (const fault of faults) lines.push(indent(fault, '    '))
  for (const { name, reason, result } of tests)
    if (result === 'failed') lines.push(`  ✖ ${name}`, indent(reason, '    '))
  if (output.trim() !== '') lines.push('  It printed:', indent(output.trimEnd(), '  | '))
  return lines.join('\n')
}

/** A passed file, with its tests. */
export function passText({ file, ms, cpu_ms, tests }: FileResult): string {
  const lines = tests.map(({ name, ms, result, reason }) =>
    result === 'skipped' ? `  - ${name}: skipped: ${reason}` : `  ✔ ${name} (${ms} ms)`,
  )
  return [`✔ ${file} (${seconds(ms)}, ${seconds(cpu_ms)} of CPU)`, ...lines].join('\n')
}

/** The summary of a run: counts, reasons for skipped tests, and the slowest ones. */
export function summaryText(report: Report): string {
  const { files, passed, failed, skipped, wall_ms } = report
  const lines: string[] = []
  const tests = files.flatMap(({ file, tests }) => tests.map(test => ({ ...test, file })))
  const slowFiles = files.toSorted((a, b) => b.ms - a.ms).slice(0, slowest)
  const slowTests = tests.toSorted((a, b) => b.ms - a.ms).slice(0, slowest)
  if (files.length > slowest) {
    const line = ({ file, ms, cpu_ms }: FileResult) =>
      `${seconds(ms).padStart(9)}  ${file}, ${seconds(cpu_ms)} of CPU`
    lines.push('slowest files', ...slowFiles.map(line))
    lines.push('slowest tests')
    for (const { file, name, ms } of slowTests) lines.push(`${seconds(ms).padStart(9)}  ${file}: ${name}`)
  }
  const reasons = new Map<string, number>()
  for (const { result, reason } of tests)
    if (result === 'skipped') reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
  if (reasons.size > 0) lines.push('skipped')
  for (const [reason, count] of [...reasons].sort((a, b) => b[1] - a[1]))
    lines.push(`${String(count).padStart(6)}     ${reason || 'without a reason'}`)
  const failures = files.filter(hasFailed)
  if (failures.length > 0) lines.push('failed', ...failures.map(({ file }) => `        ✖  ${file}`))
  const counts = `${passed} passed, ${failed} failed, ${skipped} skipped`
  return [...lines, `${counts}, ${files.length} files in ${clock(wall_ms)}`].join('\n')
}

export function makeReport(
  files: readonly FileResult[],
  run: Pick<Report, 'kind' | 'commit' | 'changed'>,
  beganMs: number,
  loadBefore: number,
): Report {
  return {
    ...run,
    node: process.version,
    began: new Date(beganMs).toISOString(),
    wall_ms: Date.now() - beganMs,
    load: [loadBefore, loadavg()[2]!],
    ...countResults(files),
    retries: 0,
    files: files.toSorted((a, b) => (a.file < b.file ? -1 : 1)),
  }
}

export function writeReport(path: string, report: Report): void {
  mkdirSync(dirname(path), { recursive: true })
  const next = `${path}.${process.pid}`
  writeFileSync(next, `${JSON.stringify(report, undefined, 1)}\n`)
  renameSync(next, path)
}
