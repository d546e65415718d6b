import assert from 'node:assert/strict'
import { test } from 'node:test'
import { classify, type Opening } from '../../../../test/helpers/classify.ts'
import { checkForeignOpenings } from '../../../../test/helpers/foreign-openings.ts'
import {
  byteByByte,
  type Call,
  checkHostileInputs,
  replay,
  withoutTimes,
} from '../../../../test/helpers/hostile-streams.ts'
import { type SessionOptions, StreamSession } from '../../../../test/helpers/stream-session.ts'
import { SpanKind } from '../../../foundation/model/span.ts'
import { Segment } from '../../../foundation/model/stream.ts'
import { Streams } from '../tracing/streams.ts'
import { dns } from './dns.ts'

const hex = (text: string) => Buffer.from(text, 'hex')

/** Node.js (c-ares) and dig 9.18 with dnsmasq 2.90. */
const recorded: Call[] = [
  ['client', hex('1406010000010000000000000357656204746573740000010001')],
  ['server', hex('1406858000010001000000000357656204746573740000010001c00c000100010000000000040a010203')],
  ['client', hex('4e030100000100000000000003776562047465737400001c0001')],
  [
    'server',
    hex(
      '4e038580000100010000000003776562047465737400001c0001c00c001c0001000000000010fd000000000000000000000000000001',
    ),
  ],
  ['client', hex('ea3d01000001000000000000046e6f706504746573740000010001')],
  ['server', hex('ea3d81830001000000000000046e6f706504746573740000010001')],
  ['client', hex('f81a010000010000000000000362696704746573740000100001')],
  ['server', hex('f81a878000010000000000000362696704746573740000100001')],
  [
    'client',
    hex(
      'f8fa01200001000000000001056f74686572076578616d706c65000001000100002904d000000000000c000a0008cb178b9a2a91063a',
    ),
  ],
  [
    'server',
    hex('f8fa81850001000000000001056f74686572076578616d706c65000001000100002904d0000000000006000f0002000e'),
  ],
  ['client', hex('30bc0120000100000000000105616c69617304746573740000010001')],
  [
    'server',
    hex(
      '30bc8580000100010000000105616c69617304746573740000010001c00c0005000100000000000a0377656204746573740000002904d0000000000000',
    ),
  ],
]

/** A name as it stands in messages. */
function wire(name: string): Buffer {
  const labels = name === '' ? [] : name.split('.')
  return Buffer.concat([
    ...labels.map(label => Buffer.from(String.fromCharCode(label.length) + label, 'latin1')),
    Buffer.alloc(1),
  ])
}

interface Asked {
  readonly id?: number
  readonly name?: string
  readonly type?: number
}

function query({ id = 1, name = 'web.test', type = 1 }: Asked = {}): Buffer {
  const header = Buffer.from([id >> 8, id & 0xff, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0])
  return Buffer.concat([header, wire(name), Buffer.from([type >> 8, type & 0xff, 0, 1])])
}

function response(asked: Asked = {}, code = 0, ...addresses: number[][]): Buffer {
  const bytes = query(asked)
  bytes[2] = 0x81
  bytes[3] = 0x80 | code
  bytes[7] = addresses.length
  const records = addresses.map(address =>
    Buffer.from([
      0xc0,
      12,
      0,
      address.length === 4 ? 1 : 28,
      0,
      1,
      0,
      0,
      0,
      60,
      0,
      address.length,
      ...address,
    ]),
  )
  return Buffer.concat([bytes, ...records])
}

function framed(message: Buffer): Buffer {
  return Buffer.concat([Buffer.from([message.length >> 8, message.length & 0xff]), message])
}

function opened(options: SessionOptions = {}): StreamSession {
  return new StreamSession(dns, { serverPort: 53, ...options })
}

function told({ ended }: StreamSession): string[] {
  return ended.map(({ name, error, attributes }) =>
    `${name} ${String(attributes['dns.question.name'])} ${error}`.trim(),
  )
}

test('a lookup is told by the conventions', () => {
  const session = opened().client(query({ name: 'Web.TEST' }))
  session.serverSays(response({ name: 'Web.TEST' }, 0, [10, 1, 2, 3], [10, 1, 2, 4]))
  assert.deepEqual(session.ended[0], {
    name: 'DNS A',
    error: '',
    kind: SpanKind.client,
    signalType: 'dns',
    attributes: {
      'dns.question.name': 'web.test',
      'dns.question.type': 'A',
      'server.address': '10.0.0.2',
      'network.peer.address': '10.0.0.2',
      'server.port': 53,
      'network.peer.port': 53,
      'network.transport': 'udp',
      'dns.answers': ['10.1.2.3', '10.1.2.4'],
      'dns.response_code': 'NOERROR',
    },
    dimensions: { 'dns.question.name': 'web.test', 'dns.response_code': 'NOERROR' },
    duration: 'dns.lookup.duration',
    startMs: 1,
    responseMs: 2,
    endMs: 2,
    requestBytes: 26,
    responseBytes: 58,
    sequence: 1000,
    telemetry: false,
    context: '',
    state: '',
  })
})

