import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BSON, type Document, Long, MaxKey, MinKey, ObjectId } from 'mongodb'
import { classify, type Opening } from '../../../../test/helpers/classify.ts'
import {
  byteByByte,
  type Call,
  checkHostileInputs,
  checkTruncations,
  replay,
  withoutTimes,
} from '../../../../test/helpers/hostile-streams.ts'
import { compressed, message, opMsg } from '../../../../test/helpers/servers/mongodb.ts'
import { StreamSession } from '../../../../test/helpers/stream-session.ts'
import { mongodb } from './mongodb.ts'

const moreToCome = 2
const hello = { hello: 1, $db: 'admin' }
const find = { find: 'users', filter: { name: 'Ada' }, $db: 'shop' }
const ok = { ok: 1 }

/** Recorded from the Node.js driver 7.9. */
const isMaster = Buffer.from(
  '610100000100000000000000d40700000000000061646d696e2e24636d640000000000ffffffff3a0100001069736d61737465720001000000' +
    '026261636b7072657373757265000200000032000868656c6c6f4f6b000103636c69656e7400e3000000036472697665720029000000026e61' +
    '6d6500070000006e6f64656a73000276657273696f6e0006000000372e392e30000002706c6174666f726d00150000004e6f64652e6a732076' +
    '32342e32312e302c204c4500036f730058000000026e616d6500060000006c696e757800026172636869746563747572650004000000783634' +
    '000276657273696f6e0010000000362e31382e34342d66632d7635393500027479706500060000004c696e7578000003656e7600290000000' +
    '3636f6e7461696e657200190000000272756e74696d650007000000646f636b65720000000004636f6d7072657373696f6e00110000000230' +
    '00050000006e6f6e65000000',
  'hex',
)
const insertOne = Buffer.from(
  '980000000300000000000000dd07000000000000008300000002696e73657274000600000075736572730004646f63756d656e747300250000' +
    '000330001d00000010610001000000075f6964006b01fd0ef4c358940af8fbe30000086f7264657265640001036c736964001e00000005696' +
    '4001000000004863887bc2ca9452c80ddbaa7e506e4080002246462000500000073686f700000',
  'hex',
)
const findAndModify = Buffer.from(
  'a80000002000000000000000dd0700000000000000930000000266696e64416e644d6f6469667900060000007573657273000371756572790' +
    '005000000000872656d6f76650000086e657700000875707365727400000375706461746500170000000324736574000c0000001078000100' +
    '00000000036c736964001e000000056964001000000004863887bc2ca9452c80ddbaa7e506e4080002246462000500000073686f700000',
  'hex',
)
const endSessions = Buffer.from(
  '760000002200000000000000dd07000002000000006100000004656e6453657373696f6e7300260000000330001e00000005696400100000' +
    '0004863887bc2ca9452c80ddbaa7e506e4080000037772697465436f6e6365726e000c000000107700000000000002246462000600000061646d' +
    '696e0000',
  'hex',
)

/** OP_MSG whose documents have a section of their own. */
function withSequence(
  id: number,
  command: Document,
  name: string,
  documents: Document[],
  first = false,
): Buffer {
  const rows = Buffer.concat(documents.map(document => Buffer.from(BSON.serialize(document))))
  const head = Buffer.alloc(5)
  head[0] = 1
  head.writeInt32LE(4 + name.length + 1 + rows.length, 1)
  const sequence = Buffer.concat([head, Buffer.from(`${name}\0`), rows])
  const body = Buffer.concat([Buffer.from([0]), BSON.serialize(command)])
  const sections = first ? [sequence, body] : [body, sequence]
  return message(id, 0, 2013, Buffer.concat([Buffer.alloc(4), ...sections]))
}

function opReply(answers: number, document: Document, flags = 8): Buffer {
  const head = Buffer.alloc(20)
  head.writeInt32LE(flags, 0)
  head.writeInt32LE(1, 16)
  return message(9, answers, 1, Buffer.concat([head, BSON.serialize(document)]))
}

function opQuery(id: number, namespace: string, document: Document): Buffer {
  const head = Buffer.from(`\0\0\0\0${namespace}\0\0\0\0\0\x01\0\0\0`)
  return message(id, 0, 2004, Buffer.concat([head, BSON.serialize(document)]))
}

