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
import { amqp } from './amqp.ts'

/** amqplib 2.3 and RabbitMQ 3.10: a confirm channel, a publish with a context, one returned, a delivery, a get. */
const recorded: Call[] = [
  ['client', '414d515000000901'],
  ['server', '0100000000001c000a000a000900000000 00000005504c41494e00000005656e5f5553ce'],
  ['client', '01000000000024000a000b0000000005504c41494e0000000c00677565737400677565737405656e5f5553ce'],
  ['server', '0100000000000c000a001e07ff00020000003cce'],
  ['client', '0100000000000c000a001f07ff000200000000ce01000000000008000a0028012f0000ce'],
  ['server', '01000000000005000a002900ce'],
  ['client', '010001000000050014000a00ce'],
  ['server', '010001000000080014000b00000000ce'],
  ['client', '010001000000050055000a00ce'],
  ['server', '010001000000040055000bce'],
  ['client', '0100010000001200 32000a0000066f72646572730200000000ce'],
  ['server', '010001000000130032000b066f72646572730000000000000000ce'],
  [
    'client',
    '0100010000000f003c0028000000066f726465727300ce02000100000071003c0000000000000000000520000000005f0b74726163657061' +
      '72656e74530000003730302d30616637363531393136636434336464383434386562323131633830333139632d623761643662373136' +
      '393230333333312d30310a747261636573746174655300000003613d31016e6201ce0300010000000568656c6c6fce',
  ],
  ['server', '0100010000000d003c0050000000000000000100ce'],
  [
    'client',
    '01000100000010003c0028000000076e6f776865726501ce02000100000012003c00000000000000000001200000000000ce03000100000001' +
      '78ce',
  ],
  [
    'server',
    '01000100000018003c00320138084e4f5f524f55544500076e6f7768657265ce02000100000012003c0000000000000000000120000000' +
      '0000ce0300010000000178ce0100010000000d003c0050000000000000000200ce',
  ],
  ['client', '01000100000013003c00140000066f7264657273000000000000ce'],
  [
    'server',
    '01000100000024003c00151f616d712e637461672d3330636a7837474d55685439636971314e64454f4451ce01000100000035003c003c1f61' +
      '6d712e637461672d3330636a7837474d55685439636971314e64454f445100000000000000010000066f7264657273ce0200010000007100' +
      '3c0000000000000000000520000000005f0b7472616365706172656e74530000003730302d306166373635313931366364343364643834' +
      '34386562323131633830333139632d623761643662373136393230333333312d30310a747261636573746174655300000003613d31016e' +
      '6201ce0300010000000568656c6c6fce',
  ],
  ['client', '0100010000000d003c0050000000000000000100ce'],
  ['client', '0100010000000e003c00460000066f726465727300ce'],
  ['server', '01000100000005003c004800ce'],
  ['client', '01000000000019000a003200c80e4368656572732c207468616e6b7300000000ce'],
  ['server', '01000000000004000a0033ce'],
].map(([from, hex]) => [from as 'client', Buffer.from(hex!.replaceAll(' ', ''), 'hex')])

const handshake = recorded.slice(0, 8)
const context = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
const peer = { 'server.address': '10.0.0.2', 'server.port': 4000 }
const network = { 'network.peer.address': '10.0.0.2', 'network.peer.port': 4000 }

function frame(type: number, channel: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(7)
  head[0] = type
  head.writeUInt16BE(channel, 1)
  head.writeUInt32BE(payload.length, 3)
  return Buffer.concat([head, payload, Buffer.from([0xce])])
}

/** Arguments: text for a short string, and bytes as hex in angle brackets. */
function method(channel: number, classId: number, methodId: number, ...args: string[]): Buffer {
  const id = Buffer.from([0, classId, 0, methodId])
  const parts = args.map(arg =>
    arg.startsWith('<')
      ? Buffer.from(arg.replace(/[<> ]/g, ''), 'hex')
      : Buffer.concat([Buffer.from([arg.length]), Buffer.from(arg)]),
  )
  return frame(1, channel, Buffer.concat([id, ...parts]))
}

