import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Ticks } from './ticks.ts'

test('a target keeps its moment of the interval over restarts, and targets spread', () => {
  const moments = new Set<number>()
  for (let i = 0; i < 100; i++) {
    const one = new Ticks(`target ${i}`, 10_000, 1_000_000_000_000, 5_000)
    const other = new Ticks(`target ${i}`, 10_000, 1_000_000_123_456, 77)
    const moment = (1_000_000_000_000 + one.nextMs - 5_000) % 10_000
    assert.ok(Math.abs(((1_000_000_123_456 + other.nextMs - 77) % 10_000) - moment) < 0.01)
    moments.add(Math.floor(moment / 1000))
  }
  assert.equal(moments.size, 10)
})

test('ticks do not drift, and those that were missed are counted', () => {
  const interval = fc.integer({ min: 100, max: 100_000 })
  fc.assert(
    fc.property(interval, fc.array(fc.integer({ min: 0, max: 500_000 })), (intervalMs, delays) => {
      const ticks = new Ticks('a', intervalMs, 0, 0)
      const first = ticks.nextMs
      let passed = 0
      for (const delay of delays) {
        const now = ticks.nextMs + delay
        passed += 1 + ticks.advance(now)
        assert.ok(ticks.nextMs > now - 0.001 && ticks.nextMs <= now + intervalMs + 0.001)
        assert.ok(Math.abs(ticks.nextMs - first - passed * intervalMs) < 0.01)
      }
    }),
  )
})

test('a scrape that is hardly late is told as planned', () => {
  const ticks = new Ticks('a', 10_000, 0, 0)
  assert.equal(ticks.timeOf(1000, 500_001, 1001), 500_000)
  assert.equal(ticks.timeOf(1000, 500_050, 1050), 500_050)
  assert.equal(new Ticks('a', 100, 0, 0).timeOf(1000, 500_002, 1002), 500_002)
})