/** A connection whose handshake is behind it. */
function open(): StreamSession {
  return new StreamSession(mongodb).client(opMsg(1, 0, hello)).serverSays(opMsg(900, 1, ok))
}

function talk(request: Buffer, reply: Document | Buffer): StreamSession {
  const session = open().client(request)
  const id = request.readInt32LE(4)
  return session.serverSays(Buffer.isBuffer(reply) ? reply : opMsg(901, id, reply))
}

test('a command has a name, attributes, dimensions and times', () => {
  const session = talk(opMsg(7, 0, find), { cursor: { firstBatch: [], id: 0, ns: 'shop.users' }, ok: 1 })
  const [operation] = session.ended
  assert.equal(session.ended.length, 1)
  assert.equal(session.asked, 1)
  assert.deepEqual(operation, {
    name: 'find users',
    error: '',
    kind: 3,
    signalType: 'mongodb',
    attributes: {
      'db.system.name': 'mongodb',
      'db.operation.name': 'find',
      'db.namespace': 'shop',
      'db.collection.name': 'users',
      'server.address': '10.0.0.2',
      'server.port': 4000,
      'network.peer.address': '10.0.0.2',
      'network.peer.port': 4000,
    },
    dimensions: {
      'db.system.name': 'mongodb',
      'db.operation.name': 'find',
      'db.namespace': 'shop',
      'db.collection.name': 'users',
      'server.address': '10.0.0.2',
      'server.port': 4000,
    },
    duration: 'db.client.operation.duration',
    startMs: 3,
    responseMs: 4,
    endMs: 4,
    requestBytes: opMsg(7, 0, find).length,
    responseBytes: opMsg(901, 7, { cursor: { firstBatch: [], id: 0, ns: 'shop.users' }, ok: 1 }).length,
    sequence: operation!.sequence,
    telemetry: false,
    context: '',
    state: '',
  })
})

test('the name is of the command and its collection, else its database', () => {
  const check = (command: Document, name: string, collection?: string) => {
    const [operation] = talk(opMsg(7, 0, command), ok).ended
    assert.equal(operation?.name, name)
    assert.equal(operation.attributes['db.collection.name'], collection)
    assert.equal(operation.attributes['db.namespace'], command.$db)
  }
  check({ insert: 'users', documents: [{}], $db: 'shop' }, 'insert users', 'users')
  check({ getMore: Long.fromNumber(5), collection: 'users', $db: 'shop' }, 'getMore users', 'users')
  check({ aggregate: 1, pipeline: [], cursor: {}, $db: 'shop' }, 'aggregate shop')
  check({ aggregate: 'users', pipeline: [], cursor: {}, $db: 'shop' }, 'aggregate users', 'users')
  check({ ping: 1, $db: 'admin' }, 'ping admin')
  check({ ping: 1 }, 'ping')
  check({ find: 'bücher', filter: {}, $db: 'shop' }, 'find bücher', 'bücher')
  check({ find: 'ü'.repeat(200), filter: {}, $db: 'shop' }, 'find shop')
})

test('nothing of what a command holds is told', () => {
  const check = (command: Document) => {
    const session = talk(opMsg(7, 0, { ...command, $db: 'admin' }), ok)
    assert.equal(session.ended.length, 1)
    assert.doesNotMatch(JSON.stringify(session.ended), /secret/)
  }
  check({ createUser: 'secret', pwd: 'secret', roles: [] })
  check({ eval: 'secret()' })
  check({ find: 'users', filter: { name: 'secret', $db: 'secret' } })
  check({ update: 'users', updates: [{ q: { secret: 1 }, u: { $set: { secret: 'secret' } } }] })
  check({ 'secret name': 1 })
  check({ usersInfo: 'secret', collection: 'secret' })
})

test('handshake, sign-in and the end of sessions are no operations', () => {
  for (const command of ['hello', 'isMaster', 'ismaster', 'saslStart', 'saslContinue', 'endSessions']) {
    const session = talk(opMsg(7, 0, { [command]: 1, $db: 'admin' }), ok).close()
    assert.deepEqual(session.ended, [])
    assert.equal(session.streams.inFlight, 0)
  }
})

