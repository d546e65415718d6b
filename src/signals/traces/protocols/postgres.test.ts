import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { classify, type Opening } from '../../../../test/helpers/classify.ts'
import {
  byteByByte,
  type Call,
  checkHostileInputs,
  checkTruncations,
  replay,
  withoutTimes,
} from '../../../../test/helpers/hostile-streams.ts'
import { StreamSession } from '../../../../test/helpers/stream-session.ts'
import { postgres } from './postgres.ts'

// Messages as PostgreSQL 15 and its clients send them (section 55.7).

function message(type: string, ...parts: (string | number)[]): string {
  const body = parts.map(part => (typeof part === 'number' ? int32(part) : part)).join('')
  return `${type}${int32(body.length + 4)}${body}`
}

function int32(value: number): string {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes.toString('latin1')
}

const startup = message('', 196_608, 'user\0shop\0database\0shop\0application_name\0psql\0\0')
const ready = message('Z', 'I')
const welcome =
  message('R', 0) + message('S', 'standard_conforming_strings\0on\0') + message('K', 4711, 1234) + ready
const query = (sql: string): string => message('Q', `${sql}\0`)
const parse = (name: string, sql: string): string => message('P', `${name}\0${sql}\0\0\0`)
const bind = (name: string, portal = ''): string => message('B', `${portal}\0${name}\0\0\0\0\x01`, 1, '1\0\0')
const describe = message('D', 'P\0')
const execute = (portal = ''): string => message('E', `${portal}\0`, 0)
const sync = message('S')
const flush = message('H')
const complete = (tag: string): string => message('C', `${tag}\0`)
const row = (text: string): string => message('D', '\0\x01', text.length, text)
const columns = message('T', '\0\x01name\0', 16_385, '\0\x02', 25, '\xff\xff', -1, '\0\0')
const failure = (state: string, severity = 'ERROR'): string =>
  message('E', `S${severity}\0V${severity}\0C${state}\0Msomething about 'secret'\0P15\0\0`)
const parsed = message('1')
const bound = message('2')
const extended = (sql: string): string => parse('', sql) + bind('') + describe + execute() + sync
const selected = parsed + bound + columns + row('a') + complete('SELECT 1') + ready

function session(options = {}): StreamSession {
  return new StreamSession(postgres, { serverPort: 5432, ...options })
}

function begun(): StreamSession {
  return session().client(startup).serverSays(welcome)
}

function outcomes(of: StreamSession): string[] {
  return of.ended.map(({ name, error }) => (error === '' ? name : `${name}: ${error}`))
}

function check(of: StreamSession, ...want: string[]): void {
  assert.deepEqual(outcomes(of), want)
  of.close()
  assert.equal(of.streams.inFlight, 0)
  assert.equal(of.ended.length, want.length)
  assert.ok(!of.refused)
}

test('a query is told by the conventions for SQL', () => {
  const one = begun()
    .client(query("SELECT * FROM items WHERE name = 'secret'"))
    .serverSays(columns + row('a'))
  one.serverSays(complete('SELECT 1') + ready)
  check(one, 'SELECT items')
  const [seen] = one.ended
  assert.deepEqual(seen!.attributes, {
    'db.system.name': 'postgresql',
    'db.namespace': 'shop',
    'db.operation.name': 'SELECT',
    'db.collection.name': 'items',
    'db.query.summary': 'SELECT items',
    'db.query.text': 'SELECT * FROM items WHERE name = ?',
    'server.address': '10.0.0.2',
    'network.peer.address': '10.0.0.2',
    'server.port': 5432,
    'network.peer.port': 5432,
  })
  assert.deepEqual(seen!.dimensions, {
    'db.system.name': 'postgresql',
    'db.namespace': 'shop',
    'db.operation.name': 'SELECT',
    'db.collection.name': 'items',
    'db.query.summary': 'SELECT items',
    'server.address': '10.0.0.2',
    'server.port': 5432,
  })
  assert.equal(seen!.kind, 3)
  assert.equal(seen!.signalType, 'sql')
  assert.equal(seen!.duration, 'db.client.operation.duration')
  assert.deepEqual([seen!.startMs, seen!.responseMs, seen!.endMs], [3, 4, 5])
  assert.equal(seen!.requestBytes, query("SELECT * FROM items WHERE name = 'secret'").length)
  assert.equal(one.asked, 1)
})

