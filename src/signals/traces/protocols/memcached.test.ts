import assert from 'node:assert/strict'
import { test } from 'node:test'
import { classify, type Opening } from '../../../../test/helpers/classify.ts'
import { checkForeignOpenings } from '../../../../test/helpers/foreign-openings.ts'
import {
  byteByByte,
  type Call,
  checkHostileInputs,
  checkTruncations,
  replay,
  withoutTimes,
} from '../../../../test/helpers/hostile-streams.ts'
import { StreamSession } from '../../../../test/helpers/stream-session.ts'
import { SpanKind } from '../../../foundation/model/span.ts'
import { memcached } from './memcached.ts'

interface Packet {
  readonly code: number
  readonly key?: string
  readonly extras?: number
  readonly value?: string
  readonly opaque?: number
  /** Of a response. */
  readonly status?: number
}

/** A packet of the binary protocol. */
function packet({ code, key = '', extras = 0, value = '', opaque = 0, status }: Packet): Buffer {
  const header = Buffer.alloc(24 + extras)
  header[0] = status === undefined ? 0x80 : 0x81
  header[1] = code
  header.writeUInt16BE(key.length, 2)
  header[4] = extras
  header.writeUInt16BE(status ?? 0, 6)
  header.writeUInt32BE(extras + key.length + value.length, 8)
  header.writeUInt32BE(opaque, 12)
  return Buffer.concat([header, Buffer.from(key + value, 'latin1')])
}

function packets(...all: Packet[]): Buffer {
  return Buffer.concat(all.map(packet))
}

function calls(...said: readonly (readonly ['client' | 'server', string | Buffer])[]): Call[] {
  return said.map(([from, bytes]): Call => [from, Buffer.from(bytes as string, 'latin1')])
}

/** memcached 1.6.18. */
const text = calls(
  ['client', 'set a 0 0 3\r\nabc\r\n'],
  ['server', 'STORED\r\n'],
  ['client', 'gets a b c\r\n'],
  ['server', 'VALUE a 0 3 1\r\nabc\r\nEND\r\n'],
  ['client', 'add a 0 0 1\r\nx\r\n'],
  ['server', 'NOT_STORED\r\n'],
  ['client', 'cas a 0 0 1 999\r\ny\r\n'],
  ['server', 'EXISTS\r\n'],
  ['client', 'set n 0 0 1 noreply\r\n5\r\nincr n 10\r\n'],
  ['server', '15\r\n'],
  ['client', 'incr a 1\r\n'],
  ['server', 'CLIENT_ERROR cannot increment or decrement non-numeric value\r\n'],
  ['client', 'delete zz\r\n'],
  ['server', 'NOT_FOUND\r\n'],
  ['client', 'gat 100 a\r\n'],
  ['server', 'VALUE a 0 3\r\nabc\r\nEND\r\n'],
  ['client', 'stats\r\n'],
  ['server', 'STAT pid 15253\r\nSTAT uptime 3\r\nEND\r\n'],
  ['client', 'version\r\n'],
  ['server', 'VERSION 1.6.18\r\n'],
  ['client', 'bogus\r\n'],
  ['server', 'ERROR\r\n'],
  ['client', 'get a\r\nget b\r\nset c 0 0 1\r\nx\r\n'],
  ['server', 'VALUE a 0 3\r\nabc\r\nEND\r\nEND\r\nSTORED\r\n'],
  ['client', 'lru_crawler metadump all\r\n'],
  ['server', 'key=a exp=-1 la=1 cas=1 fetch=yes cls=1 size=65\r\nEND\r\n'],
  ['client', 'quit\r\n'],
)

const meta = calls(
  ['client', 'ms k 5 T90\r\nhello\r\n'],
  ['server', 'HD\r\n'],
  ['client', 'mg k v f t\r\n'],
  ['server', 'VA 5 f0 t90\r\nhello\r\n'],
  ['client', 'mg nope v q\r\nmg k v k q\r\nmg nope2 v k q\r\nmn\r\n'],
  ['server', 'VA 5 kk\r\nhello\r\nMN\r\n'],
  ['client', 'ms a 1 q\r\nx\r\nms b 1 q\r\ny\r\nmd nope q\r\nma k q\r\nmn\r\n'],
  ['server', 'NF\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\nMN\r\n'],
  ['client', 'mg k v Oabc\r\nmg k v Oxyz q\r\nmg none v Oq q\r\nmn\r\n'],
  ['server', 'VA 5 Oabc\r\nhello\r\nVA 5 Oxyz\r\nhello\r\nMN\r\n'],
  ['client', 'me k\r\n'],
  ['server', 'ME k exp=-89 la=1 cas=7 fetch=yes cls=1 size=65\r\n'],
)