test('a recorded conversation has one operation for each lookup', () => {
  const session = replay(dns, recorded)
  assert.deepEqual(told(session), [
    'DNS A web.test',
    'DNS AAAA web.test',
    'DNS A nope.test NXDOMAIN',
    'DNS TXT big.test',
    'DNS A other.example REFUSED',
    'DNS A alias.test',
  ])
  assert.deepEqual(session.ended[1]!.attributes['dns.answers'], ['fd00::1'])
})

test('over TCP, how bytes are cut into calls changes nothing', () => {
  const frames = recorded.map(call => (call === 'closed' ? call : ([call[0], framed(call[1])] as Call)))
  const whole = replay(dns, frames)
  assert.deepEqual(told(whole), told(replay(dns, recorded)))
  assert.equal(whole.ended[0]!.attributes['network.transport'], 'tcp')
  assert.deepEqual(withoutTimes(replay(dns, byteByByte(frames)).ended), withoutTimes(whole.ended))
  const apart = frames.flatMap((call): Call[] =>
    call === 'closed'
      ? []
      : [
          [call[0], call[1].subarray(0, 2)],
          [call[0], call[1].subarray(2)],
        ],
  )
  assert.deepEqual(withoutTimes(replay(dns, apart).ended), withoutTimes(whole.ended))
})

test('two queries that are sent at once are two lookups, whatever the order of the answers', () => {
  const a = { id: 7 }
  const aaaa = { id: 8, type: 28 }
  for (const together of [true, false]) {
    const session = opened()
    if (together) session.client(Buffer.concat([query(a), query(aaaa)]))
    else session.client(query(a)).client(query(aaaa))
    session.serverSays(response(aaaa)).serverSays(response(a, 0, [1, 1, 1, 1]))
    assert.deepEqual(told(session), ['DNS AAAA web.test', 'DNS A web.test'])
  }
})

test('a query that is sent again is the same lookup', () => {
  const session = opened().client(query()).client(query()).serverSays(response()).serverSays(response())
  assert.deepEqual(told(session), ['DNS A web.test'])
  assert.equal(session.ended[0]!.endMs - session.ended[0]!.startMs, 2)
})

test('an answer to another question or with another number is nobody’s', () => {
  const session = opened().client(query())
  session
    .serverSays(response({ name: 'other.test' }))
    .serverSays(response({ id: 2 }))
    .serverSays(response({ type: 28 }))
  assert.deepEqual(told(session), [])
  const withoutQuestion = hex('000181810000000000000000')
  assert.deepEqual(told(session.serverSays(withoutQuestion)), ['DNS A web.test FORMERR'])
})

test('a lookup that nobody answered timed out, or failed by how its socket ended', () => {
  const check = (errno: number, want: string) =>
    assert.deepEqual(told(opened().client(query()).close(errno)), [`DNS A web.test ${want}`])
  check(0, 'timeout')
  check(111, 'connection_refused')
  check(5, '_OTHER')
  assert.deepEqual(told(opened().client(framed(query())).close(104)), ['DNS A web.test connection_reset'])
  assert.deepEqual(told(opened().client(framed(query())).close()), ['DNS A web.test connection_closed'])
})

test('a lookup that nobody answered ends when other sockets ask later, as no end of its socket is told', () => {
  const ended: string[] = []
  const streams = new Streams([dns.create({ route: () => '' })], {
    begin: () => {},
    end: ({ call, startNs, endNs }) =>
      ended.push(`${call.attributes.get('dns.question.name')} ${call.error} ${(endNs - startNs) / 1e9}`),
    abandon: () => {},
    lost: () => {},
    refuse: () => {},
  })
  const ask = (connection: number, name: string, timeNs: number) => {
    const segment = new Segment()
    segment.protocol = 'dns'
    segment.connection = connection
    segment.bytes = query({ name })
    segment.end = segment.length = segment.bytes.length
    segment.timeNs = timeNs
    streams.segment(segment)
  }
  ask(1, 'first.test', 1e9)
  ask(2, 'second.test', 10e9)
  assert.deepEqual(ended, [])
  ask(3, 'third.test', 17e9)
  assert.deepEqual(ended, ['first.test timeout 15'])
  assert.equal(streams.inFlight, 2)
})

test('more lookups than are kept cost the oldest ones', () => {
  const session = opened()
  for (let id = 0; id < 1_100; id++) session.client(query({ id }))
  assert.equal(session.streams.inFlight, 1_024)
  assert.deepEqual(session.ended[0]!.error, 'timeout')
  assert.ok(session.ended[0]!.endMs <= 1_025)
})

