// owns: host
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { hostTree } from '../../../test/helpers/collector.ts'
import { silentLogger } from '../../../test/helpers/silent-logger.ts'
import { loadConfig } from '../../config/index.ts'
import { Registry } from '../../foundation/lib/registry.ts'
import { metricsDocument, seriesLine } from '../../view/api/ui/host-documents.ts'
import { HostMetrics } from '../agent/host-metrics.ts'
import type { DocumentContext } from './document-context.ts'
import { MetricRecorder } from './metric-recorder.ts'
import { metrics, series } from './metrics.ts'

const ajv = new Ajv2020({ strict: false, allErrors: true })

function check(shape: { readonly json: object }, document: unknown): void {
  const isValid = ajv.validate(shape.json, JSON.parse(JSON.stringify(document)))
  assert.ok(isValid, ajv.errorsText())
}

/** Parts with the metrics of a tree of files. */
async function start(t: TestContext, root = hostTree, env: Record<string, string> = {}) {
  const loaded = loadConfig({
    explicit: false,
    cwd: '/nonexistent',
    systemFile: '/nonexistent',
    env: {
      SVC_AGENT_NODEEXPORTER_LISTEN_ADDRESS: '127.0.0.1:0',
      SVC_AGENT_NODEEXPORTER_PATH_PROCFS: `${root}/proc`,
      SVC_AGENT_NODEEXPORTER_PATH_SYSFS: `${root}/sys`,
      SVC_AGENT_NODEEXPORTER_PATH_UDEV: `${root}/udev`,
      ...env,
    },
  })
  assert.deepEqual(loaded.problems, [])
  const pipeline = { intake: () => ({ add() {} }), state: () => ({ destination: undefined }) }
  const hostMetrics = await HostMetrics.start({
    loaded,
    pipeline: pipeline as never,
    host: { resource: {} } as never,
    log: silentLogger,
  })
  t.after(() => hostMetrics?.close())
  const registry = new Registry()
  const own = registry.counter('svc_items_total', 'Items.', ['signal'])
  registry.histogram('svc_took_seconds', 'Time.', [1, 2]).labels().observe(1)
  own.labels('traces').inc(7)
  const recorder = new MetricRecorder({
    read: async maxAgeMs => hostMetrics?.read(maxAgeMs),
    windowMs: 900_000,
    maxBytes: 1 << 22,
  })
  const parts = {
    loaded: () => loaded,
    hostMetrics: () => hostMetrics,
    registry,
    recorder,
    shown: (text: string) => text.replace('sda', 'xxx'),
  } as unknown as DocumentContext
  return { parts, own, recorder, hostMetrics }
}

test('all metrics are told by what reads them, with where that is and why there are none', async t => {
  const { parts } = await start(t)
  const document = await metrics(parts)
  check(metricsDocument, document)
  assert.equal(document.no_data_reason, '')
  const section = (name: string) => document.sections.find(each => each.name === name)!
  assert.equal(section('meminfo').source, '/proc/meminfo')
  assert.deepEqual(
    section('meminfo').families.find(({ name }) => name === 'node_memory_MemTotal_bytes'),
    {
      name: 'node_memory_MemTotal_bytes',
      otel_name: 'system.memory.limit',
      help: section('meminfo').families.find(({ name }) => name === 'node_memory_MemTotal_bytes')!.help,
      type: 'gauge',
      unit: 'By',
      series: 1,
      value: 16302848 * 1024,
    },
  )
  const read = section('diskstats').families.find(({ name }) => name === 'node_disk_read_bytes_total')!
  assert.deepEqual([read.series > 1, read.value, read.type], [true, null, 'counter'])
  assert.equal(section('meminfo').fault, '')
  const empty = document.sections.filter(({ families }) => families.length === 0)
  assert.ok(empty.length > 0 && empty.every(({ fault }) => fault !== ''), JSON.stringify(empty))
  const own = section('svc')
  assert.deepEqual(
    own.families.map(({ name, type, unit, value }) => [name, type, unit, value]),
    [
      ['svc_items_total', 'counter', '', 7],
      ['svc_took_seconds', 'histogram', 's', 1],
    ],
  )
  const names = document.sections.flatMap(({ families }) => families.map(({ name }) => name))
  assert.equal(new Set(names).size, names.length)
})

