import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { codeFrames, projectPath } from './code-frames.ts'

const place = (functionName: string, url: string, lineNumber: number) => ({
  functionName,
  url,
  lineNumber,
  columnNumber: 0,
})

test('a path says only where in the project it is', () => {
  const check = (path: string, want: string) => assert.equal(projectPath(path), want, path)
  check('', '')
  check('node:internal/timers', 'node:internal/timers')
  check('/usr/src/svc/src/foundation/lib/size.ts', 'src/foundation/lib/size.ts')
  check('file:///home/a%20b/svc/src/main.ts', 'src/main.ts')
  check('../src/foundation/lib/size.ts', 'src/foundation/lib/size.ts')
  check('src/main.ts', 'src/main.ts')
  check('../node_modules/yaml/src/x.js', 'node_modules/yaml/src/x.js')
  check('/opt/svc/dist/svc.cjs', 'svc.cjs')
  check('file:///tmp/%zz/run.cjs', 'run.cjs')
})

test('frames show the sources, the bundler’s numbers taken off where the map says so', () => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-frames-'))
  try {
    const script = join(directory, 'out.cjs')
    const [bare, broken] = [join(directory, 'bare.cjs'), join(directory, 'broken.cjs')]
    const map = { version: 3, sources: ['../src/foundation/lib/a.ts'], names: ['read'], mappings: 'AASAA' }
    writeFileSync(`${script}.map`, JSON.stringify(map))
    writeFileSync(`${broken}.map`, '{')
    const frames = codeFrames([
      place('read2', script, 0),
      place('', `file://${script}`, 0),
      place('reader2', script, 0),
      place('late', script, 5), // not mapped
      place('plain', bare, 6),
      place('', broken, 7),
      place('(program)', '', -1),
      place('', '', -1),
      { ...place('read3', bare, 9), functionStart: { lineNumber: 8, columnNumber: 0 } },
    ])
    assert.deepEqual(
      frames.map(({ name, file, line }) => `${name}|${file}|${line}`),
      [
        'read|src/foundation/lib/a.ts|10',
        '(anonymous src/foundation/lib/a.ts:10)|src/foundation/lib/a.ts|10',
        'reader2|src/foundation/lib/a.ts|10',
        'late|out.cjs|6',
        'plain|bare.cjs|7',
        '(anonymous broken.cjs:8)|broken.cjs|8',
        '(program)||0',
        '(anonymous)||0',
        'read3|bare.cjs|10',
      ],
    )
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})
