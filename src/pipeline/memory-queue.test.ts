import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Batch, plainBatch } from '../foundation/model/batch.ts'
import type { Entry } from './batch-queue.ts'
import { usualItemBytes } from './item-size.ts'
import { MemoryQueue } from './memory-queue.ts'

/** A batch that takes exactly `bytes` of the queue. */
function batch(items: number, bytes = 1000): Batch {
  return plainBatch('traces', items, new Uint8Array(bytes - 256), 0)
}

function open(limitBytes: number, maxAgeMs = 0) {
  const drops: string[] = []
  const queue = new MemoryQueue('traces', { limitBytes, maxAgeMs }, (reason, items) =>
    drops.push(`${items} ${reason}`),
  )
  return { queue, drops }
}

const takeAll = (queue: MemoryQueue): number[] => {
  const items: number[] = []
  for (let entry = queue.take(); entry; entry = queue.take()) items.push(entry.batch.items)
  return items
}

test('batches leave in the order in which they came', () => {
  const { queue } = open(1e6)
  for (let i = 1; i <= 100; i++) queue.push(batch(i))
  assert.deepEqual(
    takeAll(queue),
    Array.from({ length: 100 }, (_, i) => i + 1),
  )
})

test('a full queue drops the oldest that is not being sent', () => {
  const { queue, drops } = open(3000)
  for (const items of [1, 2, 3]) queue.push(batch(items))
  const sending = queue.take()!
  queue.push(batch(4))
  assert.deepEqual(drops, ['2 queue_full'])
  assert.equal(queue.items, 8)
  assert.equal(queue.bytes, 3000)
  queue.settle(sending)
  assert.deepEqual(takeAll(queue), [3, 4])
})

test('where all the room is being sent, the newcomer is dropped, as is one that is too large for any room', () => {
  const { queue, drops } = open(1000)
  queue.push(batch(1))
  queue.take()
  queue.push(batch(2))
  assert.deepEqual(drops, ['2 queue_full'])
  const other = open(1000)
  other.queue.push(batch(5, 1001))
  assert.deepEqual(other.drops, ['5 queue_full'])
  assert.equal(other.queue.items, 0)
  other.queue.push(batch(1))
  other.queue.push(batch(6, 1001))
  assert.deepEqual([other.drops[1], other.queue.items], ['6 queue_full', 1], 'no other goes for it')
})

test('a batch that comes back takes its old place', () => {
  const { queue } = open(1e6)
  for (const items of [1, 2, 3, 4]) queue.push(batch(items))
  const [first, second, third] = [queue.take()!, queue.take()!, queue.take()!]
  queue.putBack(third)
  queue.putBack(first)
  assert.equal(queue.oldestNumber, first.number)
  queue.putBack(second)
  assert.deepEqual(takeAll(queue), [1, 2, 3, 4])
})

test('what has waited longer than the age limit is dropped, what is being sent is not', t => {
  let now = 1000
  t.mock.method(performance, 'now', () => now)
  const { queue, drops } = open(1e6, 20)
  queue.push(batch(1))
  const sending = queue.take()!
  queue.push(batch(2))
  now += 21
  queue.push(batch(3))
  assert.deepEqual(drops, ['2 expired'])
  assert.equal(queue.settle(sending), true)
  assert.equal(queue.items, 3)
})

test('a smaller bound drops the oldest that wait, at once and when more comes back', () => {
  const { queue, drops } = open(6000)
  for (const items of [1, 2, 3, 4, 5, 6]) queue.push(batch(items))
  const [first, second] = [queue.take()!, queue.take()!]
  queue.limit({ limitBytes: 3000, maxAgeMs: 0 })
  assert.deepEqual(drops, ['3 queue_full', '4 queue_full', '5 queue_full'])
  assert.deepEqual([queue.items, queue.bytes, queue.capacityBytes], [9, 3000, 3000])
  queue.limit({ limitBytes: 1500, maxAgeMs: 0 })
  assert.deepEqual(drops.slice(3), ['6 queue_full'])
  assert.equal(queue.bytes, 2000)
  queue.putBack(second)
  assert.deepEqual(drops.slice(4), ['2 queue_full'])
  queue.putBack(first)
  assert.deepEqual([queue.items, queue.bytes], [1, 1000])
  queue.limit({ limitBytes: 1e6, maxAgeMs: 0 })
  for (const items of [7, 8]) queue.push(batch(items))
  assert.deepEqual(takeAll(queue), [1, 7, 8])
})

test('a shorter age limit drops at once what is older', async () => {
  const { queue, drops } = open(1e6)
  queue.push(batch(1))
  while (queue.oldestMs < 20) await new Promise(resolve => setTimeout(resolve, 5))
  queue.limit({ limitBytes: 1e6, maxAgeMs: 10 })
  assert.deepEqual(drops, ['1 expired'])
  assert.equal(queue.oldestMs, 0)
})

