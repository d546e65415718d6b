import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OwnerMap } from './owner-map.ts'

test('owners are compared by what they say', () => {
  const map = new OwnerMap<number>()
  map.set({ group: 'a', user: 'b' }, 1)
  map.set({ group: 'a', user: 'c' }, 2)
  map.set({ group: '', user: 'b' }, 3)
  map.set({ group: 'a', user: 'b' }, 4)
  assert.equal(map.get({ group: 'a', user: 'b' }), 4)
  assert.equal(map.get({ group: 'b', user: 'b' }), undefined)
  assert.deepEqual([...map.values()], [4, 2, 3])
  map.delete({ group: 'a', user: 'b' })
  map.delete({ group: 'x', user: 'b' })
  assert.deepEqual([...map.values()], [2, 3])
  map.clear()
  assert.deepEqual([...map.values()], [])
})
