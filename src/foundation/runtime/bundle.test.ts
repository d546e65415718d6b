import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { systemNode, withoutNode20 } from '../../../test/helpers/host-needs.ts'
import { bundleOptions } from '../../../tools/bundle-options.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-bundle-'))
const [sources, dist] = [join(directory, 'src'), join(directory, 'dist')]
const profiler = JSON.stringify(join(import.meta.dirname, 'runtime-profiler.ts'))

/** Has a `compute` of its own, so that the bundler renames one of the two. */
const other = `
export function compute(): string {
  let sum = 0
  for (let round = 0; round < 300; round++) sum += Math.sqrt(sum + round)
  return sum > 0 ? 'a' : 'b'
}
`
const worker = `
import { writeFileSync } from 'node:fs'
import { compute as computeOther } from './other.ts'
import { profileKinds, RuntimeProfiler } from ${profiler}

function compute(): string {
  let sum = 0
  for (let round = 0; round < 300; round++) sum += Math.cbrt(sum + round)
  return sum > 0 ? 'c' : 'd'
}

class Keeper {
  readonly #kept: object[] = []
  keepObjects(): number {
    for (let index = 0; index < 100_000; index++) this.#kept.push({ index, list: [index] })
    return this.#kept.length
  }
}

function startTimers(): NodeJS.Timeout[] {
  return [1, 2, 3].map(() => setInterval(() => {}, 60_000))
}

async function main(): Promise<void> {
  const profiler = new RuntimeProfiler()
  profiler.start()
  await new Promise(resolve => setImmediate(resolve))
  const keeper = new Keeper()
  keeper.keepObjects()
  const timers = startTimers()
  const busy = setInterval(() => {
    for (let round = 0; round < 20; round++) 'x'.repeat(100).replace(/x/g, round % 2 ? compute : computeOther)
  }, 1)
  for (const { name } of profileKinds) {
    for (const debug of [0, 1] as const) {
      const request = { seconds: 1, debug, signal: new AbortController().signal }
      const file = await profiler.take(name, request)
      writeFileSync(process.argv[2] + '/' + file.fileName, file.body)
    }
  }
  const { memstats } = profiler.vars()
  writeFileSync(process.argv[2] + '/vars.json', JSON.stringify(memstats))
  profiler.stop()
  clearInterval(busy)
  for (const timer of timers) clearInterval(timer)
  console.log('kept', keeper.keepObjects()) // and nothing keeps the process
}

main()
`

before(async () => {
  mkdirSync(sources)
  writeFileSync(join(sources, 'other.ts'), other)
  writeFileSync(join(sources, 'worker.ts'), worker)
  await build({
    entryPoints: [join(sources, 'worker.ts')],
    outfile: join(dist, 'svc.cjs'),
    nodePaths: [join(import.meta.dirname, '../../../node_modules')],
    ...bundleOptions,
  })
})
after(() => rmSync(directory, { recursive: true, force: true }))

/** Takes every profile in a process of its own. */
function run(runtime: string, name: string): (file: string) => Buffer {
  const out = join(directory, name)
  mkdirSync(out)
  const printed = execFileSync(runtime, [join(dist, 'svc.cjs'), out], {
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '' },
  })
  assert.equal(printed, 'kept 200000\n')
  return file => readFileSync(join(out, file))
}

function check(read: (file: string) => Buffer, name: string, stacks: boolean): void {
  const table = read('profile.txt').toString()
  assert.match(table, / [1-9]\d*\.\dms +\d+\.\d% +compute src\/worker\.ts:\d+\n/)
  assert.match(table, / [1-9]\d*\.\dms +\d+\.\d% +compute src\/other\.ts:2\n/)
  assert.match(read('heap.txt').toString(), / \d{4,}\.\dKiB +\d+\.\d% +keepObjects src\/worker\.ts:\d+\n/)
  const goroutines = read('goroutine.txt').toString()
  if (stacks) assert.match(goroutines, /\n3 @ \(Timeout\)\n(#\t.*\n)*#\tstartTimers src\/worker\.ts:\d+\n/)
  else assert.match(goroutines, /cannot track resources.*\n(.*\n)*\d+ @ \(Timeout\)\n/)
  assert.match(read('threadcreate.txt').toString(), /threadcreate profile: total \d+/)
  const { traceEvents } = JSON.parse(read('trace.json').toString()) as {
    traceEvents: { name: string; args: object }[]
  }
  const chunk = JSON.stringify(traceEvents.find(event => event.name === 'ProfileChunk'))
  assert.match(chunk, /"functionName":"compute","url":"src\/worker.ts"/)
  assert.match(chunk, /"functionName":"compute","url":"src\/other.ts"/)
  const figures = JSON.parse(read('vars.json').toString()) as Record<string, number>
  assert.deepEqual(Object.keys(figures), ['Alloc', 'TotalAlloc', 'Sys', 'NumGC'])
  assert.ok(figures.NumGC! > 0)

  const files = readdirSync(join(directory, name))
  assert.equal(files.length, 15)
  for (const file of files) {
    const body = file.endsWith('.gz') ? gunzipSync(read(file)) : read(file)
    assert.ok(!body.includes(directory) && !body.includes(process.cwd()), `${file} holds a path of this host`)
    // The whole script, from its first line on, is no function of the sources.
    if (file.endsWith('.txt')) assert.doesNotMatch(body.toString(), /svc\.cjs:(?!1\b)/, file)
    if (file.endsWith('.pb.gz'))
      execFileSync('go', ['tool', 'pprof', '-top', join(directory, name, file)], {
        env: { ...process.env, HOME: directory },
        stdio: ['ignore', 'ignore', 'pipe'],
      })
  }
}

test('profiles of the bundle show names, files and lines of the sources', () => {
  check(run(process.execPath, 'own'), 'own', true)
})

test('the same with Node.js 20, but for the stacks of asynchronous work', { skip: withoutNode20 }, () => {
  check(run(systemNode, 'older'), 'older', false)
})