function body(channel: number, text: string | Buffer, frameSize = 4096): Buffer {
  const bytes = Buffer.from(text)
  const header = Buffer.alloc(14)
  header.writeUInt16BE(60)
  header.writeBigUInt64BE(BigInt(bytes.length), 4)
  const frames = [frame(2, channel, header)]
  for (let at = 0; at < bytes.length; at += frameSize)
    frames.push(frame(3, channel, bytes.subarray(at, at + frameSize)))
  return Buffer.concat(frames)
}

function publish(
  channel: number,
  exchange: string,
  key: string,
  text: string | Buffer = 'hello',
  bits = '<00>',
) {
  return Buffer.concat([method(channel, 60, 40, '<0000>', exchange, key, bits), body(channel, text)])
}

function tag(number: number): string {
  return `<${number.toString(16).padStart(16, '0')}>`
}

function deliver(channel: number, consumer: string, number: number, exchange: string, key: string): Buffer {
  return Buffer.concat([
    method(channel, 60, 60, consumer, tag(number), '<00>', exchange, key),
    body(channel, 'job'),
  ])
}

const ack = (channel: number, number: number, bits = '<00>') => method(channel, 60, 80, tag(number), bits)
const nack = (channel: number, number: number, bits = '<00>') => method(channel, 60, 120, tag(number), bits)
const reject = (channel: number, number: number) => method(channel, 60, 90, tag(number), '<00>')
const select = (channel: number) => method(channel, 85, 10, '<00>')
const consume = (channel: number, queue: string, consumer: string, bits = '<00>') =>
  method(channel, 60, 20, '<0000>', queue, consumer, bits, '<00000000>')

function opened(): StreamSession {
  return replay(amqp, handshake)
}

/** Names, errors and durations in milliseconds. */
function told(operations: readonly SeenOperation[]): string[] {
  return operations.map(({ name, error, startMs, endMs }) =>
    [name, error, endMs - startMs].filter(part => part !== '').join(' '),
  )
}

test('a recorded conversation tells of each message once, with its error and its context', () => {
  const session = replay(amqp, recorded)
  assert.deepEqual(told(session.ended), [
    'publish orders 1',
    'publish nowhere no_route 1',
    'process orders 1',
    'receive orders 1',
  ])
  assert.deepEqual(
    session.ended.map(({ context: seen, state }) => [seen, state]),
    [
      [context, 'a=1'],
      ['', ''],
      [context, 'a=1'],
      ['', ''],
    ],
  )
  assert.equal(session.asked, 4)
  assert.equal(session.refused, false)
})

test('a publish has the attributes of the RabbitMQ conventions', () => {
  const [operation] = replay(amqp, recorded).ended
  assert.equal(operation!.kind, SpanKind.producer)
  assert.equal(operation!.signalType, 'amqp')
  assert.equal(operation!.duration, 'messaging.client.operation.duration')
  const common = {
    'messaging.system': 'rabbitmq',
    'messaging.operation.name': 'publish',
    'messaging.operation.type': 'send',
    'messaging.destination.name': 'orders',
    ...peer,
  }
  assert.deepEqual(operation!.attributes, {
    ...common,
    ...network,
    'messaging.rabbitmq.destination.routing_key': 'orders',
    'messaging.message.body.size': 5,
    'messaging.rabbitmq.message.delivery_tag': 1,
  })
  assert.deepEqual(operation!.dimensions, common)
})

test('a delivery is processed by a consumer', () => {
  const operation = replay(amqp, recorded).ended[2]!
  assert.equal(operation.kind, SpanKind.consumer)
  assert.equal(operation.duration, 'messaging.process.duration')
  assert.equal(operation.attributes['messaging.operation.type'], 'process')
  assert.equal(operation.attributes['messaging.rabbitmq.message.delivery_tag'], 1)
})

