// Runs tests, and says what came of them. Called by tools/test.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { loadavg } from 'node:os'
import { relative, resolve } from 'node:path'
import { checkedOut } from '../git.ts'
import { ImportGraph } from '../imports.ts'
import { openCoverage, reportCoverage, thinCoverage } from './coverage.ts'
import { guardOptions } from './guard-faults.ts'
import { readOptions } from './options.ts'
import { allTests, needsBundle, planGroups, soakTests } from './plan.ts'
import { clock, failureText, makeReport, passText, summaryText, writeReport } from './report.ts'
import { countResults, type FileResult, hasFailed } from './results.ts'
import { type Group, schedule } from './schedule.ts'
import { changedSince, touched } from './since.ts'
import { SoakProgress } from './soak-progress.ts'

const root = resolve(import.meta.dirname, '../..')
const progressMs = 60_000
const options = readOptions()
/** Files that somebody named are shown with all that they print. */
const named = options.files.length > 0

function chosenTests(graph: ImportGraph): readonly string[] {
  const missing = options.files.find(file => !existsSync(file))
  if (missing !== undefined) throw new Error(`${missing}: no such file`)
  if (named) return options.files.map(file => relative(root, resolve(file)))
  const all = allTests()
  const since = options.since === undefined ? all : touched(all, changedSince(options.since), graph)
  return options.soak ? soakTests(since, graph) : since
}

function environment({ owns }: Group, slot: number, coverage: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return {
    ...process.env,
    NODE_COMPILE_CACHE: resolve(root, 'build/compile-cache'),
    TEST_OWNS: [...owns].join(),
    TEST_PORTS: portsOf(slot),
    ...(!owns.has('ports') && { NODE_OPTIONS: guardOptions }),
    ...(options.soak && { TEST_SOAK: '1' }),
    ...coverage,
  }
}

/** A part of the ports below those that the kernel gives to whoever asks for any (ip_local_port_range). */
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
  const progress = options.soak && !named ? new SoakProgress(options) : undefined
  const results: FileResult[] = [...(progress?.results ?? [])]
  const done = new Set(results.map(({ file }) => file))
  const groups = done.size === 0 ? all : groupsOf(chosen.filter(file => !done.has(file)))
  if (done.size > 0)
    console.log(`goes on behind ${done.size} files of an interrupted soak (--anew: from the beginning)`)
  const run = { kind: options.soak ? 'soak' : 'test', ...checkedOut() } as const
  const began = Date.now() - (progress?.spentMs ?? 0)
  const load = loadavg()[2]!
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
  const onResult = (result: FileResult) => {
    results.push(result)
    if (!stop.signal.aborted) progress?.add(result)
    if (hasFailed(result)) console.log(failureText(result))
    else if (named) console.log(passText(result))
  }
  rmSync('build/test/faults', { recursive: true, force: true })
  mkdirSync('build/test/faults', { recursive: true })
  let begun = 0
  const timer = setInterval(() => {
    const { failed } = countResults(results)
    console.log(`${clock(Date.now() - began)}  ${results.length} of ${chosen.length} files, ${failed} failed`)
    if (options.coverage) thinCoverage()
  }, progressMs)
  await schedule(groups, options.atOnce, stop.signal, (group, slot) => ({
    flags: options.patterns.map(pattern => `--test-name-pattern=${pattern}`),
    limitMs: options.limitMs,
    env: environment(group, slot, coverage),
    faultsPath: resolve(root, `build/test/faults/${begun++}`),
    verbose: named,
    stop: stop.signal,
    onResult,
  }))
  clearInterval(timer)
  if (stop.signal.aborted) return 130
  const report = makeReport(results, run, began, load)
  console.log(summaryText(report))
  if (!named) {
    const path = options.soak ? 'build/soak/report.json' : 'build/test/report.json'
    writeReport(path, report)
    console.log(`report: ${path}`)
    progress?.end()
  }
  if (options.coverage) reportCoverage()
  return report.failed === 0 ? 0 : 1
}

process.exitCode = await main().catch(error => {
  console.error(`tools/test: ${error instanceof Error ? error.message : error}`)
  return 2
})