test('an error is named by its SQLSTATE', () => {
  const one = begun().client(query('SELECT * FROM nowhere')).serverSays(failure('42P01')).serverSays(ready)
  check(one, 'SELECT nowhere: 42P01')
  const { attributes, dimensions } = one.ended[0]!
  for (const set of [attributes, dimensions]) {
    assert.equal(set['db.response.status_code'], '42P01')
    assert.equal(set['error.type'], '42P01')
  }
  assert.ok(!JSON.stringify(attributes).includes('secret'))
})

test('the database is the user where none is named', () => {
  const one = session()
    .client(message('', 196_608, 'user\0bob\0\0'))
    .serverSays(welcome)
  one.client(query('SELECT 1')).serverSays(complete('SELECT 1') + ready)
  assert.equal(one.ended[0]!.attributes['db.namespace'], 'bob')
})

test('a server that refuses encryption is followed, one that encrypts is let go', () => {
  const encrypt = message('', 80_877_103)
  const plain = session().client(message('', 80_877_104)).serverSays('N').client(encrypt).serverSays('N')
  check(
    plain
      .client(startup)
      .serverSays(welcome)
      .client(query('BEGIN'))
      .serverSays(complete('BEGIN') + ready),
    'BEGIN',
  )
  const hidden = session().client(encrypt).serverSays('S').client('\x16\x03\x01\x02\0')
  assert.ok(hidden.refused)
  assert.equal(hidden.ended.length, 0)
})

test('a request to cancel is no operation', () => {
  check(session().client(message('', 80_877_102, 4711, 1234)))
})

test('a login that fails is no operation', () => {
  check(session().client(startup).serverSays(failure('28P01', 'FATAL')))
})

test('extended queries are told at their Execute, with the text of their Parse', () => {
  const one = begun().client(extended('SELECT name FROM items WHERE id = $1')).serverSays(selected)
  one.client(parse('get', 'SELECT a FROM t WHERE id = $1') + sync).serverSays(parsed + ready)
  one.client(bind('get') + execute() + sync).serverSays(bound + row('a') + complete('SELECT 1') + ready)
  one.client(bind('get', 'cursor') + flush).serverSays(bound)
  one.client(execute('cursor') + flush).serverSays(row('a') + message('s'))
  one.client(execute('cursor') + sync).serverSays(row('a') + complete('SELECT 1') + ready)
  check(one, 'SELECT items', 'SELECT t', 'SELECT t', 'SELECT t')
  assert.equal(one.ended[0]!.attributes['db.query.text'], 'SELECT name FROM items WHERE id = $1')
})

test('a statement that was closed, or prepared before somebody looked, has no text', () => {
  const one = begun().client(parse('get', 'SELECT a FROM t') + message('C', 'Sget\0') + sync)
  one.serverSays(parsed + message('3') + ready)
  one.client(bind('get') + execute() + sync).serverSays(bound + complete('SELECT 0') + ready)
  check(one, 'postgresql')
  assert.equal(one.ended[0]!.attributes['db.query.text'], undefined)
})

test('each Execute of a pipeline is one operation', () => {
  const part = (table: string): string => parse('', `SELECT a FROM ${table}`) + bind('') + execute()
  const answer = parsed + bound + row('a') + complete('SELECT 1')
  const one = begun()
    .client(part('a') + part('b'))
    .client(part('c') + sync)
  one.serverSays(answer + answer + answer + ready)
  check(one, 'SELECT a', 'SELECT b', 'SELECT c')
})

test('what a pipeline passes over behind an error is no operation', () => {
  const part = (table: string): string => parse('', `SELECT a FROM ${table}`) + bind('') + execute()
  const one = begun().client(part('a') + part('b') + part('c') + sync + part('d') + sync)
  one.serverSays(parsed + bound + complete('SELECT 1') + failure('42P01') + ready)
  one.serverSays(parsed + bound + complete('SELECT 1') + ready)
  check(one, 'SELECT a', 'SELECT b: 42P01', 'SELECT d')
  const late = begun()
    .client(part('a') + flush)
    .serverSays(failure('42P01'))
    .client(part('b'))
    .client(sync)
  late
    .serverSays(ready)
    .client(query('SELECT 1'))
    .serverSays(complete('SELECT 1') + ready)
  check(late, 'SELECT a: 42P01', 'SELECT')
})

