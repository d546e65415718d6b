// The queue on disk against a list: whatever is done to it in whatever order, a crash included.

import assert from 'node:assert/strict'
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  itemCount,
  numbered,
  type OpenQueue,
  openQueue,
  queueDirectory,
} from '../../../test/helpers/disk-store.ts'
import { soak } from '../../../test/helpers/soak.ts'
import type { Entry } from '../batch-queue.ts'
import type { Files } from './log.ts'
import { realFiles } from './real-files.ts'

interface Known {
  readonly name: number
  readonly orderKeys: number
  left: number
  entry?: Entry
  /** It came while the disk took nothing. */
  unwritten: boolean
}

type Action =
  | { readonly do: 'push'; readonly bytes: number; readonly orderKeys: number }
  | { readonly do: 'take' | 'crash' | 'restart' | 'breakDisk' | 'repairDisk' }
  | { readonly do: 'settle' | 'putBack' | 'part'; readonly which: number }
  | { readonly do: 'limit'; readonly bytes: number }

const which = fc.nat({ max: 7 })
const actions: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('push' as const),
      bytes: fc.integer({ min: 20, max: 2000 }),
      orderKeys: fc.oneof(
        fc.integer({ min: 0, max: 4 }).map(bit => 1 << bit),
        fc.nat({ max: 31 }),
        fc.constant(0xffffffff),
      ),
    }),
  },
  { weight: 8, arbitrary: fc.constant({ do: 'take' as const }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('settle' as const), which }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('putBack' as const), which }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('part' as const), which }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('limit' as const), bytes: fc.nat({ max: 6000 }) }) },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom('crash' as const, 'restart' as const, 'breakDisk' as const, 'repairDisk' as const)
      .map(what => ({ do: what })),
  },
)

/** Items that a batch has, by its name: at least 2, so that a part can go. */
const itemsOf = (name: number) => name + 1

class Run {
  readonly #root: string
  #broken = false
  #lost = 0
  #generation = 0
  #open: OpenQueue
  #known: Known[] = []
  #settled: Known[] = []
  #name = 0
  #memoryBytes = 4000

  constructor(root: string) {
    this.#root = root
    this.#open = this.#openQueue()
  }

  get #directory(): string {
    return join(this.#root, String(this.#generation))
  }

