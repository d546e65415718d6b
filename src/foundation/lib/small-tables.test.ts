import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BoundedMap } from './bounded-map.ts'
import { SmallCaches, SmallTables } from './small-tables.ts'

test('small caches are one, of which the largest forget first', () => {
  const tables = new SmallCaches()
  const [small, large] = [filled(10), filled(100)]
  tables.add(small)
  tables.add(large)
  assert.equal(tables.bytes, small.bytes + large.bytes)
  const wanted = large.bytes / 2
  const freed = tables.shed(wanted)
  assert.ok(freed >= wanted && freed < wanted + 200)
  assert.equal(small.size, 10)
  tables.shed(Number.POSITIVE_INFINITY)
  assert.deepEqual([small.size, large.size, tables.bytes], [0, 0, 0])

  function filled(entries: number): BoundedMap<number, string> {
    const map = new BoundedMap<number, string>(1000)
    for (let i = 0; i < entries; i++) map.set(i, `text ${i}`)
    return map
  }
})

test('a table that nobody has any more is not counted', async () => {
  const tables = new SmallTables()
  fill()
  assert.ok(tables.bytes > 0)
  const { gc } = globalThis
  if (gc === undefined) return
  // What was looked at in this turn stays until its end.
  await new Promise(resolve => setTimeout(resolve, 10))
  gc()
  assert.equal(tables.bytes, 0)

  function fill(): void {
    const map = new BoundedMap<number, string>(1000)
    map.set(1, 'text')
    tables.add(map)
  }
})
