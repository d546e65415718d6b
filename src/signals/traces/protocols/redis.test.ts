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
import { type SeenOperation, StreamSession } from '../../../../test/helpers/stream-session.ts'
import { SpanKind } from '../../../foundation/model/span.ts'
import { redis } from './redis.ts'

const pushed = ['subscribe', 'psubscribe', 'unsubscribe', 'punsubscribe', 'message']

/** A command as a client sends it. */
function command(...words: string[]): string {
  return `*${words.length}\r\n${words.map(word => `$${word.length}\r\n${word}\r\n`).join('')}`
}

/** A message of a channel, or what confirms a subscription: an array, or in RESP3 a push. */
function push(type: '*' | '>', ...parts: (string | number)[]): string {
  const texts = parts.map(part =>
    typeof part === 'number' ? `:${part}\r\n` : `$${part.length}\r\n${part}\r\n`,
  )
  assert.ok(pushed.includes(String(parts[0])))
  return `${type}${parts.length}\r\n${texts.join('')}`
}

function calls(...texts: readonly (readonly ['client' | 'server', string])[]): Call[] {
  return texts.map(([from, text]): Call => [from, Buffer.from(text, 'latin1')])
}

/** redis-server 7.0 with redis-cli and ioredis 5, in RESP2 and RESP3. */
const recorded = calls(
  ['client', `${command('hello', '3')}${command('client', 'SETINFO', 'LIB-NAME', 'ioredis')}`],
  [
    'server',
    "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:13\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n-ERR unknown subcommand 'SETINFO'. Try CLIENT HELP.\r\n",
  ],
  ['client', command('set', 'a', '1')],
  ['server', '+OK\r\n'],
  ['client', command('get', 'a')],
  ['server', '$1\r\n1\r\n'],
  ['client', command('lpush', 'a', '1')],
  ['server', '-WRONGTYPE Operation against a key holding the wrong kind of value\r\n'],
  ['client', command('SELECT', '2')],
  ['server', '+OK\r\n'],
  ['client', `${command('multi')}${command('set', 'x', 'y')}${command('incr', 'x')}${command('exec')}`],
  ['server', '+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n-ERR value is not an integer or out of range\r\n'],
  ['client', command('zscore', 'z', 'm')],
  ['server', ',1.5\r\n'],
  ['client', command('get', 'nope')],
  ['server', '_\r\n'],
  ['client', command('subscribe', 'a', 'b')],
  ['server', push('>', 'subscribe', 'a', 1) + push('>', 'subscribe', 'b', 2)],
  ['server', push('>', 'message', 'a', 'x')],
  ['client', command('ping')],
  ['server', '+PONG\r\n'],
  ['client', command('unsubscribe')],
  ['server', push('>', 'unsubscribe', 'a', 1) + push('>', 'unsubscribe', 'b', 0)],
  ['client', command('info')],
  ['server', '=17\r\ntxt:# Server\r\nx:1\r\n'],
)

/** Names, errors and durations in milliseconds. */
function told(operations: readonly SeenOperation[]): string[] {
  return operations.map(({ name, error, startMs, endMs }) =>
    [name, error, endMs - startMs].filter(part => part !== '').join(' '),
  )
}

function names({ ended }: StreamSession): string[] {
  return ended.map(({ name, error }) => (error === '' ? name : `${name} ${error}`))
}

/** What becomes of one command with this reply. */
function answered(reply: string, ...words: string[]): StreamSession {
  return new StreamSession(redis).client(command(...words)).serverSays(reply)
}

test('a command and its reply are told by the conventions, without its arguments', () => {
  const session = new StreamSession(redis, { serverPort: 6379 })
  session.client(command('SET', 'user:4711', 'secret')).serverSays('+OK\r\n')
  const [operation] = session.ended
  assert.deepEqual(operation, {
    name: 'SET',
    error: '',
    kind: SpanKind.client,
    signalType: 'redis',
    attributes: {
      'db.system.name': 'redis',
      'db.operation.name': 'SET',
      'db.namespace': '0',
      'db.query.text': 'SET ? ?',
      'server.address': '10.0.0.2',
      'network.peer.address': '10.0.0.2',
      'server.port': 6379,
      'network.peer.port': 6379,
    },
    dimensions: {
      'db.system.name': 'redis',
      'db.operation.name': 'SET',
      'db.namespace': '0',
      'server.address': '10.0.0.2',
      'server.port': 6379,
    },
    duration: 'db.client.operation.duration',
    startMs: 1,
    responseMs: 2,
    endMs: 2,
    requestBytes: 40,
    responseBytes: 5,
    sequence: 1000,
    telemetry: false,
    context: '',
    state: '',
  })
  assert.equal(session.asked, 1)
})

