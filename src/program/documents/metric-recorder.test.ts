import assert from 'node:assert/strict'
import { test } from 'node:test'
import { counter, type Family, family, gauge } from '../../foundation/model/collector.ts'
import { boundsOf } from '../../signals/metrics/exposition/bounds.ts'
import { Page, type Series, type Source } from '../../signals/metrics/exposition/page.ts'
import type { HostReadings } from '../agent/host-metrics-push.ts'
import { MetricRecorder } from './metric-recorder.ts'

const requests = counter('requests_total', 'Requests.', { labels: ['code'] })
const size = gauge('size_bytes', 'Size.')
const took = family('histogram', 'took_seconds', 'Time.')
const bounds = boundsOf({
  enabled: false,
  max_metrics: 0,
  include_metrics: [],
  exclude_metrics: [],
  drop_labels: [],
})

type Numbers = readonly (readonly [of: Family, value: number, label?: string])[]

/** A page that a test writes, and a recorder of it by a clock of the test. */
function start({ maxBytes = 1 << 20, windowMs = 60_000, seconds = 0 } = {}) {
  const clock = { ms: 0 }
  let reads = 0
  let page = new Page({ namespace: 'node', bounds })
  const run = { name: 'test', round: 0, duplicates: 0, reader: {}, seconds }
  const readings = () => ({ page, runs: [run] }) as unknown as HostReadings
  const recorder = new MetricRecorder({
    read: async () => {
      reads++
      return { source: readings(), atMs: clock.ms }
    },
    windowMs,
    maxBytes,
    now: () => clock.ms,
  })
  return {
    recorder,
    clock,
    cost: run,
    reads: () => reads,
    renew: () => {
      page = new Page({ namespace: 'node', bounds })
    },
    /** Ten seconds later these are the readings. */
    async record(...numbers: Numbers): Promise<void> {
      clock.ms += 10_000
      const into = page.begin(run as Source)
      for (const [of, value, label] of numbers)
        if (of.type === 'histogram') into.setDistribution(of, { parts: [], sum: 1, count: value }, [])
        else into.set(of, value, label)
      await recorder.look()
    },
    series(name: string): readonly Series[] {
      for (const [known, all] of page.read(new Set([run as Source]))) if (known === name) return all
      return []
    },
  }
}

test('what only grows is kept as a rate, all else as it is', async () => {
  const { recorder, record, series } = start()
  await record([requests, 100, '200'], [size, 1e15 + 1], [took, 10])
  await record([requests, 150, '200'], [size, 2], [took, 40], [requests, 7, '500'])
  await record([requests, 20, '200'], [size, 3], [took, 40], [requests, 17, '500'])
  const of = (name: string) => recorder.past(series(name)).values
  const unknown = Number.NaN
  assert.deepEqual(of('node_requests_total'), [
    [unknown, 5, unknown],
    [unknown, unknown, 1],
  ])
  assert.deepEqual(of('node_size_bytes'), [[1e15 + 1, 2, 3]])
  assert.deepEqual(of('node_took_seconds'), [[unknown, 3, 0]])
  const { fromMs, stepMs } = recorder.past(series('node_size_bytes'))
  assert.equal(stepMs, 10_000)
  assert.ok(Math.abs(Date.now() - 20_000 - fromMs) < 5000)
})

test('a reading that is in the books already changes nothing', async () => {
  const { recorder, record, series } = start()
  await record([size, 1])
  await recorder.look()
  await record([size, 2])
  assert.deepEqual(recorder.past(series('node_size_bytes')).values, [[1, 2]])
})

test('a series that is gone for the window makes room for another one', async () => {
  const rows = 6
  // Room for one block of eight series.
  const maxBytes = 8 * (rows * 8 + 32 + 256)
  const { recorder, record, series } = start({ maxBytes })
  const codes = Array.from({ length: 9 }, (_, i) => [requests, 1, `c${i}`] as const)
  await record(...codes)
  assert.equal(recorder.leftOut, 1)
  assert.ok(recorder.bytes <= maxBytes, `${recorder.bytes} of ${maxBytes}`)
  for (let i = 0; i < rows; i++) await record(...codes.slice(1))
  // The room is there after the reading in which it came to be.
  assert.equal(recorder.leftOut, 1)
  await record(...codes.slice(1))
  assert.equal(recorder.leftOut, 0)
  await record(...codes.slice(1).map(([of, , label]) => [of, 21, label] as const))
  const { values } = recorder.past(series('node_requests_total'))
  assert.deepEqual(
    values.map(line => line.at(-1)),
    codes.slice(1).map(() => 2),
  )
  assert.ok(recorder.bytes <= maxBytes)
})

test('other collectors begin with other series', async () => {
  const { recorder, record, renew, series } = start()
  await record([size, 1])
  renew()
  await record([size, 5])
  assert.deepEqual(recorder.past(series('node_size_bytes')).values, [[Number.NaN, 5]])
})

test('what is dear to read is recorded more rarely, unless somebody looks', async () => {
  const { recorder, record, reads } = start({ seconds: 0.1, windowMs: 60_000 })
  for (let i = 0; i < 5; i++) await record([size, i])
  assert.equal(reads(), 1, 'the first reading tells what it costs')
  for (let i = 0; i < 10; i++) await record([size, i])
  assert.equal(reads(), 3)
  recorder.want()
  for (let i = 0; i < 5; i++) await record([size, i])
  assert.equal(reads(), 8)
})

test('a reading that was dear but once, as the first one mostly is, does not end the recording', async () => {
  const { record, reads, cost } = start({ seconds: 0.1 })
  await record([size, 1])
  cost.seconds = 0.005
  for (let i = 0; i < 5; i++) await record([size, i])
  assert.equal(reads(), 2)
  for (let i = 0; i < 5; i++) await record([size, i])
  assert.equal(reads(), 7)
})

test('a long window has longer steps, and room for as many series', () => {
  const day = new MetricRecorder({ read: async () => undefined, windowMs: 86_400_000, maxBytes: 1 << 20 })
  const { stepMs } = day.past([])
  assert.equal(stepMs, 240_000)
})

test('there is no past before the first reading, and a fault in a reading is not one of the recorder', async () => {
  const { recorder } = start()
  assert.deepEqual(recorder.past([]).values, [])
  assert.equal(recorder.bytes, 0)
  const failing = new MetricRecorder({
    read: () => Promise.reject(new Error('no')),
    windowMs: 60_000,
    maxBytes: 1 << 20,
  })
  await failing.look()
  const off = new MetricRecorder({ read: async () => undefined, windowMs: 60_000, maxBytes: 1 << 20 })
  await off.look()
  assert.equal(off.bytes, 0)
})
