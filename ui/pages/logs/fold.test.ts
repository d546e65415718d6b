import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { folded, type LogRecord, pattern, unfolded } from './fold.ts'

let id = 0
const record = (body: string, service = 's', severity = 9): LogRecord => ({
  id: id++,
  time_ms: id,
  severity,
  body,
  service,
  pid: 1,
  container: '',
  trace_id: '',
  span_id: '',
})

test('numbers and hexadecimal words are left out, words stay', () => {
  const check = (body: string, want: string) => assert.equal(pattern(body), want)
  check('took 12.5 ms, worker7', 'took #.# ms, worker#')
  check('id 4bf92f3577b34da6 deadbeef 0x1F', 'id # # #')
  check('a bad face added', 'a bad face added')
  check('7f3e-44', '#-#')
  check('', '')
})

test('consecutive records that are alike are one row', () => {
  const rows = folded([
    record('GET /1 200'),
    record('GET /2 200'),
    record('GET /3 200', 'other'),
    record('GET /4 200', 'other', 17),
    record('POST /5'),
    record('GET /6 200'),
  ])
  assert.deepEqual(
    rows.map(({ record: { body }, first, count }) => `${first.body} … ${body} ×${count}`),
    [
      'GET /1 200 … GET /2 200 ×2',
      'GET /3 200 … GET /3 200 ×1',
      'GET /4 200 … GET /4 200 ×1',
      'POST /5 … POST /5 ×1',
      'GET /6 200 … GET /6 200 ×1',
    ],
  )
})

test('folding loses no record, and no two rows beside each other are alike', () => {
  const bodies = fc.array(fc.constantFrom('a 1', 'a 2', 'b 1', 'b', ''), { maxLength: 50 })
  fc.assert(
    fc.property(bodies, given => {
      const records = given.map(body => record(body))
      const rows = folded(records)
      assert.equal(
        rows.reduce((sum, { count }) => sum + count, 0),
        unfolded(records).length,
      )
      for (let i = 1; i < rows.length; i++)
        assert.notEqual(pattern(rows[i - 1]!.record.body), pattern(rows[i]!.record.body))
    }),
    { numRuns: soak ? 20_000 : 300 },
  )
})

test('long bodies of any kind take linear time', () => {
  for (const each of ['a', 'f', '1', 'a1', 'f ', ' ']) {
    const body = each.repeat(200_000)
    assert.ok(pattern(body).length <= body.length)
  }
})
