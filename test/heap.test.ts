import assert from 'node:assert/strict'
import { test } from 'node:test'
import { heapAllocated, heapGrowth } from './helpers/heap.ts'

const kilobyte = () => new Array<number>(128).fill(0)

test('what each run keeps is growth, what only one keeps is none', async () => {
  const kept: unknown[] = []
  const leaking = await heapGrowth(() => {
    for (let i = 0; i < 1000; i++) kept.push(kilobyte())
  })
  assert.ok(leaking > 900_000, `${leaking}`)
  let runs = 0
  const once = await heapGrowth(() => {
    if (++runs !== 3) return
    for (let i = 0; i < 1000; i++) kept.push(kilobyte())
  })
  assert.ok(once < 50_000, `${once}`)
  assert.equal(kept.length, 7000)
})

test('what is thrown away at once was allocated', () => {
  let numbers = 0
  const work = () => {
    for (let i = 0; i < 100; i++) numbers += kilobyte().length
  }
  assert.ok(heapAllocated(work) > 90_000)
  assert.ok(heapAllocated(() => numbers++) < 2000)
})
