import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LogRecord } from './fold.ts'
import { counted, extended, levelOf, mostRecords, newest, type Tail } from './tail.ts'

const record = (id: number, time_ms: number, severity = 9, service = 's'): LogRecord => ({
  id,
  time_ms,
  severity,
  body: '',
  service,
  pid: 0,
  container: '',
  trace_id: '',
  span_id: '',
})

const histogram = {
  from_ms: 1000,
  step_ms: 10,
  levels: [
    { level: 'info' as const, counts: [1, 2, 3] },
    { level: 'error' as const, counts: [0, 0, 1] },
  ],
}

test('severity numbers are levels of four each', () => {
  assert.deepEqual(
    [0, 1, 4, 5, 9, 12, 13, 17, 20, 21, 24, 25].map(levelOf),
    'unknown trace trace debug info info warn error error fatal fatal unknown'.split(' '),
  )
})

test('records are counted where they belong, and columns move on', () => {
  const next = counted(
    histogram,
    [record(1, 1025), record(2, 1041, 17), record(3, 5, 9), record(4, 1045, 13)],
    1050,
  )
  assert.equal(next.from_ms, 1020)
  assert.deepEqual(next.levels, [
    { level: 'info', counts: [4, 0, 0] },
    { level: 'error', counts: [1, 0, 1] },
    { level: 'warn', counts: [0, 0, 1] },
  ])
  assert.equal(counted(histogram, [], 1050), histogram)
  assert.deepEqual(
    counted(histogram, [record(1, 1e12)], 1042).levels.map(({ counts }) => counts),
    [
      [3, 0, 1],
      [1, 0, 0],
    ],
  )
})

test('the newest columns are those of the last seconds', () => {
  assert.deepEqual(newest(histogram, 0.02), {
    from_ms: 1010,
    step_ms: 10,
    levels: [
      { level: 'info', counts: [2, 3] },
      { level: 'error', counts: [0, 1] },
    ],
  })
  assert.deepEqual(newest(histogram, 60), histogram)
})

test('the newest records are kept, and no more than there is room for', () => {
  assert.equal(extended(undefined, { kind: 'records', records: [], skipped: 0 }, 0), undefined)
  let tail: Tail | undefined = extended(
    undefined,
    {
      kind: 'start',
      histogram,
      records: [record(1, 1000)],
      services: ['s'],
      no_data_reason: 'nothing is followed',
    },
    1000,
  )
  for (let i = 0; i < 20; i++)
    tail = extended(
      tail,
      {
        kind: 'records',
        records: Array.from({ length: 200 }, (_, k) => record(2 + i * 200 + k, 1000, 9, 'b')),
        skipped: 3,
      },
      1000,
    )
  assert.equal(tail!.records.length, mostRecords)
  assert.equal(tail!.records.at(-1)!.id, 4001)
  assert.deepEqual([tail!.skipped, tail!.off, tail!.services], [60, '', ['b', 's']])
})
