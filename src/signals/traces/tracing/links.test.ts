// Which samples get a span: what the kernel side says of a request, and what is known of its process.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type GivenOperation, kernelOperation } from '../../../../test/helpers/kernel-operation.ts'
import { WallClock } from '../../../foundation/lib/wall-clock.ts'
import { requestNumber } from '../../../foundation/model/request-number.ts'
import { resource } from '../../../foundation/model/resource.ts'
import type { Span } from '../../../foundation/model/span.ts'
import type { Operation } from '../../../foundation/model/stream.ts'
import { bounds } from '../protocols/durations.ts'
import { http1 } from '../protocols/http1.ts'
import { RedTable } from './red.ts'
import { Tracer } from './tracer.ts'
import type { TracerRules } from './tracer-options.ts'

const rules: TracerRules = {
  ratio: 1,
  alwaysErrors: false,
  alwaysSlow: false,
  slowNs: 1e9,
  readContext: true,
  excludedPath: path => path === '/healthz',
}

const hex = (id: Uint8Array): string => Buffer.from(id).toString('hex')

function open(changed: Partial<TracerRules> = {}) {
  const spans: { traceId: string; spanId: string; kind: number }[] = []
  const of = resource({ 'service.name': 'shop' })
  const clock = { ms: 0 }
  const tracer = new Tracer({
    protocols: [http1.create({ route: (_operation, path) => path })],
    scope: { name: 'svc/test', version: '1' },
    red: new RedTable({ startUs: 0 }),
    countedBounds: bounds,
    resourceOf: () => of,
    spans: {
      add: (_of, _scope, { traceId, spanId, kind }: Span) =>
        spans.push({ traceId: hex(traceId), spanId: hex(spanId), kind }),
    },
    refuse: () => {},
    clock: new WallClock(),
    drop: () => {},
    rules: { ...rules, ...changed },
    isLocal: address => address === '127.0.0.1',
    now: () => clock.ms,
  })
  tracer.linkSamples(true)
  const linkOf = ({ tid, startNs }: Operation) => {
    const link = tracer.linkOf(requestNumber(tid, startNs))
    return link && { traceId: hex(link.traceId), spanId: hex(link.spanId) }
  }
  return { tracer, spans, linkOf, clock }
}

/** A server's side, whose thread was sampled at work on it. */
function operationOf(sequence: number, given: GivenOperation = {}): Operation {
  return kernelOperation({
    head: 'GET / HTTP/1.1\r\nHost: shop\r\n\r\n',
    protocol: 'http1',
    server: true,
    pid: 2,
    tid: 20 + sequence,
    status: 200,
    sequence,
    localPort: 80,
    peerPort: 40_000,
    peerAddress: '10.0.0.2',
    startNs: 1e9 + 1024 * sequence,
    durationNs: 5e6,
    sampled: true,
    ...given,
  })
}

/** Begins all, then ends all. */
function overlap(tracer: Tracer, ...operations: Operation[]): void {
  for (const operation of operations) tracer.begin(operation)
  for (const operation of operations) tracer.end(operation)
}

test('a request that its thread was sampled at work on is linked to its span', () => {
  const { tracer, spans, linkOf } = open()
  const operation = operationOf(1)
  overlap(tracer, operation)
  const { traceId, spanId } = spans[0]!
  assert.deepEqual(linkOf(operation), { traceId, spanId })
})

test('nothing is linked that was not sampled, or got no span', () => {
  const check = (operation: Operation, changed: Partial<TracerRules> = {}) => {
    const { tracer, linkOf } = open(changed)
    overlap(tracer, operation)
    assert.equal(linkOf(operation), undefined)
  }
  check(operationOf(1, { sampled: false }))
  check(operationOf(1), { ratio: 0 })
  check(operationOf(1), { excludedPath: () => true })
  check(operationOf(1, { protocol: 'unheard of' }))
})

test('event loops that served several requests at once are linked to none, threads that wait to theirs', () => {
  const loops = open()
  const several = [operationOf(1), operationOf(2), operationOf(3)]
  overlap(loops.tracer, ...several)
  assert.deepEqual(several.map(loops.linkOf), [undefined, undefined, undefined])
  const alone = operationOf(4)
  overlap(loops.tracer, alone)
  assert.ok(loops.linkOf(alone))
  const waiting = open()
  const threads = [1, 2, 3].map(i => operationOf(i, { blocking: true }))
  overlap(waiting.tracer, ...threads)
  const { spans } = waiting
  assert.deepEqual(
    threads.map(waiting.linkOf),
    spans.map(({ traceId, spanId }) => ({ traceId, spanId })),
  )
})