test('the destination is made of exchange, routing key and queue', () => {
  function check(bytes: Buffer, wanted: string): void {
    const [operation] = opened().client(bytes).ended
    assert.equal(operation!.attributes['messaging.destination.name'], wanted)
  }
  check(publish(1, 'shop', 'order.created'), 'shop:order.created')
  check(publish(1, 'shop', ''), 'shop')
  check(publish(1, '', 'orders'), 'orders')
  check(publish(1, '', ''), 'amq.default')
  const session = opened().client(consume(1, 'mails', 'c1', '<02>'))
  session
    .serverSays(deliver(1, 'c1', 1, 'shop', 'order.created'))
    .serverSays(deliver(1, 'c1', 2, '', 'mails'))
  assert.deepEqual(
    session.ended.map(({ name }) => name),
    ['process shop:order.created:mails', 'process mails'],
  )
})

test('names of UTF-8 are told as they were written', () => {
  const length = (name: string) => `<${Buffer.byteLength(name).toString(16).padStart(2, '0')}>`
  const bytes = (name: string) => `<${Buffer.from(name).toString('hex')}>`
  const key = 'größe'
  const session = opened().client(
    Buffer.concat([method(1, 60, 40, '<0000>', 'shop', length(key), bytes(key), '<00>'), body(1, 'x')]),
  )
  const [{ name, attributes }] = session.ended as [SeenOperation]
  assert.equal(name, 'publish shop:größe')
  assert.equal(attributes['messaging.rabbitmq.destination.routing_key'], key)
})

test('queues that the server names and routing keys with identifiers make few names', () => {
  const session = opened()
  session
    .client(publish(1, '', 'amq.gen-JzTY20BRgKO-HjmUJj0wLg'))
    .client(publish(1, 'shop', 'order.4711.paid'))
  const [reply, order] = session.ended
  assert.equal(reply!.name, 'publish amq.gen-*')
  assert.equal(reply!.attributes['messaging.destination.name'], 'amq.gen-*')
  assert.equal(reply!.attributes['messaging.destination.anonymous'], true)
  assert.equal('messaging.rabbitmq.destination.routing_key' in reply!.attributes, false)
  assert.equal(order!.name, 'publish shop:order.*.paid')
  assert.equal(order!.attributes['messaging.destination.name'], 'shop:order.4711.paid')
  assert.equal(order!.dimensions['messaging.destination.template'], 'shop:order.*.paid')
  for (let i = 0; i < 500; i++) session.client(publish(1, 'x', `k${'abcdefghij'[i % 10]}-${i.toString(36)}`))
  assert.ok(new Set(session.ended.map(({ name }) => name)).size <= 201)
})

test('without confirmations a publish lasts from its first to its last byte', () => {
  const bytes = publish(1, 'shop', 'k', Buffer.alloc(100))
  const session = opened()
    .client(bytes.subarray(0, 40))
    .client(bytes.subarray(40, 90))
    .client(bytes.subarray(90))
  assert.deepEqual(told(session.ended), ['publish shop:k 2'])
})

test('confirmations end what they name, with "multiple" all up to there', () => {
  const session = opened().client(select(1))
  for (let i = 1; i <= 5; i++) session.client(publish(1, 'shop', `k${i}`))
  assert.equal(session.ended.length, 0)
  session
    .serverSays(ack(1, 2))
    .serverSays(nack(1, 4, '<01>'))
    .serverSays(ack(1, 0, '<01>'))
  assert.deepEqual(told(session.ended), [
    'publish shop:k2 4',
    'publish shop:k1 nack 6',
    'publish shop:k3 nack 4',
    'publish shop:k4 nack 3',
    'publish shop:k5 3',
  ])
})

test('channels are told apart, however their frames are interleaved', () => {
  const session = opened().client(select(2))
  const one = publish(1, 'one', 'k', Buffer.alloc(30))
  const two = publish(2, 'two', 'k', Buffer.alloc(30))
  // Method and header of the first, then the second, then the body of the first.
  const bodyAt = one.length - 38
  session.client(Buffer.concat([one.subarray(0, bodyAt), two])).client(one.subarray(bodyAt))
  assert.deepEqual(told(session.ended), ['publish one:k 1'])
  session.serverSays(ack(1, 1)).serverSays(ack(2, 1))
  assert.deepEqual(told(session.ended), ['publish one:k 1', 'publish two:k 3'])
})