test('a Parse of its own is an operation when it fails', () => {
  const one = begun().client(parse('s', 'SELECT a FROM t') + message('D', 'Ss\0') + sync)
  one.serverSays(failure('42P01') + ready)
  one.client(parse('s', 'SELECT a FROM u') + sync).serverSays(parsed + ready)
  check(one, 'SELECT t: 42P01')
})

test('several pipelines may be under way, each with its Sync', () => {
  const one = begun().client(extended('SELECT 1 FROM a')).client(query('SELECT 2 FROM b'))
  one.client(extended('SELECT 3 FROM c'))
  one
    .serverSays(selected)
    .serverSays(failure('42P01') + ready)
    .serverSays(selected)
  check(one, 'SELECT a', 'SELECT b: 42P01', 'SELECT c')
})

test('COPY is one operation in both directions', () => {
  const data = message('d', '1\ta\n')
  const copyIn = message('G', '\0\0\x02\0\0\0\0')
  const one = begun().client(query('COPY t FROM STDIN')).serverSays(copyIn)
  one
    .client(data + data)
    .client(message('c'))
    .serverSays(complete('COPY 2') + ready)
  one
    .client(query('COPY t TO STDOUT'))
    .serverSays(message('H', '\0\0\x02\0\0\0\0') + data + data + message('c'))
  one.serverSays(complete('COPY 2') + ready)
  // By the extended protocol the Sync that was sent with it is passed over.
  one.client(extended('COPY t FROM STDIN')).serverSays(parsed + bound + message('n') + copyIn)
  one.client(data + message('c') + sync).serverSays(complete('COPY 1') + ready)
  one
    .client(query('COPY t FROM STDIN'))
    .serverSays(copyIn)
    .client(message('f', 'no\0'))
    .serverSays(failure('57014') + ready)
  one.client(query('SELECT 1')).serverSays(complete('SELECT 1') + ready)
  check(one, 'COPY t', 'COPY t', 'COPY t', 'COPY t: 57014', 'SELECT')
})

test('a replication that begins is no operation', () => {
  const one = begun().client(query('START_REPLICATION SLOT s LOGICAL 0/0'))
  check(one.serverSays(message('W', '\0\0\0') + message('d', 'w')).client(message('d', 'r')))
})

test('notices, notifications and settings may stand anywhere', () => {
  const notice = message('N', 'SNOTICE\0C00000\0Mhello\0\0')
  const between = notice + message('A', 1, 'channel\0payload\0') + message('S', 'TimeZone\0UTC\0')
  const one = begun().serverSays(between).client(query('SELECT 1 FROM t'))
  one.serverSays(between + columns + between + complete('SELECT 0') + between + ready).serverSays(between)
  check(one, 'SELECT t')
})

test('the setting of standard_conforming_strings is heeded', () => {
  const sql = String.raw`SELECT 'it\'s', 'secret'`
  const one = begun()
    .client(query(sql))
    .serverSays(failure('42601') + ready)
  one.client(query('SET standard_conforming_strings TO off'))
  one.serverSays(complete('SET') + message('S', 'standard_conforming_strings\0off\0') + ready)
  one.client(query(sql)).serverSays(complete('SELECT 1') + ready)
  assert.equal(one.ended[2]!.attributes['db.query.text'], 'SELECT ?, ?')
})

test('several statements of one query are one operation', () => {
  const one = begun().client(query('INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)'))
  one.serverSays(complete('INSERT 0 1') + complete('INSERT 0 1') + ready)
  check(one, 'BATCH INSERT t')
  assert.equal(one.ended[0]!.attributes['db.operation.batch.size'], 2)
})

test('a function call and an empty query have the name of the system', () => {
  const one = begun()
    .client(message('F', 1299, '\0\0\0\0\0\x01'))
    .serverSays(message('V', 4, 'abcd') + ready)
  check(one.client(query('')).serverSays(message('I') + ready), 'postgresql', 'postgresql')
})