test('what real drivers send is read', () => {
  const session = new StreamSession(mongodb)
    .client(isMaster)
    .serverSays(opReply(1, { ismaster: true, ok: 1 }))
    .client(insertOne)
    .serverSays(opMsg(901, 3, { n: 1, ok: 1 }))
    .client(findAndModify)
    .serverSays(opMsg(902, 32, { value: null, ok: 1 }))
    .client(endSessions)
    .close()
  assert.deepEqual(
    session.ended.map(({ name, attributes }) => `${name} in ${attributes['db.namespace']}`),
    ['insert users in shop', 'findAndModify users in shop'],
  )
})

test('failures are told by the number of the error', () => {
  const check = (reply: Document, error: string, code: string | undefined = error) => {
    const [operation] = talk(opMsg(7, 0, find), reply).ended
    assert.equal(operation?.error, error)
    assert.equal(operation.attributes['error.type'], error === '' ? undefined : error)
    assert.equal(operation.attributes['db.response.status_code'], code === '' ? undefined : code)
    assert.equal(operation.dimensions['db.response.status_code'], code === '' ? undefined : code)
  }
  check({ ok: 1 }, '')
  check({ n: 1, code: 5, ok: 1 }, '')
  check({ ok: 0, errmsg: 'no', code: 13, codeName: 'Unauthorized' }, '13')
  check({ ok: false, code: 13 }, '13')
  check({ ok: Long.fromNumber(0), code: Long.fromNumber(13) }, '13')
  check({ ok: 0, errmsg: 'no' }, '_OTHER', '')
  check({ n: 0, writeErrors: [{ index: 3, code: 11_000, errmsg: 'dup' }, { code: 1 }], ok: 1 }, '11000')
  check({ n: 0, writeErrors: [], ok: 1 }, '')
  check({ n: 0, writeErrors: [{ index: 3 }], ok: 1 }, '_OTHER', '')
  check({ n: 1, writeConcernError: { code: 64, errmsg: 'waited' }, ok: 1 }, '64')
  check({ writeErrors: [{ code: 11_000 }], writeConcernError: { code: 64 }, ok: 1 }, '11000')
})

test('documents of a write are counted where there are several', () => {
  const check = (request: Buffer, count: number | undefined) => {
    const [operation] = talk(request, ok).ended
    assert.equal(operation?.name, 'insert users')
    assert.equal(operation.attributes['db.operation.batch.size'], count)
    assert.equal(operation.attributes['db.namespace'], 'shop')
  }
  const documents = [{ a: 1 }, { a: 2 }, { a: 3 }]
  const command = { insert: 'users', $db: 'shop' }
  check(opMsg(7, 0, { insert: 'users', documents, $db: 'shop' }), 3)
  check(opMsg(7, 0, { insert: 'users', documents: [{}], $db: 'shop' }), undefined)
  check(withSequence(7, command, 'documents', documents), 3)
  check(withSequence(7, command, 'documents', documents, true), 3)
  check(withSequence(7, command, 'documents', []), undefined)
})

test('all types of values are passed over', () => {
  const values = {
    find: 'users',
    number: 1.5,
    text: 'x',
    document: { a: 1 },
    list: [1, 2],
    binary: new BSON.Binary(Buffer.from('abc')),
    id: new ObjectId(),
    yes: true,
    date: new Date(0),
    nothing: null,
    expression: /a+b/i,
    pointer: new BSON.DBRef('c', new ObjectId()),
    code: new BSON.Code('x'),
    scoped: new BSON.Code('x', { a: 1 }),
    symbol: new BSON.BSONSymbol('x'),
    int: 1,
    time: new BSON.Timestamp({ t: 1, i: 1 }),
    long: Long.fromNumber(2 ** 40),
    decimal: BSON.Decimal128.fromString('1.5'),
    least: new MinKey(),
    most: new MaxKey(),
    $db: 'shop',
  }
  assert.equal(talk(opMsg(7, 0, values), ok).ended[0]?.attributes['db.namespace'], 'shop')
})

test('answers are matched by their numbers in any order', () => {
  const session = open()
  for (let id = 10; id < 1_010; id++) session.client(opMsg(id, 0, { ...find, find: `c${id}` }))
  for (let id = 1_009; id >= 10; id--) session.serverSays(opMsg(5_000 + id, id, ok))
  assert.equal(session.ended.length, 1_000)
  session.ended.forEach(({ name, startMs, endMs }, i) => {
    assert.equal(name, `find c${1_009 - i}`)
    assert.ok(endMs > startMs)
  })
  assert.equal(session.streams.inFlight, 0)
})

