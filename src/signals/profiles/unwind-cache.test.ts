import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { crc32 } from 'node:zlib'
import { ElfFile } from '../../foundation/lib/elf/elf-file.ts'
import type { UnwindTable } from '../../foundation/model/unwind-table.ts'
import { UnwindCache } from './unwind-cache.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-unwind-cache-'))
const open: number[] = []
after(() => {
  for (const fd of open) closeSync(fd)
  rmSync(directory, { recursive: true })
})

function opened(path: string): ElfFile {
  const fd = openSync(path, 'r')
  open.push(fd)
  return ElfFile.of(fd)
}

function programWith(buildId: string): ElfFile {
  const path = join(directory, `program-${buildId}`)
  const flag = `-Wl,--build-id=${buildId === '' ? 'none' : `0x${buildId}`}`
  execFileSync('gcc', ['-shared', '-nostdlib', flag, '-o', path, '-xc', '/dev/null'])
  return opened(path)
}

let count = 0
function freshDirectory(): string {
  return join(directory, 'caches', String(count++))
}

const names = ['1'.repeat(40), '2'.repeat(40), '3'.repeat(40)] as const
const [first, second, third] = names.map(programWith) as [ElfFile, ElfFile, ElfFile]

/** Two pages, the second with one row; rules none and rsp + 8. */
const table: UnwindTable = {
  rows: Uint32Array.of(0, (0x1000 << 16) | 1, (0x2000 << 16) | 0, (0x10 << 16) | 1),
  pages: Uint32Array.of(0, 3, 4),
  rules: Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0xf0, 0xff, 8, 0, 0, 0),
  unsupported: 0,
}

test('a table is kept for a later run, and for nobody else to read', () => {
  const at = freshDirectory()
  const cache = new UnwindCache(at)
  assert.equal(cache.read(first), undefined)
  cache.write(first, table)
  assert.equal(cache.fault, undefined)
  assert.deepEqual(new UnwindCache(at).read(first), table)
  assert.equal(cache.read(second), undefined)
  assert.deepEqual(readdirSync(at), [`${names[0]}.unwind`])
  assert.equal(statSync(at).mode & 0o777, 0o700)
  assert.equal(statSync(join(at, readdirSync(at)[0]!)).mode & 0o777, 0o600)
  // A later one takes its place.
  const other = { ...table, unsupported: 1 }
  cache.write(first, other)
  assert.deepEqual(cache.read(first), other)
})

test('a file without a build id, or with one that names too little, is not kept', () => {
  const at = freshDirectory()
  const cache = new UnwindCache(at)
  for (const buildId of ['', '0123']) {
    const elf = programWith(buildId)
    cache.write(elf, table)
    assert.equal(cache.read(elf), undefined)
  }
  assert.deepEqual(readdirSync(at), [])
})

test('another file with the same build id has no part in it', () => {
  const cache = new UnwindCache(freshDirectory())
  cache.write(first, table)
  // The same to its first and last 4 KiB and its length, and with other rules between them.
  const path = join(directory, 'whole')
  const source = 'char data[65536] = { 1 }; int f(int a) { return a; }'
  execFileSync('gcc', ['-shared', '-nostdlib', `-Wl,--build-id=0x${names[0]}`, '-o', path, '-xc', '-'], {
    input: source,
  })
  const whole = opened(path)
  cache.write(whole, table)
  assert.deepEqual(cache.read(whole), table)
  const bytes = readFileSync(path)
  const { offset, size } = whole.section('.eh_frame')!
  assert.ok(offset > 4096 && offset + size < bytes.length - 4096)
  bytes[offset + size - 5]! ^= 1
  writeFileSync(join(directory, 'changed'), bytes)
  const changed = opened(join(directory, 'changed'))
  assert.deepEqual([changed.buildId, changed.htlHash()], [whole.buildId, whole.htlHash()])
  assert.equal(cache.read(changed), undefined)
})

