import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { until } from '../../../test/helpers/program.ts'
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

test('a host without records is drained less often, until the bell rings', async () => {
  let runs = 0
  let newest = 0
  let ring = () => {}
  let isClosed = false
  const paces: boolean[] = []
  turns = new DrainTurns(
    () => {
      runs++
      return 0
    },
    {
      newest: () => newest,
      bell: rung => {
        ring = rung
        return { close: () => (isClosed = true) }
      },
    },
  )
  turns.onPace = quiet => paces.push(quiet)
  await sleep(1_500)
  newest++
  await sleep(2_500)
  assert.deepEqual(paces, [], 'a record came 2.5 s ago')
  await until('the host is quiet', 5_000, () => paces.length > 0)
  runs = 0
  await sleep(900)
  assert.ok(runs <= 2, `${runs} drains`)
  runs = 0
  ring()
  ring()
  await until('it is drained', 500, () => runs > 0)
  assert.deepEqual(paces, [true, false])
  await sleep(500)
  assert.ok(runs >= 3, `${runs} drains`)
  turns.stop()
  assert.ok(isClosed)
})

test('a host is not quiet until the bell would ring again, and a bell that cannot be had leaves nothing running', async () => {
  let runs = 0
  const batch = () => {
    runs++
    return 0
  }
  let ring = () => {}
  const paces: boolean[] = []
  const bell = (rung: () => void) => {
    ring = rung
    return { close: () => {} }
  }
  turns = new DrainTurns(batch, { newest: () => 0, bell })
  turns.onPace = quiet => paces.push(quiet)
  await sleep(2_000)
  ring() // for a record that is older than the newest
  await sleep(2_000)
  assert.deepEqual(paces, [])
  turns.stop()
  runs = 0
  const refuse = () => {
    throw new Error('no bell')
  }
  assert.throws(() => new DrainTurns(batch, { newest: () => 0, bell: refuse }), /no bell/)
  await sleep(300)
  assert.equal(runs, 0)
})
