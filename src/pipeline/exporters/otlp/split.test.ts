import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import * as arbitrary from '../../../../test/helpers/otlp-arbitrary.ts'
import { decodeRequest, requestType } from '../../../../test/helpers/otlp-proto.ts'
import { assertConformant } from '../../../../test/helpers/profcheck.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import { Attributes } from '../../../foundation/model/attributes.ts'
import type { Profile } from '../../../foundation/model/profile.ts'
import { resource, type Scope } from '../../../foundation/model/resource.ts'
import type { Signal } from '../../../foundation/model/signal.ts'
import { decodeRequest as decodeItems } from './decode.ts'
import { logEncoding } from './encode-log.ts'
import { metricEncoding } from './encode-metric.ts'
import { profileEncoding } from './encode-profile.ts'
import { traceEncoding } from './encode-trace.ts'
import { jsonToRequest } from './from-json.ts'
import { type Encoding, RequestBuilder } from './request.ts'
import { countItems, splitRequest } from './split.ts'

const numRuns = soak ? 2000 : 100

// protobufjs decodes to objects whose shape only the definitions know.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Decoded = any

const names = {
  traces: ['resourceSpans', 'scopeSpans', 'spans'],
  metrics: ['resourceMetrics', 'scopeMetrics', 'metrics'],
  logs: ['resourceLogs', 'scopeLogs', 'logRecords'],
  profiles: ['resourceProfiles', 'scopeProfiles', 'profiles'],
} as const

/** Every item by itself with all that it belongs to, in order: points with their metric, profiles without indices. */
function flat(signal: Signal, body: Uint8Array): string[] {
  if (signal === 'profiles') return flatProfiles(body)
  const request: Decoded = decodeRequest(signal, body)
  const [resources, scopes, items] = names[signal]
  const found: string[] = []
  for (const { [resources]: _, [scopes]: groups = [], ...owner } of request[resources] ?? [])
    for (const { [items]: list = [], ...scope } of groups)
      for (const item of list)
        for (const one of signal === 'metrics' ? pointsOf(item) : [item])
          found.push(JSON.stringify({ owner, scope, item: one }))
  return found
}

function flatProfiles(body: Uint8Array): string[] {
  const found: string[] = []
  const { changed, leftOut } = decodeItems('profiles', body, (from, scope, item) =>
    found.push(JSON.stringify({ from, scope, item })),
  )
  assert.deepEqual([changed.size, leftOut.size], [0, 0])
  return found
}

function pointsOf({ gauge, sum, histogram, exponentialHistogram, summary, ...metric }: Decoded): unknown[] {
  const { dataPoints, ...data } = gauge ?? sum ?? histogram ?? exponentialHistogram ?? summary
  return dataPoints.map((point: unknown) => ({ metric, data, point }))
}

const shop = resource({ 'service.name': 'shop' })
const bank = resource({ 'service.name': 'bank', large: 'x'.repeat(300) })
const http: Scope = { name: 'http', version: '1' }
const sql: Scope = { name: 'sql', version: '1' }

function check<T>(make: () => Encoding<T>, items: fc.Arbitrary<T>): void {
  const entry = fc.tuple(fc.constantFrom(shop, bank), fc.constantFrom(http, sql), items)
  fc.assert(
    fc.property(fc.array(entry, { minLength: 1, maxLength: 12 }), entries => {
      const builder = new RequestBuilder(make())
      for (const [from, scope, item] of entries) builder.add(from, scope, item)
      const { signal, body, items: count } = builder.take()[0]!
      assert.equal(countItems(signal, body), count)
      const whole = flat(signal, body)
      assert.equal(whole.length, count)
      const halves = splitRequest(signal, body)
      assert.equal(halves === undefined, count < 2)
      assert.deepEqual(halves?.flatMap(half => flat(signal, half.body)) ?? whole, whole)
      for (const half of halves ?? []) {
        assert.equal(half.items, countItems(signal, half.body))
        assert.ok(half.items > 0 && half.body.length <= body.length)
        if (signal === 'profiles') assertConformant(half.body)
      }
      const singles = leaves(signal, body)
      assert.equal(singles.length, count)
      if (signal === 'profiles') for (const single of singles) assertConformant(single)
      assert.deepEqual(
        singles.flatMap(single => flat(signal, single)),
        whole,
      )
    }),
    { numRuns, endOnFailure: true },
  )
}

/** What repeated halving leads to. */
function leaves(signal: Signal, body: Uint8Array): Uint8Array[] {
  const halves = splitRequest(signal, body)
  if (halves === undefined) return [body]
  return halves.flatMap(half => leaves(signal, half.body))
}