test('more requests under way than are kept are counted as given up', () => {
  const session = open()
  for (let id = 10; id < 1_134; id++) session.client(opMsg(id, 0, find))
  assert.equal(session.streams.inFlight, 1_024)
  assert.equal(session.lost, 100)
  session.close()
  assert.equal(session.streams.inFlight, 0)
  assert.equal(session.ended.length, 1_024)
})

test('a write that wants no answer is done when it is sent', () => {
  const session = open().client(opMsg(7, 0, { insert: 'users', documents: [{}], $db: 'shop' }, moreToCome))
  assert.equal(session.ended[0]?.name, 'insert users')
  assert.equal(session.ended[0].error, '')
  assert.equal(session.streams.inFlight, 0)
})

test('a connection joined late tells of writes that want no answer', () => {
  const session = new StreamSession(mongodb, { joined: true })
  for (let id = 7; id < 10; id++)
    session.client(opMsg(id, 0, { insert: 'users', documents: [{}], $db: 'shop' }, moreToCome))
  assert.equal(session.ended.length, 3)
})

test('a request with several answers ends with the last of them', () => {
  const session = open()
    .client(opMsg(7, 0, { getMore: Long.fromNumber(1), collection: 'users', $db: 'shop' }, 0x10000))
    .serverSays(opMsg(901, 7, { cursor: { nextBatch: [] }, ok: 1 }, moreToCome))
    .serverSays(opMsg(902, 901, { cursor: { nextBatch: [] }, ok: 1 }, moreToCome))
  assert.equal(session.ended.length, 0)
  session.serverSays(opMsg(903, 902, { cursor: { nextBatch: [] }, ok: 1 }))
  assert.equal(session.ended.length, 1)
  assert.equal(session.ended[0]?.responseMs, 4)
  assert.equal(session.ended[0].endMs, 6)
})

test('a hello that is answered for as long as the connection lasts is no operation', () => {
  const session = open().client(opMsg(7, 0, { hello: 1, maxAwaitTimeMS: 10_000, $db: 'admin' }, 0x10000))
  for (let id = 0; id < 20; id++) session.serverSays(opMsg(901 + id, id === 0 ? 7 : 900 + id, ok, moreToCome))
  session.close(104)
  assert.deepEqual(session.ended, [])
  assert.equal(session.streams.inFlight, 0)
})

test('a compressed command is one operation, whose name is not known', () => {
  const session = talk(compressed(opMsg(7, 0, find)), compressed(opMsg(901, 7, { ok: 0, code: 1 })))
  const [operation] = session.ended
  assert.equal(operation?.name, 'mongodb')
  assert.equal(operation.error, '')
  assert.equal(operation.attributes['db.system.name'], 'mongodb')
  assert.equal(operation.attributes['db.operation.name'], undefined)
})

test('a compressed command without an answer is done when a later one is answered', () => {
  const session = open()
    .client(compressed(opMsg(7, 0, find)))
    .client(compressed(opMsg(8, 0, find)))
  session.serverSays(compressed(opMsg(901, 8, ok)))
  assert.deepEqual(
    session.ended.map(({ error, startMs }) => ({ error, startMs })),
    [
      { error: '', startMs: 3 },
      { error: '', startMs: 4 },
    ],
  )
  session.client(compressed(opMsg(9, 0, { endSessions: [], $db: 'admin' }))).close()
  assert.equal(session.ended.length, 2)
  assert.equal(session.streams.inFlight, 0)
})

test('the queries of before OP_MSG are read', () => {
  const check = (request: Buffer, reply: Buffer, name: string, error: string) => {
    const [operation] = talk(request, reply).ended
    assert.equal(operation?.name, name)
    assert.equal(operation.error, error)
    assert.equal(operation.attributes['db.namespace'], 'shop')
  }
  check(opQuery(7, 'shop.users.old', { name: 1 }), opReply(7, { name: 1 }), 'find users.old', '')
  check(opQuery(7, 'shop.$cmd', { count: 'users' }), opReply(7, { n: 1, ok: 1 }), 'count users', '')
  check(opQuery(7, 'shop.users', {}), opReply(7, { $err: 'no', code: 17_287 }, 2), 'find users', '17287')
})

