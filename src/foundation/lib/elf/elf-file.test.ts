import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { soak } from '../../../../test/helpers/soak.ts'
import { ElfFile } from './elf-file.ts'
import { ElfError, isCode } from './elf-format.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-elf-file-'))
const open: number[] = []
after(() => {
  for (const fd of open) closeSync(fd)
  rmSync(directory, { recursive: true })
})

function elfOf(path: string): ElfFile {
  const fd = openSync(path, 'r')
  open.push(fd)
  return ElfFile.of(fd)
}

function written(bytes: Buffer | string): string {
  const path = join(directory, 'written')
  writeFileSync(path, bytes)
  return path
}

/** What `ElfError` says, of bytes that are no ELF file, or of what is done with one. */
function fault(act: () => unknown): string {
  try {
    act()
  } catch (error) {
    assert.ok(error instanceof ElfError, String(error))
    return error.message
  }
  return ''
}

const library = join(directory, 'libcode.so')
const source = join(directory, 'code.c')
writeFileSync(
  source,
  `asm(".pushsection .note.go.buildid, \\"a\\", %note\\n"
       ".long 4, 8, 4\\n.ascii \\"Go\\\\0\\\\0abc/defg\\"\\n.popsection");
   int add(int a) { return a + 1; }`,
)
execFileSync('gcc', [
  ...['-g', '-gz=zlib', '-shared', '-fPIC', '-Wl,--build-id=0x0123456789abcdef'],
  ...['-o', library, source],
])
const plain = join(directory, 'plain.so')
execFileSync('objcopy', ['--decompress-debug-sections', library, plain])
const bytes = readFileSync(library)

test('sections are those that readelf shows', () => {
  const lines = execFileSync('readelf', ['-SW', library], { encoding: 'utf8' }).split('\n')
  const shown = lines.flatMap(line => {
    const [, name, , address, offset, size] =
      /^ +\[ *\d+\] (\S*) +(\S+) +([0-9a-f]{16}) ([0-9a-f]+) ([0-9a-f]+) /.exec(line) ?? []
    const hex = (text: string) => Number.parseInt(text, 16)
    return name === undefined ? [] : [[name, hex(address!), hex(offset!), hex(size!)]]
  })
  const { sections } = elfOf(library)
  assert.ok(shown.length > 20)
  assert.deepEqual(
    sections.slice(1).map(({ name, address, offset, size }) => [name, address, offset, size]),
    shown.slice(-sections.length + 1),
  )
})

test('build ids are told, of GNU and of Go', () => {
  const elf = elfOf(library)
  assert.equal(elf.machine, process.arch)
  assert.equal(elf.buildId, '0123456789abcdef')
  assert.equal(elf.goBuildId, 'abc/defg')
  const none = join(directory, 'none.so')
  execFileSync('gcc', ['-shared', '-nostdlib', '-Wl,--build-id=none', '-o', none, '-xc', '/dev/null'])
  assert.equal(elfOf(none).buildId, '')
  // A file with debug information has the segments of its program, and the notes elsewhere.
  const debug = join(directory, 'code.debug')
  execFileSync('objcopy', ['--only-keep-debug', library, debug])
  assert.equal(elfOf(debug).buildId, '0123456789abcdef')
})

test('contents of sections are read, none where the file has none, and compressed ones are refused', () => {
  const elf = elfOf(plain)
  const info = elf.section('.debug_info')!
  assert.ok(elf.bytes(info).equals(readFileSync(plain).subarray(info.offset, info.offset + info.size)))
  assert.equal(elf.bytes(elf.section('.bss')!).length, 0)
  assert.equal(elf.section('.none'), undefined)
  const check = (of: ElfFile, most: number | undefined, want: RegExp) =>
    assert.match(
      fault(() => of.bytes(of.section('.debug_info')!, most)),
      want,
    )
  check(elf, 16, /\.debug_info has more than 16 bytes/)
  check(elfOf(library), undefined, /\.debug_info is compressed/)
})

