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
import { mqtt } from './mqtt.ts'

const context = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

function packet(first: number, content: Buffer): Buffer {
  const length: number[] = []
  let rest = content.length
  do {
    length.push((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0))
    rest >>= 7
  } while (rest > 0)
  return Buffer.concat([Buffer.from([first, ...length]), content])
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value)
  return Buffer.concat([short(bytes.length), bytes])
}

function short(value: number): Buffer {
  return Buffer.from([value >> 8, value & 0xff])
}

interface Message {
  readonly qos?: 0 | 1 | 2
  readonly id?: number
  readonly again?: boolean
  /** Of MQTT 5, behind their length. */
  readonly properties?: Buffer
}

function publish(topic: string, payload: string | Buffer, message: Message = {}): Buffer {
  const { qos = 0, id = 1, again = false, properties } = message
  const parts = [text(topic)]
  if (qos > 0) parts.push(short(id))
  if (properties !== undefined) parts.push(Buffer.from([properties.length]), properties)
  return packet(0x30 | (qos << 1) | (again ? 8 : 0), Buffer.concat([...parts, Buffer.from(payload)]))
}

const none = Buffer.alloc(0)
const alias = (number: number) => Buffer.concat([Buffer.from([0x23]), short(number)])
const user = (key: string, value: string) => Buffer.concat([Buffer.from([0x26]), text(key), text(value)])
const hex = (bytes: string) => Buffer.from(bytes.replaceAll(' ', ''), 'hex')
const puback = (id: number, reason?: number) => answer(0x40, id, reason)
const pubrec = (id: number, reason?: number) => answer(0x50, id, reason)
const pubrel = (id: number) => answer(0x62, id)
const pubcomp = (id: number) => answer(0x70, id)

function answer(first: number, id: number, reason?: number): Buffer {
  return packet(first, Buffer.concat([short(id), Buffer.from(reason === undefined ? [] : [reason])]))
}

function connect(level = 4): Buffer {
  const name = level === 3 ? 'MQIsdp' : 'MQTT'
  const properties = level === 5 ? Buffer.from([0]) : none
  return packet(
    0x10,
    Buffer.concat([
      text(name),
      Buffer.from([level, 0xc2]),
      short(60),
      properties,
      text('c1'),
      text('user'),
      text('geheim'),
    ]),
  )
}

function opened(level = 4): StreamSession {
  const session = new StreamSession(mqtt)
  return session.client(connect(level)).serverSays(level === 5 ? hex('20 03 00 00 00') : hex('20 02 00 00'))
}

/** mqtt.js 5 and Mosquitto 2.0, MQTT 5: a subscription, messages of each quality of service with a context, a refusal. */
const traced = Buffer.concat([user('traceparent', context), user('a', 'b')])
const recorded: Call[] = [
  ['client', hex('10 12 0004 4d515454 05 02 003c 03 21 0014 0002 6331')],
  ['server', hex('20 09 00 00 06 22 000a 21 0014')],
  ['client', hex('82 0c 0001 00 0006 73686f702f23 02')],
  ['server', hex('90 04 0001 00 02')],
  ['client', publish('shop/orders/0123', 'hello0', { properties: traced })],
  ['server', publish('shop/orders/0123', 'hello0', { properties: traced })],
  ['client', publish('shop/orders/1123', 'hello1', { qos: 1, id: 2, properties: traced })],
  [
    'server',
    Buffer.concat([
      publish('shop/orders/1123', 'hello1', { qos: 1, id: 1, properties: traced }),
      puback(2, 0),
    ]),
  ],
  ['client', puback(1)],
  ['client', publish('shop/b', 'hello2', { qos: 2, id: 3, properties: none })],
  ['server', pubrec(3)],
  ['client', pubrel(3)],
  ['server', Buffer.concat([pubcomp(3), publish('shop/b', 'hello2', { qos: 2, id: 2, properties: none })])],
  ['client', pubrec(2)],
  ['server', pubrel(2)],
  ['client', pubcomp(2)],
  ['client', publish('denied/x', 'y', { qos: 1, id: 4, properties: none })],
  ['server', puback(4, 0x87)],
  ['client', hex('c0 00')],
  ['server', hex('d0 00')],
  ['client', hex('e0 00')],
]

