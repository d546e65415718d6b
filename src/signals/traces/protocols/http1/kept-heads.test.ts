import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KeptHeads } from './kept-heads.ts'

test('a head is shortened to what is told of it, and gives back what it took beside that', () => {
  const heads = new KeptHeads()
  const head = heads.take()
  heads.append(head, Buffer.from(`GET /${'x'.repeat(9_000)}`), 0, 9_005)
  heads.shorten(head, 10_000)
  assert.equal(head.length, 9_005)
  heads.shorten(head, 300)
  assert.equal(head.bytes.toString('latin1', 0, head.length), `GET /${'x'.repeat(295)}`)
  assert.ok(head.memory < 1_000)
  heads.append(head, Buffer.from('secret'), 0, 6)
  assert.equal(head.length, 300)
})

test('behind what found no room nothing is kept, so that no line is joined to the rest of another', () => {
  const heads = new KeptHeads()
  const head = heads.take()
  heads.append(head, Buffer.alloc(10_000, 'x'), 0, 10_000)
  heads.append(head, Buffer.alloc(10_000, 'y'), 0, 10_000)
  assert.equal(head.length, 16_384)
  assert.ok(head.memory < 17_000)
  heads.append(head, Buffer.from('secret'), 0, 6)
  assert.equal(head.length, 16_384)
  heads.give(head)
  const again = heads.take()
  assert.ok(again.memory < 1_000, 'a large buffer does not stay behind')
  heads.append(again, Buffer.from('GET'), 0, 3)
  assert.equal(again.length, 3)
})
