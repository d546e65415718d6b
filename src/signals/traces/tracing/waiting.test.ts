import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { resource } from '../../../foundation/model/resource.ts'
import { Span, SpanKind } from '../../../foundation/model/span.ts'
import { Waiting } from './waiting.ts'

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

/** Spans that wait, with what was handed on. */
function open(): { waiting: Waiting; emitted: Emitted[] } {
  const emitted: Emitted[] = []
  const waiting = new Waiting(holdMs, (of, span) => {
    assert.equal(of, shop)
    emitted.push(copy(span))
  })
  return { waiting, emitted }
}

/** Its client is seen: true where a span waited for it. */
function meet(waiting: Waiting, sequence: number, ports: number, parent: Span): boolean {
  const held = waiting.find(sequence, ports)
  if (held === undefined) return false
  held.span.traceId.set(parent.traceId)
  held.span.parentSpanId.set(parent.spanId)
  waiting.found(held)
  return true
}

test('a server’s span waits, whole, and is handed on when its client comes', () => {
  const { waiting, emitted } = open()
  const child = server(2)
  child.attributes.add('http.route', '/users/{id}')
  waiting.hold(77, 40_000_80, shop, child, true, 0)
  child.attributes.clear()
  child.name = 'reused'
  assert.equal(waiting.waitingNow, 1)
  const of = client(1)
  assert.equal(meet(waiting, 77, 40_000_80, of), true)
  assert.deepEqual(emitted, [
    {
      name: '2 2',
      traceId: hex(of.traceId),
      parentSpanId: hex(of.spanId),
      flags: 1,
      startUs: 1000,
      endUs: 2000,
    },
  ])
  assert.deepEqual([waiting.joined, waiting.expired, waiting.waitingNow], [1, 0, 0])
})

test('other sequence numbers and other ports are other exchanges', () => {
  const { waiting } = open()
  waiting.hold(4_000_000_000, 7, shop, server(2), true, 0)
  assert.equal(waiting.find(4_000_000_001, 7), undefined)
  assert.equal(waiting.find(4_000_000_000, 8), undefined)
  assert.equal(waiting.waitingNow, 1)
})

test('a second server of the same exchange sends the first on its way', () => {
  const { waiting, emitted } = open()
  waiting.hold(77, 77_000, shop, server(2), true, 0)
  waiting.hold(77, 77_000, shop, server(3), true, 1)
  assert.deepEqual(
    emitted.map(({ name, parentSpanId }) => [name, parentSpanId]),
    [['2 2', nobody]],
  )
  assert.deepEqual([waiting.expired, waiting.waitingNow], [1, 1])
  const of = client(4)
  meet(waiting, 77, 77_000, of)
  assert.deepEqual([emitted[1]!.name, emitted[1]!.parentSpanId], ['2 3', hex(of.spanId)])
  assert.equal(waiting.waitingNow, 0)
})

test('servers that waited long enough are handed on as they are, the oldest first', () => {
  const { waiting, emitted } = open()
  for (let i = 0; i < 5; i++) waiting.hold(i, 77_000, shop, server(i), true, i * 500)
  waiting.expire(holdMs - 1)
  assert.deepEqual(emitted, [])
  waiting.expire(holdMs + 500)
  assert.deepEqual(
    emitted.map(({ name, parentSpanId, flags }) => [name, parentSpanId, flags]),
    [
      ['2 0', nobody, 1],
      ['2 1', nobody, 1],
    ],
  )
  assert.deepEqual([waiting.expired, waiting.waitingNow], [2, 3])
  waiting.expire(Number.POSITIVE_INFINITY)
  assert.deepEqual(
    emitted.map(({ name }) => name),
    ['2 0', '2 1', '2 2', '2 3', '2 4'],
  )
  assert.deepEqual([waiting.expired, waiting.waitingNow], [5, 0])
})

test('a place that is taken again does not inherit the wait of the one before', () => {
  const { waiting, emitted } = open()
  waiting.hold(77, 77_000, shop, server(2), true, 0)
  meet(waiting, 77, 77_000, client(1))
  waiting.hold(77, 77_000, shop, server(3), true, 1500)
  waiting.expire(holdMs)
  assert.equal(emitted.length, 1)
  waiting.expire(1500 + holdMs)
  assert.deepEqual([emitted[1]!.name, waiting.waitingNow], ['2 3', 0])
})

