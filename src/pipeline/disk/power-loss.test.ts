// The log on a file system that loses power at every moment: test/helpers/shadow-files.ts.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertRecord, itemsOf, openLog, readAll, recordOf } from '../../../test/helpers/log-records.ts'
import { type Random, randomOf, ShadowFiles } from '../../../test/helpers/shadow-files.ts'
import { soak } from '../../../test/helpers/soak.ts'
import type { RecordLog } from './log.ts'

const directory = '/queue/traces'
const states = soak ? 100_000 : 3000
const bodyBytes = 300

/** What a log promised so far. */
interface Promised {
  /** Highest number that was appended. */
  appended: number
  /** Appended before a sync that has ended. */
  readonly durable: Set<number>
  readonly settled: Set<number>
  /** Settled before a sync that has ended: they do not come again. */
  readonly settledDurably: Set<number>
}

/** Appends, settles, syncs and drops at random, and calls `moment` after each change of the file system. */
async function work(files: ShadowFiles, random: Random, moment: (promised: Promised) => void): Promise<void> {
  const promised: Promised = {
    appended: 0,
    durable: new Set(),
    settled: new Set(),
    settledDurably: new Set(),
  }
  const fsyncMs = [0, 1, 1e6][random(3)] ?? 0
  const { log } = openLog(directory, { segmentBytes: 3000, fsyncMs: () => fsyncMs }, files)
  let failure: unknown
  files.changed = () => {
    try {
      moment(promised)
    } catch (error) {
      failure ??= error // the log would take it for an error of the file system
    }
  }
  for (let step = 0; step < 120; step++) {
    const action = random(20)
    if (action < 10) appendOne(log, promised, fsyncMs === 0)
    else if (action < 16) settleOne(log, promised, random)
    else if (action < 17 && step % 4 === 3) dropOne(log, promised)
    else if (action < 18) files.failures.set('sync', random(3) === 0 ? ['EIO'] : ['', 'EIO'])
    else await syncAll(log, promised)
    if (failure) throw failure
  }
  files.changed = () => {}
  await log.close()
  assert.equal(files.openFiles, 0)
}

function appendOne(log: RecordLog, promised: Promised, isDurable: boolean): void {
  promised.appended++
  try {
    log.append(recordOf(promised.appended, bodyBytes))
    if (isDurable) promised.durable.add(promised.appended)
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'EIO')
  }
}

function settleOne(log: RecordLog, promised: Promised, random: Random): void {
  let stored = log.readFrom(log.oldestSeq)
  for (let skip = random(4); skip > 0 && stored; skip--) stored = log.readFrom(stored.seq + 1) ?? stored
  if (!stored) return
  assertRecord(stored, bodyBytes)
  promised.settled.add(stored.seq)
  log.settle(stored.seq, stored.items)
}

async function syncAll(log: RecordLog, promised: Promised): Promise<void> {
  const { appended } = promised
  const settled = [...promised.settled]
  try {
    await log.sync()
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'EIO')
    return
  }
  for (const seq of readAll(log, 1, bodyBytes)) if (seq <= appended) promised.durable.add(seq)
  for (const seq of settled) promised.settledDurably.add(seq)
}

function dropOne(log: RecordLog, promised: Promised): void {
  // Counted as gone before the file is: the power may fail in between. A segment holds fewer records than that.
  const before = new Set(promised.settled)
  for (let seq = 1; seq <= Math.min(promised.appended, log.oldestSeq + 12); seq++) promised.settled.add(seq)
  const last = log.dropOldest()?.lastSeq ?? 0
  for (const seq of promised.settled) if (seq > last && !before.has(seq)) promised.settled.delete(seq)
}

function check(files: ShadowFiles, promised: Promised, where: string): void {
  const { log } = openLog(directory, { segmentBytes: 3000 }, files)
  const told = log.items
  const found = new Set(readAll(log, 1, bodyBytes))
  for (const seq of promised.durable)
    assert.ok(
      found.has(seq) || promised.settled.has(seq),
      `${where}: record ${seq} was on the disk and is lost`,
    )
  for (const seq of found) {
    assert.ok(seq <= promised.appended, `${where}: record ${seq} was never written`)
    assert.ok(
      !promised.settledDurably.has(seq),
      `${where}: record ${seq} was settled for good and came again`,
    )
  }
  assert.equal(log.items, itemsOf(found), `${where}: items`)
  assert.equal(log.records, found.size, `${where}: records`)
  assert.ok(told >= log.items, `${where}: items grew`)
  const next = log.lastSeq + 1
  log.append(recordOf(next, bodyBytes))
  assert.ok(found.size === 0 || next > Math.max(...found))
  const again = openLog(directory, { segmentBytes: 3000 }, files.afterKill()).log
  assert.deepEqual(readAll(again, 1, bodyBytes), [...found, next], `${where}: after another start`)
  assert.equal(again.items, itemsOf([...found, next]), `${where}: items after another start`)
}

test(`after a loss of power nothing is gone that was on the disk, in ${states} states`, async () => {
  let count = 0
  for (let seed = 1; count < states; seed++) {
    const random = randomOf(seed)
    const files = new ShadowFiles()
    await work(files, random, promised => {
      if (count >= states || random(4) > 0) return
      count++
      check(files.afterPowerLoss(random), promised, `seed ${seed}, state ${count}`)
    })
  }
})

test('a second loss of power, just after the start that follows the first, takes nothing more', async () => {
  let count = 0
  for (let seed = 1; count < states / 10; seed++) {
    const random = randomOf(seed * 7919)
    const files = new ShadowFiles()
    await work(files, random, promised => {
      if (count >= states / 10 || random(16) > 0) return
      count++
      const first = files.afterPowerLoss(random)
      openLog(directory, { segmentBytes: 3000 }, first)
      check(first.afterPowerLoss(random), promised, `seed ${seed}, state ${count}`)
    })
  }
})