test('what is under way fails when the connection ends', () => {
  const check = (errno: number, error: string) => {
    const session = open()
      .client(opMsg(7, 0, find))
      .close(errno)
    assert.equal(session.ended[0]?.error, error)
    assert.equal(session.ended[0].name, 'find users')
  }
  check(0, 'connection_closed')
  check(104, 'connection_reset')
  const half = open()
    .client(opMsg(7, 0, find))
    .serverSays(opMsg(901, 7, ok).subarray(0, 30))
    .close(104)
  assert.equal(half.ended[0]?.error, 'connection_reset')
  assert.equal(half.ended[0].name, 'find users')
})

test('the middle of long messages need not be captured', () => {
  const session = open()
  session.capture = 4_200
  const documents = Array.from({ length: 2_000 }, (_, i) => ({ i, text: 'x'.repeat(50) }))
  for (let id = 10; id < 15; id++) {
    session.client(opMsg(id, 0, { insert: 'users', documents, ordered: true, $db: 'shop' }))
    session.serverSays(opMsg(900 + id, id, { cursor: { firstBatch: documents }, ok: 1 }))
  }
  assert.equal(session.ended.length, 5)
  assert.equal(session.lost, 0)
  for (const { name, attributes, endMs, startMs } of session.ended) {
    assert.equal(name, 'insert users')
    assert.equal(attributes['db.namespace'], 'shop')
    assert.equal(endMs - startMs, 1)
  }
})

test('the end of an answer counts, wherever its calls were cut', () => {
  const session = open().client(opMsg(7, 0, find))
  const answer = opMsg(901, 7, { cursor: { firstBatch: [{ text: 'x'.repeat(60_000) }] }, ok: 1 })
  session.capture = 5_000
  for (let at = 0; at < answer.length; at += 20_000) session.serverSays(answer.subarray(at, at + 20_000))
  assert.equal(session.ended[0]?.responseMs, 4)
  assert.equal(session.ended[0].endMs, 7)
})

test('an operation whose answer was lost ends without an error when the next command comes', () => {
  const session = open()
    .client(opMsg(7, 0, find))
    .lose(false, 500)
    .serverSays(Buffer.alloc(40, 0x61))
  session.client(opMsg(8, 0, { ...find, find: 'others' }))
  assert.equal(session.ended[0]?.name, 'find users')
  assert.equal(session.ended[0].error, '')
  assert.equal(session.ended[0].endMs, 4)
  session.serverSays(opMsg(902, 8, ok))
  assert.equal(session.ended[1]?.name, 'find others')
  assert.equal(session.streams.inFlight, 0)
})

test('requests that were lost cost only themselves', () => {
  const session = open()
  session.lose(true, 200).serverSays(opMsg(901, 7, ok))
  session.client(opMsg(8, 0, find)).serverSays(opMsg(902, 8, ok))
  assert.equal(session.ended.length, 1)
  assert.equal(session.refused, false)
})

test('a connection that is older than the agent is read from its next command on', () => {
  const check = (...cuts: number[]) => {
    const session = new StreamSession(mongodb, { joined: true }).serverSays(opMsg(900, 5, ok))
    const [request, answer] = [opMsg(7, 0, find), opMsg(901, 7, ok)]
    session.client('the end of a document').client(request)
    let at = 0
    for (const cut of [...cuts, answer.length]) {
      session.serverSays(answer.subarray(at, cut))
      at = cut
    }
    assert.equal(session.ended[0]?.name, 'find users')
    assert.equal(session.ended.length, 1)
  }
  check()
  check(4, 16)
  check(16)
})

test('what is no MongoDB is refused, and leaves nothing behind', () => {
  const check = (session: StreamSession) => {
    assert.equal(session.refused, true)
    assert.equal(session.streams.inFlight, 0)
    assert.deepEqual(session.ended, [])
    assert.equal(session.lost, 0)
  }
  const wrong = new StreamSession(mongodb)
  for (let i = 0; i < 20; i++)
    wrong.client(opMsg(i, 0, find)).serverSays('+OK\r\n this is something else\r\n')
  check(wrong)
  check(new StreamSession(mongodb, { server: true }).client(opMsg(1, 0, find)))
  const strange = new StreamSession(mongodb)
  for (let id = 1; id < 5; id++) strange.client(opMsg(id, 0, find)).serverSays(opMsg(900, 100 + id, ok))
  check(strange)
})

