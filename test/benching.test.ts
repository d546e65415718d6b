// owns: process
import assert from 'node:assert/strict'
import { execFile, execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { type Figure, median } from '../bench/lib/figures.ts'
import { judge, readLimits } from '../tools/benching/budgets.ts'
import { compareResults, noiseOf } from '../tools/benching/compare.ts'
import { type Results, readResults } from '../tools/benching/results.ts'
import { until } from './helpers/program.ts'

const root = resolve(import.meta.dirname, '..')
const directory = mkdtempSync(join(tmpdir(), 'benching-'))
after(() => rmSync(directory, { recursive: true }))

interface Ended {
  readonly status: number
  readonly out: string
  readonly err: string
}

/** Runs tools/benching/run.ts as tools/bench does, in `cwd`. */
function bench(cwd: string, ...args: string[]): Promise<Ended> {
  return new Promise(resolve =>
    execFile(process.execPath, [join(root, 'tools/benching/run.ts'), ...args], { cwd }, (error, out, err) =>
      resolve({ status: error === null ? 0 : Number(error.code), out, err }),
    ),
  )
}

let trees = 0

/** A tree with these files, and a few more that each tree has. Returns its folder. */
function makeTree(files: Readonly<Record<string, string>>): string {
  const folder = join(directory, `tree-${trees++}`)
  mkdirSync(folder)
  execFileSync('git', ['init', '--quiet', folder])
  const common = {
    'package.json': '{"dependencies":{"a":"1","b":"1"}}',
    'budgets.json': '{"dependencies":2}',
  }
  for (const [file, text] of Object.entries({ ...common, ...files })) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), text)
  }
  return folder
}

/** The source of a script that may take so many minutes. */
function script(minutes: number, code: string): string {
  const figures = JSON.stringify(join(root, 'bench/lib/figures.ts'))
  return `// at most: ${minutes} min\nimport { report, skip } from ${figures}\nreport; skip\n${code}\n`
}

function readWritten(folder: string, path = 'build/bench/results.json'): Results {
  return JSON.parse(readFileSync(join(folder, path), 'utf8')) as Results
}

function isAlive(pid: number): boolean {
  return existsSync(`/proc/${pid}/stat`) && !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
}

test('scripts run one after the other, whatever comes of one, and the results say it', async () => {
  const folder = makeTree({
    'bench/passes.ts': script(
      1,
      "report('passes.a_ms', [3, 1, 2], 'ms', 'less'); report('passes.b', 7, '1', 'more')",
    ),
    'bench/fails.ts': script(1, "report('fails.a', 1, '1', 'less'); throw new Error('broken')"),
    'bench/measures-nothing.ts': script(
      1,
      "report('measures-nothing.rate', [1, Number('x')], '1/s', 'more')",
    ),
    'bench/hangs.ts': script(0.005, 'setInterval(() => {}, 1000)'),
    'bench/lacks.ts': script(1, "skip('no such hardware')"),
    'bench/leaves.ts': script(
      1,
      "import { spawn } from 'node:child_process'\nconst child = spawn('sleep', ['1234'])\n" +
        "report('leaves.pid', child.pid!, '1', 'less')\nprocess.exit(0)",
    ),
    'bench/foreign.ts': script(1, "report('passes.a_ms', 1, 'ms', 'less')"),
    'bench/lib/no-script.ts': 'throw new Error()',
  })
  const args = ['passes', 'fails', 'measures-nothing', 'hangs', 'lacks', 'leaves', 'foreign']
  const { status, out, err } = await bench(folder, ...args)
  assert.equal(status, 1, err)
  const { scripts, commit, changed, cpu, budgets } = readWritten(folder)
  assert.deepEqual(
    scripts.map(({ name, result, reason }) => [name, result, reason]),
    [
      ['passes', 'passed', ''],
      ['fails', 'failed', 'ends with code 1'],
      ['measures-nothing', 'failed', 'ends with code 1'],
      ['hangs', 'failed', 'takes more than 0.005 minutes'],
      ['lacks', 'skipped', 'no such hardware'],
      ['leaves', 'passed', ''],
      ['foreign', 'failed', 'reports passes.a_ms, which does not begin with foreign.'],
    ],
  )
  assert.deepEqual(scripts[0]!.figures, [
    { name: 'passes.a_ms', unit: 'ms', better: 'less', samples: [3, 1, 2], median: 2 },
    { name: 'passes.b', unit: '1', better: 'more', samples: [7], median: 7 },
  ])
  assert.match(out, /^passes\.a_ms +2 ms +1 to 3, 3 samples$/m)
  assert.equal(scripts[1]!.figures.length, 1, 'what was reported before the failure is kept')
  assert.match(err, /cannot report measures-nothing\.rate: its measurements are \[1, NaN\]/)
  assert.deepEqual(scripts[5]!.left, ['sleep 1234'])
  assert.equal(isAlive(scripts[5]!.figures[0]!.median), false)
  for (const { load, wall_ms } of scripts) assert.ok(load.length === 3 && wall_ms > 0)
  assert.deepEqual([commit, changed, cpu.count > 0, budgets.length], ['', true, true, 1])
  assert.match(out, /^✖ hangs \(.*\): failed: takes more than 0\.005 minutes$/m)
  assert.match(out, / {2}left, and ended: sleep 1234/)
  assert.match(out, /^held +dependencies +at most 2, measured 2$/m)
  assert.match(
    out,
    /^7 of 7 scripts in \d+:\d\d\nresults: build\/bench\/results\.json\nfailed: fails, measures-/m,
  )
})

