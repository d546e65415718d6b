import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { resource } from '../model/resource.ts'
import { Span, SpanKind } from '../model/span.ts'
import { Join } from './join.ts'

const holdMs = 2000
const shop = resource({ 'service.name': 'shop' })

interface Emitted {
  readonly name: string
  readonly traceId: string
  readonly parentSpanId: string
  readonly flags: number
  readonly startUs: number
  readonly endUs: number
}

const hex = (id: Uint8Array): string => Buffer.from(id).toString('hex')
const nobody = '0000000000000000'

function copy(span: Span): Emitted {
  const { name, flags, startUs, endUs } = span
  return { name, traceId: hex(span.traceId), parentSpanId: hex(span.parentSpanId), flags, startUs, endUs }
}

/** A span whose ids hold `id`. */
function spanOf(id: number, kind: SpanKind, startUs = 1000, endUs = 2000): Span {
  const span = new Span()
  span.traceId.fill(id & 0xff)
  Buffer.from(span.spanId.buffer).writeUInt32BE(id + 1, 4)
  span.name = `${kind} ${id}`
  span.kind = kind
  span.startUs = startUs
  span.endUs = endUs
  span.flags = 1
  return span
}
const client = (id: number, startUs?: number, endUs?: number) => spanOf(id, SpanKind.client, startUs, endUs)
const server = (id: number, startUs?: number, endUs?: number) => spanOf(id, SpanKind.server, startUs, endUs)

/** A join, with what it emitted. */
function open(): { join: Join; emitted: Emitted[] } {
  const emitted: Emitted[] = []
  const join = new Join(holdMs, (of, span) => {
    assert.equal(of, shop)
    emitted.push(copy(span))
  })
  return { join, emitted }
}

test('a server that comes behind its client is its child at once', () => {
  const { join, emitted } = open()
  const of = client(1, 900, 2100)
  const child = server(2)
  join.client(77, 40_000, 80, of, 0)
  assert.equal(join.server(77, 40_000, 80, shop, child, 1), true)
  assert.deepEqual(copy(child), {
    name: '2 2',
    traceId: hex(of.traceId),
    parentSpanId: hex(of.spanId),
    flags: 0x301,
    startUs: 1000,
    endUs: 2000,
  })
  assert.deepEqual(emitted, [])
  assert.deepEqual([join.joined, join.expired, join.waitingNow], [1, 0, 0])
})

test('a server that comes before its client waits, whole, and is handed on when the client comes', () => {
  const { join, emitted } = open()
  const child = server(2)
  child.attributes.add('http.route', '/users/{id}')
  assert.equal(join.server(77, 40_000, 80, shop, child, 0), false)
  child.attributes.clear()
  child.name = 'reused'
  assert.equal(join.waitingNow, 1)
  const of = client(1, 900, 2100)
  join.client(77, 40_000, 80, of, 1)
  assert.deepEqual(emitted, [
    {
      name: '2 2',
      traceId: hex(of.traceId),
      parentSpanId: hex(of.spanId),
      flags: 0x301,
      startUs: 1000,
      endUs: 2000,
    },
  ])
  assert.deepEqual([join.joined, join.expired, join.waitingNow], [1, 0, 0])
})

test('a child lies within its parent, whichever side came first', () => {
  const check = (of: [number, number], child: [number, number], want: [number, number, number, number]) => {
    const behind = server(2, ...child)
    const first = open()
    first.join.client(1, 2, 3, client(1, ...of), 0)
    first.join.server(1, 2, 3, shop, behind, 0)
    assert.deepEqual([behind.startUs, behind.endUs], want.slice(0, 2))
    // The client that comes later can still be widened.
    const later = open()
    const parent = client(1, ...of)
    later.join.server(1, 2, 3, shop, server(2, ...child), 0)
    later.join.client(1, 2, 3, parent, 0)
    const { startUs, endUs } = later.emitted[0]!
    assert.deepEqual([startUs, endUs], child)
    assert.deepEqual([parent.startUs, parent.endUs], want.slice(2))
  }
  check([100, 200], [120, 180], [120, 180, 100, 200])
  check([100, 200], [90, 210], [100, 200, 90, 210])
  check([100, 200], [150, 210], [150, 200, 100, 210])
  // The wall clock was set back or forth between the two: no span ends before it starts.
  check([100, 200], [10, 20], [100, 100, 10, 200])
  check([100, 200], [310, 320], [200, 200, 100, 320])
})

test('other sequence numbers and other ports are other exchanges', () => {
  const check = (sequence: number, clientPort: number, serverPort: number) => {
    const { join, emitted } = open()
    join.client(4_000_000_000, 40_000, 80, client(1), 0)
    assert.equal(join.server(sequence, clientPort, serverPort, shop, server(2), 0), false)
    assert.deepEqual([emitted.length, join.joined, join.waitingNow], [0, 0, 1])
  }
  check(4_000_000_001, 40_000, 80)
  check(4_000_000_000, 40_001, 80)
  check(4_000_000_000, 40_000, 81)
  check(4_000_000_000, 80, 40_000)
})

test('a client is joined once', () => {
  const { join } = open()
  join.client(77, 1, 2, client(1), 0)
  assert.equal(join.server(77, 1, 2, shop, server(2), 0), true)
  assert.equal(join.server(77, 1, 2, shop, server(3), 0), false)
  assert.deepEqual([join.joined, join.waitingNow], [1, 1])
})

