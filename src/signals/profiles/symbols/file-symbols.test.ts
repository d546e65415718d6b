import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import test, { after } from 'node:test'
import { deflateSync } from 'node:zlib'
import { soak } from '../../../../test/helpers/soak.ts'
import { ElfFile } from '../../../foundation/lib/elf/elf-file.ts'
import { ElfError } from '../../../foundation/lib/elf/elf-format.ts'
import { Decoder } from '../../../kernel/decoder.ts'
import { FileSymbols } from './file-symbols.ts'
import { vdsoSymbols } from './vdso.ts'

const debugDir = '/usr/lib/debug'
const scratch = mkdtempSync(join(tmpdir(), 'svc-symbols-'))
const decoder = new Decoder()
after(() => {
  decoder.close()
  rmSync(scratch, { recursive: true })
})

function run(program: string, ...args: string[]): string {
  return execFileSync(program, args, { maxBuffer: 1 << 30, encoding: 'utf8' })
}

function withSymbols(
  path: string,
  debugDirs: readonly string[],
  use: (symbols: FileSymbols, elf: ElfFile) => void,
  demangle = false,
): void {
  const fd = openSync(path, 'r')
  const elf = ElfFile.of(fd)
  const symbols = FileSymbols.of(elf, path, { demangle, debugDirs }, (bytes, most) =>
    decoder.unpack(bytes, most, { file: '', owner: '' }),
  )
  try {
    use(symbols, elf)
  } finally {
    symbols.close()
    closeSync(fd)
  }
}

interface Listed {
  readonly address: number
  readonly size: number
  readonly name: string
}

/** Functions as nm tells them. */
function listed(...args: string[]): Listed[] {
  const lines = run('nm', '-S', '--defined-only', ...args).matchAll(
    /^([0-9a-f]+) ([0-9a-f]+) [tTwWi] ([^\s@]+)/gm,
  )
  return [...lines].map(([, address = '', size = '', name = '']) => ({
    address: Number.parseInt(address, 16),
    size: Number.parseInt(size, 16),
    name,
  }))
}

/** Each function is found at its first and last byte, by one of the names that nm has for what covers it. */
function checkAll(symbols: FileSymbols, elf: ElfFile, functions: readonly Listed[], most: number): number {
  const names = new Map<number, Set<string>>()
  for (const { address, name } of functions) names.set(address, (names.get(address) ?? new Set()).add(name))
  const stride = soak ? 1 : Math.max(1, Math.floor(functions.length / most))
  let checked = 0
  for (let i = 0; i < functions.length; i += stride) {
    const { address, size, name } = functions[i] as Listed
    const start = elf.offsetOf(address)
    if (start === undefined || !elf.isExecutableOffset(start)) continue
    for (const offset of [start, start + Math.max(0, size - 1)]) {
      const found = symbols.find(offset)
      assert.ok(found, `${name} at ${address.toString(16)}`)
      const at = elf.addressOf(found.start) as number
      // Functions may lie within others.
      assert.ok(at >= address && names.get(at)?.has(found.systemName), `${name}: ${found.systemName}`)
    }
    checked++
  }
  return checked
}

test('every function of Node.js is found at its first and last byte', { timeout: 120_000 }, () => {
  withSymbols(process.execPath, [], (symbols, elf) => {
    assert.equal(symbols.origin, 'symtab')
    const checked = checkAll(symbols, elf, listed(process.execPath), 2000)
    assert.ok(checked >= 1500)
    // 12 bytes for each, and what the file's headers take.
    assert.ok(symbols.bytes <= symbols.count * 12 + 32_768)
  })
})

test('what a library exports is found, stripped or with its debug file', () => {
  const libc = run('gcc', '-print-file-name=libc.so.6').trim()
  const functions = listed('-D', libc)
  for (const debugDirs of [[], [debugDir]])
    withSymbols(libc, debugDirs, (symbols, elf) => {
      assert.ok(checkAll(symbols, elf, functions, 1000) >= 500)
      const malloc = functions.find(({ name }) => name === 'malloc') as Listed
      assert.equal(symbols.find(elf.offsetOf(malloc.address) as number)?.name, 'malloc')
    })
})

const source = `
static __attribute__((noinline)) int hidden(int a) { return a * 3 + 1; }
__attribute__((noinline)) int shown(int a) { return hidden(a) + hidden(a + 1); }
static __attribute__((noinline)) int __plain(int a) { return a ^ 5; }
int plain(int a) __attribute__((alias("__plain")));
int main(int c, char **v) { return shown(c) + plain(c); }
`