test('without names all scripts run; an interrupted run ends its script and keeps what it has', async () => {
  const folder = makeTree({
    'bench/a.ts': script(1, "report('a.b', 1, '1', 'less')"),
    'bench/c.ts': script(1, "report('c.pid', process.pid, '1', 'less'); setInterval(() => {}, 1000)"),
    'bench/d.ts': script(1, ''),
  })
  const child = spawn(process.execPath, [join(root, 'tools/benching/run.ts')], { cwd: folder })
  const ended = new Promise(resolve => child.once('exit', resolve))
  let out = ''
  child.stdout.on('data', part => {
    out += part
  })
  await until('the second script has reported', 20_000, () => /^c\.pid/m.test(out))
  child.kill('SIGTERM')
  assert.equal(await ended, 130)
  const { scripts } = readWritten(folder)
  assert.deepEqual(
    scripts.map(({ name, reason }) => [name, reason]),
    [
      ['a', ''],
      ['c', 'was interrupted'],
    ],
  )
  assert.equal(isAlive(scripts[1]!.figures[0]!.median), false)
})

test('what stands behind -- is for the script, and --results says where figures go', async () => {
  const folder = makeTree({
    'bench/a.ts': script(1, "report('a.b', Number(process.argv[3]), '1', 'less')"),
  })
  const { status } = await bench(folder, '--results', 'new/own.json', 'a', '--', '--part', '7')
  assert.equal(status, 0)
  assert.deepEqual(readWritten(folder, 'new/own.json').scripts[0]!.figures[0]!.samples, [7])
})

