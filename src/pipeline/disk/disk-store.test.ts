import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  attach,
  drain,
  itemCount,
  lockTable,
  numbered,
  openQueue,
  openStore,
  queueDirectory,
} from '../../../test/helpers/disk-store.ts'
import { type Signal, signals } from '../../foundation/model/signal.ts'
import { lockHolder } from './disk-lock.ts'

const sum = (items: readonly number[]) => items.reduce((a, b) => a + b, 0)

test('one process at a time has a directory, and the other one is told which', async t => {
  const directory = queueDirectory(t)
  const lock = lockTable()
  const { store } = openStore(directory, { lock })
  assert.throws(
    () => openStore(directory, { lock }),
    new RegExp(
      `cannot open the queue in ${directory}: process ${process.pid} holds its lock; stop that process, or`,
    ),
  )
  assert.match(readFileSync(join(directory, 'LOCK'), 'utf8'), /^\d+ [0-9a-f-]{36}\n$/)
  await store.close()
  await openStore(directory, { lock }).store.close()
  assert.equal(lockHolder(directory), undefined, 'a file without a lock is nobody')
})

test('directories are for the owner alone, files too', async t => {
  const directory = join(queueDirectory(t), 'a', 'queue')
  const { store, queue } = openQueue(directory)
  queue.push(numbered(1))
  const traces = join(directory, 'v1/default/traces')
  const [segment] = readdirSync(traces).filter(name => name.endsWith('.seg'))
  const modes = [directory, traces, join(directory, 'LOCK'), join(traces, segment!)].map(path =>
    (statSync(path).mode & 0o777).toString(8),
  )
  assert.deepEqual(modes, ['700', '700', '600', '600'])
  await store.close()
})

test('above the bound the oldest of the signal goes that takes most, counted to the item', async t => {
  const { store } = openStore(queueDirectory(t), { maxBytes: 4_000_000 })
  const opened = Object.fromEntries(signals.map(signal => [signal, attach(store, signal)])) as Record<
    Signal,
    ReturnType<typeof attach>
  >
  for (let n = 1; n <= 5; n++) opened.metrics.queue.push(numbered(n, 10_000, 1, 'metrics'))
  const underWay = opened.metrics.queue.take()!
  for (let n = 1; n <= 1000; n++) {
    opened.logs.queue.push(numbered(n, 10_000, 1, 'logs'))
    assert.ok(store.state.bytes <= 4_000_000)
  }
  assert.deepEqual(opened.metrics.drops, {})
  assert.equal(opened.logs.queue.items + opened.logs.drops.queue_full!, 500_500)
  opened.metrics.queue.settle(underWay)
  assert.deepEqual(drain(opened.metrics.queue), [2, 3, 4, 5])
  const left = drain(opened.logs.queue)
  assert.equal(sum(left) + opened.logs.drops.queue_full!, 500_500)
  assert.equal(left.at(-1), 1000)
  assert.ok(left.length > 300, `${left.length}`)
  await store.close()
})

test('what is under way when its segment goes may still be delivered, and counts once', async t => {
  const { store, queue, drops } = openQueue(queueDirectory(t), { maxBytes: 1_000_000 })
  for (let n = 1; n <= 4; n++) queue.push(numbered(n, 10_000, 1 << n))
  const [first, second, third] = [queue.take()!, queue.take()!, queue.take()!]
  queue.settlePart(second, 1)
  let pushed = 10
  for (let n = 5; n <= 300; n++) {
    queue.push(numbered(n, 10_000))
    pushed += n
  }
  assert.deepEqual([first, second, third].map(itemCount), [1, 2, 3])
  assert.equal(queue.items + drops.queue_full!, pushed - 1)
  assert.equal(queue.sending, 3)
  assert.equal(queue.settle(first), true)
  assert.equal(queue.items + drops.queue_full!, pushed - 2)
  queue.putBack(second)
  assert.equal(
    queue.items + drops.queue_full!,
    pushed - 2,
    'it is dropped, for the queue was too full for it',
  )
  queue.settlePart(third, 3)
  queue.settle(third)
  const left = sum(drain(queue))
  assert.equal(left + drops.queue_full!, pushed - 5)
  await store.close()
})

