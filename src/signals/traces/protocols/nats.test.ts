import assert from 'node:assert/strict'
import { test } from 'node:test'
import { classify } from '../../../../test/helpers/classify.ts'
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
import { nats } from './nats.ts'

const context = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
const headers = `NATS/1.0\r\ntraceparent: ${context}\r\ntracestate: a=1\r\n\r\n`
const inbox = '_INBOX.0Q7XKJW5X9ZB4ZIPGCQ5VW'
const pulled = '$JS.ACK.EVENTS.worker.1.1.1.1700000000000000000.0'

/** nats.js 2.29 and nats-server 2.9 (what names the server and its host is left out). */
const recorded: Call[] = [
  [
    'server',
    'INFO {"server_id":"NA","version":"2.9.10","proto":1,"headers":true,"max_payload":1048576} \r\n',
  ],
  [
    'client',
    'CONNECT {"protocol":1,"version":"2.29.3","lang":"nats.js","verbose":false,"user":"a","pass":"geheim"}\r\nPING\r\n',
  ],
  ['server', 'PONG\r\n'],
  ['client', 'SUB orders.> 1\r\nPING\r\n'],
  ['server', 'PONG\r\n'],
  [
    'client',
    `PUB orders.new 5\r\nhello\r\nHPUB orders.4711 ${headers.length} ${headers.length + 5}\r\n${headers}hello\r\n`,
  ],
  [
    'server',
    `MSG orders.new 1 5\r\nhello\r\nHMSG orders.4711 1 ${headers.length} ${headers.length + 5}\r\n${headers}hello\r\n`,
  ],
  ['client', `SUB ${inbox}.* 2\r\nPUB prices.get ${inbox}.A1 1\r\n?\r\n`],
  ['server', `MSG ${inbox}.A1 2 6\r\nanswer\r\n`],
  ['client', `PUB nobody ${inbox}.A2 1\r\nx\r\n`],
  ['server', `HMSG ${inbox}.A2 2 16 16\r\nNATS/1.0 503\r\n\r\n\r\n`],
  ['server', `MSG orders.get 1 ${inbox}.Z9 1\r\n?\r\n`],
  ['client', `PUB ${inbox}.Z9 6\r\nanswer\r\n`],
].map(([from, text]) => [from as 'client', Buffer.from(text!)])

function opened(): StreamSession {
  return replay(nats, recorded.slice(0, 3))
}

/** Names, errors and durations in milliseconds. */
function told(operations: readonly SeenOperation[]): string[] {
  return operations.map(({ name, error, startMs, endMs }) =>
    [name, error, endMs - startMs].filter(part => part !== '').join(' '),
  )
}

test('a recorded conversation tells of each message once', () => {
  const session = replay(nats, recorded)
  assert.deepEqual(told(session.ended), [
    'publish orders.new 0',
    'publish orders.* 0',
    'process orders.new 0',
    'process orders.* 0',
    'request prices.get 1',
    'request nobody no_responders 1',
    'process orders.get 0',
    'publish _INBOX.* 0',
  ])
  assert.equal(session.asked, 8)
  assert.equal(session.lost, 0)
})

test('nothing of what the client authenticates with is kept', () => {
  assert.equal(JSON.stringify(replay(nats, recorded).ended).includes('geheim'), false)
})

test('a publish has the attributes of the messaging conventions', () => {
  const [plain, traced] = replay(nats, recorded).ended
  const common = {
    'messaging.system': 'nats',
    'messaging.operation.name': 'publish',
    'messaging.operation.type': 'send',
    'messaging.destination.name': 'orders.new',
    'server.address': '10.0.0.2',
    'server.port': 4000,
  }
  assert.equal(plain!.kind, SpanKind.producer)
  assert.equal(plain!.duration, 'messaging.client.operation.duration')
  assert.equal(plain!.signalType, 'nats')
  assert.deepEqual(plain!.dimensions, common)
  assert.deepEqual(plain!.attributes, {
    ...common,
    'network.peer.address': '10.0.0.2',
    'network.peer.port': 4000,
    'messaging.message.body.size': 5,
  })
  assert.equal(traced!.context, context)
  assert.equal(traced!.state, 'a=1')
  assert.equal(traced!.attributes['messaging.destination.name'], 'orders.4711')
  assert.equal(traced!.dimensions['messaging.destination.template'], 'orders.*')
})

test('a trace state that is none is not told, and B3 is read', () => {
  const publish = (lines: string) => {
    const head = `NATS/1.0\r\n${lines}\r\n`
    return `HPUB a ${head.length} ${head.length}\r\n${head}\r\n`
  }
  const { ended } = opened()
    .client(publish(`traceparent: ${context}\r\ntracestate: \x01secret\r\n`))
    .client(publish(`tracestate: a=1\r\n`))
    .client(publish('b3: 0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1\r\n'))
  assert.deepEqual(
    ended.map(each => [each.context, each.state]),
    [
      [context, ''],
      ['', ''],
      [context, ''],
    ],
  )
})

