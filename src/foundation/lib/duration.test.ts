import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatDuration, parseDuration } from './duration.ts'

test('a duration text becomes milliseconds', () => {
  const check = (text: string, want: number | undefined) => assert.equal(parseDuration(text), want, text)
  check('500ms', 500)
  check('30s', 30_000)
  check('5m', 300_000)
  check('1h30m', 5_400_000)
  check('1.5s', 1500)
  check('2d', 172_800_000)
  check('250us', 0.25)
  check('0', 0)
  check('0s', 0)
})

test('what is no duration is refused', () => {
  const check = (text: string) => assert.equal(parseDuration(text), undefined, text)
  for (const text of ['', '30', 's', '1h 30m', '-5s', '30 seconds', '1e3s', '5M', 'Infinity', '1'.repeat(70)])
    check(text)
})

test('milliseconds become the text that people write, without units that are zero', () => {
  const check = (ms: number, want: string) => assert.equal(formatDuration(ms), want)
  check(0, '0s')
  check(500, '500ms')
  check(1500, '1.5s')
  check(30_000, '30s')
  check(300_000, '5m')
  check(930_000, '15m30s')
  check(86_400_000, '24h')
  check(87_330_000, '24h15m30s')
  check(-1000, '-1s')
})

test('what is formatted is read back the same', () => {
  for (const ms of [1, 999, 1001, 59_999, 60_001, 3_600_500, 123_456_789]) {
    assert.equal(parseDuration(formatDuration(ms)), ms)
  }
})
