// The log against a plain set of numbers, whatever happens to it in which order.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { itemsOf, openLog, readAll, recordOf } from '../../../test/helpers/log-records.ts'
import { ShadowFiles } from '../../../test/helpers/shadow-files.ts'
import { soak } from '../../../test/helpers/soak.ts'
import type { RecordLog } from './log.ts'

const directory = '/queue/profiles'
const bodyBytes = 150

/** What a log must hold, and beside it the log. */
interface World {
  files: ShadowFiles
  log: RecordLog
  /** Appended and neither settled nor dropped. */
  held: Set<number>
  /** Settled since the cursor was surely on the disk: after a kill they may come again. */
  mayReturn: Set<number>
  /** Numbers are not used twice. */
  last: number
  fsyncMs: number
}

type Step = (world: World, amount: number) => void | Promise<void>

const steps: Readonly<Record<string, Step>> = {
  append(world, amount) {
    world.last += amount % 5 === 0 ? 3 : 1
    world.log.append(recordOf(world.last, bodyBytes))
    world.held.add(world.last)
  },
  settle(world, amount) {
    const seq = [...world.held][amount % Math.max(1, world.held.size)]
    if (seq === undefined) return
    world.log.settle(seq, itemsOf([seq]))
    world.held.delete(seq)
    world.mayReturn.add(seq)
  },
  async settleTheOldest(world, amount) {
    for (let count = 0; count < amount % 9; count++) await steps.settle?.(world, 0)
  },
  read(world, amount) {
    const from = amount % (world.last + 2)
    assert.deepEqual(
      readAll(world.log, from, bodyBytes),
      [...world.held].filter(seq => seq >= from),
    )
  },
  readOne(world, amount) {
    const from = amount % (world.last + 2)
    assert.equal(
      world.log.readFrom(from)?.seq,
      [...world.held].find(seq => seq >= from),
    )
  },
  async sync(world) {
    await world.log.sync()
    world.mayReturn.clear()
  },
  dropOldest(world) {
    const dropped = world.log.dropOldest()
    if (!dropped) return
    const gone = [...world.held].filter(seq => seq <= dropped.lastSeq)
    assert.equal(dropped.items, itemsOf(gone))
    for (const seq of gone) world.held.delete(seq)
  },
  async reopen(world) {
    await world.log.close()
    assert.equal(world.files.openFiles, 0)
    world.mayReturn.clear()
    open(world)
  },
  async kill(world) {
    await kill(world)
    open(world)
    adopt(world, 0)
  },
  async corrupt(world, amount) {
    const names = world.files.list(directory).filter(name => name.endsWith('.seg'))
    const name = names[amount % Math.max(1, names.length)]
    if (name === undefined) return
    await kill(world)
    const bytes = world.files.contents(`${directory}/${name}`)
    const at = (amount * 7919) % bytes.length
    bytes[at] = (bytes[at] ?? 0) ^ 4
    open(world)
    adopt(world, 1)
  },
  fill(world) {
    const { total, free } = world.files.space()
    world.files.capacityBytes = total - free + 40
    assert.throws(() => world.log.append(recordOf(world.last + 1, bodyBytes)), { code: 'ENOSPC' })
    world.files.capacityBytes = Number.POSITIVE_INFINITY
  },
}

/** Leaves what a process leaves that ends without a word. */
async function kill(world: World): Promise<void> {
  world.files = world.files.afterKill()
  await world.log.close() // on files of its own: only its timers end
}

function open(world: World): void {
  const { fsyncMs } = world
  world.log = openLog(directory, { segmentBytes: 1200, fsyncMs: () => fsyncMs }, world.files).log
}

/** Takes what a log gives after a fault for what it holds, and `lost` records of what it held may be missing. */
function adopt(world: World, lost: number): void {
  const recovered = world.log.items
  const found = new Set(readAll(world.log, 1, bodyBytes))
  const missing = [...world.held].filter(seq => !found.has(seq))
  assert.ok(missing.length <= lost, `lost ${missing}`)
  for (const seq of found) assert.ok(world.held.has(seq) || world.mayReturn.has(seq), `${seq} came again`)
  assert.ok(recovered >= itemsOf(found))
  // A bit that is flipped twice is whole again.
  for (const seq of missing) world.mayReturn.add(seq)
  world.held = found
  world.last = Math.max(world.last, world.log.lastSeq)
  world.mayReturn = new Set([...world.mayReturn].filter(seq => !found.has(seq)))
}

function checkBooks({ log, held }: World): void {
  assert.equal(log.items, itemsOf(held))
  assert.equal(log.records, held.size)
  assert.equal(log.oldestSeq, held.size === 0 ? Number.POSITIVE_INFINITY : Math.min(...held))
  assert.equal(log.oldestTimeMs, held.size === 0 ? 0 : 1.7e12 + Math.min(...held))
}

const names = Object.keys(steps)
// Appends come often, so that there is something to work on.
const name = fc.oneof(
  { weight: 3, arbitrary: fc.constant('append') },
  { weight: 5, arbitrary: fc.constantFrom(...names) },
)
const script = fc.array(fc.tuple(name, fc.nat(1000)), { minLength: 10, maxLength: 70 })

test('a log holds what a set of numbers holds, through kills, damage and full disks', async () => {
  await fc.assert(
    fc.asyncProperty(script, fc.constantFrom(0, 1e6), async (calls, fsyncMs) => {
      const files = new ShadowFiles()
      const log = openLog(directory, { segmentBytes: 1200, fsyncMs: () => fsyncMs }, files).log
      const world: World = { files, log, held: new Set(), mayReturn: new Set(), last: 0, fsyncMs }
      await steps.append?.(world, 1)
      for (const [call, amount] of calls) {
        await steps[call]?.(world, amount)
        checkBooks(world)
      }
      assert.deepEqual(readAll(world.log, 1, bodyBytes), [...world.held])
      await world.log.close()
    }),
    { numRuns: soak ? 100_000 : 1000 },
  )
})