test('what was dealt with in parts leaves by what was left of it', () => {
  const { queue, drops } = open(1e6)
  for (const items of [10, 20]) queue.push(batch(items))
  const [first, second] = [queue.take()!, queue.take()!]
  assert.equal(queue.settlePart(first, 4), true)
  assert.deepEqual([queue.items, queue.pushedItems], [26, 30])
  assert.equal(queue.settle(first), true)
  assert.equal(queue.settlePart(first, 1), false)
  queue.settlePart(second, 5)
  queue.putBack(second)
  queue.clear('shutdown')
  assert.deepEqual([queue.items, drops], [0, ['15 shutdown']])
})

test('batches that share a orderKey are under way one after the other, in their order', () => {
  const { queue } = open(1e6)
  const orderKeys = [0b0001, 0b0011, 0b0010, 0b0100, 0xffffffff, 0b1000]
  for (const [i, orderKey] of orderKeys.entries())
    queue.push(plainBatch('traces', i + 1, new Uint8Array(10), orderKey))
  const first = queue.take()!
  const other = queue.take()!
  // 2 waits for the order key of 1, 3 for the order key of 2, and all that follow 5 for everything.
  assert.deepEqual([first.batch.items, other.batch.items, queue.take()], [1, 4, undefined])
  queue.putBack(first)
  assert.equal(queue.take()!.batch.items, 1)
  queue.settle(first)
  const second = queue.take()!
  assert.equal(second.batch.items, 2)
  assert.equal(queue.take(), undefined)
  queue.settle(second)
  queue.settle(other)
  const third = queue.take()!
  assert.deepEqual([third.batch.items, queue.take()], [3, undefined])
  queue.settle(third)
  const all = queue.take()!
  assert.deepEqual([all.batch.items, queue.take()], [5, undefined])
  queue.settle(all)
  assert.equal(queue.take()!.batch.items, 6)
})

test('a batch is settled once, and not after the queue was cleared', () => {
  const { queue, drops } = open(1e6)
  queue.push(batch(1))
  queue.push(batch(2))
  const [first, second] = [queue.take()!, queue.take()!]
  assert.equal(queue.settle(first), true)
  assert.equal(queue.settle(first), false)
  queue.clear('shutdown')
  assert.equal(queue.settle(second), false)
  queue.putBack(second)
  assert.deepEqual(drops, ['2 shutdown'])
  assert.deepEqual([queue.items, queue.bytes, queue.waiting, queue.sending], [0, 0, 0, 0])
})

test('capacity in items is what fits at the mean size, and at the usual one before the first batch', () => {
  const { queue } = open(100_000)
  assert.equal(queue.capacityItems, Math.floor(100_000 / usualItemBytes.traces))
  queue.push(batch(10, 1000))
  assert.equal(queue.capacityItems, 1000)
  queue.push(batch(10, 3000))
  assert.equal(queue.capacityItems, 500)
})

test('after any run of steps the books agree: in, out and dropped', () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant('push'), size: fc.integer({ min: 256, max: 3000 }) }),
    fc.record({ do: fc.constantFrom('take', 'settle', 'putBack'), size: fc.nat() }),
    fc.record({ do: fc.constant('limit'), size: fc.integer({ min: 1000, max: 15_000 }) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), steps => {
      let dropped = 0
      let pushed = 0
      let settled = 0
      let limitBytes = 10_000
      const queue = new MemoryQueue('traces', { limitBytes, maxAgeMs: 0 }, (_reason, items) => {
        dropped += items
      })
      const sending: Entry[] = []
      for (const { do: what, size } of steps) {
        if (what === 'push') {
          queue.push(batch((size % 7) + 1, size))
          pushed += (size % 7) + 1
        } else if (what === 'limit') {
          limitBytes = size
          queue.limit({ limitBytes, maxAgeMs: 0 })
        } else if (what === 'take') {
          const entry = queue.take()
          if (entry) sending.push(entry)
        } else if (sending.length > 0) {
          const [entry] = sending.splice(size % sending.length, 1)
          if (what === 'putBack') queue.putBack(entry!)
          else if (queue.settle(entry!)) settled += entry!.batch.items
        }
        assert.equal(pushed, settled + dropped + queue.items)
        assert.equal(queue.sending, sending.length)
        // What is being sent cannot be dropped, so it may be above a bound that became smaller.
        assert.ok(queue.bytes <= limitBytes || queue.waiting === 0)
      }
      let last = 0
      for (let entry = queue.take(); entry; entry = queue.take()) {
        assert.ok(entry.number > last)
        last = entry.number
      }
    }),
  )
})

test('where memory is short the oldest that wait are dropped, and counted so', () => {
  const { queue, drops } = open(1e6)
  for (const items of [1, 2, 3, 4]) queue.push(batch(items))
  const sending = queue.take()!
  assert.equal(queue.shed(1500), 2000)
  assert.deepEqual(drops, ['2 memory_limit', '3 memory_limit'])
  assert.equal(queue.shed(1e6), 1000)
  assert.equal(queue.memory, 1000, 'what is under way stays')
  queue.settle(sending)
  assert.deepEqual([queue.items, queue.memory], [0, 0])
})