test('a delivery ends with ack, reject or nack of the client, and with recover', () => {
  const session = opened().client(consume(1, 'q', 'c'))
  for (let i = 1; i <= 5; i++) session.serverSays(deliver(1, 'c', i, '', 'q'))
  session.client(Buffer.concat([ack(1, 1), reject(1, 2), nack(1, 4, '<01>'), method(1, 60, 110, '<01>')]))
  assert.deepEqual(
    session.ended.map(({ error }) => error),
    ['', 'reject', 'nack', 'nack', 'recover'],
  )
})

test('a consumer tag that the server makes up belongs to the consumer that asked first', () => {
  const session = opened().client(Buffer.concat([consume(1, 'a', '', '<02>'), consume(1, 'b', '')]))
  session.serverSays(Buffer.concat([method(1, 60, 21, 'ctag1'), method(1, 60, 21, 'ctag2')]))
  session.serverSays(Buffer.concat([deliver(1, 'ctag2', 1, 'x', 'k'), deliver(1, 'ctag1', 2, 'x', 'k')]))
  assert.deepEqual(told(session.ended), ['process x:k:a 0'])
  session.client(ack(1, 1))
  assert.deepEqual(told(session.ended), ['process x:k:a 0', 'process x:k:b 1'])
})

test('a get ends with its message, whose exchange and key it tells', () => {
  const session = opened().client(method(1, 60, 70, '<0000>', 'jobs', '<01>'))
  session.serverSays(
    Buffer.concat([method(1, 60, 71, tag(9), '<00>', 'x', 'k', '<00000000>'), body(1, 'job')]),
  )
  const [operation] = session.ended
  assert.equal(operation!.name, 'receive jobs')
  assert.equal(operation!.kind, SpanKind.client)
  assert.equal(operation!.attributes['messaging.destination.name'], 'x:k')
  assert.equal(operation!.attributes['messaging.message.body.size'], 3)
  assert.equal(operation!.dimensions['messaging.destination.name'], 'jobs')
})

test('more gets than wait for their answers are counted as lost', () => {
  const get = method(1, 60, 70, '<0000>', 'q', '<00>')
  const session = opened()
  for (let i = 0; i < 70; i++) session.client(get)
  session.close()
  assert.equal(session.ended.length, 64)
  assert.equal(session.lost, 6)
})

test('the end of a channel or of the connection is the error of what was under way on it', () => {
  const start = () => {
    const session = opened().client(Buffer.concat([select(1), publish(1, 'gone', 'k')]))
    return session.client(Buffer.concat([select(2), publish(2, 'shop', 'k')]))
  }
  const close = (channel: number, classId: number, methodId: number, code: string) =>
    method(channel, classId, methodId, code, 'why', '<003c0028>')
  function check(session: StreamSession, ...wanted: string[]): void {
    assert.deepEqual(
      session.ended.map(({ name, error }) => `${name} ${error}`),
      wanted,
    )
  }
  check(start().serverSays(close(1, 20, 40, '<0194>')), 'publish gone:k not_found')
  check(start().client(close(1, 20, 40, '<00c8>')), 'publish gone:k channel_closed')
  const both = (error: string) => [`publish gone:k ${error}`, `publish shop:k ${error}`]
  check(start().serverSays(close(0, 10, 50, '<0140>')), ...both('connection_forced'))
  check(start().close(), ...both('connection_closed'))
  check(start().close(104), ...both('connection_reset'))
})

test('a gap inside a body that was cut into frames does no harm', () => {
  const session = opened().client(select(1))
  session.capture = 400
  const big = Buffer.concat([
    method(1, 60, 40, '<0000>', 'shop', 'big', '<00>'),
    body(1, Buffer.alloc(1_000_000), 131_064),
  ])
  for (let at = 0; at < big.length; at += 65_536) session.client(big.subarray(at, at + 65_536))
  session.client(publish(1, 'shop', 'next')).serverSays(ack(1, 2, '<01>'))
  assert.deepEqual(
    session.ended.map(({ name }) => name),
    ['publish shop:big', 'publish shop:next'],
  )
  assert.equal(session.lost, 0)
})

