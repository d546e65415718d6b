import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Attributes } from '../foundation/model/attributes.ts'
import type { Gauge, Metric } from '../foundation/model/metric.ts'
import type { PlacedMetric } from '../foundation/model/prepared-metric.ts'
import { resource } from '../foundation/model/resource.ts'
import type { SignalTypeName } from '../foundation/model/signal-types.ts'
import { Batcher, type ItemProcessor } from './batcher.ts'
import { metricEncoding } from './exporters/otlp/encode-metric.ts'
import { RequestBuilder } from './exporters/otlp/request.ts'
import { Account } from './ledger.ts'
import { TypedIntake, TypedPrepared } from './typed-intake.ts'

const host = resource({ 'host.name': 'test' })
const scope = { name: 'svc', version: '1' }

function gauge(...systems: readonly string[]): Gauge {
  const points = systems.map(system => ({
    attributes: Attributes.of({ system }),
    startUs: 0,
    timeUs: 1,
    value: 0,
  }))
  return { kind: 'gauge', name: 'g', description: '', unit: '', points }
}

function open(process?: ItemProcessor<Metric>) {
  const account = new Account()
  const batcher = new Batcher<Metric>({
    builder: new RequestBuilder(metricEncoding),
    account,
    count: ({ points }) => points.length,
    out: () => undefined,
  })
  batcher.accept({ maxItems: 4, maxBytes: 1 << 20, timeoutMs: 60_000 }, process)
  const types = () => {
    const found: Record<string, number> = {}
    account.eachType((type, items) => {
      found[type] = items
    })
    const sum = Object.values(found).reduce((a, b) => a + b, 0)
    assert.equal(sum, account.collected, 'types add up to what was collected')
    return found
  }
  const intake = (type: SignalTypeName) => new TypedIntake<Metric>(batcher, account, type)
  const byPoint = new TypedIntake<Metric>(batcher, account, ({ points }, at) =>
    String(points[Math.min(at, points.length - 1)]!.attributes.get('system')),
  )
  return { account, batcher, types, intake, byPoint }
}

test('what is collected is known by type, the points of one metric each by theirs', () => {
  const { batcher, types, intake, byPoint, account } = open()
  assert.deepEqual(types(), {})
  intake('host').add(host, scope, gauge('a', 'b'))
  byPoint.add(host, scope, gauge('sql', 'redis', 'sql'))
  intake('host').add(host, scope, gauge('c'))
  assert.deepEqual(types(), { host: 3, sql: 2, redis: 1 })
  batcher.add(host, scope, gauge('a', 'b'))
  account.dropAtIntake('no_count', 4, 'scraped')
  account.dropAtIntake('ring_full', 1)
  assert.deepEqual(types(), { host: 3, sql: 2, redis: 1, scraped: 4, unknown: 3 })
  // What is refused is collected, too.
  batcher.refuse('no_endpoint')
  byPoint.add(host, scope, gauge('redis'))
  assert.deepEqual(types().redis, 2)
  batcher.cut()
})

test('types add up also where a processor drops points or makes one more', () => {
  const dropping = open({
    run: (of, within, item, out) => {
      out.drop('transform', 1)
      out.add(of, within, { ...item, points: item.points.slice(1) } as Metric)
    },
  })
  dropping.byPoint.add(host, scope, gauge('sql', 'redis'))
  assert.deepEqual(dropping.types(), { sql: 1, redis: 1 })
  dropping.batcher.cut()
  const adding = open({
    run: (of, within, item, out) => {
      out.add(of, within, { ...item, points: [...item.points, item.points[0]!] } as Metric)
    },
  })
  adding.byPoint.add(host, scope, gauge('sql', 'redis'))
  assert.deepEqual(adding.types(), { sql: 1, redis: 2 })
  adding.batcher.cut()
})

test('metrics that come prepared are of one type, whether they are sent or refused', () => {
  const { batcher, account, types } = open()
  const prepared = new TypedPrepared(batcher, account, 'scraped')
  const metric = gauge('a', 'b')
  const placed = { ...metric, points: metric.points.map((point, value) => ({ ...point, timeUs: 0, value })) }
  const made = prepared.prepare(host, scope, placed as PlacedMetric)!
  assert.deepEqual(types(), {})
  for (let i = 0; i < 3; i++) assert.equal(prepared.send(made, Float64Array.of(1, 2), 1), 'sent')
  assert.deepEqual(types(), { scraped: 6 })
  batcher.refuse('no_endpoint')
  const counted = prepared.prepare(host, scope, placed as PlacedMetric)!
  assert.equal(prepared.send(counted, Float64Array.of(1, 2), 1), 'sent')
  assert.deepEqual(types(), { scraped: 8 })
})
