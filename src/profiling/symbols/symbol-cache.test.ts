import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { after } from 'node:test'
import { FileSymbols } from './file-symbols.ts'
import { SymbolCache } from './symbol-cache.ts'

const scratch = mkdtempSync(join(tmpdir(), 'svc-symbol-cache-'))
after(() => rmSync(scratch, { recursive: true }))

const program = join(scratch, 'program')
writeFileSync(join(scratch, 'a.c'), 'int main(void) { return 0; }')
execFileSync('gcc', ['-o', program, join(scratch, 'a.c')])

const options = { demangle: true, debugDirs: [], cacheBytes: 1 << 20 }
const openFiles = () => readdirSync('/proc/self/fd').length

test('the files used last are kept within the bytes that are allowed, and the others closed', () => {
  const cache = new SymbolCache({ ...options, cacheBytes: 100_000 })
  const before = openFiles()
  for (let id = 1; id <= 20; id++) {
    assert.ok(cache.of(id, program, () => program) instanceof FileSymbols)
    cache.of(1, program, () => program)
    assert.ok(cache.bytes <= 100_000)
  }
  assert.ok(cache.files >= 2 && cache.files < 20)
  assert.equal(openFiles() - before, cache.files)
  const first = cache.of(1, program, () => assert.fail('it is kept'))
  assert.ok(first instanceof FileSymbols)
  cache.close()
  assert.deepEqual([cache.files, cache.bytes, openFiles()], [0, 0, before])
})

test('at most 64 files are open', () => {
  const cache = new SymbolCache({ ...options, cacheBytes: 1 << 30 })
  for (let id = 1; id <= 80; id++) cache.of(id, program, () => program)
  assert.equal(cache.files, 64)
  cache.forget(80)
  cache.forget(80)
  assert.equal(cache.files, 63)
  cache.close()
})

test('a file that cannot be read says why, and is opened again when it is asked for again', () => {
  const cache = new SymbolCache(options)
  const before = openFiles()
  assert.equal(
    cache.of(1, '/x/lib.so', () => join(scratch, 'none')),
    '[lib.so: cannot be opened: no such file or directory]',
  )
  assert.equal(
    cache.of(1, '/x/a.c', () => join(scratch, 'a.c')),
    '[a.c: the file is cut off]',
  )
  assert.equal(
    cache.of(1, '/x/\n]dir (deleted)', () => scratch),
    '[?]dir: it is no file]',
  )
  assert.deepEqual([cache.files, openFiles()], [0, before])
  assert.ok(cache.of(1, program, () => program) instanceof FileSymbols)
  cache.close()
})
