import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { BoundedMap } from './bounded-map.ts'

test('while it is not full it is a map', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom('set', 'delete', 'get', 'clear'), fc.nat(20), fc.nat())),
      steps => {
        const bounded = new BoundedMap<number, number>(21)
        const plain = new Map<number, number>()
        for (const [what, key, value] of steps) {
          if (what === 'set') {
            bounded.set(key, value)
            plain.set(key, value)
          } else if (what === 'delete') assert.equal(bounded.delete(key), plain.delete(key))
          else if (what === 'get') assert.equal(bounded.get(key), plain.get(key))
          else {
            bounded.clear()
            plain.clear()
          }
          assert.equal(bounded.size, plain.size)
        }
        const entries = new Map<number, number>()
        bounded.forEach((value, key) => {
          entries.set(key, value)
        })
        assert.deepEqual(entries, plain)
      },
    ),
  )
})

test('it never holds more than its capacity, never a wrong value, and tells whom it evicts', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 8 }),
      fc.array(fc.tuple(fc.boolean(), fc.nat(30))),
      (capacity, steps) => {
        const gone = new Map<number, number>()
        const bounded = new BoundedMap<number, number>(capacity, (key, value) => {
          gone.set(key, value)
        })
        const latest = new Map<number, number>()
        for (const [i, [remove, key]] of steps.entries()) {
          if (remove) {
            bounded.delete(key)
            latest.delete(key)
          } else {
            bounded.set(key, i)
            latest.set(key, i)
            assert.equal(bounded.get(key), i)
          }
          assert.ok(bounded.size <= capacity)
          for (const [evictedKey, value] of gone) {
            assert.equal(latest.get(evictedKey), value)
            latest.delete(evictedKey)
          }
          gone.clear()
        }
        const entries = new Map<number, number>()
        bounded.forEach((value, key) => {
          entries.set(key, value)
        })
        assert.deepEqual([...entries].sort(byKey), [...latest].sort(byKey))
      },
    ),
  )
})

test('what is asked for again and again outlives a flood of others', () => {
  const bounded = new BoundedMap<string, number>(64)
  bounded.set('hot', 1)
  for (let i = 0; i < 10_000; i++) {
    bounded.set(`rare ${i}`, i)
    assert.equal(bounded.get('hot'), 1)
  }
  assert.equal(bounded.size, 64)
})

function byKey(a: [number, number], b: [number, number]): number {
  return a[0] - b[0]
}
