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

test('bytes are those of the entries, however they come and go', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 5 }),
      fc.array(fc.tuple(fc.constantFrom('set', 'get', 'delete', 'shed', 'clear'), fc.nat(8), fc.string())),
      (capacity, steps) => {
        let evicted = 0
        const bounded = new BoundedMap<number, string>(capacity, () => evicted++)
        for (const [step, key, text] of steps) {
          const { size, bytes } = bounded
          if (step === 'set') bounded.set(key, text)
          else if (step === 'get') bounded.get(key)
          else if (step === 'delete') bounded.delete(key)
          else if (step === 'clear') bounded.clear()
          else {
            evicted = 0
            const freed = bounded.shed(key * 20)
            assert.equal(bounded.bytes, bytes - freed)
            assert.equal(evicted, size - bounded.size, 'whoever made room was told of')
            assert.ok(freed >= Math.min(key * 20, bytes))
          }
          let sum = 0
          bounded.forEach(value => {
            sum += 64 + value.length
          })
          assert.equal(bounded.bytes, sum)
        }
      },
    ),
  )
})

test('those that nobody asked for of late are shed first', () => {
  const bounded = new BoundedMap<string, string>(100)
  for (let i = 0; i < 100; i++) bounded.set(`key ${i}`, 'text')
  for (let i = 0; i < 50; i++) bounded.get(`key ${i}`)
  bounded.shed(bounded.bytes / 2 - 100)
  for (let i = 0; i < 50; i++) assert.equal(bounded.get(`key ${i}`), 'text')
  bounded.shed(Number.POSITIVE_INFINITY)
  assert.deepEqual([bounded.size, bounded.bytes], [0, 0])
  bounded.set('again', 'text')
  assert.equal(bounded.get('again'), 'text')
})