  async apply(action: Action): Promise<void> {
    const { queue } = this.#open
    const underWay = this.#known.filter(({ entry }) => entry)
    switch (action.do) {
      case 'push': {
        const name = ++this.#name
        queue.push(numbered(itemsOf(name), action.bytes, action.orderKeys))
        this.#known.push({
          name,
          orderKeys: action.orderKeys | 0,
          left: itemsOf(name),
          unwritten: this.#broken,
        })
        this.#forgetDropped()
        break
      }
      case 'take':
        this.#take()
        break
      case 'crash':
        await this.#crash()
        break
      case 'restart':
        await this.#restart()
        break
      case 'breakDisk':
        this.#broken = true
        break
      case 'repairDisk':
        this.#broken = false
        queue.tick()
        for (const known of this.#known) known.unwritten = false
        break
      case 'limit':
        this.#memoryBytes = action.bytes
        queue.limit({ memoryBytes: action.bytes })
        this.#forgetDropped()
        break
      default: {
        const known = underWay[action.which]
        if (!known?.entry) break
        if (action.do === 'settle') {
          assert.equal(queue.settle(known.entry), true)
          this.#known.splice(this.#known.indexOf(known), 1)
          this.#settled.push(known)
        } else if (action.do === 'putBack') {
          queue.putBack(known.entry)
          delete known.entry
          this.#forgetDropped()
        } else if (known.left > 1) {
          assert.equal(queue.settlePart(known.entry, 1), true)
          known.left--
        }
      }
    }
    this.#check()
  }

  async end(): Promise<void> {
    const { queue, store } = this.#open
    await this.apply({ do: 'repairDisk' })
    for (const { entry } of this.#known) if (entry) queue.putBack(entry)
    const names: number[] = []
    for (let entry = queue.take(); entry; entry = queue.take()) {
      names.push(itemCount(entry))
      assert.equal(queue.settle(entry), true)
    }
    assert.deepEqual(
      names,
      this.#known.map(({ name }) => itemsOf(name)),
    )
    assert.deepEqual([queue.items, queue.memory, queue.waiting], [0, 0, 0])
    assert.equal(this.#open.drops.disk_full ?? 0, this.#lost)
    await store.close()
  }

  #openQueue(): OpenQueue {
    const files: Files = {
      ...realFiles,
      write: (fd, parts) => {
        if (this.#broken) throw Object.assign(new Error('ENOSPC: made to fail'), { code: 'ENOSPC' })
        return realFiles.write(fd, parts)
      },
    }
    return openQueue(this.#directory, { memoryBytes: this.#memoryBytes, maxBytes: 2_000_000, files })
  }

  /** What memory had no room for while the disk took nothing: the oldest that waits, or else the newcomer. */
  #forgetDropped(): void {
    for (const { reason, items } of this.#open.dropped.splice(0)) {
      assert.equal(reason, 'disk_full')
      this.#lost += items
      const oldest = this.#known.find(({ entry, unwritten }) => unwritten && !entry)
      const gone = [oldest, this.#known.at(-1)].find(known => known?.left === items)
      assert.ok(gone?.unwritten, 'only what is nowhere else is dropped')
      this.#known.splice(this.#known.indexOf(gone), 1)
    }
  }

  /** What could not be written is counted at the end, all else is there again. */
  async #restart(): Promise<void> {
    const { queue, store, drops } = this.#open
    const lost = this.#known.filter(({ unwritten }) => unwritten).reduce((sum, { left }) => sum + left, 0)
    const before = queue.items
    await store.close()
    assert.deepEqual([drops.shutdown ?? 0, queue.items], [lost, before - lost])
    // A cursor that could not be written makes the restart one after a crash.
    if (this.#broken) await this.#crash()
    else this.#reopen(this.#known)
  }

  #take(): void {
    let taken = 0
    for (const { entry, orderKeys } of this.#known) if (entry) taken |= orderKeys
    const busy = this.#known.some(({ entry }) => entry)
    const free = this.#known.find(({ entry, orderKeys }) => {
      if (entry) return false
      const fits = (orderKeys & taken) === 0
      taken |= orderKeys
      return fits
    })
    const entry = this.#open.queue.take()
    if (!entry) {
      assert.ok(!free || busy, 'nothing is under way, yet nothing is given')
      return
    }
    assert.ok(free)
    assert.equal(itemCount(entry), itemsOf(free.name))
    assert.equal(entry.left, free.left)
    assert.equal(entry.batch.orderKeys | 0, free.orderKeys)
    free.entry = entry
  }

  /** The process dies: the files stay as they are. A settled batch may come again, none that is not may be missing. */
  async #crash(): Promise<void> {
    const before = this.#open
    const from = this.#directory
    const copy = `${from}-copy`
    this.#generation++
    for (const to of [copy, this.#directory]) cpSync(from, to, { recursive: true })
    await before.store.close()
    this.#broken = false
    this.#known = this.#known.filter(({ unwritten }) => !unwritten)
    const { queue, store } = openQueue(copy)
    const there: number[] = []
    for (let entry = queue.take(); entry; entry = queue.take()) {
      there.push(itemCount(entry) - 1)
      queue.settle(entry)
    }
    await store.close()
    const all = [...this.#settled, ...this.#known].sort((a, b) => a.name - b.name)
    const left = all.filter(({ name }) => there.includes(name))
    assert.deepEqual(
      there,
      left.map(({ name }) => name),
    )
    for (const known of this.#known) assert.ok(there.includes(known.name), `${known.name} is lost`)
    this.#reopen(left)
  }

  #reopen(known: readonly Known[]): void {
    this.#open = this.#openQueue()
    this.#settled = []
    this.#lost = 0
    this.#known = known.map(({ name, orderKeys }) => ({
      name,
      orderKeys,
      left: itemsOf(name),
      unwritten: false,
    }))
    assert.equal(this.#open.queue.recoveredItems, this.#open.queue.items)
    this.#check()
  }

  #check(): void {
    const { queue } = this.#open
    const left = this.#known.reduce((sum, known) => sum + known.left, 0)
    const sending = this.#known.filter(({ entry }) => entry).length
    assert.deepEqual(
      [queue.items, queue.sending, queue.waiting],
      [left, sending, this.#known.length - sending],
    )
    const largest = 2000 + 256
    // One record is let in whatever is in memory, and what is under way stays there.
    const bound = Math.max(this.#memoryBytes + largest, largest * (sending + 1))
    assert.ok(queue.memory <= bound, `${queue.memory}`)
    assert.equal(queue.oldestNumber === Number.POSITIVE_INFINITY, this.#known.length === 0)
  }
}

test('it holds what a list would hold, in its order, whatever happens', async t => {
  const root = queueDirectory(t)
  let runs = 0
  await fc.assert(
    fc.asyncProperty(fc.array(actions, { minLength: 1, maxLength: 60 }), async script => {
      const directory = join(root, String(runs++))
      const run = new Run(directory)
      for (const action of script) await run.apply(action)
      await run.end()
      rmSync(directory, { recursive: true })
    }),
    { numRuns: soak ? 2000 : 60 },
  )
})
