import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { test } from 'node:test'
import { checkArchitecture } from '../tools/check-architecture.ts'
import { literalsOf } from '../tools/literals.ts'
import { refusedWords } from '../tools/refused-words.ts'

type Tree = Readonly<Record<string, string>>

/** A small tree with nothing wrong in it. */
const sound: Tree = {
  '.gitignore': 'dist/\n',
  'docs/develop/words.md':
    '## Refused words\n\n| refused | instead |\n|---|---|\n| tell, told | report |\n| by itself | automatically |\n',
  'budgets.json': '{"lines":{"source":10,"test":20,"tool":5},"dependencies":1}',
  'package.json': '{"dependencies":{"yaml":"2"},"exports":{"./events":"./src/foundation/lib/events.ts"}}',
  'src/main.ts': "import './program/cli/run.ts'\n",
  'src/program/cli/run.ts': "import '../agent.ts'\nimport '../../config/load.ts'\n",
  'src/program/agent.ts': "import './subsystems/index.ts'\n",
  'src/program/subsystems/index.ts':
    "import { http1 } from '../../signals/traces/protocols/index.ts'\nimport '../../pipeline/exporters/otlp-grpc.ts'\n",
  'src/view/api/types.ts': "import type { Span } from '../../foundation/model/span.ts'\n",
  'src/config/load.ts': "import { parse } from 'yaml'\nimport { readFileSync } from 'node:fs'\n",
  'src/pipeline/exporters/otlp-grpc.ts':
    "import { encode } from './otlp/encode.ts'\nimport http2 from 'node:http2'\n",
  'src/pipeline/exporters/otlp/encode.ts': "import type { Span } from '../../../foundation/model/span.ts'\n",
  'src/foundation/lib/events.ts': 'export const events = 1\n',
  'src/foundation/model/span.ts': 'export interface Span {}\n',
  'src/signals/traces/protocols/http1.ts': "import { head } from './_shared.ts'\n",
  'src/signals/traces/protocols/_shared.ts': 'export const head = 1\n',
  'src/signals/traces/protocols/index.ts': "export { http1 } from './http1.ts'\n",
  'src/signals/traces/protocols/http1.test.ts': "import { spawn } from 'node:child_process'\n// TODO\n",
}

const list = sound['src/program/subsystems/index.ts']!

/** Calls `use` with a checkout that holds the sound tree and, over it, `changes`. */
function withTree(changes: Tree, use: (root: string) => void): void {
  const root = mkdtempSync(join(tmpdir(), 'architecture-'))
  try {
    execFileSync('git', ['init', '--quiet', root])
    for (const [file, text] of Object.entries({ ...sound, ...changes })) {
      mkdirSync(dirname(join(root, file)), { recursive: true })
      writeFileSync(join(root, file), text)
    }
    use(root)
  } finally {
    rmSync(root, { recursive: true })
  }
}

/** The tree with `changes` has exactly the faults `want`. */
function check(changes: Tree, ...want: RegExp[]): void {
  withTree(changes, root => {
    const faults = checkArchitecture(root)
    assert.equal(faults.length, want.length, faults.join('\n'))
    for (const pattern of want)
      assert.ok(
        faults.some(fault => pattern.test(fault)),
        `${pattern}\n${faults.join('\n')}`,
      )
  })
}

test('a sound tree has no fault', () => check({}))