test('readings are shared by who asks at once', async t => {
  const { parts, hostMetrics } = await start(t)
  const rounds = () => hostMetrics!.readings.runs[0]!.round
  const startMs = performance.now()
  const [first, second] = await Promise.all([metrics(parts), metrics(parts)])
  assert.equal(first.sections.length, second.sections.length)
  assert.equal(rounds(), 1)
  await metrics(parts)
  // A reading is good for two seconds.
  if (performance.now() - startMs < 1500) assert.equal(rounds(), 1)
  const before = rounds()
  await hostMetrics!.read(-1)
  assert.equal(rounds(), before + 1)
})

async function opened(parts: DocumentContext, name: string) {
  const live = series(parts, name)!
  const [first, tick, ...others] = await live.next()
  assert.deepEqual(others, [])
  check(seriesLine, first)
  assert.ok(first?.kind === 'start')
  // Of a counter nothing is known at first but its past.
  assert.equal(tick === undefined, first.rate)
  if (tick === undefined) return { live, first, values: [] }
  check(seriesLine, tick)
  assert.ok(tick.kind === 'tick')
  assert.equal(tick.values.length, first.series.length)
  return { live, first, values: tick.values }
}

test('a metric of the host comes with the past that was recorded', async t => {
  const { parts, recorder } = await start(t)
  await recorder.look()
  const { first, values } = await opened(parts, 'node_memory_MemTotal_bytes')
  assert.deepEqual(first.series, [
    { labels: {}, line: 'node_memory_MemTotal_bytes 1.6694116352e+10', values: [16302848 * 1024] },
  ])
  assert.deepEqual([first.rate, first.omitted, first.step_ms], [false, 0, 10_000])
  assert.deepEqual(values, [16302848 * 1024])
  const disks = await opened(parts, 'node_disk_read_bytes_total')
  assert.equal(disks.first.rate, true)
  const line = disks.first.series.find(({ labels }) => labels.device === 'xxx')
  assert.match(line!.line, /^node_disk_read_bytes_total\{device="xxx"\} \d/, 'labels are foreign texts')
})

test('a counter of svc itself is told as a rate', async t => {
  const { parts, own } = await start(t)
  const { live, first } = await opened(parts, 'svc_items_total')
  assert.deepEqual(
    [first.series[0]!.line, first.series[0]!.labels, first.rate],
    ['svc_items_total{signal="traces"} 7', { signal: 'traces' }, true],
  )
  own.labels('traces').inc(1000)
  const [next] = await live.next()
  assert.ok(next?.kind === 'tick' && next.values[0]! > 0)
  const took = await opened(parts, 'svc_took_seconds')
  assert.equal(took.first.series[0]!.line, 'svc_took_seconds_count 1')
})

test('of many series the largest are told, and how many are not', async t => {
  const { parts } = await start(t)
  const many = parts.registry.gauge('svc_many', 'Many.', ['of'])
  for (let i = 0; i < 120; i++) many.labels(String(i)).set(i)
  const { first, values } = await opened(parts, 'svc_many')
  assert.equal(first.omitted, 70)
  assert.deepEqual(
    values,
    Array.from({ length: 50 }, (_, i) => 70 + i),
  )
})

test('there is no live metric of a name that nothing has, and one that has no series yet is there', async t => {
  const { parts } = await start(t)
  assert.equal(series(parts, ''), undefined)
  const { first } = await opened(parts, 'node_memory_MemTotal_bytes')
  assert.equal(first.series.length, 1, 'nothing was read before')
  assert.equal(series(parts, 'node_nothing'), undefined)
})

test('where the host metrics are off that is said, and svc still tells of itself', async t => {
  const { parts } = await start(t, hostTree, { SVC_AGENT_NODEEXPORTER_ENABLED: 'false' })
  const document = await metrics(parts)
  check(metricsDocument, document)
  assert.match(document.no_data_reason, /agent\.nodeexporter\.enabled: true/)
  assert.deepEqual(
    document.sections.map(({ name }) => name),
    ['svc'],
  )
  assert.equal(series(parts, 'node_load1'), undefined)
})
