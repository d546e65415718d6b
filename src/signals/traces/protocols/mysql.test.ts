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
import { mysql } from './mysql.ts'

// Packets as MariaDB 10.11, MySQL 8.4 and their clients send them.

function packet(sequence: number, payload: string): string {
  return int24(payload.length) + String.fromCharCode(sequence) + payload
}

function int24(value: number): string {
  return String.fromCharCode(value & 255, (value >> 8) & 255, value >> 16)
}

function int16(value: number): string {
  return String.fromCharCode(value & 255, value >> 8)
}

function int32(value: number): string {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes.toString('latin1')
}

/** Numbers the payloads as one response. */
function packets(...payloads: string[]): string {
  return payloads.map((payload, i) => packet((i + 1) & 255, payload)).join('')
}

const mariadbVersion = '5.5.5-10.11.19-MariaDB-0+deb12u1'
const moreResults = 8
const greetingOf = (version: string, capabilities = 0xffff_ffff): string => {
  const [low, high] = [int16(capabilities & 0xffff), int16(capabilities >>> 16)]
  return packet(
    0,
    `\x0a${version}\0${int32(8)}challeng\0${low}\x2d\x02\0${high}\x15${'\0'.repeat(10)}challenge123\0mysql_native_password\0`,
  )
}
/** PROTOCOL_41, CONNECT_WITH_DB, SECURE_CONNECTION, PLUGIN_AUTH, MULTI_RESULTS. */
const usual = 0x000a_8208
const loginOf = (capabilities = usual, charset = 45): string =>
  packet(
    1,
    `${int32(capabilities)}${int32(1 << 24)}${String.fromCharCode(charset)}${'\0'.repeat(23)}shop\0\x14${'p'.repeat(20)}shop\0mysql_native_password\0`,
  )
const okPayload = (status = 2): string => `\0\0\0${int16(status)}\0\0`
const ok = packet(1, okPayload())
const accepted = packet(2, okPayload())
const eof = (status = 2): string => `\xfe\0\0${int16(status)}`
const lastOk = (status = 2): string => `\xfe\0\0${int16(status)}\0\0`
const errorPayload = (code: number): string => `\xff${int16(code)}#42S02something about 'secret'`
const definition = '\x03def\x04shop\x05items\x05items\x02id\x02id\x0c\x3f\0\x0b\0\0\0\x03\0\0\0\0\0'
const row = '\x011\x01a'
const query = (sql: string): string => packet(0, `\x03${sql}`)
const prepare = (sql: string): string => packet(0, `\x16${sql}`)
const execute = (id: number): string => packet(0, `\x17${int32(id)}\0${int32(1)}`)
const selected = packets('\x02', definition, definition, eof(), row, row, eof())
const prepared = (id: number): string =>
  packets(`\0${int32(id)}${int16(1)}${int16(1)}\0${int16(0)}`, definition, eof(), definition, eof())

function session(options = {}): StreamSession {
  return new StreamSession(mysql, { serverPort: 3306, ...options })
}

function begun(version = mariadbVersion): StreamSession {
  return session().serverSays(greetingOf(version)).client(loginOf()).serverSays(accepted)
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
  const one = begun().client(query('SELECT * FROM items WHERE name = "secret"')).serverSays(selected)
  check(one, 'SELECT items')
  const [seen] = one.ended
  assert.deepEqual(seen!.attributes, {
    'db.system.name': 'mariadb',
    'db.namespace': 'shop',
    'db.operation.name': 'SELECT',
    'db.collection.name': 'items',
    'db.query.summary': 'SELECT items',
    'db.query.text': 'SELECT * FROM items WHERE name = ?',
    'server.address': '10.0.0.2',
    'network.peer.address': '10.0.0.2',
    'server.port': 3306,
    'network.peer.port': 3306,
  })
  assert.equal(seen!.kind, 3)
  assert.equal(seen!.signalType, 'sql')
  assert.equal(seen!.duration, 'db.client.operation.duration')
  assert.equal(seen!.dimensions['db.query.text'], undefined)
  assert.equal(seen!.dimensions['db.query.summary'], 'SELECT items')
  assert.deepEqual([seen!.startMs, seen!.responseMs, seen!.endMs], [4, 5, 5])
  assert.equal(seen!.responseBytes, selected.length)
})

