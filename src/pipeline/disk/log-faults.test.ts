// The log on disks that fail or are full.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { itemsOf, openLog, range, readAll, recordOf } from '../../../test/helpers/log-records.ts'
import { randomOf, ShadowFiles } from '../../../test/helpers/shadow-files.ts'
import type { Files } from './log.ts'

const directory = '/queue/traces'

async function until(holds: () => boolean): Promise<void> {
  for (let tries = 0; tries < 1000 && !holds(); tries++) await new Promise(resolve => setTimeout(resolve, 10))
  assert.ok(holds())
}

test('a full disk refuses a record with its error, and what was there is whole', async () => {
  for (let free = 0; free < 1400; free += 61) {
    const files = new ShadowFiles()
    const { log } = openLog(directory, {}, files)
    for (const seq of range(1, 10)) log.append(recordOf(seq))
    await log.sync()
    const { total, free: unlimited } = files.space()
    files.capacityBytes = total - unlimited + free
    const bytes = log.bytes
    let refused = 11
    for (; refused < 15; refused++) {
      try {
        log.append(recordOf(refused))
      } catch (error) {
        assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC')
        break
      }
    }
    assert.ok(refused < 15)
    assert.deepEqual(readAll(log), range(1, refused - 1))
    assert.equal(log.items, itemsOf(range(1, refused - 1)))
    assert.equal(log.lastSeq, refused - 1)
    assert.ok(log.bytes >= bytes)
    files.capacityBytes = Number.POSITIVE_INFINITY
    for (const seq of range(refused, 20)) log.append(recordOf(seq))
    assert.deepEqual(readAll(log), range(1, 20))
    const again = openLog(directory, {}, files.afterKill()).log
    assert.deepEqual(readAll(again), range(1, 20))
    assert.deepEqual(again.damage, { records: 0, items: 0, skippedBytes: 0, torn: 0 })
    await log.close()
  }
})

test('half a record that cannot be taken back is skipped', async () => {
  const files = new ShadowFiles()
  const { log } = openLog(directory, {}, files)
  for (const seq of range(1, 3)) log.append(recordOf(seq))
  const { total, free } = files.space()
  files.capacityBytes = total - free + 300
  files.failures.set('truncate', ['EIO'])
  assert.throws(() => log.append(recordOf(4)), { code: 'ENOSPC' })
  files.capacityBytes = Number.POSITIVE_INFINITY
  for (const seq of range(4, 9)) log.append(recordOf(seq))
  assert.deepEqual(readAll(log), range(1, 9))
  const again = openLog(directory, {}, files.afterKill()).log
  assert.deepEqual(readAll(again), range(1, 9))
  assert.equal(again.items, itemsOf(range(1, 9)))
  assert.equal(again.damage.items, 0)
  await log.close()
})

test('a full disk has room again when all was delivered, though no cursor could be written', async () => {
  const files = new ShadowFiles()
  const { log } = openLog(directory, {}, files)
  for (const seq of range(1, 30)) log.append(recordOf(seq))
  files.capacityBytes = files.space().total - files.space().free
  for (const seq of range(1, 30)) log.settle(seq, itemsOf([seq]))
  await assert.rejects(log.sync(), { code: 'ENOSPC' })
  log.append(recordOf(31))
  await log.sync()
  assert.deepEqual(readAll(openLog(directory, {}, files.afterKill()).log), [31])
  await log.close()
})

test('records of a file that could not be synced are written to another, and the file is not synced again', async () => {
  const files = new ShadowFiles()
  const { log, faults } = openLog(directory, { fsyncMs: () => 5 }, files)
  for (const seq of range(1, 8)) log.append(recordOf(seq))
  await log.sync()
  files.failures.set('sync', ['EIO'])
  for (const seq of range(9, 13)) log.append(recordOf(seq))
  await until(() => faults.length > 0)
  assert.match(faults[0] ?? '', /EIO/)
  assert.deepEqual(readAll(log), range(1, 13))
  assert.equal(log.items, itemsOf(range(1, 13)))
  await log.sync()
  for (let seed = 0; seed < 50; seed++) {
    const after = openLog(directory, {}, files.afterPowerLoss(randomOf(seed))).log
    assert.deepEqual(readAll(after), range(1, 13))
    assert.deepEqual(after.damage.items, 0)
  }
  await log.close()
})

test('where every append waits for the disk, one that could not be synced is refused and leaves nothing', async () => {
  const files = new ShadowFiles()
  const { log } = openLog(directory, { fsyncMs: () => 0 }, files)
  for (const seq of range(1, 4)) log.append(recordOf(seq))
  files.failures.set('sync', ['EIO'])
  assert.throws(() => log.append(recordOf(5)), { code: 'EIO' })
  assert.equal(log.lastSeq, 4)
  assert.deepEqual(readAll(log), range(1, 4))
  for (const seq of range(5, 9)) log.append(recordOf(seq))
  for (let seed = 0; seed < 50; seed++)
    assert.deepEqual(readAll(openLog(directory, {}, files.afterPowerLoss(randomOf(seed))).log), range(1, 9))
  await log.close()
})

