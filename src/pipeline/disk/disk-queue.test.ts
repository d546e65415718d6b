import assert from 'node:assert/strict'
import { cpSync } from 'node:fs'
import { test } from 'node:test'
import { drain, itemCount, numbered, openQueue, queueDirectory } from '../../../test/helpers/disk-store.ts'
import { collectGarbage } from '../../../test/helpers/heap.ts'
import { soak } from '../../../test/helpers/soak.ts'
import { plainBatch } from '../../foundation/model/batch.ts'

const count = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, i) => first + i)

test('batches leave in the order in which they came, whether memory had room for them or not', async t => {
  const { queue, store, drops } = openQueue(queueDirectory(t), { memoryBytes: 1000 })
  for (const n of count(1, 50)) queue.push(numbered(n))
  assert.equal(queue.items, 1275)
  assert.equal(queue.waiting, 50)
  assert.ok(queue.memory <= 1000, `${queue.memory}`)
  assert.deepEqual(drain(queue), count(1, 50))
  assert.deepEqual([queue.items, queue.waiting, queue.sending, drops], [0, 0, 0, {}])
  assert.equal(queue.oldestNumber, Number.POSITIVE_INFINITY)
  await store.close()
})

test('of what shares a orderKey one is under way, the older first; what shares none goes beside it', async t => {
  const { queue, store } = openQueue(queueDirectory(t), { memoryBytes: 2000 })
  const orderKeys = [0b1, 0b1, 0b11, 0b10, 0b100, 0b1000, 0b100]
  for (const [i, each] of orderKeys.entries()) queue.push(numbered(i + 1, 50, each))
  const first = queue.take()!
  const fifth = queue.take()!
  const sixth = queue.take()!
  assert.deepEqual([first, fifth, sixth].map(itemCount), [1, 5, 6])
  assert.equal(queue.take(), undefined, 'the others wait for one that is under way or before them')
  queue.settle(first)
  assert.equal(itemCount(queue.take()!), 2)
  queue.putBack(fifth)
  assert.equal(itemCount(queue.take()!), 5, 'it is back in its place')
  await store.close()
})

test('a batch that comes back takes its old place, with the attempts that it had', async t => {
  const { queue, store } = openQueue(queueDirectory(t))
  for (const n of [1, 2, 3]) queue.push(numbered(n, 100, 1 << n))
  const entries = [queue.take()!, queue.take()!, queue.take()!]
  for (const at of [1, 0, 2]) queue.putBack(entries[at]!)
  const again = queue.take()!
  assert.deepEqual([itemCount(again), again.attempts, again === entries[0]], [1, 2, true])
  assert.deepEqual([itemCount(queue.take()!), itemCount(queue.take()!)], [2, 3])
  await store.close()
})

test('what one process leaves the next one finds, what was delivered it does not', async t => {
  const directory = queueDirectory(t)
  const before = openQueue(directory)
  for (const n of count(1, 20)) before.queue.push(numbered(n, 200, 1 << (n % 31)))
  const [first, second, third] = [before.queue.take()!, before.queue.take()!, before.queue.take()!]
  before.queue.settle(third)
  before.queue.settle(first)
  before.queue.settlePart(second, 1)
  assert.equal(before.queue.items, 210 - 1 - 3 - 1)
  assert.equal(await before.queue.close(), 205)
  assert.equal(before.queue.items, 205)
  await before.store.close()
  assert.deepEqual(before.drops, {})

  const after = openQueue(directory)
  assert.equal(
    after.queue.recoveredItems,
    206,
    'a batch of which a part was delivered comes again as a whole',
  )
  assert.equal(after.queue.items, 206)
  assert.ok(after.queue.oldestMs >= 0 && after.queue.oldestMs < 60_000)
  after.queue.push(numbered(21))
  assert.ok(after.queue.lastNumber > 20)
  assert.deepEqual(drain(after.queue), [2, ...count(4, 21)])
  assert.equal(after.queue.items, 0)
  await after.store.close()
})

test('what the process had accepted when it died is there', async t => {
  const directory = queueDirectory(t)
  const before = openQueue(directory, { memoryBytes: 500 })
  for (const n of count(1, 30)) before.queue.push(numbered(n))
  const image = queueDirectory(t)
  cpSync(directory, image, { recursive: true })
  await before.store.close()
  const after = openQueue(image)
  assert.equal(after.queue.items, 465)
  assert.deepEqual(drain(after.queue), count(1, 30))
  await after.store.close()
})

test('a part that was dealt with leaves the books at once, the rest with the batch', async t => {
  const { queue, store } = openQueue(queueDirectory(t))
  queue.push(numbered(10))
  const entry = queue.take()!
  assert.equal(queue.settlePart(entry, 4), true)
  assert.deepEqual([queue.items, entry.left], [6, 6])
  queue.putBack(entry)
  assert.equal(queue.settlePart(entry, 1), false)
  assert.equal(queue.take(), entry)
  queue.settlePart(entry, 6)
  assert.equal(queue.settle(entry), true)
  assert.equal(queue.settle(entry), false)
  assert.equal(queue.items, 0)
  await store.close()
})

