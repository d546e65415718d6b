import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { after } from 'node:test'
import { ElfFile } from '../../../foundation/lib/elf/elf-file.ts'
import { FileSymbols } from './file-symbols.ts'
import { SymbolCache } from './symbol-cache.ts'

const scratch = mkdtempSync(join(tmpdir(), 'svc-symbol-cache-'))
after(() => rmSync(scratch, { recursive: true }))

const program = join(scratch, 'program')
writeFileSync(join(scratch, 'a.c'), 'int main(void) { return 0; }')
execFileSync('gcc', ['-o', program, join(scratch, 'a.c')])

const fd = openSync(program, 'r')
const wanted = { path: program, buildId: ElfFile.of(fd).buildId }
closeSync(fd)

const options = { demangle: true, debugDirs: [], cacheBytes: 1 << 20 }
const openFiles = () => readdirSync('/proc/self/fd').length

test('the files used last are kept within the bytes that are allowed, and the others closed', () => {
  const cache = new SymbolCache({ ...options, cacheBytes: 100_000 })
  const before = openFiles()
  for (let id = 1; id <= 20; id++) {
    assert.ok(cache.of(id, wanted, () => program) instanceof FileSymbols)
    cache.of(1, wanted, () => program)
    assert.ok(cache.bytes <= 100_000)
  }
  assert.ok(cache.files >= 2 && cache.files < 20)
  assert.equal(openFiles() - before, cache.files)
  const first = cache.of(1, wanted, () => assert.fail('it is kept'))
  assert.ok(first instanceof FileSymbols)
  cache.close()
  assert.deepEqual([cache.files, cache.bytes, openFiles()], [0, 0, before])
})

test('at most 64 files are open', () => {
  const cache = new SymbolCache({ ...options, cacheBytes: 1 << 30 })
  for (let id = 1; id <= 80; id++) cache.of(id, wanted, () => program)
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
    cache.of(1, { path: '/x/lib.so', buildId: '' }, () => join(scratch, 'none')),
    '[lib.so: cannot open: no such file or directory]',
  )
  assert.equal(
    cache.of(1, { path: '/x/a.c', buildId: '' }, () => join(scratch, 'a.c')),
    '[a.c: the file is cut off]',
  )
  assert.equal(
    cache.of(1, { path: '/x/\n]dir (deleted)', buildId: '' }, () => scratch),
    '[?]dir: not a regular file]',
  )
  assert.deepEqual([cache.files, openFiles()], [0, before])
  assert.ok(cache.of(1, wanted, () => program) instanceof FileSymbols)
  cache.close()
})

test('another file at the path is not taken for the one that is meant, and a process that ended has none', () => {
  const cache = new SymbolCache(options)
  const before = openFiles()
  assert.equal(
    cache.of(1, { path: '/x/lib.so', buildId: 'ab' }, () => program),
    '[lib.so: replaced by another file]',
  )
  assert.equal(
    cache.of(1, wanted, () => undefined),
    '[process ended before it was read]',
  )
  assert.deepEqual([cache.files, openFiles()], [0, before])
})

test('a file that was not asked for in a minute is closed', context => {
  let now = 1000
  context.mock.method(performance, 'now', () => now)
  const cache = new SymbolCache(options)
  const before = openFiles()
  cache.of(1, wanted, () => program)
  cache.of(2, wanted, () => program)
  now += 50_000
  cache.of(2, wanted, () => program)
  now += 20_000
  cache.closeIdle()
  assert.deepEqual([cache.files, openFiles() - before], [1, 1])
  cache.close()
})

test('a file without a build id is known again, and another one in its place is not taken for it', () => {
  const cache = new SymbolCache(options)
  const paths = ['one', 'two'].map(name => {
    const path = join(scratch, name)
    execFileSync('gcc', ['-Wl,--build-id=none', '-o', path, '-xc', '-'], {
      input: `int ${name}(void) { return 1; } int main(void) { return ${name}(); }`,
    })
    return path
  })
  const file = { path: '/x/app', buildId: '' }
  assert.ok(cache.of(1, file, () => paths[0]) instanceof FileSymbols)
  cache.configure(options)
  assert.equal(
    cache.of(1, file, () => paths[1]),
    '[app: replaced by another file]',
  )
  assert.ok(cache.of(1, file, () => paths[0]) instanceof FileSymbols)
  cache.forget(1)
  assert.ok(cache.of(1, file, () => paths[1]) instanceof FileSymbols)
  cache.close()
})
