import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import * as arbitrary from '../../../../test/helpers/otlp-arbitrary.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import { Attributes } from '../../../foundation/model/attributes.ts'
import { type Resource, resource, type Scope } from '../../../foundation/model/resource.ts'
import type { Signal } from '../../../foundation/model/signal.ts'
import { type DecodedItem, decodeRequest } from './decode.ts'
import { logEncoding } from './encode-log.ts'
import { metricEncoding } from './encode-metric.ts'
import { profileEncoding } from './encode-profile.ts'
import { traceEncoding } from './encode-trace.ts'
import { jsonToRequest } from './from-json.ts'
import { type Encoding, RequestBuilder } from './request.ts'

const numRuns = soak ? 2000 : 100

const shop = resource({ 'service.name': 'shop', n: 1 })
const bank = resource({})
const http: Scope = { name: 'http', version: '1' }
const none: Scope = { name: '', version: '' }
const told: Scope = {
  name: '',
  version: '',
  attributes: Attributes.of({ 'library.mood': 'calm', n: 7 }),
  schemaUrl: 'https://opentelemetry.io/schemas/1.20.0',
}

function scopesOf(owner: Resource): Scope[] {
  return owner === shop ? [http, told] : [none]
}

/** What the encoders write is the same, byte by byte, when it was decoded and is encoded again. */
function check<S extends Signal>(
  signal: S,
  make: () => Encoding<DecodedItem[S]>,
  items: fc.Arbitrary<DecodedItem[S]>,
  owners: readonly Resource[] = [shop, bank],
  scopes: readonly Scope[] = owners.flatMap(scopesOf),
): void {
  const entry = fc.tuple(fc.constantFrom(...owners), fc.constantFrom(...scopes), items)
  fc.assert(
    fc.property(fc.array(entry, { minLength: 1, maxLength: 6 }), entries => {
      const builder = new RequestBuilder(make())
      for (const [from, scope, item] of entries) builder.add(from, scope, item)
      const { body, items: count } = builder.take()[0]!
      const again = new RequestBuilder(make())
      const { changed, leftOut } = decodeRequest(signal, body, (from, scope, item) => {
        again.add(from, scope, item)
      })
      const batch = again.take()[0]!
      assert.deepEqual([[...changed], [...leftOut]], [[], []])
      assert.equal(batch.items, count)
      assert.equal(Buffer.from(batch.body).toString('hex'), Buffer.from(body).toString('hex'))
    }),
    { numRuns, endOnFailure: true },
  )
}

test('what the encoders write is decoded to the same items', () => {
  check('traces', () => traceEncoding, arbitrary.span)
  check('logs', () => logEncoding, arbitrary.logRecord)
  check('metrics', () => metricEncoding, arbitrary.metric)
  // The dictionary has its entries in the order of `add`, which only one group keeps.
  check('profiles', profileEncoding, arbitrary.profile, [shop], [told])
})

interface Decoded<S extends Signal> {
  readonly items: { resource: Resource; scope: Scope; item: DecodedItem[S] }[]
  readonly changed: Record<string, number>
  readonly leftOut: Record<string, number>
}

function decoded<S extends Signal>(signal: S, json: object): Decoded<S> {
  const items: Decoded<S>['items'] = []
  const unfit = decodeRequest(signal, jsonToRequest(signal, json), (from, scope, item) =>
    items.push({ resource: from, scope, item }),
  )
  return {
    items,
    changed: Object.fromEntries(unfit.changed),
    leftOut: Object.fromEntries(unfit.leftOut),
  }
}

function spans(...list: object[]): object {
  return { resourceSpans: [{ scopeSpans: [{ spans: list }] }] }
}

function metrics(...list: object[]): object {
  return { resourceMetrics: [{ scopeMetrics: [{ metrics: list }] }] }
}