test('a smaller bound takes effect at once', async t => {
  const { store, queue, drops } = openQueue(queueDirectory(t), { maxBytes: 10_000_000 })
  for (let n = 1; n <= 500; n++) queue.push(numbered(n, 10_000))
  store.limit({ maxBytes: 2_000_000, fsyncMs: 0 })
  assert.ok(store.state.bytes <= 2_000_000)
  assert.equal(queue.capacityBytes, 2_000_000)
  assert.equal(queue.items + drops.queue_full!, 125_250)
  assert.equal(sum(drain(queue)) + drops.queue_full!, 125_250)
  await store.close()
})

test('a backlog that is larger than the bound opens, and gives way when something comes', async t => {
  const directory = queueDirectory(t)
  const before = openQueue(directory)
  for (let n = 1; n <= 500; n++) before.queue.push(numbered(n, 10_000))
  await before.store.close()
  const { store, queue, drops } = openQueue(directory, { maxBytes: 2_000_000 })
  assert.equal(queue.recoveredItems, 125_250)
  queue.push(numbered(1))
  assert.ok(store.state.bytes <= 2_000_000)
  assert.equal(queue.items + drops.queue_full!, 125_251)
  await store.close()
})

test('the backlog of a signal that nobody sends counts, and is kept', async t => {
  const directory = queueDirectory(t)
  const before = openQueue(directory)
  before.queue.push(numbered(5))
  await before.store.close()
  const without = openStore(directory)
  assert.ok(without.store.state.bytes > 100)
  await without.store.close()
  const after = openQueue(directory)
  assert.deepEqual(drain(after.queue), [5])
  await after.store.close()
})

test('what another version left is left alone', async t => {
  const directory = queueDirectory(t)
  mkdirSync(join(directory, 'v2/default/traces'), { recursive: true })
  writeFileSync(join(directory, 'v2/default/traces/0000000000000001.seg'), 'from the future')
  const { store, said } = openStore(directory)
  assert.match(said.join(), /^warn: queue of another svc version found/)
  await store.close()
  assert.ok(existsSync(join(directory, 'v2/default/traces/0000000000000001.seg')))
})

test('damage costs the records that it is in, counted, and nothing else', async t => {
  const directory = queueDirectory(t)
  const before = openQueue(directory)
  for (let n = 1; n <= 30; n++) before.queue.push(numbered(n, 1000))
  await before.store.close()
  const traces = join(directory, 'v1/default/traces')
  const [segment] = readdirSync(traces).filter(name => name.endsWith('.seg'))
  const bytes = readFileSync(join(traces, segment!))
  bytes.writeUInt8(bytes[15_000]! ^ 1, 15_000)
  writeFileSync(join(traces, segment!), bytes)
  const { store, queue, drops } = openQueue(directory)
  const names = drain(queue)
  assert.equal(names.length, 29)
  assert.equal(sum(names) + drops.corrupt!, 465)
  assert.equal(queue.recoveredItems, 465)
  assert.equal(queue.items, 0)
  await store.close()
})

test('damage in what is in memory too costs nothing', async t => {
  const directory = queueDirectory(t)
  const { store, queue, drops } = openQueue(directory, { memoryBytes: 3000 })
  for (let n = 1; n <= 30; n++) queue.push(numbered(n, 1000, 1 << (n % 31)))
  const first = queue.take()!
  const traces = join(directory, 'v1/default/traces')
  const [segment] = readdirSync(traces).filter(name => name.endsWith('.seg'))
  const bytes = readFileSync(join(traces, segment!))
  // In the head of one that is in memory, and in the body of one that is not.
  for (const place of [48 + 20, 48 + 10 * 1052 + 500]) bytes.writeUInt8(bytes[place]! ^ 1, place)
  writeFileSync(join(traces, segment!), bytes)
  assert.equal(itemCount(first), 1)
  const names = drain(queue)
  queue.settle(first)
  assert.deepEqual(drops, { corrupt: 11 })
  assert.equal(sum(names), 465 - 1 - 11)
  assert.deepEqual([queue.items, queue.waiting, queue.memory], [0, 0, 0])
  await store.close()
})
