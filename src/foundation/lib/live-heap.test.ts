// owns: process
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { until } from '../../../test/helpers/program.ts'
import { LiveHeap } from './live-heap.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
/** Of what is kept, at least, in bytes. */
const grown = 2_000_000

test('the live heap is known after each full collection, again and again', async () => {
  const heap = new LiveHeap()
  collect()
  await until('a collection is noticed', 5000, () => heap.collections > 0)
  const before = heap.bytes
  const kept: { i: number }[] = []
  for (let i = 0; i < 100_000; i++) kept.push({ i })
  collect()
  await until('what is kept is seen', 5000, () => heap.bytes > before + grown)
  assert.equal(kept.length, 100_000)
  kept.length = 0
  collect()
  await until('what was let go is seen', 5000, () => heap.bytes < before + grown)
})
