import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { epochUs, fieldUs, rfc3339Us } from './timestamp.ts'

const runs = soak ? 100_000 : 3000

const read = (text: string) => rfc3339Us(Buffer.from(text), 0, Buffer.byteLength(text))

test('a time of RFC 3339 is read to the microsecond, with its offset', () => {
  const at = Date.UTC(2026, 0, 2, 3, 4, 5) * 1000
  const check = (text: string, want: number) => assert.equal(read(text), want, text)
  check('2026-01-02T03:04:05Z', at)
  check('2026-01-02t03:04:05z', at)
  check('2026-01-02T03:04:05.123456789Z', at + 123_456)
  check('2026-01-02T03:04:05.1Z', at + 100_000)
  check('2026-01-02 03:04:05,000001Z', at + 1)
  check('2026-01-02T05:04:05.5+02:00', at + 500_000)
  check('2026-01-01T21:34:05-0530', at)
  check('2024-02-29T23:59:60Z', Date.UTC(2024, 2, 1) * 1000)
  check('2100-03-01T00:00:00Z', Date.UTC(2100, 2, 1) * 1000)
})

test('what is no time, or has no zone, is none', () => {
  const check = (text: string) => assert.equal(read(text), 0, text)
  check('')
  check('2026-01-02T03:04:05')
  check('2026-01-02T03:04:05.123456')
  check('2026-01-02T03:04:05.Z')
  check('2026-13-02T03:04:05Z')
  check('2026-01-32T03:04:05Z')
  check('2026-01-02T24:04:05Z')
  check('2026-01-02T03:04:05+24:00')
  check('2026-01-02T03:04:05Zx')
  check('1969-12-31T23:59:59Z')
  check('2026/01/02T03:04:05Z')
  check('some other words that are long')
})

test('every time that JavaScript writes is read', () => {
  const time = fc.integer({ min: 1, max: Date.UTC(9999, 11, 31) })
  fc.assert(
    fc.property(time, ms => assert.equal(read(new Date(ms).toISOString()), ms * 1000)),
    { numRuns: runs },
  )
})

test('the magnitude of a number says what it counts', () => {
  const check = (value: unknown, want: number) => assert.equal(fieldUs(value), want, String(value))
  check(1_700_000_000, 1_700_000_000e6)
  check(1_700_000_000.123456, 1_700_000_000_123_456)
  check(1_700_000_000_123, 1_700_000_000_123e3)
  check(1_700_000_000_123_456, 1_700_000_000_123_456)
  check('1700000000123456789', 1_700_000_000_123_456)
  check('1700000000.5', 1_700_000_000.5e6)
  check('2026-01-02T03:04:05Z', Date.UTC(2026, 0, 2, 3, 4, 5) * 1000)
  check(12, 0)
  check(-1, 0)
  check(Number.NaN, 0)
  check(1e20, 0)
  check('tomorrow', 0)
  check(['2026-01-02T03:04:05Z'], 0)
  check('2026-01-02T03:04:05Ž', 0)
  assert.equal(epochUs(1e11 - 1), (1e11 - 1) * 1e6)
})