test('an area imports only what its row names, values and types alike', () => {
  check(
    { 'src/foundation/model/span.ts': "import { a } from '../../config/load.ts'\n" },
    /^src\/foundation\/model\/span\.ts:1: layers: "\.\.\/\.\.\/config\/load\.ts": foundation\/model may import foundation\/model, foundation\/lib$/,
  )
  check(
    { 'src/foundation/lib/events.ts': "\nexport type {\n  Span,\n} from '../model/span.ts'\n" },
    /^src\/foundation\/lib\/events\.ts:2: layers: "\.\.\/model\/span\.ts"/,
  )
  check(
    { 'src/config/load.ts': "export const tree = () => import('../program/cli/run.ts')\n" },
    /^src\/config\/load\.ts:1: layers: "\.\.\/program\/cli\/run\.ts"/,
    /cycles: src\/program\/cli\/run\.ts → src\/config\/load\.ts → src\/program\/cli\/run\.ts/,
  )
  check(
    { 'src/foundation/lib/events.ts': "import data from '../../../package.json'\n" },
    /events\.ts:1: layers: /,
  )
})

test('the page shares with src what both agree on, and imports packages that are bundled', () => {
  const page = {
    'package.json': '{"dependencies":{"yaml":"2"},"devDependencies":{"preact":"11"}}',
    'src/main.ts': "import './program/cli/run.ts'\nimport './foundation/lib/events.ts'\n",
    'src/program/cli/run.ts': `${sound['src/program/cli/run.ts']}import '../../view/api/ui/documents.ts'\n`,
    'src/view/api/ui/documents.ts': '',
    'ui/main.tsx':
      "import { render } from 'preact'\nimport './theme.css'\nconst page = import('./page.tsx')\n",
    'ui/page.tsx': "import type { Line } from '../src/view/api/ui/documents.ts'\n",
  }
  check(page)
  check(
    { ...page, 'ui/page.tsx': "import { events } from '../src/foundation/lib/events.ts'\nimport 'yaml'\n" },
    /^ui\/page\.tsx:1: layers: /,
    /^ui\/page\.tsx:2: packages: /,
  )
  check({ ...page, 'ui/more.tsx': '' }, /^ui\/more\.tsx:1: reach: /)
})

test('an area that the table does not know is a fault', () => {
  check(
    { 'src/misc/a.ts': '', 'src/main.ts': "import './program/cli/run.ts'\nimport './misc/a.ts'\n" },
    /^src\/misc\/a\.ts:1: areas: in no row /,
    /^src\/main\.ts:2: layers: "\.\/misc\/a\.ts": main\.ts may import /,
  )
})

test('a source file does not import a test, its own area included', () => {
  check(
    { 'src/signals/traces/protocols/http1.ts': "import './_shared.ts'\nimport './http1.test.ts'\n" },
    /^src\/signals\/traces\/protocols\/http1\.ts:2: layers: "\.\/http1\.test\.ts": a source file does not import a test/,
  )
})

test('pure areas import nothing of Node, with or without its prefix, however it is written', () => {
  const banned = /^src\/signals\/traces\/protocols\/_shared\.ts:1: bans: "(node:)?buffer": this area is pure/
  check({ 'src/signals/traces/protocols/_shared.ts': "import { Buffer } from 'node:buffer'\n" }, banned)
  check({ 'src/signals/traces/protocols/_shared.ts': "import { Buffer } from 'buffer'\n" }, banned)
  check(
    { 'src/signals/traces/protocols/_shared.ts': "const b = process.getBuiltinModule('node:buffer')\n" },
    banned,
  )
  check(
    { 'src/foundation/model/span.ts': "import 'node:fs'\n" },
    /^src\/foundation\/model\/span\.ts:1: bans: "node:fs"/,
  )
})

test('a processor does not reach files or the network', () => {
  check(
    {
      'src/program/subsystems/index.ts': `${list}import '../../pipeline/processors/redact.ts'\n`,
      'src/pipeline/processors/redact.ts':
        "import { createHash } from 'node:crypto'\nimport fs from 'node:fs/promises'\n",
    },
    /^src\/pipeline\/processors\/redact\.ts:2: bans: "node:fs\/promises"/,
  )
})

