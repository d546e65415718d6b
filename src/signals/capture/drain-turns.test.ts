import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { DrainTurns } from './drain-turns.ts'

const nowNs = () => Number(process.hrtime.bigint())
let turns: DrainTurns | undefined

afterEach(() => turns?.stop())

/** Batches of a millisecond each, whose records are as old as `ageNs` says. */
function start(batches: number, ageNs = 0): { readonly turns: DrainTurns; left: number } {
  const of = { left: batches }
  turns = new DrainTurns(() => {
    if (of.left === 0) return 0
    of.left--
    const end = performance.now() + 1
    while (performance.now() < end);
    return nowNs() - ageNs
  })
  return Object.assign(of, { turns })
}

test('much is drained in turns, between which others work', async () => {
  const of = start(40)
  of.turns.run()
  assert.ok(of.left >= 34, `${40 - of.left} batches in one turn`)
  assert.ok(of.turns.isBehind)
  let others = 0
  while (of.turns.isBehind) {
    await turn()
    others++
  }
  assert.equal(of.left, 0)
  assert.ok(others >= 5, `${others} turns of others`)
})

test('while it is behind its clock is that of the records, and never goes back', async () => {
  const of = start(30, 5e9)
  const before = of.turns.reachedMs
  of.turns.run()
  assert.ok(of.turns.isBehind)
  // What was there before is not older than what was told of it.
  const first = of.turns.reachedMs
  assert.ok(first >= before && first < performance.now() - 2)
  const firstNs = of.turns.reachedNs
  await turn()
  assert.ok(of.turns.isBehind)
  assert.equal(of.turns.reachedMs, first)
  assert.equal(of.turns.reachedNs, firstNs)
  while (of.turns.isBehind) await turn()
  assert.ok(performance.now() - of.turns.reachedMs < 1000)
  assert.ok(Math.abs(nowNs() - of.turns.reachedNs) < 1e9)
})

test('records of now move the clock on', async () => {
  const of = start(30)
  of.turns.run()
  const first = of.turns.reachedMs
  await turn()
  assert.ok(of.turns.isBehind)
  assert.ok(of.turns.reachedMs > first)
})

test('it drains by itself, and no longer once it was stopped', async () => {
  const of = start(1)
  const endMs = performance.now() + 10_000
  while (of.left > 0 && performance.now() < endMs) await turn()
  assert.equal(of.left, 0)
  of.turns.stop()
  of.left = 3
  of.turns.run()
  assert.equal(of.left, 3)
  assert.ok(!of.turns.isBehind)
})