/** Names, errors and durations in milliseconds. */
function told(operations: readonly SeenOperation[]): string[] {
  return operations.map(({ name, error, startMs, endMs }) =>
    [name, error, endMs - startMs].filter(part => part !== '').join(' '),
  )
}

test('a conversation tells of each message once, with its error and its context', () => {
  const session = replay(mqtt, recorded)
  assert.deepEqual(told(session.ended), [
    'publish shop/orders/+ 0',
    'process shop/orders/+ 0',
    'publish shop/orders/+ 1',
    'process shop/orders/+ 1',
    'publish shop/b 3',
    'process shop/b 3',
    'publish denied/x not_authorized 1',
  ])
  assert.deepEqual(
    session.ended.map(operation => operation.context),
    [context, context, context, context, '', '', ''],
  )
  assert.equal(session.refused, false)
  assert.equal(session.streams.inFlight, 0)
})

test('a publish has the attributes of the messaging conventions', () => {
  const [operation] = opened().client(publish('shop/orders', 'hello')).ended
  const common = {
    'messaging.system': 'mqtt',
    'messaging.operation.name': 'publish',
    'messaging.operation.type': 'send',
    'messaging.destination.name': 'shop/orders',
    'server.address': '10.0.0.2',
    'server.port': 4000,
  }
  assert.equal(operation!.kind, SpanKind.producer)
  assert.equal(operation!.signalType, 'mqtt')
  assert.equal(operation!.duration, 'messaging.client.operation.duration')
  assert.deepEqual(operation!.dimensions, common)
  assert.deepEqual(operation!.attributes, {
    ...common,
    'network.peer.address': '10.0.0.2',
    'network.peer.port': 4000,
    'messaging.message.body.size': 5,
  })
})

test('messages that are received are processed', () => {
  const [operation] = opened().serverSays(publish('shop/orders', 'hello')).ended
  assert.equal(operation!.kind, SpanKind.consumer)
  assert.equal(operation!.duration, 'messaging.process.duration')
  assert.equal(operation!.attributes['messaging.operation.type'], 'process')
})

test('all versions of MQTT are read', () => {
  for (const level of [3, 4]) {
    const session = opened(level)
      .client(publish('a', 'x', { qos: 1 }))
      .serverSays(puback(1))
    assert.deepEqual(told(session.ended), ['publish a 1'])
  }
})

test('an alias stands for the topic that it was last sent with, in its direction', () => {
  const session = opened(5)
  session
    .client(publish('a', 'x', { properties: alias(3) }))
    .client(publish('', 'x', { properties: alias(3) }))
  session
    .client(publish('b', 'x', { properties: alias(3) }))
    .client(publish('', 'x', { properties: alias(3) }))
  session.serverSays(publish('', 'x', { properties: alias(3) }))
  session.client(publish('', 'x', { properties: alias(65_535) }))
  assert.deepEqual(
    session.ended.map(({ name }) => name),
    ['publish a', 'publish a', 'publish b', 'publish b', 'process', 'publish'],
  )
})

test('topics make at most two hundred names, and are told nevertheless', () => {
  const session = opened()
  for (let i = 0; i < 1_000; i++)
    session.client(publish(`topic/${String.fromCharCode(97 + (i % 26))}${i}`, 'x'))
  assert.equal(session.ended.length, 1_000)
  assert.ok(new Set(session.ended.map(({ name }) => name)).size <= 201)
  assert.equal(session.ended[999]!.attributes['messaging.destination.name'], 'topic/l999')
})

test('a topic of UTF-8 is told as it was written', () => {
  assert.equal(opened().client(publish('haus/küche', 'x')).ended[0]!.name, 'publish haus/küche')
})

