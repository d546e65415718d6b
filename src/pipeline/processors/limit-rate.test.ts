import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogger } from '../../../test/helpers/silent-logger.ts'
import { Attributes } from '../../foundation/model/attributes.ts'
import { LogRecord } from '../../foundation/model/log.ts'
import type { Metric } from '../../foundation/model/metric.ts'
import { resource } from '../../foundation/model/resource.ts'
import type { Signal } from '../../foundation/model/signal.ts'
import { Span } from '../../foundation/model/span.ts'
import { branch, build } from '../../foundation/schema/tree.ts'
import { limitRate } from './limit-rate.ts'
import { type LimitSettings, limits } from './limit-settings.ts'
import type { ProcessorEnv, Stage } from './processor.ts'

const shop = resource({ 'service.name': 'shop' })
const defaults: LimitSettings = build(branch('', { limits }), new Map())
const base = { ...defaults.limits.rate, enabled: true }

type Rate = LimitSettings['limits']['rate']

/** Makes stages whose clock the test sets. */
class Bench {
  nowMs = 5_000
  stage: Stage | undefined
  readonly #signal: Signal

  constructor(signal: Signal, settings: Partial<Rate>) {
    this.#signal = signal
    this.reload(settings)
  }

  reload(settings: Partial<Rate>): void {
    const env: ProcessorEnv = {
      signal: this.#signal,
      log: silentLogger,
      installKey: () => new Uint8Array(32),
      nowMs: () => this.nowMs,
    }
    const rate = { ...base, ...settings }
    this.stage = limitRate.compile({ limits: { ...defaults.limits, rate } }, env, this.stage)
  }

  get counters(): Record<string, number> {
    const all: Record<string, number> = {}
    this.stage!.counters((rule, outcome, total) => {
      all[`${rule} ${outcome}`] = total
    })
    return all
  }

  /** How many of so many log records of a severity pass. */
  logs(count: number, severity: number): number {
    const record = new LogRecord()
    record.severity = severity
    let passed = 0
    for (let i = 0; i < count; i++) if (this.stage!.log!(record, shop) === '') passed++
    return passed
  }

  metric(points: number): string {
    const point = { attributes: new Attributes(), startUs: 0, timeUs: 0, value: 1 }
    const metric: Metric = {
      kind: 'gauge',
      name: 'm',
      description: '',
      unit: '',
      points: new Array(points).fill(point),
    }
    return this.stage!.metric!(metric, shop)
  }
}

test('it is off where the settings say so, and never for profiles', () => {
  assert.equal(new Bench('traces', { enabled: false }).stage, undefined)
  assert.equal(new Bench('profiles', {}).stage, undefined)
  assert.ok(!limitRate.signals.includes('profiles'))
})

test('a burst passes, then the rate', () => {
  const bench = new Bench('logs', { logs_per_second: 100, burst: 2 })
  assert.equal(bench.logs(500, 17), 200)
  for (let i = 0; i < 5; i++) {
    bench.nowMs += 100
    assert.equal(bench.logs(500, 17), 10)
  }
  bench.nowMs += 3_600_000
  assert.equal(bench.logs(500, 17), 200)
  assert.deepEqual([bench.counters[' passed'], bench.counters[' dropped']], [450, 3_050])
})

test('a clock that stands still or goes back gives nothing and takes nothing', () => {
  const bench = new Bench('logs', { logs_per_second: 100, burst: 1 })
  assert.equal(bench.logs(150, 17), 100)
  bench.nowMs -= 1_000
  assert.equal(bench.logs(10, 17), 0)
  bench.nowMs += 1_100
  assert.equal(bench.logs(50, 17), 10)
})

test('of logs the least severe go first', () => {
  const bench = new Bench('logs', { logs_per_second: 1000, burst: 1 })
  assert.equal(bench.logs(1000, 5), 500)
  assert.equal(bench.logs(1000, 9), 250)
  // What has no severity counts as INFO.
  assert.equal(bench.logs(1000, 0), 0)
  assert.equal(bench.logs(1000, 13), 150)
  assert.equal(bench.logs(1000, 17), 100)
  assert.equal(bench.logs(10, 24), 0)
  const { counters } = bench
  assert.deepEqual(
    ['debug', 'info', 'warn', 'error'].map(name => counters[`${name} dropped`]),
    [500, 1750, 850, 910],
  )
})

test('errors pass a flood of debug logs that never ends', () => {
  const bench = new Bench('logs', { logs_per_second: 1000, burst: 2 })
  for (let tick = 0; tick < 300; tick++) {
    bench.nowMs += 100
    bench.logs(1000, 5)
    assert.equal(bench.logs(20, 17), 20)
  }
  const passed = bench.counters[' passed']!
  assert.ok(passed >= 30_000 && passed <= 32_000, String(passed))
})

