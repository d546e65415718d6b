// owns: process
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { MessageChannel } from 'node:worker_threads'
import { nativeOrThrow } from '../../../test/helpers/native.ts'
import { EventLoopWatch, eventLoopWatch } from './event-loop.ts'

const native = nativeOrThrow()

function work(forMs: number): void {
  for (const until = performance.now() + forMs; performance.now() < until; );
}

/** Timers that are due run before a turn is over. */
async function nextTurn(): Promise<void> {
  await sleep(1)
  await sleep(10)
}

test('a turn counts as long as it lasts, and waits do not', async () => {
  const watch = new EventLoopWatch(native)
  await sleep(1000)
  assert.ok(watch.longest < 0.5, `a wait of a second counted as a turn of ${watch.longest} s`)
  work(600)
  await nextTurn()
  assert.ok(watch.longest >= 0.6, `${watch.longest}`)
  assert.equal(watch.longestLastMinute, watch.longest)
  assert.equal(watch.state.longest_ms, Math.round(watch.longest * 1000))
  const { counts, sum, bounds } = watch.histogram()
  const turns = counts.reduce((all, count) => all + count, 0)
  assert.equal(turns, watch.state.turns)
  assert.ok(turns >= 2)
  assert.ok(sum >= 0.6 && sum >= watch.longest)
  const above = counts.filter((_, bucket) => (bounds[bucket - 1] ?? 0) >= 0.25)
  assert.equal(
    above.reduce((all, count) => all + count),
    1,
  )
})

test('callbacks of input count, not only timers', async () => {
  const watch = new EventLoopWatch(native)
  const { port1, port2 } = new MessageChannel()
  await new Promise<void>(resolve => {
    port2.once('message', () => {
      work(300)
      resolve()
    })
    port1.postMessage('')
  })
  await nextTurn()
  port1.close()
  assert.ok(watch.longest >= 0.3, `${watch.longest}`)
})

test('a process has one watch', () => {
  assert.equal(eventLoopWatch(native), eventLoopWatch(native))
})
