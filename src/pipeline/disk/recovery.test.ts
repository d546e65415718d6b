// What a log makes of the files that it finds. The names follow from what other queues lost data by.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { itemsOf, openLog, range, readAll, recordOf } from '../../../test/helpers/log-records.ts'
import { ShadowFiles } from '../../../test/helpers/shadow-files.ts'
import type { RecordLog } from './log.ts'
import { segmentName } from './record-format.ts'

const directory = '/queue/metrics'
const none = { records: 0, items: 0, skippedBytes: 0, torn: 0 }

function fill(log: RecordLog, from: number, to: number): void {
  for (const seq of range(from, to)) log.append(recordOf(seq))
}

/** Forty records in small segments, of which the first ten are settled. */
async function filled(): Promise<ShadowFiles> {
  const files = new ShadowFiles()
  const { log } = openLog(directory, {}, files)
  fill(log, 1, 40)
  for (const seq of range(1, 10)) log.settle(seq, itemsOf([seq]))
  await log.close()
  return files
}

function segmentsOf(files: ShadowFiles): string[] {
  return files
    .list(directory)
    .filter(name => name.endsWith('.seg'))
    .sort()
    .map(name => `${directory}/${name}`)
}

function opened(files: ShadowFiles): { log: RecordLog; faults: string[] } {
  return openLog(directory, {}, files.afterKill())
}

test('to read a record does not settle it', async () => {
  const files = new ShadowFiles()
  const { log } = openLog(directory, {}, files)
  fill(log, 1, 20)
  readAll(log)
  await log.close()
  assert.deepEqual(readAll(opened(files).log), range(1, 20))
})

test('a cursor that is ahead of the records skips nothing that comes later', async () => {
  const files = await filled()
  const again = files.afterKill()
  for (const path of segmentsOf(again)) again.remove(path)
  const { log } = openLog(directory, {}, again)
  assert.equal(log.items, 0)
  assert.equal(log.readFrom(1), undefined)
  assert.equal(log.lastSeq, 10)
  fill(log, 11, 15)
  assert.deepEqual(readAll(log), range(11, 15))
  assert.deepEqual(log.damage, none)
})

test('a record cut off at any byte of the tail takes none of the others with it', async () => {
  const files = await filled()
  const last = segmentsOf(files).at(-1) ?? ''
  const whole = files.contents(last).length
  for (let size = whole - 700; size < whole; size += 7) {
    const torn = files.afterKill()
    torn.put(last, files.contents(last).subarray(0, size))
    const { log } = openLog(directory, {}, torn)
    const found = readAll(log)
    assert.deepEqual(found, range(11, found.at(-1) ?? 0))
    assert.ok(found.length >= 28)
    assert.equal(log.items, itemsOf(found))
    const next = log.lastSeq + 1
    log.append(recordOf(next))
    assert.deepEqual(readAll(log), [...found, next])
  }
})

test('zeros behind the last record, as a loss of power leaves them, are cut off', async () => {
  const files = await filled()
  const last = segmentsOf(files).at(-1) ?? ''
  files.put(last, Buffer.concat([files.contents(last), Buffer.alloc(5000)]))
  const { log } = opened(files)
  assert.deepEqual(readAll(log), range(11, 40))
  assert.deepEqual(log.damage, { ...none, torn: 1 })
  fill(log, 41, 50)
  assert.deepEqual(readAll(log), range(11, 50))
})

test('a cursor that cannot be read gives way to the one before, and that to sending all again', async () => {
  const files = await filled()
  files.put(`${directory}/cursor.json`, Buffer.from('00000000{"acked":40,"holes":[]}'))
  const { log } = opened(files)
  const found = readAll(log)
  assert.ok(range(11, 40).every(seq => found.includes(seq)))
  assert.equal(log.items, itemsOf(found))
  files.put(`${directory}/cursor.json.old`, Buffer.from('x'))
  const first = Number(segmentsOf(files)[0]?.slice(-20, -4))
  const second = opened(files).log
  assert.deepEqual(readAll(second), range(first, 40))
  assert.deepEqual(second.damage, none)
})

