// The cursor on a file system that loses power at every moment: test/helpers/shadow-files.ts.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { randomOf, ShadowFiles } from '../../../test/helpers/shadow-files.ts'
import { soak } from '../../../test/helpers/soak.ts'
import { CursorFiles, encodeCursor, readCursors } from './cursor.ts'
import { SettledRanges } from './settled-ranges.ts'

const directory = '/queue/traces'
const lives = soak ? 5000 : 150

function settledIn(files: ShadowFiles): SettledRanges {
  const settled = new SettledRanges()
  readCursors(directory, files, settled)
  return settled
}

/** A cursor up to this number, longer or shorter by ranges far above it. */
function cursorOf(acked: number, ranges: number): Buffer {
  return encodeCursor({
    acked,
    holes: Array.from({ length: ranges }, (_, i) => [10_000 + 2 * i, 10_000 + 2 * i]),
  })
}

test('a loss of power at any moment leaves the last durable cursor, or a later one', async () => {
  for (let seed = 1; seed <= lives; seed++) {
    const random = randomOf(seed)
    let files = new ShadowFiles()
    files.makeDirectory(directory)
    let durable = 0
    let written = 0
    for (let life = 0; life < 3; life++) {
      const faults: string[] = []
      const alive = files
      const look = () => {
        if (random(2) > 0) return
        const { acked } = settledIn(alive.afterPowerLoss(random))
        if (acked < durable || acked > written) faults.push(`${acked} after ${durable}`)
      }
      const cursors = new CursorFiles(directory, files)
      files.changed = look
      for (let step = 0; step < 12; step++) {
        if (random(8) === 0) files.failures.set(['write', 'sync', 'rename', 'open'][random(4)]!, ['EIO'])
        const acked = durable + random(40)
        const ranges = random(3) === 0 ? random(300) : 0
        written = Math.max(written, acked)
        const isDurable = await cursors.write(cursorOf(acked, ranges), random(3) === 0).catch(() => false)
        if (isDurable) durable = Math.max(durable, acked)
        look()
      }
      files.failures.clear()
      files.changed = () => {}
      assert.equal(files.openFiles, 0)
      assert.deepEqual(faults, [], `seed ${seed}`)
      files = random(2) === 0 ? files.afterKill() : files.afterPowerLoss(random)
      durable = settledIn(files).acked
    }
  }
})

test('a killed process leaves what it wrote last, durable or not, and a file is no new one each time', async () => {
  const files = new ShadowFiles()
  files.makeDirectory(directory)
  const cursors = new CursorFiles(directory, files)
  let renames = 0
  const rename = files.rename.bind(files)
  files.rename = (from, to) => {
    renames++
    rename(from, to)
  }
  for (let acked = 1; acked <= 50; acked++) {
    await cursors.write(cursorOf(acked, 50 - acked), acked % 3 === 0)
    assert.equal(settledIn(files.afterKill()).acked, acked)
  }
  assert.equal(renames, 2)
})