test('the greeting tells MySQL from MariaDB', () => {
  const one = begun('8.4.3').client(query('SELECT 1 FROM t')).serverSays(selected)
  check(one, 'SELECT t')
  assert.equal(one.ended[0]!.attributes['db.system.name'], 'mysql')
})

test('an error is named by its number', () => {
  const one = begun()
    .client(query('SELECT * FROM nowhere'))
    .serverSays(packet(1, errorPayload(1146)))
  one
    .client(query('SELECT a FROM t'))
    .serverSays(packets('\x02', definition, definition, eof(), row, errorPayload(1317)))
  check(one, 'SELECT nowhere: 1146', 'SELECT t: 1317')
  const { attributes } = one.ended[0]!
  assert.equal(attributes['db.response.status_code'], '1146')
  assert.equal(attributes['error.type'], '1146')
  assert.ok(!JSON.stringify(one.ended).includes('secret'))
})

test('TLS and compression are let go', () => {
  const encrypted = packet(1, `${int32(usual | 0x800)}${int32(1 << 24)}\x2d${'\0'.repeat(23)}`)
  assert.ok(session().serverSays(greetingOf('8.4.3')).client(encrypted).refused)
  assert.ok(
    session()
      .serverSays(greetingOf('8.4.3'))
      .client(loginOf(usual | 0x20)).refused,
  )
  const declined = session()
    .serverSays(greetingOf('8.4.3', ~0x20))
    .client(loginOf(usual | 0x20))
    .serverSays(accepted)
  check(declined.client(query('SELECT 1')).serverSays(selected), 'SELECT')
})

test('inside TLS a connection begins with the login', () => {
  const one = session({ tls: true }).client(loginOf()).serverSays(accepted)
  check(one.client(query('SELECT a FROM t')).serverSays(selected), 'SELECT t')
})

test('passwords may be asked for again, and a login that fails is no operation', () => {
  const one = session().serverSays(greetingOf('8.4.3')).client(loginOf())
  one.serverSays(packet(2, '\xfecaching_sha2_password\0challenge')).client(packet(3, 'x'.repeat(32)))
  one.serverSays(packet(4, '\x01\x03') + packet(5, okPayload()))
  check(one.client(query('SELECT 1')).serverSays(selected), 'SELECT')
  check(
    session()
      .serverSays(greetingOf('8.4.3'))
      .client(loginOf())
      .serverSays(packet(2, errorPayload(1045))),
  )
  check(session().serverSays(packet(0, errorPayload(1040))))
})

test('results end as both forms of the protocol say', () => {
  const one = begun()
    .client(query('SELECT a FROM t'))
    .serverSays(packets('\x01', definition, row, row, lastOk()))
  one.client(query('SELECT a FROM u')).serverSays(packets('\x01', definition, lastOk()))
  one.client(query('SELECT a FROM v')).serverSays(packets('\x01', definition, eof(), eof()))
  // MariaDB leaves out the columns that it has sent before.
  one.client(query('SELECT a FROM w')).serverSays(packets('\x01\0', eof(), row, eof()))
  check(one, 'SELECT t', 'SELECT u', 'SELECT v', 'SELECT w')
})

test('several results are one operation', () => {
  const one = begun().client(query('SELECT 1; INSERT INTO t VALUES (1); CALL p()'))
  const parts = ['\x01', definition, eof(), row, eof(2 | moreResults), okPayload(2 | moreResults)]
  one.serverSays(packets(...parts, '\x01', definition, eof(), row, eof(2 | moreResults), okPayload()))
  one
    .client(query('SELECT 1; SELEC'))
    .serverSays(packets('\x01', definition, eof(), row, eof(2 | moreResults), errorPayload(1064)))
  check(one, 'SELECT; INSERT t; CALL p', 'SELECT: 1064')
})