test('a segment that is missing in the middle is counted by its neighbours, and the rest comes', async () => {
  const files = await filled()
  const missing = segmentsOf(files)[2] ?? ''
  const after = segmentsOf(files)[3] ?? ''
  files.remove(missing)
  const gone = range(Number(missing.slice(-20, -4)), Number(after.slice(-20, -4)) - 1)
  const { log } = opened(files)
  assert.equal(log.items, itemsOf(range(11, 40)))
  assert.deepEqual(
    readAll(log),
    range(11, 40).filter(seq => !gone.includes(seq)),
  )
  assert.equal(log.takeDamagedItems(), itemsOf(gone))
  assert.equal(log.takeDamagedItems(), 0)
  assert.equal(log.damage.records, gone.length)
  assert.equal(log.items, itemsOf(range(11, 40)) - itemsOf(gone))
})

test('a segment that was cut in the middle of a backlog costs what was behind the cut', async () => {
  const files = await filled()
  const path = segmentsOf(files)[2] ?? ''
  files.put(path, files.contents(path).subarray(0, 1000))
  const { log } = opened(files)
  const found = readAll(log)
  const lost = range(11, 40).filter(seq => !found.includes(seq))
  assert.equal(lost.length, 5)
  assert.equal(log.takeDamagedItems(), itemsOf(lost))
  assert.ok(log.damage.skippedBytes > 0)
})

test('a copy of a segment under another name gives nothing twice', async () => {
  const files = await filled()
  const [one, two] = segmentsOf(files)
  files.put(`${directory}/${segmentName(1000)}`, Buffer.from(files.contents(one ?? '')))
  files.put(
    `${directory}/${segmentName(Number(two?.slice(-20, -4)) + 2)}`,
    Buffer.from(files.contents(two ?? '')),
  )
  const { log } = opened(files)
  assert.deepEqual(readAll(log), range(11, 40))
  assert.equal(log.items, itemsOf(range(11, 40)))
  assert.equal(log.damage.items, 0)
  log.append(recordOf(log.lastSeq + 1))
  assert.ok(log.lastSeq > 1000)
})

test('a segment of a later version is left as it is, and the log goes on behind it', async () => {
  const files = await filled()
  const { crc32 } = await import('node:zlib')
  const later = Buffer.from(files.contents(segmentsOf(files)[0] ?? ''))
  later.writeUInt16LE(2, 4)
  later.writeUInt32LE(crc32(later.subarray(0, 44)), 44)
  const path = `${directory}/${segmentName(41)}`
  files.put(path, later)
  const { log, faults } = openLog(directory, {}, files)
  assert.match(faults.join(), /written by a newer svc/)
  assert.deepEqual(readAll(log), range(11, 40))
  assert.equal(log.items, itemsOf(range(11, 40)))
  assert.equal(log.records, 30)
  const next = log.lastSeq + 1
  fill(log, next, next + 20)
  for (const seq of [...range(11, 40), ...range(next, next + 20)]) log.settle(seq, itemsOf([seq]))
  while (log.dropOldest());
  await log.close()
  assert.ok(files.contents(path).equals(later))
  // The cursor does not claim its numbers: whoever can read them will.
  files.remove(path)
  files.put(path, Buffer.alloc(0))
  assert.ok(openLog(directory, {}, files).log.lastSeq > next)
  const cursors = files.list(directory).filter(name => name.startsWith('cursor'))
  const text = cursors.map(name => files.contents(`${directory}/${name}`).toString()).join()
  assert.match(text, /"acked":40,/)
  assert.doesNotMatch(text, /"acked":(?!\d\D|[1-3]\d\D|40)/)
})

test('a segment that cannot be opened is left as it is', async () => {
  const files = await filled()
  const again = files.afterKill()
  again.failures.set('open', ['', '', 'EACCES'])
  const { log, faults } = openLog(directory, {}, again)
  assert.match(faults.join(), /EACCES/)
  const found = readAll(log)
  assert.ok(found.length > 20)
  assert.equal(log.items, itemsOf(found))
  assert.equal(segmentsOf(again).length, segmentsOf(files).length)
})

