import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../../test/helpers/soak.ts'
import { SeriesTable } from './series-table.ts'

/** Few places, so that entries collide; both ends of the range are among them. */
const word = fc.constantFrom(0, 1, 5, 0x80000000, 0xfffffffe, 0xffffffff)

test('it knows what a plain map knows, through additions, sightings and sweeps', () => {
  const step = fc.oneof(
    { weight: 9, arbitrary: fc.tuple(word, fc.oneof(word, fc.nat(40)), fc.nat(3)) },
    { weight: 1, arbitrary: fc.constant('sweep' as const) },
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), steps => {
      const table = new SeriesTable()
      const plain = new Map<string, { owner: number; seen: number }>()
      for (const [i, each] of steps.entries()) {
        const seen = i + 1
        if (each === 'sweep') {
          const since = Math.max(1, seen - 40)
          const owners: number[] = []
          for (let n = 0; n < SeriesTable.sweeps; n++) table.sweepNext(since, owner => owners.push(owner))
          const gone = [...plain].filter(([, entry]) => entry.seen < since)
          for (const [key] of gone) plain.delete(key)
          assert.deepEqual(owners.sort(), gone.map(([, { owner }]) => owner).sort())
        } else {
          const [low, high, owner] = each
          const known = plain.get(`${low} ${high}`)
          assert.equal(table.touch(low, high, seen), known !== undefined)
          if (known !== undefined) known.seen = seen
          else {
            table.add(low, high, owner, seen)
            plain.set(`${low} ${high}`, { owner, seen })
          }
        }
        assert.equal(table.size, plain.size)
      }
    }),
    { numRuns: soak ? 20_000 : 300 },
  )
})

test('a million series take 40 bytes each at most, and give them back', () => {
  const table = new SeriesTable()
  const count = soak ? 1_000_000 : 200_000
  for (let i = 0; i < count; i++) {
    const low = Math.imul(i, 0x9e3779b1) >>> 0
    table.add(low, Math.imul(i ^ low, 0x85ebca6b) >>> 0, 0, 1 + (i % 2))
  }
  assert.ok(table.bytes <= count * 40, `${table.bytes / count} bytes each`)
  let gone = 0
  for (let n = 0; n < SeriesTable.sweeps; n++) table.sweepNext(3, () => gone++)
  assert.deepEqual([gone, table.size], [count, 0])
  assert.ok(table.bytes < 100_000)
})