test('a recorded conversation has one operation for each command', () => {
  const session = replay(redis, recorded)
  assert.deepEqual(names(session), [
    'HELLO',
    'CLIENT ERR',
    'SET',
    'GET',
    'LPUSH WRONGTYPE',
    'SELECT',
    'MULTI',
    'SET',
    'INCR',
    'EXEC',
    'ZSCORE',
    'GET',
    'SUBSCRIBE',
    'PING',
    'UNSUBSCRIBE',
    'INFO',
  ])
  assert.equal(session.streams.inFlight, 0)
})

test('how bytes are cut into calls changes nothing', () => {
  const whole = replay(redis, recorded)
  assert.deepEqual(withoutTimes(replay(redis, byteByByte(recorded)).ended), withoutTimes(whole.ended))
})

test('the beginning of a conversation tells no more than the whole', () => {
  checkTruncations(redis, recorded)
})

test('no bytes make it throw or keep anything', () => {
  checkHostileInputs(redis, recorded)
})

test('a hundred commands in one write are a hundred operations in their order, however they are cut', () => {
  const count = 100
  const asked = Array.from({ length: count }, (_, i) => command(i % 2 ? 'GET' : 'INCR', `key${i}`)).join('')
  const replies = Array.from({ length: count }, (_, i) =>
    i % 2 ? `$${`${i}`.length}\r\n${i}\r\n` : `:${i}\r\n`,
  )
  const want = Array.from({ length: count }, (_, i) => (i % 2 ? 'GET' : 'INCR'))
  assert.deepEqual(names(replay(redis, calls(['client', asked], ['server', replies.join('')]))), want)
  for (let cut = 1; cut < asked.length; cut += 37) {
    const session = new StreamSession(redis).client(asked.slice(0, cut)).client(asked.slice(cut))
    for (const reply of replies) session.serverSays(reply)
    assert.deepEqual(names(session), want)
    assert.equal(session.ended[99]!.endMs - session.ended[0]!.endMs, 99)
  }
})

test('each kind of reply ends its command, and only that', () => {
  const replies = [
    '+OK\r\n',
    ':-5\r\n',
    '$-1\r\n',
    '$0\r\n\r\n',
    '$5\r\n+OK\r\n\r\n',
    '*-1\r\n',
    '*0\r\n',
    '*2\r\n*2\r\n:1\r\n*0\r\n$2\r\nab\r\n',
    '_\r\n',
    '#t\r\n',
    ',inf\r\n',
    '(3492890328409238509324850943850943825024385\r\n',
    '=7\r\ntxt:abc\r\n',
    '%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n-ERR inside\r\n',
    '~2\r\n+a\r\n+b\r\n',
    '|1\r\n+ttl\r\n:5\r\n+OK\r\n',
    '*2\r\n|1\r\n+ttl\r\n:5\r\n:1\r\n:2\r\n',
    '$?\r\n;4\r\nHell\r\n;1\r\no\r\n;0\r\n',
    '*?\r\n:1\r\n%?\r\n+a\r\n:2\r\n.\r\n*1\r\n:3\r\n.\r\n',
  ]
  for (const reply of replies) {
    const conversation = calls(['client', command('A') + command('B')], ['server', `${reply}+OK\r\n`])
    for (const session of [replay(redis, conversation), replay(redis, byteByByte(conversation))]) {
      assert.deepEqual(names(session), ['A', 'B'], reply)
      assert.equal(session.ended[1]!.responseBytes, 5, reply)
    }
  }
})

test('an error has the word that it begins with, and none that says more', () => {
  const check = (reply: string, want: string) => {
    const { error, attributes, dimensions } = answered(reply, 'GET', 'a').ended[0]!
    assert.deepEqual(
      [error, attributes['db.response.status_code'], dimensions['error.type']],
      [want, want, want],
    )
  }
  check('-ERR unknown command\r\n', 'ERR')
  check('-MOVED 3999 127.0.0.1:6381\r\n', 'MOVED')
  check('-ASK 3999 127.0.0.1:6381\r\n', 'ASK')
  check('-NOAUTH\r\n', 'NOAUTH')
  check('!21\r\nSYNTAX invalid syntax\r\n', 'SYNTAX')
  check('-user 4711 is not welcome\r\n', '_OTHER')
  check(`-${'A'.repeat(100)}\r\n`, '_OTHER')
})

