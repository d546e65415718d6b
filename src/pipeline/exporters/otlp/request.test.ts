import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { heapGrowth } from '../../../../test/helpers/heap.ts'
import * as arbitrary from '../../../../test/helpers/otlp-arbitrary.ts'
import { decodeRequest } from '../../../../test/helpers/otlp-proto.ts'
import { Attributes } from '../../../foundation/model/attributes.ts'
import type { Metric } from '../../../foundation/model/metric.ts'
import type { Profile } from '../../../foundation/model/profile.ts'
import { resource, type Scope, schemaUrl } from '../../../foundation/model/resource.ts'
import { Span } from '../../../foundation/model/span.ts'
import { metricEncoding } from './encode-metric.ts'
import { profileEncoding } from './encode-profile.ts'
import { traceEncoding } from './encode-trace.ts'
import { RequestBuilder } from './request.ts'

const shop = resource({ 'service.name': 'shop' })
const bank = resource({ 'service.name': 'bank' })
const http: Scope = { name: 'http', version: '1' }
const sql: Scope = { name: 'sql', version: '1' }

function named(name: string): Span {
  const span = new Span()
  span.name = name
  return span
}

function service(name: string): object {
  return { attributes: [{ key: 'service.name', value: { stringValue: name } }] }
}

function spans(...names: string[]): object[] {
  return names.map(name => ({ name, kind: 1 }))
}

test('nothing added is nothing to send', () => {
  const builder = new RequestBuilder(traceEncoding)
  assert.deepEqual([builder.take(), builder.items, builder.bytes], [[], 0, 0])
})

test('a metric without points and a profile without samples leave no envelope', () => {
  const metrics = new RequestBuilder(metricEncoding)
  const empty: Metric = { kind: 'gauge', name: 'm', description: '', unit: '', points: [] }
  assert.equal(metrics.add(shop, http, empty), 0)
  assert.deepEqual(metrics.take(), [])

  const profiles = new RequestBuilder(profileEncoding())
  const idle: Profile = { kind: 'cpu', unit: 'count', startUs: 1, durationUs: 1, samples: [] }
  profiles.add(shop, http, idle)
  assert.deepEqual([profiles.items, profiles.take()], [0, []])
})

test('a scope goes with its attributes and the schema that it names', () => {
  const told: Scope = { ...http, attributes: Attributes.of({ mood: 'calm' }), schemaUrl: 'https://x/1.2.0' }
  const builder = new RequestBuilder(traceEncoding)
  builder.add(shop, told, named('a'))
  builder.add(shop, { name: '', version: '', attributes: Attributes.of({ n: 1 }) }, named('b'))
  const bound = builder.bytes
  const { body } = builder.take()[0]!
  assert.ok(body.length <= bound)
  const { resourceSpans } = decodeRequest('traces', body) as { resourceSpans: { scopeSpans: object[] }[] }
  const attributes = [{ key: 'mood', value: { stringValue: 'calm' } }]
  const numbered = { attributes: [{ key: 'n', value: { intValue: '1' } }] }
  assert.deepEqual(resourceSpans[0]!.scopeSpans, [
    { scope: { ...http, attributes }, spans: spans('a'), schemaUrl: 'https://x/1.2.0' },
    { scope: numbered, spans: spans('b'), schemaUrl },
  ])
})

test('a request holds little more memory than it counts for, as it may wait for long', () => {
  const builder = new RequestBuilder(traceEncoding)
  const check = (bytes: number) => {
    const before = builder.bytes
    builder.add(shop, http, named('x'.repeat(bytes)))
    assert.ok(builder.bytes > before)
    const { body, free } = builder.take()[0]!
    assert.ok(body.buffer.byteLength <= 2 * body.length, `${body.buffer.byteLength} for ${body.length}`)
    free?.()
  }
  for (const bytes of [300, 1_000_000, 300, 70_000, 300_000, 1_000_000, 5_000, 2_000_000, 600_000])
    check(bytes)
})

test('a large request that was given back is the room of the next one', () => {
  const builder = new RequestBuilder(traceEncoding)
  const take = () => {
    builder.add(shop, http, named('x'.repeat(500_000)))
    return builder.take()[0]!
  }
  const first = take()
  assert.notEqual(take().body.buffer, first.body.buffer)
  first.free!()
  const again = take()
  assert.equal(again.body.buffer, first.body.buffer)
  assert.notEqual(take().body.buffer, again.body.buffer)
})

