// reads: the tree
// `tools/test --since COMMIT` selects every test that a change can break: by small trees of git, and by this tree.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { ImportGraph, namedPaths } from '../tools/imports.ts'
import { allTests } from '../tools/testing/plan.ts'
import { changedSince, touched, treeFaults } from '../tools/testing/since.ts'
import { cleanEnvironment, root } from './helpers/program-under-test.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-since-'))
after(() => rmSync(directory, { recursive: true }))
let trees = 0

/** Commits these files in a folder of their own. `change` changes them; the tests that this selects are the answer. */
function selected(
  files: Readonly<Record<string, string>>,
  change: (at: { git(...args: string[]): void; write(file: string, text?: string): void }) => void,
): string[] {
  const folder = join(directory, String(trees++))
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', ...args], { cwd: folder })
  const write = (file: string, text = '// changed\n') => {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), text)
  }
  mkdirSync(folder)
  git('init', '--quiet')
  for (const [file, text] of Object.entries(files)) write(file, text)
  git('add', '.')
  git('commit', '--quiet', '--message', 'all')
  change({ git, write })
  const tests = Object.keys(files).filter(file => file.endsWith('.test.ts'))
  return touched(tests, changedSince('HEAD', folder), new ImportGraph(folder))
}

const sources = {
  'src/main.ts': "import './foundation/lib/size.ts'\n",
  'src/signals/profiles/worker.ts': '',
  'src/program/documents/try-worker.ts': '',
  'src/foundation/lib/size.ts': '// of things, as many as it takes to know a renamed file by what it holds\n',
  'src/foundation/lib/other.ts': '',
  'src/foundation/lib/size.test.ts': "import './size.ts'\n",
  'src/foundation/lib/other.test.ts': "import './other.ts'\n",
  'test/helpers/program.ts': "const program = join(root, 'dist/svc.cjs')\n",
  'test/e2e/all.test.ts': "import '../helpers/program.ts'\n",
}

test('a change selects what imports it, and what starts the program that is made of it', () => {
  const check = (file: string, want: string[]) =>
    assert.deepEqual(
      selected(sources, ({ write }) => write(file)),
      want,
    )
  check('src/foundation/lib/size.ts', ['src/foundation/lib/size.test.ts', 'test/e2e/all.test.ts'])
  check('src/foundation/lib/other.ts', ['src/foundation/lib/other.test.ts'])
  check('src/foundation/lib/other.test.ts', ['src/foundation/lib/other.test.ts'])
  check('src/foundation/lib/new.ts', [])
  assert.deepEqual(
    selected(sources, () => {}),
    [],
  )
})

test('a file that is deleted or renamed selects what imported it', () => {
  const want = ['src/foundation/lib/size.test.ts', 'test/e2e/all.test.ts']
  assert.deepEqual(
    selected(sources, ({ git }) => git('rm', '-q', 'src/foundation/lib/size.ts')),
    want,
  )
  assert.deepEqual(
    selected(sources, ({ git }) => git('mv', 'src/foundation/lib/size.ts', 'src/foundation/lib/sizes.ts')),
    want,
  )
  const committed = {
    ...sources,
    'src/foundation/lib/size.ts': '',
    'src/foundation/lib/third.test.ts': "import './gone.ts'\n",
  }
  // It was gone before.
  assert.deepEqual(
    selected(committed, ({ write }) => write('src/foundation/lib/other.ts')),
    ['src/foundation/lib/other.test.ts', 'src/foundation/lib/third.test.ts'],
  )
})

test('a tree without the program selects what started it', () => {
  const want = ['test/e2e/all.test.ts']
  assert.deepEqual(
    selected(sources, ({ git }) => git('rm', '-q', 'src/main.ts')),
    want,
  )
})