test('metrics pass whole or not at all, by their points', () => {
  const bench = new Bench('metrics', { metrics_per_second: 100, burst: 1 })
  assert.equal(bench.metric(60), '')
  assert.equal(bench.metric(60), 'rate_limited')
  assert.equal(bench.metric(40), '')
  assert.equal(bench.metric(1), 'rate_limited')
  assert.equal(bench.metric(0), '')
  assert.deepEqual(bench.counters, { ' passed': 100, ' dropped': 61 })
})

test('a metric larger than the bucket passes when that is full, and the next ones pay for it', () => {
  const bench = new Bench('metrics', { metrics_per_second: 100, burst: 1 })
  assert.equal(bench.metric(350), '')
  bench.nowMs += 2_400
  assert.equal(bench.metric(1), 'rate_limited')
  bench.nowMs += 200
  assert.equal(bench.metric(1), '')
})

/** Traces of ten spans that begin evenly and last half a second; which spans of which trace passed, by its begin. */
function offer(
  bench: Bench,
  tracesPerSecond: number,
  seconds: number,
): { beganMs: number; passed: number }[] {
  const spans = 10
  const traces: { beganMs: number; passed: number }[] = []
  const events: { atMs: number; trace: number }[] = []
  const begin = bench.nowMs
  for (let i = 0; i < tracesPerSecond * seconds; i++) {
    const beganMs = begin + (i * 1000) / tracesPerSecond
    traces.push({ beganMs, passed: 0 })
    for (let n = 0; n < spans; n++) events.push({ atMs: beganMs + n * 50, trace: i })
  }
  events.sort((a, b) => a.atMs - b.atMs)
  const span = new Span()
  const view = new DataView(span.traceId.buffer)
  for (const { atMs, trace } of events) {
    bench.nowMs = atMs
    view.setUint32(4, Math.imul(trace + 1, 0x9e3779b1))
    view.setUint32(12, trace)
    if (bench.stage!.span!(span, shop) === '') traces[trace]!.passed++
  }
  return traces
}

test('below the limit every span passes', () => {
  const bench = new Bench('traces', { traces_per_second: 1000 })
  assert.ok(offer(bench, 90, 10).every(({ passed }) => passed === 10))
  assert.equal(bench.stage!.warning, '')
})

test('above the limit whole traces pass, nearly as many as the limit allows, and never more', () => {
  const bench = new Bench('traces', { traces_per_second: 1000, burst: 2 })
  const begin = bench.nowMs
  const traces = offer(bench, 1000, 30)
  const spans = traces.reduce((sum, { passed }) => sum + passed, 0)
  assert.ok(spans <= 1000 * 31 + 2000, `${spans} spans`)
  assert.ok(spans >= 1000 * 30 * 0.8, `${spans} spans`)
  const settled = traces.filter(({ beganMs }) => beganMs > begin + 3_000)
  const cut = settled.filter(({ passed }) => passed > 0 && passed < 10)
  const whole = settled.filter(({ passed }) => passed === 10)
  assert.ok(cut.length < 0.02 * whole.length, `${cut.length} cut, ${whole.length} whole`)
  assert.match(
    bench.stage!.warning!,
    /^keeping (9|10|11)\.?\d* % of traces: \d+ spans\/s received, limit 1000$/,
  )
})

test('when the load falls, everything passes again within seconds', () => {
  const bench = new Bench('traces', { traces_per_second: 1000 })
  offer(bench, 2000, 5)
  offer(bench, 50, 10)
  assert.ok(offer(bench, 50, 5).every(({ passed }) => passed === 10))
  bench.nowMs += 60_000
  assert.equal(bench.stage!.warning, '')
})

test('a rise that comes at once costs few traces their wholeness', () => {
  const bench = new Bench('traces', { traces_per_second: 1000 })
  offer(bench, 50, 5)
  const traces = offer(bench, 5000, 4)
  const cut = traces.filter(({ passed }) => passed > 0 && passed < 10)
  assert.ok(cut.length < 0.15 * traces.length, `${cut.length} of ${traces.length}`)
})

test('two agents with the same load keep the same traces', () => {
  const kept = [1, 2].map(() => {
    const bench = new Bench('traces', { traces_per_second: 1000 })
    return offer(bench, 1000, 8).map(({ passed }) => passed)
  })
  assert.deepEqual(kept[0], kept[1])
})

test('a reload goes on with the level and the counts, at the new rate', () => {
  const bench = new Bench('logs', { logs_per_second: 100, burst: 2 })
  assert.equal(bench.logs(300, 17), 200)
  bench.reload({ logs_per_second: 1000, burst: 2 })
  assert.equal(bench.logs(10, 17), 0)
  bench.nowMs += 100
  assert.equal(bench.logs(500, 17), 100)
  assert.equal(bench.counters[' dropped'], 510)
  bench.nowMs += 10_000
  bench.reload({ logs_per_second: 10, burst: 1 })
  bench.nowMs += 10_000
  assert.equal(bench.logs(500, 17), 10)
})