test('a batch that is larger than all the room is dropped, and nothing else goes for it', async t => {
  const { queue, drops, store } = openQueue(queueDirectory(t), { maxBytes: 1_000_000 })
  queue.push(numbered(1))
  queue.push(numbered(7, 1_000_001))
  assert.deepEqual([drops, queue.items], [{ queue_full: 7 }, 1])
  await store.close()
})

test('a batch that is larger than the memory goes by way of the disk', async t => {
  const { queue, store, drops } = openQueue(queueDirectory(t), { memoryBytes: 1000 })
  for (const n of [1, 2, 3]) queue.push(numbered(n, 5000))
  assert.deepEqual(drain(queue), [1, 2, 3])
  assert.deepEqual(drops, {})
  await store.close()
})

test('a smaller bound on memory leaves bodies to the disk, in their order', async t => {
  const { queue, store } = openQueue(queueDirectory(t))
  for (const n of count(1, 20)) queue.push(numbered(n, 100, 1 << (n % 3)))
  const [first, second] = [queue.take()!, queue.take()!]
  queue.limit({ memoryBytes: 1200 })
  assert.ok(queue.memory <= 1200, `${queue.memory}`)
  queue.putBack(second)
  queue.putBack(first)
  queue.limit({ memoryBytes: 10_000 })
  assert.deepEqual(drain(queue), count(1, 20))
  await store.close()
})

test('where memory is short bodies are left to the disk, and nothing is lost', async t => {
  const { queue, drops, store } = openQueue(queueDirectory(t))
  for (const n of count(1, 20)) queue.push(numbered(n, 100, 1 << (n % 3)))
  const first = queue.take()!
  const before = queue.memory
  const freed = queue.shed(1000)
  assert.ok(freed >= 1000, `${freed}`)
  assert.equal(queue.memory, before - freed)
  queue.shed(before)
  assert.ok(queue.memory > 0, 'what is under way stays')
  queue.push(numbered(21))
  queue.putBack(first)
  assert.deepEqual(drain(queue), count(1, 21))
  assert.deepEqual(drops, {})
  await store.close()
})

test('to clear it takes what is under way and what is on the disk, and counts it', async t => {
  const directory = queueDirectory(t)
  const { queue, drops, store } = openQueue(directory, { memoryBytes: 1000 })
  for (const n of count(1, 10)) queue.push(numbered(n))
  const entry = queue.take()!
  queue.settlePart(entry, 1)
  queue.clear('no_endpoint')
  assert.deepEqual([drops, queue.items, queue.sending], [{ no_endpoint: 54 }, 0, 0])
  assert.equal(queue.settle(entry), false)
  queue.push(numbered(11))
  assert.deepEqual(drain(queue), [11])
  await store.close()
  const after = openQueue(directory)
  assert.equal(after.queue.recoveredItems, 0)
  await after.store.close()
})

test('compression and orderKeys come back from the disk as they went', async t => {
  const { queue, store } = openQueue(queueDirectory(t), { memoryBytes: 1 })
  const body = Buffer.from('not really gzip')
  queue.push({ ...plainBatch('traces', 3, body, 0x80000001), encoding: 'gzip', plainBytes: 99 })
  const { batch } = queue.take()!
  assert.deepEqual(
    { ...batch, body: Buffer.from(batch.body), orderKeys: batch.orderKeys >>> 0 },
    {
      signal: 'traces',
      items: 3,
      body,
      encoding: 'gzip',
      plainBytes: 99,
      orderKeys: 0x80000001,
    },
  )
  await store.close()
})

test('memory stays within its bound whatever the backlog', async t => {
  const megabytes = soak ? 200 : 40
  const memoryBytes = 4 << 20
  const { queue, store, drops } = openQueue(queueDirectory(t), { memoryBytes, maxBytes: 1e9 })
  // Buffers are freed by a thread that a collection only starts: the least of three tells.
  const alive = async () => {
    let least = Number.POSITIVE_INFINITY
    for (let i = 0; i < 3; i++) {
      collectGarbage()
      await new Promise(resolve => setTimeout(resolve, 5))
      least = Math.min(least, process.memoryUsage().arrayBuffers)
    }
    return least
  }
  const before = await alive()
  let most = 0
  for (let n = 0; n < megabytes * 10; n++) {
    queue.push(plainBatch('traces', 1, Buffer.alloc(100_000, n & 255), 1 << (n % 31)))
    if (n % 100 === 0) most = Math.max(most, (await alive()) - before)
  }
  assert.equal(queue.items, megabytes * 10)
  let delivered = 0
  for (let entry = queue.take(); entry; entry = queue.take()) {
    assert.equal(entry.batch.body[99_999], delivered++ & 255)
    assert.ok(queue.memory <= memoryBytes)
    if (delivered % 100 === 0) most = Math.max(most, (await alive()) - before)
    queue.settle(entry)
  }
  assert.equal(delivered, megabytes * 10)
  // Beside the queue's own bound the log keeps copies of what is not on the disk yet, 4 MiB for each segment.
  assert.ok(most <= memoryBytes + (20 << 20), `${most} bytes in memory`)
  assert.deepEqual(drops, {})
  await store.close()
})
