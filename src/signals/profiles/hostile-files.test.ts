import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, ftruncateSync, mkdtempSync, openSync, readdirSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { collectGarbage } from '../../../test/helpers/heap.ts'
import { ElfFile } from '../../foundation/lib/elf/elf-file.ts'
import { ElfError, sectionType } from '../../foundation/lib/elf/elf-format.ts'
import { readElfSymbols } from '../../foundation/lib/elf-symbols.ts'
import { Decoder } from '../../kernel/decoder.ts'
import { buildUnwindTable, unwindDigest } from './eh-frame.ts'
import { FileSymbols } from './symbols/file-symbols.ts'
import { runtimes } from './unwinders/index.ts'

const scratch = mkdtempSync(join(tmpdir(), 'svc-hostile-'))
const decoder = new Decoder()
after(() => {
  decoder.close()
  rmSync(scratch, { recursive: true })
})
let files = 0
/** Each is another's file. */
const unpack = (bytes: Uint8Array, most: number) =>
  decoder.unpack(bytes, most, { file: String(files++), owner: String(files) })
const path = join(scratch, 'file')

interface Part {
  readonly type: number
  readonly name?: string
  readonly offset: number
  readonly size: number
  readonly link?: number
}

const headers = 2 ** 18
const names = '\0.eh_frame\0.gnu_debugdata\0.gopclntab\0.text\0'

/** A program of 1 MiB of code, or as long as it says, with these sections; their names are those of the first. */
function write(
  parts: readonly Part[],
  contents: readonly (readonly [number, Buffer])[] = [],
  size = 2 ** 20,
): void {
  const head = Buffer.alloc(headers)
  head.write('7f454c46020101', 'hex')
  const u16 = { 16: 3, 18: 62, 54: 56, 56: 1, 58: 64, 60: parts.length + 1, 62: 0 }
  for (const [at, value] of Object.entries(u16)) head.writeUInt16LE(value, Number(at))
  head.writeBigUInt64LE(64n, 32)
  head.writeBigUInt64LE(4096n, 40)
  head.writeUInt32LE(1, 64)
  head.writeUInt32LE(5, 68)
  head.writeBigUInt64LE(BigInt(size), 64 + 32)
  head.writeBigUInt64LE(BigInt(size), 64 + 40)
  const all: Part[] = [{ type: 3, offset: 1024, size: names.length }, ...parts]
  head.write(names, 1024, 'latin1')
  all.forEach(({ type, name = '', offset, size, link = 0 }, index) => {
    const at = 4096 + 64 * index
    head.writeUInt32LE(Math.max(0, names.indexOf(name)), at)
    head.writeUInt32LE(type, at + 4)
    head.writeBigUInt64LE(BigInt(offset), at + 24)
    head.writeBigUInt64LE(BigInt(size), at + 32)
    head.writeUInt32LE(link, at + 40)
    head.writeBigUInt64LE(24n, at + 56)
  })
  const fd = openSync(path, 'w')
  writeSync(fd, head)
  for (const [at, bytes] of contents) writeSync(fd, bytes, 0, bytes.length, at)
  ftruncateSync(fd, size)
  closeSync(fd)
}

function attempt(read: () => unknown): void {
  try {
    read()
  } catch (error) {
    if (!(error instanceof ElfError)) throw error
  }
}

/** All that the worker does with a file. */
function readAll(): void {
  const fd = openSync(path, 'r')
  attempt(() => {
    const elf = ElfFile.of(fd)
    attempt(() => buildUnwindTable(elf))
    attempt(() => unwindDigest(elf))
    for (const unit of runtimes) attempt(() => unit.recognise(elf, path))
    const symbols = FileSymbols.of(elf, path, { demangle: true, debugDirs: [] }, unpack)
    for (const offset of [0, 4096, 2 ** 19]) assert.ok(symbols.find(offset) ?? symbols.reason(offset))
    const held = readdirSync('/proc/self/fd').length
    symbols.close()
    assert.ok(held - readdirSync('/proc/self/fd').length <= 1)
    if (symbols.origin === 'none') assert.ok(symbols.bytes < 2 ** 20)
  })
  closeSync(fd)
}

