import assert from 'node:assert/strict'
import { closeSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { withoutRoot } from '../../../test/helpers/host-needs.ts'
import type { FileIdentity, UnknownFile } from '../../foundation/model/raw-stack.ts'
import { ruleBytes } from '../../foundation/model/unwind-table.ts'
import { type Mapping, readMappings } from '../../kernel/process-maps.ts'
import { MappedFiles } from './mapped-files.ts'
import type { MappedFile } from './messages.ts'
import { UnwindArena } from './unwind-arena.ts'

const skip = withoutRoot
const fileWords = { size: 6, firstPage: 0, pages: 1, firstRow: 2, rows: 3, runtime: 4, used: 5 }

const nameOf = ({ dev, inode, generation }: FileIdentity) => `${dev}:${inode}:${generation}`

/** What the kernel side and the reader of files were told. */
function open(ids = 16) {
  const told: string[] = []
  const read: { file: MappedFile; fd: number }[] = []
  const arena = new UnwindArena({
    rows: new Uint32Array(8),
    pages: new Uint32Array(8),
    rules: new Uint8Array(8 * ruleBytes),
    files: new Uint32Array(ids * fileWords.size),
    fileWords,
  })
  const files = new MappedFiles({
    sampler: {
      publish: (file, id) => told.push(`publish ${nameOf(file)} ${id}`),
      unpublish: file => told.push(`unpublish ${nameOf(file)}`),
      forgetStacks: () => told.push('forget stacks'),
    },
    arena,
    read: (file, fd) => read.push({ file, fd }) > 0,
    forget: id => told.push(`forget ${id}`),
  })
  return { files, told, read, arena }
}

function unknown({ start, size, offset, file }: Mapping, pid = process.pid): UnknownFile {
  const inode = Number(file.slice(file.lastIndexOf(':') + 1))
  return { dev: 1, inode, generation: 0, pid, start, end: start + size, offset }
}

const table = {
  rows: Uint32Array.of(0x100000),
  pages: Uint32Array.of(0, 1),
  rules: new Uint8Array(ruleBytes).fill(2),
  unsupported: 0,
}

test('a file is opened through its process, and told to the kernel when its table is made', { skip }, () => {
  const { files, told, read } = open()
  const mapping = readMappings('/proc', process.pid).find(({ path }) => path === process.execPath)!
  const met = unknown(mapping)
  files.addUnknown(met)
  files.addUnknown(met)
  assert.equal(read.length, 1)
  const { file, fd } = read[0]!
  assert.equal(file.path, process.execPath)
  assert.deepEqual(readFileSync(fd).subarray(0, 4), Buffer.from('\x7fELF', 'latin1'))
  closeSync(fd)
  assert.deepEqual(told, [])
  files.publish(file.id, table, 1)
  assert.deepEqual(told, [`publish 1:${met.inode}:0 ${file.id}`])
  files.publish(99, table, 0)
  assert.equal(told.length, 1)
})

test('of a process that has ended nothing is kept, so that another one may tell of the file', {
  skip,
}, () => {
  const { files, read } = open()
  const mapping = readMappings('/proc', process.pid)[0]!
  files.addUnknown(unknown(mapping, 2 ** 22 + 1))
  assert.deepEqual([read.length, files.gone, files.size], [0, 1, 0])
  files.addUnknown(unknown(mapping))
  assert.equal(read.length, 1)
  closeSync(read[0]!.fd)
})

test('a file that was given the inode of a deleted one is another file', { skip }, () => {
  const { files, told, read } = open()
  const met = unknown(readMappings('/proc', process.pid)[0]!)
  for (const generation of [1, 2, 1]) files.addUnknown({ ...met, generation })
  const ids = read.map(({ file, fd }) => {
    closeSync(fd)
    files.publish(file.id, table, 0)
    return file.id
  })
  const said = (generation: number, id: number) => `publish 1:${met.inode}:${generation} ${id}`
  assert.deepEqual(told, [said(1, ids[0]!), said(2, ids[1]!)])
})

test('a file that makes room is told of anew when it is met again', { skip }, () => {
  const { files, told, read, arena } = open()
  const mappings = readMappings('/proc', process.pid)
  const found = [...new Map(mappings.map(each => [each.file, each])).values()].slice(0, 2)
  const large = { ...table, rows: new Uint32Array(6).fill(0x100000) }
  for (const mapping of found) {
    files.addUnknown(unknown(mapping))
    const { file, fd } = read.at(-1)!
    closeSync(fd)
    files.publish(file.id, large, 0)
  }
  for (let tick = 0; tick < 4; tick++) arena.age()
  files.addUnknown({ ...unknown(found[0]!), inode: 77 })
  closeSync(read.at(-1)!.fd)
  files.publish(read.at(-1)!.file.id, large, 0)
  const first = unknown(found[0]!)
  assert.ok(told.includes(`unpublish 1:${first.inode}:0`), told.join(', '))
  assert.ok(told.includes('forget stacks') && told.includes('forget 1'))
  files.addUnknown(first)
  assert.equal(read.at(-1)!.file.path, found[0]!.path)
  closeSync(read.at(-1)!.fd)
})

test('when all is forgotten nothing is left in the kernel', { skip }, () => {
  const { files, told, read, arena } = open()
  const met = unknown(readMappings('/proc', process.pid)[0]!)
  files.addUnknown(met)
  closeSync(read[0]!.fd)
  files.publish(read[0]!.file.id, table, 0)
  files.clear()
  assert.ok(told.includes(`unpublish 1:${met.inode}:0`))
  assert.deepEqual([files.size, arena.files, arena.rows], [0, 0, 0])
})

test('when all ids are given, files that are not met any more give theirs back', { skip }, () => {
  const { files, read, told, arena } = open(4096)
  files.addVdso()
  files.publish(read[0]!.file.id, table, 0)
  const mapping = unknown(readMappings('/proc', process.pid)[0]!)
  for (let inode = 1; inode <= 4094; inode++) {
    files.addUnknown({ ...mapping, inode })
    files.publish(read.at(-1)!.file.id, undefined, 0)
    closeSync(read.at(-1)!.fd)
  }
  files.addUnknown({ ...mapping, inode: 5000 })
  assert.equal(read.length, 4095)
  for (let tick = 0; tick < 4; tick++) files.age()
  assert.ok(arena.idle().length > 4000)
  files.addUnknown({ ...mapping, inode: 5000 })
  assert.equal(read.length, 4096)
  closeSync(read.at(-1)!.fd)
  closeSync(read[0]!.fd)
  assert.ok(!told.includes('unpublish 0:0'), 'the vDSO is never asked about again')
})

test('a file that everybody is refused is taken for one without a table, and tried again later', {
  skip,
}, () => {
  const { files, read, told } = open()
  const met = { ...unknown(readMappings('/proc', process.pid)[0]!), pid: 1 }
  process.seteuid!(65534)
  try {
    for (let i = 0; i < 40; i++) files.addUnknown(met)
  } finally {
    process.seteuid!(0)
  }
  assert.deepEqual(
    read.map(({ file, fd }) => [file.unread, fd]),
    [['no permission to open it', -1]],
  )
  files.publish(read[0]!.file.id, undefined, 0)
  files.age()
  assert.equal(files.size, 1)
  files.age(performance.now() + 3_600_000)
  assert.deepEqual([files.size, told.at(-1)], [0, 'forget stacks'])
})

test('what is known of files is counted, and those that are not met any more are forgotten where memory is short', {
  skip,
}, () => {
  const { files, told } = open()
  const mappings = readMappings('/proc', process.pid).filter(({ path }) => path === process.execPath)
  files.addUnknown(unknown(mappings[0]!))
  const { bytes } = files
  assert.ok(files.size === 1 && bytes > 0)
  files.publish(1, table, 0)
  assert.equal(files.shed(bytes), 0, 'it was met just now')
  files.age()
  files.age()
  files.age()
  assert.equal(files.shed(bytes), bytes)
  assert.deepEqual([files.size, files.bytes], [0, 0])
  assert.ok(told.includes('forget stacks'))
})
