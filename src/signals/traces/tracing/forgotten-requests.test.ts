import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WallClock } from '../../../foundation/lib/wall-clock.ts'
import { resource } from '../../../foundation/model/resource.ts'
import { Segment } from '../../../foundation/model/stream.ts'
import { redis } from '../protocols/redis.ts'
import { RedTable } from './red.ts'
import { Streams } from './streams.ts'
import { Tracer } from './tracer.ts'

const get = Buffer.from('*2\r\n$3\r\nGET\r\n$1\r\nk\r\n')
const answer = Buffer.from('$1\r\nv\r\n')

test('a request that was forgotten while it was under way has no ids of another', () => {
  const spanIds = new Set<string>()
  let spans = 0
  const of = resource({ 'service.name': 'one' })
  const protocol = redis.create({ route: (_operation, path) => path })
  const tracer = new Tracer({
    protocols: [protocol],
    scope: { name: 'svc/test', version: '1' },
    red: new RedTable({ startUs: 0 }),
    countedBounds: [],
    resourceOf: () => of,
    spans: {
      add: (_of, _scope, span) => {
        spans++
        spanIds.add(Buffer.from(span.spanId).toString('hex'))
      },
    },
    refuse: () => {},
    clock: new WallClock(),
    drop: () => {},
    rules: {
      ratio: 1,
      alwaysErrors: false,
      alwaysSlow: false,
      slowNs: 1e9,
      readContext: true,
      excludedPath: () => false,
    },
    isLocal: () => false,
    now: () => 0,
  })
  const streams = new Streams([protocol], tracer, { maxStreams: 65_536, maxBytes: 2 ** 27 })
  const call = (connection: number, bytes: Buffer, received: boolean, position = 0) => {
    const segment = Object.assign(new Segment(), { connection, protocol: 'redis', bytes, received, position })
    segment.end = bytes.length
    segment.length = bytes.length
    segment.sequence = connection * 1000 + position
    segment.localPort = 1 + (connection % 60_000)
    streams.segment(segment)
  }
  // More than the 16,384 that are remembered, each told of once its connection was confirmed.
  const connections = 17_000
  for (let i = 1; i <= connections; i++) {
    call(i, get, false)
    call(i, answer, true)
    call(i, get, false, get.length)
  }
  for (let i = 1; i <= connections; i++) call(i, answer, true, answer.length)
  assert.equal(spans, 2 * connections)
  assert.equal(spanIds.size, spans)
})
