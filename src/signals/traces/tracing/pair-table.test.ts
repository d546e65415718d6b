import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { AgeList, Pair, PairTable, portsOf } from './pair-table.ts'

class Entry extends Pair<Entry> {
  constructor(sequence: number, ports: number) {
    super()
    this.sequence = sequence
    this.ports = ports
  }
}

test('entries are found by both numbers, the newest of a pair first', () => {
  const step = fc.record({
    isDelete: fc.boolean(),
    sequence: fc.integer({ min: 1, max: 4 }),
    ports: fc.nat(3),
    which: fc.nat(50),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), steps => {
      // Of two chains, so that most entries share one.
      const table = new PairTable<Entry>(2)
      const model: Entry[] = []
      for (const { isDelete, sequence, ports, which } of steps) {
        if (!isDelete) {
          const entry = new Entry(sequence, ports)
          model.unshift(entry)
          table.add(entry)
        } else if (which < model.length) table.delete(model.splice(which, 1)[0]!)
        const same = model.filter(entry => entry.sequence === sequence && entry.ports === ports)
        let found = table.find(sequence, ports)
        for (const entry of same) {
          assert.equal(found, entry)
          found = table.next(entry)
        }
        assert.equal(found, undefined)
      }
    }),
  )
})

test('ports of both ends are one number', () => {
  assert.notEqual(portsOf(80, 40_000), portsOf(40_000, 80))
  assert.equal(portsOf(40_000, 80) % 65_536, 80)
})

test('a list by age keeps its order when entries leave it', () => {
  const list = new AgeList<Entry>()
  const [a, b, c] = [new Entry(1, 1), new Entry(2, 1), new Entry(3, 1)] as const
  for (const entry of [a, b, c]) list.add(entry)
  list.remove(b)
  assert.deepEqual([list.first, list.length, a.newer, c.older], [a, 2, c, a])
  list.remove(a)
  list.add(a)
  assert.deepEqual([list.first, list.length, c.newer], [c, 2, a])
  list.remove(c)
  list.remove(a)
  assert.deepEqual([list.first, list.length], [undefined, 0])
})

test('entries with an unknown sequence number are not found, and cost nothing', () => {
  const table = new PairTable<Entry>(16)
  const entries = Array.from({ length: 50_000 }, () => new Entry(0, 7))
  for (const entry of entries) table.add(entry)
  assert.equal(table.find(0, 7), undefined)
  // In one chain these would be 1,250,000,000 steps.
  for (const entry of entries) table.delete(entry)
})