test('a file that is named by its path selects who names it, and who reaches that', () => {
  const files = {
    'src/program/agent/gpu.ts': "import './deep.ts'\n",
    'src/program/agent/deep.ts': '',
    'src/program/agent/thread.ts': "new Worker(join(import.meta.dirname, 'work.ts'))\n",
    'src/program/agent/work.ts': '',
    'src/a.test.ts': "const at = import.meta.resolve('./program/agent/gpu.ts')\n",
    'src/b.test.ts': "spawn(process.execPath, [join(import.meta.dirname, 'program', 'agent', 'gpu.ts')])\n",
    'src/c.test.ts': `run(\`import "\${import.meta.dirname}/program/agent/gpu.ts"\`)\n`,
    'src/d.test.ts': "import '../test/helpers/bundle.ts'\n",
    'src/e.test.ts': "spawn('node', [join(root, 'tools/gen.ts')])\n",
    'src/f.test.ts': "import './program/agent/thread.ts'\n",
    'src/g.test.ts': '// Not for src/program/agent/gpu.ts.\n',
    'tools/gen.ts': "import { x } from '../src/program/agent/gpu.ts'\n",
    'test/helpers/bundle.ts': "build({ entryPoints: [join(root, 'src/program/agent/gpu.ts')] })\n",
  }
  const check = (file: string, want: string) =>
    assert.equal(
      selected(files, ({ write }) => write(file))
        .map(path => path[4])
        .join(''),
      want,
      file,
    )
  check('src/program/agent/gpu.ts', 'abcde')
  check('src/program/agent/deep.ts', 'abcde')
  check('src/program/agent/work.ts', 'f')
  check('tools/gen.ts', 'e')
})

test('fixtures, pages and C are selected by their name, their folder, or what includes them', () => {
  const files = {
    'test/fixtures/host/proc/stat': '',
    'test/fixtures/host/proc/net/dev': '',
    'test/fixtures/tls/key.pem': '',
    'docs/gpu.md': '',
    'docs/ui.md': '',
    'bpf/sock.bpf.c': '#include "http1.h"\n',
    'bpf/include/http1.h': '#include "bytes.h"\n',
    'bpf/include/bytes.h': '',
    'src/kernel/native.ts': '',
    'src/a.test.ts': "readFileSync('test/fixtures/host/proc/stat')\n",
    'src/b.test.ts': "cpSync(join(import.meta.dirname, '..', 'test', 'fixtures', 'host'), to)\n",
    'src/c.test.ts': "readFileSync(new URL('../docs/gpu.md', import.meta.url))\n",
    'src/d.test.ts': "for (const page of readdirSync('docs')) {}\n",
    'src/e.test.ts': "import './kernel/native.ts'\n",
    'src/f.test.ts': "execFileSync('gcc', [join(root, 'bpf/include/http1.h')])\n",
    'src/g.test.ts': '// reads: the tree\n',
    'src/h.test.ts': `for (const name of names) readFileSync(\`docs/g\${name}.md\`)\n`,
  }
  const check = (file: string, want: string) =>
    assert.equal(
      selected(files, ({ write }) => write(file))
        .map(path => path[4])
        .join(''),
      want,
      file,
    )
  check('test/fixtures/host/proc/stat', 'abg')
  check('test/fixtures/host/proc/net/dev', 'bg')
  check('test/fixtures/host/proc/new', 'bg')
  check('test/fixtures/tls/key.pem', 'g')
  check('docs/gpu.md', 'cdgh')
  check('docs/ui.md', 'dgh')
  check('bpf/include/bytes.h', 'efg')
  check('bpf/sock.bpf.c', 'eg')
  const deleted = selected(files, ({ git }) => git('rm', '-q', 'docs/gpu.md'))
  assert.deepEqual(deleted.map(path => path[4]).join(''), 'cdgh')
})

test('what every test depends on selects all', () => {
  const all = ['src/foundation/lib/size.test.ts', 'src/foundation/lib/other.test.ts', 'test/e2e/all.test.ts']
  for (const file of [
    'package.json',
    '.npmrc',
    'biome.json',
    'tsconfig.json',
    'ui/tsconfig.json',
    'tools/git.ts',
    'tools/setup',
    'tools/bundle-ui.ts',
    'tools/testing/new.ts',
  ])
    assert.deepEqual(
      selected(sources, ({ write }) => write(file)),
      all,
      file,
    )
})