/** A program, what nm says of it, and copies: without symbols, with a link to them, with some of them packed. */
const built = build()
function build() {
  const path = (name: string) => join(scratch, name)
  writeFileSync(path('a.c'), source)
  run('gcc', '-O1', '-rdynamic', '-Wl,--build-id', '-o', path('whole'), path('a.c'))
  run('strip', '-o', path('stripped'), path('whole'))
  run('objcopy', '--only-keep-debug', path('whole'), path('whole.debug'))
  writeFileSync(path('mini'), readFileSync(path('whole')))
  run('objcopy', '--only-keep-debug', path('mini'), path('mini.debug'))
  run('xz', '-k', path('mini.debug'))
  run('objcopy', `--add-section=.gnu_debugdata=${path('mini.debug.xz')}`, path('stripped'), path('packed'))
  return { functions: listed(path('whole')), path }
}
const addressOf = (name: string) => built.functions.find(found => found.name === name)?.address as number

test('names of other symbols of a place do not hide the one that people write', () => {
  withSymbols(built.path('whole'), [], (symbols, elf) => {
    const offset = elf.offsetOf(addressOf('plain')) as number
    assert.deepEqual(symbols.find(offset + 1), {
      name: 'plain',
      systemName: 'plain',
      type: 'native',
      isMangled: false,
      start: offset,
    })
  })
})

test('a stripped program names what it exports, and says of the rest that it is stripped', () => {
  withSymbols(built.path('stripped'), [], (symbols, elf) => {
    assert.equal(symbols.origin, 'dynsym')
    const hidden = elf.offsetOf(addressOf('hidden')) as number
    assert.equal(symbols.find(elf.offsetOf(addressOf('shown')) as number)?.name, 'shown')
    assert.equal(symbols.find(hidden), undefined)
    assert.equal(symbols.reason(hidden), '[stripped: stripped]')
    const plt = elf.section('.plt')?.offset as number
    assert.equal(symbols.reason(plt), '[stripped: procedure linkage table]')
    assert.equal(symbols.find(elf.size + 5), undefined)
  })
})

test('symbols come from a debug file, by build id or by the link to it', () => {
  const check = (path: string, debugDirs: string[], origin: string) =>
    withSymbols(path, debugDirs, (symbols, elf) => {
      assert.equal(symbols.origin, origin)
      const found = symbols.find(elf.offsetOf(addressOf('hidden')) as number)
      assert.equal(found?.name, origin === 'debug file' ? 'hidden' : undefined)
    })
  const byId = join(scratch, 'by-id')
  withSymbols(built.path('stripped'), [], (_, { buildId }) => {
    const folder = join(byId, '.build-id', buildId.slice(0, 2))
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, `${buildId.slice(2)}.debug`), readFileSync(built.path('whole.debug')))
  })
  check(built.path('stripped'), ['/nowhere', byId], 'debug file')

  const byLink = join(scratch, 'by-link')
  const linked = built.path('linked')
  run('objcopy', '--remove-section=.note.gnu.build-id', built.path('stripped'), linked)
  run('objcopy', `--add-gnu-debuglink=${built.path('whole.debug')}`, linked)
  const target = join(byLink, dirname(linked), 'whole.debug')
  mkdirSync(dirname(target), { recursive: true })
  writeFileSync(target, readFileSync(built.path('whole.debug')))
  check(linked, [byLink], 'debug file')
  // Another build's.
  writeFileSync(target, Buffer.concat([readFileSync(built.path('whole.debug')), Buffer.from('x')]))
  check(linked, [byLink], 'dynsym')
})