test('deliveries are processed, requests are a client’s', () => {
  const { ended } = replay(nats, recorded)
  assert.equal(ended[3]!.kind, SpanKind.consumer)
  assert.equal(ended[3]!.duration, 'messaging.process.duration')
  assert.equal(ended[3]!.context, context)
  assert.equal(ended[4]!.kind, SpanKind.client)
})

test('subjects that programs make up are neither names nor attributes', () => {
  assert.equal(JSON.stringify(replay(nats, recorded).ended).includes('0Q7XKJW5X9ZB4ZIPGCQ5VW'), false)
})

test('subjects of JetStream are told by their own words', () => {
  function check(subject: string, wanted: string): void {
    assert.equal(opened().client(`PUB ${subject} 0\r\n\r\n`).ended[0]!.name, wanted)
  }
  check('$JS.API.STREAM.INFO.ORDERS', 'publish $JS.API.STREAM.INFO.*')
  check('$JS.API.CONSUMER.MSG.NEXT.ORDERS.worker', 'receive $JS.API.CONSUMER.MSG.NEXT.*.*')
  check('$KV.settings.user.17', 'publish $KV.settings.*')
})

test('an acknowledged delivery of JetStream lasts until its acknowledgement', () => {
  const message = (number: number) => `MSG events.made 1 ${pulled}${number} 2\r\ne1\r\n`
  const acknowledge = (number: number, what: string) => `PUB ${pulled}${number} ${what.length}\r\n${what}\r\n`
  const session = opened()
  session.serverSays(message(1)).client(acknowledge(1, '+ACK'))
  session.serverSays(message(2)).client(acknowledge(2, '+WPI')).client(acknowledge(2, ''))
  session.serverSays(message(3)).client(acknowledge(3, '-NAK {"delay": 1}'))
  session.serverSays(message(4)).client(acknowledge(4, '+TERM')).serverSays(message(5)).close()
  assert.deepEqual(told(session.ended), [
    'process events.made 0', // that its consumer acknowledges is not known yet
    'process events.made 2',
    'process events.made nak 1',
    'process events.made term 1',
    'process events.made 0',
  ])
})

test('what the server says of itself is no message', () => {
  const status = 'NATS/1.0 100 Idle Heartbeat\r\n\r\n'
  const session = opened().serverSays(`HMSG events.made 1 ${status.length} ${status.length}\r\n${status}\r\n`)
  session.serverSays(`MSG ${inbox}.unknown 2 1\r\nx\r\n`)
  assert.equal(session.ended.length, 0)
})

test('-ERR is the error of the requests that it concerns', () => {
  const session = opened().client(`PUB denied.x ${inbox}.1 0\r\n\r\nPUB other ${inbox}.2 0\r\n\r\n`)
  session.serverSays(`-ERR 'Permissions Violation for Publish to "denied.x"'\r\n`)
  assert.deepEqual(told(session.ended), ['request denied.x permissions_violation 1'])
  session.serverSays(`-ERR 'Stale Connection'\r\n`).close()
  assert.deepEqual(told(session.ended).slice(1), ['request other stale_connection 2'])
})

test('a request without an answer ends with its connection', () => {
  assert.deepEqual(told(opened().client(`PUB a ${inbox}.1 0\r\n\r\n`).close().ended), [
    'request a connection_closed 0',
  ])
  assert.deepEqual(told(opened().client(`PUB a ${inbox}.1 0\r\n\r\n`).close(104).ended), [
    'request a connection_reset 0',
  ])
})

test('payloads may hold whatever they want, and are not read', () => {
  const text = 'PUB a 1\r\n-ERR\r\nMSG x\r\n'
  const session = opened().client(`PUB a ${text.length}\r\n${text}\r\nPUB b 0\r\n\r\n`)
  assert.deepEqual(told(session.ended), ['publish a 0', 'publish b 0'])
})

test('verbs of any case and blanks of any kind are read', () => {
  const session = opened().client('pub \t a\t 1 \r\nx\r\nPub b 1\nx\r\n')
  assert.deepEqual(told(session.ended), ['publish a 0', 'publish b 0'])
})

test('a gap inside a payload does no harm', () => {
  const session = opened()
  session.capture = 200
  session.client(`PUB big ${inbox}.1 300000\r\n${'x'.repeat(100_000)}`)
  session.client('x'.repeat(100_000)).client(`${'x'.repeat(100_000)}\r\n`)
  session.serverSays(`MSG ${inbox}.1 1 0\r\n\r\n`).client('PUB next 1\r\nx\r\n')
  assert.deepEqual(told(session.ended), ['request big 3', 'publish next 0'])
})

