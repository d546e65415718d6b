// Memory of connections and requests under way: its bound, and who gives way when it is full.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { block, frame } from '../../../../test/helpers/http2-bytes.ts'
import { MemoryGovernor } from '../../../foundation/lib/memory-governor.ts'
import { type Operation, Segment } from '../../../foundation/model/stream.ts'
import { protocols } from '../protocols/index.ts'
import type { OperationSink } from './operation-pool.ts'
import { Streams, type StreamsOptions } from './streams.ts'

const Mi = 2 ** 20
const options = { route: (_operation: unknown, path: string) => path }
const opening = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, 0, 0)])
const settings = frame(4, 0, 0)
const ask = (id: number) =>
  frame(
    1,
    5,
    id,
    block({ ':method': 'GET', ':path': `/users/${id}`, ':scheme': 'http', ':authority': 'shop.example' }),
  )
const get = Buffer.from('*2\r\n$3\r\nGET\r\n$1\r\nk\r\n')
const value = Buffer.from('$1\r\nv\r\n')

/** Connections of several processes, each in a control group of its own, and what became of their requests. */
class Host implements OperationSink {
  readonly streams: Streams
  /** Requests that ended, by process. */
  readonly ends = new Map<number, number>()
  readonly lostFor = new Map<string, number>()
  mayRefuse = false
  readonly #positions = new Map<number, [number, number]>()
  #now = 1e9

  constructor(given: StreamsOptions = {}) {
    this.streams = new Streams(
      protocols.map(unit => unit.create(options)),
      this,
      given,
    )
  }

  begin(): void {}

  end({ connection: { pid } }: Operation): void {
    this.ends.set(pid, (this.ends.get(pid) ?? 0) + 1)
  }

  abandon(): void {}

  refuse(): void {
    if (!this.mayRefuse) assert.fail('a connection was refused')
  }

  lost(reason: string, operations: number): void {
    this.lostFor.set(reason, (this.lostFor.get(reason) ?? 0) + operations)
  }

  /** A call on a connection of a process. */
  call(pid: number, connection: number, protocol: string, bytes: Buffer, fromClient: boolean): void {
    const positions = this.#positions.get(connection) ?? [0, 0]
    this.#positions.set(connection, positions)
    const way = fromClient ? 0 : 1
    this.#now += 1e4
    this.streams.segment(
      Object.assign(new Segment(), {
        pid,
        connection,
        protocol,
        bytes,
        cgroup: pid,
        end: bytes.length,
        length: bytes.length,
        received: !fromClient,
        position: positions[way],
        sequence: 1 + positions[way],
        timeNs: this.#now,
      }),
    )
    positions[way] += bytes.length
  }

  /** A connection of HTTP/2 on which requests are asked that nobody answers. */
  hold(pid: number, connection: number, requests: number): void {
    this.call(pid, connection, 'http2', opening, true)
    this.call(pid, connection, 'http2', settings, false)
    for (let i = 0; i < requests; i++) this.call(pid, connection, 'http2', ask(1 + 2 * i), true)
  }

  /** So many bytes of the server went by unseen. */
  lose(connection: number, bytes: number): void {
    this.#positions.get(connection)![1] += bytes
  }

  wait(seconds: number): void {
    this.#now += seconds * 1e9
  }