test('addresses and places in the file are told from each other', () => {
  const elf = elfOf(library)
  const code = elf.segments.find(isCode)!
  const { start, limit, offset } = elf.codeMapping()
  assert.deepEqual([start, limit, offset], [code.address, code.address + code.fileSize, code.offset])
  const text = elf.section('.text')!
  assert.equal(elf.offsetOf(text.address), text.offset)
  assert.equal(elf.addressOf(text.offset), text.address)
  assert.ok(elf.isExecutableOffset(text.offset))
  const data = elf.section('.data')!
  assert.notEqual(data.address, data.offset)
  assert.equal(elf.offsetOf(data.address), data.offset)
  assert.equal(elf.addressOf(data.offset), data.address)
  assert.ok(!elf.isExecutableOffset(data.offset))
  assert.equal(elf.offsetOf(2 ** 40), undefined)
  assert.equal(elf.addressOf(2 ** 40), undefined)
})

test('the hash is of the first and last 4 KiB and the length', () => {
  const check = (whole: Buffer) => {
    const size = Buffer.alloc(8)
    size.writeUInt32BE(whole.length, 4)
    const hashed = Buffer.concat([whole.subarray(0, 4096), whole.subarray(-4096), size])
    const wanted = createHash('sha256').update(hashed).digest('hex').slice(0, 32)
    assert.equal(elfOf(written(whole)).htlHash(), wanted)
  }
  check(bytes)
  const small = Buffer.from(bytes.subarray(0, 1000))
  small.fill(0, 32, 48)
  small.fill(0, 56, 62)
  check(small)
})

test('an image inside of something else is read: the vDSO of this process', () => {
  const maps = readFileSync('/proc/self/maps', 'latin1')
  const [, start, end] = /^(\S+)-(\S+) .*\[vdso\]$/m.exec(maps)!
  const first = Number.parseInt(start!, 16)
  const fd = openSync('/proc/self/mem', 'r')
  open.push(fd)
  const elf = ElfFile.of(fd, Number.parseInt(end!, 16) - first, first)
  assert.match(elf.buildId, /^[0-9a-f]{40}$/)
  assert.ok(elf.section('.text')!.size > 100)
})

test('what is no ELF file of this kind is an error that says so', () => {
  const check = (content: Buffer | string, what: RegExp) =>
    assert.match(
      fault(() => elfOf(written(content))),
      what,
    )
  check('', /cut off/)
  check('#!/bin/sh\n'.repeat(10), /not a 64-bit ELF/)
  const changed = (at: number, value: number) => {
    const copy = Buffer.from(bytes)
    copy[at] = value
    return copy
  }
  check(changed(4, 1), /not a 64-bit ELF/) // 32 bits
  check(changed(5, 2), /not a 64-bit ELF/) // big-endian
  check(changed(16, 1), /not a 64-bit ELF/) // an object file
  check(changed(58, 32), /headers/) // sections of another size
  check(changed(57, 2), /headers/) // more than 256 segments
  check(bytes.subarray(0, bytes.length - 100), /cut off/)
  assert.match(
    fault(() => elfOf(directory)),
    /not a regular file/,
  )
  assert.match(
    fault(() => ElfFile.of(12_345)),
    /cannot be read/,
  )
})

test('whatever the bytes say, reading ends, with what is wrong or with parts of the file', () => {
  const rounds = soak ? 1000 : 100
  let seed = 11
  const random = (below: number) => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
    return Math.floor((seed / 2 ** 32) * below)
  }
  const tables = Number(bytes.readBigUInt64LE(40))
  const places = [() => random(64), () => 64 + random(600), () => tables + random(bytes.length - tables)]
  for (let round = 0; round < rounds; round++) {
    const changed = Buffer.from(random(8) ? bytes : bytes.subarray(0, random(bytes.length)))
    for (let i = 0; i < 4 && changed.length > 0; i++)
      changed[places[random(3)]!() % changed.length] = random(2) ? random(256) : 255
    const fd = openSync(written(changed), 'r')
    fault(() => {
      const elf = ElfFile.of(fd)
      for (const section of elf.sections) fault(() => elf.bytes(section))
      assert.ok(elf.buildId.length + elf.goBuildId.length + elf.htlHash().length < 1000)
      const { start, limit, offset } = elf.codeMapping()
      elf.offsetOf(start)
      elf.addressOf(offset)
      elf.isExecutableOffset(limit)
    })
    closeSync(fd)
  }
})