test('prepared statements are told when they are prepared and each time they run', () => {
  const one = begun().client(prepare('SELECT a FROM t WHERE b = ?')).serverSays(prepared(7))
  one.client(execute(7)).serverSays(selected)
  one.client(packet(0, `\x18${int32(7)}\0\0long data`) + execute(7)).serverSays(selected)
  one
    .client(packet(0, `\x19${int32(7)}`))
    .client(execute(7))
    .serverSays(packet(1, errorPayload(1243)))
  one.client(prepare('SELECT bad')).serverSays(packet(1, errorPayload(1054)))
  check(one, 'PREPARE SELECT t', 'SELECT t', 'SELECT t', 'mariadb: 1243', 'PREPARE SELECT: 1054')
  assert.equal(one.ended[0]!.attributes['db.operation.name'], 'PREPARE')
  assert.equal(one.ended[1]!.attributes['db.query.text'], 'SELECT a FROM t WHERE b = ?')
})

test('a statement without parameters and columns is prepared by one packet', () => {
  const one = begun()
    .client(prepare('DELETE FROM t'))
    .serverSays(packet(1, `\0${int32(3)}\0\0\0\0\0\0\0`))
  check(one.client(execute(3)).serverSays(ok), 'PREPARE DELETE t', 'DELETE t')
})

test('MariaDB runs what was prepared last without waiting for its number', () => {
  const one = begun().client(prepare('INSERT INTO t VALUES (?)') + execute(0xffff_ffff))
  one.serverSays(packets(`\0${int32(9)}\0\0${int16(1)}\0\0\0`, definition)).serverSays(ok)
  check(one, 'PREPARE INSERT t', 'INSERT t')
})

test('rows of a cursor come when they are fetched', () => {
  const one = begun().client(prepare('SELECT a FROM t')).serverSays(prepared(1)).client(execute(1))
  one.serverSays(packets('\x01', definition, eof(0x42)))
  one
    .client(packet(0, `\x1c${int32(1)}${int32(10)}`))
    .serverSays(packets('\0\0\x011', '\0\0\x012', eof(0x82)))
  check(one.client(query('SELECT 1')).serverSays(selected), 'PREPARE SELECT t', 'SELECT t', 'SELECT')
})

test('commands that ask for no data are none, and the database that is used is known', () => {
  const one = begun().client(packet(0, '\x0e')).serverSays(ok) // PING
  one.client(packet(0, '\x09')).serverSays(packet(1, 'Uptime: 5')) // STATISTICS
  one.client(packet(0, '\x1f')).serverSays(ok).client(packet(0, '\x1b\0\0')).serverSays(packet(1, eof()))
  one.client(packet(0, '\x04items\0')).serverSays(packets(definition, definition, eof())) // FIELD_LIST
  one.client(packet(0, '\x02other')).serverSays(ok)
  one.client(query('SELECT a FROM t')).serverSays(selected)
  one.client(query('USE third')).serverSays(ok).client(query('SELECT a FROM t')).serverSays(selected)
  one.client(packet(0, '\x02nowhere')).serverSays(packet(1, errorPayload(1049)))
  one.client(packet(0, '\x11shop\0\x03abcfourth\0\x2d\0mysql_native_password\0'))
  one
    .serverSays(packet(1, '\xfemysql_native_password\0challenge'))
    .client(packet(2, 'x'.repeat(20)))
    .serverSays(packet(3, okPayload()))
  one.client(query('SELECT a FROM t')).serverSays(selected).client(packet(0, '\x01'))
  check(one, 'USE other', 'SELECT t', 'USE third', 'SELECT t', 'USE nowhere: 1049', 'SELECT t')
  const names = one.ended.map(({ attributes }) => attributes['db.namespace'])
  assert.deepEqual(names, ['shop', 'other', 'other', 'third', 'third', 'fourth'])
})

