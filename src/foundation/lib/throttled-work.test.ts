import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ThrottledWork } from './throttled-work.ts'

test('work that many ask for is done once at a time, and rests the longer the longer it took', async () => {
  let nowMs = 0
  let count = 0
  let end = (): void => undefined
  const work = () =>
    new Promise<number>(resolve => {
      const made = ++count
      end = () => resolve(made)
    })
  const rested = new ThrottledWork(work, { leastMs: 1000, factor: 10, now: () => nowMs })
  const check = async (atMs: number, tookMs: number, want: number) => {
    nowMs = atMs
    const made = rested.get()
    nowMs += tookMs
    assert.equal(rested.get(), made)
    end()
    assert.equal(await made, want)
  }
  await check(0, 5, 1)
  await check(1004, 0, 1)
  await check(1005, 500, 2)
  await check(6504, 0, 2)
  await check(6505, 0, 3)
  // What failed is tried again in its time.
  let tries = 0
  const failing = new ThrottledWork(() => Promise.reject(new Error(`${++tries}`)), {
    leastMs: 10,
    factor: 0,
    now: () => nowMs,
  })
  await assert.rejects(failing.get(), /1/)
  await assert.rejects(failing.get(), /1/)
  nowMs += 10
  await assert.rejects(failing.get(), /2/)
})