test('a query that is longer than what is kept is cut, and framed', () => {
  const one = begun().client(query(`SELECT a FROM t WHERE b = '${'x'.repeat(100_000)}' AND c = 1`))
  one.serverSays(row('x'.repeat(200_000)) + complete('SELECT 1') + ready)
  one.client(query('SELECT a FROM u')).serverSays(complete('SELECT 1') + ready)
  check(one, 'SELECT t', 'SELECT u')
  assert.equal(one.ended[0]!.attributes['db.query.text'], 'SELECT a FROM t WHERE b = ?')
})

test('what is under way when the connection ends has broken off', () => {
  const one = begun().client(query('SELECT a FROM t')).serverSays(row('a')).close(104)
  assert.deepEqual(outcomes(one), ['SELECT t: connection_reset'])
  const told = begun().client(query('SELECT pg_sleep(9)')).serverSays(failure('57P01', 'FATAL')).close()
  assert.deepEqual(outcomes(told), ['SELECT: 57P01'])
  assert.equal(told.streams.inFlight, 0)
})

test('a connection that is older than its observation is followed from its next query on', () => {
  const tail = row('Z\0\0\0\x05I').slice(9)
  const one = session({ joined: true }).serverSays(tail + row('b') + complete('SELECT 2') + ready)
  one.client(query('SELECT a FROM t')).serverSays(row('a') + complete('SELECT 1') + ready)
  one
    .client(bind('s1') + describe + execute() + sync)
    .serverSays(bound + columns + complete('SELECT 0') + ready)
  check(one, 'SELECT t', 'postgresql')
  assert.equal(one.ended[0]!.attributes['db.namespace'], undefined)
})

test('a response whose midst was not captured ends its operation', () => {
  const rows = row('some text of a row').repeat(1_000)
  const one = begun()
  one.capture = 400
  one
    .client(query('SELECT a FROM t'))
    .serverSays(columns + rows)
    .serverSays(rows + complete('SELECT 9') + ready)
  one.client(extended('SELECT a FROM u')).serverSays(parsed + bound + rows + complete('SELECT 9') + ready)
  check(one, 'SELECT t', 'SELECT u')
  assert.deepEqual(
    one.ended.map(({ endMs }) => endMs),
    [5, 7],
  )
  assert.equal(one.lost, 0)
})

test('the end of a response is found where calls cut it', () => {
  const rows = row('some text of a row').repeat(1_000)
  for (let cut = 1; cut < ready.length; cut++) {
    const one = begun()
    one.capture = 400
    one.client(query('SELECT a FROM t')).serverSays(rows + complete('SELECT 9') + ready.slice(0, cut))
    one.serverSays(ready.slice(cut))
    check(one, 'SELECT t')
  }
})

test('the next query ends the one whose response was not seen', () => {
  const one = begun()
    .client(query('SELECT a FROM t'))
    .serverSays(columns)
    .lose(false, 5_000)
    .serverSays('ows that go on')
  one.client(query('SELECT a FROM u')).serverSays(columns + complete('SELECT 1') + ready)
  check(one, 'SELECT t', 'SELECT u')
  assert.equal(one.ended[0]!.endMs, 5)
})

test('queries that were not captured are made up for by none', () => {
  const one = begun()
    .client(query('SELECT a FROM t'))
    .serverSays(complete('SELECT 1') + ready)
  one.lose(true, 100).serverSays(complete('SELECT 1') + ready)
  one.client(query('SELECT a FROM u')).serverSays(complete('SELECT 1') + ready)
  check(one, 'SELECT t', 'SELECT u')
})

test('what was bound is executed, where the rest of the call was not captured', () => {
  const one = begun()
  const text = parse('', 'SELECT a FROM t') + message('B', '\0\0\0\0\0\x01', 9_000, 'x'.repeat(9_000), '\0\0')
  for (const [tail, answer] of [
    [64, selected],
    [5, selected],
    [5, parsed + failure('22P02') + ready],
  ] as const) {
    one.capture = 400
    one.tail = tail
    one.client(text + describe + execute() + sync).serverSays(answer)
    one.client(extended('SELECT a FROM u')).serverSays(selected)
  }
  const names = ['SELECT t', 'SELECT u', 'SELECT t', 'SELECT u', 'SELECT t: 22P02', 'SELECT u']
  check(one, ...names)
})