test('a file of the client belongs to its statement', () => {
  const one = begun()
    .client(query("LOAD DATA LOCAL INFILE '/x' INTO TABLE t"))
    .serverSays(packet(1, '\xfb/x'))
  one
    .client(packet(2, 'a\tb\n') + packet(3, 'c\td\n'))
    .client(packet(4, ''))
    .serverSays(packet(5, okPayload()))
  check(one.client(query('SELECT 1')).serverSays(selected), 'LOAD t', 'SELECT')
  const long = begun()
    .client(query("LOAD DATA LOCAL INFILE '/x' INTO TABLE t"))
    .serverSays(packet(1, '\xfb/x'))
  long.capture = 300
  for (let i = 0; i < 5; i++)
    long.client(packet(2 + 2 * i, 'a\tb\n'.repeat(1_000)) + packet(3 + 2 * i, 'c\td\n'.repeat(1_000)))
  long.client(packet(12, '')).serverSays(packet(13, okPayload()))
  check(long.client(query('SELECT 1')).serverSays(selected), 'LOAD t', 'SELECT')
})

test('packets of 16 MiB go on in the next one', () => {
  const size = 0xff_ffff
  const long = `SELECT a FROM t WHERE b = '${'\xff'.repeat(size)}`
  const one = begun()
  one.capture = 16_384
  one.client(packet(0, `\x03${long}`.slice(0, size)) + packet(1, `${`\x03${long}`.slice(size)}'`))
  const part = packet(4, `\xfe${'x'.repeat(size - 1)}`)
  one
    .serverSays(`${packets('\x01', definition, eof())}${part}`)
    .serverSays(packet(5, '\xfe\0\0\0\0') + packet(6, eof()))
  check(one.client(query('SELECT 1')).serverSays(selected), 'SELECT t', 'SELECT')
})

test('attributes of a query are passed over', () => {
  const one = session()
    .serverSays(greetingOf('8.4.3'))
    .client(loginOf(usual | 0x800_0000))
    .serverSays(accepted)
  one.client(query('\0\x01SELECT a FROM t')).serverSays(selected)
  const attributes = `\x02\x01\x02\x01${int16(3)}\x02id${int16(0xfe)}\x04name${int32(42)}`
  one.client(query(`${attributes}SELECT a FROM u`)).serverSays(selected)
  check(one, 'SELECT t', 'SELECT u')
  const joined = session({ joined: true }).client(query('\0\x01SELECT a FROM t')).serverSays(selected)
  check(joined, 'SELECT t')
})

test('MariaDB tells of its progress in between', () => {
  const progress = '\xff\xff\xff\x01\x01\x01\x10\x27\x00\x05stage'
  const one = begun()
    .client(query('ALTER TABLE t ADD a int'))
    .serverSays(packets(progress, progress, okPayload()))
  check(one, 'ALTER TABLE t')
})

test('backslashes in literals are read as the server is set', () => {
  const sql = String.raw`SELECT 'a\', secret, 'b'`
  const one = begun()
    .client(query(sql))
    .serverSays(packet(1, okPayload(0x202)))
    .client(query(sql))
    .serverSays(ok)
  assert.deepEqual(
    one.ended.map(({ attributes }) => attributes['db.query.text']),
    ['SELECT ??', 'SELECT ?, secret, ?'],
  )
})

test('where a backslash may be half a character, nothing behind it is told', () => {
  const one = session().serverSays(greetingOf('8.4.3')).client(loginOf(usual, 28)).serverSays(accepted)
  one.client(query("SELECT '\xbf\\', 'secret', a")).serverSays(ok)
  assert.equal(one.ended[0]!.attributes['db.query.text'], 'SELECT ?')
})

