// Lines and branches of src/ covered by tests, in all of their processes, by the runtime's own coverage. Each process
// writes V8's counts (NODE_V8_COVERAGE). The runtime only merges such files of a single test run, so the summary is a
// test run of its own: this file, which copies them to where that run collects its own, and reports it.
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import type { TestEvent } from 'node:test/reporters'
import { pathToFileURL } from 'node:url'

const root = resolve(import.meta.dirname, '../..')
const raw = join(root, 'build/coverage/raw')
const source = `${pathToFileURL(join(root, 'src'))}/`

/** Environment variables for the processes of tests. Those that run svc run it from its sources. */
export function openCoverage(): NodeJS.ProcessEnv {
  rmSync(raw, { recursive: true, force: true })
  mkdirSync(raw, { recursive: true })
  // Tests run programs as unprivileged users, who write their files here too.
  chmodSync(raw, 0o1777)
  // Functions from the compile cache are counted less precisely (Node.js, module.enableCompileCache).
  return { NODE_V8_COVERAGE: raw, NODE_DISABLE_COMPILE_CACHE: '1', TEST_FROM_SOURCES: '1' }
}

/**
 * Removes everything outside src/ from the files so far: a hundredth is left. Returns the number of unreadable files: a
 * process is still writing them, or was killed.
 */
export function thinCoverage(): number {
  let unreadable = 0
  for (const name of readdirSync(raw)) {
    if (!name.startsWith('coverage-')) continue
    const path = join(raw, name)
    let result: { url: string }[]
    try {
      result = (JSON.parse(readFileSync(path, 'utf8')) as { result: typeof result }).result
    } catch {
      unreadable++
      continue
    }
    const kept = result.filter(({ url }) => url.startsWith(source) && !url.endsWith('.test.ts'))
    writeFileSync(join(raw, `thin-${name}`), JSON.stringify({ result: kept }))
    rmSync(path)
  }
  return unreadable
}

/** Merges the files. Prints the totals and writes all files to build/coverage/report.json. */
export function reportCoverage(): void {
  chmodSync(raw, 0o755)
  const unreadable = thinCoverage()
  if (unreadable > 0) console.log(`coverage: ${unreadable} processes were killed while they wrote theirs`)
  const flags = [
    '--experimental-test-coverage',
    '--test-coverage-include=src/**/*.ts',
    '--test-coverage-exclude=**/*.test.ts',
    `--test-reporter=${import.meta.filename}`,
    '--max-old-space-size=8192',
  ]
  spawnSync(process.execPath, [...flags, import.meta.filename, 'merge'], { cwd: root, stdio: 'inherit' })
}

export default async function* totals(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type, data } of events) {
    if (type === 'test:fail') yield `coverage: ${data.details.error.message}\n`
    if (type !== 'test:coverage') continue
    const { totals, files } = data.summary
    writeFileSync(join(root, 'build/coverage/report.json'), JSON.stringify({ totals, files }, undefined, 1))
    const share = (covered: number, total: number, percent: number) =>
      `${percent.toFixed(2)} % (${covered} of ${total})`
    yield `coverage of src: lines ${share(totals.coveredLineCount, totals.totalLineCount, totals.coveredLinePercent)}, ` +
      `branches ${share(totals.coveredBranchCount, totals.totalBranchCount, totals.coveredBranchPercent)}\n`
  }
}

interface Script {
  readonly url: string
  readonly functions: readonly {
    readonly functionName: string
    readonly isBlockCoverage: boolean
    readonly ranges: { readonly startOffset: number; readonly endOffset: number; count: number }[]
  }[]
}

/**
 * If V8 counted a function as a whole, not by blocks, and it ran in one process, mark it as run in all of them.
 * Otherwise the runtime takes the count of the first process, perhaps one in which it did not run. Counts by blocks
 * still take precedence.
 */
function spreadCounts(processes: readonly (readonly Script[])[]): void {
  const ran = new Set<string>()
  const each = function* () {
    for (const scripts of processes)
      for (const { url, functions } of scripts)
        for (const { functionName, isBlockCoverage, ranges } of functions) {
          const [whole] = ranges
          if (isBlockCoverage || !whole) continue
          yield { whole, key: `${url} ${functionName} ${whole.startOffset} ${whole.endOffset}` }
        }
  }
  for (const { whole, key } of each()) if (whole.count > 0) ran.add(key)
  for (const { whole, key } of each()) if (ran.has(key)) whole.count = Math.max(1, whole.count)
}

if (import.meta.main && process.argv[2] === 'merge')
  test('what processes wrote is brought together', () => {
    const names = readdirSync(raw).filter(name => name.startsWith('thin-'))
    const reports = names.map(
      name => JSON.parse(readFileSync(join(raw, name), 'utf8')) as { result: Script[] },
    )
    spreadCounts(reports.map(({ result }) => result))
    for (const [index, name] of names.entries())
      writeFileSync(
        join(process.env.NODE_V8_COVERAGE!, name.replace('thin-', '')),
        JSON.stringify(reports[index]),
      )
  })
