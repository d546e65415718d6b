import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../../test/helpers/program.ts'
import { startHeartbeat } from './heartbeat.ts'

/** Holds the thread, as a loop that never yields would. */
function block(milliseconds: number) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds)
}

test('a loop that runs is not stuck', () => {
  const heartbeat = startHeartbeat(60_000)
  assert.equal(heartbeat.stuck(), undefined)
  heartbeat.stop()
})

test('a stall over the bound is told, also before the timers run again, and forgotten after the bound', async () => {
  const heartbeat = startHeartbeat(200)
  block(900)
  assert.match(heartbeat.stuck() ?? '', /^the event loop was stuck for \d+\.\d s$/)
  await until('the stall is forgotten', 20_000, () => heartbeat.stuck() === undefined)
  heartbeat.stop()
})