test('a connection that is older than its observation is followed from its next command on', () => {
  const one = session({ joined: true }).serverSays('in the midst of a row').client(query('SELECT a FROM t'))
  one.serverSays(selected).client(execute(5)).serverSays(selected)
  check(one, 'SELECT t', 'mysql')
  const other = session({ joined: true }).client(packet(0, '\x0e')).serverSays(ok)
  check(other.client(query('SELECT a FROM t')).serverSays(packet(1, okPayload())), 'SELECT t')
})

test('a client that reads heads by calls of their own is followed', () => {
  const one = session({ joined: true }).client(query('SELECT a FROM t'))
  const calls = (response: string): void => {
    for (let at = 0; at < response.length; ) {
      const length = response.charCodeAt(at) + 256 * response.charCodeAt(at + 1)
      one.serverSays(response.slice(at, at + 4)).serverSays(response.slice(at + 4, at + 4 + length))
      at += 4 + length
    }
  }
  calls(selected)
  one.client(query('SELECT a FROM u'))
  calls(selected)
  check(one, 'SELECT t', 'SELECT u')
})

test('the server of an older connection is what it said to another one', () => {
  const shared = mysql.create({ route: () => '' })
  const unit = { ...mysql, create: () => shared }
  new StreamSession(unit, { serverPort: 3306 }).serverSays(greetingOf(mariadbVersion))
  const late = new StreamSession(unit, { serverPort: 3306, joined: true })
  late.client(query('SELECT a FROM t')).serverSays(selected)
  const elsewhere = new StreamSession(unit, { serverPort: 3307, joined: true })
  elsewhere.client(query('SELECT a FROM t')).serverSays(selected)
  const systems = [late, elsewhere].map(({ ended }) => ended[0]!.attributes['db.system.name'])
  assert.deepEqual(systems, ['mariadb', 'mysql'])
})

test('a response whose midst was not captured ends its operation', () => {
  const rows = Array.from({ length: 200 }, () => '\x1asome text of a row of a table')
  const one = begun()
  one.capture = 400
  for (const last of [eof(), lastOk(), errorPayload(1317)]) {
    one.client(query('SELECT a FROM t')).serverSays(packets('\x01', definition, eof(), ...rows, last))
  }
  check(one, 'SELECT t', 'SELECT t', 'SELECT t')
  assert.deepEqual(
    one.ended.map(({ endMs }) => endMs),
    [5, 7, 9],
  )
})

test('the end of a response is found where calls cut it', () => {
  const rows = Array.from({ length: 200 }, () => '\x1asome text of a row of a table')
  for (const last of [eof(), lastOk()])
    for (let cut = 1; cut < 4 + last.length; cut++) {
      const response = packets('\x01', definition, eof(), ...rows, last)
      const one = begun()
      one.capture = 400
      one
        .client(query('SELECT a FROM t'))
        .serverSays(response.slice(0, -cut))
        .serverSays(response.slice(-cut))
      check(one, 'SELECT t')
    }
})

test('the next command ends the one whose response was not seen', () => {
  const one = begun()
    .client(query('SELECT a FROM t'))
    .serverSays(packets('\x01', definition))
    .lose(false, 5_000)
  one.serverSays('rows that go on').client(query('SELECT a FROM u')).serverSays(selected)
  check(one, 'SELECT t', 'SELECT u')
  assert.equal(one.ended[0]!.endMs, 6)
})

test('exchanges that were only counted do not harm those behind them', () => {
  const one = begun().client(query('SELECT a FROM t')).serverSays(selected)
  for (const response of [selected, ok, packet(1, errorPayload(1146))]) {
    one.lose(true, 100).lose(false, 2_000)
    one.client(query('SELECT a FROM u')).serverSays(response).client(query('SELECT a FROM v')).serverSays(ok)
  }
  const names = ['SELECT u', 'SELECT v', 'SELECT u', 'SELECT v', 'SELECT u: 1146', 'SELECT v']
  check(one, 'SELECT t', ...names)
  assert.deepEqual(
    one.ended.map(({ startMs, endMs }) => endMs - startMs),
    [1, 1, 1, 1, 1, 1, 1],
  )
})

