import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import * as arbitrary from '../../../test/helpers/otlp-arbitrary.ts'
import { installKey, profileWith, recordWith, spanWith } from '../../../test/helpers/processor-stage.ts'
import { silentLogger } from '../../../test/helpers/silent-logger.ts'
import { soak } from '../../../test/helpers/soak.ts'
import { Attributes, type AttributeValue } from '../../foundation/model/attributes.ts'
import type { Metric } from '../../foundation/model/metric.ts'
import { resource } from '../../foundation/model/resource.ts'
import { type Signal, signals } from '../../foundation/model/signal.ts'
import { branch, build } from '../../foundation/schema/tree.ts'
import { type Chain, type ChainSettings, compileChain } from './chain.ts'
import { limits } from './limit-settings.ts'
import { redaction } from './redact/settings.ts'
import { transformation } from './transform/settings.ts'

const runs = soak ? 5000 : 250
const shop = resource({ 'service.name': 'shop', owner: 'bob@example.com' })
const scope = { name: 'svc/test', version: '1' }
const defaults = build(branch('', { limits, pii_redaction: redaction, transform: transformation }), new Map())

let nowMs = 0
const env = {
  log: silentLogger,
  installKey: () => installKey,
  nowMs: () => nowMs,
}
type AnyChain = Chain<never> | undefined

function settingsOf(change: {
  readonly attributes?: object
  readonly cardinality?: object
  readonly rate?: object
  readonly redact?: object
}): ChainSettings {
  return {
    enabled: true,
    transform: defaults.transform,
    limits: {
      attributes: { ...defaults.limits.attributes, ...change.attributes },
      cardinality: { ...defaults.limits.cardinality, ...change.cardinality },
      rate: { ...defaults.limits.rate, ...change.rate },
    },
    pii_redaction: { ...defaults.pii_redaction, ...change.redact },
  }
}

const randomSettings = fc
  .record({
    attributes: fc.record({
      enabled: fc.boolean(),
      max_attributes: fc.constantFrom(1, 3, 128),
      max_attribute_key_size: fc.constantFrom(1, 256),
      max_attribute_value_size: fc.constantFrom(1, 7, 4096),
      max_body_size: fc.constantFrom(1, 100, 100_000),
    }),
    cardinality: fc.record({
      enabled: fc.boolean(),
      default_max_series: fc.constantFrom(1, 3, 10_000),
      on_limit: fc.constantFrom('overflow', 'drop'),
      series_ttl: fc.constantFrom(1000, 3_600_000),
    }),
    rate: fc.record({
      enabled: fc.boolean(),
      traces_per_second: fc.constantFrom(1, 1e6),
      metrics_per_second: fc.constantFrom(1, 1e6),
      logs_per_second: fc.constantFrom(1, 1e6),
    }),
    redact: fc.record({
      enabled: fc.boolean(),
      mode: fc.constantFrom('replace', 'hash', 'drop', 'count'),
      scan_span_names: fc.boolean(),
      max_scan_bytes: fc.constantFrom(1024, 65_536),
    }),
  })
  .map(settingsOf)

const forms = fc.constantFrom({ temporality: 'cumulative' } as const, { temporality: 'delta' } as const)
const itemOf: Readonly<Record<Signal, fc.Arbitrary<unknown>>> = {
  traces: arbitrary.span,
  metrics: arbitrary.metric,
  logs: arbitrary.logRecord,
  profiles: arbitrary.profile,
}

const sizeOf = (item: unknown) => (item as Partial<Metric>).points?.length ?? 1
const copyOf = (item: unknown) => structuredClone((item as Partial<Metric>).points)