test('only src/kernel/child.ts spawns', () => {
  const spawning = "import { spawn } from 'node:child_process'\n"
  check(
    { 'src/main.ts': `import './program/cli/run.ts'\n${spawning}` },
    /^src\/main\.ts:2: bans: "node:child_process"/,
  )
  check({
    'src/program/cli/run.ts': `${sound['src/program/cli/run.ts']}import '../../kernel/child.ts'\n`,
    'src/kernel/child.ts': spawning,
  })
  check({ 'bench/start.ts': spawning, 'tools/bundle.ts': spawning })
})

test('a unit, which is what the list of its area names, does not import another', () => {
  check(
    {
      'src/signals/traces/protocols/redis.ts': "import './http1.ts'\n",
      'src/signals/traces/protocols/index.ts':
        "import { http1 } from './http1.ts'\nimport { redis } from './redis.ts'\n",
    },
    /^src\/signals\/traces\/protocols\/redis\.ts:1: units: "\.\/http1\.ts"/,
  )
  check({
    'src/signals/traces/protocols/redis.ts': "import './framing.ts'\n",
    'src/signals/traces/protocols/framing.ts': '',
    'src/signals/traces/protocols/http1.ts': "import './framing.ts'\nimport './_shared.ts'\n",
    'src/signals/traces/protocols/index.ts':
      "import { http1 } from './http1.ts'\nimport { redis } from './redis.ts'\n",
  })
})

test('in an area without a list each file is a unit, but not what is in folders or _shared.ts', () => {
  check(
    {
      'src/pipeline/exporters/otlp/encode.ts': "import '../stdout.ts'\n",
      'src/pipeline/exporters/stdout.ts': '',
    },
    /^src\/pipeline\/exporters\/otlp\/encode\.ts:1: units: "\.\.\/stdout\.ts"/,
  )
  check({
    'src/pipeline/exporters/otlp/encode.ts': "import '../_shared.ts'\n",
    'src/pipeline/exporters/_shared.ts': '',
  })
})

test('units may stand in a folder of an area, whose other files they share', () => {
  const source = "import '../scrape-job.ts'\n"
  const index =
    "import { dns } from './dns.ts'\nimport { file } from './file.ts'\nimport '../scrape-job.ts'\n"
  const shared = {
    'src/program/subsystems/index.ts': `${list}import '../../signals/metrics/scraping/sources/index.ts'\n`,
    'src/signals/metrics/scraping/sources/index.ts': index,
    'src/signals/metrics/scraping/scrape-job.ts': '',
  }
  check({
    ...shared,
    'src/signals/metrics/scraping/sources/dns.ts': source,
    'src/signals/metrics/scraping/sources/file.ts': source,
  })
  check(
    {
      ...shared,
      'src/signals/metrics/scraping/sources/dns.ts': "import './file.ts'\n",
      'src/signals/metrics/scraping/sources/file.ts': source,
    },
    /^src\/signals\/metrics\/scraping\/sources\/dns\.ts:1: units: "\.\/file\.ts"/,
  )
})

test('a package comes from the dependencies, not from what only development has', () => {
  check(
    { 'src/config/load.ts': "import pb from 'protobufjs/light'\n" },
    /load\.ts:1: packages: "protobufjs\/light"/,
  )
  check({ 'src/config/load.ts': "import x from 'yaml-extra'\n" }, /load\.ts:1: packages: "yaml-extra"/)
  check(
    { 'package.json': '{"dependencies":{"yaml":"2","ms":"2"},"exports":"./src/foundation/lib/events.ts"}' },
    /^package\.json:1: dependencies: 2/,
  )
})

test('a cycle is found among types too, once', () => {
  check(
    {
      'src/foundation/lib/events.ts': "import type { B } from './b.ts'\n",
      'src/foundation/lib/b.ts': "import { c } from './c.ts'\n",
      'src/foundation/lib/c.ts': "import { events } from './events.ts'\n",
    },
    /^src\/foundation\/lib\/events\.ts:1: cycles: src\/foundation\/lib\/events\.ts → src\/foundation\/lib\/b\.ts → src\/foundation\/lib\/c\.ts → src\/foundation\/lib\/events\.ts$/,
  )
})