const binary = calls(
  ['client', packet({ code: 1, key: 'a', extras: 8, value: 'hello', opaque: 7 })],
  ['server', packet({ code: 1, opaque: 7, status: 0 })],
  ['client', packet({ code: 0, key: 'a', opaque: 8 })],
  ['server', packet({ code: 0, extras: 4, value: 'hello', opaque: 8, status: 0 })],
  ['client', packet({ code: 0, key: 'none', opaque: 9 })],
  ['server', packet({ code: 0, value: 'Not found', opaque: 9, status: 1 })],
  [
    'client',
    packets(
      { code: 0x0d, key: 'a', opaque: 1 },
      { code: 0x0d, key: 'x', opaque: 2 },
      { code: 0x0d, key: 'a', opaque: 3 },
      { code: 0x11, key: 'q', extras: 8, value: 'v', opaque: 4 },
      { code: 0x0a, opaque: 5 },
    ),
  ],
  [
    'server',
    packets(
      { code: 0x0d, key: 'a', extras: 4, value: 'hello', opaque: 1, status: 0 },
      { code: 0x0d, key: 'a', extras: 4, value: 'hello', opaque: 3, status: 0 },
      { code: 0x0a, opaque: 5, status: 0 },
    ),
  ],
  ['client', packet({ code: 0x10 })],
  [
    'server',
    packets(
      { code: 0x10, key: 'pid', value: '15253', status: 0 },
      { code: 0x10, key: 'uptime', value: '4', status: 0 },
      { code: 0x10, status: 0 },
    ),
  ],
  ['client', packet({ code: 5, key: 'a', extras: 20 })],
  ['server', packet({ code: 5, value: 'Non-numeric server-side value', status: 6 })],
  ['client', packet({ code: 7 })],
  ['server', packet({ code: 7, status: 0 })],
)

function names({ ended }: StreamSession): string[] {
  return ended.map(({ name, error }) => (error === '' ? name : `${name} ${error}`))
}

test('a command and its response are told by the conventions, without key and value', () => {
  const session = new StreamSession(memcached, { serverPort: 11_211 })
  session.client('set user:4711 0 60 6\r\nsecret\r\n').serverSays('SERVER_ERROR out of memory\r\n')
  assert.deepEqual(session.ended[0], {
    name: 'set',
    error: 'SERVER_ERROR',
    kind: SpanKind.client,
    signalType: 'memcached',
    attributes: {
      'db.system.name': 'memcached',
      'db.operation.name': 'set',
      'server.address': '10.0.0.2',
      'network.peer.address': '10.0.0.2',
      'server.port': 11_211,
      'network.peer.port': 11_211,
      'db.response.status_code': 'SERVER_ERROR',
      'error.type': 'SERVER_ERROR',
    },
    dimensions: {
      'db.system.name': 'memcached',
      'db.operation.name': 'set',
      'server.address': '10.0.0.2',
      'server.port': 11_211,
      'db.response.status_code': 'SERVER_ERROR',
      'error.type': 'SERVER_ERROR',
    },
    duration: 'db.client.operation.duration',
    startMs: 1,
    responseMs: 2,
    endMs: 2,
    requestBytes: 30,
    responseBytes: 28,
    sequence: 1000,
    telemetry: false,
    context: '',
    state: '',
  })
})

test('each command of the text protocol is one operation', () => {
  assert.deepEqual(names(replay(memcached, text)), [
    ...['set', 'gets', 'add', 'cas', 'set', 'incr', 'incr CLIENT_ERROR', 'delete', 'gat', 'stats', 'version'],
    ...['_OTHER ERROR', 'get', 'get', 'set', 'lru_crawler'],
  ])
})

test('quiet meta commands end with the response to a later one', () => {
  assert.deepEqual(names(replay(memcached, meta)), [
    ...[
      'ms',
      'mg',
      'mg',
      'mg',
      'mg',
      'mn',
      'ms',
      'ms',
      'md',
      'ma CLIENT_ERROR',
      'mn',
      'mg',
      'mg',
      'mg',
      'mn',
    ],
    'me',
  ])
})

