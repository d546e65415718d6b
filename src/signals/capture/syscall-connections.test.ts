import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Segment } from '../../foundation/model/stream.ts'
import { connectionOf, fdOf, pidOf, SyscallConnections, type Verdict } from './syscall-connections.ts'
import type { FoundSocket, ProcSockets } from './syscall-sockets.ts'

type Found = ReturnType<ProcSockets['find']>

const ipv4 = (last: number) =>
  Buffer.from(`00000000000000000000ffff0a0000${last.toString(16).padStart(2, '0')}`, 'hex')
const socket: FoundSocket = {
  localBytes: ipv4(1),
  localPort: 80,
  peerBytes: ipv4(2),
  peerPort: 50_000,
  isListening: false,
  blocking: true,
}

function segmentOf(connection: number, about: Partial<Segment> = {}): Segment {
  return Object.assign(new Segment(), { connection, protocol: 'http1', server: true, ...about })
}

/** Connections whose descriptors are what `answers` say, one after the other. */
function connections(answers: Found[], isOpen = true): SyscallConnections {
  return new SyscallConnections({ find: () => answers.shift() ?? 'gone' }, () => isOpen)
}

/** What becomes of a segment, and between which ends it went. */
function complete(of: SyscallConnections, segment: Segment): [Verdict, string, string] {
  of.begin()
  const verdict = of.complete(segment)
  const { localAddress, localPort, peerAddress, peerPort } = segment
  return [verdict, `${localAddress}:${localPort}`, `${peerAddress}:${peerPort}`]
}

const id = connectionOf(4_194_303, 0xeffff, 2047)

test('a connection’s number tells its process and its descriptor, and is exact', () => {
  assert.ok(Number.isSafeInteger(id))
  assert.deepEqual([pidOf(id), fdOf(id)], [4_194_303, 0xeffff])
  assert.deepEqual([pidOf(connectionOf(1, 0, 5)), fdOf(connectionOf(1, 0, 5))], [1, 0])
})

test('ends that the kernel side knows are passed on, without the unspecified address', () => {
  const known = { localAddress: '::', localPort: 80, peerAddress: '127.0.0.1', peerPort: 50_000 }
  assert.deepEqual(complete(connections([]), segmentOf(id, known)), [
    'pass',
    '127.0.0.1:80',
    '127.0.0.1:50000',
  ])
  const far = { ...known, peerAddress: '10.0.0.9' }
  assert.deepEqual(complete(connections([]), segmentOf(id, far)), ['pass', ':80', '10.0.0.9:50000'])
})

test('what the kernel side does not know is looked up once', () => {
  const of = connections([socket])
  const want = ['pass', '10.0.0.1:80', '10.0.0.2:50000']
  assert.deepEqual(complete(of, segmentOf(id)), want)
  assert.deepEqual(complete(of, segmentOf(id)), want)
  assert.deepEqual(complete(of, segmentOf(id, { closed: true })), want)
  assert.equal(of.size, 0)
})

test('ends that are told when the socket is shut serve a connection that is gone', () => {
  const of = connections([])
  assert.equal(complete(of, segmentOf(id))[0], 'later')
  of.report(id, { localAddress: '10.0.0.1', localPort: 80, peerAddress: '10.0.0.2', peerPort: 7 })
  assert.deepEqual(complete(of, segmentOf(id)), ['pass', '10.0.0.1:80', '10.0.0.2:7'])
})

test('of a connection that waits all segments do', () => {
  const of = connections(['unread', socket])
  of.begin()
  assert.deepEqual(
    [of.complete(segmentOf(id)), of.complete(segmentOf(id)), of.complete(segmentOf(id, { closed: true }))],
    ['later', 'later', 'later'],
  )
  assert.equal(complete(of, segmentOf(id))[0], 'pass')
})

test('what its process does elsewhere waits behind a connection that waits, and that of others does not', () => {
  const [older, waits, new1, other] = [
    connectionOf(7, 1, 0),
    connectionOf(7, 2, 0),
    connectionOf(7, 3, 0),
    id,
  ]
  const of = connections([socket, 'unread', 'unread', socket, socket, socket])
  assert.equal(complete(of, segmentOf(older))[0], 'pass')
  of.begin()
  const verdicts = (...of7: number[]) => of7.map(connection => of.complete(segmentOf(connection)))
  assert.deepEqual(verdicts(older, waits, older, new1, other), ['pass', 'later', 'later', 'later', 'pass'])
  assert.equal(of.complete(segmentOf(older, { closed: true })), 'later')
  assert.deepEqual([of.isLate(7), of.isLate(pidOf(other))], [true, false])
  // Each was looked for in the first batch already, so that all are found in the next one.
  of.begin()
  assert.deepEqual(verdicts(waits, older, new1), ['pass', 'pass', 'pass'])
})

test('a descriptor that stands for another connection by now is not asked', () => {
  const of = connections([socket, socket], false)
  assert.equal(complete(of, segmentOf(id))[0], 'later')
  assert.deepEqual(complete(of, segmentOf(id)), ['pass', ':0', ':0'])
})

test('what cannot be told is passed on where it was accepted or connected, and dropped where its bytes alone speak', () => {
  for (const [joined, want] of [
    [false, 'pass'],
    [true, 'drop'],
  ] as const) {
    const of = connections([])
    assert.equal(complete(of, segmentOf(id, { joined }))[0], 'later')
    assert.equal(complete(of, segmentOf(id, { joined }))[0], want)
  }
})

test('what waits for a table waits as long as that takes, and not for ever', context => {
  let now = 0
  context.mock.method(performance, 'now', () => now)
  const of = connections(new Array<Found>(1000).fill('unread'))
  while (complete(of, segmentOf(id))[0] === 'later') now += 5
  assert.equal(now, 1200)
})

test('files, Unix sockets and listening sockets are dropped', () => {
  assert.equal(complete(connections(['none']), segmentOf(id))[0], 'drop')
  assert.equal(complete(connections([{ ...socket, isListening: true }]), segmentOf(id))[0], 'drop')
})

test('what was read inside TLS is passed on, whatever carried it', () => {
  const inside = { tls: true, joined: true }
  assert.deepEqual(complete(connections(['none']), segmentOf(id, inside)), ['pass', ':0', ':0'])
  const gone = connections([])
  assert.equal(complete(gone, segmentOf(id, inside))[0], 'later')
  assert.equal(complete(gone, segmentOf(id, inside))[0], 'pass')
  // No descriptor has this number: nobody is asked for it, and nothing waits.
  const session = connectionOf(7, 2 ** 20 - 1, 0)
  assert.deepEqual(complete(connections([socket]), segmentOf(session, inside)), ['pass', ':0', ':0'])
})

test('the connections of a process are found by their descriptors', () => {
  const of = connections([])
  const ends = { localPort: 80, peerPort: 5 }
  for (const pid of [7, 8])
    for (const fd of [3, 4, 5]) complete(of, segmentOf(connectionOf(pid, fd, 1), ends))
  const found: number[] = []
  of.forEachOf(7, 4, 4_294_967_295, connection => {
    found.push(fdOf(connection))
    of.forget(connection)
  })
  assert.deepEqual(found.sort(), [4, 5])
  assert.equal(of.size, 4)
})