test('a file that nothing reaches is a fault, also when a test or another such file imports it', () => {
  check(
    {
      'src/foundation/lib/lost.ts': "import './lost-too.ts'\n",
      'src/foundation/lib/lost-too.ts': '',
      'src/foundation/lib/lost.test.ts': "import './lost.ts'\n",
    },
    /^src\/foundation\/lib\/lost\.ts:1: reach: /,
    /^src\/foundation\/lib\/lost-too\.ts:1: reach: /,
  )
})

test('files keep to the lines of budgets.json, generated and foreign ones are free', () => {
  const lines = (n: number) => '//\n'.repeat(n)
  check({ 'src/foundation/lib/events.ts': lines(10), 'test/a.test.ts': lines(20), 'tools/a.ts': lines(5) })
  check(
    { 'src/foundation/lib/events.ts': lines(11) },
    /^src\/foundation\/lib\/events\.ts:1: lines: 11, the limit is 10/,
  )
  check({ 'bpf/sock.bpf.c': lines(11) }, /^bpf\/sock\.bpf\.c:1: lines: 11/)
  check(
    { 'src/foundation/lib/events.test.ts': lines(21) },
    /^src\/foundation\/lib\/events\.test\.ts:1: lines: 21, the limit is 20/,
  )
  check({ 'tools/a.ts': lines(6) }, /^tools\/a\.ts:1: lines: 6, the limit is 5/)
  check({ 'test/fixtures/a.c': lines(50), 'dist/a.c': lines(50) })
})

test('a map or interner whose bytes nobody counts is refused', () => {
  check(
    {
      'src/signals/traces/protocols/http1.ts':
        "import './_shared.ts'\nconst words = new Interner({ slots: 8 })\n",
    },
    /^src\/signals\/traces\/protocols\/http1\.ts:2: memory: "new Interner"/,
  )
  check({
    'src/signals/traces/protocols/http1.ts':
      "import { head } from './_shared.ts'\nsmall(\n  new BoundedMap(1),\n)\n",
  })
})

test('private members have names with #', () => {
  check(
    { 'src/foundation/lib/events.ts': 'class A {\n  private a = 1\n}\n' },
    /^src\/foundation\/lib\/events\.ts:2: private: " {2}private ": write #name/,
  )
  check({ 'src/foundation/lib/events.ts': 'class A {\n  #a = 1\n  private constructor() {}\n}\n' })
})

test('words of unfinished work are refused in code, with their line, and free elsewhere', () => {
  check(
    { 'src/foundation/lib/events.ts': '\n// Not implemented\n' },
    /^src\/foundation\/lib\/events\.ts:2: words: "Not implemented"/,
  )
  check({ 'bpf/sock.bpf.c': '/* FIXME */\n' }, /^bpf\/sock\.bpf\.c:1: words: "FIXME"/)
  check({ 'native/addon.c': '/* works for now */\n' }, /^native\/addon\.c:1: words: "for now"/)
  check({ 'docs/a.md': 'TODO\n', 'src/foundation/lib/events.ts': '// todos, before nowhere\n' })
})

test('refused words are found in pages, and in code in texts of several words alone', () => {
  check(
    { 'docs/a.md': '# A\n\nsvc told `told` it\nby itself\n' },
    /^docs\/a\.md:3: english: "told": write report$/,
    /^docs\/a\.md:4: english: "by itself": write automatically$/,
  )
  check(
    { 'README.md': 'It starts By itself.\n' },
    /^README\.md:1: english: "By itself": write automatically$/,
  )
  check({ 'README.md': 'Retold, `told`, told-by.ts, --told\n' })
  check({
    'docs/reference/metrics.md': 'It tells, and told.\n',
    'src/program/subsystems/index.ts': `${list}import '../../signals/metrics/collectors/told.ts'\n`,
    'src/signals/metrics/collectors/told.ts': "export const a = 'I told you'\n",
  })
  check({ 'bench/a.md': 'Fine.\n' }, /^bench\/a\.md:1: english: in no list of tools\/refused-words\.ts/)
  check(
    {
      'tools/deploy/a.ts': `// told\nconst told = ['told']\nconst text = \`\${told} is told \${'it is'} so\`\n`,
    },
    /^tools\/deploy\/a\.ts:3: english: "told": write report$/,
  )
  check({ 'deploy/run': '# Nobody tells.\n' })
})