test('items are grouped by resource and scope, in the order in which they came', () => {
  const builder = new RequestBuilder(traceEncoding)
  builder.add(shop, http, named('a'))
  builder.add(bank, http, named('b'))
  builder.add(shop, sql, named('c'))
  builder.add(shop, http, named('d'))
  const batch = builder.take()[0]!
  assert.equal(batch.items, 4)
  assert.deepEqual(decodeRequest('traces', batch.body), {
    resourceSpans: [
      {
        resource: service('shop'),
        scopeSpans: [
          { scope: http, spans: spans('a', 'd'), schemaUrl },
          { scope: sql, spans: spans('c'), schemaUrl },
        ],
        schemaUrl,
      },
      { resource: service('bank'), scopeSpans: [{ scope: http, spans: spans('b'), schemaUrl }], schemaUrl },
    ],
  })
})

test('resources are told apart by identity, not by content', () => {
  const builder = new RequestBuilder(traceEncoding)
  builder.add(resource({}), { name: '', version: '' }, named('a'))
  builder.add(resource({}), { name: '', version: '' }, named('b'))
  assert.deepEqual(decodeRequest('traces', builder.take()[0]!.body), {
    resourceSpans: [
      { scopeSpans: [{ spans: spans('a'), schemaUrl }], schemaUrl },
      { scopeSpans: [{ spans: spans('b'), schemaUrl }], schemaUrl },
    ],
  })
})

test('metrics count by data points', () => {
  const builder = new RequestBuilder(metricEncoding)
  const point = { attributes: shop.attributes, startUs: 1, timeUs: 2, value: 3 }
  builder.add(shop, http, {
    kind: 'gauge',
    name: 'm',
    description: '',
    unit: '',
    points: [point, point, point],
  })
  assert.equal(builder.items, 3)
  assert.equal(builder.take()[0]?.items, 3)
})

test('nothing of an item is kept after add', () => {
  const builder = new RequestBuilder(traceEncoding)
  const span = named('first')
  builder.add(shop, http, span)
  span.name = 'second'
  builder.add(shop, http, span)
  span.name = 'third'
  assert.deepEqual(decodeRequest('traces', builder.take()[0]!.body), {
    resourceSpans: [
      {
        resource: service('shop'),
        scopeSpans: [{ scope: http, spans: spans('first', 'second'), schemaUrl }],
        schemaUrl,
      },
    ],
  })
})

test('bytes is never below the size of the request, and add returns it', () => {
  const resources = [shop, bank, resource({}), resource({ big: 'x'.repeat(500) })]
  const scopes = [http, sql, { name: '', version: '' }]
  const builder = new RequestBuilder(traceEncoding)
  const entry = fc.tuple(fc.constantFrom(...resources), fc.constantFrom(...scopes), arbitrary.span)
  fc.assert(
    fc.property(fc.array(entry, { minLength: 1, maxLength: 30 }), entries => {
      for (const [from, scope, span] of entries) assert.equal(builder.add(from, scope, span), builder.bytes)
      const bound = builder.bytes
      const size = builder.take()[0]!.body.length
      assert.equal(size <= bound, true)
      assert.equal(bound <= size + entries.length * 12 + 12, true, `bound ${bound} for ${size} bytes`)
      assert.equal(builder.bytes, 0)
    }),
  )
})

/** A builder that had the same additions, some of them undone, makes the same request as one that never had those. */
function checkUndo<T>(make: () => RequestBuilder<T>, items: fc.Arbitrary<T>): void {
  const entry = fc.tuple(fc.constantFrom(shop, bank), fc.constantFrom(http, sql), items, fc.boolean())
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 12 }), entries => {
      const undoing = make()
      const plain = make()
      for (const [from, scope, item, keep] of entries) {
        undoing.add(from, scope, item)
        if (keep) plain.add(from, scope, item)
        else undoing.undo()
        assert.deepEqual([undoing.items, undoing.bytes], [plain.items, plain.bytes])
      }
      const decode = ([batch]: ReturnType<RequestBuilder<T>['take']>) =>
        batch && { items: batch.items, request: sorted(decodeRequest(batch.signal, batch.body)) }
      assert.deepEqual(decode(undoing.take()), decode(plain.take()))
    }),
  )
}

/** Resources and scopes in an order of their own: an undone item may leave its place in the order behind. */
function sorted(request: Record<string, unknown>): unknown {
  const byText = (list: unknown[]) => list.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
  for (const [field, list] of Object.entries(request)) {
    if (!field.startsWith('resource')) continue
    for (const group of list as Record<string, unknown>[])
      for (const scopes of Object.values(group)) if (Array.isArray(scopes)) byText(scopes)
    byText(list as unknown[])
  }
  return request
}