test('a gap that ends with a frame does no harm, whatever the next one holds', () => {
  const session = opened()
  const fake = Buffer.concat([Buffer.from([0xce]), publish(1, 'shop', 'fake')])
  const bytes = Buffer.concat([
    method(1, 60, 40, '<0000>', 'shop', 'k', '<00>'),
    body(1, Buffer.concat([Buffer.alloc(4096), fake]), 4096),
  ])
  const secondFrame = bytes.length - fake.length - 8
  session.client(bytes.subarray(0, secondFrame - 10))
  session.lose(true, 10).client(bytes.subarray(secondFrame, -1)).client(bytes.subarray(-1))
  assert.deepEqual(told(session.ended), ['publish shop:k 2'])
  assert.equal(session.lost, 0)
})

test('behind a gap the next frame of a method is found', () => {
  const session = opened().client(publish(1, 'shop', 'one'))
  session.lose(true, 5_000).client(Buffer.concat([Buffer.alloc(50, 0x01), publish(1, 'shop', 'lost')]))
  session.client(Buffer.concat([body(1, 'x').subarray(3), publish(1, 'shop', 'two')]))
  assert.deepEqual(
    session.ended.map(({ name }) => name),
    ['publish shop:one', 'publish shop:two'],
  )
})

test('confirmations whose messages were lost leave nothing behind', () => {
  const session = opened()
    .client(Buffer.concat([select(1), publish(1, 'shop', 'one')]))
    .serverSays(ack(1, 1))
  session
    .lose(true, 300)
    .client(publish(1, 'shop', 'three'))
    .serverSays(ack(1, 2))
    .serverSays(ack(1, 3))
  session.client(publish(1, 'shop', 'four')).serverSays(ack(1, 4))
  assert.deepEqual(told(session.ended), ['publish shop:one 1', 'publish shop:three 1', 'publish shop:four 1'])
})

test('a connection that is older than its observation is read from its first whole message on', () => {
  const session = new StreamSession(amqp, { joined: true })
  session
    .serverSays(ack(1, 4))
    .client(publish(1, 'shop', 'a'))
    .serverSays(ack(1, 5))
  session.serverSays(deliver(1, 'c', 7, 'shop', 'a')).client(ack(1, 7))
  session.serverSays(deliver(1, 'c', 8, 'shop', 'a')).client(ack(1, 8))
  // Only the second delivery comes when it is known that the client acknowledges.
  assert.deepEqual(told(session.ended), ['publish shop:a 1', 'process shop:a 0', 'process shop:a 1'])
})

test('publishes that nobody answers are told when four of them were framed to the byte', () => {
  const session = new StreamSession(amqp, { joined: true })
  for (let i = 0; i < 3; i++) session.client(publish(1, 'shop', 'k'))
  assert.equal(session.ended.length, 0)
  session.client(publish(1, 'shop', 'k'))
  assert.equal(session.ended.length, 4)
})

test('heartbeats and methods that move no message are passed over', () => {
  const heartbeat = frame(8, 0, Buffer.alloc(0))
  const session = opened().client(heartbeat).serverSays(heartbeat)
  session
    .client(method(1, 50, 20, '<0000>', 'q', 'x', '#', '<00>', '<00000000>'))
    .serverSays(method(1, 50, 21))
  session.client(publish(1, 'shop', 'k'))
  assert.equal(session.ended.length, 1)
})

