import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { hostTree } from '../../../test/helpers/collector.ts'
import { parseExposition } from '../../../test/helpers/exposition.ts'
import { type Receiver, startReceiver } from '../../../test/helpers/otlp-receiver.ts'
import { until } from '../../../test/helpers/program.ts'
import { silentLogger } from '../../../test/helpers/silent-logger.ts'
import { loadConfig } from '../../config/index.ts'
import { family } from '../../foundation/model/collector.ts'
import type { Metric } from '../../foundation/model/metric.ts'
import { resource } from '../../foundation/model/resource.ts'
import type { Keys } from '../../foundation/schema/tree.ts'
import {
  type Collector,
  collector,
  counter,
  gauge,
  type Readings,
} from '../../signals/metrics/collectors/collector.ts'
import { cpu } from '../../signals/metrics/collectors/cpu.ts'
import { loadavg } from '../../signals/metrics/collectors/loadavg.ts'
import { meminfo } from '../../signals/metrics/collectors/meminfo.ts'
import { ExportPipelines } from './export-pipelines.ts'
import { HostMetricsPush } from './host-metrics-push.ts'
import { bootTimeUs } from './host-resource.ts'
import { SystemMetrics, type SystemMetricsOptions } from './system-metrics.ts'

type Unit = Collector<Keys>

const host = resource({ 'host.name': 'h', 'host.id': '1' })
const bootUs = bootTimeUs(`${hostTree}/proc`)
const hour = 3_600_000

interface Point {
  readonly attributes: Readonly<Record<string, unknown>>
  readonly startNs: string
  readonly timeNs: string
  readonly value: number
  readonly count: number
  readonly sum: number
  readonly buckets: readonly number[]
  readonly bounds: readonly number[]
}

interface Line {
  readonly name: string
  readonly unit: string
  readonly kind: string
  readonly scope: string
  readonly resource: Readonly<Record<string, unknown>>
  readonly points: readonly Point[]
}

function systemMetrics(t: TestContext, units: readonly Unit[], dropLabels: string[] = []): SystemMetrics {
  const cardinality: SystemMetricsOptions['cardinality'] = {
    enabled: true,
    max_metrics: 0,
    include_metrics: [],
    exclude_metrics: [],
    drop_labels: dropLabels,
  }
  const options = { guest: true, info: false, info_flags_include: '', info_bugs_include: '' }
  const metrics = new SystemMetrics({
    namespace: 'node',
    path: {
      procfs: `${hostTree}/proc`,
      sysfs: `${hostTree}/sys`,
      rootfs: `${hostTree}/rootfs`,
      udev: `${hostTree}/udev`,
    },
    collectors: units.map(unit => ({ unit, options })),
    cardinality,
    maxProcs: 1,
    extended: true,
    intervalMs: 0,
    timeoutMs: 1000,
    build: { version: '1', revision: 'r' },
    scrapes: () => ({ answered: {}, inFlight: 0 }),
    log: silentLogger,
  })
  t.after(() => metrics.close())
  return metrics
}

/** A receiver, and the agent's own way to it. */
async function pipelines(t: TestContext): Promise<{ receiver: Receiver; pipelines: ExportPipelines }> {
  const receiver = await startReceiver({ keep: true })
  t.after(() => receiver.close())
  const env = {
    SVC_OTLP_ENDPOINT: receiver.endpoint,
    SVC_OTLP_INSECURE: 'true',
    SVC_PIPELINE_EXPORT_BATCH_TIMEOUT: '5ms',
    SVC_PIPELINE_EXPORT_QUEUE_ENABLED: 'false',
  }
  const nowhere = '/nonexistent'
  const { config, problems } = loadConfig({ explicit: false, cwd: nowhere, systemFile: nowhere, env })
  assert.deepEqual(problems, [])
  const made = new ExportPipelines(config, { log: silentLogger, observe: () => {}, lock: () => true })
  t.after(() => made.pipeline.close())
  return { receiver, pipelines: made }
}