test('a message that is sent once more is told once', () => {
  const session = opened().client(publish('a', 'x', { qos: 1, id: 7 }))
  session.client(publish('a', 'x', { qos: 1, id: 7, again: true })).serverSays(puback(7))
  assert.deepEqual(told(session.ended), ['publish a 2'])
})

test('a trace state that is none is not told', () => {
  const properties = Buffer.concat([user('traceparent', context), user('tracestate', '\x01secret')])
  const [message] = opened(5).client(publish('a', 'x', { properties })).ended
  assert.deepEqual([message!.context, message!.state], [context, ''])
})

test('a reason of refusal is the error, whichever packet says it', () => {
  const session = opened(5)
  session.client(publish('a', 'x', { qos: 1, id: 1, properties: none })).serverSays(puback(1, 0x97))
  session.client(publish('b', 'x', { qos: 2, id: 2, properties: none })).serverSays(pubrec(2, 0x90))
  session.serverSays(publish('c', 'x', { qos: 1, id: 9, properties: none })).client(puback(9, 0x83))
  session.client(publish('d', 'x', { qos: 1, id: 3, properties: none })).serverSays(puback(3, 0x10))
  session
    .client(publish('e', 'x', { qos: 1, id: 4, properties: none }))
    .serverSays(hex('e0 01 8b'))
    .close()
  assert.deepEqual(told(session.ended), [
    'publish a quota_exceeded 1',
    'publish b topic_name_invalid 1',
    'process c implementation_specific_error 1',
    'publish d 1',
    'publish e server_shutting_down 1',
  ])
})

test('connections and subscriptions are told where they are refused, and only there', () => {
  const session = new StreamSession(mqtt).client(connect()).serverSays(hex('20 02 00 05'))
  assert.deepEqual(told(session.ended), ['connect not_authorized 1'])
  assert.equal(session.ended[0]!.kind, SpanKind.client)
  const other = opened().client(hex('82 06 0005 0001 61 01')).serverSays(hex('90 03 0005 01'))
  other.client(hex('82 06 0006 0001 62 01')).serverSays(hex('90 03 0006 80')).close()
  assert.deepEqual(told(other.ended), ['subscribe unspecified_error 1'])
  const five = opened(5).client(hex('a2 06 0007 00 0001 61')).serverSays(hex('b0 04 0007 00 87'))
  assert.deepEqual(told(five.ended), ['unsubscribe not_authorized 1'])
  assert.equal(JSON.stringify(session.ended).includes('geheim'), false)
})

test('what is under way when the connection breaks off is told with the reason', () => {
  const session = opened()
    .client(publish('a', 'x', { qos: 1 }))
    .client(publish('b', 'long').subarray(0, 6))
  assert.deepEqual(told(session.close(104).ended), [
    'publish b connection_reset 0',
    'publish a connection_reset 1',
  ])
})

test('a gap inside a payload does no harm', () => {
  const session = opened()
  session.capture = 200
  const big = publish('big', Buffer.alloc(300_000), { qos: 1 })
  session.client(big.subarray(0, 100_000)).client(big.subarray(100_000, 299_000))
  session.client(Buffer.concat([big.subarray(299_000), publish('next', 'x')])).serverSays(puback(1))
  assert.deepEqual(told(session.ended), ['publish next 0', 'publish big 3'])
})

test('behind a gap the next call of whole packets is read', () => {
  const session = opened().client(publish('one', 'x')).lose(true, 1_000)
  session.client('0123456789').client(Buffer.concat([publish('two', 'x'), hex('c0 00')]))
  assert.deepEqual(told(session.ended), ['publish one 0', 'publish two 0'])
})

test('a connection that is older than its observation is read from its first call of whole packets on', () => {
  const session = new StreamSession(mqtt, { joined: true })
  session
    .client('payload')
    .client(publish('a', 'x', { qos: 1 }))
    .serverSays(puback(1))
  assert.deepEqual(told(session.ended), ['publish a 1'])
  assert.equal('messaging.message.body.size' in session.ended[0]!.attributes, false)
})