test('what is no AMQP 0-9-1 is refused', () => {
  function check(...calls: Call[]): void {
    const session = replay(amqp, calls)
    assert.equal(session.refused, true)
    assert.equal(session.ended.length, 0)
    assert.equal(session.streams.inFlight, 0)
  }
  check(['client', Buffer.from('AMQP\x00\x01\x00\x00', 'latin1')])
  check(['client', Buffer.from('AMQP\x03\x01\x00\x00', 'latin1')])
  check(['client', Buffer.from('GET / HTTP/1.1\r\n\r\n')])
  check(['client', method(1, 60, 60, 'c', tag(1), '<00>', 'x', 'k')])
  check(['client', frame(1, 1, Buffer.from('003c0028', 'hex')).fill(0, 11)])
  check(['client', handshake[0]![1] as Buffer], ['server', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')])
})

test('the server side is given up', () => {
  const session = new StreamSession(amqp, { server: true }).client(publish(1, 'shop', 'k'))
  assert.equal(session.refused, true)
  assert.equal(session.ended.length, 0)
})

test('thousands of unconfirmed messages stay within bounds, and each is told once', () => {
  const session = opened().client(select(1))
  for (let i = 0; i < 10_000; i++) session.client(publish(1, 'shop', 'k'))
  assert.ok(session.streams.inFlight <= 4_096)
  session.serverSays(ack(1, 10_000, '<01>'))
  assert.equal(session.ended.length, 10_000)
  assert.equal(session.streams.inFlight, 0)
  assert.ok(session.ended.every(({ error }) => error === ''))
})

test('tags that leap far ahead cost nothing', () => {
  const session = opened().client(consume(1, 'q', 'c'))
  for (const number of [1, 3, 2 ** 40, 5, 2 ** 52, 2 ** 52 + 1])
    session.serverSays(deliver(1, 'c', number, '', 'q'))
  session.close()
  assert.equal(session.ended.length, 6)
  assert.equal(session.streams.inFlight, 0)
})

test('no room for operations loses them, and tags go on counting', () => {
  const session = new StreamSession(amqp, { maxBytes: 4_300 }) // one operation's
  for (const call of handshake) session[call[0] === 'client' ? 'client' : 'serverSays'](call[1] as Buffer)
  session.client(Buffer.concat([select(1), publish(1, 'a', 'k'), publish(1, 'b', 'k')])).serverSays(ack(1, 1))
  session
    .client(publish(1, 'c', 'k'))
    .serverSays(ack(1, 2))
    .serverSays(ack(1, 3))
  assert.deepEqual(told(session.ended), ['publish a:k 1', 'publish c:k 2'])
  assert.equal(session.lost, 1)
})

test('bytes that come one by one tell the same', () => {
  assert.deepEqual(
    withoutTimes(replay(amqp, byteByByte(recorded)).ended),
    withoutTimes(replay(amqp, recorded).ended),
  )
})

test('a conversation that is cut off anywhere leaves nothing under way', () => {
  checkTruncations(amqp, recorded)
})

test('no bytes make it throw or grow', () => {
  checkHostileInputs(amqp, recorded)
})

test('the kernel side recognises AMQP by its first bytes', () => {
  const cases: [bytes: Buffer, from: string, joined?: boolean][] = [
    [recorded[0]![1] as Buffer, 'client'],
    [recorded[1]![1] as Buffer, 'server'],
    [publish(3, 'shop', 'order.created'), 'client', true],
    [publish(3, 'shop', 'order.created'), 'nobody'],
    [deliver(3, 'amq.ctag-30cjx7GMUhT9ciq1NdEODQ', 7, 'shop', 'k'), 'server', true],
    [method(1, 60, 70, '<0000>', 'orders', '<00>'), 'client', true],
    [method(1, 60, 71, tag(1), '<00>', 'x', 'k', '<00000000>'), 'server', true],
    [ack(1, 3), 'either', true],
    [nack(1, 3), 'either', true],
    [reject(1, 3), 'client', true],
    [frame(8, 0, Buffer.alloc(0)), 'either', true],
    [Buffer.from('AMQP\x00\x01\x00\x00', 'latin1'), 'nobody'],
    [Buffer.from('AMQP'), 'nobody'],
  ]
  const found = classify(cases.map(([bytes, , joined = false]) => ({ bytes, joined })))
  assert.deepEqual(
    found,
    cases.map(([, from]) => ({ protocol: from === 'nobody' ? 'none' : 'amqp', from })),
  )
})

test('the kernel side takes nothing else for AMQP', () => {
  checkForeignOpenings('amqp')
})