test('exchanges that were only counted do not harm those behind them', () => {
  const one = begun()
    .client(query('SELECT a FROM t'))
    .serverSays(complete('SELECT 1') + ready)
  for (const answer of [complete('SELECT 1'), failure('42P01')]) {
    one.lose(true, 100).lose(false, 2_000)
    one.client(query('SELECT a FROM u')).serverSays(answer + ready)
    one.client(extended('SELECT a FROM v')).serverSays(selected)
  }
  check(one, 'SELECT t', 'SELECT u', 'SELECT v', 'SELECT u: 42P01', 'SELECT v')
  assert.deepEqual(
    one.ended.map(({ startMs, endMs }) => endMs - startMs),
    [1, 1, 1, 1, 1],
  )
})

test('data of COPY that was not captured does not hide what follows', () => {
  const one = begun().client(query('COPY t FROM STDIN')).serverSays(message('G', '\0\0\x02\0\0\0\0'))
  one.capture = 400
  for (let i = 0; i < 5; i++) one.client(message('d', 'x'.repeat(100)).repeat(100))
  one.client(message('c')).serverSays(complete('COPY 500') + ready)
  one.client(query('SELECT a FROM t')).serverSays(complete('SELECT 1') + ready)
  check(one, 'COPY t', 'SELECT t')
})

test('another protocol is refused and tells nothing', () => {
  for (const [client, server] of [
    ['GET / HTTP/1.1\r\n\r\n', 'HTTP/1.1 200 OK\r\n\r\n'],
    [startup, 'HTTP/1.1 400 Bad Request\r\n\r\n'],
  ] as const) {
    const one = session().client(client).serverSays(server)
    assert.ok(one.refused)
    assert.equal(one.ended.length, 0)
    assert.equal(one.streams.inFlight, 0)
  }
})

test('a server side is let go', () => {
  assert.ok(session({ server: true }).client(startup).refused)
})

/** Each call by its sender. */
const conversation = (
  [
    ['client', startup],
    ['server', welcome],
    ['client', query('SELECT a FROM t')],
    ['server', columns + row('a') + complete('SELECT 1') + ready],
    ['client', extended("INSERT INTO t VALUES ($1, 'x')")],
    ['server', parsed + bound + message('n') + complete('INSERT 0 1') + ready],
    ['client', parse('n', 'SELECT b FROM u') + bind('n') + execute() + execute() + sync],
    ['server', parsed + bound + complete('SELECT 1') + failure('34000') + ready],
    ['client', query('COPY t FROM STDIN')],
    ['server', message('G', '\0\0\x02\0\0\0\0')],
    ['client', message('d', 'some data') + message('c')],
    ['server', complete('COPY 1') + ready],
    ['client', message('X')],
  ] as const
).map(([from, text]): Call => [from, Buffer.from(text, 'latin1')])

test('the same comes of the bytes in whatever pieces they come', () => {
  const whole = replay(postgres, conversation)
  assert.equal(whole.ended.length, 5)
  assert.deepEqual(withoutTimes(replay(postgres, byteByByte(conversation)).ended), withoutTimes(whole.ended))
})

test('nothing is left of a conversation that ends at any byte', () => {
  checkTruncations(postgres, conversation)
})

test('bytes at random and messages that were changed never make it throw', () => {
  checkHostileInputs(postgres, conversation)
})

test('ten thousand requests in one pipeline are bounded and end', () => {
  const one = begun()
  for (let i = 0; i < 100; i++) one.client((bind('s') + execute()).repeat(100))
  assert.equal(one.streams.inFlight, 4_096)
  for (let i = 0; i < 100; i++) one.serverSays((bound + complete('SELECT 1')).repeat(100))
  one.client(sync).serverSays(ready)
  assert.equal(one.ended.length + one.lost, 10_000)
  assert.equal(one.streams.inFlight, 0)
  one.client(query('SELECT a FROM t')).serverSays(complete('SELECT 1') + ready)
  assert.equal(one.ended.at(-1)!.name, 'SELECT t')
})

