import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { closeSync, copyFileSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { withoutRoot } from '../../../test/helpers/host-needs.ts'
import { until } from '../../../test/helpers/program.ts'
import { type Mapping, readMappings } from '../../kernel/process-maps.ts'
import { FrameNames } from './frame-names.ts'
import type { MappedFile } from './messages.ts'
import { UnwindTableBuilder } from './unwind-table-builder.ts'

const skip = withoutRoot
const settings = { demangle: true, perfMap: false, debugDirs: [], cacheBytes: 1 << 24, cacheDir: '' }
const children: ChildProcess[] = []
const directory = mkdtempSync(join(tmpdir(), 'svc-builder-'))
after(() => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(directory, { recursive: true })
})

function fileOf(id: number, pid: number, mapping: Mapping): MappedFile {
  const { path, start, size, offset, file } = mapping
  const [major = '', minor = '', inode = ''] = file.split(':')
  const dev = (Number.parseInt(major, 16) << 20) | Number.parseInt(minor, 16)
  return { id, pid, path, start, end: start + size, offset, dev, inode: Number(inode), unread: '' }
}

function add(builder: UnwindTableBuilder, file: MappedFile, path = file.path): void {
  const fd = openSync(path, 'r')
  try {
    builder.add(file, fd)
  } finally {
    closeSync(fd)
  }
}

const stack = {
  hash: 7,
  pid: process.pid,
  comm: 'test',
  end: 'complete',
  inner: { spaces: new Uint16Array(), offsets: new Float64Array() },
} as const

async function run(path: string): Promise<{ pid: number; mapping: Mapping }> {
  const child = spawn(path, ['60'], { stdio: 'ignore' })
  children.push(child)
  let mapping: Mapping | undefined
  await until(
    () => `${path} runs`,
    10_000,
    () => {
      mapping = readMappings('/proc', child.pid!).find(each => each.path === path)
      return mapping !== undefined
    },
  )
  return { pid: child.pid!, mapping: mapping! }
}

test('places of this program have the names of its functions, each told once', () => {
  const builder = new UnwindTableBuilder(settings)
  const names = new FrameNames(builder, settings)
  const mapping = readMappings('/proc', process.pid).find(({ path }) => path === process.execPath)!
  add(builder, fileOf(1, process.pid, mapping))
  const symbols = builder.symbolsOf(1, process.pid, () => ({ group: '', user: '0' }))
  assert.ok(typeof symbols !== 'string')
  // As the dynamic symbols of the program have it: any place of code that is a function's.
  let place = mapping.offset + 4096
  while (symbols.find(place) === undefined) place += 64
  const known = symbols.find(place)!
  const raw = {
    ...stack,
    spaces: Uint16Array.of(1, 0),
    offsets: Float64Array.of(place, mapping.start - mapping.offset + place),
  }
  const first = names.name([raw], [])
  assert.equal(first.frames[0]!.name, known.name)
  assert.equal(first.mappings[0]!.path, process.execPath)
  assert.deepEqual([...first.user[0]!.frames], [0, 0], 'an address of the process is the same function')
  assert.deepEqual(names.name([raw], []).frames, [])
  names.clear(1)
  assert.equal(names.name([raw], []).frames.length, 1)
})

test('names of C++ are told as people write them, and their linker names beside', () => {
  const builder = new UnwindTableBuilder(settings)
  const names = new FrameNames(builder, settings)
  const mapping = readMappings('/proc', process.pid).find(({ path }) => path === process.execPath)!
  add(builder, fileOf(1, process.pid, mapping))
  const symbols = builder.symbolsOf(1, process.pid, () => ({ group: '', user: '0' }))
  assert.ok(typeof symbols !== 'string')
  const places = new Map<string, number>()
  const { offset, size } = builder.known(1)!.elf!.section('.text')!
  for (let place = offset; places.size < 200 && place < offset + size; place += 64) {
    const found = symbols.find(place)
    if (found?.isMangled && !places.has(found.systemName)) places.set(found.systemName, place)
  }
  assert.equal(places.size, 200)
  const offsets = Float64Array.from(places.values())
  const { frames } = names.name([{ ...stack, spaces: new Uint16Array(200).fill(1), offsets }], [])
  const mangled = [...places.keys()]
  const want = execFileSync('c++filt', ['-i'], { input: mangled.join('\n'), encoding: 'utf8' }).split('\n')
  assert.deepEqual(
    frames.map(({ name, systemName }) => [name, systemName]),
    mangled.map((systemName, i) => [want[i], systemName]),
  )
  const { undecoded, decoderFault } = names.state()
  assert.deepEqual([undecoded, decoderFault], [{ failed: 0, refused: 0, late: 0, unavailable: 0 }, ''])
  builder.decoder.close()
})

test('a mapping is of the file with its device and inode, whatever else has its path', { skip }, () => {
  const builder = new UnwindTableBuilder(settings)
  const mapping = readMappings('/proc', process.pid).find(({ path }) => path === process.execPath)!
  const real = fileOf(2, 1, mapping)
  add(builder, { ...real, id: 1, inode: real.inode + 1 })
  assert.equal(builder.mapped(process.pid, mapping), undefined)
  add(builder, real)
  assert.equal(builder.mapped(process.pid, mapping)?.file.id, 2)
})

test('a program that was copied over is told as replaced', { skip }, async () => {
  const builder = new UnwindTableBuilder(settings)
  const path = join(directory, 'program')
  copyFileSync('/bin/sleep', path)
  const before = await run(path)
  add(builder, fileOf(1, before.pid, before.mapping))
  builder.markUsed(1, before.pid)
  assert.deepEqual(builder.replaced(), [])
  const ended = new Promise(resolve => children[0]!.once('exit', resolve))
  children[0]!.kill('SIGKILL')
  await ended
  copyFileSync('/usr/bin/tail', path) // the same inode
  const child = spawn(path, ['-f', '/dev/null'], { stdio: 'ignore' })
  children.push(child)
  builder.markUsed(1, child.pid!)
  assert.deepEqual(builder.replaced(), [1])
  assert.deepEqual(builder.replaced(), [])
})