test('the text has a mark for each argument, and no words but those of the language', () => {
  const check = (want: string, ...words: string[]) => {
    const { name, attributes } = answered('+OK\r\n', ...words).ended[0]!
    assert.deepEqual([name, attributes['db.query.text']], [want.split(' ')[0], want])
  }
  check('PING', 'ping')
  check('AUTH ? ?', 'AUTH', 'me', 'geheim')
  check('HELLO ? ? ? ?', 'HELLO', '3', 'AUTH', 'me', 'geheim')
  check('CLIENT SETINFO ? ?', 'client', 'setinfo', 'lib-name', 'x')
  check('CONFIG SET ? ?', 'config', 'set', 'requirepass', 'geheim')
  check('CONFIG ?', 'config', 'key with spaces')
  check('JSON.SET ? ? ?', 'json.set', 'a', '$', '1')
  check('MSET ? ? ? ? ? ? ? ?', 'MSET', ...'12345678')
  check('MSET ? ? ? ? ? ? ? ? …', 'MSET', ...'123456789')
  check('_OTHER ?', 'no command', 'a')
  check('_OTHER', 'x'.repeat(33))
})

test('the database is the one that was selected last', () => {
  const session = new StreamSession(redis)
  session
    .client(command('GET', 'a') + command('SELECT', '3') + command('GET', 'a'))
    .serverSays('_\r\n+OK\r\n_\r\n')
  session.client(command('SELECT', '99')).serverSays('-ERR DB index is out of range\r\n')
  session.client(command('GET', 'a')).serverSays('_\r\n')
  session.client(command('RESET') + command('GET', 'a')).serverSays('+RESET\r\n_\r\n')
  assert.deepEqual(
    session.ended.map(({ attributes }) => attributes['db.namespace']),
    ['0', '3', '3', '99', '3', '0', '0'],
  )
})

test('messages of channels are nobody’s replies, in RESP2 and RESP3', () => {
  for (const type of ['*', '>'] as const) {
    const session = new StreamSession(redis).client(command('SUBSCRIBE', 'a', 'b'))
    session.serverSays(push(type, 'subscribe', 'a', 1))
    assert.equal(session.ended.length, 0)
    session.serverSays(push(type, 'subscribe', 'b', 2) + push(type, 'message', 'a', 'x'))
    session.client(command('PING')).serverSays(push(type, 'message', 'a', 'x'))
    session.serverSays(type === '*' ? '*2\r\n$4\r\npong\r\n$0\r\n\r\n' : '+PONG\r\n')
    session.client(command('UNSUBSCRIBE')).serverSays(push(type, 'unsubscribe', 'b', 1))
    session.serverSays(push(type, 'unsubscribe', 'a', 0))
    session.client(command('LRANGE', 'l', '0', '-1')).serverSays('*1\r\n$7\r\nmessage\r\n')
    assert.deepEqual(told(session.ended), ['SUBSCRIBE 2', 'PING 2', 'UNSUBSCRIBE 1', 'LRANGE 1'])
    assert.equal(session.streams.inFlight, 0)
  }
})

test('what MONITOR shows is nobody’s reply', () => {
  const session = new StreamSession(redis).client(command('MONITOR')).serverSays('+OK\r\n')
  session.serverSays('+1339518083.107412 [0 127.0.0.1:60866] "keys" "*"\r\n')
  session.client(command('PING')).serverSays('+1339518084.1 [0 127.0.0.1:60866] "PING"\r\n+PONG\r\n')
  assert.deepEqual(names(session), ['MONITOR', 'PING'])
})

test('a replica’s connection is left alone when it is one', () => {
  const session = answered('+FULLRESYNC 8de1787ba490483314a4d30f1c628bc5025eb761 0\r\n', 'PSYNC', '?', '-1')
  assert.deepEqual(names(session), ['PSYNC'])
  assert.equal(session.refused, true)
})

test('commands that get no reply end when they are asked', () => {
  const session = new StreamSession(redis)
  session.client(command('CLIENT', 'REPLY', 'OFF') + command('SET', 'a', '1'))
  assert.deepEqual(names(session), ['CLIENT', 'SET'])
  session.client(command('CLIENT', 'REPLY', 'ON')).serverSays('+OK\r\n')
  session.client(command('CLIENT', 'REPLY', 'SKIP') + command('INCR', 'a') + command('GET', 'a'))
  session.serverSays('$1\r\n2\r\n')
  assert.deepEqual(names(session), ['CLIENT', 'SET', 'CLIENT', 'CLIENT', 'INCR', 'GET'])
  assert.deepEqual(told(session.ended.slice(4)), ['INCR 0', 'GET 1'])
})