/** Processor seconds, which others on this host do not add to. */
function cost(run: () => void): number {
  const before = process.cpuUsage()
  run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1e6
}

const { symtab, dynsym } = sectionType
const place = headers
/** More than a reading takes on any host. One that begins anew with each name or table takes minutes. */
const mostSeconds = 30

test('a table of symbols that is larger than any is not read', () => {
  write([{ type: symtab, offset: place, size: 2 ** 39, link: 0 }], [], 2 ** 40)
  assert.ok(cost(readAll) < mostSeconds)
})

test('a thousand tables of the same bytes are one', async () => {
  const strings = { type: 3, offset: place, size: 2 ** 24 }
  const table = { type: dynsym, offset: place, size: 2 ** 24, link: 1 }
  const bytes = Buffer.concat([Buffer.from('v8dbg_x\0_PyRuntime\0SSL_write\0')])
  write([strings, ...Array.from({ length: 1000 }, () => table)], [[place, bytes]], 2 ** 25)
  assert.ok(cost(readAll) < mostSeconds)
  const before = process.cpuUsage().user
  assert.equal((await readElfSymbols(path, ['SSL_write'])).functions.size, 0)
  assert.ok(process.cpuUsage().user - before < mostSeconds * 1e6)
})

test('names without an end are not searched for one again and again', () => {
  const strings = { type: 3, offset: place, size: 2 ** 24 }
  write(
    [strings, { type: dynsym, offset: place, size: 240, link: 1 }],
    [[place, Buffer.alloc(2 ** 24, 'v8dbg_')]],
    2 ** 25,
  )
  assert.ok(cost(readAll) < mostSeconds)
})

test('what was packed and is no ELF file takes no memory', () => {
  const packed = execFileSync('xz', ['-c'], { input: Buffer.alloc(2 ** 24, 'x') })
  write([{ type: 1, name: '.gnu_debugdata', offset: place, size: packed.length }], [[place, packed]])
  const before = readdirSync('/proc/self/fd').length
  const fd = openSync(path, 'r')
  const symbols = FileSymbols.of(ElfFile.of(fd), path, { demangle: true, debugDirs: [] }, unpack)
  assert.equal(symbols.origin, 'none')
  assert.equal(readdirSync('/proc/self/fd').length, before + 1)
  symbols.close()
  closeSync(fd)
})

test('of 1,000 hostile files none takes long, much memory, or a descriptor', () => {
  let seed = 1
  const next = (below: number) => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0
    return Math.floor((seed / 2 ** 32) * below)
  }
  const bytes = Buffer.alloc(2 ** 20 - headers)
  for (let at = 0; at < bytes.length; at++) bytes[at] = next(4) === 0 ? next(256) : next(8)
  const sizes = [0, 1, 23, 4096, 2 ** 16, 2 ** 19, 2 ** 32, 2 ** 53]
  const types = [1, symtab, dynsym, 3, sectionType.note, sectionType.nobits]
  const sections = ['', '.eh_frame', '.gnu_debugdata', '.gopclntab', '.text']
  const before = readdirSync('/proc/self/fd').length
  collectGarbage()
  const residentBefore = process.memoryUsage.rss()
  const took = cost(() => {
    for (let file = 0; file < 1000; file++) {
      const part = (): Part => ({
        type: types[next(types.length)]!,
        name: sections[next(sections.length)]!,
        offset: [place, place + next(2 ** 19), next(2 ** 20)][next(3)]!,
        size: sizes[next(sizes.length)]!,
        link: next(12),
      })
      write(Array.from({ length: 1 + next(12) }, part), [[place, bytes]])
      readAll()
    }
  })
  assert.ok(took < 60, `${took} s`)
  collectGarbage()
  assert.ok(process.memoryUsage.rss() - residentBefore < 300 * 1024 * 1024)
  assert.equal(readdirSync('/proc/self/fd').length, before)
})