test('values that the model has no place for are taken as text, and counted', () => {
  const value = (name: string, value: unknown) => ({ key: name, value: { [name]: value } })
  const attributes = [
    value('kvlistValue', {
      values: [
        { key: '__proto__', value: { intValue: '9007199254740993' } },
        { key: 'b', value: { bytesValue: '/+8=' } },
        { key: 'n', value: {} },
      ],
    }),
    value('bytesValue', '/+8='),
    { key: 'texts', value: { arrayValue: { values: [{ stringValue: 'a' }, { stringValue: 'b' }] } } },
    { key: 'numbers', value: { arrayValue: { values: [{ intValue: '1' }, { doubleValue: 0.5 }] } } },
    value('intValue', '9007199254740993'),
    { key: 'empty' },
    { key: 'twice', value: { intValue: '1' } },
    { key: 'twice', value: { intValue: '2' } },
  ]
  const { items, changed } = decoded('traces', spans({ attributes }))
  assert.deepEqual(Object.entries(items[0]!.item.attributes.toObject()), [
    ['kvlistValue', '{"__proto__":9007199254740993,"b":"/+8=","n":null}'],
    ['bytesValue', '/+8='],
    ['texts', ['a', 'b']],
    ['numbers', '[1,0.5]'],
    ['intValue', 9007199254740992],
    ['empty', ''],
    ['twice', 2],
  ])
  assert.deepEqual(changed, {
    'maps as values, converted to JSON': 1,
    'byte values, converted to base64': 1,
    'arrays of non-strings as values, converted to JSON': 1,
    'integers over 2^53, rounded': 1,
  })
  const body = { kvlistValue: { values: [{ key: 'a', value: { intValue: 1 } }] } }
  const logs = decoded('logs', { resourceLogs: [{ scopeLogs: [{ logRecords: [{ body }] }] }] })
  assert.equal(logs.items[0]!.item.body, '{"a":1}')
  assert.deepEqual(logs.changed, { 'log bodies that are not strings, converted to JSON': 1 })
})

test('events, links and what else a span of the model has not are counted', () => {
  const { items, changed } = decoded(
    'traces',
    spans({ events: [{}, {}], links: [{}], status: { code: 1 }, droppedLinksCount: 3, kind: 0, name: 'n' }),
  )
  assert.deepEqual([items[0]!.item.kind, items[0]!.item.status, items[0]!.item.name], [1, 0, 'n'])
  assert.deepEqual(changed, {
    'span events, lost': 2,
    'span links, lost': 1,
    'status Ok, converted to unset': 1,
    'counts of data dropped by the sender, lost': 1,
  })
})

test('points that the model has no place for are left out, and counted as points', () => {
  const { items, leftOut } = decoded(
    'metrics',
    metrics(
      { name: 'e', exponentialHistogram: { dataPoints: [{ negative: { bucketCounts: ['1'] } }] } },
      { name: 'g', gauge: { dataPoints: [{ asDouble: 1 }, { flags: 1 }, {}] } },
    ),
  )
  assert.deepEqual(
    items.map(({ item }) => [item.name, item.points.length]),
    [['g', 2]],
  )
  assert.deepEqual(leftOut, {
    'points of exponential histograms with negative values': 1,
    'points without a value': 1,
  })
})

test('points of a histogram with other bounds become a metric of their own', () => {
  const point = (...explicitBounds: number[]) => ({
    explicitBounds,
    bucketCounts: explicitBounds.map(() => '1').concat('2'),
    sum: 1,
    min: 0,
  })
  const { items, changed } = decoded(
    'metrics',
    metrics({ name: 'h', histogram: { dataPoints: [point(1, 2), point(5), point(1, 2)] } }),
  )
  assert.deepEqual(
    items.map(({ item }) => [item.kind === 'histogram' && item.bounds, item.points.length]),
    [
      [[1, 2], 2],
      [[5], 1],
    ],
  )
  assert.deepEqual(changed, { 'minimum and maximum of histograms, lost': 3 })
})

