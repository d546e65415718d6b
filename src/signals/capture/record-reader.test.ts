// owns: process
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { heapAllocated, heapGrowth } from '../../../test/helpers/heap.ts'
import { ipText } from '../../foundation/lib/ip-text.ts'
import type { Operation } from '../../foundation/model/stream.ts'
import { svcMethod, svcProtocol, svcRecord, svcRedKey, svcSide } from '../../kernel/gen/sock.ts'
import { RecordReader } from './record-reader.ts'

const bytes = Buffer.from(new ArrayBuffer(64 * 1024))
const words32 = new Uint32Array(bytes.buffer)
const words16 = new Uint16Array(bytes.buffer)

interface Given {
  readonly startNs?: bigint
  readonly responseNs?: bigint
  readonly endNs?: bigint
  readonly requestBytes?: bigint
  readonly responseBytes?: bigint
  readonly requestHead?: number
  readonly responseHead?: number
  readonly local?: string
  readonly peer?: string
  readonly comm?: string
  readonly head?: string
  readonly traceparent?: string
  readonly fields?: Readonly<Record<string, number>>
}

/** Sixteen bytes, from hexadecimal digits or an IPv4 address. */
function address(text: string): Buffer {
  if (!text.includes('.')) return Buffer.from(text, 'hex')
  return Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ...text.split('.').map(Number)])
}

/** Writes a record as the kernel lays it out. */
function write(at: number, given: Given): void {
  bytes.fill(0xa5, at, at + svcRecord.size)
  const u64 = (offset: number, value: bigint) => bytes.writeBigUInt64LE(value, at + offset)
  u64(svcRecord.startNs, given.startNs ?? 5_000_000_000n)
  u64(svcRecord.responseNs, given.responseNs ?? 5_001_000_000n)
  u64(svcRecord.endNs, given.endNs ?? 5_002_000_000n)
  u64(svcRecord.cgroup, 0x1_0000_0002n)
  u64(svcRecord.requestBytes, given.requestBytes ?? 100n)
  u64(svcRecord.responseBytes, given.responseBytes ?? 200n)
  bytes.writeUInt32LE(given.requestHead ?? 90, at + svcRecord.requestHead)
  bytes.writeUInt32LE(given.responseHead ?? 150, at + svcRecord.responseHead)
  bytes.writeUInt32LE(4_000_000_000, at + svcRecord.pid)
  bytes.writeUInt32LE(4_294_967_295, at + svcRecord.sequence)
  address(given.local ?? '127.0.0.1').copy(bytes, at + svcRecord.localAddress)
  address(given.peer ?? '10.1.2.3').copy(bytes, at + svcRecord.peerAddress)
  bytes.writeUInt16LE(8080, at + svcRecord.localPort)
  bytes.writeUInt16LE(65_535, at + svcRecord.peerPort)
  bytes.writeUInt16LE(503, at + svcRecord.status)
  bytes.writeUInt16LE(104, at + svcRecord.error)
  const head = Buffer.from(given.head ?? 'GET / HTTP/1.1\r\n\r\n', 'latin1')
  bytes.writeUInt16LE(head.length, at + svcRecord.captured)
  head.copy(bytes, at + svcRecord.size)
  bytes[at + svcRecord.side] = svcSide.indexOf('server')
  bytes[at + svcRecord.aborted] = 1
  bytes[at + svcRecord.hasTraceparent] = 0
  bytes.fill(0, at + svcRecord.comm, at + svcRecord.comm + 16)
  bytes.write(given.comm ?? 'nginx', at + svcRecord.comm, 'latin1')
  if (given.traceparent !== undefined) {
    bytes[at + svcRecord.hasTraceparent] = 1
    bytes.write(given.traceparent.padEnd(56, '\r').slice(0, 56), at + svcRecord.traceparent, 'latin1')
  }
  for (const [name, value] of Object.entries(given.fields ?? {}))
    bytes[at + svcRecord[name as 'side']] = value
}

function read(given: Given, at = 0, reader = new RecordReader()): Operation {
  write(at, given)
  return reader.record(bytes, words32, words16, at)
}

