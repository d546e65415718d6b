import assert from 'node:assert/strict'
import {
  appendFileSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Turn } from '../../foundation/lib/turn.ts'
import { loadNative, Unsupported } from '../../kernel/native.ts'
import { LogFile, lineBuffer } from './log-file.ts'
import { siblings } from './rotation.ts'

function scratch(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'svc-log-file-'))
  t.after(() => rmSync(directory, { recursive: true }))
  return directory
}

test('many short lines are handed on in portions, each once and in their order', t => {
  const path = join(scratch(t), 'log')
  const want = Array.from({ length: 50_000 }, (_, i) => `${i}`)
  writeFileSync(path, `${want.join('\n')}\nrest`)
  const buffer = lineBuffer(1024)
  const file = new LogFile(path, statSync(path))
  assert.ok(file.open(buffer))
  t.after(() => file.close())
  const lines: string[] = []
  file.reader = {
    line: (bytes, from, to) => lines.push(Buffer.from(bytes).toString('latin1', from, to)),
    flush: () => undefined,
    heldFrom: -1,
    odd: 0,
  }
  let most = 0
  for (let before = 0; file.read(buffer) === 'read'; before = lines.length)
    most = Math.max(most, lines.length - before)
  assert.ok(most <= 1000, `${most} at once`)
  assert.deepEqual(lines, want)
  assert.ok(file.hasPart)
  file.readPart(buffer)
  assert.equal(lines.at(-1), 'rest')
})

const native = loadNative()
const withoutNative: string | false = native instanceof Unsupported && native.reason

test('the holes of a file are not read', { skip: withoutNative }, t => {
  const path = join(scratch(t), 'log')
  writeFileSync(path, 'one\ntwo')
  truncateSync(path, 10 * 2 ** 30)
  appendFileSync(path, 'three\n')
  truncateSync(path, 20 * 2 ** 30)
  const buffer = lineBuffer(1024, native instanceof Unsupported ? undefined : native.nextData)
  const file = new LogFile(path, statSync(path))
  assert.ok(file.open(buffer))
  t.after(() => file.close())
  const lines: string[] = []
  file.reader = {
    line: (bytes, from, to) => lines.push(Buffer.from(bytes).toString('latin1', from, to)),
    flush: () => undefined,
    heldFrom: -1,
    odd: 0,
  }
  let reads = 0
  while (file.read(buffer) === 'read' && reads < 1_000) reads++
  assert.ok(reads < 20, `${reads} chunks of 64 KiB for 20 GiB of holes`)
  assert.deepEqual(lines, ['one', 'two', 'three'])
  appendFileSync(path, 'four\n')
  while (file.read(buffer) === 'read' && reads < 1_000) reads++
  assert.deepEqual(lines.slice(3), ['four'])
})

test('a link that has the name of a rotated file is none', async t => {
  const directory = scratch(t)
  writeFileSync(join(directory, 'secret'), 'of somebody else')
  writeFileSync(join(directory, 'app.log'), '')
  writeFileSync(join(directory, 'app.log.1'), '')
  symlinkSync(join(directory, 'secret'), join(directory, 'app.log.2'))
  const found = await siblings(join(directory, 'app.log'), new Turn(1), () => false)
  assert.deepEqual(
    found.map(({ suffix }) => suffix),
    ['1'],
  )
})