function push(
  t: TestContext,
  metrics: SystemMetrics,
  way: ExportPipelines,
  intervalMs = hour,
): HostMetricsPush {
  const intake = way.pipeline.intake('metrics')
  const options = {
    metrics: () => metrics,
    intake,
    host: { resource: host },
    bootUs,
    intervalMs,
    log: silentLogger,
  }
  const made = new HostMetricsPush(options)
  t.after(() => made.close())
  return made
}

/** What a receiver got of one push. */
async function received(t: TestContext, metrics: SystemMetrics): Promise<readonly Line[]> {
  const { receiver, pipelines: way } = await pipelines(t)
  await push(t, metrics, way).push()
  await way.pipeline.flush(20_000)
  return receiver.lines as unknown as readonly Line[]
}

/** A collector that shows what `collect` says. */
function unitOf(collect: (readings: Readings) => void): Unit {
  const start = () => ({ collect })
  return collector({ name: 'own', summary: '', enabledByDefault: true, metrics: [], start }) as Unit
}

/** What is handed on in each push, without a receiver: points as plain objects. */
function recorder(t: TestContext, metrics: SystemMetrics) {
  const items: Metric[] = []
  const intake = { add: (_r: unknown, _s: unknown, item: Metric) => void items.push(structuredCloned(item)) }
  const options = {
    metrics: () => metrics,
    host: { resource: host },
    bootUs,
    intervalMs: hour,
    log: silentLogger,
  }
  const made = new HostMetricsPush({ ...options, intake })
  t.after(() => made.close())
  return async (): Promise<ReadonlyMap<string, Metric>> => {
    items.length = 0
    await made.push()
    return new Map(items.map(item => [item.name, item]))
  }
}

/** Points are filled again by the next push. */
function structuredCloned(metric: Metric): Metric {
  return { ...metric, points: metric.points.map(point => ({ ...point })) } as Metric
}

test('the readings of the page go out by the names of the conventions', async t => {
  const metrics = systemMetrics(t, [cpu, loadavg, meminfo] as unknown as Unit[])
  const lines = await received(t, metrics)
  const page = parseExposition(
    await metrics.scrape({ collectors: metrics.enabled, openMetrics: false, withinMs: 1000 }),
    'text',
  )
  const metric = (name: string) => lines.find(line => line.name === name)!
  for (const { resource, scope } of lines) {
    assert.deepEqual(resource, { 'host.name': 'h', 'host.id': '1' })
    assert.equal(scope, 'svc/host')
  }

  const time = metric('system.cpu.time')
  assert.deepEqual([time.kind, time.unit], ['sum', 's'])
  const samples = page.families.get('node_cpu_seconds_total')!.samples
  assert.equal(time.points.length, samples.length)
  const modes: Record<string, string> = { irq: 'interrupt' }
  for (const { labels, value } of samples) {
    const { cpu: number, mode } = labels as Record<string, string>
    const point = time.points.find(
      ({ attributes }) =>
        attributes['cpu.logical_number'] === Number(number) &&
        attributes['cpu.mode'] === (modes[mode!] ?? mode),
    )
    assert.equal(point?.value, value)
    assert.equal(BigInt(point.startNs), BigInt(bootUs) * 1000n)
    assert.ok(BigInt(point.timeNs) > BigInt(point.startNs))
  }

  const usage = metric('system.memory.usage')
  assert.deepEqual(
    usage.points.map(({ attributes }) => attributes),
    [{ 'system.memory.state': 'free' }],
  )
  const load = metric('node_load1')
  assert.deepEqual([load.kind, load.points.length], ['gauge', 1])
  assert.equal(load.points[0]!.value, page.families.get('node_load1')!.samples[0]!.value)
  const others = [...page.families.keys()].filter(name =>
    /^(node_scrape|node_exporter|process|promhttp)_/.test(name),
  )
  assert.ok(others.length > 0)
  for (const name of others) assert.equal(metric(name), undefined, name)
})