test('a wrong command line, tree or file ends with status 2, says what is wrong and runs nothing', async () => {
  const folder = makeTree({
    'bench/a.ts': script(1, "throw new Error('it ran')"),
    'bench/endless.ts': '// How fast it is.\n',
    'half.json': '{"commit"',
    'other.json': '[1]',
  })
  const over = makeTree({ 'bench/a.ts': script(1, ''), 'budgets.json': '{"agent":{"rss_gib":1}}' })
  const check = async (want: RegExp, cwd: string, ...args: string[]) => {
    const { status, out, err } = await bench(cwd, ...args)
    assert.match(err, want)
    assert.deepEqual([status, out], [2, ''])
  }
  await Promise.all([
    check(/Unknown option '--fast'.*\nusage: tools\/bench /s, folder, '--fast'),
    check(/no script bench\/b\.ts; there are a, endless\nusage: /, folder, 'a', 'b'),
    check(/bench\/endless\.ts does not say how long .*: add a line "at most: N min"/, folder),
    check(/--compare takes two files\nusage: /, folder, '--compare', 'half.json'),
    check(/cannot read half\.json: .*: give a file/, folder, '--compare', 'half.json', 'half.json'),
    check(/budgets\.json: nothing measures agent\.rss_gib: .*budgets\.ts/, over, 'a'),
  ])
  const file = (name: string) => join(folder, name)
  assert.throws(() => readResults(file('none.json')), /cannot read .*none\.json: ENOENT.*: give a file/)
  assert.throws(
    () => readResults(file('other.json')),
    /cannot read .*other\.json: it holds no results .*: give/,
  )
})

function figure(name: string, samples: readonly number[], better: Figure['better'] = 'less'): Figure {
  return { name, unit: 'ms', better, samples, median: median(samples) }
}

function resultsOf(...figures: Figure[]): Results {
  const script = { name: 's', result: 'passed', reason: '', wall_ms: 1, load: [0.5, 0, 0], left: [] } as const
  return {
    ...{
      commit: '0123456789abcdef',
      changed: false,
      node: 'v24',
      kernel: '6.18',
      began: '2026-01-02T03:04:05Z',
    },
    ...{ cpu: { model: 'cpu', count: 2 }, wall_ms: 1, budgets: [] },
    scripts: [{ ...script, figures }],
  }
}

test('a figure changed where its medians lie further apart than noise explains', () => {
  const check = (old: readonly number[], now: readonly number[], want: 'better' | 'worse' | 'same') => {
    for (const [a, b] of [
      [old, now],
      [old.map(value => -value), now.map(value => -value)],
    ] as const) {
      const better = a === old ? 'less' : 'more'
      const { changes } = compareResults(
        resultsOf(figure('s.a', a, better)),
        resultsOf(figure('s.a', b, better)),
      )
      assert.deepEqual(
        changes.map(change => (change.better ? 'better' : 'worse')),
        want === 'same' ? [] : [want],
      )
    }
  }
  const five = [99, 100, 100, 100, 101]
  const times = (factor: number) => five.map(value => value * factor)
  check(five, five, 'same')
  check(five, times(1.04), 'same')
  check(five, times(1.06), 'worse')
  check(five, times(0.94), 'better')
  // What the samples spread explains as much.
  const wide = [60, 80, 100, 120, 140]
  const shifted = (by: number) => wide.map(value => value + by)
  check(wide, shifted(30), 'same')
  check(wide, shifted(120), 'worse')
  // One that lies far out is no spread.
  check([99, 100, 100, 100, 900], times(1.06), 'worse')
  // More samples of the same spread know their median better.
  const often = (values: readonly number[]) => Array.from({ length: 40 }, () => values).flat()
  check(often(wide), often(shifted(30)), 'worse')
  // Fewer than five: 10 %, or the range.
  check([100], [109], 'same')
  check([100], [112], 'worse')
  check([100, 140], [130, 130], 'same')
  check(five, [112], 'worse')
  // Nothing at all on one side, or on both.
  check([0], [0], 'same')
  check([0], [1], 'worse')
  check([0, 0, 0, 0, 0], [0, 0, 0, 0, 2], 'same')
  check([0, 0, 0, 0, 0], [2, 2, 2, 2, 2], 'worse')
  check([2, 2, 2, 2, 2], [0, 0, 0, 0, 0], 'better')
  assert.equal(noiseOf(figure('s.a', five), figure('s.a', five)), 5)
})

