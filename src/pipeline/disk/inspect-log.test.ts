import assert from 'node:assert/strict'
import { appendFileSync, chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  assertRecord,
  itemsOf,
  openLog,
  range,
  recordOf,
  scratch,
} from '../../../test/helpers/log-records.ts'
import { type Inspected, readDeadLetters, readSegments } from './inspect-log.ts'
import { realFiles } from './real-files.ts'

/** Summary of a log. */
interface Verified {
  /** Intact unsettled records. */
  readonly records: number
  readonly items: number
  readonly bytes: number
  /** All damaged or unreadable data, in the order of files. */
  readonly faults: readonly Inspected[]
}

/** Reads a whole log. Throws if the directory cannot be listed. */
function verifyLog(directory: string, files: typeof realFiles): Verified {
  let records = 0
  let items = 0
  let bytes = 0
  const faults: Inspected[] = []
  for (const found of readSegments(directory, files)) {
    if (found.damage || found.unreadable !== undefined) faults.push(found)
    if (!found.record || found.settled) continue
    records++
    items += found.record.items
    bytes += found.record.body.length
  }
  for (const found of readDeadLetters(directory, files))
    if (found.damage || found.unreadable !== undefined) faults.push(found)
  return { records, items, bytes, faults }
}

test('the records of a log can be read beside the agent that writes it, without a trace', async t => {
  const directory = scratch(t)
  const { log } = openLog(directory)
  for (const seq of range(1, 20)) log.append(recordOf(seq))
  for (const seq of [1, 2, 5]) log.settle(seq, itemsOf([seq]))
  await log.sync()
  const before = readdirSync(directory)
  const found = [...readSegments(directory, realFiles)]
  for (const { record } of found) assertRecord(record ?? recordOf(0))
  assert.deepEqual(
    found.map(({ record }) => record?.seq),
    range(1, 20),
  )
  assert.deepEqual(
    found.filter(({ settled }) => settled).map(({ record }) => record?.seq),
    [1, 2, 5],
  )
  const { records, items, bytes, faults } = verifyLog(directory, realFiles)
  assert.deepEqual({ records, items, faults }, { records: 17, items: log.items, faults: [] })
  assert.ok(bytes > 17 * 600 && bytes < log.bytes)
  assert.deepEqual(readdirSync(directory), before)
  await log.close()
})

test('damage is told with its file and place, and half a record at the end is no damage', async t => {
  const directory = scratch(t)
  const { log } = openLog(directory)
  for (const seq of range(1, 20)) log.append(recordOf(seq))
  await log.close()
  const files = readdirSync(directory)
    .filter(name => name.endsWith('.seg'))
    .sort()
  const [first = '', second = ''] = files.map(name => join(directory, name))
  const last = join(directory, files.at(-1) ?? '')
  const body = readFileSync(first)
  body[48 + 52 + 10] = 255 - (body[48 + 52 + 10] ?? 0)
  writeFileSync(first, body)
  const head = readFileSync(second)
  head[50] = 0
  writeFileSync(second, head)
  appendFileSync(last, Buffer.alloc(77))
  const { records, faults } = verifyLog(directory, realFiles)
  assert.equal(records, 18)
  const damage = faults.map(({ file, offset, damage }) => ({ file, offset, ...damage }))
  const secondRecord = damage[1]?.bytes ?? 0
  assert.deepEqual(damage, [
    { file: first, offset: 48, bytes: 52 + 601, items: 2, torn: false },
    { file: second, offset: 48, bytes: secondRecord, items: 0, torn: false },
    { file: last, offset: damage[2]?.offset, bytes: 77, items: 0, torn: true },
  ])
  assert.ok(secondRecord > 600 && secondRecord < 700)
})

test('a refused batch is kept with the reason, the oldest of them going first at the bound', async t => {
  const directory = scratch(t)
  const { log, faults } = openLog(directory, { maxDeadBytes: 20_000 })
  for (const seq of range(1, 100))
    log.bury(recordOf(seq), seq === 100 ? 'y'.repeat(5000) : `refused: ${seq} ✗`)
  log.bury({ ...recordOf(101), body: Buffer.alloc(30_000) }, 'too large to keep')
  assert.ok(log.bytes <= 20_000 && log.bytes > 15_000)
  const found = [...readDeadLetters(directory, realFiles)]
  assert.deepEqual(
    found.map(({ record }) => record?.seq),
    range(101 - found.length, 100),
  )
  assert.ok(found.length > 20)
  for (const { record, why } of found) {
    assertRecord(record ?? recordOf(0))
    assert.equal(why, record?.seq === 100 ? 'y'.repeat(1024) : `refused: ${record?.seq} ✗`)
  }
  assert.equal(log.items, 0)
  const { bytes } = log
  await log.close()
  const again = openLog(directory, { maxDeadBytes: 20_000 })
  assert.equal(again.log.bytes, bytes)
  again.log.bury(recordOf(200), 'refused')
  assert.equal([...readDeadLetters(directory, realFiles)].at(-1)?.record?.seq, 200)
  assert.deepEqual([...faults, ...again.faults], [])
  await again.log.close()
})

test('a log without dead letters has none, and a directory that is not there is an error', t => {
  const directory = scratch(t)
  assert.deepEqual([...readDeadLetters(directory, realFiles)], [])
  assert.throws(() => verifyLog(join(directory, 'absent'), realFiles), { code: 'ENOENT' })
})

test('a file of a later version or that cannot be read is named', async t => {
  const directory = scratch(t)
  const { log } = openLog(directory)
  log.append(recordOf(1))
  await log.close()
  const path = join(directory, '0000000000000009.seg')
  chmodSync(directory, 0o700)
  const { crc32 } = await import('node:zlib')
  const head = readFileSync(join(directory, '0000000000000001.seg')).subarray(0, 48)
  head.writeUInt16LE(7, 4)
  head.writeUInt32LE(crc32(head.subarray(0, 44)), 44)
  writeFileSync(path, head)
  const { records, faults } = verifyLog(directory, realFiles)
  assert.equal(records, 1)
  assert.deepEqual(faults, [{ file: path, offset: 0, unreadable: 'written by a newer svc', settled: false }])
})
