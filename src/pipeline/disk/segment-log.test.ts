import assert from 'node:assert/strict'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { itemsOf, openLog, range, readAll, recordOf, scratch } from '../../../test/helpers/log-records.ts'
import type { RecordLog } from './log.ts'

function segmentsIn(directory: string): string[] {
  return readdirSync(directory).filter(name => name.endsWith('.seg'))
}

function fill(log: RecordLog, from: number, to: number): void {
  for (const seq of range(from, to)) log.append(recordOf(seq))
}

test('records come back in order with all that was told of them, over many segments', async t => {
  const directory = scratch(t)
  const { log, faults } = openLog(directory)
  assert.equal(log.readFrom(1), undefined)
  assert.equal(log.oldestSeq, Number.POSITIVE_INFINITY)
  fill(log, 1, 50)
  assert.deepEqual(readAll(log), range(1, 50))
  assert.deepEqual(readAll(log, 17), range(17, 50))
  assert.equal(log.items, itemsOf(range(1, 50)))
  assert.equal(log.appendedItems, log.items)
  assert.equal(log.records, 50)
  assert.equal(log.lastSeq, 50)
  assert.equal(log.oldestSeq, 1)
  assert.equal(log.oldestTimeMs, 1.7e12 + 1)
  assert.ok(segmentsIn(directory).length > 5)
  await log.close()
  assert.deepEqual(faults, [])
})

test('a log that is opened again has what was not settled, and knows its items without reading all of it', async t => {
  const directory = scratch(t)
  const first = openLog(directory).log
  fill(first, 1, 60)
  for (const seq of [...range(1, 10), 12, 15, ...range(30, 40)]) first.settle(seq, itemsOf([seq]))
  await first.close()
  const { log, faults } = openLog(directory)
  const left = [11, 13, 14, ...range(16, 29), ...range(41, 60)]
  assert.equal(log.records, left.length)
  assert.equal(log.items, itemsOf(left))
  assert.equal(log.oldestSeq, 11)
  assert.equal(log.oldestTimeMs, 1.7e12 + 11)
  assert.equal(log.lastSeq, 60)
  assert.equal(log.appendedItems, 0)
  assert.deepEqual(readAll(log), left)
  fill(log, 61, 70)
  assert.deepEqual(readAll(log), [...left, ...range(61, 70)])
  assert.deepEqual(log.damage, { records: 0, items: 0, skippedBytes: 0, torn: 0 })
  assert.deepEqual(faults, [])
  await log.close()
})

test('a process that ends without a word loses nothing that was appended', async t => {
  const directory = scratch(t)
  const { log } = openLog(directory)
  fill(log, 1, 33)
  const next = openLog(directory).log
  assert.deepEqual(readAll(next), range(1, 33))
  await Promise.all([log.close(), next.close()])
})

test('numbers that were never used do not count', async t => {
  const directory = scratch(t)
  const { log } = openLog(directory)
  for (const seq of [3, 4, 9, 100, 101]) log.append(recordOf(seq))
  assert.equal(log.records, 5)
  assert.equal(log.oldestSeq, 3)
  assert.deepEqual(readAll(log), [3, 4, 9, 100, 101])
  assert.throws(() => log.append(recordOf(101)), /the last record is 101/)
  await log.close()
  const again = openLog(directory).log
  assert.deepEqual(readAll(again), [3, 4, 9, 100, 101])
  assert.equal(again.records, 5)
  for (const seq of [3, 4, 9, 100, 101]) again.settle(seq, itemsOf([seq]))
  assert.equal(again.items, 0)
  assert.equal(again.records, 0)
  await again.close()
})

test('a segment goes when all in it is settled and a cursor on the disk says so', async t => {
  const directory = scratch(t)
  const { log } = openLog(directory)
  fill(log, 1, 40)
  const before = segmentsIn(directory)
  const bytes = log.bytes
  for (const seq of range(1, 20)) log.settle(seq, itemsOf([seq]))
  assert.deepEqual(segmentsIn(directory), before)
  await log.sync()
  assert.ok(segmentsIn(directory).length < before.length)
  assert.ok(log.bytes < bytes)
  assert.deepEqual(readAll(log), range(21, 40))
  for (const seq of range(21, 40)) log.settle(seq, itemsOf([seq]))
  await log.sync()
  assert.deepEqual(segmentsIn(directory), [])
  await log.close()
  const again = openLog(directory).log
  assert.equal(again.lastSeq, 40)
  assert.throws(() => again.append(recordOf(40)), /the last record is 40/)
  again.append(recordOf(41))
  assert.deepEqual(readAll(again), [41])
  await again.close()
})

