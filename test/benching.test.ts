// owns: process
import assert from 'node:assert/strict'
import { execFile, execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { type Figure, median } from '../bench/lib/figures.ts'
import { judge, readLimits, verdictText } from '../tools/benching/budgets.ts'
import { compareResults, noiseOf } from '../tools/benching/compare.ts'
import { type Results, readResults, type ScriptResult } from '../tools/benching/results.ts'
import { until } from './helpers/program.ts'

const root = resolve(import.meta.dirname, '..')
const directory = mkdtempSync(join(tmpdir(), 'benching-'))
after(() => rmSync(directory, { recursive: true }))

interface Ended {
  readonly status: number
  readonly out: string
  readonly err: string
}

const runner = join(root, 'tools/benching/run.ts')

function run(program: string, args: readonly string[], cwd: string, from?: string): Promise<Ended> {
  const env = { ...process.env, BENCH_FROM: from }
  return new Promise(resolve =>
    execFile(
      program,
      args,
      { cwd, env, timeout: 60_000, killSignal: 'SIGKILL' as const },
      (error, out, err) => resolve({ status: error === null ? 0 : Number(error.code), out, err }),
    ),
  )
}

/** Runs tools/benching/run.ts as tools/bench does, in `cwd`. */
function bench(cwd: string, ...args: string[]): Promise<Ended> {
  return run(process.execPath, [runner, ...args], cwd)
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

test('scripts run one after the other, also after one that fails, and the results have the reason', async () => {
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
    'bench/silent.ts': script(1, ''),
    'bench/garbles.ts': script(
      1,
      "import { appendFileSync } from 'node:fs'\nreport('garbles.a', 1, '1', 'less')\n" +
        "appendFileSync(process.env.BENCH_FIGURES!, '{\"name\":\\n')\nreport('garbles.b', 1, '1', 'less')",
    ),
    'bench/last.ts': script(1, "report('last.a', 1, '1', 'less')"),
    'bench/lib/no-script.ts': 'throw new Error()',
  })
  const first = ['passes', 'fails', 'measures-nothing', 'hangs', 'lacks', 'leaves', 'foreign']
  const { status, out, err } = await bench(folder, ...first, 'silent', 'garbles', 'last')
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
      ['silent', 'failed', 'reports neither a figure nor a reason to skip'],
      ['garbles', 'failed', 'reports a line that is not a figure: it is not JSON: {"name":'],
      ['last', 'passed', ''],
    ],
  )
  assert.deepEqual(scripts[0]!.figures, [
    { name: 'passes.a_ms', unit: 'ms', better: 'less', samples: [3, 1, 2], median: 2 },
    { name: 'passes.b', unit: '1', better: 'more', samples: [7], median: 7 },
  ])
  assert.match(out, /^passes\.a_ms +2 ms +1 to 3, 3 samples$/m)
  const failed = { unit: '1', better: 'less', samples: [1], median: 1, failed: true } as const
  assert.deepEqual(scripts[1]!.figures, [{ name: 'fails.a', ...failed }], 'kept, and marked')
  assert.deepEqual(
    scripts[8]!.figures,
    ['garbles.a', 'garbles.b'].map(name => ({ name, ...failed })),
  )
  assert.match(out, /^✖ fails \(.*\): failed: ends with code 1; its figures are marked: 1$/m)
  assert.match(err, /cannot report measures-nothing\.rate: its measurements are \[1, NaN\]/)
  assert.deepEqual(scripts[5]!.left, ['sleep 1234'])
  assert.equal(isAlive(scripts[5]!.figures[0]!.median), false)
  for (const { load, wall_ms } of scripts) assert.ok(load.length === 3 && wall_ms > 0)
  assert.deepEqual([commit, changed, cpu.count > 0, budgets.length], ['', true, true, 1])
  assert.match(out, /^✖ hangs \(.*\): failed: takes more than 0\.005 minutes$/m)
  assert.match(out, / {2}leftover process, killed: sleep 1234/)
  assert.match(out, /^held +dependencies +at most 2, measured 2$/m)
  assert.match(
    out,
    /^10 of 10 scripts in \d+:\d\d\nresults: build\/bench\/results\.json\nfailed: fails, measures-/m,
  )
})

/** Starts a process with a session of its own, and reports its pid as NAME.away. */
function startAway(name: string): string {
  return (
    "import { spawn as start } from 'node:child_process'\n" +
    "const away = start('sleep', ['4321'], { detached: true, stdio: 'ignore' })\n" +
    `report('${name}.away', away.pid!, '1', 'less')\n`
  )
}