for (const signal of signals) {
  test(`${signal}: whatever the items and the settings, reloads included, every item goes on or is missed`, () => {
    let before: AnyChain
    const rounds = fc.tuple(randomSettings, forms, fc.array(itemOf[signal], { maxLength: 8 }), fc.nat(5000))
    const property = fc.property(rounds, ([settings, form, items, laterMs]) => {
      nowMs += laterMs
      const chain = compileChain(signal, settings, env, form, before as never) as AnyChain
      before = chain
      for (const item of items) {
        const given = copyOf(item)
        let told = 0
        chain?.run(shop, scope, item as never, {
          add: (_resource, _scope, one) => {
            told += sizeOf(one)
          },
          drop: (reason, count) => {
            assert.notEqual(reason, 'processor')
            told += count
          },
        })
        // Points of a metric may have one more beside them, which adds up those without room.
        const more = chain === undefined ? 0 : told - sizeOf(item)
        assert.ok(more === 0 || (signal === 'metrics' && more === 1), `${more} more`)
        assert.deepEqual(copyOf(item), given)
      }
    })
    fc.assert(property, { numRuns: runs })
  })
}

const personal: Readonly<Record<string, AttributeValue>> = {
  mail: 'to bob@example.com',
  card: 4242424242424242,
  list: ['x', 'key AKIA7Q3X5Z2W9KLMNB4P'],
  args: ['--password', 'hunter2secret'],
  'user.token': ['hunter2secret'],
}
const secrets = /bob@|4242|AKIA|hunter2/

/** Points of every kind, with two series, of which only one finds room. */
function metricsWith(timeUs: number): Metric[] {
  const described = { name: 'm', description: '', unit: '' }
  const id = new Uint8Array(0)
  const exemplar = { timeUs, value: 1, traceId: id, spanId: id, attributes: Attributes.of(personal) }
  const points = [1, 2].map(i => ({
    ...{ attributes: Attributes.of({ ...personal, i }), startUs: 1, timeUs, value: timeUs, count: 1, sum: 1 },
    ...{ buckets: [1, 0], scale: 1, zeroCount: 0, positive: { offset: 0, counts: [1] } },
    ...{ quantiles: [0.5], values: [1], exemplars: [exemplar] },
  }))
  return [
    { ...described, kind: 'gauge', points },
    { ...described, name: 's', kind: 'sum', monotonic: true, integer: true, points },
    { ...described, name: 'h', kind: 'histogram', bounds: [1], points },
    { ...described, name: 'e', kind: 'exponential_histogram', points },
    { ...described, name: 'q', kind: 'summary', points },
  ]
}

const itemsWith: { readonly [S in Signal]: (timeUs: number) => unknown[] } = {
  traces: () => [
    spanWith(personal, {
      name: 'GET /bob@example.com',
      statusMessage: 'password=hunter2secret',
      traceState: 'a=bob@example.com',
    }),
  ],
  logs: () => [
    recordWith(personal, {
      body: '{"password":"hunter2secret","to":"bob@example.com"}',
      eventName: 'AKIA7Q3X5Z2W9KLMNB4P',
      severityText: 'bob@example.com',
    }),
  ],
  profiles: () => [profileWith(personal)],
  metrics: metricsWith,
}

for (const signal of signals) {
  test(`${signal}: nothing personal gets through, in any mode, form or part, before a reload and after`, () => {
    for (const mode of ['replace', 'hash', 'drop'])
      for (const temporality of ['cumulative', 'delta'] as const) {
        const redact = { enabled: true, scan_span_names: true, mode }
        const settings = settingsOf({ redact, cardinality: { default_max_series: 1 } })
        let chain: AnyChain
        let added = 0
        for (let round = 1; round < 4; round++) {
          chain = compileChain(signal, settings, env, { temporality }, chain as never) as AnyChain
          for (const item of itemsWith[signal](round * 1000))
            chain!.run(shop, scope, item as never, {
              add(from, _scope, one) {
                added++
                assert.doesNotMatch(textsOf(from) + textsOf(one), secrets)
              },
              drop: () => undefined,
            })
        }
        assert.ok(added > 0)
      }
  })
}

/** All that an item holds, without what a set of attributes keeps behind its end. */
function textsOf(item: unknown): string {
  return JSON.stringify(item, (key, value: unknown) => {
    if (value instanceof Attributes) return value.toObject()
    return key === 'copied' ? undefined : value
  })
}