test('a commit that git does not know is an error with its name', () => {
  for (const name of ['nosuchcommit', '--all', ''])
    assert.throws(() => changedSince(name, root), new RegExp(`--since ${name}: git knows no such commit`))
  const run = spawnSync('bash', ['tools/test', '--since', 'nosuchcommit'], {
    cwd: root,
    encoding: 'utf8',
    env: cleanEnvironment(),
  })
  assert.equal(run.status, 2)
  assert.match(run.stderr, /--since nosuchcommit: git knows no such commit/)
})

test('paths are found in strings, in what is joined, and around what is put in', () => {
  const check = (text: string, want: string[]) =>
    assert.deepEqual([...new Set([...namedPaths(text)].map(({ path }) => path))].sort(), want.sort(), text)
  check("'a/b.ts'", ['a/b.ts'])
  check("join(x, '..', 'a', 'b.ts')", ['a', 'a/b.ts', 'b.ts'])
  check(`\`\${x}/a/\${y}.md\``, ['a', '.md'])
  check("'gcc -o x ../a/b.c'", ['a/b.c'])
  check("  // see 'a/b.ts'", [])
})

const graph = new ImportGraph(root)
const tests = allTests()

test('a test of this tree that reads the whole of it says so', () => {
  assert.deepEqual(
    tests.flatMap(file => treeFaults(file, graph)),
    [],
  )
  const folder = join(directory, 'faults')
  mkdirSync(folder)
  const check = (text: string, want: number) => {
    writeFileSync(join(folder, 'a.test.ts'), text)
    assert.equal(treeFaults('a.test.ts', new ImportGraph(folder)).length, want, text)
  }
  check("execFileSync('git', ['ls-files', '*.md'])\n", 1)
  check("// owns: host\n// reads: the tree\nexecFileSync('git', ['ls-files', '*.md'])\n", 0)
  check("const root = join(import.meta.dirname, '..')\nreaddirSync(root, { recursive: true })\n", 1)
  check("const root = mkdtempSync('x')\nreaddirSync(root)\n", 0)
})

test('sources of this tree that tests start by path select these tests', () => {
  const check = (file: string, ...want: string[]) => {
    const found = touched(tests, [file], graph)
    for (const each of want) assert.ok(found.includes(each), `${file} does not select ${each}`)
    return found
  }
  check('src/program/subsystems/gpus.ts', 'src/program/subsystems/gpus.test.ts')
  check('src/program/doctor/gpu.ts', 'src/program/doctor/gpu.test.ts')
  check(
    'src/signals/metrics/scraping/fetch/target-client.ts',
    'src/signals/metrics/scraping/fetch/redirect-reach.test.ts',
  )
  check(
    'src/foundation/runtime/runtime-profiler.ts',
    'src/foundation/runtime/source-map.test.ts',
    'src/foundation/runtime/bundle.test.ts',
  )
  check(
    'src/identity/discovery/kubernetes/kubernetes-source.ts',
    'src/identity/discovery/kubernetes/memory.test.ts',
  )
  check('src/main.ts', 'test/e2e/journal-guest.test.ts', 'test/e2e/image.test.ts', 'test/e2e/arm64.test.ts')
  check('tools/gen-docs.ts', 'src/config/load.test.ts')
  const pages = [
    'check',
    'contract',
    'docs',
    'docs-commands',
    'docs-security',
    'docs-shell',
    'docs-tables',
    'recipes',
  ]
  const ofPage = check('docs/ui.md', ...pages.map(name => `test/${name}.test.ts`))
  assert.ok(ofPage.length < tests.length / 10, `${ofPage.length} tests for one page`)
  const ofSource = check(
    'src/signals/metrics/collectors/bcache.ts',
    'src/signals/metrics/collectors/bcache.test.ts',
  )
  assert.ok(ofSource.length < tests.length / 2, `${ofSource.length} tests for one source`)
})
