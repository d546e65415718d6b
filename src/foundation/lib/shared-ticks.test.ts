import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { every } from './shared-ticks.ts'

test('work runs at multiples of its period, together with other work', async () => {
  const times: Record<string, number[]> = { short: [], long: [] }
  const short = every(20, () => times.short!.push(performance.now()))
  const long = every(60, () => times.long!.push(performance.now()))
  await sleep(400)
  short.stop()
  long.stop()
  const seen = times.short!.length + times.long!.length
  assert.ok(times.short!.length >= 3 && times.short!.length <= 21, `${times.short!.length}`)
  assert.ok(times.long!.length >= 2 && times.long!.length <= 7, `${times.long!.length}`)
  for (const at of times.long!)
    assert.ok(
      times.short!.some(other => Math.abs(other - at) < 5),
      'they run in one turn',
    )
  await sleep(80)
  assert.equal(times.short!.length + times.long!.length, seen, 'it was stopped')
})

test('work may stop itself and begin other work, and each run has a whole period behind it', async () => {
  let runs = 0
  let later = 0
  const first = every(10, () => {
    runs++
    first.stop()
    const second = every(10, () => {
      later++
      second.stop()
    })
  })
  const times: number[] = []
  const steady = every(5, () => times.push(performance.now()))
  await sleep(150)
  steady.stop()
  assert.deepEqual([runs, later], [1, 1])
  for (const [i, at] of times.entries()) if (i > 0) assert.ok(at - times[i - 1]! > 1, 'no run twice')
})

test('work changes its period, also in its own run', async () => {
  let runs = 0
  const ticks = every(10, () => {
    if (++runs === 3) ticks.every(60_000)
  })
  await sleep(150)
  assert.equal(runs, 3)
  ticks.every(10)
  await sleep(100)
  ticks.stop()
  assert.ok(runs > 3)
  const seen = runs
  ticks.every(10)
  await sleep(50)
  assert.equal(runs, seen, 'it was stopped')
})

test('what work throws is an uncaught exception, and other work goes on', async () => {
  const caught: unknown[] = []
  const listeners = process.listeners('uncaughtException')
  process.removeAllListeners('uncaughtException')
  process.on('uncaughtException', error => caught.push(error))
  let runs = 0
  const bad = every(10, () => {
    bad.stop()
    throw new Error('bad')
  })
  const good = every(10, () => runs++)
  await sleep(100)
  good.stop()
  process.removeAllListeners('uncaughtException')
  for (const listener of listeners) process.on('uncaughtException', listener)
  assert.equal(caught.length, 1)
  assert.ok(runs >= 2)
})
