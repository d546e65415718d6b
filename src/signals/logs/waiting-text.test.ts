import assert from 'node:assert/strict'
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Following } from '../../../test/helpers/log-following.ts'
import { until } from '../../../test/helpers/program.ts'
import { SearchPattern } from '../../foundation/lib/search-pattern.ts'
import { type LogForm, logReader } from './log-reader.ts'
import type { MultilineOptions } from './multiline.ts'
import { WaitingText } from './waiting-text.ts'

const Ki = 1024
const multiline: MultilineOptions = {
  pattern: new SearchPattern('^\\s'),
  negate: false,
  match: 'after',
  maxLines: 1000,
  timeoutMs: 60_000,
}
const time = '2026-01-02T03:04:05.123456789Z'

function readers(mostBytes: number) {
  const waiting = new WaitingText(mostBytes)
  const bodies: string[] = []
  const reader = (form: LogForm, owner: string, options: { multiline?: MultilineOptions } = {}) =>
    logReader(form, {
      path: '/var/log/app.log',
      owner,
      waiting,
      parse: { json: true, severity: true, traceContext: true },
      maxBytes: 256 * Ki,
      emit: record => bodies.push(record.body),
      ...options,
    })
  const line = (to: ReturnType<typeof reader>, text: string) => {
    const bytes = Buffer.from(text)
    to.line(bytes, 0, bytes.length, 0)
  }
  return { waiting, bodies, reader, line }
}

test('what waits is counted, and nothing is left when it was handed on', () => {
  const { waiting, bodies, reader, line } = readers(1024 * Ki)
  const parts = reader('cri', 'user 1')
  const lines = reader('plain', 'user 1', { multiline })
  for (let i = 0; i < 100; i++) {
    line(parts, `${time} stdout P part ${i}`)
    line(parts, `${time} stderr P part ${i}`)
    line(lines, i === 0 ? 'first' : ` then ${i}`)
  }
  // Buffers grow by doubling; a line has its own cost.
  assert.ok(waiting.bytes > 2 * 4 * Ki + 100 * 32 && waiting.bytes < 20 * Ki, `${waiting.bytes}`)
  assert.equal(bodies.length, 0)
  line(parts, `${time} stdout F end`)
  line(parts, `${time} stderr F end`)
  lines.flush(true)
  assert.equal(bodies.length, 3)
  assert.deepEqual([waiting.bytes, waiting.cut], [0, 0])
})

test('where it is too much, who holds most hands on what it has, and every byte comes once', () => {
  const { waiting, bodies, reader, line } = readers(2048 * Ki)
  // 110 pods of a neighbour print without a line feed, to two streams each.
  const flood = Array.from({ length: 110 }, () => reader('cri', 'user 1'))
  const own = reader('cri', 'user 2')
  line(own, `${time} stdout P begin `)
  const text = 'x'.repeat(16 * Ki)
  let most = 0
  for (let round = 0; round < 8; round++) {
    for (const each of flood) {
      line(each, `${time} stdout P ${text}`)
      line(each, `${time} stderr P ${text}`)
      most = Math.max(most, waiting.bytes)
    }
  }
  // It is above the bound by one growing buffer at most.
  assert.ok(most <= 2048 * Ki + 512 * Ki, `${most}`)
  assert.ok(waiting.cut > 10)
  line(own, `${time} stdout F end`)
  assert.equal(bodies.filter(body => body === 'begin end').length, 1)
  for (const each of flood) each.flush(true)
  let bytes = 0
  for (const body of bodies) if (body !== 'begin end') bytes += body.length
  assert.equal(bytes, 110 * 2 * 8 * text.length)
  assert.equal(waiting.bytes, 0)
})

test('where memory is short, lines of several are handed on as they are, the largest first', () => {
  const { waiting, bodies, reader, line } = readers(64 * 1024 * Ki)
  for (let i = 1; i <= 20; i++) {
    const lines = reader('plain', i % 2 === 0 ? 'user 1' : '/var/log/pods/a', { multiline })
    line(lines, `record ${i}`)
    for (let j = 0; j < i; j++) line(lines, ` ${'y'.repeat(Ki)}`)
  }
  const before = waiting.bytes
  const freed = waiting.shed(1)
  assert.equal(freed, before - waiting.bytes)
  assert.deepEqual(
    bodies.map(body => body.split('\n')[0]),
    ['record 20'],
  )
  waiting.shed(Number.POSITIVE_INFINITY)
  assert.equal(bodies.length, 20)
  assert.deepEqual([waiting.bytes, waiting.cut, waiting.shed(1)], [0, 20, 0])
})

test('files whose lines do not end hold no memory beyond the bound', async t => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-waiting-'))
  mkdirSync(join(directory, 'logs'))
  const path = (i: number) => join(directory, 'logs', `${i}.log`)
  const { waiting, bodies, reader } = readers(512 * Ki)
  for (let i = 0; i < 30; i++) writeFileSync(path(i), '')
  const following = await Following.start([], join(directory, 'positions'), {
    maxLineBytes: 256 * Ki,
    sources: [
      {
        name: 'cri',
        patterns: () => [join(directory, 'logs/*.log')],
        excluded: () => false,
        reader: ({ owner }) => reader('cri', owner),
      },
    ],
  })
  t.after(async () => {
    await following.stop()
    rmSync(directory, { recursive: true })
  })
  const part = `${time} stdout P ${'z'.repeat(16 * Ki)}\n`
  let most = 0
  const watch = setInterval(() => {
    most = Math.max(most, waiting.bytes)
  }, 1)
  t.after(() => clearInterval(watch))
  for (let i = 0; i < 30; i++) appendFileSync(path(i), part.repeat(6))
  await until('all is read', 20_000, () => following.follower.state.lines === 180)
  assert.ok(most > 0 && most <= 1024 * Ki, `${most}`)
  await following.stop()
  const bytes = bodies.reduce((sum, body) => sum + body.length, 0)
  assert.equal(bytes, 180 * 16 * Ki)
  assert.ok(waiting.cut > 0 && waiting.bytes === 0)
})
