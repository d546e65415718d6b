import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Backoff } from './backoff.ts'

const options = { initialMs: 500, maxMs: 3000, multiplier: 2, jitter: 0 }
const take = (backoff: Backoff, count: number) => Array.from({ length: count }, () => backoff.next())

test('waits grow by the multiplier up to the longest', () => {
  assert.deepEqual(take(new Backoff(options), 5), [500, 1000, 2000, 3000, 3000])
})

test('an initial wait above the longest is cut to it', () => {
  assert.deepEqual(take(new Backoff({ ...options, initialMs: 9000 }), 2), [3000, 3000])
})

test('chance shortens a wait by its share and never lengthens it', () => {
  assert.deepEqual(take(new Backoff({ ...options, jitter: 0.2 }, () => 0.5), 3), [450, 900, 1800])
  assert.deepEqual(take(new Backoff({ ...options, jitter: 1 }, () => 1), 3), [0, 0, 0])
  const backoff = new Backoff({ ...options, jitter: 1 })
  for (const wait of take(backoff, 1000)) assert.ok(wait >= 0 && wait <= 3000)
})

test('a success starts over', () => {
  const backoff = new Backoff(options)
  take(backoff, 4)
  backoff.reset()
  assert.equal(backoff.next(), 500)
})