const conversation: Call[] = [
  ['client', isMaster],
  ['server', opReply(1, { ismaster: true, ok: 1 })],
  ['client', insertOne],
  ['server', opMsg(901, 3, { n: 0, writeErrors: [{ index: 0, code: 11_000 }], ok: 1 })],
  [
    'client',
    withSequence(4, { update: 'users', $db: 'shop' }, 'updates', [
      { q: {}, u: {} },
      { q: {}, u: {} },
    ]),
  ],
  ['server', opMsg(902, 4, { n: 2, ok: 1 })],
  ['client', Buffer.concat([opMsg(5, 0, { delete: 'users', $db: 'shop' }, moreToCome), opMsg(6, 0, find)])],
  ['server', opMsg(903, 6, { ok: 0, code: 2, codeName: 'BadValue' })],
  ['client', compressed(opMsg(7, 0, find))],
  ['server', compressed(opMsg(904, 7, ok))],
  ['client', opMsg(8, 0, { ping: 1, $db: 'admin' })],
  ['server', opMsg(905, 8, ok)],
  ['client', endSessions],
]

test('the same bytes in other calls are the same operations', () => {
  const whole = replay(mongodb, [...conversation, 'closed'])
  assert.equal(whole.ended.length, 6)
  const cut = replay(mongodb, byteByByte([...conversation, 'closed']))
  assert.deepEqual(withoutTimes(cut.ended), withoutTimes(whole.ended))
})

test('a conversation may break off at every byte', () => checkTruncations(mongodb, conversation))

test('no bytes do harm', () => checkHostileInputs(mongodb, conversation))

test('the kernel side recognises it by its first bytes', () => {
  const own: [Opening, from: string][] = [
    [{ bytes: isMaster }, 'client'],
    [{ bytes: opMsg(1, 0, hello) }, 'client'],
    [{ bytes: opMsg(1, 0, find).subarray(0, 16) }, 'client'],
    [{ bytes: insertOne, joined: true }, 'client'],
    [{ bytes: endSessions, joined: true }, 'client'],
    [{ bytes: compressed(opMsg(7, 0, find)), joined: true }, 'client'],
    [{ bytes: opMsg(901, 7, ok), joined: true, received: true }, 'server'],
    [{ bytes: compressed(opMsg(901, 7, ok)), joined: true, received: true }, 'server'],
    [{ bytes: opReply(1, ok), joined: true, received: true }, 'server'],
  ]
  for (const [i, found] of classify(own.map(([opening]) => opening)).entries())
    assert.deepEqual(found, { protocol: 'mongodb', from: own[i]![1] }, `opening ${i}`)
  const foreign = [
    'GET / HTTP/1.1\r\nHost: a\r\n\r\n',
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    '220 mail.example.org ESMTP\r\n',
    'SSH-2.0-OpenSSH_9.2\r\n',
    '*1\r\n$4\r\nPING\r\n',
    '\x00\x00\x00\x29\x00\x03\x00\x00user\x00svc\x00database\x00svc\x00\x00',
    'AMQP\x00\x00\x09\x01',
    '\x00\x00\x00\x0e\x00\x12\x00\x02\x00\x00\x00\x00\x00\x04shop',
    '',
  ]
  const openings = foreign.flatMap(bytes => [{ bytes }, { bytes, joined: true }])
  for (const [i, { protocol }] of classify([{ bytes: opMsg(901, 7, ok) }, ...openings]).entries())
    assert.notEqual(protocol, 'mongodb', `opening ${i}`)
})

test('random bytes are not recognised', () => {
  let state = 1
  const random = () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return state >>> 24
  }
  const openings = Array.from({ length: 20_000 }, (_, i) => ({
    bytes: Buffer.from(Array.from({ length: 64 }, random)),
    joined: i % 2 === 0,
  }))
  assert.ok(classify(openings).every(({ protocol }) => protocol !== 'mongodb'))
})
