// owns: process
// The program that runs the tests, over small files with every fault that a test file may have.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { after, test } from 'node:test'
import { ImportGraph } from '../tools/imports.ts'
import { ownsFaults, readOwns, together } from '../tools/testing/owns.ts'
import { planGroups, soakTests } from '../tools/testing/plan.ts'
import { summaryText } from '../tools/testing/report.ts'
import type { FileResult } from '../tools/testing/results.ts'
import { SoakProgress } from '../tools/testing/soak-progress.ts'
import { until } from './helpers/program.ts'
import { cleanEnvironment, root } from './helpers/program-under-test.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-testing-'))
after(() => rmSync(directory, { recursive: true }))

let trees = 0

/** Writes files below a folder of their own, and returns that folder. */
function tree(files: Readonly<Record<string, string>>): string {
  const folder = join(directory, `tree-${trees++}`)
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), text)
  }
  return folder
}

/** A process that nobody waits for stays as a zombie where the first process of the host reaps none. */
function hasEnded(pid: number): boolean {
  try {
    return / Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return true
  }
}

interface Ran {
  readonly code: number | null
  readonly out: string
}

function run(args: readonly string[], cwd = root): Promise<Ran> {
  const child = spawn('bash', [join(root, 'tools/test'), ...args], { cwd, env: cleanEnvironment() })
  let out = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', chunk => {
      out += chunk
    })
  return new Promise(resolve => child.on('close', code => resolve({ code, out })))
}

/** Runs these files, of which each but the first is to pass. */
async function runFirst(text: string, args: readonly string[] = []): Promise<Ran> {
  const passing = "import { test } from 'node:test'\ntest('is run as well', () => {})\n"
  const folder = tree({ 'a.test.ts': text, 'b.test.ts': passing })
  const ran = await run([...args, join(folder, 'a.test.ts'), join(folder, 'b.test.ts')])
  assert.match(ran.out, /✔ is run as well/, ran.out)
  return ran
}

const head = "import { test } from 'node:test'\n"

test('a file says what it owns in one line, and an unknown word is an error', () => {
  assert.deepEqual([...readOwns('// A page.\n// owns: host, process\n')], ['host', 'process', 'ports'])
  assert.equal(readOwns('').size, 0)
  assert.throws(() => readOwns('// owns: hosts\n'), /"owns: hosts": unknown word: use host, ports/)
})

test('files that own the same are not under way together, and beside one that measures nothing is', () => {
  const of = (words: string) => readOwns(words === '' ? '' : `// owns: ${words}\n`)
  const check = (a: string, b: string, want: boolean) => {
    assert.equal(together(of(a), of(b)), want, `${a}, ${b}`)
    assert.equal(together(of(b), of(a)), want, `${b}, ${a}`)
  }
  check('host', 'host', false)
  check('host', 'ports', false)
  check('load', 'load', false)
  check('load', 'ports', true)
  check('host, load', 'ports, load', false)
  check('ports', 'ports', true)
  check('host', 'process', true)
  check('ports', '', true)
  check('processor', '', false)
})

test('what a helper owns is said by the files that import it', () => {
  const folder = tree({
    'test/helpers/lab.ts': '// owns: host\nexport const lab = 1\n',
    'test/helpers/more.ts': "import { lab } from './lab.ts'\nexport const more = lab\n",
    'src/one.test.ts': "import { more } from '../test/helpers/more.ts'\n",
    'src/two.test.ts': "// owns: host\nimport { more } from '../test/helpers/more.ts'\n",
    'src/three.test.ts': "import { four } from './four.ts'\n",
    'src/four.ts': "import './helpers/lab.ts'\n", // what is under test owns nothing
  })
  const graph = new ImportGraph(folder)
  assert.match(
    ownsFaults('src/one.test.ts', graph).join(),
    /^src\/one\.test\.ts: imports test\/helpers\/lab\.ts, which owns /,
  )
  assert.deepEqual(ownsFaults('src/two.test.ts', graph), [])
  assert.deepEqual(ownsFaults('src/three.test.ts', graph), [])
  assert.throws(() => planGroups(['src/one.test.ts'], graph), /add "\/\/ owns: host"/)
})