test('a counter that begins anew has a new beginning over OTLP', async t => {
  const count = counter('count_total', 'A count.')
  const level = gauge('level', 'A level.')
  let value = 5
  const metrics = systemMetrics(t, [
    unitOf(readings => {
      readings.set(count, value)
      readings.set(level, value)
    }),
  ])
  const next = recorder(t, metrics)
  const point = async () => {
    const pushed = await next()
    assert.equal(pushed.get('node_level')!.points[0]!.startUs, 0)
    const { startUs, timeUs } = pushed.get('node_count_total')!.points[0]!
    return { startUs, timeUs }
  }
  assert.equal((await point()).startUs, bootUs)
  value = 7
  const before = await point()
  assert.equal(before.startUs, bootUs)
  value = 1
  assert.equal((await point()).startUs, before.timeUs)
  value = 2
  assert.equal((await point()).startUs, before.timeUs)
})

test('whole numbers are integers until one of them is none', async t => {
  const count = counter('count_total', 'A count.')
  const time = counter('time_seconds_total', 'A time.')
  let value = 5
  const metrics = systemMetrics(t, [
    unitOf(readings => {
      readings.set(count, value)
      readings.set(time, value)
    }),
  ])
  const next = recorder(t, metrics)
  const kinds = async () => {
    const pushed = await next()
    return ['node_count_total', 'node_time_seconds_total'].map(name => {
      const metric = pushed.get(name)!
      return metric.kind === 'sum' && metric.integer
    })
  }
  assert.deepEqual(await kinds(), [true, false])
  value = 5.5
  assert.deepEqual(await kinds(), [false, false])
  value = 6
  assert.deepEqual(await kinds(), [false, false])
})

test('histograms and summaries go out in their parts', async t => {
  const times = family('histogram', 'times_seconds', 'Times.', { labels: ['a'] })
  const sizes = family('summary', 'sizes_bytes', 'Sizes.')
  const parts = [
    [0.1, 2],
    [1, 5],
  ] as const
  const unit = unitOf(readings => {
    readings.setDistribution(times, { parts, sum: 4.5, count: 6 }, ['x'])
    readings.setDistribution(times, { parts, sum: 1, count: 5 }, ['y'])
    readings.setDistribution(sizes, { parts: [[0.5, 100]], sum: 300, count: 3 }, [])
  })
  const lines = await received(t, systemMetrics(t, [unit]))
  const shown = lines.map(({ name, unit, kind, points }) => ({
    name,
    unit,
    kind,
    points: points.map(({ startNs, timeNs, ...point }) => point),
  }))
  const bounds = [0.1, 1]
  assert.deepEqual(shown, [
    {
      name: 'node_sizes_bytes_sum',
      unit: 'By',
      kind: 'sum',
      points: [{ attributes: {}, value: 300 }],
    },
    { name: 'node_sizes_bytes_count', unit: '', kind: 'sum', points: [{ attributes: {}, value: 3 }] },
    {
      name: 'node_sizes_bytes',
      unit: 'By',
      kind: 'gauge',
      points: [{ attributes: { quantile: '0.5' }, value: 100 }],
    },
    {
      name: 'node_times_seconds',
      unit: 's',
      kind: 'histogram',
      points: [
        { attributes: { a: 'x' }, count: 6, sum: 4.5, bounds, buckets: [2, 3, 1] },
        { attributes: { a: 'y' }, count: 5, sum: 1, bounds, buckets: [2, 3, 0] },
      ],
    },
  ])
})