test('the cursor follows within a moment by itself, and a settled record does not come again', async t => {
  const directory = scratch(t)
  const { log } = openLog(directory)
  fill(log, 1, 10)
  for (const seq of [1, 2, 5]) log.settle(seq, itemsOf([seq]))
  for (let tries = 0; tries < 2000 && !readdirSync(directory).includes('cursor.json'); tries++)
    await new Promise(resolve => setTimeout(resolve, 20))
  const next = openLog(directory).log
  assert.deepEqual(readAll(next), [3, 4, 6, 7, 8, 9, 10])
  await Promise.all([log.close(), next.close()])
})

test('to settle twice, or what is not there, changes nothing', async t => {
  const { log } = openLog(scratch(t))
  fill(log, 1, 5)
  log.settle(2, itemsOf([2]))
  log.settle(2, itemsOf([2]))
  log.settle(77, 5)
  assert.equal(log.items, itemsOf([1, 3, 4, 5]))
  assert.equal(log.records, 4)
  await log.close()
})

test('the oldest segment can be dropped, with exact items, until none is left', async t => {
  const directory = scratch(t)
  const { log } = openLog(directory)
  fill(log, 1, 30)
  log.settle(2, itemsOf([2]))
  const seen = new Set(range(1, 30))
  seen.delete(2)
  let last = 0
  for (let dropped = log.dropOldest(); dropped; dropped = log.dropOldest()) {
    const gone = range(last + 1, dropped.lastSeq).filter(seq => seen.delete(seq))
    assert.equal(dropped.items, itemsOf(gone))
    assert.equal(log.items, itemsOf(seen))
    assert.equal(log.records, seen.size)
    assert.deepEqual(readAll(log), [...seen])
    last = dropped.lastSeq
  }
  assert.equal(last, 30)
  fill(log, 31, 35)
  assert.deepEqual(readAll(log), range(31, 35))
  await log.close()
  const again = openLog(directory).log
  assert.equal(again.items, itemsOf(range(31, 35)))
  assert.deepEqual(readAll(again), range(31, 35))
  await again.close()
})

test('an unread segment that is dropped after a restart is counted by the totals in the heads', async t => {
  const directory = scratch(t)
  const first = openLog(directory).log
  fill(first, 1, 50)
  await first.close()
  const { log } = openLog(directory)
  let left = itemsOf(range(1, 50))
  assert.equal(log.items, left)
  for (let count = 0, last = 0; count < 4; count++) {
    const dropped = log.dropOldest()
    assert.equal(dropped?.items, itemsOf(range(last + 1, dropped?.lastSeq ?? 0)))
    last = dropped?.lastSeq ?? 0
    left -= dropped?.items ?? 0
    assert.equal(log.items, left)
  }
  await log.close()
})

test('a record larger than a segment has one for itself; one above 64 MiB is refused', async t => {
  const { log } = openLog(scratch(t))
  log.append(recordOf(1))
  log.append(recordOf(2, 100_000))
  log.append(recordOf(3))
  assert.equal(log.readFrom(2)?.body.length, 100_002)
  assert.equal(log.readFrom(3)?.seq, 3)
  assert.throws(() => log.append({ ...recordOf(4), body: Buffer.alloc(64 * 1024 * 1024 + 1) }), /64 MiB/)
  await log.close()
})

test('files and directories are for their owner only', async t => {
  const directory = join(scratch(t), 'deep', 'inside')
  const { log } = openLog(directory)
  log.append(recordOf(1))
  log.settle(1, itemsOf([1]))
  log.bury(recordOf(1), 'refused')
  await log.close()
  assert.equal(statSync(directory).mode & 0o777, 0o700)
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true }))
    assert.equal(
      statSync(join(entry.parentPath, entry.name)).mode & 0o777,
      entry.isDirectory() ? 0o700 : 0o600,
      entry.name,
    )
})

test('a log of many segments holds few files open', async t => {
  const directory = scratch(t)
  const { log } = openLog(directory)
  const before = readdirSync('/proc/self/fd').length
  fill(log, 1, 2000)
  readAll(log)
  assert.ok(segmentsIn(directory).length > 300)
  assert.ok(readdirSync('/proc/self/fd').length - before < 12)
  await log.close()
  const opened = openLog(directory).log
  assert.ok(readdirSync('/proc/self/fd').length - before < 12)
  assert.equal(opened.items, itemsOf(range(1, 2000)))
  await opened.close()
  assert.ok(readdirSync('/proc/self/fd').length <= before)
})