test('symbols that are packed into the program are unpacked', () => {
  withSymbols(built.path('packed'), [], (symbols, elf) => {
    assert.equal(symbols.origin, 'gnu_debugdata')
    assert.equal(symbols.find(elf.offsetOf(addressOf('hidden')) as number)?.name, 'hidden')
    assert.equal(symbols.find(elf.offsetOf(addressOf('shown')) as number)?.name, 'shown')
  })
  writeFileSync(built.path('noise'), 'not what xz makes')
  const broken = built.path('broken')
  run('objcopy', `--add-section=.gnu_debugdata=${built.path('noise')}`, built.path('stripped'), broken)
  withSymbols(broken, [], (symbols, elf) => {
    assert.equal(symbols.origin, 'dynsym')
    assert.match(
      symbols.reason(elf.offsetOf(addressOf('hidden')) as number),
      /^\[broken: has only \.gnu_debugdata: /,
    )
  })
})

test('a section of symbols that the program compresses by zlib as well is not unpacked', () => {
  const xz = readFileSync(built.path('mini.debug.xz'))
  // `Elf64_Chdr` of zlib, as a loader of debug information would take it.
  const header = Buffer.alloc(24)
  header.writeUInt32LE(1, 0)
  header.writeBigUInt64LE(BigInt(xz.length), 8)
  writeFileSync(built.path('deflated'), Buffer.concat([header, deflateSync(xz)]))
  const twice = built.path('twice')
  run('objcopy', `--add-section=.gnu_debugdata=${built.path('deflated')}`, built.path('stripped'), twice)
  const bytes = readFileSync(twice)
  withSymbols(twice, [], (_, { sections }) => {
    const index = sections.findIndex(({ name }) => name === '.gnu_debugdata')
    bytes.writeBigUInt64LE(0x800n, Number(bytes.readBigUInt64LE(40)) + 64 * index + 8)
  })
  writeFileSync(twice, bytes)
  withSymbols(twice, [], (symbols, elf) => {
    assert.equal(symbols.origin, 'dynsym')
    const hidden = elf.offsetOf(addressOf('hidden')) as number
    assert.equal(symbols.reason(hidden), '[twice: its section .gnu_debugdata is compressed]')
  })
})

test('a table that cannot be read leaves what is exported', () => {
  const bytes = readFileSync(built.path('whole'))
  const tables = bytes.readUInt32LE(40)
  for (let at = tables; at + 64 <= bytes.length; at += 64)
    // Behind the end of the file.
    if (bytes.readUInt32LE(at + 4) === 2) bytes.writeUInt32LE(0x7fff_0000, at + 24)
  writeFileSync(built.path('torn'), bytes)
  withSymbols(built.path('torn'), [], (symbols, elf) => {
    assert.equal(symbols.origin, 'dynsym')
    assert.equal(symbols.find(elf.offsetOf(addressOf('shown')) as number)?.name, 'shown')
    const hidden = elf.offsetOf(addressOf('hidden')) as number
    assert.equal(symbols.find(hidden) ?? symbols.reason(hidden), '[torn: the file is cut off]')
  })
})

const goSource = `package main

import "fmt"

type shape struct{ side int }

//go:noinline
func (s *shape) area() int { return s.side * s.side }

//go:noinline
func apply(f func(int) int) int { return f(3) }

func main() {
	s := &shape{2}
	fmt.Println(s.area(), apply(func(a int) int { return a + s.side }))
}
`

/** Builds for a mode of its own take 20 seconds, because Go has its library for the usual one only. */
test('functions of Go are those that Go knows, stripped or not', { timeout: 300_000 }, () => {
  for (const mode of soak ? ['exe', 'pie'] : ['exe']) checkGo(mode)
})

function checkGo(mode: string): void {
  const folder = join(scratch, `go-${mode}`)
  mkdirSync(folder)
  writeFileSync(join(folder, 'main.go'), goSource)
  const env = { ...process.env, CGO_ENABLED: '0', GOCACHE: join(folder, 'cache'), GOFLAGS: '-mod=mod' }
  const go = (...args: string[]) =>
    execFileSync('go', args, { cwd: folder, env, maxBuffer: 1 << 28, encoding: 'utf8' })
  go('build', `-buildmode=${mode}`, '-o', 'whole', 'main.go')
  run('strip', '-o', join(folder, 'stripped'), join(folder, 'whole'))
  const functions = [...go('tool', 'nm', '-size', 'whole').matchAll(/^\s*([0-9a-f]+)\s+(\d+) [tT] (\S+)$/gm)]
  assert.ok(functions.length > 1000)
  for (const name of ['whole', 'stripped'])
    withSymbols(join(folder, name), [], (symbols, elf) => {
      let checked = 0
      for (const [, address = '', size = '', listed = ''] of functions) {
        // Its own table has no calling conventions, and leaves out what stands in brackets.
        const symbol = listed.replace(/\.abi(0|internal)$/, '').replace(/\[.*\]/, '[...]')
        if (/^(runtime|go)\.e?text$|^_rt0_/.test(symbol) || size === '0') continue
        const start = elf.offsetOf(Number.parseInt(address, 16)) as number
        for (const offset of [start, start + Number(size) - 1]) {
          const found = symbols.find(offset)
          assert.deepEqual([found?.name, found?.type, found?.start], [symbol, 'go', start])
        }
        checked++
      }
      assert.ok(checked > 1000)
      assert.ok(functions.some(([, , , symbol]) => symbol === 'main.(*shape).area'))
      if (name === 'stripped') assert.ok(symbols.count < 10)
    })
}

/** The table of a program with two functions, as Go's linker wrote it before 1.16, in 1.16 and since 1.18. */
function goTable(magic: number, [first, second, end]: readonly [number, number, number]): Buffer {
  const names = Buffer.from('main.first\0main.second\0')
  const bytes = Buffer.alloc(512)
  const word = (at: number, value: number) => bytes.writeBigUInt64LE(BigInt(value), at)
  bytes.writeUInt32LE(magic, 0)
  bytes.set([0, 0, 1, 8], 4)
  word(8, 2)
  const isOld = magic === 0xfffffffb
  const width = magic === 0xfffffff0 ? 4 : 8
  const number = (at: number, value: number) =>
    width === 8 ? word(at, value) : bytes.writeUInt32LE(value, at)
  const base = width === 4 ? first : 0
  if (width === 4)
    for (const [index, value] of [first, 400, 0, 0, 0, 128].entries()) word(24 + 8 * index, value)
  else if (!isOld) for (const [index, value] of [400, 0, 0, 0, 128].entries()) word(24 + 8 * index, value)
  const table = isOld ? 16 : 128
  const origin = isOld ? 0 : 128
  const entries = [first, 100, second, 140, end]
  for (const [index, value] of entries.entries())
    number(table + index * width, index % 2 === 0 ? value - base : value)
  const namesAt = isOld ? 400 : 0
  for (const [at, start, name] of [
    [origin + 100, first, namesAt],
    [origin + 140, second, namesAt + 11],
  ] as const) {
    number(at, start - base)
    bytes.writeInt32LE(name, at + width)
  }
  names.copy(bytes, 400)
  return bytes
}

test('tables of older versions of Go are read', () => {
  const [first, second] = [addressOf('hidden'), addressOf('shown')].sort((a, b) => a - b) as [number, number]
  for (const magic of [0xfffffffb, 0xfffffffa, 0xfffffff0]) {
    writeFileSync(built.path('table'), goTable(magic, [first, second, second + 8]))
    const path = built.path(`go-${magic.toString(16)}`)
    run('objcopy', `--add-section=.gopclntab=${built.path('table')}`, built.path('stripped'), path)
    withSymbols(path, [], (symbols, elf) => {
      const found = (address: number) => symbols.find(elf.offsetOf(address) as number)
      const goName = (address: number) => (found(address)?.type === 'go' ? found(address)?.name : undefined)
      assert.deepEqual([first - 1, first, second - 1, second, second + 7, second + 8].map(goName), [
        undefined,
        'main.first',
        'main.first',
        'main.second',
        'main.second',
        undefined,
      ])
    })
  }
})

test('functions of the vDSO are named', () => {
  const symbols = vdsoSymbols()
  assert.ok(symbols)
  const names = new Set<string>()
  for (let offset = 0; offset < 8192; offset += 16) names.add(symbols.find(offset)?.name ?? '')
  assert.ok(
    names.has('clock_gettime') || names.has('__vdso_clock_gettime') || names.has('__kernel_clock_gettime'),
  )
})

test('files that are broken on purpose give names, reasons or a fault of the file', {
  timeout: 120_000,
}, () => {
  const original = readFileSync(built.path('whole'))
  const path = built.path('mutant')
  let seed = 7
  const below = (limit: number) => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0
    return (seed >>> 8) % limit
  }
  for (let i = 0; i < (soak ? 5000 : 300); i++) {
    const bytes = Buffer.from(original)
    const tables = original.readUInt32LE(40)
    for (let k = below(8); k >= 0; k--) {
      const at = below(2) === 0 ? below(bytes.length) : tables + below(bytes.length - tables)
      bytes[at] = below(3) === 0 ? 0xff : below(256)
    }
    writeFileSync(path, below(5) === 0 ? bytes.subarray(0, below(bytes.length)) : bytes)
    try {
      withSymbols(path, [], (symbols, elf) => {
        for (let offset = 0; offset < elf.size; offset += 97)
          if (symbols.find(offset) === undefined) assert.match(symbols.reason(offset), /^\[mutant: .*\]$/)
      })
    } catch (error) {
      assert.ok(error instanceof ElfError, String(error))
    }
  }
})

test('files that others made are read, too', () => {
  for (const path of ['/bin/bash', '/usr/bin/python3', 'libstdc++.so.6'].map(name =>
    name.startsWith('/') ? realpathSync(name) : run('gcc', `-print-file-name=${name}`).trim(),
  ))
    withSymbols(path, [], (symbols, elf) => {
      assert.ok(checkAll(symbols, elf, listed('-D', path), 500) >= 400, path)
    })
})

test('stubs of the linker do not have the name of the label before them', () => {
  const path = join(scratch, 'stubs')
  execFileSync('gcc', ['-Wl,-z,lazy', '-fcf-protection=none', '-o', path, '-xc', '-'], {
    input: '#include <stdio.h>\nint main(int n, char **v) { puts(v[0]); return n; }',
  })
  withSymbols(path, [], (symbols, elf) => {
    const { offset, size } = elf.section('.plt')!
    assert.ok(size >= 32)
    for (const at of [offset, offset + 16, offset + size - 1]) {
      assert.equal(symbols.find(at), undefined)
      assert.equal(symbols.reason(at), '[stubs: procedure linkage table]')
    }
    assert.equal(symbols.find(elf.section('.init')!.offset)?.name, '_init')
  })
})
