// Runs tests and reports the results. Called by tools/test.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { checkedOut } from '../git.ts'
import { ImportGraph } from '../imports.ts'
import { openCoverage, reportCoverage, thinCoverage } from './coverage.ts'
import { guardOptions } from './guard-faults.ts'
import { readOptions } from './options.ts'
import { allTests, needsBundle, planGroups, soakTests } from './plan.ts'
import { recordFacts } from './reached-table.ts'
import { clock, failureText, makeReport, passText, summaryText, writeReport } from './report.ts'
import { countResults, type FileResult, hasFailed } from './results.ts'
import { type Group, schedule } from './schedule.ts'
import { startWatchdog } from './sessions.ts'
import { changedSince, touched } from './since.ts'
import { SoakProgress } from './soak-progress.ts'

const root = resolve(import.meta.dirname, '../..')
const progressMs = 60_000
const options = readOptions()
/** Named files are shown with all of their output. */
const named = options.files.length > 0

function chosenTests(graph: ImportGraph): readonly string[] {
  const all = allTests()
  if (named) return [...new Set(options.files.flatMap(path => testsAt(path, all)))]
  const since = options.since === undefined ? all : touched(all, changedSince(options.since), graph)
  return options.soak ? soakTests(since, graph) : since
}

/** The file at a path, or all below a folder. Throws if there is none. */
function testsAt(path: string, all: readonly string[]): readonly string[] {
  const file = relative(root, path)
  if (!existsSync(path)) throw new Error(`${file}: no such file`)
  if (file.endsWith('.test.ts')) return [file]
  const below = all.filter(each => each.startsWith(`${file}/`))
  if (below.length === 0) throw new Error(`${file}: not a test file (*.test.ts)`)
  return below
}

function environment({ owns }: Group, slot: number, coverage: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const own = /^(?:TEST_|NODE_OPTIONS$|NODE_TEST_CONTEXT$)/
  return {
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !own.test(name))),
    NODE_COMPILE_CACHE: resolve(root, 'build/compile-cache'),
    TEST_OWNS: [...owns].join(),
    TEST_PORTS: portsOf(slot),
    ...(!owns.has('ports') && { NODE_OPTIONS: guardOptions }),
    ...(options.soak && { TEST_SOAK: '1' }),
    ...coverage,
  }
}

/** A range of ports below those that the kernel assigns (ip_local_port_range). */
function portsOf(slot: number): string {
  const [first, count] = [28_100, Math.floor(4600 / options.atOnce)]
  return `${first + slot * count}-${first + (slot + 1) * count - 1}`
}

async function main(): Promise<number> {
  const graph = new ImportGraph(root)
  const chosen = chosenTests(graph)
  const groupsOf = (files: readonly string[]) => planGroups(files, graph)
  const all = groupsOf(chosen)
  if (needsBundle(chosen, graph)) execFileSync('bash', ['tools/setup'], { stdio: 'inherit' })
  const coverage = options.coverage ? openCoverage() : {}
  const isPart = options.patterns.length > 0
  const isWhole = !named && !isPart && options.since === undefined
  const progress = options.soak && isWhole ? new SoakProgress(options) : undefined
  const results: FileResult[] = [...(progress?.results ?? [])]
  const done = new Set(results.map(({ file }) => file))
  const groups = done.size === 0 ? all : groupsOf(chosen.filter(file => !done.has(file)))
  if (done.size > 0)
    console.log(`continuing an interrupted soak: ${done.size} files are done (--anew starts over)`)
  const run = { kind: options.soak ? 'soak' : 'test', ...checkedOut() } as const
  const began = Date.now() - (progress?.spentMs ?? 0)
  const load = loadavg()[2]!
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const)
    process.once(signal, () => stop.abort())
  const onResult = (result: FileResult) => {
    if (stop.signal.aborted) return
    results.push(result)
    progress?.add(result)
    if (hasFailed(result)) console.log(failureText(result))
    else if (named) console.log(passText(result))
  }
  // A partial run does not overwrite the full report.
  const path = options.soak ? 'build/soak/report.json' : 'build/test/report.json'
  const reported = !named && !isPart && (progress !== undefined || !options.soak)
  if (reported) rmSync(path, { force: true })
  const faults = mkdtempSync(join(tmpdir(), 'svc-test-faults-'))
  const marker = `${process.pid}-${Date.now()}.`
  const endWatchdog = startWatchdog(`TEST_GROUP=${marker}`)
  let begun = 0
  const timer = setInterval(() => {
    const { failed } = countResults(results)
    console.log(`${clock(Date.now() - began)}  ${results.length} of ${chosen.length} files, ${failed} failed`)
    if (options.coverage) thinCoverage()
  }, progressMs)
  try {
    await schedule(groups, options.atOnce, stop.signal, (group, slot) => ({
      flags: options.patterns.map(pattern => `--test-name-pattern=${pattern}`),
      limitMs: options.limitMs,
      env: environment(group, slot, coverage),
      faultsPath: join(faults, String(begun++)),
      verbose: named,
      run: marker,
      isPart,
      stop: stop.signal,
      onResult,
    }))
  } finally {
    clearInterval(timer)
    endWatchdog()
    rmSync(faults, { recursive: true })
  }
  if (stop.signal.aborted) return 130
  if (process.env.UPDATE_REACHED === '1')
    recordFacts(results, (await import('../contract/facts.ts')).recordedFacts())
  const report = makeReport(results, run, began, load)
  console.log(summaryText(report))
  if (reported) {
    writeReport(path, report)
    console.log(`report: ${path}`)
    progress?.end()
  }
  if (report.passed + report.failed + report.skipped === 0 && chosen.length > 0)
    throw new Error('no test has such a name')
  if (options.coverage) reportCoverage()
  return report.failed === 0 ? 0 : 1
}

process.exitCode = await main().catch(error => {
  console.error(`tools/test: ${error instanceof Error ? error.message : error}`)
  return 2
})