test('files that own nothing share processes, the others are alone, and those that measure are the last', () => {
  const files: Record<string, string> = {}
  for (let i = 10; i < 40; i++) files[`src/p${i}.test.ts`] = ''
  files['src/a.test.ts'] = '// owns: processor\n'
  files['src/b.test.ts'] = '// owns: process\n'
  files['src/c.test.ts'] = '// owns: host\n'
  const groups = planGroups(Object.keys(files), new ImportGraph(tree(files)))
  assert.deepEqual(
    groups.slice(0, 2).map(({ files }) => files),
    [['src/c.test.ts'], ['src/b.test.ts']],
  )
  assert.deepEqual(groups.at(-1)!.files, ['src/a.test.ts'])
  const shared = groups.slice(2, -1).map(({ files }) => files)
  assert.equal(shared.length, 2)
  assert.deepEqual(
    shared.flat().sort(),
    Object.keys(files)
      .filter(file => file.startsWith('src/p'))
      .sort(),
  )
})

test('a test that fails, or cannot be loaded, is named with its reason and its output, and ends with status 1', async () => {
  const failing = `${head}test('is wrong', () => { console.log('on the way'); throw new Error('because') })\n`
  const { code, out } = await runFirst(failing)
  assert.equal(code, 1)
  assert.match(out, /✖ .*a\.test\.ts.*✖ is wrong.*Error: because.*\| on the way/s)
  assert.match(out, /1 passed, 1 failed, 0 skipped, 2 files/)
  const broken = await runFirst("import 'node:nothing'\n")
  assert.match(broken.out, /node:nothing/)
  assert.equal(broken.code, 1)
})

test('a process that ends in the midst of a file fails that file, and the next ones are run all the same', async () => {
  const exits = await runFirst(`${head}test('ends', () => process.exit(0))\n`)
  assert.match(exits.out, /a\.test\.ts.*its process ended with code 0 before it did/s)
  const crashes = await runFirst(`${head}test('crashes', () => process.abort())\n`)
  assert.match(crashes.out, /its process ended with SIGABRT before it did/)
  assert.deepEqual([exits.code, crashes.code], [1, 1])
})

test('a file that hangs is ended with all that it started', async () => {
  const hanging = `${head}import { spawn } from 'node:child_process'
test('hangs', () => { const { pid } = spawn('sleep', ['1000']); console.log('pid=' + pid); return new Promise(() => setInterval(() => {}, 1000)) })\n`
  const { code, out } = await runFirst(hanging, ['--limit', '10'])
  assert.equal(code, 1)
  assert.match(out, /takes more than 10 s/)
  const pid = Number(/pid=(\d+)/.exec(out)![1])
  assert.ok(hasEnded(pid))
})

test('a file that waits where nothing can come any more is ended', async () => {
  const { code, out } = await runFirst(`${head}test('x', () => new Promise(() => {}))\n`)
  assert.match(out, /a\.test\.ts.*is stuck: nothing was open for 10 s/s)
  assert.equal(code, 1)
})

