import assert from 'node:assert/strict'
import { closeSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { withoutRoot } from '../../test/helpers/host-needs.ts'
import { type Mapping, readMappings } from '../kernel/process-maps.ts'
import type { UnknownFile } from '../model/raw-stack.ts'
import { ruleBytes } from '../model/unwind-table.ts'
import { MappedFiles } from './mapped-files.ts'
import type { MappedFile } from './messages.ts'
import { UnwindArena } from './unwind-arena.ts'

const skip = withoutRoot
const fileWords = { size: 6, firstPage: 0, pages: 1, firstRow: 2, rows: 3, runtime: 4, used: 5 }

/** What the kernel side and the reader of files were told. */
function open() {
  const told: string[] = []
  const read: { file: MappedFile; fd: number }[] = []
  const arena = new UnwindArena({
    rows: new Uint32Array(8),
    pages: new Uint32Array(8),
    rules: new Uint8Array(8 * ruleBytes),
    files: new Uint32Array(16 * fileWords.size),
    fileWords,
  })
  const files = new MappedFiles({
    sampler: {
      publish: (dev, inode, id) => told.push(`publish ${dev}:${inode} ${id}`),
      unpublish: (dev, inode) => told.push(`unpublish ${dev}:${inode}`),
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
  return { dev: 1, inode, pid, start, end: start + size, offset }
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
  files.meet(met)
  files.meet(met)
  assert.equal(read.length, 1)
  const { file, fd } = read[0]!
  assert.equal(file.path, process.execPath)
  assert.deepEqual(readFileSync(fd).subarray(0, 4), Buffer.from('\x7fELF', 'latin1'))
  closeSync(fd)
  assert.deepEqual(told, [])
  files.publish(file.id, table, 1)
  assert.deepEqual(told, [`publish 1:${met.inode} ${file.id}`])
  files.publish(99, table, 0)
  assert.equal(told.length, 1)
})

test('of a process that has ended nothing is kept, so that another one may tell of the file', {
  skip,
}, () => {
  const { files, read } = open()
  const mapping = readMappings('/proc', process.pid)[0]!
  files.meet(unknown(mapping, 2 ** 22 + 1))
  assert.deepEqual([read.length, files.gone, files.size], [0, 1, 0])
  files.meet(unknown(mapping))
  assert.equal(read.length, 1)
  closeSync(read[0]!.fd)
})

test('a file that makes room is told of anew when it is met again', { skip }, () => {
  const { files, told, read, arena } = open()
  const mappings = readMappings('/proc', process.pid)
  const found = [...new Map(mappings.map(each => [each.file, each])).values()].slice(0, 2)
  const large = { ...table, rows: new Uint32Array(6).fill(0x100000) }
  for (const mapping of found) {
    files.meet(unknown(mapping))
    const { file, fd } = read.at(-1)!
    closeSync(fd)
    files.publish(file.id, large, 0)
  }
  for (let tick = 0; tick < 4; tick++) arena.age()
  files.meet({ ...unknown(found[0]!), inode: 77 })
  closeSync(read.at(-1)!.fd)
  files.publish(read.at(-1)!.file.id, large, 0)
  const first = unknown(found[0]!)
  assert.ok(told.includes(`unpublish 1:${first.inode}`), told.join(', '))
  assert.ok(told.includes('forget stacks') && told.includes('forget 1'))
  files.meet(first)
  assert.equal(read.at(-1)!.file.path, found[0]!.path)
  closeSync(read.at(-1)!.fd)
})

test('when all is forgotten nothing is left in the kernel', { skip }, () => {
  const { files, told, read, arena } = open()
  const met = unknown(readMappings('/proc', process.pid)[0]!)
  files.meet(met)
  closeSync(read[0]!.fd)
  files.publish(read[0]!.file.id, table, 0)
  files.clear()
  assert.ok(told.includes(`unpublish 1:${met.inode}`))
  assert.deepEqual([files.size, arena.files, arena.rows], [0, 0, 0])
})
