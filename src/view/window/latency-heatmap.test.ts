import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { LatencyHeatmap } from './latency-heatmap.ts'

const begin = 1_700_000_000_000
const sum = (values: readonly number[]) => values.reduce((all, each) => all + each, 0)

test('columns are of 10 s, and for long windows of a multiple of it', () => {
  const check = (windowMs: number, stepMs: number, columns: number) => {
    const read = new LatencyHeatmap(windowMs).read(begin)
    assert.deepEqual([read.stepMs, read.columns], [stepMs, columns])
    assert.equal(read.counts.length, columns * (read.boundsMs.length + 1))
  }
  check(60_000, 10_000, 6)
  check(900_000, 10_000, 90)
  check(1_800_000, 10_000, 180)
  check(1_800_001, 20_000, 91)
  check(86_400_000, 480_000, 180)
})

test('a span stands in the column of its beginning and in the row of its duration', () => {
  const map = new LatencyHeatmap(60_000)
  const check = (startMs: number, durationMs: number, column: number, row: number) => {
    const before = map.read(begin).counts
    map.add(startMs, durationMs, false, begin)
    const changed = map.read(begin).counts.flatMap((count, i) => (count === before[i] ? [] : [i]))
    assert.deepEqual(changed, [row * 6 + column])
  }
  const { boundsMs, fromMs } = map.read(begin)
  assert.deepEqual([boundsMs[0], boundsMs.at(-1), boundsMs.length], [0.1, 60_000, 23])
  assert.equal(fromMs, begin - 50_000)
  check(begin, 0, 5, 0)
  check(begin, 0.1, 5, 0)
  check(begin, 0.11, 5, 1)
  check(begin - 1, 60_000, 4, 22)
  check(begin - 50_000, 60_001, 0, 23)
  // Clocks differ a little: what begins in a moment begins now.
  check(begin + 10_000, 1e9, 5, 23)
  map.add(begin - 50_001, 1, false, begin)
  map.add(Number.NaN, 1, false, begin)
  assert.equal(sum(map.read(begin).counts), 6)
})

test('all spans of the window are counted, and no others', () => {
  const step = fc.record({
    waitMs: fc.oneof(fc.nat({ max: 3000 }), fc.nat({ max: 90_000 })),
    agoMs: fc.nat({ max: 80_000 }),
    ms: fc.double({ min: 0, max: 1e5, noNaN: true }),
    failed: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), steps => {
      const map = new LatencyHeatmap(60_000)
      let now = begin
      const counted: { startMs: number; failed: boolean }[] = []
      for (const { waitMs, agoMs, ms, failed } of steps) {
        now += waitMs
        map.add(now - agoMs, ms, failed, now)
        if (Math.floor((now - agoMs) / 10_000) > Math.floor(now / 10_000) - 6)
          counted.push({ startMs: now - agoMs, failed })
      }
      const { fromMs, counts, errors } = map.read(now)
      const inside = counted.filter(({ startMs }) => startMs >= fromMs)
      assert.equal(sum(counts), inside.length)
      assert.equal(sum(errors), inside.filter(({ failed }) => failed).length)
      for (let column = 0; column < 6; column++)
        assert.equal(
          sum(counts.filter((_, i) => i % 6 === column)),
          inside.filter(({ startMs }) => Math.floor((startMs - fromMs) / 10_000) === column).length,
        )
    }),
    { numRuns: soak ? 2000 : 100 },
  )
})

test('a clock that is set back begins anew, and one that trembles does not', () => {
  const map = new LatencyHeatmap(60_000)
  map.add(begin, 5, true, begin)
  map.add(begin - 1, 5, false, begin - 1)
  assert.equal(sum(map.read(begin).counts), 2)
  map.add(begin - 3_600_000, 5, false, begin - 3_600_000)
  const { counts, errors } = map.read(begin - 3_600_000)
  assert.deepEqual([sum(counts), sum(errors)], [1, 0])
})