  close(connection: number): void {
    this.streams.segment(Object.assign(new Segment(), { connection, closed: true, timeNs: this.#now }))
  }
}

/** Another process's connections, on each of which a request is under way for a while. */
function bystander(host: Host, pid: number, connections: number): { ask(): void; answer(): void } {
  const each = (visit: (connection: number) => void) => {
    for (let i = 0; i < connections; i++) visit(1_000_000 + i)
  }
  return {
    ask: () => each(connection => host.call(pid, connection, 'redis', get, true)),
    answer: () => each(connection => host.call(pid, connection, 'redis', value, false)),
  }
}

test('connections with thousands of requests under way cost themselves, not those of another process', () => {
  const host = new Host({ maxBytes: 8 * Mi })
  const other = bystander(host, 2, 50)
  other.ask()
  for (let connection = 1; connection <= 4; connection++) host.hold(1, connection, 4_000)
  assert.ok(host.streams.bytes > 6 * Mi)
  assert.ok(host.streams.bytes < 9 * Mi, `${host.streams.bytes}`)
  other.answer()
  for (let round = 0; round < 20; round++) {
    host.hold(1, 10 + round, 500)
    other.ask()
    other.answer()
  }
  assert.equal(host.ends.get(2), 21 * 50)
  assert.deepEqual([...host.lostFor.keys()], ['no_memory'])
  assert.ok(host.streams.bytes < 9 * Mi, `${host.streams.bytes}`)
})

test('ten thousand connections with a request each make room for those who hold little', () => {
  const host = new Host({ maxBytes: 8 * Mi })
  const other = bystander(host, 2, 50)
  other.ask()
  for (let i = 0; i < 10_000; i++) {
    host.call(1, i, 'redis', get, true)
    if (i % 100 !== 99) continue
    other.answer()
    other.ask()
  }
  other.answer()
  assert.equal(host.ends.get(2), 101 * 50)
  assert.ok(host.streams.bytes < 9 * Mi, `${host.streams.bytes}`)
  assert.ok(host.streams.size > 2_000)
})

test('a connection of a process that holds much gives way to others of the same process', () => {
  const host = new Host({ maxBytes: 4 * Mi })
  host.hold(1, 1, 4_000)
  const other = bystander(host, 1, 50)
  other.ask()
  other.answer()
  assert.equal(host.ends.get(1), 50)
})

test('a process with more connections than there are places takes none of another’s', () => {
  const host = new Host({ maxStreams: 1_000, maxBytes: 64 * Mi })
  const other = bystander(host, 2, 50)
  other.ask()
  other.answer()
  for (let i = 0; i < 5_000; i++) host.call(1, i, 'redis', get, true)
  assert.ok(host.streams.size <= 1_000)
  other.ask()
  other.answer()
  assert.equal(host.ends.get(2), 100)
})

test('what ends all at once is told of in several turns of the loop, and nothing of it is kept', async () => {
  for (const end of ['closes', 'is gone away'] as const) {
    const host = new Host()
    host.hold(1, 1, 4_000)
    if (end === 'is gone away') host.call(1, 1, 'http2', frame(7, 0, 0, Buffer.alloc(8)), false)
    host.close(1)
    assert.equal(host.streams.size, 0)
    const first = host.ends.get(1)!
    assert.ok(first > 0 && first < 500, `${first}`)
    while (host.streams.inFlight > 0) {
      const before = host.streams.inFlight
      await new Promise(setImmediate)
      assert.ok(before - host.streams.inFlight <= 200)
    }
    assert.equal(host.ends.get(1), 4_000)
    assert.equal(host.streams.bytes, 0)
  }
})

test('the governor has connections given up, and refuses requests while memory is short', () => {
  const reading = { liveHeapBytes: 0, usedHeapBytes: 0, anonymousBytes: 0 }
  const bounds = { tablesBytes: 64 * Mi, heapBytes: 100, processBytes: 1e9 }
  const governor = new MemoryGovernor(bounds, () => reading)
  const host = new Host({ governor })
  for (let connection = 1; connection <= 4; connection++) host.hold(connection, connection, 1_000)
  const held = host.streams.bytes
  assert.deepEqual(
    governor.tables().map(({ name, limit }) => [name, limit]),
    [
      ['connections', 24 * Mi],
      ['requests under way', 24 * Mi],
    ],
  )
  assert.equal(governor.bytes, held)
  reading.liveHeapBytes = 99
  governor.look()
  assert.equal(governor.pressure, 3)
  assert.ok(governor.bytes < held * 0.8, `${governor.bytes} of ${held}`)
  const lost = host.lostFor.get('no_memory')!
  host.call(9, 9, 'redis', get, true)
  const { inFlight: underWay } = host.streams
  host.hold(4, 4, 10)
  assert.equal(host.streams.inFlight, underWay)
  assert.ok(host.lostFor.get('no_memory')! > lost)
  reading.liveHeapBytes = 0
  governor.look()
  host.call(10, 10, 'redis', get, true)
  assert.equal(host.streams.inFlight, underWay + 1)
})

test('a connection of HTTP/2 that is refused with requests under way leaves nothing to others', () => {
  const host = new Host()
  host.mayRefuse = true
  // A frame that may not be there, at the beginning of a call of its own, so that the flow finds its way each time.
  const impossible = frame(9, 0, 1)
  for (let connection = 1; connection <= 20; connection++) {
    host.hold(1, connection, 50)
    for (let i = 0; i < 40; i++) {
      host.call(1, connection, 'http2', impossible, true)
      host.call(1, connection, 'http2', ask(1_001 + 2 * i), true)
    }
  }
  assert.equal(host.streams.refused, 20)
  assert.equal(host.streams.inFlight, 0)
  // Those that come next take what was given back: each has its own, and its own end.
  for (let connection = 101; connection <= 140; connection++) host.hold(2, connection, 100)
  assert.equal(host.streams.inFlight, 4_000)
  for (let connection = 1; connection <= 140; connection++) host.close(connection)
  host.streams.settle()
  assert.equal(host.ends.get(2), 4_000)
  assert.equal(host.streams.inFlight, 0)
  assert.equal(host.streams.bytes, 0)
})

test('requests that a server will not look at, and that were silent for long, end once', () => {
  const host = new Host()
  host.hold(1, 1, 100)
  host.lose(1, 500)
  host.wait(3)
  // GOAWAY of those above stream 1: the end of the first one makes it look for those that may have ended unseen.
  host.call(1, 1, 'http2', frame(7, 0, 0, Buffer.from([0, 0, 0, 1, 0, 0, 0, 0])), false)
  host.streams.settle()
  assert.equal(host.ends.get(1), 100)
  host.close(1)
  host.streams.settle()
  assert.equal(host.ends.get(1), 100)
  assert.equal(host.streams.inFlight, 0)
  assert.equal(host.streams.bytes, 0)
})

test('what ends faster than it is told of has a bound in bytes', () => {
  const host = new Host()
  for (let connection = 1; connection <= 200; connection++) {
    host.hold(1, connection, 120)
    // The loop has no turn meanwhile: a GOAWAY ends them all at once.
    host.call(1, connection, 'http2', frame(7, 0, 0, Buffer.alloc(8)), false)
    host.close(connection)
    assert.ok(host.streams.requestBytes < 6 * Mi, `${host.streams.requestBytes} after ${connection}`)
  }
  host.streams.settle()
  assert.equal(host.ends.get(1), 24_000)
  assert.equal(host.streams.bytes, 0)
  assert.equal(host.streams.inFlight, 0)
})

/** A request and its answer, which name the request by a number at these places. */
const numbered = (ask: string, askAt: number, answer: string, answerAt: number, write: 'BE' | 'LE' | '16') =>
  [
    [ask, askAt],
    [answer, answerAt],
  ].map(([hex, at]) => (number: number) => {
    const bytes = Buffer.from(hex as string, 'hex')
    if (write === 'BE') bytes.writeInt32BE(number, at as number)
    else if (write === 'LE') bytes.writeInt32LE(number, at as number)
    else bytes.writeUInt16BE(number, at as number)
    return bytes
  })

const inOrder = (ask: string, answer: string) => [ask, answer].map(text => () => Buffer.from(text))

/** Requests of each protocol that may be sent before there are answers, and the answers. */
const exchanges = {
  kafka: numbered('0000000f0012000000000000000161616161ff', 8, '0000000a00000000000000000000', 4, 'BE'),
  mongodb: numbered(
    '2a0000000000000000000000dd0700000000000000150000000270696e67000200000078000000000000',
    4,
    '260000000900000000000000dd070000000000000011000000016f6b00000000000000f03f00',
    8,
    'LE',
  ),
  dns: numbered(
    '1406010000010000000000000357656204746573740000010001',
    0,
    '1406858000010001000000000357656204746573740000010001c00c000100010000000000040a010203',
    0,
    '16',
  ),
  redis: inOrder(get.toString(), value.toString()),
  memcached: inOrder('get a\r\n', 'END\r\n'),
  http1: inOrder('GET / HTTP/1.1\r\nHost: a\r\n\r\n', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'),
}

for (const [protocol, [ask, answer]] of Object.entries(exchanges)) {
  test(`${protocol}: what finds the requests in flight is counted, and goes with them`, () => {
    const host = new Host({ maxBytes: 64 * Mi })
    const held = () => host.streams.bytes - host.streams.requestBytes
    const count = 1_000
    for (let i = 0; i < 2; i++) {
      host.call(1, 1, protocol, ask!(i), true)
      host.call(1, 1, protocol, answer!(i), false)
    }
    assert.equal(host.streams.inFlight, 0)
    const before = held()
    for (let i = 0; i < count; i++) host.call(1, 1, protocol, ask!(i), true)
    assert.equal(host.streams.inFlight, count)
    const most = held() - before
    assert.ok(most >= 8 * count, `${most}`)
    for (let i = 1; i < count; i++) host.call(1, 1, protocol, answer!(i), false)
    assert.equal(host.streams.inFlight, 1)
    assert.ok(held() - before < most / 4, `${held() - before} of ${most}`)
  })
}
