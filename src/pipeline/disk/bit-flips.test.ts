// Damage at every place of a log: one bit costs one record at most, and no wrong body ever comes out.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { itemsOf, openLog, range, readAll, recordOf } from '../../../test/helpers/log-records.ts'
import { type Random, randomOf, ShadowFiles } from '../../../test/helpers/shadow-files.ts'
import { soak } from '../../../test/helpers/soak.ts'

const directory = '/queue/logs'
const bodyBytes = 200
const records = 60
const flips = soak ? 10_000 : 1000
const settled = [...range(1, 9), 12, 13, 20]
const unsettled = range(1, records).filter(seq => !settled.includes(seq))

/** A log of a dozen segments, of which some is settled. */
async function sound(): Promise<ShadowFiles> {
  const files = new ShadowFiles()
  const { log } = openLog(directory, { segmentBytes: 2000 }, files)
  for (const seq of range(1, records)) log.append(recordOf(seq, bodyBytes))
  await log.sync()
  for (const seq of settled) log.settle(seq, itemsOf([seq]))
  await log.close()
  return files
}

function flip(files: ShadowFiles, random: Random): string {
  const names = files.list(directory)
  const name = names[random(names.length)] ?? ''
  const bytes = files.contents(`${directory}/${name}`)
  const at = random(bytes.length)
  bytes[at] = (bytes[at] ?? 0) ^ (1 << random(8))
  return `${name}, byte ${at}`
}

/** Opens a damaged log, reads all of it, and gives how many records are lost. */
function lostIn(files: ShadowFiles, where: string, isExact: boolean): number {
  const { log } = openLog(directory, { segmentBytes: 2000 }, files)
  const recovered = log.items + log.damage.items
  const found = readAll(log, 1, bodyBytes)
  assert.equal(log.items, itemsOf(found), `${where}: items`)
  assert.equal(log.records, found.length, `${where}: records`)
  assert.equal(log.items + log.takeDamagedItems(), recovered, `${where}: the balance`)
  assert.deepEqual(readAll(log, 1, bodyBytes), found)
  const lost = unsettled.filter(seq => !found.includes(seq))
  if (isExact && log.damage.torn === 0)
    assert.equal(log.damage.items, itemsOf(lost), `${where}: items of damaged records`)
  const next = log.lastSeq + 1
  log.append(recordOf(next, bodyBytes))
  assert.deepEqual(readAll(log, 1, bodyBytes), [...found, next], `${where}: a record that follows`)
  return lost.length
}

test(`one flipped bit costs one record at most, in ${flips} tries, heads and cursors included`, async () => {
  const whole = await sound()
  const random = randomOf(1)
  let all = 0
  for (let count = 0; count < flips; count++) {
    const files = whole.afterKill()
    const where = flip(files, random)
    const lost = lostIn(files, where, !where.startsWith('cursor'))
    assert.ok(lost <= 1, `${where} costs ${lost} records`)
    all += lost
  }
  assert.ok(all > flips / 3)
})

test('many flipped bits cost one record each at most', async () => {
  const whole = await sound()
  const random = randomOf(2)
  for (let count = 0; count < flips / 10; count++) {
    const files = whole.afterKill()
    const times = 1 + random(50)
    const where = Array.from({ length: times }, () => flip(files, random)).join('; ')
    const lost = lostIn(files, where, false)
    assert.ok(lost <= times, `${where} cost ${lost} records`)
  }
})

test('pages of zeros cost what is on them', async () => {
  const files = new ShadowFiles()
  const { log } = openLog(directory, { segmentBytes: 64 * 1024 }, files)
  for (const seq of range(1, 400)) log.append(recordOf(seq, bodyBytes))
  await log.close()
  const random = randomOf(3)
  for (let count = 0; count < flips / 10; count++) {
    const damaged = files.afterKill()
    const segments = damaged.list(directory).filter(name => name.endsWith('.seg'))
    const index = random(segments.length)
    const bytes = damaged.contents(`${directory}/${segments[index]}`)
    const page = random(Math.ceil(bytes.length / 4096)) * 4096
    bytes.fill(0, page, Math.min(bytes.length, page + 4096))
    const { log } = openLog(directory, {}, damaged)
    const found = readAll(log, 1, bodyBytes)
    const lost = range(1, 400).filter(seq => !found.includes(seq))
    assert.ok(lost.length <= 4096 / bodyBytes + 2)
    assert.equal(log.items, itemsOf(found))
    // Of the very first records nothing else tells how many items they had.
    const isTold = log.damage.torn === 0 && (index > 0 || page > 0)
    assert.equal(log.takeDamagedItems(), isTold ? itemsOf(lost) : log.damage.items)
  }
})

test('files of noise do not keep a log from opening', () => {
  const random = randomOf(4)
  for (let count = 0; count < flips / 10; count++) {
    const files = new ShadowFiles()
    files.makeDirectory(directory)
    for (const name of ['0000000000000001.seg', '0000000000000040.seg', 'cursor.json', 'cursor.json.old'])
      files.put(`${directory}/${name}`, Buffer.from(range(1, random(3000)).map(() => random(256))))
    const { log } = openLog(directory, {}, files)
    assert.deepEqual(readAll(log), [])
    log.append(recordOf(log.lastSeq + 1))
    assert.equal(log.items, itemsOf(readAll(log)))
  }
})

test('a segment of lookalikes is searched in linear time', { timeout: 60_000 }, () => {
  const files = new ShadowFiles()
  files.makeDirectory(directory)
  files.put(`${directory}/0000000000000001.seg`, Buffer.alloc(10 * 1024 * 1024, 'SQR1'))
  const begin = performance.now()
  assert.deepEqual(readAll(openLog(directory, {}, files).log), [])
  assert.ok(performance.now() - begin < 20_000)
})