test('records that cannot be written again are kept until they can', async () => {
  const files = new ShadowFiles()
  const { log, faults } = openLog(directory, { fsyncMs: () => 1e6 }, files)
  for (const seq of range(1, 4)) log.append(recordOf(seq))
  files.failures.set('sync', ['EIO'])
  files.failures.set('write', ['ENOSPC'])
  await assert.rejects(log.sync(), { code: 'EIO' })
  assert.equal(faults.length, 2)
  files.failures.set('write', ['ENOSPC'])
  assert.throws(() => log.append(recordOf(5)), { code: 'ENOSPC' })
  log.append(recordOf(5))
  await log.sync()
  for (let seed = 0; seed < 50; seed++)
    assert.deepEqual(readAll(openLog(directory, {}, files.afterPowerLoss(randomOf(seed))).log), range(1, 5))
  await log.close()
})

test('a read-only disk refuses records and cursors, and nothing of it throws where nobody asked', async () => {
  const files = new ShadowFiles()
  const { log, faults } = openLog(directory, {}, files)
  for (const seq of range(1, 10)) log.append(recordOf(seq))
  await log.sync()
  const erofs = range(1, 100).map(() => 'EROFS')
  for (const call of ['write', 'truncate', 'rename', 'remove']) files.failures.set(call, [...erofs])
  assert.throws(() => log.append(recordOf(11)), { code: 'EROFS' })
  log.settle(1, itemsOf([1]))
  log.bury(recordOf(1), 'refused')
  assert.equal(log.dropOldest(), undefined)
  assert.equal(log.records, 9)
  await assert.rejects(log.sync(), { code: 'EROFS' })
  await log.close()
  assert.ok(faults.length > 2)
})

test('a directory that somebody removed is made again, and what was in it is counted as lost', async () => {
  const files = new ShadowFiles()
  const { log } = openLog(directory, {}, files)
  for (const seq of range(1, 30)) log.append(recordOf(seq))
  for (const name of files.list(directory)) files.remove(`${directory}/${name}`)
  assert.equal(log.readFrom(1), undefined)
  assert.equal(log.items, 0)
  assert.equal(log.takeDamagedItems(), itemsOf(range(1, 30)))
  for (const seq of range(31, 40)) log.append(recordOf(seq))
  assert.deepEqual(readAll(log), range(31, 40))
  await log.close()
})

/** A disk whose syncs begin and never end; a wait for one would be the end of the process. */
function hangingDisk() {
  const state = { syncs: 0, hangs: false }
  const shadow = new ShadowFiles()
  const files: Files = {
    list: path => shadow.list(path),
    makeDirectory: path => shadow.makeDirectory(path),
    open: (path, mode) => shadow.open(path, mode),
    write: (fd, parts) => shadow.write(fd, parts),
    read: (fd, into, position) => shadow.read(fd, into, position),
    size: fd => shadow.size(fd),
    truncate: (fd, size) => shadow.truncate(fd, size),
    sync(fd) {
      state.syncs++
      return state.hangs ? new Promise(() => {}) : shadow.sync(fd)
    },
    syncNow(fd) {
      assert.ok(!state.hangs, 'the log waits for a disk that hangs')
      shadow.syncNow(fd)
    },
    syncDirectory: path => shadow.syncDirectory(path),
    close: fd => shadow.close(fd),
    rename: (from, to) => shadow.rename(from, to),
    remove: path => shadow.remove(path),
    space: () => shadow.space(),
  }
  return { state, files, shadow }
}

test('a disk that hangs keeps neither the writer waiting nor the end, and files and copies stay few', async () => {
  const { state, files, shadow } = hangingDisk()
  const { log } = openLog(directory, { fsyncMs: () => 5, closeMs: undefined }, files)
  state.hangs = true
  for (const seq of range(1, 20)) log.append(recordOf(seq))
  await until(() => state.syncs > 0)
  await new Promise(resolve => setTimeout(resolve, 1100))
  for (const seq of range(21, 1000)) log.append(recordOf(seq))
  assert.ok(shadow.openFiles < 10, `${shadow.openFiles} files are open`)
  for (const seq of range(1, 500)) log.settle(seq, itemsOf([seq]))
  assert.deepEqual(readAll(log), range(501, 1000))
  const begin = performance.now()
  await log.close()
  assert.ok(performance.now() - begin < 20_000)
  assert.equal(
    readAll(openLog(directory, {}, shadow.afterKill()).log).length,
    1000,
    'no cursor, so all come again',
  )
})

test('damage over records of which one was settled costs the items of the others alone', async () => {
  for (const settled of [[5], [6], [5, 11], [2, 6, 11]]) {
    const files = new ShadowFiles()
    const { log } = openLog(directory, { segmentBytes: 1e6, fsyncMs: () => 1e6 }, files)
    for (const seq of [...range(1, 12), 14, 15]) log.append(recordOf(seq))
    for (const seq of settled) log.settle(seq, itemsOf([seq]))
    const bytes = files.contents(`${directory}/0000000000000001.seg`)
    let at = 48
    const bad = [5, 6, 9, 11, 12]
    for (const seq of [...range(1, 12), 14, 15]) {
      if (bad.includes(seq)) bytes[at + 9] = 77 // in its number
      at += 52 + recordOf(seq).body.length
    }
    const lost = bad.filter(seq => !settled.includes(seq))
    const left = [...range(1, 12), 14, 15].filter(seq => !bad.includes(seq) && !settled.includes(seq))
    assert.deepEqual(readAll(log), left)
    assert.equal(log.takeDamagedItems(), itemsOf(lost), `with ${settled} settled`)
    assert.equal(log.items, itemsOf(left))
    assert.equal(log.damage.records, lost.length)
    for (const seq of left) log.settle(seq, itemsOf([seq]))
    assert.deepEqual([log.items, log.records, log.takeDamagedItems()], [0, 0, 0])
    await log.close()
  }
})