test('halves hold the same items in order, down to single ones', () => {
  check(() => traceEncoding, arbitrary.span)
  check(() => logEncoding, arbitrary.logRecord)
  check(() => metricEncoding, arbitrary.metric)
  check(profileEncoding, arbitrary.profile)
})

function metricsOf(...metrics: object[]): Uint8Array {
  return jsonToRequest('metrics', { resourceMetrics: [{ scopeMetrics: [{ metrics }] }] })
}

test('metrics of every kind are halved by their points, and keep what their points share', () => {
  const dataPoints = [{ flags: 1 }, { flags: 2 }, { flags: 3 }]
  const kinds = ['gauge', 'sum', 'histogram', 'exponentialHistogram', 'summary']
  for (const kind of kinds) {
    const shared = kind === 'gauge' || kind === 'summary' ? {} : { aggregationTemporality: 1 }
    const metric = (points: object[]) => ({ name: 'm', unit: 's', [kind]: { dataPoints: points, ...shared } })
    const [first, second] = splitRequest('metrics', metricsOf(metric(dataPoints)))!
    assert.deepEqual([first.items, second.items], [2, 1])
    assert.deepEqual(
      decodeRequest('metrics', first.body),
      decodeRequest('metrics', metricsOf(metric(dataPoints.slice(0, 2)))),
    )
    assert.deepEqual(
      decodeRequest('metrics', second.body),
      decodeRequest('metrics', metricsOf(metric(dataPoints.slice(2)))),
    )
  }
})

function profileOf(name: string, count: number): Profile {
  const attributes = new Attributes()
  const samples = Array.from({ length: count }, (_, i) => ({
    frames: [{ name: `${name} ${i}`, file: '', line: 0 }],
    value: 1,
    attributes,
  }))
  return { kind: 'cpu', unit: 'nanoseconds', startUs: 1, durationUs: 1, samples }
}

test('a half of a request of profiles has only its own part of the dictionary', () => {
  const builder = new RequestBuilder(profileEncoding())
  builder.add(shop, http, profileOf('shop', 1000))
  builder.add(bank, http, profileOf('bank', 1000))
  const { body } = builder.take()[0]!
  for (const half of splitRequest('profiles', body)!) {
    assertConformant(half.body)
    assert.ok(half.body.length < body.length * 0.6, `${half.body.length} of ${body.length}`)
  }
})

test('a half of profiles of another sender has the whole dictionary', () => {
  const profile = {
    sampleType: { typeStrindex: 1 },
    samples: [{ values: ['1'] }],
    profileId: 'aa'.repeat(16),
  }
  const body = jsonToRequest('profiles', {
    resourceProfiles: [{ scopeProfiles: [{ profiles: [profile, profile] }] }],
    dictionary: { stringTable: ['', 'cpu', 'of another sender'] },
  })
  for (const half of splitRequest('profiles', body)!)
    assert.deepEqual(
      decodeRequest('profiles', half.body).dictionary,
      decodeRequest('profiles', body).dictionary,
    )
})

test('a message without items goes into one half as it is', () => {
  const gauge = { gauge: { dataPoints: [{}] } }
  const empty = { name: 'empty' }
  const body = metricsOf(empty, gauge, empty, gauge, empty)
  const [first, second] = splitRequest('metrics', body)!
  assert.deepEqual(decodeRequest('metrics', first.body), decodeRequest('metrics', metricsOf(empty, gauge)))
  assert.deepEqual(
    decodeRequest('metrics', second.body),
    decodeRequest('metrics', metricsOf(empty, gauge, empty)),
  )
})

test('fields that nobody here knows are kept', () => {
  const type = requestType('traces')
  const plain = jsonToRequest('traces', {
    resourceSpans: [{ scopeSpans: [{ spans: [{ name: 'a' }, { name: 'b' }] }] }],
  })
  // Field 1000 of the request, a text.
  const unknown = Buffer.from([0xc2, 0x3e, 2, 0x68, 0x69])
  for (const half of splitRequest('traces', Buffer.concat([unknown, plain, unknown]))!) {
    assert.equal(Buffer.from(half.body).toString('latin1').split('\xc2\x3e\x02hi').length, 3)
    assert.doesNotThrow(() => type.decode(half.body))
  }
})

test('one item is not halved, nor is nothing; what is no request is refused', () => {
  assert.equal(splitRequest('logs', new Uint8Array()), undefined)
  assert.equal(splitRequest('metrics', metricsOf({ gauge: { dataPoints: [{}] } })), undefined)
  assert.throws(() => splitRequest('logs', Uint8Array.of(0x0a, 9)), RangeError)
  assert.throws(() => countItems('logs', Uint8Array.of(0x0a, 1, 0x0b)), RangeError)
})