test('what is under way when the connection ends has broken off', () => {
  const one = begun().client(query('SELECT a FROM t')).close(110)
  assert.deepEqual(outcomes(one), ['SELECT t: timeout'])
  assert.equal(one.streams.inFlight, 0)
})

test('another protocol is refused and tells nothing', () => {
  const one = session().serverSays('220 mail ESMTP\r\n').client('EHLO a\r\n')
  assert.ok(one.refused)
  const two = begun().client(query('SELECT 1')).serverSays('HTTP/1.1 200 OK\r\n\r\n')
  two.client('GET / HTTP/1.1\r\n\r\n').serverSays('HTTP/1.1 200 OK\r\n\r\n').close()
  const joined = session({ joined: true }).client(query('SELECT 1'))
  for (let i = 0; i < 300; i++) joined.serverSays('something else').client(query('SELECT 1'))
  assert.ok(joined.refused)
  for (const { ended, streams } of [one, joined]) {
    assert.equal(ended.length, 0)
    assert.equal(streams.inFlight, 0)
  }
  assert.equal(two.streams.inFlight, 0)
})

test('a server side is let go', () => {
  assert.ok(session({ server: true }).serverSays(greetingOf('8.4.3')).refused)
})

const conversation = (
  [
    ['server', greetingOf(mariadbVersion)],
    ['client', loginOf()],
    ['server', accepted],
    ['client', query('SELECT a FROM t')],
    ['server', selected],
    ['client', prepare('SELECT a FROM u WHERE b = ?')],
    ['server', prepared(1)],
    ['client', execute(1)],
    ['server', packets('\x01', definition, '\0\0\x011', lastOk())],
    ['client', query('SELECT 1; SELEC')],
    ['server', packets('\x01', definition, eof(), row, eof(2 | moreResults), errorPayload(1064))],
    ['client', query("LOAD DATA LOCAL INFILE '/x' INTO TABLE t")],
    ['server', packet(1, '\xfb/x')],
    ['client', packet(2, 'a\tb\n') + packet(3, '')],
    ['server', packet(4, okPayload())],
    ['client', packet(0, '\x01')],
  ] as const
).map(([from, text]): Call => [from, Buffer.from(text, 'latin1')])

test('the same comes of the bytes in whatever pieces they come', () => {
  const whole = replay(mysql, conversation)
  assert.equal(whole.ended.length, 5)
  assert.deepEqual(withoutTimes(replay(mysql, byteByByte(conversation)).ended), withoutTimes(whole.ended))
})

test('nothing is left of a conversation that ends at any byte', () => {
  checkTruncations(mysql, conversation)
})

test('bytes at random and messages that were changed never make it throw', () => {
  checkHostileInputs(mysql, conversation)
})

test('the kernel side recognises its openings', () => {
  const openings: [Opening, string][] = [
    [{ bytes: greetingOf(mariadbVersion) }, 'server'],
    [{ bytes: greetingOf('8.4.3') }, 'server'],
    [{ bytes: loginOf() }, 'client'],
    [{ bytes: packet(2, loginOf().slice(4)) }, 'client'],
    [{ bytes: query('SELECT a FROM t'), joined: true }, 'client'],
    [{ bytes: query('\0\x01SELECT a FROM t'), joined: true }, 'client'],
    [{ bytes: query(`SELECT ${'a, '.repeat(100)}`).slice(0, 64), length: 100, joined: true }, 'client'],
    [{ bytes: query('(SELECT 1)'), joined: true }, 'client'],
    [{ bytes: prepare('INSERT INTO t VALUES (?)'), joined: true }, 'client'],
    [{ bytes: execute(258), joined: true }, 'client'],
    [{ bytes: packet(0, '\x0e'), joined: true }, 'client'],
    [{ bytes: query('SELECT a FROM t') }, 'nobody'],
    [{ bytes: selected, joined: true }, 'nobody'],
  ]
  const found = classify(openings.map(([opening]) => opening))
  for (const [at, [opening, from]] of openings.entries())
    assert.deepEqual(
      found[at],
      { protocol: from === 'nobody' ? 'none' : 'mysql', from },
      JSON.stringify(opening.bytes),
    )
})

