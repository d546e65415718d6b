import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KeptHeads } from './kept-heads.ts'

test('behind what found no room nothing is kept, so that no line is joined to the rest of another', () => {
  const heads = new KeptHeads()
  const full = Buffer.alloc(16_384, 'x')
  for (let i = 0; i < 1_023; i++) heads.append(heads.take(), full, 0, full.length)
  heads.take()
  const head = heads.take()
  heads.append(head, full, 0, full.length)
  const { length } = head
  assert.ok(length > 0 && length < full.length)
  heads.append(head, Buffer.from('secret'), 0, 6)
  assert.equal(head.length, length)
  heads.give(head)
  const again = heads.take()
  heads.append(again, Buffer.from('GET'), 0, 3)
  assert.equal(again.length, 3)
})