test('the list of refused words is read from its section', () => {
  check({
    'docs/develop/words.md': '| tell | a |\n## Refused words\n\n| refused | b |\n|---|---|\n| x | y |\n',
  })
  assert.throws(() => refusedWords('| tell | report |\n'), /has no list of refused words/)
})

test('the global fetch is refused, a method of that name is not', () => {
  check(
    { 'src/foundation/lib/events.ts': 'await fetch(url)\n' },
    /^src\/foundation\/lib\/events\.ts:1: globals: "fetch\("/,
  )
  check({ 'src/foundation/lib/events.ts': 'await target.fetch(url)\n' })
})

test('paths of one machine and hosts of registries are refused in every file', () => {
  check({ 'docs/a.md': `see /${'work'}/notes\n` }, /^docs\/a\.md:1: paths: "\/work\/notes"/)
  check({ 'docs/a.md': 'https://host.example/work/notes, lib/work/x and ./work/y\n' })
  check(
    { 'package-lock.json': `"https://registry.${'npmjs'}.org/yaml"` },
    /^package-lock\.json:1: hosts: "registry\.npmjs\.org"/,
  )
  withTree({}, root => {
    writeFileSync(join(root, 'notes.txt'), `\n${root}/src`)
    assert.deepEqual(checkArchitecture(root), [`notes.txt:2: paths: "${root}/": a machine-specific path`])
  })
})

test('the command prints the faults and exits 1, or says nothing and exits 0', () => {
  const command = resolve('tools/check-architecture.ts')
  const run = (root: string) => spawnSync(process.execPath, [command], { cwd: root, encoding: 'utf8' })
  withTree({}, root => {
    const { status, stdout, stderr } = run(root)
    assert.deepEqual({ status, stdout, stderr }, { status: 0, stdout: '', stderr: '' })
  })
  withTree({ 'src/foundation/lib/lost.ts': '' }, root => {
    const { status, stderr } = run(root)
    assert.equal(status, 1)
    assert.match(stderr, /^src\/foundation\/lib\/lost\.ts:1: reach: /)
  })
})

test('literals of code are its strings, parts of templates and texts between tags', () => {
  const texts = (code: string, isTsx = false) => literalsOf(code, isTsx).map(({ text }) => text)
  const check = (code: string, ...want: string[]) => assert.deepEqual(texts(code), want)
  check(`f('a', "b's")`, 'a', "b's")
  check(`\`a \${b + \`c \${'d'}\`} e\``, 'a ', 'c ', 'd', '', ' e')
  check("// 'no'\n/* 'no' */ 'a\\'b'", "a\\'b")
  check("x.replace(/['\"]/g, 'a') / 2 / 'b'", 'a', 'b')
  check("const apostrophe = don't\n'a'", 'a')
  assert.deepEqual(texts("<p title='a'>It isn't {b} so on (it)</p>", true), ['a', "It isn't ", ' so on (it)'])
  assert.deepEqual(texts('}\n\nfunction told of it(<b />', true), [])
  assert.deepEqual(texts('{a}\n/* a comment of it */\n<b />', true), [])
  assert.deepEqual(texts('const f = (a) => a < b\n', true), [])
  for (const { index, text } of literalsOf("const a = 'one' + `two`"))
    assert.ok("const a = 'one' + `two`".startsWith(text, index))
})
