import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { cfaRule, pageBits, ruleBytes, type UnwindTable } from '../../foundation/model/unwind-table.ts'
import { UnwindArena, type UnwindMemory } from './unwind-arena.ts'

const nobody = (id: number) => assert.fail(`${id} had to make room`)
const fileWords = { size: 6, firstPage: 0, pages: 1, firstRow: 2, rows: 3, runtime: 4, used: 5 }

function memoryOf(rows: number, pages: number, rules: number, files: number): UnwindMemory {
  return {
    rows: new Uint32Array(rows),
    pages: new Uint32Array(pages),
    rules: new Uint8Array(rules * ruleBytes),
    files: new Uint32Array(files * fileWords.size),
    fileWords,
  }
}

/** A table whose rows stand at these offsets, each with a rule of its own offset from rsp. */
function tableOf(places: readonly (readonly [offset: number, cfaOffset: number])[]): UnwindTable {
  const rules = new DataView(new ArrayBuffer(places.length * ruleBytes))
  const last = places.at(-1)?.[0] ?? 0
  const pages = new Uint32Array((last >> pageBits) + 2).fill(places.length)
  for (const [i, [offset, cfaOffset]] of places.entries()) {
    rules.setUint8(i * ruleBytes, cfaRule.rsp)
    rules.setInt32(i * ruleBytes + 4, cfaOffset, true)
    for (let page = 0; page <= offset >> pageBits; page++) pages[page] = Math.min(pages[page]!, i)
  }
  return {
    rows: Uint32Array.from(places, ([offset], i) => (((offset & 0xffff) << 16) | i) >>> 0),
    pages,
    rules: new Uint8Array(rules.buffer),
    unsupported: 0,
  }
}

/** Looks a place up as the kernel side does: the offset from rsp that holds there. */
function lookUp({ rows, pages, rules, files }: UnwindMemory, id: number, offset: number): number | undefined {
  const at = id * fileWords.size
  const page = offset >> pageBits
  if (page >= files[at + fileWords.pages]!) return undefined
  const first = files[at + fileWords.firstPage]! + page
  let row = pages[first]!
  const end = pages[first + 1]!
  while (row < end && rows[row]! >>> 16 <= (offset & 0xffff)) row++
  if (row <= files[at + fileWords.firstRow]!) return undefined
  const rule = (rows[row - 1]! & 0xffff) * ruleBytes
  return new DataView(rules.buffer).getInt32(rule + 4, true)
}

test('each place of each file has the rule that its table gives it', () => {
  const places = fc.uniqueArray(fc.tuple(fc.nat(300_000), fc.integer({ min: 8, max: 40 })), {
    selector: ([offset]) => offset,
    minLength: 1,
    maxLength: 40,
  })
  fc.assert(
    fc.property(fc.array(places, { minLength: 1, maxLength: 6 }), tables => {
      const memory = memoryOf(1000, 100, 64, 16)
      const arena = new UnwindArena(memory)
      const sorted = tables.map(table => [...table].sort(([a], [b]) => a - b))
      for (const [i, table] of sorted.entries()) arena.put(i + 1, tableOf(table), 0, nobody)
      for (const [i, table] of sorted.entries())
        for (const [j, [offset, cfaOffset]] of table.entries()) {
          assert.equal(lookUp(memory, i + 1, offset), cfaOffset)
          const next = table[j + 1]?.[0] ?? offset + 1
          assert.equal(lookUp(memory, i + 1, next - 1), cfaOffset)
        }
    }),
    { numRuns: 200 },
  )
})

const small = tableOf([
  [16, 8],
  [32, 16],
])

test('who was not used of late makes room, and what is in use stays', () => {
  const memory = memoryOf(5, 8, 16, 16)
  const arena = new UnwindArena(memory)
  const out: number[] = []
  const put = (id: number) => arena.put(id, small, 0, gone => out.push(gone))
  assert.ok(put(1) && put(2))
  assert.deepEqual([arena.files, arena.rows], [2, 4])
  for (let tick = 0; tick < 4; tick++) {
    memory.files[2 * fileWords.size + fileWords.used] = 1
    arena.age()
  }
  assert.ok(put(3))
  assert.deepEqual(out, [1])
  assert.equal(lookUp(memory, 1, 20), undefined)
  assert.equal(lookUp(memory, 3, 20), 8)
})

