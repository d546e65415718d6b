import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StreamSession } from '../../../../test/helpers/stream-session.ts'
import { type Operation, Segment } from '../../../foundation/model/stream.ts'
import { dns } from '../protocols/dns.ts'
import { http1 } from '../protocols/http1.ts'
import { redis } from '../protocols/redis.ts'
import type { OperationSink } from './operation-pool.ts'
import { Streams } from './streams.ts'

/** What a sink was told. */
class Told implements OperationSink {
  readonly errors: string[] = []
  readonly endNs: number[] = []
  forgotten = 0
  readonly lostFor: string[] = []
  refusals = 0

  begin(): void {}

  end({ call, endNs }: Operation): void {
    this.errors.push(call.error)
    this.endNs.push(endNs)
  }

  abandon(): void {
    this.forgotten++
  }

  lost(reason: string): void {
    this.lostFor.push(reason)
  }

  refuse(): void {
    this.refusals++
  }
}

function segmentOf(
  connection: number,
  protocol: string,
  bytes: Buffer,
  given: Partial<Segment> = {},
): Segment {
  return Object.assign(new Segment(), {
    connection,
    protocol,
    bytes,
    end: bytes.length,
    length: bytes.length,
    localAddress: '10.0.0.1',
    peerAddress: '10.0.0.2',
    localPort: 50_000,
    peerPort: 53,
    timeNs: 1e9,
    ...given,
  })
}

const options = { route: (_operation: unknown, path: string) => path }
const query = Buffer.from('123401000001000000000000076578616d706c6503636f6d0000010001', 'hex')
const get = Buffer.from('*2\r\n$3\r\nGET\r\n$1\r\nk\r\n')

test('a lookup over UDP that nobody answers ends as a timeout, though nobody tells that its socket was closed', () => {
  const told = new Told()
  const streams = new Streams([dns.create(options)], told)
  streams.segment(segmentOf(1, 'dns', query))
  streams.tick(20e9)
  assert.equal(streams.size, 1)
  streams.tick(32e9)
  assert.deepEqual(told.errors, ['timeout'])
  assert.equal(streams.size, 0)
  assert.equal(streams.inFlight, 0)
})

test('a connection of TCP may be silent for as long as it likes', () => {
  const told = new Told()
  const streams = new Streams([dns.create(options), redis.create(options)], told)
  const framed = Buffer.concat([Buffer.from([0, query.length]), query])
  streams.segment(segmentOf(1, 'dns', framed, { sequence: 77 }))
  streams.segment(segmentOf(2, 'redis', get, { sequence: 78 }))
  streams.tick(3600e9)
  assert.equal(streams.size, 2)
  assert.deepEqual(told.errors, [])
})

test('a silent connection whose process has ended is let go, and what was under way is counted', () => {
  const told = new Told()
  const gone = new Set([7])
  const streams = new Streams([redis.create(options)], told, { isGone: pid => gone.has(pid) })
  for (const [connection, pid] of [7, 8, 7].entries())
    streams.segment(segmentOf(connection, 'redis', get, { sequence: 78, pid }))
  streams.tick(20e9)
  assert.equal(streams.size, 3, 'news of its end may be on its way')
  streams.tick(40e9)
  assert.deepEqual([streams.size, streams.inFlight], [1, 1])
  assert.deepEqual(told.lostFor, ['ring_full', 'ring_full'])
  assert.deepEqual(told.errors, [])
  gone.add(8)
  streams.tick(400e9)
  assert.deepEqual([streams.size, streams.inFlight], [0, 0])
})

test('operations whose bytes found no room or no buffer are counted so, and what was no HTTP is not', () => {
  const check = (position: number, second: string, want: string, missed = false) => {
    const told = new Told()
    const streams = new Streams([http1.create(options)], told, { noRoom: () => 'perf_full' })
    const first = Buffer.from('GET /a HTTP/1.1\r\nHost: b\r\n\r\n')
    streams.segment(segmentOf(1, 'http1', first, { sequence: 1 }))
    const more = { sequence: 90, position, received: true, missed }
    streams.segment(segmentOf(1, 'http1', Buffer.from(second), more))
    assert.deepEqual(told.lostFor, [want])
  }
  check(100, 'rest of a body', 'perf_full')
  check(100, 'rest of a body', 'buffers_busy', true)
  check(0, 'this is no answer', 'framing_lost', true)
  check(0, 'this is no answer', 'framing_lost')
})

test('a connection that was refused is let go of when it was silent for long', () => {
  const told = new Told()
  const streams = new Streams([redis.create(options)], told)
  const noise = Buffer.alloc(2000, 0xee)
  let position = 0
  for (let call = 0; call < 40 && told.refusals === 0; call++) {
    streams.segment(
      segmentOf(1, 'redis', noise, { sequence: 1 + position, position, received: call % 2 === 1 }),
    )
    if (call % 2 === 1) position += noise.length
  }
  assert.equal(told.refusals, 1)
  streams.tick(20e9)
  assert.equal(streams.size, 1)
  streams.tick(40e9)
  assert.equal(streams.size, 0)
})

test('what is under way when the agent stops did not fail', () => {
  const session = new StreamSession(redis)
  session.client(get).serverSays('$1\r\nv\r\n').client(get)
  session.streams.close()
  assert.deepEqual(
    session.ended.map(({ error }) => error),
    [''],
  )
  assert.equal(session.streams.inFlight, 0)
})

test('a connection that has to make room did not fail, and what was under way is counted', () => {
  const told = new Told()
  const streams = new Streams([redis.create(options)], told, { maxStreams: 1 })
  const answer = Buffer.from('$1\r\nv\r\n')
  streams.segment(segmentOf(1, 'redis', get, { sequence: 1 }))
  streams.segment(segmentOf(1, 'redis', answer, { sequence: 1, received: true }))
  streams.segment(segmentOf(1, 'redis', get, { sequence: 1 + get.length, position: get.length }))
  streams.segment(segmentOf(2, 'redis', get, { sequence: 1 }))
  assert.deepEqual(told.errors, [''])
  assert.deepEqual(told.lostFor, ['no_memory'])
  assert.equal(streams.inFlight, 1)
})