test('without names all scripts run; a run that a signal ends leaves no process, and keeps its figures', async () => {
  const check = async (signal: NodeJS.Signals, hangUp = false) => {
    const folder = makeTree({
      'bench/a.ts': script(1, "report('a.b', 1, '1', 'less')"),
      'bench/c.ts': script(
        1,
        `${startAway('c')}report('c.pid', process.pid, '1', 'less'); setInterval(() => {}, 1000)`,
      ),
      'bench/d.ts': script(1, ''),
    })
    const child = spawn(process.execPath, [runner], { cwd: folder })
    const ended = new Promise(resolve => child.once('exit', (code, by) => resolve(by ?? code)))
    let out = ''
    child.stdout.on('data', part => {
      out += part
    })
    await until('the second script has reported', 20_000, () => /^c\.pid/m.test(out))
    if (hangUp) for (const stream of [child.stdout, child.stderr]) stream.destroy()
    child.kill(signal)
    assert.equal(await ended, 130, signal)
    const { scripts } = readWritten(folder)
    assert.deepEqual(
      scripts.map(({ name, reason }) => [name, reason]),
      [
        ['a', ''],
        ['c', 'was interrupted'],
      ],
    )
    const alive = scripts[1]!.figures.filter(({ median }) => isAlive(median)).map(({ name }) => name)
    assert.deepEqual([scripts[1]!.figures.length, alive], [2, []], signal)
  }
  await Promise.all([check('SIGINT'), check('SIGTERM'), check('SIGQUIT'), check('SIGHUP', true)])
})

test('a run that is killed leaves no process either', async () => {
  const pids = "console.log('pids', process.pid, away.pid); setInterval(() => {}, 1000)"
  const folder = makeTree({ 'bench/a.ts': script(1, startAway('a') + pids) })
  const child = spawn(process.execPath, [runner], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })
  let out = ''
  child.stdout.on('data', part => {
    out += part
  })
  const found = () => /^pids (\d+) (\d+)$/m.exec(out)?.slice(1).map(Number)
  await until('the script has started', 20_000, () => found() !== undefined)
  child.kill('SIGKILL')
  await until('both have ended', 20_000, () => !found()!.some(isAlive))
})

test('a run continues where nobody reads what it prints', async () => {
  const one = (name: string) => script(1, `report('${name}.a', 1, '1', 'less')`)
  const skips = script(1, "skip('no such hardware')")
  const folder = makeTree({
    'bench/a.ts': skips,
    'bench/b.ts': skips,
    'bench/c.ts': skips,
    'bench/d.ts': one('d'),
  })
  const child = spawn(process.execPath, [runner], { cwd: folder })
  for (const stream of [child.stdout, child.stderr]) stream.destroy()
  const status = await new Promise(resolve => child.once('exit', (code, by) => resolve(by ?? code)))
  assert.deepEqual([status, readWritten(folder).scripts.map(({ name }) => name)], [0, ['a', 'b', 'c', 'd']])
})

test('a process that a script leaves in a session of its own is reported and ended', async () => {
  const folder = makeTree({ 'bench/a.ts': script(1, `${startAway('a')}process.exit(0)`) })
  const { out } = await bench(folder)
  const { left, figures } = readWritten(folder).scripts[0]!
  const alive = isAlive(figures[0]!.median)
  if (alive) process.kill(figures[0]!.median, 'SIGKILL')
  assert.deepEqual([left, alive], [['sleep 4321'], false])
  assert.match(out, /^ {2}leftover process, killed: sleep 4321$/m)
})

test('what comes after -- is for the script, and --results takes a file relative to the caller', async () => {
  const folder = makeTree({
    'bench/a.ts': script(1, "report('a.b', Number(process.argv[3]), '1', 'less')"),
    'new/empty': '',
  })
  const { status, out } = await bench(folder, '--results', 'new/own.json', 'a', '--', '--part', '7')
  assert.equal(status, 0)
  assert.deepEqual(readWritten(folder, 'new/own.json').scripts[0]!.figures[0]!.samples, [7])
  assert.match(out, /^results: new\/own\.json$/m)
  const from = join(folder, 'new')
  const args = [runner, '--results', 'near.json', 'a', '--', '--part', '8']
  const near = await run(process.execPath, args, folder, from)
  assert.deepEqual(readWritten(from, 'near.json').scripts[0]!.figures[0]!.samples, [8])
  assert.match(near.out, /^results: near\.json$/m)
})

test('a wrong command line, tree or file ends with status 2, prints what is wrong and runs nothing', async () => {
  const folder = makeTree({
    'bench/a.ts': script(1, "throw new Error('it ran')"),
    'bench/endless.ts': '// How fast it is.\n',
    'half.json': '{"commit"',
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
    check(/bench\/endless\.ts has no time limit: add a line "at most: N min"/, folder),
    check(/--compare takes two files\nusage: /, folder, '--compare', 'half.json'),
    check(
      /cannot read \/.*\/half\.json: .*JSON.*: give a file/,
      folder,
      '--compare',
      'half.json',
      'half.json',
    ),
    check(/budgets\.json: nothing measures agent\.rss_gib: .*budgets\.ts/, over, 'a'),
  ])
})

