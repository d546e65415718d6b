// Runs benchmarks one after the other, or compares two runs. Called by tools/bench, in the root of the tree.
import { existsSync, readdirSync } from 'node:fs'
import { cpus, release } from 'node:os'
import { checkedOut } from '../git.ts'
import { clock } from '../testing/report.ts'
import { judge, readLimits, verdictText } from './budgets.ts'
import { comparisonText } from './compare.ts'
import { type BenchOptions, callerPath, readOptions, refuse } from './options.ts'
import { record } from './record.ts'
import type { Results, ScriptResult } from './results.ts'
import { failedScripts, figuresOf, readResults, tryResults, writeResults } from './results.ts'
import { limitMinutes, runScript } from './script.ts'

const root = process.cwd()
/** Time limit for all scripts on two processors. */
const mostMinutes = 60

function resultLine({ name, result, reason, wall_ms, left, figures }: ScriptResult): string {
  const sign = { passed: '✔', failed: '✖', skipped: '-' }[result]
  const what = result === 'passed' ? `${figures.length} figures` : `${result}: ${reason}`
  const doubtful =
    result === 'failed' && figures.length > 0 ? `; its figures are marked: ${figures.length}` : ''
  return [
    `${sign} ${name} (${clock(wall_ms)}): ${what}${doubtful}`,
    ...left.map(line => `  leftover process, killed: ${line}`),
  ].join('\n')
}

async function runBenchmarks({ names, results: path, args }: BenchOptions): Promise<number> {
  const all = existsSync('bench') ? readdirSync('bench').filter(file => file.endsWith('.ts')) : []
  const scripts = names.length > 0 ? names.map(name => `${name}.ts`) : all
  const unknown = scripts.find(file => !all.includes(file))
  if (unknown !== undefined)
    return refuse(`no script bench/${unknown}; there are ${all.map(file => file.slice(0, -3)).join(', ')}`)
  // These throw if the tree or the result file has a fault: before the first script, not after an hour.
  const limits = readLimits(root)
  // With options, a script may measure longer.
  const factor = args.length > 0 ? 10 : 1
  const planned = scripts.map(file => [`bench/${file}`, factor * limitMinutes(`bench/${file}`)] as const)
  tryResults(path)

  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const)
    process.on(signal, () => stop.abort())
  // The terminal or the reader of a pipe has gone: results still go to their file.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  const began = Date.now()
  const done: ScriptResult[] = []
  const run = {
    ...checkedOut(),
    node: process.version,
    kernel: release(),
    cpu: { model: cpus()[0]?.model ?? '', count: cpus().length },
    began: new Date(began).toISOString(),
  }
  const resultsNow = (): Results => {
    const scripts = { scripts: done }
    const budgets = judge(limits, figuresOf(scripts), failedScripts(scripts), root)
    return { ...run, wall_ms: Date.now() - began, ...scripts, budgets }
  }
  for (const [file, limit] of planned) {
    if (stop.signal.aborted) break
    console.log(`\n== ${file}`)
    const result = await runScript(file, { args, limit, stop: stop.signal })
    done.push(result)
    if (result.result !== 'passed' || result.left.length > 0) console.log(resultLine(result))
    writeResults(path, resultsNow())
  }
  const results = resultsNow()
  console.log('\n== scripts')
  for (const script of done) console.log(resultLine(script))
  console.log('\n== budgets.json')
  for (const verdict of results.budgets) console.log(verdictText(verdict))
  const failed = [...failedScripts(results)]
  const long = results.wall_ms > mostMinutes * 60_000 ? `, over the limit of ${mostMinutes}:00` : ''
  console.log(`\n${done.length} of ${planned.length} scripts in ${clock(results.wall_ms)}${long}`)
  console.log(`results: ${callerPath(path)}`)
  if (failed.length > 0) console.log(`failed: ${failed.join(', ')}`)
  if (stop.signal.aborted) return 130
  return failed.length > 0 ? 1 : 0
}

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2))
  try {
    if (options.record !== undefined) {
      const names = record(root, readResults(options.record))
      console.log(`recorded ${names.join(', ')}: bash tools/generate brings the figures into the pages`)
      return 0
    }
    if (options.compare === undefined) return await runBenchmarks(options)
    const [old, now] = options.compare
    console.log(comparisonText(readResults(old), readResults(now)))
    return 0
  } catch (error) {
    console.error(`tools/bench: ${(error as Error).message}`)
    return 2
  }
}

process.exitCode = await main()