test('behind a gap the next whole message is found', () => {
  const session = opened().client('PUB one 1\r\nx\r\n').lose(true, 1_000)
  session.client('rest of a payload\r\nPUB two 5\r\nhello\r\nPUB three 1\r\nx\r\n')
  assert.deepEqual(told(session.ended), ['publish one 0', 'publish two 0', 'publish three 0'])
})

test('a connection that is older than its observation is read from its first whole message on', () => {
  const session = new StreamSession(nats, { joined: true })
  session.client('lo\r\nPUB a 1\r\nx\r\n').serverSays('PING\r\n').client('PONG\r\n')
  assert.deepEqual(told(session.ended), ['publish a 0'])
})

test('publishes that nobody answers are told when four of them were framed to the byte', () => {
  const session = new StreamSession(nats, { joined: true })
  for (let i = 0; i < 3; i++) session.client('PUB a 1\r\nx\r\n')
  assert.equal(session.ended.length, 0)
  session.client('PUB a 1\r\nx\r\n')
  assert.equal(session.ended.length, 4)
})

test('what is no NATS is refused', () => {
  function check(...calls: [from: 'client' | 'server', text: string][]): void {
    const session = replay(
      nats,
      calls.map(([from, text]): Call => [from, Buffer.from(text)]),
    )
    assert.equal(session.refused, true)
    assert.equal(session.ended.length, 0)
    assert.equal(session.streams.inFlight, 0)
  }
  check(['client', 'GET / HTTP/1.1\r\n\r\n'])
  check(['client', 'MSG a 1 1\r\nx\r\n'])
  check(['client', 'PUB a b c d 1\r\n'])
  check(['client', 'PUB a 99999999999\r\n'])
  check(['client', 'PUB a 1\r\nhello\r\n'])
  check(['client', 'PUB a 1\r\nx\r\n'], ['server', '+PONG\r\n'])
})

test('the server side is given up', () => {
  assert.equal(new StreamSession(nats, { server: true }).serverSays('PING\r\n').refused, true)
})

test('an INFO that is longer than what is kept is passed over', () => {
  const session = new StreamSession(nats)
  session.serverSays(`INFO {"connect_urls":["${'a'.repeat(20_000)}`).serverSays(`"]}\r\nMSG a 1 1\r\nx\r\n`)
  assert.deepEqual(told(session.ended), ['process a 0'])
})

test('thousands of requests without answers stay within bounds, and each is told or counted as lost', () => {
  const session = opened()
  for (let i = 0; i < 5_000; i++) session.client(`PUB a ${inbox}.${i} 0\r\n\r\n`)
  assert.ok(session.streams.inFlight <= 1_024)
  session.close()
  assert.equal(session.ended.length, 1_024)
  assert.equal(session.lost, 5_000 - 1_024)
})

test('a request that had to make room for others is no failure', () => {
  const session = opened()
  for (let i = 0; i < 1_500; i++) session.client(`PUB a ${inbox}.${i} 0\r\n\r\n`)
  for (let i = 0; i < 1_500; i++) session.serverSays(`MSG ${inbox}.${i} 1 0\r\n\r\n`)
  assert.equal(session.ended.length + session.lost, 1_500)
  assert.ok(session.ended.every(({ error }) => error === ''))
})

test('bytes that come one by one tell the same', () => {
  assert.deepEqual(
    withoutTimes(replay(nats, byteByByte(recorded)).ended),
    withoutTimes(replay(nats, recorded).ended),
  )
})

test('a conversation that is cut off anywhere leaves nothing under way', () => {
  checkTruncations(nats, recorded)
})

test('no bytes make it throw or grow', () => {
  checkHostileInputs(nats, recorded)
})

test('the kernel side recognises NATS by its first bytes', () => {
  const cases: [bytes: string, from: string, joined?: boolean][] = [
    [String(recorded[0]![1]), 'server'],
    [String(recorded[1]![1]), 'client'],
    ['INFO { "a":1}\r\n', 'server'],
    ['PUB orders 5\r\nhello\r\n', 'client', true],
    ['PUB orders 5\r\nhello\r\n', 'nobody'],
    ['HPUB orders 12 17\r\n', 'client', true],
    ['MSG orders 1 5\r\nhello\r\n', 'server', true],
    ['HMSG orders 1 12 17\r\n', 'server', true],
    ['PING\r\n', 'nobody', true],
    ['INFO\r\n', 'nobody'],
  ]
  const found = classify(cases.map(([bytes, , joined = false]) => ({ bytes, joined })))
  assert.deepEqual(
    found.map(({ from, protocol }) => (protocol === 'nats' ? from : 'nobody')),
    cases.map(([, from]) => from),
  )
})

test('the kernel side takes nothing else for NATS', () => {
  checkForeignOpenings('nats')
})