test('an undone item leaves no trace in the request', () => {
  checkUndo(() => new RequestBuilder(traceEncoding), arbitrary.span)
  checkUndo(() => new RequestBuilder(metricEncoding), arbitrary.metric)
  checkUndo(() => new RequestBuilder(profileEncoding()), arbitrary.profile)
})

test('an item that cannot be encoded is undone like any other', () => {
  const builder = new RequestBuilder(traceEncoding)
  const plain = new RequestBuilder(traceEncoding)
  const broken = named('broken')
  broken.attributes.add('fine', 'yes')
  broken.attributes.add('value', null as never)
  for (const name of ['a', 'b']) {
    assert.throws(() => builder.add(shop, http, broken), TypeError)
    builder.undo()
    builder.add(shop, http, named(name))
    plain.add(shop, http, named(name))
    assert.deepEqual([builder.items, builder.bytes], [plain.items, plain.bytes])
  }
  assert.deepEqual(builder.take(), plain.take())
})

test('where a resource cannot be encoded, undo takes back nothing of what was added before', () => {
  const builder = new RequestBuilder(traceEncoding)
  builder.add(shop, http, named('a'))
  assert.throws(() => builder.add(resource({ broken: null as never }), http, named('b')), TypeError)
  builder.undo()
  builder.add(shop, http, named('c'))
  assert.equal(builder.take()[0]?.items, 2)
})

test('a second undo takes nothing more back', () => {
  const builder = new RequestBuilder(traceEncoding)
  builder.add(shop, http, named('a'))
  builder.add(shop, http, named('b'))
  builder.undo()
  builder.undo()
  assert.equal(builder.take()[0]?.items, 1)
})

test('a batch keeps its bytes when the builder goes on', () => {
  const builder = new RequestBuilder(traceEncoding)
  builder.add(shop, http, named('secret'.repeat(100)))
  const first = builder.take()[0]!
  const before = Buffer.from(first.body)
  for (let i = 0; i < 100; i++) builder.add(bank, sql, named('other'))
  const second = builder.take()[0]!
  assert.equal(before.equals(first.body), true)
  assert.equal(Buffer.from(second.body).includes('secret'), false)
})

test('buffers are kept for the next request up to the bound', () => {
  const builder = new RequestBuilder(traceEncoding, { keepBytes: 64 * 1024 })
  const fill = (from: typeof shop, count: number) => {
    for (let i = 0; i < count; i++) builder.add(from, http, named('x'.repeat(100)))
  }
  fill(shop, 100)
  builder.take()
  assert.equal(builder.keptBytes, 16 * 1024)
  fill(shop, 100)
  assert.equal(builder.keptBytes, 0)
  builder.take()
  assert.equal(builder.keptBytes, 16 * 1024)
  fill(shop, 10_000)
  builder.take()
  assert.equal(builder.keptBytes, 0)
  for (let i = 0; i < 50; i++) fill(resource({ i }), 10)
  builder.take()
  assert.equal(builder.keptBytes, 64 * 1024)
})

test('buffers that no request needed for a while are let go', () => {
  const builder = new RequestBuilder(traceEncoding)
  const take = (services: number) => {
    for (let i = 0; i < services; i++) {
      const of = resource({ i })
      for (let k = 0; k < 10; k++) builder.add(of, http, named('x'.repeat(100)))
    }
    for (const batch of builder.take()) batch.free?.()
  }
  take(300)
  const most = builder.keptBytes
  builder.rest()
  assert.equal(builder.keptBytes, most, 'they are new')
  for (let i = 0; i < 3; i++) take(3)
  builder.rest()
  const { keptBytes } = builder
  assert.ok(keptBytes > 0 && keptBytes < most / 50, `${keptBytes} of ${most}`)
  take(3)
  builder.rest()
  assert.equal(builder.keptBytes, keptBytes, 'they are needed')
  for (let i = 0; i < 2; i++) builder.rest()
  assert.equal(builder.keptBytes, 0)
})

test('a hundred thousand spans leave no memory behind', async () => {
  const builder = new RequestBuilder(traceEncoding)
  const span = named('GET /users/{id}')
  for (const key of ['http.request.method', 'url.path', 'server.address']) span.attributes.add(key, 'value')
  const run = () => {
    for (let i = 0; i < 25; i++) {
      for (let k = 0; k < 1000; k++) {
        span.startUs = 1.75e15 + k / 4
        builder.add(k % 3 === 0 ? shop : bank, k % 2 === 0 ? http : sql, span)
      }
      builder.take()
    }
  }
  run()
  const kept = builder.keptBytes
  const grown = await heapGrowth(run)
  assert.ok(grown < 64 * 1024, `${grown} bytes more`)
  assert.equal(builder.keptBytes, kept)
})