test('names, values and units follow the declaration; labels without text are none', async t => {
  const charge = gauge('charge_percent', 'Charge.', {
    labels: ['bay', 'error', 'slot', 'state'],
    otel: {
      name: 'x.charge',
      unit: '1',
      kind: 'gauge',
      scale: 0.01,
      id: ['bay', 'slot'],
      attributes: { bay: 'x.bay', state: 'x.state' },
      values: { D: 'discharging', 1: 'one' },
      constant: { 'x.type': 'battery' },
    },
  })
  const metrics = systemMetrics(t, [unitOf(readings => readings.setAll(charge, 50, ['b', '', '1', 'D']))])
  const [line, ...others] = await received(t, metrics)
  assert.deepEqual(others, [])
  assert.deepEqual([line!.name, line!.unit, line!.kind], ['x.charge', '1', 'gauge'])
  assert.equal(line!.points[0]!.value, 0.5)
  assert.deepEqual(line!.points[0]!.attributes, {
    'x.type': 'battery',
    'x.bay': 'b',
    slot: '1',
    'x.state': 'discharging',
    'hw.id': 'b/1',
  })
})

test('a value that says there is none is no point of the metric of the conventions', async t => {
  const otel = { name: 'x.speed', unit: 'By/s', kind: 'updowncounter', least: 0 } as const
  const speed = gauge('speed_bytes', 'Speed.', { labels: ['device'], otel })
  const unit = unitOf(readings => {
    readings.set(speed, -125_000, 'down')
    readings.set(speed, 0, 'slow')
    readings.set(speed, 125_000, 'up')
  })
  const [line] = await received(t, systemMetrics(t, [unit]))
  assert.deepEqual(
    line!.points.map(({ attributes, value }) => [attributes.device, value]),
    [
      ['slow', 0],
      ['up', 125_000],
    ],
  )
})

test('labels that the page leaves out are no attributes', async t => {
  const count = counter('count_total', 'A count.', { labels: ['a', 'b', 'c'] })
  const unit = unitOf(readings => {
    readings.set(count, 1, 'x', 'x,c="', 'y')
    readings.set(count, 2, 'z', 'x,c="', 'y')
  })
  const [line] = await received(t, systemMetrics(t, [unit], ['a']))
  assert.deepEqual(
    line!.points.map(({ attributes, value }) => ({ attributes, value })),
    [{ attributes: { b: 'x,c="', c: 'y' }, value: 3 }],
  )
})

test('more series than a request takes go out in several', async t => {
  const level = gauge('level', 'A level.', { labels: ['n'] })
  const all = 4500
  const unit = unitOf(readings => {
    for (let i = 0; i < all; i++) readings.set(level, i, String(i))
  })
  const lines = await received(t, systemMetrics(t, [unit]))
  assert.ok(lines.length > 1)
  const points = lines.flatMap(({ points }) => points)
  assert.equal(new Set(points.map(({ value }) => value)).size, all)
})

test('readings are pushed in intervals, and no more after the end', async t => {
  let reads = 0
  const level = gauge('level', 'A level.')
  const metrics = systemMetrics(t, [unitOf(readings => readings.set(level, ++reads))])
  const { receiver, pipelines: way } = await pipelines(t)
  const pushing = push(t, metrics, way)
  assert.equal(reads, 0)
  pushing.configure(20)
  await until('three readings were received', 20_000, () => receiver.counts.metrics >= 3)
  pushing.close()
  const before = reads
  await new Promise(resolve => setTimeout(resolve, 60))
  assert.equal(reads, before)
})

test('a fault is told once, and the next push is tried', async t => {
  const metrics = systemMetrics(t, [])
  const { pipelines: way } = await pipelines(t)
  const told: string[] = []
  let asked = 0
  const log = { ...silentLogger, error: (message: string) => void told.push(message) }
  const made = new HostMetricsPush({
    metrics: () => {
      asked++
      if (asked < 3) throw new Error('broken')
      return metrics
    },
    intake: way.pipeline.intake('metrics'),
    host: { resource: host },
    bootUs,
    intervalMs: 5,
    log: log as typeof silentLogger,
  })
  t.after(() => made.close())
  await until('it was asked often', 20_000, () => asked >= 5)
  assert.deepEqual(told, ['cannot export the host metrics'])
})