test('every field of a record has its place in the operation, its connection and its head', () => {
  for (const at of [0, 8, 4096]) {
    const operation = read({}, at)
    const { connection, head } = operation
    assert.equal(head.bytes, bytes)
    assert.equal(bytes.toString('latin1', head.start, head.end), 'GET / HTTP/1.1\r\n\r\n')
    const { pid, comm, server, protocol, fromBytes } = connection
    const { status, errno, aborted, sequence } = operation
    assert.deepEqual(
      { pid, comm, server, status, errno, aborted, sequence, protocol, fromBytes },
      {
        pid: 4_000_000_000,
        comm: 'nginx',
        server: true,
        status: 503,
        errno: 104,
        aborted: true,
        sequence: 4_294_967_295,
        protocol: 'http1',
        fromBytes: false,
      },
    )
    const { localAddress, localPort, peerAddress, peerPort } = connection
    assert.deepEqual(
      [localAddress, localPort, peerAddress, peerPort],
      ['127.0.0.1', 8080, '10.1.2.3', 65_535],
    )
    const { requestBytes, responseBytes, requestBodyBytes, responseBodyBytes } = operation
    assert.deepEqual([requestBytes, responseBytes, requestBodyBytes, responseBodyBytes], [100, 200, 10, 50])
  }
  assert.equal(read({ fields: { side: svcSide.indexOf('client'), aborted: 0 } }).connection.server, false)
  assert.equal(read({ fields: { side: svcSide.indexOf('client'), aborted: 0 } }).aborted, false)
})

test('times are those of the monotonic clock, and the duration is exact', () => {
  const { startNs, responseNs, endNs, durationNs } = read({ endNs: 5_002_000_001n })
  assert.deepEqual([startNs, responseNs, endNs], [5_000_000_000, 5_001_000_000, 5_002_000_001])
  assert.equal(durationNs, 2_000_001)
  assert.equal(read({ responseNs: 0n }).responseNs, 0)
})

test('numbers above 32 bits are read whole', () => {
  const operation = read({
    requestBytes: 5_000_000_000_000n,
    responseBytes: 2n ** 33n,
    startNs: 2n ** 50n,
    endNs: 2n ** 50n + 7n,
  })
  assert.deepEqual([operation.requestBytes, operation.responseBytes], [5e12, 2 ** 33])
  assert.equal(operation.durationNs, 7)
})

test('a body is never of negative size: a message may have ended within its head', () => {
  const operation = read({ requestBytes: 10n, requestHead: 90, responseBytes: 0n, responseHead: 0 })
  assert.deepEqual([operation.requestBodyBytes, operation.responseBodyBytes], [0, 0])
})

test('a traceparent is a range of the record, and a longer value shows', () => {
  const value = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  const check = (traceparent: string | undefined, want: string) => {
    const { traceparentStart, traceparentEnd } = read(traceparent === undefined ? {} : { traceparent }).head
    assert.equal(bytes.toString('latin1', traceparentStart, traceparentEnd), want)
  }
  check(undefined, '')
  check(value, value)
  check(`${value}\n`, value)
  check(`${value} `, value)
  check(`${value}-`, `${value}-`)
  check(`${value}0`, `${value}0`)
})

test('addresses are written as RFC 5952 asks', () => {
  const check = (given: string, want: string) => assert.equal(ipText(address(given)), want)
  check('127.0.0.1', '127.0.0.1')
  check('255.0.10.1', '255.0.10.1')
  check('00000000000000000000000000000000', '::')
  check('00000000000000000000000000000001', '::1')
  check('20010db8000000000000000000000001', '2001:db8::1')
  check('20010db8000000010001000100010001', '2001:db8:0:1:1:1:1:1')
  check('20010db8000000000001000000000001', '2001:db8::1:0:0:1')
  check('20010000000000010000000000000001', '2001:0:0:1::1')
  check('fe800000000000000000000000000000', 'fe80::')
  check('000000000000000000000000fffe0001', '::fffe:1')
  check('0000000000000000fffe0000c0a80001', '::fffe:0:c0a8:1')
  check('0001000200030004000500060007abcd', '1:2:3:4:5:6:7:abcd')
})

test('every address reads back as the one it was', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(0, 0, 1, 0xffff, 0xdb8), { minLength: 8, maxLength: 8 }), groups => {
      const raw = Buffer.alloc(16)
      for (const [i, group] of groups.entries()) raw.writeUInt16BE(group, 2 * i)
      const text = ipText(raw)
      if (text.includes('.')) return
      const [left = '', right] = text.split('::')
      const of = (part: string) => (part === '' ? [] : part.split(':').map(each => Number.parseInt(each, 16)))
      const [head, tail] = [of(left), of(right ?? '')]
      assert.deepEqual([...head, ...new Array(8 - head.length - tail.length).fill(0), ...tail], groups)
    }),
    { numRuns: 2000 },
  )
})