test('--results in a place where no file can be written is refused before the first script', async () => {
  const folder = makeTree({ 'bench/a.ts': script(1, "throw new Error('it ran')"), 'file.txt': '' })
  const check = async (want: RegExp, path: string) => {
    const { status, out, err } = await bench(folder, '--results', path, 'a')
    assert.match(err, want)
    assert.match(err, /^tools\/bench: cannot write results to \/.* give another file to --results$/m)
    assert.deepEqual([status, out], [2, ''])
  }
  await Promise.all([
    check(/ENOENT.*: make its folder with mkdir -p \/.*\/new, or give/, 'new/own.json'),
    check(/ENOENT.*: make its folder with/, '/proc/x/y'),
    check(/ENOENT|EACCES/, '/proc/y'),
    check(/ENOTDIR.*own\.json\.next': give/, 'file.txt/own.json'),
    check(/not a regular file/, 'bench'),
  ])
  assert.deepEqual(readdirSync(folder).sort(), ['.git', 'bench', 'budgets.json', 'file.txt', 'package.json'])
  // The default place, too.
  writeFileSync(join(folder, 'build'), '')
  const { status, out, err } = await bench(folder, 'a')
  assert.match(err, /cannot write results to .*build\/bench\/results\.json: (EEXIST|ENOTDIR)/)
  assert.deepEqual([status, out], [2, ''])
})

test('a file that holds no results is refused, with its name and what is wrong', () => {
  const file = join(directory, 'other.json')
  const check = (want: RegExp, change: (results: Record<string, unknown>) => unknown) => {
    const results = JSON.parse(JSON.stringify(resultsOf(figure('s.a', [1]))))
    writeFileSync(file, JSON.stringify(change(results) ?? results))
    assert.throws(() => readResults(file), want)
  }
  const holdsNone = (what: string) =>
    new RegExp(`^Error: cannot read .*other\\.json: not a benchmark result: ${what}: give a file`)
  const inScript = (members: object) => (results: Record<string, unknown>) => {
    Object.assign((results.scripts as object[])[0]!, members)
  }
  check(holdsNone('it is not an object'), () => [1])
  check(holdsNone('scripts is missing'), () => ({}))
  check(holdsNone('commit is missing'), () => ({ scripts: [] }))
  check(holdsNone('scripts\\[0\\] is not an object'), () => ({ scripts: [null] }))
  check(holdsNone('cpu\\.count is not a number'), results => {
    results.cpu = { model: '', count: 'two' }
  })
  check(
    holdsNone('scripts\\[0\\]\\.result is not one of passed, failed, skipped'),
    inScript({ result: 'good' }),
  )
  check(holdsNone('scripts\\[0\\]\\.figures is not a list'), inScript({ figures: {} }))
  const broken = (members: object) => inScript({ figures: [{ ...figure('s.a', [1]), ...members }] })
  check(holdsNone('scripts\\[0\\]\\.figures\\[0\\]\\.samples is empty'), broken({ samples: [] }))
  check(holdsNone('scripts\\[0\\]\\.figures\\[0\\]\\.median is not a number'), broken({ median: null }))
  assert.throws(
    () => readResults(join(directory, 'none.json')),
    /cannot read .*none\.json: ENOENT.*: give a file/,
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

test('--compare names the scripts that failed or are missing in a run, and takes files of the caller', async () => {
  const all = resultsOf(figure('s.a', [100]))
  const only = (name: string, more: Partial<ScriptResult> = {}) => ({
    ...all.scripts[0]!,
    ...{ name, figures: [], ...more },
  })
  const failed = { result: 'failed', reason: 'ends with code 1' } as const
  const lacks = { result: 'skipped', reason: 'no GPU' } as const
  const marked = [{ ...figure('s.a', [200]), failed: true as const }]
  const old = [all.scripts[0]!, only('gone'), only('gpu', lacks), only('bad', failed), only('good')]
  const now = [
    only('s', { ...failed, figures: marked }),
    only('gpu', lacks),
    only('bad', failed),
    only('good'),
  ]
  const folder = makeTree({
    'near/old.json': JSON.stringify({ ...all, scripts: old }),
    'near/new.json': JSON.stringify({ ...all, scripts: [...now, only('late', lacks)] }),
  })
  const files = ['--compare', 'old.json', 'new.json']
  const { status, out, err } = await run('bash', [join(root, 'tools/bench'), ...files], join(folder, 'near'))
  assert.equal(status, 0, err)
  assert.match(out, /^s\.a +100 ms +200 ms .* worse, script failed$/m)
  const want = [
    'scripts that failed, were skipped or are missing in a run:',
    '  s: OLD passed, NEW failed: ends with code 1',
    '  gone: OLD passed, NEW missing',
    '  bad: OLD failed: ends with code 1, NEW failed: ends with code 1',
    '  late: OLD missing, NEW skipped: no GPU',
  ]
  assert.equal(out.split('\n').slice(-6).join('\n'), `${want.join('\n')}\n`)
})

test('limits are held by the tree and by the medians of figures', () => {
  const budgets = {
    lines: { source: 3, test: 2, tool: 9 },
    dependencies: 1,
    ui: { brotli_bytes: 1000 },
    figures: {
      'agent.memory.loaded_rss_mib': 110,
      'agent.start.to_healthz_ms': 1000,
      'agent.export.kept_percent': 97,
    },
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
  const verdicts = judge(
    readLimits(folder),
    new Map(figures.map(each => [each.name, each])),
    new Set(),
    folder,
  )
  assert.deepEqual(
    verdicts.map(({ name, bound, value, result }) => [name, bound, value, result]),
    [
      ['lines.source', 'at most', 3, 'held'],
      ['lines.test', 'at most', 3, 'not held'],
      ['lines.tool', 'at most', 0, 'held'],
      ['dependencies', 'at most', 2, 'not held'],
      ['ui.brotli_bytes', 'at most', undefined, 'not measured'],
      ['figures.agent.memory.loaded_rss_mib', 'at most', 110, 'held'],
      ['figures.agent.start.to_healthz_ms', 'limit', undefined, 'not measured'],
      ['figures.agent.export.kept_percent', 'at least', 96.9, 'not held'],
    ],
  )
})

test('figures of a script that failed hold no limit', async () => {
  const folder = makeTree({
    'budgets.json': '{"figures":{"agent.idle.rss_mib":110,"agent.start.to_healthz_ms":1000}}',
    'bench/agent.ts': script(1, "report('agent.start.to_healthz_ms', 600, 'ms', 'less'); process.exit(1)"),
  })
  const { status, out } = await bench(folder)
  assert.equal(status, 1)
  assert.match(out, /^not measured +figures\.agent\.idle\.rss_mib +limit 110: agent failed$/m)
  assert.match(out, /^not measured +figures\.agent\.start\.to_healthz_ms +limit 1,000: agent failed$/m)
  assert.deepEqual(
    readWritten(folder).budgets.map(({ result, value, reason }) => [result, value, reason]),
    Array(2).fill(['not measured', undefined, 'agent failed']),
  )
})

test('a limit and what was measured have so many digits that they agree with the verdict', () => {
  const check = (value: number, bound: 'at most' | 'at least', limit: number, want: string) => {
    const result = (bound === 'at most' ? value <= limit : value >= limit) ? 'held' : 'not held'
    const text = verdictText({ name: 'a', bound, limit, result, value, reason: '' })
    assert.match(text, new RegExp(`^${want.replaceAll('.', '\\.').replaceAll(' ', ' +')}$`))
  }
  check(110.04, 'at most', 110, 'not held a at most 110, measured 110.04')
  check(110, 'at most', 110, 'held a at most 110, measured 110')
  check(96.9996, 'at least', 97, 'not held a at least 97, measured 96.9996')
  check(102401, 'at most', 102400, 'not held a at most 102,400, measured 102,401')
  check(12345, 'at most', 12345, 'held a at most 12,345, measured 12,345')
  check(12344, 'at most', 12345, 'held a at most 12,345, measured 12,340')
  check(612.3456, 'at most', 1000, 'held a at most 1,000, measured 612.3')
})

test('every limit of budgets.json is held against a figure that a script reports, or against the tree', () => {
  const limits = readLimits(root)
  assert.ok(limits.size >= 10)
  for (const { name, reason, result } of judge(limits, new Map(), new Set(), root)) {
    if (reason === '' || reason === 'needs the built page') continue
    assert.equal(result, 'not measured')
    const needs = reason.replace('needs ', '').split('.')
    const script = readFileSync(join(root, `bench/${needs[0]}.ts`), 'utf8')
    // Scripts put names together from parts, such as a back end; `@` becomes `_`.
    for (const part of needs)
      assert.match(
        script,
        new RegExp(`\\b${part.replaceAll('_', '[_@]')}\\b`),
        `${name}: no script reports it`,
      )
  }
  const unknown = makeTree({ 'budgets.json': '{"lines":{"source":1},"agent":{"rss_mb":1}}' })
  assert.throws(() => readLimits(unknown), /budgets\.json: nothing measures agent\.rss_mb/)
  const odd = makeTree({ 'budgets.json': '{"dependencies":"3"}' })
  assert.throws(() => readLimits(odd), /budgets\.json: dependencies is not a number/)
})