test('a second server of the same exchange sends the first on its way', () => {
  const { join, emitted } = open()
  join.server(77, 1, 2, shop, server(2), 0)
  join.server(77, 1, 2, shop, server(3), 1)
  assert.deepEqual(
    emitted.map(({ name, parentSpanId }) => [name, parentSpanId]),
    [['2 2', nobody]],
  )
  assert.deepEqual([join.expired, join.waitingNow], [1, 1])
  const of = client(4)
  join.client(77, 1, 2, of, 2)
  assert.deepEqual([emitted[1]!.name, emitted[1]!.parentSpanId], ['2 3', hex(of.spanId)])
  assert.equal(join.waitingNow, 0)
})

test('a client that was remembered too long is nobody’s parent: its ports and number came again', () => {
  const { join } = open()
  join.client(77, 1, 2, client(1), 0)
  const late = server(2)
  assert.equal(join.server(77, 1, 2, shop, late, holdMs), false)
  assert.equal(hex(late.parentSpanId), nobody)
  assert.equal(join.joined, 0)
})

test('servers that waited long enough are handed on as they are, the oldest first', () => {
  const { join, emitted } = open()
  for (let i = 0; i < 5; i++) join.server(i, 1, 2, shop, server(i), i * 500)
  join.expire(holdMs - 1)
  assert.deepEqual(emitted, [])
  join.expire(holdMs + 500)
  assert.deepEqual(
    emitted.map(({ name, parentSpanId, flags }) => [name, parentSpanId, flags]),
    [
      ['2 0', nobody, 1],
      ['2 1', nobody, 1],
    ],
  )
  assert.deepEqual([join.expired, join.waitingNow], [2, 3])
  join.expire(Number.POSITIVE_INFINITY)
  assert.deepEqual(
    emitted.map(({ name }) => name),
    ['2 0', '2 1', '2 2', '2 3', '2 4'],
  )
  assert.deepEqual([join.expired, join.waitingNow], [5, 0])
})

test('a place that is taken again does not inherit the wait of the one before', () => {
  const { join, emitted } = open()
  join.server(77, 1, 2, shop, server(2), 0)
  join.client(77, 1, 2, client(1), 1)
  join.server(77, 1, 2, shop, server(3), 1500)
  join.expire(holdMs)
  assert.equal(emitted.length, 1)
  join.expire(1500 + holdMs)
  assert.deepEqual([emitted[1]!.name, join.waitingNow], ['2 3', 0])
})

test('more servers than there is room for are handed on early, and none is lost', () => {
  const { join, emitted } = open()
  const count = 30_000
  const waiting = server(0)
  for (let i = 0; i < count; i++) {
    waiting.name = String(i)
    join.server((i * 2_654_435_761) >>> 0, 1 + (i % 60_000), 80, shop, waiting, 5)
  }
  assert.equal(emitted.length + join.waitingNow, count)
  assert.ok(join.waitingNow <= 8192)
  join.expire(Number.POSITIVE_INFINITY)
  assert.equal(join.waitingNow, 0)
  assert.equal(join.expired, count)
  assert.equal(new Set(emitted.map(({ name }) => name)).size, count)
})

test('spans with long texts are handed on early, the oldest first, and their texts are let go', () => {
  const { join, emitted } = open()
  const waiting = server(0)
  waiting.attributes.add('url.full', '')
  for (let i = 0; i < 2_000; i++) {
    waiting.name = String(i)
    waiting.attributes.set('url.full', String(i).padEnd(8_000, 'x'))
    join.server(i, 1 + i, 80, shop, waiting, 5)
    assert.ok(join.heldBytes <= 8 * 1024 * 1024)
  }
  // Of 16 kB each: 524 fit.
  assert.deepEqual([emitted.length, join.waitingNow, join.expired], [1_476, 524, 1_476])
  assert.deepEqual(
    emitted.map(({ name }) => Number(name)),
    Array.from(emitted, (_, i) => i),
  )
  join.expire(Number.POSITIVE_INFINITY)
  assert.deepEqual([emitted.length, join.heldBytes], [2_000, 0])
})

type Step =
  | { readonly kind: 'client' | 'server'; readonly exchange: number }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'tick' }

test('after any sequence of events every server was emitted once or waits', () => {
  const exchange = fc.nat(40)
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.record({ kind: fc.constantFrom('client' as const, 'server' as const), exchange }),
    fc.record({ kind: fc.constant('wait' as const), ms: fc.nat(1500) }),
    fc.record({ kind: fc.constant('tick' as const) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), steps => {
      const { join, emitted } = open()
      let nowMs = 0
      let servers = 0
      let atOnce = 0
      for (const one of steps) {
        if (one.kind === 'wait') nowMs += one.ms
        else if (one.kind === 'tick') join.expire(nowMs)
        // Four numbers on ten connections, so that all of them come again.
        else if (one.kind === 'client') join.client(one.exchange % 4, one.exchange >> 2, 80, client(9), nowMs)
        else if (join.server(one.exchange % 4, one.exchange >> 2, 80, shop, server(servers++), nowMs))
          atOnce++
        assert.equal(atOnce + emitted.length + join.waitingNow, servers)
      }
      join.expire(Number.POSITIVE_INFINITY)
      assert.equal(join.waitingNow, 0)
      assert.equal(join.joined + join.expired, servers)
      assert.equal(atOnce + emitted.length, servers)
      assert.equal(new Set(emitted.map(({ name }) => name)).size, emitted.length)
    }),
    { numRuns: 300 },
  )
})