test('the kernel side recognises its openings', () => {
  const openings: [Opening, string][] = [
    [{ bytes: startup }, 'client'],
    [{ bytes: message('', 80_877_103) }, 'client'],
    [{ bytes: message('', 80_877_104) }, 'client'],
    [{ bytes: query('SELECT a FROM t'), joined: true }, 'client'],
    [{ bytes: `${query('').slice(0, 5)}\0`, joined: true }, 'nobody'],
    [{ bytes: query(`SELECT ${'a, '.repeat(100)}`).slice(0, 64), length: 200, joined: true }, 'client'],
    [{ bytes: extended('SELECT a FROM t'), joined: true }, 'client'],
    [{ bytes: parse('s1', 'SELECT a FROM t') + sync, joined: true }, 'client'],
    [{ bytes: bind('s1') + describe + execute() + sync, joined: true }, 'client'],
    [{ bytes: bind('') + describe + execute() + sync, joined: true }, 'client'],
    [{ bytes: query('SELECT a FROM t') }, 'nobody'],
  ]
  const found = classify(openings.map(([opening]) => opening))
  for (const [at, [opening, from]] of openings.entries())
    assert.deepEqual(
      found[at],
      { protocol: from === 'nobody' ? 'none' : 'postgres', from },
      JSON.stringify(opening.bytes),
    )
})

test('the kernel side takes nothing else for it', () => {
  const others = [
    'GET / HTTP/1.1\r\nHost: a\r\n\r\n',
    'POST /a HTTP/1.1\r\n',
    'PUT / HTTP/1.1\r\n',
    'DELETE / HTTP/1.1\r\n',
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03',
    '220 mail ESMTP\r\n',
    'EHLO a\r\n',
    'SSH-2.0-OpenSSH_9.2p1\r\n',
    '*1\r\n$4\r\nPING\r\n',
    'PING\r\n',
    'PUB a 5\r\nhello\r\n',
    'QUIT\r\n',
    'BYE\r\n',
    'AMQP\0\0\x09\x01',
    '\x10\x0c\0\x04MQTT\x04\x02\0\x3c\0\0',
    'get a\r\n',
    '\x21\0\0\0\x03SELECT * FROM items WHERE id = 1',
    '\x51\0\0\0\x03SELECT 1',
    '\x42\0\0\0\x03SELECT a FROM t',
    '\x50\0\0\0\x16SELECT a FROM t',
    '\x42\0\0\0\x17\x01\0\0\0\0\x01\0\0\0',
    '\0\0\0\x14\0\x12\0\0\0\0\0\x01\0\x04test\0',
    '\x42\0\0\0\x0a5.5.5-10.11.6-MariaDB',
    '\x3a\0\0\0\x01\0\0\0\0\0\0\0\xdd\x07\0\0',
  ]
  const openings = others.flatMap(bytes => [
    { bytes, joined: false },
    { bytes, joined: true },
  ])
  const random = fc.sample(fc.uint8Array({ minLength: 1, maxLength: 64 }), 2_000)
  for (const bytes of random) openings.push({ bytes: Buffer.from(bytes).toString('latin1'), joined: true })
  for (const [at, { protocol }] of classify(openings).entries())
    assert.notEqual(protocol, 'postgres', JSON.stringify(openings[at]))
})

test('behind exchanges that were passed over, the first response is read', () => {
  const one = begun()
    .client(query('SELECT a FROM t'))
    .serverSays(selected.slice(parsed.length + bound.length))
  for (let i = 0; i < 2; i++) {
    one.lose(true, 70).lose(false, 500)
    one.client(query('SELECT b FROM u')).serverSays(failure('42P01') + ready)
  }
  check(one, 'SELECT t', 'SELECT u: 42P01', 'SELECT u: 42P01')
})

test('what has no name may be another statement where requests are missing', () => {
  const one = begun().client(extended('SELECT a FROM t')).serverSays(selected)
  one.lose(true, 70).lose(false, 500)
  one.client(bind('') + execute() + sync).serverSays(bound + row('a') + complete('SELECT 1') + ready)
  one.lose(true, 70).lose(false, 500)
  one.client(execute() + sync).serverSays(row('a') + complete('SELECT 1') + ready)
  check(one, 'SELECT t', 'postgresql', 'postgresql')
})