test('a name is told in small letters, escaped and cut, and the metric knows few of them', () => {
  const name = (text: string) =>
    opened()
      .client(query({ name: text }))
      .close().ended[0]!.attributes['dns.question.name']
  assert.equal(name(''), '.')
  assert.equal(name('_sip._tcp.A'), '_sip._tcp.a')
  assert.equal(name('a b.\xff\\'), 'a\\032b.\\255\\\\')
  assert.equal(String(name(Array(4).fill('\x01'.repeat(60)).join('.'))).length, 255)
  const session = opened()
  for (let i = 0; i < 300; i++)
    session.client(query({ id: i, name: `n${i}` })).serverSays(response({ id: i, name: `n${i}` }))
  const names = new Set(session.ended.map(({ dimensions }) => dimensions['dns.question.name']))
  assert.equal(names.size, 201)
  assert.ok(names.has('_OTHER') && names.has('n0') && !names.has('n299'))
})

test('names that are not there and names of addresses are not among those of the metric', () => {
  const session = opened().client(query()).serverSays(response({}, 3))
  const pointer = { id: 2, name: '1.2.0.192.in-addr.arpa', type: 12 }
  session.client(query(pointer)).serverSays(response(pointer))
  for (const { dimensions } of session.ended) assert.equal(dimensions['dns.question.name'], '_OTHER')
})

test('record types and codes that nobody knows have no name of their own', () => {
  const rare = { id: 1, type: 65_280 }
  const { name, error, attributes } = opened().client(query(rare)).serverSays(response(rare, 15)).ended[0]!
  assert.deepEqual([name, error, attributes['dns.question.type']], ['DNS', '_OTHER', '_OTHER'])
})

test('malformed names and pointers that go round are passed over', () => {
  const bad = [
    Buffer.concat([query().subarray(0, 12), hex('c00c'), hex('00010001')]),
    Buffer.concat([query().subarray(0, 12), Buffer.alloc(400, 1)]),
    query().subarray(0, 20),
  ]
  for (const bytes of bad) {
    const session = opened()
      .client(query({ id: 9 }))
      .client(bytes)
    assert.deepEqual(told(session.serverSays(response({ id: 9 }))), ['DNS A web.test'])
  }
  const answer = response({}, 0, [1, 2, 3, 4])
  answer.writeUInt16BE(0xc000 | (answer.length - 16), answer.length - 16)
  assert.deepEqual(told(opened().client(query()).serverSays(answer)), ['DNS A web.test'])
})

test('answers are as many as are told, and those that were cut off are left out', () => {
  const answer = response({}, 0, ...Array.from({ length: 40 }, (_, i) => [10, 0, 0, i]))
  const list = (bytes: Buffer) =>
    opened().client(query()).serverSays(bytes).ended[0]!.attributes['dns.answers']
  assert.equal((list(answer) as string[]).length, 16)
  assert.deepEqual(list(answer.subarray(0, 26 + 40)), ['10.0.0.0', '10.0.0.1'])
})

test('a socket that is older than the agent is joined at a query', () => {
  const session = opened({ joined: true })
    .serverSays(response({ id: 5 }))
    .client(query())
    .serverSays(response())
  assert.deepEqual(told(session), ['DNS A web.test'])
})

test('the beginning of a conversation over TCP tells no more than the whole', () => {
  const bytes = framed(query())
  for (let cut = 0; cut < bytes.length; cut++) {
    const session = opened().client(bytes.subarray(0, cut)).close()
    assert.deepEqual([session.ended.length, session.streams.inFlight], [0, 0])
  }
})

test('no bytes make it throw or keep anything', () => {
  checkHostileInputs(dns, recorded)
  checkHostileInputs(
    dns,
    recorded.map(call => (call === 'closed' ? call : ([call[0], framed(call[1])] as Call))),
  )
})

test('what is not DNS is refused', () => {
  const session = opened()
  for (let i = 0; i < 5; i++)
    session.client('GET / HTTP/1.1\r\nHost: a\r\n\r\n').serverSays('HTTP/1.1 200 OK\r\n\r\n')
  assert.equal(session.refused, true)
  assert.equal(session.ended.length, 0)
})

test('first bytes at the port of name servers are recognised, over UDP and TCP', () => {
  const peerPort = 53
  const queries: Opening[] = recorded.flatMap(call =>
    call === 'closed' || call[0] === 'server'
      ? []
      : [
          { bytes: call[1], peerPort },
          { bytes: framed(call[1]), peerPort },
          { bytes: hex('001a'), peerPort },
        ],
  )
  for (const found of classify(queries)) assert.deepEqual(found, { protocol: 'dns', from: 'client' })
  const responses: Opening[] = recorded.flatMap(call =>
    call === 'closed' || call[0] === 'client'
      ? []
      : [{ bytes: call[1], peerPort, received: true, joined: true }],
  )
  for (const found of classify(responses)) assert.deepEqual(found, { protocol: 'dns', from: 'server' })
  const foreign = [
    { bytes: query() },
    { bytes: 'GET / HTTP/1.1\r\n\r\n', peerPort },
    { bytes: hex('0001'), peerPort },
  ]
  for (const { protocol } of classify(foreign)) assert.notEqual(protocol, 'dns')
})

test('other protocols are not taken for it', () => {
  checkForeignOpenings('dns')
})