test('responses of the binary protocol find their requests by opcode and opaque', () => {
  const session = replay(memcached, binary)
  assert.deepEqual(names(session), [
    ...['set', 'get', 'get', 'get', 'get', 'get', 'set', 'noop', 'stats', 'incr DELTA_BADVAL'],
  ])
  assert.deepEqual(session.ended.at(-1)!.attributes['db.response.status_code'], '6')
  assert.deepEqual(
    session.ended.slice(3, 6).map(({ responseBytes }) => responseBytes),
    [34, 0, 34],
  )
})

test('statuses are errors or answers', () => {
  const check = (status: number, want: string) => {
    const session = new StreamSession(memcached).client(packet({ code: 1, key: 'a', extras: 8 }))
    session.serverSays(packet({ code: 1, status, value: 'text' }))
    assert.equal(session.ended[0]!.error, want)
  }
  check(1, '')
  check(2, '')
  check(5, '')
  check(3, 'E2BIG')
  check(0x81, 'UNKNOWN_COMMAND')
  check(0x82, 'ENOMEM')
  check(0x7fff, '_OTHER')
})

for (const [name, conversation] of Object.entries({ text, meta, binary })) {
  test(`${name}: how bytes are cut into calls changes nothing`, () => {
    const whole = replay(memcached, conversation)
    const cut = replay(memcached, byteByByte(conversation))
    assert.deepEqual(withoutTimes(cut.ended), withoutTimes(whole.ended))
    assert.equal(whole.streams.inFlight, 0)
  })

  test(`${name}: the beginning of a conversation tells no more than the whole`, () => {
    checkTruncations(memcached, conversation)
  })

  test(`${name}: no bytes make it throw or keep anything`, () => {
    checkHostileInputs(memcached, conversation)
  })
}

test('a large value is passed over, and its operation ends with its last byte', () => {
  const session = new StreamSession(memcached)
  session.capture = 200
  const value = 'x'.repeat(100_000)
  session.client(`set a 0 0 100000\r\n${value}\r\n`).serverSays('STORED\r\n').client('get a\r\n')
  session.serverSays(`VALUE a 0 100000\r\n${value.slice(0, 50_000)}`)
  session.serverSays(`${value.slice(50_000)}\r\nEND\r\n`)
  session.client('get b\r\n').serverSays('END\r\n')
  assert.deepEqual(
    session.ended.map(({ name, startMs, responseMs, endMs }) => [name, startMs, responseMs, endMs]),
    [
      ['set', 1, 2, 2],
      ['get', 3, 4, 5],
      ['get', 6, 7, 7],
    ],
  )
})

test('a large binary value is passed over, and its operation ends with its last byte', () => {
  const session = new StreamSession(memcached)
  session.capture = 200
  const value = 'x'.repeat(100_000)
  session.client(packet({ code: 1, key: 'a', extras: 8, value })).serverSays(packet({ code: 1, status: 0 }))
  const response = packet({ code: 0, extras: 4, value, status: 0 })
  session.client(packet({ code: 0, key: 'a' }))
  session.serverSays(response.subarray(0, 50_000)).serverSays(response.subarray(50_000))
  assert.deepEqual(
    session.ended.map(({ name, startMs, responseMs, endMs }) => [name, startMs, responseMs, endMs]),
    [
      ['set', 1, 2, 2],
      ['get', 3, 4, 5],
    ],
  )
})

test('a retrieval of many values, whose middle was not seen, ends when the client asks again', () => {
  const session = new StreamSession(memcached)
  session.capture = 200
  const keys = Array.from({ length: 100 }, (_, i) => `key${i}`)
  session.client(`get ${keys.join(' ')}\r\n`)
  session.serverSays(`${keys.map(key => `VALUE ${key} 0 3\r\nabc\r\n`).join('')}END\r\n`)
  session.client('incr a 1\r\n').serverSays('NOT_FOUND\r\n')
  session.client(`get ${keys.join(' ')}\r\n`).serverSays('END\r\n')
  assert.deepEqual(
    session.ended.map(({ name, startMs, endMs }) => [name, endMs - startMs]),
    [
      ['get', 1],
      ['incr', 1],
      ['get', 1],
    ],
  )
})

test('a connection that is older than the agent is joined at a command', () => {
  for (const first of ['STORED\r\n', 'abc\r\nEND\r\n']) {
    const session = new StreamSession(memcached, { joined: true })
    session.serverSays(first).client('get a\r\n').serverSays('VALUE a 0 1\r\nx\r\nEND\r\n')
    session.client('get b\r\n').serverSays('SERVER_ERROR busy\r\n')
    assert.deepEqual(names(session), ['get', 'get SERVER_ERROR'])
  }
})

