import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { hostTree } from '../../../test/helpers/collector.ts'
import { until } from '../../../test/helpers/program.ts'
import { silentLogger } from '../../../test/helpers/silent-logger.ts'
import type { Keys } from '../../foundation/schema/tree.ts'
import { type Collector, collector, gauge, NoData } from '../../signals/metrics/collectors/collector.ts'
import { SystemMetrics, type SystemMetricsOptions } from './system-metrics.ts'

const reads = gauge('reads', 'How often this was read.')

/** A collector that counts its readings, and one that has nothing to read. */
function counting(): Collector<Keys> {
  let count = 0
  const unit = collector({
    name: 'counting',
    summary: '',
    enabledByDefault: true,
    metrics: [reads],
    start: () => ({ collect: readings => readings.set(reads, ++count) }),
  })
  return unit as Collector<Keys>
}

const nothing = collector({
  name: 'arp',
  summary: '',
  enabledByDefault: true,
  metrics: [],
  start: () => ({
    collect() {
      throw new NoData('nothing is here')
    },
  }),
}) as Collector<Keys>

function start(t: TestContext, options: Partial<SystemMetricsOptions> = {}): SystemMetrics {
  const metrics = new SystemMetrics({
    namespace: 'node',
    path: { procfs: `${hostTree}/proc`, sysfs: hostTree, rootfs: hostTree, udev: hostTree },
    collectors: [
      { unit: counting(), options: {} },
      { unit: nothing, options: {} },
    ],
    cardinality: {
      enabled: false,
      max_metrics: 0,
      include_metrics: [],
      exclude_metrics: [],
      drop_labels: [],
    },
    maxProcs: 1,
    extended: false,
    intervalMs: 0,
    timeoutMs: 1000,
    build: { version: '1', revision: 'r' },
    log: silentLogger,
    ...options,
  })
  t.after(() => metrics.close())
  return metrics
}

const all = { openMetrics: false, withinMs: 1000 }

function samples(page: string): string[] {
  return page
    .split('\n')
    .filter(line => line !== '' && !line.startsWith('#') && !/duration_seconds|build_info/.test(line))
}

test('each scrape reads the collectors that it names, and tells how they fared', async t => {
  const metrics = start(t)
  assert.deepEqual(metrics.enabled, ['arp', 'counting'])
  assert.deepEqual([metrics.notReady(), metrics.knows('loadavg'), metrics.knows('x')], ['', true, false])
  const arp = 'node_scrape_collector_success{collector="arp"} 0'
  const counting = 'node_scrape_collector_success{collector="counting"} 1'
  const whole = await metrics.scrape({ ...all, collectors: metrics.enabled })
  assert.deepEqual(samples(whole), ['node_reads 1', arp, counting])
  assert.match(whole, /^node_exporter_build_info\{.*revision="r",.*version="1"} 1$/m)
  const part = await metrics.scrape({ ...all, collectors: ['arp'] })
  assert.deepEqual(samples(part), [arp])
  const open = await metrics.scrape({ ...all, openMetrics: true, collectors: ['counting'] })
  assert.deepEqual(samples(open), ['node_reads 2', counting])
  assert.match(open, /# EOF\n$/)
})

test('what only the agent’s page has, and what is told of the process', async t => {
  const scrapes = () => ({ answered: { 200: 3 }, inFlight: 1 })
  const page = await start(t, { extended: true, scrapes }).scrape({ ...all, collectors: ['arp'] })
  assert.match(page, /reason_info\{collector="arp",outcome="no_data",reason="nothing is here"} 1/)
  assert.match(page, /^promhttp_metric_handler_requests_total\{code="200"} 3$/m)
  assert.match(page, /^process_cpu_seconds_total /m)
})

/** A collector that waits, until the test lets it, and tells whether it was closed. */
function waiting(name: string) {
  const state = { closed: false, release: () => {} }
  const unit = collector({
    name,
    summary: '',
    enabledByDefault: true,
    metrics: [reads],
    start: () => ({
      wait: () =>
        new Promise<void>(resolve => {
          state.release = resolve
        }),
      collect(readings) {
        if (state.closed) throw new Error('closed')
        readings.set(reads, 1)
      },
      close() {
        state.closed = true
      },
    }),
  })
  return { unit: unit as Collector<Keys>, state }
}

test('a scrape that is under way is answered whole, though the collectors are to end', async t => {
  const { unit, state } = waiting('waiting')
  const metrics = start(t, { collectors: [{ unit, options: {} }] })
  const page = metrics.scrape({ ...all, collectors: ['waiting'] })
  metrics.close()
  assert.equal(state.closed, false)
  state.release()
  assert.match(await page, /^node_reads 1$/m)
  assert.equal(state.closed, true)
})

test('where one collector cannot start none has', t => {
  const { unit, state } = waiting('waiting')
  const contradiction = { ...unit, name: 'z', start: () => assert.fail('two options') }
  const both = [unit, contradiction].map(each => ({ unit: each, options: {} }))
  assert.throws(() => start(t, { collectors: both }), /two options/)
  assert.equal(state.closed, true)
})

test('OpenMetrics keeps the bound on families', async t => {
  const cardinality = {
    enabled: true,
    max_metrics: 1,
    include_metrics: [],
    exclude_metrics: [],
    drop_labels: [],
  }
  const page = await start(t, { cardinality }).scrape({ ...all, openMetrics: true, collectors: ['arp'] })
  assert.equal(page.match(/^# TYPE/gm)!.length, 1)
})

test('with an interval the readings of the background answer, and before the first it is not ready', async t => {
  const metrics = start(t, { intervalMs: 20 })
  assert.equal(metrics.notReady(), 'the collectors have not run yet')
  await until('it is ready', 20_000, () => metrics.notReady() === '')
  const value = async () =>
    Number(/^node_reads (\d+)$/m.exec(await metrics.scrape({ ...all, collectors: metrics.enabled }))![1])
  const [first, second] = [await value(), await value()]
  assert.ok(second - first <= 1, 'a scrape read')
  await until('it was read again', 20_000, async () => (await value()) > second + 1)
  const part = await metrics.scrape({ ...all, collectors: ['arp'] })
  assert.deepEqual(samples(part), ['node_scrape_collector_success{collector="arp"} 0'])
})