test('--compare prints the figures that changed, and those that only one run has', async () => {
  const folder = makeTree({
    'old.json': JSON.stringify(
      resultsOf(
        figure('s.slower', [1000]),
        figure('s.same', [5]),
        figure('s.gone', [1]),
        figure('s.none', [0]),
      ),
    ),
    'new.json': JSON.stringify(
      resultsOf(
        ...[figure('s.slower', [1250.5]), figure('s.same', [5]), { ...figure('s.same2', [5]), unit: 's' }],
        figure('s.none', [3], 'more'),
      ),
    ),
  })
  const { status, out } = await bench(folder, '--compare', 'old.json', 'new.json')
  assert.equal(status, 0)
  assert.match(
    out,
    /^OLD: 0123456789, 2026-01-02T03:04:05Z, node v24, Linux 6\.18, 2 × cpu, load before 0\.5$/m,
  )
  assert.match(out, /^s\.slower +1,000 ms +1,251 ms +\+25\.05 % +±125\.1 ms {2}worse$/m)
  assert.match(out, /^s\.none +0 ms +3 ms +±0\.3 ms {2}better$/m)
  assert.doesNotMatch(out, /^s\.same /m)
  assert.match(
    out,
    /^2 of 3 figures changed beyond noise\nonly in OLD:\n {2}s\.gone \(ms\)\nonly in NEW:\n {2}s\.same2/m,
  )
})

test('limits are held by the tree and by the medians of figures', () => {
  const budgets = {
    lines: { source: 3, test: 2, tool: 9 },
    dependencies: 1,
    agent: { rss_mib: 110, start_to_healthz_ms: 1000, nginx_throughput_kept_percent: 97 },
    ui: { brotli_bytes: 1000 },
  }
  const folder = makeTree({
    'budgets.json': JSON.stringify(budgets),
    'src/a.ts': '1\n2\n3\n',
    'src/a.test.ts': '1\n2\n3\n',
    'src/kernel/gen/long.ts': '\n'.repeat(100),
  })
  const figures = [
    figure('agent.memory.loaded_rss_mib', [100, 110, 400]),
    figure('agent.export.kept_percent', [66, 97.5, 96.9], 'more'),
  ]
  const verdicts = judge(readLimits(folder), new Map(figures.map(each => [each.name, each])), folder)
  assert.deepEqual(
    verdicts.map(({ name, bound, value, result }) => [name, bound, value, result]),
    [
      ['lines.source', 'at most', 3, 'held'],
      ['lines.test', 'at most', 3, 'not held'],
      ['lines.tool', 'at most', 0, 'held'],
      ['dependencies', 'at most', 2, 'not held'],
      ['agent.rss_mib', 'at most', 110, 'held'],
      ['agent.start_to_healthz_ms', 'at most', undefined, 'not measured'],
      ['agent.nginx_throughput_kept_percent', 'at least', 96.9, 'not held'],
      ['ui.brotli_bytes', 'at most', undefined, 'not measured'],
    ],
  )
})

test('every limit of budgets.json is held against a figure that a script reports, or against the tree', () => {
  const limits = readLimits(root)
  assert.ok(limits.size >= 10)
  const agent = readFileSync(join(root, 'bench/agent.ts'), 'utf8')
  for (const { name, needs, result } of judge(limits, new Map(), root)) {
    if (needs === '' || needs === 'the built page') continue
    assert.equal(result, 'not measured')
    // The name stands in the script as it is, or the part of it that is the part's own.
    const [, part, what] = needs.split('.')
    const written = new RegExp(`agent\\.(${part}|\\$\\{name\\})\\.${what}|throughput\\('${part}'`)
    assert.match(agent, written, `${name} needs ${needs}`)
  }
  const unknown = makeTree({ 'budgets.json': '{"lines":{"source":1},"agent":{"rss_mb":1}}' })
  assert.throws(() => readLimits(unknown), /budgets\.json: nothing measures agent\.rss_mb/)
  const odd = makeTree({ 'budgets.json': '{"dependencies":"3"}' })
  assert.throws(() => readLimits(odd), /budgets\.json: dependencies is no number/)
})