test('a request that another one overlapped for a moment was not alone', () => {
  const { tracer, linkOf } = open()
  const [long, first, second] = [operationOf(1), operationOf(2), operationOf(3)]
  tracer.begin(long)
  overlap(tracer, first)
  overlap(tracer, second)
  tracer.end(long)
  assert.deepEqual([long, first, second].map(linkOf), [undefined, undefined, undefined])
  const after = operationOf(4)
  overlap(tracer, after)
  assert.ok(linkOf(after))
})

test('an event loop is linked to nothing where what else it served is not known', () => {
  const doubted = open()
  const operation = operationOf(1, { doubt: true })
  overlap(doubted.tracer, operation)
  assert.equal(doubted.linkOf(operation), undefined)
  const untold = open()
  untold.tracer.end(operation)
  assert.equal(untold.linkOf(operation), undefined)
  const certain = open()
  const blocking = operationOf(1, { blocking: true })
  certain.tracer.end(blocking)
  assert.ok(certain.linkOf(blocking))
})

test('a thread that has two requests under way is linked to neither, even if it waits in its calls', () => {
  const { tracer, linkOf } = open()
  const of = (sequence: number, tid = 7) => operationOf(sequence, { blocking: true, tid })
  const ofOneCall = [of(1), of(2)] as const
  ofOneCall[1].startNs = ofOneCall[0].startNs
  overlap(tracer, ...ofOneCall)
  assert.deepEqual(ofOneCall.map(linkOf), [undefined, undefined])
  const [first, other, second] = [of(3), of(4, 8), of(5)]
  tracer.begin(first)
  tracer.begin(other)
  tracer.begin(second)
  assert.deepEqual([first, second].map(linkOf), [undefined, undefined])
  for (const operation of [first, second, other]) tracer.end(operation)
  assert.deepEqual([first, second].map(linkOf), [undefined, undefined])
  assert.ok(linkOf(other))
  const last = of(6)
  overlap(tracer, last)
  assert.ok(linkOf(last))
})

test('a span that waits for its client is linked with the ids that it gets in the end', () => {
  const both = { peerAddress: '127.0.0.1' }
  const joined = open()
  const server = operationOf(1, both)
  overlap(joined.tracer, server)
  assert.equal(joined.linkOf(server), undefined)
  const client = operationOf(1, { ...both, server: false, pid: 1, localPort: 40_000, peerPort: 80 })
  joined.tracer.begin(client)
  assert.equal(joined.spans.length, 1)
  const { traceId, spanId } = joined.spans[0]!
  assert.deepEqual(joined.linkOf(server), { traceId, spanId })
  joined.tracer.end(client)
  assert.equal(joined.spans[1]!.traceId, traceId)
  const alone = open()
  overlap(alone.tracer, server)
  alone.clock.ms = 400
  assert.equal(alone.linkOf(server), undefined)
  alone.clock.ms = 600
  const unlinked = operationOf(2, { ...both, sampled: false })
  overlap(alone.tracer, unlinked)
  alone.clock.ms = 1200
  assert.ok(alone.linkOf(server))
  assert.equal(alone.spans.length, 1)
  const expired = alone.spans[0]!
  assert.deepEqual(alone.linkOf(server), { traceId: expired.traceId, spanId: expired.spanId })
})

test('a thread that waits is linked to a request under way, with the ids that its span gets later', () => {
  const { tracer, spans, linkOf } = open()
  const [blocking, loop] = [operationOf(1, { blocking: true }), operationOf(2, { pid: 3 })]
  tracer.begin(blocking)
  tracer.begin(loop)
  const link = linkOf(blocking)
  assert.ok(link)
  assert.equal(linkOf(loop), undefined)
  tracer.end(blocking)
  const { traceId, spanId } = spans[0]!
  assert.deepEqual(link, { traceId, spanId })
  assert.deepEqual(linkOf(blocking), link)
})

test('a request that was given up is linked to nothing', () => {
  const { tracer, linkOf } = open()
  const operation = operationOf(1, { blocking: true })
  tracer.begin(operation)
  tracer.abandon(operation)
  assert.equal(linkOf(operation), undefined)
})
