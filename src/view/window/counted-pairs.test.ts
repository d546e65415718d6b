import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { CountedPairs } from './counted-pairs.ts'

test('pairs come and go, and each is found where it is', () => {
  const capacity = 40
  const step = fc.tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 9 }))
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400 }), steps => {
      const pairs = new CountedPairs(capacity)
      const want = new Map<string, number>()
      for (const [first, second] of steps) {
        const key = `${first} ${second}`
        const known = want.get(key)
        assert.equal(pairs.find(first, second), known ?? -1)
        // Whoever is there goes, and whoever is not comes while there is room.
        if (known !== undefined) {
          pairs.delete(known)
          want.delete(key)
        } else if (pairs.room > 0) {
          const number = pairs.add(first, second)
          assert.ok(number < pairs.end && ![...want.values()].includes(number))
          want.set(key, number)
        }
        assert.deepEqual([pairs.size, pairs.room], [want.size, capacity - want.size])
        for (const [other, number] of want) {
          const [a, b] = other.split(' ').map(Number)
          assert.equal(pairs.find(a!, b!), number)
        }
      }
      assert.ok(pairs.end <= capacity)
    }),
    { numRuns: soak ? 2000 : 50 },
  )
})