test('commands are typed in lines, too', () => {
  const session = new StreamSession(redis).client('PING\r\n').serverSays('+PONG\r\n')
  session.client('\r\nset a "b c"\nget a\r\n').serverSays('+OK\r\n$1\r\nb\r\n')
  assert.deepEqual(names(session), ['PING', 'SET', 'GET'])
})

test('what was not answered when the connection ended failed by how it ended', () => {
  const check = (errno: number, want: string) => {
    const session = new StreamSession(redis).client(command('BLPOP', 'q', '0')).close(errno)
    assert.deepEqual(names(session), [`BLPOP ${want}`])
    assert.equal(session.ended[0]!.dimensions['error.type'], want)
  }
  check(0, 'connection_closed')
  check(104, 'connection_reset')
  check(32, 'broken_pipe')
  check(110, 'timeout')
  check(5, '_OTHER')
})

test('a line that nobody answered is not taken for a command', () => {
  assert.deepEqual(names(new StreamSession(redis).client('hello there\r\n').close()), [])
})

test('a large value is passed over, and its operation ends with its last byte', () => {
  const session = new StreamSession(redis)
  session.capture = 200
  const value = `$100000\r\n${'x'.repeat(100_000)}\r\n`
  session.client(`*3\r\n$3\r\nSET\r\n$1\r\na\r\n${value}`).serverSays('+OK\r\n')
  session.client(command('GET', 'a')).serverSays(value.slice(0, 60_000)).serverSays(value.slice(60_000))
  session.client(command('GET', 'b')).serverSays('$-1\r\n')
  assert.deepEqual(told(session.ended), ['SET 1', 'GET 2', 'GET 1'])
  assert.deepEqual(
    session.ended.map(({ requestBytes, responseBytes }) => [requestBytes, responseBytes]),
    [
      [100_031, 5],
      [20, 100_011],
      [20, 5],
    ],
  )
})

test('a reply of many values, whose middle was not seen, ends when the client asks again', () => {
  const session = new StreamSession(redis)
  session.capture = 200
  session.client(command('LRANGE', 'l', '0', '-1')).serverSays(`*1000\r\n${'$3\r\nabc\r\n'.repeat(1_000)}`)
  session.client(command('GET', 'a')).serverSays('$1\r\n1\r\n')
  session
    .client(command('HGETALL', 'h'))
    .serverSays(`*1000\r\n${'$3\r\nabc\r\n'.repeat(1_000)}`)
    .close()
  assert.deepEqual(told(session.ended), ['LRANGE 1', 'GET 1', 'HGETALL 1'])
})

test('a command of many arguments, whose middle was not seen, is one operation', () => {
  const session = new StreamSession(redis)
  session.capture = 200
  for (let i = 0; i < 3; i++)
    session.client(command('SADD', 's', ...Array(1_000).fill('m'))).serverSays(':1\r\n')
  session.client(command('GET', 'a')).serverSays('$1\r\n1\r\n')
  assert.deepEqual(told(session.ended), ['SADD 1', 'SADD 1', 'SADD 1', 'GET 1'])
})

test('after a pipeline that was not seen as a whole, commands and replies come together again', () => {
  const session = new StreamSession(redis)
  session.capture = 200
  session.client(command('INCR', 'a').repeat(50)).serverSays(':1\r\n'.repeat(50))
  const seen = session.ended.length
  assert.ok(seen >= 5)
  assert.equal(seen + session.lost, 50)
  session.client(command('GET', 'a')).serverSays('-ERR x\r\n')
  session.client(command('SET', 'a', 'b')).serverSays('+OK\r\n')
  assert.deepEqual(names(session).slice(seen), ['GET ERR', 'SET'])
})

test('bytes that were lost cost only what was in them', () => {
  const session = new StreamSession(redis)
  session.client(command('PING')).serverSays('+PONG\r\n')
  session.client(command('GET', 'a')).lose(false, 7)
  session.client(command('GET', 'b')).serverSays('_\r\n')
  session.lose(true, 20).serverSays('$1\r\nc\r\n')
  session.client(command('GET', 'd')).serverSays('-ERR d\r\n')
  session.client(command('GET', 'e')).serverSays('_\r\n').close()
  assert.deepEqual(names(session), ['PING', 'GET', 'GET', 'GET ERR', 'GET'])
})

test('a connection that is older than the agent is joined at a command', () => {
  const session = new StreamSession(redis, { joined: true })
  session.serverSays('bc\r\n+OK\r\n').client('bc\r\n').client(command('GET', 'a')).serverSays('$1\r\n1\r\n')
  session.client(command('GET', 'b')).serverSays('-ERR no\r\n')
  assert.deepEqual(names(session), ['GET', 'GET ERR'])
  assert.equal('db.namespace' in session.ended[0]!.attributes, false)
})

