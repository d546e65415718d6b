import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Owner } from '../../../foundation/lib/fair-share.ts'
import { type PlacedSeries, SeriesRoom } from './series-room.ts'

interface Counted extends PlacedSeries {
  count: number
  told: number
}

const owners: readonly Owner[] = [
  { group: 'a', user: '1' },
  { group: 'a', user: '2' },
  { group: 'b', user: '1' },
]

/** A table that counts by a number and tells what it has counted. */
class Table {
  readonly series = new Map<string, Counted>()
  overflow = 0
  /** What was told of series that are gone. */
  gone = 0
  readonly room: SeriesRoom<Counted>

  constructor(places: number) {
    this.room = new SeriesRoom(places, series => this.forget(series))
  }

  count(owner: Owner, name: number, rank: number): void {
    const id = `${owner.group}${owner.user} ${name} ${rank}`
    let series = this.series.get(id)
    if (series === undefined) {
      if (!this.room.offers(owner, rank)) {
        this.overflow++
        return
      }
      series = { owner, rank, idle: 0, leaving: false, count: 0, told: 0 }
      this.series.set(id, series)
      this.room.add(series)
    }
    series.idle = 0
    series.count++
  }

  collect(): void {
    this.room.begin()
    for (const series of this.series.values()) {
      series.told = series.count
      if (this.room.ends(series, 2)) this.forget(series)
    }
  }

  forget(series: Counted): void {
    for (const [id, each] of this.series)
      if (each === series) {
        this.series.delete(id)
        this.gone += series.told
      }
  }

  of(owner: Owner): number {
    let series = 0
    for (const each of this.series.values()) if (each.owner === owner && !each.leaving) series++
    return series
  }
}

test('whatever comes in whichever order, all is told and the places hold', () => {
  const step = fc.oneof(
    fc.record({ owner: fc.constantFrom(...owners), name: fc.nat(12), rank: fc.nat(1) }),
    fc.constant('collect' as const),
    // Below 0: more was given back before than was asked for.
    fc.constantFrom(-3, 0, 2),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), steps => {
      const table = new Table(6)
      let counted = 0
      for (const step of steps) {
        if (step === 'collect') table.collect()
        else if (typeof step === 'number') table.room.shed(step)
        else {
          table.count(step.owner, step.name, step.rank)
          counted++
        }
        assert.equal(table.room.size, table.series.size)
        assert.ok(table.series.size <= 6 + 3)
      }
      table.collect()
      let told = table.gone + table.overflow
      for (const series of table.series.values()) told += series.told
      assert.equal(told, counted)
    }),
  )
})

test('owners get the same where all want more, whoever was first', () => {
  const table = new Table(120)
  const [first, second, other] = owners as [Owner, Owner, Owner]
  for (let round = 0; round < 5; round++) {
    for (const owner of [first, second, other])
      for (let name = 0; name < 200; name++) table.count(owner, name, 0)
    table.collect()
  }
  // Two users of one group share what the group has.
  assert.deepEqual([table.of(first), table.of(second), table.of(other)], [30, 30, 60])
})

test('nobody is kept out by others that take from each other', () => {
  const table = new Table(120)
  const [first, , other] = owners as [Owner, Owner, Owner]
  const third = { group: 'c', user: '1' }
  for (let round = 0; round < 10; round++) {
    for (const owner of [first, other])
      for (let name = 0; name < 200; name++) table.count(owner, name + 200 * round, 0)
    for (let name = 0; name < 10; name++) table.count(third, name + 10 * round, 0)
    assert.ok(table.of(third) >= 10, `${table.of(third)} in round ${round}`)
    table.collect()
  }
})