test('a directory that cannot be made or listed makes open fail with the error of the system call', () => {
  for (const call of ['makeDirectory', 'list']) {
    const files = new ShadowFiles()
    files.failures.set(call, ['EROFS'])
    assert.throws(() => openLog(directory, {}, files), { code: 'EROFS' })
  }
})

test('what was written aside and not finished is removed', async () => {
  const files = await filled()
  files.put(`${directory}/cursor.json.tmp`, Buffer.from('half'))
  files.put(`${directory}/${segmentName(7)}.tmp`, Buffer.from('half'))
  const after = files.afterKill()
  openLog(directory, {}, after)
  assert.ok(!after.list(directory).some(name => name.endsWith('.tmp')))
})

test('one settled record far behind a backlog does not make the start read all of it', async () => {
  const files = new ShadowFiles()
  const { log } = openLog(directory, {}, files)
  for (const seq of range(1, 600)) log.append(recordOf(seq))
  log.settle(580, itemsOf([580]))
  await log.close()
  const before = files.calls
  const again = openLog(directory, {}, files).log
  const calls = files.calls - before
  assert.ok(calls < 700, `${calls} calls`) // five or so for each of the hundred segments
  assert.equal(again.items, itemsOf(range(1, 600)) - itemsOf([580]))
  await again.close()
})

test('sizes and items are right again after many starts', async () => {
  const files = new ShadowFiles()
  for (let start = 0; start < 20; start++) {
    const { log } = openLog(directory, {}, files)
    const first = log.lastSeq + 1
    fill(log, first, first + 9)
    for (const { seq, items } of readSome(log, 9)) log.settle(seq, items)
    assert.equal(log.items, itemsOf(readAll(log)))
    await log.close()
  }
  const { log } = openLog(directory, {}, files)
  const held = files
    .list(directory)
    .reduce((sum, name) => sum + files.contents(`${directory}/${name}`).length, 0)
  assert.equal(log.records, 20)
  assert.ok(Math.abs(log.bytes - held) < 200, `${log.bytes} of ${held} bytes`)
  assert.ok(held < 30 * 700)
})

test('a disk that could not be read for a moment costs nothing', async () => {
  const files = await filled()
  const { log } = opened(files)
  const shadow = files.afterKill()
  const again = openLog(directory, {}, shadow).log
  for (let times = 0; times < 3; times++) {
    shadow.failures.set('read', ['', 'EIO'])
    assert.throws(() => again.readFrom(11), { code: 'EIO' })
  }
  assert.deepEqual(readAll(again), readAll(log))
})

test('a record that the disk cannot read is tried three times, and then counts as damaged', async () => {
  const files = (await filled()).afterKill()
  const { log } = openLog(directory, {}, files)
  files.spoil(segmentsOf(files)[2] ?? '', 48 + 52 + 100)
  const before = readSome(log, 100, true)
  const next = (before.at(-1)?.seq ?? 0) + 1
  for (let times = 0; times < 2; times++) assert.throws(() => log.readFrom(next), { code: 'EIO' })
  assert.equal(log.damage.items, 0)
  const found = [...before.map(({ seq }) => seq), ...readAll(log, next)]
  assert.deepEqual(
    found,
    range(11, 40).filter(seq => seq !== next),
  )
  assert.equal(log.takeDamagedItems(), itemsOf([next]))
})

test('a last segment that the disk cannot read is neither cut nor written again', async () => {
  const files = (await filled()).afterKill()
  const last = segmentsOf(files).at(-1) ?? ''
  const size = files.contents(last).length
  files.spoil(last, size - 620)
  const { log } = openLog(directory, {}, files)
  const first = log.lastSeq + 1
  for (const seq of range(first, first + 5)) log.append(recordOf(seq))
  assert.equal(files.contents(last).length, size)
  assert.equal(log.damage.torn, 0)
  await log.close()
})

/** Up to `count` records from the beginning; `untilFailure`: or those before one that cannot be read. */
function readSome(log: RecordLog, count: number, untilFailure = false): { seq: number; items: number }[] {
  const list = []
  try {
    for (let stored = log.readFrom(1); stored && list.length < count; stored = log.readFrom(stored.seq + 1))
      list.push(stored)
  } catch (error) {
    if (!untilFailure) throw error
  }
  return list
}