test('a connection that speaks something else is refused and tells nothing', () => {
  const session = new StreamSession(redis)
  for (let i = 0; i < 5; i++)
    session.client(command('GET', 'a')).serverSays('HTTP/1.1 400 Bad Request\r\n\r\n')
  assert.equal(session.refused, true)
  assert.equal(session.streams.inFlight, 0)
  assert.deepEqual(names(session.close()), [])
})

test('commands beyond what is kept are counted as lost, and those behind them are right again', () => {
  const session = new StreamSession(redis)
  session.client(command('INCR', 'a').repeat(3_000)).serverSays(':1\r\n'.repeat(3_000))
  assert.equal(session.ended.length, 2_048)
  assert.equal(session.lost, 952)
  session.client(command('GET', 'a')).serverSays('-ERR x\r\n')
  assert.deepEqual(names(session).slice(2_048), ['GET ERR'])
})

test('replies are counted where there was no room for their commands', () => {
  const session = new StreamSession(redis, { maxBytes: 4_800 }) // two operations'
  session.client(command('GET', 'a') + command('SET', 'a', 'b') + command('DEL', 'a'))
  session.serverSays('_\r\n+OK\r\n:1\r\n')
  session.client(command('TTL', 'a')).serverSays('-ERR x\r\n')
  assert.deepEqual(names(session), ['GET', 'SET', 'TTL ERR'])
})

test('first bytes of clients are recognised', () => {
  const own: Opening[] = [
    { bytes: command('GET', 'a') },
    { bytes: command('CLIENT', 'SETINFO', 'LIB-NAME', 'redis-py') },
    { bytes: command('HELLO', '3') },
    { bytes: command('JSON.ARRINSERT', 'a') },
    { bytes: command('MSET', ...Array(1_500).fill('x')) },
    { bytes: command('GET', 'a'), joined: true },
    { bytes: command('EXPIRE', 'a', '1'), joined: true },
    { bytes: command('FCALL', 'f'), joined: true, peerPort: 6379 },
    { bytes: 'PING\r\n' },
    { bytes: 'ping\r\n', joined: true, peerPort: 6379 },
    { bytes: '*2\r\n', peerPort: 6379 },
  ]
  for (const [i, found] of classify(own).entries())
    assert.deepEqual(found, { protocol: 'redis', from: 'client' }, String(own[i]!.bytes))
})

test('replies in the midst of a connection, which look like commands, are not taken for some', () => {
  const replies: Opening[] = [
    { bytes: '*2\r\n$5\r\nhello\r\n$1\r\na\r\n', joined: true, received: true },
    { bytes: '*1\r\n$3\r\nGET\r\n', joined: true, received: true, peerPort: 6379 },
    { bytes: '*1\r\n$3\r\nabc\r\n', joined: true, received: true, peerPort: 6379 },
    { bytes: '*3\r\n:1\r\n:2\r\n:3\r\n' },
    { bytes: '* OK IMAP4rev1 ready\r\n' },
  ]
  for (const { protocol } of classify(replies)) assert.notEqual(protocol, 'redis')
})

test('other protocols are not taken for it', () => {
  checkForeignOpenings('redis')
})

/** One exchange, others that the capture passed over, and the next one. */
function afterGap(from: StreamSession): StreamSession {
  return from
    .lose(true, 200)
    .lose(false, 300)
    .client(command('LPUSH', 'a', '1'))
    .serverSays('-WRONGTYPE Operation against a key\r\n')
}

test('behind exchanges that were passed over, the first response is read', () => {
  const session = new StreamSession(redis).client(command('SELECT', '2')).serverSays('+OK\r\n')
  afterGap(afterGap(session))
  const outcomes = session.ended.map(({ name, error }) => `${name} ${error}`.trim())
  assert.deepEqual(outcomes, ['SELECT', 'LPUSH WRONGTYPE', 'LPUSH WRONGTYPE'])
  assert.equal(session.lost, 0)
})

test('a connection whose first exchanges were passed over is told from the first one on that was not', () => {
  const session = afterGap(new StreamSession(redis))
  assert.deepEqual(
    session.ended.map(({ name, error }) => `${name} ${error}`),
    ['LPUSH WRONGTYPE'],
  )
})

test('a database that was chosen before bytes were lost is no longer known', () => {
  const session = new StreamSession(redis).client(command('SELECT', '2')).serverSays('+OK\r\n')
  afterGap(session)
  assert.deepEqual(
    session.ended.map(({ attributes }) => attributes['db.namespace']),
    ['2', undefined],
  )
})
