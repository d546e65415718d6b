import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ByteRoom } from './byte-room.ts'

test('what finds no room is left out and counted; less is always possible', () => {
  const room = new ByteRoom(100)
  assert.ok(room.take(60))
  assert.ok(!room.take(41))
  assert.ok(room.take(40))
  assert.ok(!room.change(40, 41))
  assert.ok(room.change(40, 10))
  room.give(60)
  assert.deepEqual([room.bytes, room.leftOut], [10, 2])
  assert.ok(new ByteRoom().take(1e12))
})