test('what was not answered when the connection ended failed by how it ended', () => {
  const session = new StreamSession(memcached).client('get a\r\n').serverSays('END\r\n')
  session.client('get b\r\nmg c q\r\n').close(104)
  assert.deepEqual(names(session), ['get', 'get connection_reset', 'mg connection_reset'])
})

test('quiet commands that were last did what they should', () => {
  const session = new StreamSession(memcached).client('get a\r\n').serverSays('END\r\n')
  assert.deepEqual(names(session.client('ms b 1 q\r\nx\r\n').close()), ['get', 'ms'])
})

test('a connection that speaks something else is refused and tells nothing', () => {
  const session = new StreamSession(memcached)
  for (let i = 0; i < 5; i++) session.client('stats\r\n').serverSays('250 hello there\r\n')
  assert.equal(session.refused, true)
  assert.deepEqual(names(session.close()), [])
  assert.deepEqual(names(new StreamSession(memcached).client('get a\r\n').close()), [])
})

test('first bytes of clients are recognised', () => {
  const own: Opening[] = [
    ...[
      'get a\r\n',
      'gets a b\r\n',
      'set a 0 0 1\r\nx\r\n',
      'replace a 0 0 1\r\nx\r\n',
      'append a 0 0 1\r\nx\r\n',
    ],
    ...['prepend a 0 0 1\r\nx\r\n', 'cas a 0 0 1 9\r\nx\r\n', 'incr a 1\r\n', 'decr a 1\r\n', 'delete a\r\n'],
    ...['touch a 1\r\n', 'gat 1 a\r\n', 'gats 1 a\r\n', 'stats\r\n', 'stats items\r\n', 'version\r\n'],
    ...[
      'flush_all\r\n',
      'mg a v\r\n',
      'ms a 1\r\nx\r\n',
      'md a\r\n',
      'ma a\r\n',
      'mn\r\n',
      'add a 0 0 1\r\nx\r\n',
    ],
  ].map(bytes => ({ bytes }))
  const binaryOpenings: Packet[] = [
    { code: 0, key: 'a' },
    { code: 1, key: 'a', extras: 8, value: 'x' },
    { code: 0x0d, key: 'a' },
    { code: 0x0b },
    { code: 0x0a },
    { code: 0x10 },
    { code: 0x1c, key: 'a', extras: 4 },
    { code: 5, key: 'a', extras: 20 },
    { code: 0x0e, key: 'a', value: 'x' },
    { code: 0x21, key: 'PLAIN', value: '\0me\0geheim' },
    { code: 8, extras: 4 },
  ]
  const all = [...own, ...binaryOpenings.map(one => ({ bytes: packet(one) }))]
  for (const joined of [false, true])
    for (const [i, found] of classify(all.map(opening => ({ ...opening, joined }))).entries())
      assert.deepEqual(found, { protocol: 'memcached', from: 'client' }, String(all[i]!.bytes))
})

test('other protocols are not taken for it', () => {
  const alike: Opening[] = [
    ...['get \r\n', 'statistics\r\n', 'set\r\n', 'getname a\r\n', 'add\ta', 'mgr a\r\n', 'version 1.0\r\n'],
    '\x80\x2e\x01\x03\x01\0\x15\0\0\0\x10\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0',
    '\x80\0\0\0\x01\0\0\0\0\0\0\0\xdd\x07\0\0\0\0\0\0\0\x14\0\0',
  ].map(bytes => ({ bytes }))
  for (const [i, { protocol }] of classify(alike).entries())
    assert.notEqual(protocol, 'memcached', String(alike[i]!.bytes))
  checkForeignOpenings('memcached')
})

test('behind exchanges that were passed over, the first response is read', () => {
  const session = new StreamSession(memcached).client('get a\r\n').serverSays('END\r\n')
  for (let i = 0; i < 2; i++)
    session.lose(true, 70).lose(false, 50).client('incr a 1\r\n').serverSays('CLIENT_ERROR no number\r\n')
  const outcomes = session.ended.map(({ name, error }) => `${name} ${error}`.trim())
  assert.deepEqual(outcomes, ['get', 'incr CLIENT_ERROR', 'incr CLIENT_ERROR'])
  assert.equal(session.lost, 0)
})
