import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { MemoryGovernor, type MemoryKind, type MemoryReading, type MemoryTable } from './memory-governor.ts'

const bounds = { tablesBytes: 1000, heapBytes: 1000, processBytes: 2000 }
const calm: MemoryReading = { liveHeapBytes: 0, usedHeapBytes: 0, anonymousBytes: 0 }

class Bag implements MemoryTable {
  readonly name: string
  readonly kind: MemoryKind
  readonly share?: number
  held: number
  asked = 0

  constructor(kind: MemoryKind, held: number, share?: number) {
    this.name = kind
    this.kind = kind
    this.held = held
    if (share !== undefined) this.share = share
  }

  bytes(): number {
    return this.held
  }

  shed(bytes: number): number {
    this.asked++
    const freed = Math.min(this.held, bytes)
    this.held -= freed
    return freed
  }
}

function governed(tables: readonly Bag[], reading: () => MemoryReading = () => calm): MemoryGovernor {
  const governor = new MemoryGovernor(bounds, reading)
  for (const table of tables) governor.register(table)
  return governor
}

test('a table gives back what is beyond its share, and the others nothing', () => {
  const [large, small] = [new Bag('intake', 400, 0.3), new Bag('cache', 100)]
  const governor = governed([large, small])
  governor.look()
  assert.deepEqual([large.held, small.held], [300, 100])
  assert.deepEqual(
    governor.tables().map(({ released: shed, limit }) => [shed, limit]),
    [
      [100, 300],
      [0, 250],
    ],
  )
})

test('caches give back first, then detail, then intake', () => {
  const caches = new Bag('cache', 300, 1)
  const detail = new Bag('detail', 500, 1)
  const intake = new Bag('intake', 800, 1)
  const governor = governed([intake, detail, caches])
  governor.look()
  assert.deepEqual([caches.held, detail.held, intake.held], [0, 100, 800])
})

test('whatever tables hold, after a look they hold no more than the budget and their shares', () => {
  const table = fc.record({
    kind: fc.constantFrom<MemoryKind>('cache', 'detail', 'intake'),
    held: fc.nat(5000),
    share: fc.double({ min: 0.05, max: 1, noNaN: true }),
  })
  fc.assert(
    fc.property(fc.array(table, { maxLength: 12 }), kinds => {
      const tables = kinds.map(({ kind, held, share }) => new Bag(kind, held, share))
      const governor = governed(tables)
      governor.look()
      assert.ok(governor.bytes <= bounds.tablesBytes, `${governor.bytes}`)
      for (const each of tables) assert.ok(each.held <= governor.limitOf(each.share))
    }),
  )
})

test('pressure rises with the live heap, falls only well below, and each rise from none is counted', () => {
  let live = 0
  const governor = governed([], () => ({ ...calm, liveHeapBytes: live }))
  const pressureAt = (bytes: number) => {
    live = bytes
    governor.look()
    return governor.pressure
  }
  assert.deepEqual([740, 760, 860, 960, 900, 800, 700, 640].map(pressureAt), [0, 1, 2, 3, 3, 2, 1, 0])
  assert.equal(governor.shortages, 1)
  assert.equal(pressureAt(990), 3)
  assert.equal(governor.shortages, 2)
})

test('memory of the process that no table counts raises pressure as well', () => {
  const governor = governed([], () => ({ ...calm, anonymousBytes: 1950 }))
  governor.look()
  assert.equal(governor.pressure, 3)
})

test('under pressure, kinds shrink by a quarter a look: caches at 1, detail at 2, intake at 3', () => {
  const held = (part: number) => {
    const tables = [new Bag('cache', 100), new Bag('detail', 100), new Bag('intake', 100)]
    governed(tables, () => ({ ...calm, liveHeapBytes: part * bounds.heapBytes })).look()
    return tables.map(each => each.held)
  }
  assert.deepEqual(held(0.5), [100, 100, 100])
  assert.deepEqual(held(0.8), [75, 100, 100])
  assert.deepEqual(held(0.9), [75, 75, 100])
  assert.deepEqual(held(1), [75, 75, 75])
})

test('a table that was let go is asked no more', () => {
  const governor = governed([])
  const table = new Bag('cache', 5000)
  governor.register(table)()
  governor.look()
  assert.equal(table.asked, 0)
})

test('a table that fails to give back is reported, and keeps no other from it', () => {
  const faulty = new Bag('cache', 5000)
  faulty.shed = () => {
    throw new RangeError('Invalid array length')
  }
  const sound = new Bag('detail', 5000)
  const governor = governed([faulty, sound])
  const faults: unknown[] = []
  governor.onFault = (_, error) => faults.push(error)
  governor.look()
  assert.ok(faults.length > 0 && sound.held < 5000)
})