test('what is no MQTT is refused', () => {
  function check(...calls: Call[]): void {
    const session = replay(mqtt, calls)
    assert.equal(session.refused, true)
    assert.equal(session.ended.length, 0)
    assert.equal(session.streams.inFlight, 0)
  }
  check(['client', Buffer.from('GET / HTTP/1.1\r\n\r\n')])
  check(['client', hex('10 0e 0004 41424344 04 02 003c 0002 6331')])
  check(['client', hex('36 05 0001 61 0001')])
  check(['client', hex('30 ff ff ff ff 01')])
  check(['client', hex('20 02 00 00')])
  check(['client', connect()], ['server', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')])
})

test('the server side is given up', () => {
  assert.equal(new StreamSession(mqtt, { server: true }).client(connect()).refused, true)
})

test('thousands of messages without answers stay within bounds, and each is told once', () => {
  const session = opened()
  for (let i = 1; i <= 5_000; i++) session.client(publish('a', 'x', { qos: 1, id: i }))
  assert.ok(session.streams.inFlight <= 1_024)
  session.close()
  assert.equal(session.ended.length, 5_000)
})

test('bytes that come one by one tell the same', () => {
  assert.deepEqual(
    withoutTimes(replay(mqtt, byteByByte(recorded)).ended),
    withoutTimes(replay(mqtt, recorded).ended),
  )
})

test('a conversation that is cut off anywhere leaves nothing under way', () => {
  checkTruncations(mqtt, recorded)
})

test('no bytes make it throw or grow', () => {
  checkHostileInputs(mqtt, recorded)
})

test('the kernel side recognises MQTT by its first bytes', () => {
  const cases: [bytes: Buffer, from: string, joined?: boolean, port?: number][] = [
    [connect(3), 'client'],
    [connect(4), 'client'],
    [connect(5), 'client'],
    [Buffer.from(connect(4)).fill(0x84, 8, 9), 'client'],
    [Buffer.concat([hex('10 80 01 0004 4d515454 05'), Buffer.alloc(121)]), 'client'],
    [publish('shop/orders', 'hello'), 'either', true],
    [publish('shop/orders', Buffer.alloc(200), { qos: 1 }), 'either', true],
    [publish('shop/orders', Buffer.alloc(10_000)), 'either', true],
    [publish('shop/orders', 'hello'), 'nobody'],
    [Buffer.concat([publish('shop/orders', 'hello'), none, hex('c000')]), 'nobody', true],
    [hex('c0 00'), 'client', true, 1883],
    [hex('d0 00'), 'server', true, 1883],
    [hex('c0 00'), 'nobody', true],
    [puback(7), 'either', true, 1883],
    [hex('10 0e 0004 41424344 04 02 003c 0002 6331'), 'nobody'],
  ]
  const found = classify(
    cases.map(([bytes, , joined = false, peerPort = 4000]) => ({ bytes, joined, peerPort })),
  )
  assert.deepEqual(
    found.map(({ from, protocol }) => (protocol === 'mqtt' ? from : 'nobody')),
    cases.map(([, from]) => from),
  )
})

test('the kernel side takes nothing else for MQTT', () => {
  checkForeignOpenings('mqtt')
})

test('messages that nobody saw are counted once their acknowledgements come', () => {
  const session = new StreamSession(mqtt)
  session.client(connect(4)).serverSays(packet(0x20, short(0)))
  session
    .client(publish('a', 'x', { qos: 1, id: 1 }))
    .serverSays(puback(1))
    .serverSays(puback(77))
  assert.equal(session.lost, 0)
  session.lose(true, 60).client(publish('a', 'x', { qos: 1, id: 5 }))
  session.serverSays(Buffer.concat([puback(2), puback(3), puback(4), puback(5)]))
  assert.equal(session.ended.length, 2)
  assert.equal(session.lost, 3)
})