test('what was used longest ago goes first', () => {
  const at = freshDirectory()
  const [one] = ((cache: UnwindCache) => {
    cache.write(first, table)
    return readdirSync(at)
  })(new UnwindCache(at))
  const { size } = statSync(join(at, one!))
  const cache = new UnwindCache(at, 2 * size)
  cache.write(second, table)
  const isThere = () => names.map(name => readdirSync(at).includes(`${name}.unwind`))
  const age = (name: string, seconds: number) => utimesSync(join(at, `${name}.unwind`), seconds, seconds)
  age(names[0], 1000)
  age(names[1], 2000)
  assert.ok(cache.read(first))
  cache.write(third, table)
  assert.deepEqual(isThere(), [true, false, true])
  // What an earlier run did not finish goes as well, and what never fits is not kept.
  writeFileSync(join(at, `${names[1]}.unwind.123.new`), 'half')
  cache.write(third, table)
  assert.equal(readdirSync(at).length, 2)
  new UnwindCache(at, size - 1).write(second, table)
  assert.deepEqual(isThere(), [true, false, true])
})

test('whatever is wrong with a kept table, it is as if it were not there', () => {
  const at = freshDirectory()
  const cache = new UnwindCache(at)
  cache.write(first, table)
  const path = join(at, readdirSync(at)[0]!)
  const whole = readFileSync(path)
  const check = (bytes: Buffer, want: UnwindTable | undefined, what: string) => {
    writeFileSync(path, bytes)
    assert.deepEqual(cache.read(first), want, what)
  }
  for (let at = 0; at < whole.length; at++) {
    const changed = Buffer.from(whole)
    changed[at]! ^= 0x41
    check(changed, undefined, `byte ${at}`)
    check(whole.subarray(0, at), undefined, `cut at ${at}`)
  }
  check(Buffer.concat([whole, Buffer.alloc(8)]), undefined, 'more bytes')
  check(Buffer.alloc(100_000_000), undefined, 'too large')
  check(whole, table, 'unchanged')

  // Written by somebody who knows how: the sum is right and the contents are not.
  const checkTable = (wrong: Partial<UnwindTable>, what: string) => {
    cache.write(first, { ...table, ...wrong })
    assert.equal(cache.read(first), undefined, what)
  }
  checkTable({ rows: table.rows.with(1, (0x3000 << 16) | 1) }, 'rows that do not ascend')
  checkTable({ rows: table.rows.with(3, 2) }, 'a rule that is not there')
  checkTable({ pages: Uint32Array.of(0, 5, 4) }, 'a page beyond the rows')
  checkTable({ pages: Uint32Array.of(0, 3, 3) }, 'rows beyond the pages')
  checkTable({ pages: Uint32Array.of(1, 3, 4) }, 'rows before the pages')
  checkTable({ pages: Uint32Array.of(0) }, 'no pages')
  checkTable({ rules: table.rules.with(8, 10) }, 'a rule of no kind')
  checkTable({ rules: table.rules.with(9, 4) }, 'a rule of no kind for rbp')
  checkTable({ rules: table.rules.subarray(0, 12) }, 'half a rule')
  checkTable({ unsupported: 5 }, 'more unsupported rows than rows')
  const counts = Buffer.from(whole)
  counts.writeUInt32LE(0xffffffff, 12)
  counts.writeUInt32LE(crc32(counts.subarray(12)), 8)
  check(counts, undefined, 'more rows than bytes')
  cache.write(first, table)
  assert.deepEqual(cache.read(first), table)
})

test('a directory that others may write to, or that is none, is not used, and the reason is told', () => {
  const check = (at: string, why: RegExp) => {
    const cache = new UnwindCache(at)
    assert.match(cache.fault ?? '', why)
    cache.write(first, table)
    assert.match(cache.fault ?? '', why)
    assert.equal(cache.read(first), undefined)
  }
  const shared = freshDirectory()
  mkdirSync(shared, { recursive: true })
  chmodSync(shared, 0o777)
  check(shared, /^cannot use the directory .*: any user may write to .*; chmod o-w /)
  assert.deepEqual(readdirSync(shared), [])
  const file = freshDirectory()
  copyFileSync('/bin/true', file)
  check(file, /cannot use the directory/)
  const link = freshDirectory()
  symlinkSync(shared, link)
  check(link, /cannot use the directory/)
})

test('a directory that goes away is told when the next table is kept', () => {
  const at = freshDirectory()
  const cache = new UnwindCache(at)
  rmSync(at, { recursive: true })
  cache.write(first, table)
  assert.match(cache.fault ?? '', /^cannot write to the directory .*ENOENT/)
  mkdirSync(at)
  cache.write(first, table)
  assert.equal(cache.fault, undefined)
  assert.deepEqual(cache.read(first), table)
})