test('what a file leaves behind is its fault', async () => {
  const check = async (text: string, want: RegExp) => {
    const { code, out } = await runFirst(head + text)
    assert.match(out, want)
    assert.equal(code, 1)
  }
  await Promise.all([
    check(
      "import { createServer } from 'node:net'\ntest('x', () => { createServer().listen(0) })",
      /leaves open: TCPServerWrap/,
    ),
    check("test('x', () => { process.env.SVC_X = '1' })", /leaves the environment of the process changed/),
    check("test('x', () => process.chdir('/'))", /leaves the process in \//),
    check("test('x', () => { Date.now = () => 0 })", /leaves Date\.now replaced/),
    check("test('x', () => { process.on('SIGHUP', () => {}) })", /leaves other listeners of SIGHUP/),
  ])
})

test('a process that a file leaves running is its fault, and is ended', async () => {
  const text = `// owns: process\n${head}import { spawn } from 'node:child_process'
test('x', () => { spawn('sleep', ['1001'], { stdio: 'ignore' }).unref() })\n`
  const { code, out } = await runFirst(text)
  assert.match(out, /leaves a process running: sleep 1001/)
  assert.equal(code, 1)
})

test('a file that loads programs into the kernel and does not own the host is told so, in child processes too', async () => {
  const addon = join(root, 'src/kernel/native.ts')
  const loads = `const { loadNative } = await import('${addon}'); try { loadNative().objectLoad(undefined) } catch {}`
  const here = await runFirst(`${head}test('x', async () => { ${loads} })\n`)
  assert.match(
    here.out,
    /loads programs into the kernel and owns neither ports nor host: add "\/\/ owns: ports"/,
  )
  const script = JSON.stringify(`(async () => { ${loads} })()`)
  const child = `${head}import { execFileSync } from 'node:child_process'
test('x', () => { execFileSync(process.execPath, ['-e', ${script}]) })\n`
  const there = await runFirst(child)
  assert.match(there.out, /loads programs into the kernel/)
  const owner = await runFirst(`// owns: host\n${head}test('x', async () => { ${loads} })\n`)
  assert.equal(owner.code, 0, owner.out)
  assert.deepEqual([here.code, there.code], [1, 1])
})

test('a child whose environment is clean is held to what its file owns, too', async () => {
  const helpers = join(root, 'test/helpers/program-under-test.ts')
  const script = `import('${join(root, 'src/kernel/native.ts')}').then(({ loadNative }) => loadNative().objectLoad(undefined)).catch(() => {})`
  const { code, out } = await runFirst(`${head}import { execFileSync } from 'node:child_process'
import { cleanEnvironment } from '${helpers}'
test('x', () => { execFileSync(process.execPath, ['-e', ${JSON.stringify(script)}], { env: cleanEnvironment() }) })\n`)
  assert.match(out, /loads programs into the kernel/)
  assert.equal(code, 1)
})

test('a file without tests fails, what is skipped is listed, and a name that no test has is an error', async () => {
  const skipped =
    "import { describe, test } from 'node:test'\ndescribe.skip('all', () => { test('x', () => {}) })\n"
  const [none, suite, pattern, hidden, typo] = await Promise.all([
    runFirst(''),
    runFirst(skipped),
    run([
      join(tree({ 'a.test.ts': `${head}test('x', () => {})\n` }), 'a.test.ts'),
      '--test-name-pattern',
      'zzz',
    ]),
    run([join(tree({ 'a.test.ts': `${head}test.${'only'}('x', () => {})\n` }), 'a.test.ts')]),
    run([join(tree({ 'a.test.ts': `// owns host\n${head}test('x', () => {})\n` }), 'a.test.ts')]),
  ])
  assert.match(none.out, /has no tests/)
  assert.match(suite.out, /- all: skipped/)
  assert.match(pattern.out, /no test has such a name/)
  assert.match(hidden.out, /a\.test\.ts: has an "only"/)
  assert.match(typo.out, /a\.test\.ts: "\/\/ owns host" is not an "owns" line/)
  assert.deepEqual([none.code, suite.code, pattern.code, hidden.code, typo.code], [1, 0, 2, 2, 2])
})

test('what is no result on the channel of results fails the file, and no other', async () => {
  const { code, out } = await runFirst(
    `${head}import { writeSync } from 'node:fs'\ntest('x', () => { writeSync(3, 'rubbish\\n42\\n') })\n`,
  )
  assert.match(out, /writes to descriptor 3: rubbish/)
  assert.equal(code, 1)
})

test('a runner that is killed leaves no process behind', async () => {
  const file = `${head}import { spawn } from 'node:child_process'
test('x', () => { console.log('pid=' + spawn('sleep', ['1002']).pid); return new Promise(() => setInterval(() => {}, 1000)) })\n`
  const folder = tree({ 'a.test.ts': file })
  const runner = spawn(process.execPath, [join(root, 'tools/testing/run.ts'), join(folder, 'a.test.ts')], {
    cwd: root,
    env: cleanEnvironment(),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let out = ''
  for await (const chunk of runner.stderr) {
    out += chunk
    if (/pid=\d+/.test(out)) break
  }
  runner.kill('SIGKILL')
  const pid = Number(/pid=(\d+)/.exec(out)![1])
  await until('the child has ended', 20_000, () => hasEnded(pid))
})

test('an error that comes after its test fails the file', async () => {
  const text =
    "test('x', () => { setTimeout(() => { throw new Error('late') }, 50) })\ntest('y', () => new Promise(done => setTimeout(done, 200)))\n"
  const { code, out } = await run([join(tree({ 'a.test.ts': head + text }), 'a.test.ts')])
  assert.equal(code, 1, out)
  assert.match(out, /late/)
})

test('a wrong command line is refused with the usage', async () => {
  const help = await run(['--help'])
  assert.equal(help.code, 0, help.out)
  assert.match(help.out, /usage: tools\/test/)
  for (const args of [['--sok'], ['--at-once', '0'], ['--limit', 'x']]) {
    const { code, out } = await run(args)
    assert.equal(code, 2, out)
    assert.match(out, /usage: tools\/test/)
  }
})

const result = (file: string, ms: number, tests: FileResult['tests'] = []): FileResult => ({
  file,
  ms,
  cpu_ms: 0,
  tests,
  faults: [],
  output: '',
  reached: [],
})

test('the summary names the ten slowest files and tests, and why tests were skipped', () => {
  const files = Array.from({ length: 12 }, (_, i) =>
    result(`f${i}`, i * 1000, [
      { name: `t${i}`, ms: i * 900, result: 'passed', reason: '' },
      { name: 's', ms: 0, result: 'skipped', reason: 'needs root' },
    ]),
  )
  const report = { files, passed: 12, failed: 0, skipped: 12, wall_ms: 125_000, retries: 0 as const }
  const text = summaryText({
    ...report,
    kind: 'test',
    commit: 'c',
    changed: false,
    node: '',
    began: '',
    load: [0, 0],
  })
  assert.match(text, /slowest files\n +11\.0 s {2}f11, 0\.0 s of CPU\n/)
  assert.doesNotMatch(text, / f1$/m)
  assert.match(text, / 9\.9 s {2}f11: t11$/m)
  assert.match(text, /^ +12 +needs root$/m)
  assert.match(text, /12 passed, 0 failed, 12 skipped, 12 files in 2:05$/)
})

test('a soak has the tests that do more in one, and continues after an interruption, as long as the tree is the same', () => {
  const folder = tree({
    'test/helpers/soak.ts': '',
    'test/helpers/streams.ts': "import './soak.ts'\n",
    'src/a.test.ts': "import '../test/helpers/streams.ts'\n",
    'src/b.test.ts': '',
  })
  assert.deepEqual(soakTests(['src/a.test.ts', 'src/b.test.ts'], new ImportGraph(folder)), ['src/a.test.ts'])
  const path = join(folder, 'progress.jsonl')
  const open = (tree: string, anew = false) => new SoakProgress({ anew, path, tree })
  const first = open('one')
  assert.deepEqual(first.results, [])
  first.add(result('a', 5))
  assert.deepEqual(open('one').results, [result('a', 5)])
  assert.deepEqual(open('one', true).results, [])
  open('one').add(result('b', 5))
  assert.deepEqual(open('two').results, [])
  open('two').add(result('c', 5))
  appendFileSync(path, '{"atMs":17') // a soak that was cut off in the midst of a line
  assert.deepEqual(open('two').results, [result('c', 5)])
  assert.deepEqual(open('two').results, [result('c', 5)])
  writeFileSync(path, '\0\0')
  assert.deepEqual(open('two').results, [])
  open('two').end()
  assert.throws(() => readFileSync(path), /ENOENT/)
})

test('a unit test answers with one line for each of its tests, and the time of the file', async () => {
  const { code, out } = await run([relative(root, join(root, 'src/foundation/lib/size.test.ts'))])
  assert.equal(code, 0)
  assert.match(
    out,
    /^✔ src\/foundation\/lib\/size\.test\.ts \(\d+\.\d s, \d+\.\d s of CPU\)\n {2}✔ .+ \(\d+ ms\)\n/,
  )
})