test('the kernel side takes nothing else for it', () => {
  const others = [
    'GET / HTTP/1.1\r\nHost: a\r\n\r\n',
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03',
    '220 mail ESMTP\r\n',
    'SSH-2.0-OpenSSH_9.2p1\r\n',
    '*1\r\n$4\r\nPING\r\n',
    'PING\r\n',
    'AMQP\0\0\x09\x01',
    '\x10\x0c\0\x04MQTT\x04\x02\0\x3c\0\0',
    'get a\r\n',
    'Q\0\0\0\x0dSELECT 1\0',
    '\0\0\0\x08\x04\xd2\x16\x2f',
    '\0\0\0\x14\0\x12\0\0\0\0\0\x01\0\x04test\0',
    '\x3a\0\0\0\x01\0\0\0\0\0\0\0\xdd\x07\0\0',
    '\0\0\x0c\x04\0\0\0\0\0\0\x03\0\0\0\x64',
  ]
  const openings = others.flatMap(bytes => [
    { bytes, joined: false },
    { bytes, joined: true },
  ])
  const random = fc.sample(fc.uint8Array({ minLength: 1, maxLength: 64 }), 2_000)
  for (const bytes of random) openings.push({ bytes: Buffer.from(bytes).toString('latin1'), joined: true })
  for (const [at, { protocol }] of classify(openings).entries())
    assert.notEqual(protocol, 'mysql', JSON.stringify(openings[at]))
})

test('behind exchanges that were passed over, the first response is read and nothing old is told', () => {
  const one = begun().client(query('SELECT a FROM t')).serverSays(selected)
  for (let i = 0; i < 2; i++) {
    one.lose(true, 70).lose(false, 500)
    one.client(query('SELECT b FROM u')).serverSays(packet(1, errorPayload(1146)))
  }
  check(one, 'SELECT t', 'SELECT u: 1146', 'SELECT u: 1146')
  assert.deepEqual(
    one.ended.map(({ attributes }) => attributes['db.namespace']),
    ['shop', undefined, undefined],
  )
})

test('the statement that was prepared last is not known where requests are missing', () => {
  const one = begun().client(prepare('SELECT a FROM t WHERE id = ?')).serverSays(prepared(1))
  one.lose(true, 70).lose(false, 500)
  one.client(execute(0xffff_ffff)).serverSays(selected)
  check(one, 'PREPARE SELECT t', 'mariadb')
})

test('attributes of a query are no text of it, on a connection that is older than the agent, too', () => {
  const one = session({ joined: true })
  one.client(query('SELECT a FROM t')).serverSays(selected)
  one.client(query('\x01\x01\0\x01\xfe\0\x05token\x06secretSELECT b FROM u')).serverSays(selected)
  one.client(query('\0\x01SELECT c FROM v')).serverSays(selected)
  check(one, 'SELECT t', 'SELECT u', 'SELECT v')
  assert.doesNotMatch(JSON.stringify(one.ended), /secret|token/)
})

test('no operation ends before it began, where responses are missing', () => {
  const one = begun().client(query('SELECT a FROM t')).lose(false, 500).serverSays('\x7f'.repeat(20))
  const second = query('SELECT b FROM t')
  one.client(second.slice(0, 7)).serverSays('\x7f'.repeat(20))
  one.client(second.slice(7) + query('SELECT c FROM t')).client(query('SELECT d FROM t'))
  assert.equal(one.ended.length, 3)
  for (const { startMs, endMs } of one.ended) assert.ok(endMs >= startMs, `${startMs} to ${endMs}`)
})
