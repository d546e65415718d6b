import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { build } from 'esbuild'
import { originalPlaces } from './source-map.ts'

test('a real map gives what Node.js finds in it, in whatever order one asks', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-map-'))
  try {
    const outfile = join(directory, 'out.cjs')
    await build({
      entryPoints: [join(import.meta.dirname, 'runtime-profiler.ts')],
      outfile,
      bundle: true,
      platform: 'node',
      minify: true,
      lineLimit: 200,
      sourcemap: true,
      logLevel: 'silent',
      format: 'cjs',
    })
    const text = readFileSync(`${outfile}.map`, 'utf8')
    const lines = readFileSync(outfile, 'utf8').split('\n')
    const places = lines.flatMap((content, line) =>
      [0, 1, 7, 40, 41, content.length - 1].map(column => ({ line, column: Math.max(0, column) })),
    )
    places.reverse()
    const referee = new SourceMap(JSON.parse(text))
    let mapped = 0
    for (const [index, found] of originalPlaces(text, places).entries()) {
      const { line, column } = places[index]!
      const want = referee.findEntry(line, column)
      if (!('originalSource' in want) || want.generatedLine !== line) assert.equal(found, undefined)
      else {
        assert.equal(found?.source, want.originalSource, `${line}:${column}`)
        assert.equal(found.line, want.originalLine, `${line}:${column}`)
        mapped++
      }
    }
    assert.ok(mapped > lines.length, `${mapped} of ${places.length}`)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})

const map = (mappings: string) => JSON.stringify({ version: 3, sources: ['a.ts'], names: ['one'], mappings })
/** File, line and name of a place on the first line. */
const at = (mappings: string, column: number, line = 0) => {
  const [found] = originalPlaces(map(mappings), [{ line, column }])
  return found && `${found.source}:${found.line} ${found.names.join()}`
}

test('a place belongs to the mapping before it on its own line', () => {
  const check = (mappings: string, column: number, want: string | undefined, line?: number) =>
    assert.equal(at(mappings, column, line), want, `${mappings} ${column}`)
  check('', 0, undefined)
  check('EAAA', 1, undefined)
  check('EAAA', 2, 'a.ts:0 ')
  check('EAAAA,CACA', 2, 'a.ts:0 one')
  check('EAAAA,CACA', 3, 'a.ts:1 one') // the name right before
  check('EAAAA,CACA,CACA', 4, 'a.ts:2 ')
  check('EAAA,C', 3, undefined) // a mapping to nowhere
  check('EAAA;', 0, undefined, 1)
  check(';EAAA;CADA', 1, undefined, 2) // line -1 of the source is the map's mistake, not a crash
})

test('what is no map is refused, and what is malformed ends the search', () => {
  for (const text of ['', '{', '[]', 'null', '{"mappings":1}', '{"mappings":"AAAA"}'])
    assert.throws(() => originalPlaces(text, []), text)
  assert.equal(at('AAAA,!', 0), 'a.ts:0 ')
  assert.equal(at('AAAA,!;AAAA', 0, 1), undefined)
  for (const mappings of ['gggggggggggggggg', 'AA', 'AAAAAA', 'g', 'AAAA\u20ac', 'AAAg,'])
    assert.doesNotThrow(() => originalPlaces(map(mappings), [{ line: 0, column: 5 }]), mappings)
})
