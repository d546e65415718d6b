import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { hostTree } from '../../../../test/helpers/collector.ts'
import { silentLogger } from '../../../../test/helpers/silent-logger.ts'
import type { Keys } from '../../../foundation/schema/tree.ts'
import { HostFiles } from '../../../kernel/host.ts'
import type { Collector } from '../collectors/collector.ts'
import { cpu } from '../collectors/cpu.ts'
import { loadavg } from '../collectors/loadavg.ts'
import { meminfo } from '../collectors/meminfo.ts'
import { type BoundsSettings, boundsOf } from './bounds.ts'
import { type Description, describe } from './description.ts'
import { Gatherer } from './gatherer.ts'
import { Page } from './page.ts'

const units = [cpu, loadavg, meminfo] as unknown as readonly Collector<Keys>[]

/** Of the collectors above, after they have read the project's host tree, or before. */
async function description(
  t: TestContext,
  settings: Partial<BoundsSettings> = {},
  read = true,
): Promise<Description> {
  const at = (name: string) => join(hostTree, name)
  const host = new HostFiles({ procfs: at('proc'), sysfs: at('sys'), rootfs: at('rootfs'), udev: at('udev') })
  t.after(() => host.close())
  const bounds = boundsOf({
    enabled: true,
    max_metrics: 0,
    include_metrics: [],
    exclude_metrics: [],
    drop_labels: [],
    ...settings,
  })
  const page = new Page({ namespace: 'node', bounds })
  const options = { guest: true, info: false, info_flags_include: '', info_bugs_include: '' }
  const collectors = units.map(unit => ({
    name: unit.name,
    reader: unit.start(options as never, { host, log: silentLogger }),
  }))
  const gatherer = new Gatherer({ collectors, page, log: silentLogger, maxWaiting: 1 })
  if (read) await gatherer.gather(gatherer.runs, 1000)
  return describe({
    namespace: 'node',
    collectors: units,
    page,
    sources: gatherer.runs,
    bounds,
    version: '1.44.0',
  })
}

function metric({ categories }: Description, name: string) {
  return categories.flatMap(({ metrics }) => metrics).find(metric => metric.name === name)
}

test('each collector is a category with what it shows and what that is over OTLP', async t => {
  const document = await description(t)
  assert.deepEqual(
    document.categories.map(({ category }) => category),
    ['cpu', 'loadavg', 'meminfo'],
  )
  for (const { count, metrics } of document.categories) assert.equal(count, metrics.length)
  const names = document.categories.flatMap(({ metrics }) => metrics.map(({ name }) => name))
  assert.equal(new Set(names).size, names.length)
  assert.equal(document.total, names.length)
  assert.deepEqual(metric(document, 'node_cpu_seconds_total'), {
    name: 'node_cpu_seconds_total',
    otel_name: 'system.cpu.time',
    description: 'Time that a CPU was in a mode.',
    unit: 's',
    type: 'counter',
    labels: { cpu: 'cpu.logical_number', mode: 'cpu.mode' },
    has_otel_mapping: true,
  })
  assert.deepEqual(metric(document, 'node_load1'), {
    name: 'node_load1',
    otel_name: '',
    description: 'Tasks that run or wait to run, averaged over 1 minute.',
    unit: '',
    type: 'gauge',
    labels: {},
    has_otel_mapping: false,
  })
})

test('what a collector found by reading is described once it has read', async t => {
  assert.equal(metric(await description(t, {}, false), 'node_memory_MemTotal_bytes'), undefined)
  const found = metric(await description(t), 'node_memory_MemTotal_bytes')
  assert.equal(found?.otel_name, 'system.memory.limit')
})

test('the share of metrics with a name of the conventions is told', async t => {
  const { total, otel_info: info, categories } = await description(t)
  const mapped = categories.flatMap(({ metrics }) => metrics).filter(({ has_otel_mapping: has }) => has)
  assert.ok(mapped.length > 5 && mapped.length < total)
  assert.deepEqual(info, {
    version: '1.44.0',
    mapped_count: mapped.length,
    total_metrics: total,
    coverage: `${((100 * mapped.length) / total).toFixed(1)}%`,
  })
  const none = await description(t, { include_metrics: ['nothing'] })
  assert.deepEqual([none.categories, none.total, none.otel_info.coverage], [[], 0, '0.0%'])
})

test('what the page leaves out is not described', async t => {
  const document = await description(t, { exclude_metrics: ['node_load.*'], drop_labels: ['cpu'] })
  assert.deepEqual(
    document.categories.map(({ category }) => category),
    ['cpu', 'meminfo'],
  )
  assert.deepEqual(metric(document, 'node_cpu_seconds_total')?.labels, { mode: 'cpu.mode' })
})