test('where all are in use the newcomer has an empty entry, and it is counted', () => {
  const memory = memoryOf(5, 8, 16, 16)
  const arena = new UnwindArena(memory)
  assert.ok(arena.put(1, small, 0, nobody) && arena.put(2, small, 0, nobody))
  assert.equal(arena.put(3, small, 0, nobody), false)
  assert.equal(arena.refused, 1)
  assert.equal(lookUp(memory, 3, 20), undefined)
  assert.equal(lookUp(memory, 2, 20), 8)
})

test('a file without a table has its runtime alone', () => {
  const memory = memoryOf(5, 8, 16, 16)
  const arena = new UnwindArena(memory)
  assert.ok(arena.put(7, undefined, 2, nobody))
  assert.equal(memory.files[7 * fileWords.size + fileWords.runtime], 2)
  assert.equal(lookUp(memory, 7, 20), undefined)
})

test('rules beyond the bound are not followed', () => {
  const memory = memoryOf(100, 8, 3, 4)
  const arena = new UnwindArena(memory)
  arena.put(
    1,
    tableOf([
      [16, 8],
      [32, 16],
      [48, 24],
    ]),
    0,
    nobody,
  )
  assert.equal(arena.rules, 3)
  assert.equal(lookUp(memory, 1, 20), 8)
  assert.equal(memory.rows[2]! & 0xffff, 1)
})

test('room is whole again when all have gone, in whichever order', () => {
  fc.assert(
    fc.property(fc.shuffledSubarray([1, 2, 3, 4, 5, 6], { minLength: 6 }), order => {
      const arena = new UnwindArena(memoryOf(13, 12, 16, 8))
      for (const id of [1, 2, 3, 4, 5, 6]) assert.ok(arena.put(id, small, 0, nobody))
      for (const id of order) arena.drop(id)
      assert.deepEqual([arena.files, arena.rows], [0, 0])
      const large = tableOf(Array.from({ length: 12 }, (_, i) => [16 * (i + 1), 8] as const))
      assert.ok(arena.put(1, large, 0, nobody))
    }),
  )
})

test('what is in use stays, however many others look for room between two looks', () => {
  const memory = memoryOf(5, 8, 16, 16)
  const arena = new UnwindArena(memory)
  assert.ok(arena.put(1, small, 0, nobody) && arena.put(2, small, 0, nobody))
  for (let turn = 0; turn < 6; turn++) assert.equal(arena.put(3, small, 0, nobody), false)
})

test('files that were not met for long are told, also those without a table, and never one that is pinned', () => {
  const memory = memoryOf(5, 8, 16, 16)
  const arena = new UnwindArena(memory)
  arena.put(1, undefined, 0, nobody)
  arena.put(2, small, 0, nobody)
  arena.pin(2)
  arena.put(3, small, 0, nobody)
  assert.deepEqual(arena.idle(), [])
  for (let tick = 0; tick < 4; tick++) arena.age()
  assert.deepEqual(arena.idle(), [1, 3])
  const out: number[] = []
  assert.ok(arena.put(4, small, 0, gone => out.push(gone)))
  assert.deepEqual(out, [3])
})

test('whoever has most of the room gives a table up for another, though all are used', () => {
  const memory = memoryOf(65, 1000, 10, 100)
  const arena = new UnwindArena(memory)
  const rows = Array.from({ length: 16 }, (_, i) => [i, 8] as const)
  const owner = (user: string) => ({ group: '', user })
  for (const id of [1, 2, 3, 4]) assert.ok(arena.put(id, tableOf(rows), 0, nobody, owner('1000')))
  assert.equal(arena.put(5, tableOf(rows), 0, nobody, owner('1000')), false)
  const gave: number[] = []
  for (const id of [6, 7]) assert.ok(arena.put(id, tableOf(rows), 0, from => gave.push(from), owner('0')))
  assert.deepEqual(gave, [1, 2])
  assert.equal(lookUp(memory, 6, 3), 8)
  assert.equal(arena.put(8, tableOf(rows), 0, nobody, owner('0')), false)
  assert.deepEqual(arena.losses, { refused: 2, taken: 2 })
})
