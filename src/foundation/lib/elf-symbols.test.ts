import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { soak } from '../../../test/helpers/soak.ts'
import { readElfSymbols } from './elf-symbols.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-elf-'))
after(() => rmSync(directory, { recursive: true }))

const source = `
  int first(int a) { return a + 1; }
  int of_first_and_other_first(int a) { return a - 1; }
  static int hidden(int a) { return a * 3; }
  int (*table[])(int) = { hidden };
  int variable = 5;
  extern int elsewhere(int);
  int calls(int a) { return elsewhere(a); }
`

function build(name: string, ...flags: string[]): string {
  const path = join(directory, name)
  writeFileSync(join(directory, 'code.c'), source)
  execFileSync('gcc', ['-O1', '-fno-inline', ...flags, '-o', path, join(directory, 'code.c')])
  return path
}

const library = build('libcode.so', '-shared', '-fPIC', '-Wl,--build-id=0x0123456789abcdef')

/** As readelf shows it: address by name. */
function addresses(path: string): Map<string, number> {
  const lines = execFileSync('readelf', ['-Ws', path], { encoding: 'utf8' }).split('\n')
  const fields = lines.map(line => line.trim().split(/\s+/)).filter(each => each[3] === 'FUNC')
  return new Map(fields.map(each => [each[7]!.split('@')[0]!, Number.parseInt(each[1]!, 16)]))
}

const names = ['first', 'hidden', 'variable', 'elsewhere', 'nothing', 'other_first']

test('functions are found by name, with what stands at their place in the file', async () => {
  const { functions, machine, buildId, identity } = await readElfSymbols(library, names)
  assert.equal(buildId, '0123456789abcdef')
  assert.match(identity, /^\d+:\d+$/)
  assert.equal(machine, process.arch)
  // Names that are no functions, not defined here, or the end of another name are not found.
  assert.deepEqual([...functions.keys()], ['first'])
  const { offset, size, start } = functions.get('first')!
  const bytes = readFileSync(library)
  assert.ok(bytes.subarray(offset, offset + start.length).equals(start))
  assert.equal(start.length, 16)
  assert.ok(size > 0 && size < 200)
})

test('where the dynamic symbols have none of the names the others are looked at', async () => {
  const { functions } = await readElfSymbols(library, ['hidden'])
  assert.deepEqual([...functions.keys()], ['hidden'])
  const stripped = join(directory, 'stripped.so')
  execFileSync('strip', ['-s', '-o', stripped, library])
  assert.equal((await readElfSymbols(stripped, ['hidden'])).functions.size, 0)
  assert.equal((await readElfSymbols(stripped, ['first'])).functions.size, 1)
})

test('a program that is not at address 0 has its offsets in the file', async () => {
  const program = build(
    'program',
    '-no-pie',
    '-nostdlib',
    '-Wl,-e,first',
    '-Wl,--unresolved-symbols=ignore-all',
  )
  const { functions } = await readElfSymbols(program, ['first'])
  const address = addresses(program).get('first')!
  const { offset, start } = functions.get('first')!
  assert.notEqual(offset, address)
  assert.ok(
    readFileSync(program)
      .subarray(offset, offset + start.length)
      .equals(start),
  )
})

test('a large program is read whole: this one has OpenSSL inside', async () => {
  const wanted = ['SSL_read', 'SSL_write', 'SSL_free', 'SSL_nothing']
  const { functions } = await readElfSymbols(process.execPath, wanted)
  assert.deepEqual([...functions.keys()].sort(), wanted.slice(0, 3).sort())
})

test('what is no ELF file of this kind is an error', async () => {
  const check = async (bytes: Buffer | string, what: RegExp) => {
    const path = join(directory, 'other')
    writeFileSync(path, bytes)
    await assert.rejects(readElfSymbols(path, names), what)
  }
  await check('', /cut off/)
  await check('#!/bin/sh\n'.repeat(10), /not a 64-bit ELF/)
  const whole = readFileSync(library)
  const changed = (at: number, value: number) => {
    const bytes = Buffer.from(whole)
    bytes[at] = value
    return bytes
  }
  await check(changed(4, 1), /not a 64-bit ELF/) // 32 bits
  await check(changed(5, 2), /not a 64-bit ELF/) // big-endian
  await check(changed(18, 8), /not a 64-bit ELF/) // MIPS
  await check(changed(58, 32), /headers/) // sections of another size
  await check(whole.subarray(0, whole.length - 100), /cut off/)
  await assert.rejects(readElfSymbols(directory, names), /not a regular file|EISDIR/)
  await assert.rejects(readElfSymbols(join(directory, 'none'), names), { code: 'ENOENT' })
})

test('whatever the bytes say, reading ends, and finds nothing outside of the file', async () => {
  const whole = readFileSync(library)
  const path = join(directory, 'mutated')
  const rounds = soak ? 20_000 : 400
  let seed = 7
  const random = (below: number) => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
    return Math.floor((seed / 2 ** 32) * below)
  }
  for (let round = 0; round < rounds; round++) {
    const bytes = Buffer.from(whole)
    const tables = Number(bytes.readBigUInt64LE(40))
    for (let i = 0; i < 4; i++) {
      // Half of the changes are in headers, where they matter.
      const at = random(2)
        ? random(64)
        : random(2)
          ? tables + random(bytes.length - tables)
          : random(bytes.length)
      bytes[at] = random(256)
    }
    writeFileSync(path, bytes)
    try {
      const { functions } = await readElfSymbols(path, names)
      for (const { offset, start } of functions.values()) assert.ok(offset + start.length <= bytes.length)
    } catch (error) {
      assert.match(String(error), /cut off|not a 64-bit ELF|headers/)
    }
  }
})