test('frames of a profile that were inlined stand one by one, and one without a name has its address', () => {
  const { items, changed } = decoded('profiles', {
    resourceProfiles: [
      {
        scopeProfiles: [
          {
            profiles: [
              {
                sampleType: { typeStrindex: 1, unitStrindex: 2 },
                samples: [{ stackIndex: 1, values: ['2', '3'], timestampsUnixNano: ['7', '8'] }],
              },
              { sampleType: { typeStrindex: 3 }, samples: [{}] },
            ],
          },
        ],
      },
    ],
    dictionary: {
      stringTable: ['', 'cpu', 'nanoseconds', 'main', 'main.c'],
      functionTable: [{}, { nameStrindex: 3, filenameStrindex: 4 }],
      locationTable: [
        {},
        { lines: [{ functionIndex: 1, line: '3' }, { functionIndex: 1 }] },
        { address: '4096' },
      ],
      stackTable: [{}, { locationIndices: [1, 2, 99] }],
    },
  })
  assert.deepEqual(items[0]!.item.samples[0]!.frames, [
    { name: 'main', file: 'main.c', line: 3 },
    { name: 'main', file: 'main.c', line: 0 },
    { name: '0x1000', file: '', line: 0 },
  ])
  assert.equal(items[0]!.item.samples[0]!.value, 5)
  assert.deepEqual(changed, { 'timestamps of samples, lost': 2 })
})

test('what a profile of another sender has beyond the model is counted', () => {
  const { items, changed } = decoded('profiles', {
    resourceProfiles: [
      {
        scopeProfiles: [
          {
            profiles: [
              {
                sampleType: { typeStrindex: 1, unitStrindex: 2 },
                samples: [
                  { stackIndex: 1, linkIndex: 1, values: ['9007199254740993'] },
                  { linkIndex: 2, values: ['1'], attributeIndices: [2, 1] },
                ],
                periodType: { typeStrindex: 1, unitStrindex: 3 },
                period: '10',
                profileId: 'aa'.repeat(16),
              },
            ],
          },
        ],
      },
    ],
    dictionary: {
      stringTable: ['', 'cpu', 'nanoseconds', 'ms', 'profile.frame.type', 'f', 'x.so', ...mappingKeys],
      attributeTable: [
        {},
        { keyStrindex: 4, value: { stringValue: 'native' } },
        { keyStrindex: 4, value: { stringValue: 'klingon' } },
        { keyStrindex: 7, value: { stringValue: 'ab' } },
        { keyStrindex: 8, value: { stringValue: 'cd' } },
      ],
      mappingTable: [
        {},
        {
          memoryStart: '4096',
          memoryLimit: '18446744073709551615',
          filenameStrindex: 6,
          attributeIndices: [3, 4],
        },
      ],
      functionTable: [{}, { nameStrindex: 5, startLine: '3' }],
      locationTable: [
        {},
        {
          mappingIndex: 1,
          address: '4097',
          lines: [{ functionIndex: 1, column: '2' }],
          attributeIndices: [1],
        },
        { mappingIndex: 1, address: '4098', attributeIndices: [2] },
        { mappingIndex: 7, address: '4099' },
      ],
      stackTable: [{}, { locationIndices: [1, 2, 3] }],
      linkTable: [{}, { traceId: '01'.repeat(16), spanId: '02'.repeat(8) }],
    },
  })
  const [first, second] = items[0]!.item.samples
  const mapping = { path: 'x.so', buildId: 'ab', hash: '', start: 4096, limit: 2 ** 64, offset: 0 }
  assert.deepEqual(first!.frames, [
    { name: 'f', file: '', line: 0, type: 'native', mapping, address: 4097 },
    { name: '0x1002', file: '', line: 0, mapping, address: 4098 },
    { name: '0x1003', file: '', line: 0 },
  ])
  assert.deepEqual(first!.link, {
    traceId: new Uint8Array(16).fill(1),
    spanId: new Uint8Array(8).fill(2),
  })
  assert.equal(second!.link, undefined)
  assert.deepEqual(second!.attributes.toObject(), { 'profile.frame.type': 'native' })
  assert.equal(items[0]!.item.period, undefined)
  assert.deepEqual(changed, {
    'addresses over 2^53, rounded': 1,
    'mapping attributes other than file identifiers, lost': 1,
    'start lines of functions, lost': 1,
    'columns of lines, lost': 1,
    'location attributes other than frame types, lost': 1,
    'integers over 2^53, rounded': 1,
    'sample links without a span identifier, lost': 1,
    'profile identifiers, lost': 1,
    'periods of other types, lost': 1,
  })
})

const mappingKeys = ['process.executable.build_id.gnu', 'process.executable.build_id.go']

test('what is no request is refused', () => {
  assert.throws(() => decodeRequest('logs', Uint8Array.of(0x0a, 2, 0x12, 9), () => {}), RangeError)
})