test('texts and addresses of one record do not leak into the next', () => {
  const reader = new RecordReader()
  const names = ['a', 'fifteen-letters', '', 'nginx: worker p']
  for (let i = 0; i < 10_000; i++) {
    const comm = `${names[i % 4]}`
    const given = {
      comm,
      local: `10.0.${i >> 8}.${i & 255}`,
      peer: i % 2 === 0 ? '10.0.0.1' : 'fe80'.padEnd(32, '0'),
    }
    const { comm: name, localAddress, peerAddress } = read(given, 0, reader).connection
    assert.deepEqual([name, localAddress], [comm, given.local])
    assert.equal(peerAddress, i % 2 === 0 ? '10.0.0.1' : 'fe80::')
  }
})

test('a key of what was only counted tells what its requests had in common, and nothing else', () => {
  const reader = new RecordReader()
  const keyOf = (side: 'client' | 'server', method: string, minor: number): Buffer => {
    const key = Buffer.alloc(svcRedKey.size)
    if (side === 'client') address('10.1.2.3').copy(key, svcRedKey.peerAddress)
    key.writeUInt32LE(4_000_000_000, svcRedKey.pid)
    key.writeUInt16LE(65_535, svcRedKey.port)
    key.writeUInt16LE(404, svcRedKey.status)
    key.writeUInt16LE(32, svcRedKey.error)
    key[svcRedKey.side] = svcSide.indexOf(side)
    key[svcRedKey.method] = svcMethod.indexOf(method as 'get')
    key[svcRedKey.minor] = minor
    key[svcRedKey.protocol] = svcProtocol.indexOf('http1')
    key[svcRedKey.aborted] = 1
    key.write('curl', svcRedKey.comm)
    return key
  }
  const check = (side: 'client' | 'server', method: string, minor: number, want: string, ends: unknown[]) => {
    // A record before it must leave nothing behind.
    read({ traceparent: '0'.repeat(55) }, 0, reader)
    const operation = reader.counted(keyOf(side, method, minor))
    const { connection, head, status, errno, aborted } = operation
    assert.equal(head.bytes.toString('latin1', head.start, head.end), want)
    const { pid, comm, server } = connection
    assert.deepEqual([pid, comm, status, errno, aborted], [4_000_000_000, 'curl', 404, 32, true])
    assert.equal(server, side === 'server')
    const { localAddress, localPort, peerAddress, peerPort } = connection
    assert.deepEqual([localAddress, localPort, peerAddress, peerPort], ends)
    const { startNs, responseNs, endNs, durationNs, sequence, tid, requestBytes, responseBytes } = operation
    const rest = [startNs, responseNs, endNs, durationNs, sequence, tid, requestBytes, responseBytes]
    assert.deepEqual(rest, new Array(8).fill(0))
    assert.equal(head.traceparentEnd - head.traceparentStart, 0)
    assert.deepEqual([operation.requestBodyBytes, operation.responseBodyBytes], [0, 0])
  }
  check('server', 'get', 1, 'GET * HTTP/1.1\r\n\r\n', ['', 65_535, '', 0])
  check('client', 'post', 0, 'POST * HTTP/1.0\r\n\r\n', ['', 0, '10.1.2.3', 65_535])
  check('client', 'query', 1, 'QUERY * HTTP/1.1\r\n\r\n', ['', 0, '10.1.2.3', 65_535])
})

test('a hundred thousand records leave no growth behind, and nothing for the collector', async () => {
  const reader = new RecordReader()
  const size = 256
  const kinds = 64
  for (let i = 0; i < kinds; i++) write(i * size, { comm: `worker ${i % 8}`, peer: `10.0.0.${i}` })
  const run = (rounds: number) => {
    for (let round = 0; round < rounds; round++)
      for (let i = 0; i < kinds; i++) reader.record(bytes, words32, words16, i * size)
  }
  const grown = await heapGrowth(() => run(2000))
  assert.ok(grown < 256 * 1024, `${grown} bytes more`)
  const rounds = 50
  const each = heapAllocated(() => run(rounds)) / (rounds * kinds)
  assert.ok(each < 16, `${each} bytes a record`)
})
