import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { SettledRanges } from './settled-ranges.ts'

test('ranges in any order come to the same as a set of numbers', () => {
  const range = fc.tuple(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 0, max: 9 }))
  fc.assert(
    fc.property(fc.array(range, { maxLength: 25 }), fc.integer({ min: 1, max: 70 }), (added, probe) => {
      const ranges = new SettledRanges()
      const set = new Set<number>()
      for (const [from, more] of added) {
        ranges.add(from, from + more)
        for (let seq = from; seq <= from + more; seq++) set.add(seq)
        let acked = 0
        while (set.has(acked + 1)) acked++
        assert.equal(ranges.acked, acked)
        assert.equal(ranges.inHoles, set.size - acked)
        assert.equal(ranges.highest, Math.max(0, ...set))
        let next = probe
        while (set.has(next)) next++
        assert.equal(ranges.next(probe), next)
        assert.equal(ranges.has(probe), set.has(probe))
        let missing = 0
        for (let seq = probe; seq <= probe + 8; seq++) if (!set.has(seq)) missing++
        assert.equal(ranges.missing(probe, probe + 8), missing)
        assert.equal(ranges.covers(probe, probe + 8), missing === 0)
      }
      const inHoles = new Set(
        ranges.holes().flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, i) => from + i)),
      )
      assert.deepEqual(
        [...inHoles],
        [...set].filter(seq => seq > ranges.acked).sort((one, other) => one - other),
      )
    }),
    { numRuns: 300 },
  )
})