test('more servers than there is room for are handed on early, and none is lost', () => {
  const { waiting, emitted } = open()
  const count = 30_000
  const one = server(0)
  for (let i = 0; i < count; i++) {
    one.name = String(i)
    waiting.hold((i * 2_654_435_761) >>> 0, 1 + (i % 60_000), shop, one, true, 5)
  }
  assert.equal(emitted.length + waiting.waitingNow, count)
  assert.ok(waiting.waitingNow <= 8192)
  waiting.expire(Number.POSITIVE_INFINITY)
  assert.equal(waiting.waitingNow, 0)
  assert.equal(waiting.expired, count)
  assert.equal(new Set(emitted.map(({ name }) => name)).size, count)
})

test('spans with long texts are handed on early, the oldest first, and their texts are let go', () => {
  const { waiting, emitted } = open()
  const one = server(0)
  one.attributes.add('url.full', '')
  for (let i = 0; i < 2_000; i++) {
    one.name = String(i)
    one.attributes.set('url.full', String(i).padEnd(8_000, 'x'))
    waiting.hold(i, 1 + i, shop, one, true, 5)
    assert.ok(waiting.heldBytes <= 8 * 1024 * 1024)
  }
  // Of 16 kB each: 524 fit.
  assert.deepEqual([emitted.length, waiting.waitingNow, waiting.expired], [1_476, 524, 1_476])
  assert.deepEqual(
    emitted.map(({ name }) => Number(name)),
    Array.from(emitted, (_, i) => i),
  )
  waiting.expire(Number.POSITIVE_INFINITY)
  assert.deepEqual([emitted.length, waiting.heldBytes], [2_000, 0])
})

type Step =
  | { readonly kind: 'client' | 'server'; readonly exchange: number }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'tick' }

test('where memory is short spans are handed on early, the oldest first, and what they took is given back', () => {
  const { waiting, emitted } = open()
  for (let id = 1; id <= 100; id++) waiting.hold(id, id, shop, server(id), true, 0)
  const before = waiting.bytes
  const freed = waiting.shed(before / 2)
  assert.ok(freed >= before / 2 && freed < before * 0.6, `${freed} of ${before}`)
  assert.equal(waiting.bytes, before - freed)
  assert.deepEqual([emitted[0]!.name, emitted.length + waiting.waitingNow], ['2 1', 100])
  waiting.shed(before)
  assert.deepEqual([waiting.bytes, waiting.waitingNow, emitted.length], [0, 0, 100])
})

test('of those that went, no more than are kept for later use stay in memory', async () => {
  const { waiting } = open()
  const refs: WeakRef<object>[] = []
  for (let id = 1; id <= 3_000; id++) {
    waiting.hold(id, 1, shop, server(id), false, 0)
    refs.push(new WeakRef(waiting.find(id, 1)!))
  }
  for (let id = 1; id <= 3_000; id++) {
    const held = waiting.find(id, 1)
    if (held !== undefined) waiting.found(held)
  }
  waiting.expire(holdMs)
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  // References are kept until the end of the turn.
  await setImmediate()
  gc()
  const left = refs.filter(ref => ref.deref() !== undefined).length
  assert.ok(left <= 1_100, `${left} are left`)
})

test('after any sequence of events every server was emitted once or waits', () => {
  const exchange = fc.nat(40)
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.record({ kind: fc.constantFrom('client' as const, 'server' as const), exchange }),
    fc.record({ kind: fc.constant('wait' as const), ms: fc.nat(1500) }),
    fc.record({ kind: fc.constant('tick' as const) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), steps => {
      const { waiting, emitted } = open()
      let nowMs = 0
      let servers = 0
      for (const one of steps) {
        if (one.kind === 'wait') nowMs += one.ms
        else if (one.kind === 'tick') waiting.expire(nowMs)
        // Four numbers on ten connections, so that all of them come again.
        else if (one.kind === 'client') meet(waiting, 1 + (one.exchange % 4), one.exchange >> 2, client(9))
        else
          waiting.hold(
            1 + (one.exchange % 4),
            one.exchange >> 2,
            shop,
            server(servers++),
            one.exchange > 20,
            nowMs,
          )
        assert.equal(emitted.length + waiting.waitingNow, servers)
      }
      waiting.expire(Number.POSITIVE_INFINITY)
      assert.equal(waiting.waitingNow, 0)
      assert.equal(waiting.joined + waiting.expired, servers)
      assert.equal(emitted.length, servers)
      assert.equal(new Set(emitted.map(({ name }) => name)).size, emitted.length)
    }),
    { numRuns: 300 },
  )
})
