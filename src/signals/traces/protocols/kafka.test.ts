import assert from 'node:assert/strict'
import { test } from 'node:test'
import { classify, type Opening } from '../../../../test/helpers/classify.ts'
import {
  byteByByte,
  type Call,
  checkHostileInputs,
  checkTruncations,
  replay,
  withoutTimes,
} from '../../../../test/helpers/hostile-streams.ts'
import {
  KafkaWriter,
  kafkaRequest,
  kafkaResponse,
  recordBatch,
} from '../../../../test/helpers/servers/kafka-wire.ts'
import { type SessionOptions, StreamSession } from '../../../../test/helpers/stream-session.ts'
import { kafka } from './kafka.ts'

const [produceKey, fetchKey, metadataKey, heartbeatKey, apiVersionsKey] = [0, 1, 3, 12, 18]
const client = 'shop'
const topicId = Buffer.from('00112233445566778899aabbccddeeff', 'hex')
const strangeId = Buffer.alloc(16, 7)

/** Recorded from kafkajs 2.2: requests, and answers of a broker. */
const apiVersions = Buffer.from('0000000e0012000200000000000473686f70', 'hex')
const produceV7 = Buffer.from(
  '0000007b0000000700000001000473686f70ffffffff000075300000000100066f726465727300000001000000000000004d00000000000000' +
    '000000004100000000028f577641000000000001000001a1ffca75b9000001a1ffca75b9ffffffffffffffff000000000000000000020e00' +
    '0000010261000e00000201026200',
  'hex',
)
const producedV7 = Buffer.from(
  '00000036000000010000000100066f7264657273000000010000000000000000000000000001ffffffffffffffff000000000000000000000000',
  'hex',
)
const fetchV11 = Buffer.from(
  '000000750001000b00000005000473686f70ffffffff0000012c0000000100a000000100000000ffffffff0000000100066f72646572730000' +
    '000200000001ffffffff0000000000000005ffffffffffffffff0010000000000000ffffffff0000000000000008ffffffffffffffff0010' +
    '0000000000000000',
  'hex',
)
const fetchedV11 = Buffer.from(
  '000000ba00000005000000000000000000000000000100066f726465727300000002000000010000000000000000000500000000000000050000' +
    '00000000000000000000ffffffff0000000000000000000000000000000000090000000000000009000000000000000000000000ffffffff' +
    '0000004800000000000000080000003c00000000027c2e19f3000000000000000001a1ffca7bf0000001a1ffca7bf0ffffffffffffffff00' +
    '0000000000000000011400000001086c61746500',
  'hex',
)

interface Part {
  readonly partition: number
  readonly records?: Buffer | null
  readonly error?: number
}

interface Topic {
  readonly name: string | Buffer
  readonly parts: readonly Part[]
}

const orders: Topic = { name: 'orders', parts: [{ partition: 3, records: recordBatch(5) }] }

function writeTopics(write: KafkaWriter, topics: readonly Topic[], part: (part: Part) => void): KafkaWriter {
  return write.list(topics, ({ name, parts }) => {
    if (typeof name === 'string') write.text(name)
    else write.raw(name)
    write.list(parts, each => {
      part(each)
      write.tags()
    })
    write.tags()
  })
}

function produce(id: number, version: number, topics: readonly Topic[], acks = -1): Buffer {
  const flexible = version >= 9
  const write = new KafkaWriter(flexible)
  if (version >= 3) write.text(null)
  write.int16(acks).int32(30_000)
  writeTopics(write, topics, ({ partition, records = null }) =>
    write.int32(partition).content(records),
  ).tags()
  return kafkaRequest(produceKey, version, id, client, write.bytes, flexible)
}

function produced(id: number, version: number, topics: readonly Topic[]): Buffer {
  const flexible = version >= 9
  const write = new KafkaWriter(flexible)
  writeTopics(write, topics, ({ partition, error = 0 }) => {
    write.int32(partition).int16(error).int64(7)
    if (version >= 2) write.int64(-1)
    if (version >= 5) write.int64(0)
    if (version >= 8) write.list([1], row => write.int32(row).text('no').tags()).text('refused')
  })
  if (version >= 1) write.int32(0)
  return kafkaResponse(id, write.tags().bytes, flexible)
}

function fetch(id: number, version: number, topics: readonly Topic[], replica = -1): Buffer {
  const flexible = version >= 12
  const write = new KafkaWriter(flexible)
  if (version < 15) write.int32(replica)
  write.int32(500).int32(1)
  if (version >= 3) write.int32(2 ** 20)
  if (version >= 4) write.int8(0)
  if (version >= 7) write.int32(0).int32(-1)
  writeTopics(write, topics, ({ partition }) => {
    write.int32(partition)
    if (version >= 9) write.int32(-1)
    write.int64(0)
    if (version >= 12) write.int32(-1)
    if (version >= 5) write.int64(-1)
    write.int32(2 ** 20)
  })
  if (version >= 7) write.list([], () => {})
  if (version >= 11) write.text('')
  if (version < 15 || replica < 0) write.tags()
  else write.unsigned(1).unsigned(1).unsigned(13).int32(replica).int64(0).tags()
  return kafkaRequest(fetchKey, version, id, client, write.bytes, flexible)
}

function fetched(id: number, version: number, topics: readonly Topic[], error = 0): Buffer {
  const flexible = version >= 12
  const write = new KafkaWriter(flexible)
  if (version >= 1) write.int32(0)
  if (version >= 7) write.int16(error).int32(0)
  writeTopics(write, topics, part => {
    write
      .int32(part.partition)
      .int16(part.error ?? 0)
      .int64(9)
    if (version >= 4) write.int64(9)
    if (version >= 5) write.int64(0)
    if (version >= 4) write.list([1], row => write.int64(row).int64(0).tags())
    if (version >= 11) write.int32(-1)
    write.content(part.records ?? Buffer.alloc(0))
  })
  return kafkaResponse(id, write.tags().bytes, flexible)
}

function metadata(id: number, version: number, topic: string): readonly [Buffer, Buffer] {
  const write = new KafkaWriter(true).int32(0)
  write.list([1], node => write.int32(node).text('broker').int32(9092).text(null).tags())
  write.text('cluster').int32(1)
  write.list([topic], name => {
    write.int16(0).text(name).raw(topicId).int8(0)
    write.list([0, 1], partition => {
      write.int16(0).int32(partition).int32(1).int32(0)
      for (let i = 0; i < 3; i++) write.list([1, 2], node => write.int32(node))
      write.tags()
    })
    write.int32(0).tags()
  })
  const request = kafkaRequest(
    metadataKey,
    version,
    id,
    client,
    new KafkaWriter(true).unsigned(0).int8(1).tags().bytes,
    true,
  )
  return [request, kafkaResponse(id, write.tags().bytes, true)]
}

/** A connection whose broker has answered. */
function open(options: SessionOptions = {}, unit = kafka): StreamSession {
  return new StreamSession(unit, options)
    .client(kafkaRequest(apiVersionsKey, 2, 0, client, Buffer.alloc(0)))
    .serverSays(kafkaResponse(0, Buffer.alloc(10)))
}

function talk(request: Buffer, answer: Buffer): StreamSession {
  return open().client(request).serverSays(answer)
}

test('a request that sends records has a name, attributes, dimensions and times', () => {
  const session = talk(produce(7, 7, [orders]), produced(7, 7, [orders]))
  assert.equal(session.asked, 1)
  assert.deepEqual(session.ended, [
    {
      name: 'send orders',
      error: '',
      kind: 4,
      signalType: 'kafka',
      attributes: {
        'messaging.system': 'kafka',
        'messaging.operation.name': 'send',
        'messaging.operation.type': 'send',
        'messaging.destination.name': 'orders',
        'server.address': '10.0.0.2',
        'server.port': 4000,
        'network.peer.address': '10.0.0.2',
        'network.peer.port': 4000,
        'messaging.destination.partition.id': '3',
        'messaging.client.id': 'shop',
        'messaging.batch.message_count': 5,
      },
      dimensions: {
        'messaging.system': 'kafka',
        'messaging.operation.name': 'send',
        'messaging.operation.type': 'send',
        'server.address': '10.0.0.2',
        'server.port': 4000,
        'messaging.destination.name': 'orders',
      },
      duration: 'messaging.client.operation.duration',
      startMs: 3,
      responseMs: 4,
      endMs: 4,
      requestBytes: produce(7, 7, [orders]).length,
      responseBytes: produced(7, 7, [orders]).length,
      sequence: session.ended[0]!.sequence,
      telemetry: false,
      context: '',
      state: '',
    },
  ])
})

test('every version of the requests is read', () => {
  for (let version = 0; version <= 12; version++) {
    const failed = { ...orders, parts: [{ partition: 3, error: 6 }] }
    const [operation] = talk(produce(7, version, [orders]), produced(7, version, [failed])).ended
    assert.equal(operation?.name, 'send orders', `Produce ${version}`)
    assert.equal(operation.error, 'NOT_LEADER_OR_FOLLOWER')
    assert.equal(operation.attributes['messaging.batch.message_count'], 5)
    assert.equal(operation.attributes['messaging.client.id'], 'shop')
  }
  for (let version = 0; version <= 12; version++) {
    const session = talk(fetch(7, version, [orders]), fetched(7, version, [orders]))
    const [operation] = session.ended
    assert.equal(operation?.name, 'poll orders', `Fetch ${version}`)
    assert.equal(operation.kind, 3)
    assert.equal(operation.attributes['messaging.operation.type'], 'receive')
    assert.equal(operation.attributes['messaging.destination.partition.id'], '3')
    assert.equal(operation.attributes['messaging.batch.message_count'], 5)
    session
      .client(fetch(8, version, [orders]))
      .serverSays(fetched(8, version, [{ ...orders, parts: [{ partition: 3 }] }]))
    assert.equal(session.ended.length, 1)
    assert.equal(session.streams.inFlight, 0)
  }
})

test('topics that are only identified have the names that some client asked for', () => {
  const identified = { ...orders, name: topicId }
  const shared = kafka.create({ route: () => '' })
  const unit = { ...kafka, create: () => shared }
  const check = (topic: Topic, produceName: string, fetchName: string) => {
    const session = open({}, unit)
      .client(produce(7, 13, [topic]))
      .serverSays(produced(7, 13, [topic]))
      .client(fetch(8, 16, [topic]))
      .serverSays(fetched(8, 16, [topic]))
    assert.deepEqual(
      session.ended.map(({ name }) => name),
      [produceName, fetchName],
    )
  }
  check(identified, 'send', 'poll')
  const [request, answer] = metadata(9, 12, 'orders')
  open({}, unit).client(request).serverSays(answer)
  check(identified, 'send orders', 'poll orders')
  check({ ...orders, name: strangeId }, 'send', 'poll')
})

test('what is about several topics or partitions names none', () => {
  const batch = recordBatch(2)
  const two: Topic = {
    name: 'orders',
    parts: [
      { partition: 0, records: batch },
      { partition: 1, records: batch },
    ],
  }
  const bills: Topic = { name: 'bills', parts: [{ partition: 0, records: batch }] }
  const check = (topics: Topic[], name: string, partition: string | undefined, count: number) => {
    for (const session of [
      talk(produce(7, 9, topics), produced(7, 9, topics)),
      talk(fetch(7, 11, topics), fetched(7, 11, topics)),
    ]) {
      const [operation] = session.ended
      assert.equal(operation?.name.slice(5), name)
      assert.equal(operation.attributes['messaging.destination.partition.id'], partition)
      assert.equal(operation.attributes['messaging.batch.message_count'], count)
    }
  }
  check([bills], 'bills', '0', 2)
  check([two], 'orders', undefined, 4)
  check([two, bills], '', undefined, 6)
})

test('only partitions that brought records count', () => {
  const empty: Part = { partition: 0 }
  const answer = fetched(7, 11, [
    { name: 'bills', parts: [empty] },
    {
      name: 'orders',
      parts: [empty, { partition: 1, records: Buffer.concat([recordBatch(2), recordBatch(3)]) }],
    },
  ])
  const [operation] = talk(fetch(7, 11, []), answer).ended
  assert.equal(operation?.name, 'poll orders')
  assert.equal(operation.attributes['messaging.destination.partition.id'], '1')
  assert.equal(operation.attributes['messaging.batch.message_count'], 5)
})

test('messages are counted where that is certain', () => {
  const control = recordBatch(1, 20, 0x20)
  const old = Buffer.concat([Buffer.alloc(11), Buffer.from([20]), Buffer.alloc(80)])
  const check = (records: Buffer, count: number | undefined) => {
    const part = { partition: 0, records }
    const [operation] = talk(fetch(7, 11, []), fetched(7, 11, [{ name: 'orders', parts: [part] }])).ended
    assert.equal(operation?.attributes['messaging.batch.message_count'], count)
  }
  check(recordBatch(1), 1)
  check(Buffer.concat([recordBatch(4), control]), 4)
  check(Buffer.concat([recordBatch(4), recordBatch(9).subarray(0, 70)]), 4)
  check(Buffer.concat([recordBatch(4), recordBatch(9).subarray(0, 20)]), 4)
  check(old, undefined)
  const only = talk(
    fetch(7, 11, []),
    fetched(7, 11, [{ name: 'orders', parts: [{ partition: 0, records: control }] }]),
  )
  assert.deepEqual(only.ended, [])
})

test('a fetch that fails is an operation', () => {
  const [whole] = talk(fetch(7, 11, [orders]), fetched(7, 11, [], 70)).ended
  assert.equal(whole?.name, 'poll')
  assert.equal(whole.error, 'FETCH_SESSION_ID_NOT_FOUND')
  const failed = fetched(7, 11, [{ name: 'orders', parts: [{ partition: 1, error: 1 }] }])
  const [partly] = talk(fetch(7, 11, [orders]), failed).ended
  assert.equal(partly?.name, 'poll orders')
  assert.equal(partly.error, 'OFFSET_OUT_OF_RANGE')
})

test('error codes have their names', () => {
  const check = (error: number, name: string) => {
    const answer = produced(7, 8, [{ name: 'orders', parts: [{ partition: 0 }, { partition: 1, error }] }])
    const [operation] = talk(produce(7, 8, [orders]), answer).ended
    assert.equal(operation?.error, name)
    assert.equal(operation.attributes['error.type'], name === '' ? undefined : name)
    assert.equal(operation.dimensions['error.type'], name === '' ? undefined : name)
  }
  check(0, '')
  check(-1, 'UNKNOWN_SERVER_ERROR')
  check(3, 'UNKNOWN_TOPIC_OR_PARTITION')
  check(29, 'TOPIC_AUTHORIZATION_FAILED')
  check(87, 'INVALID_RECORD')
  check(100, 'UNKNOWN_TOPIC_ID')
  check(9_999, '_OTHER')
})

test('a broker that copies a partition makes no operations', () => {
  for (const version of [4, 11, 12, 15, 17]) {
    const topic = version >= 13 ? { ...orders, name: topicId } : orders
    const session = talk(fetch(7, version, [topic], 2), fetched(7, version, [topic])).close()
    assert.deepEqual(session.ended, [])
    assert.equal(session.streams.inFlight, 0)
  }
})

test('what is sent without acknowledgement is done when it is sent', () => {
  const session = open()
    .client(produce(7, 7, [orders], 0))
    .client(produce(8, 7, [orders]))
  assert.equal(session.ended.length, 1)
  assert.equal(session.ended[0]?.name, 'send orders')
  session.serverSays(produced(8, 7, [orders])).close()
  assert.equal(session.ended.length, 2)
  assert.ok(session.ended.every(({ error }) => error === ''))
})

test('a connection joined late tells of what is sent without acknowledgement', () => {
  const session = new StreamSession(kafka, { joined: true })
  for (let id = 7; id < 10; id++) session.client(produce(id, 9, [orders], 0))
  assert.equal(session.ended.length, 3)
})

test('the consumer group is known from any connection of the client', () => {
  const shared = kafka.create({ route: () => '' })
  const unit = { ...kafka, create: () => shared }
  const heartbeat = (id: number, group: string) =>
    kafkaRequest(
      heartbeatKey,
      3,
      id,
      client,
      new KafkaWriter().text(group).int32(1).text('me').text(null).bytes,
    )
  const groupOf = () => {
    const session = open({}, unit)
      .client(fetch(7, 11, [orders]))
      .serverSays(fetched(7, 11, [orders]))
    const { attributes, dimensions } = session.ended[0]!
    assert.equal(attributes['messaging.consumer.group.name'], dimensions['messaging.consumer.group.name'])
    return attributes['messaging.consumer.group.name']
  }
  assert.equal(groupOf(), undefined)
  open({}, unit).client(heartbeat(1, 'readers')).client(heartbeat(2, 'readers'))
  assert.equal(groupOf(), 'readers')
  const both = open({}, unit)
    .client(heartbeat(1, 'writers'))
    .serverSays(kafkaResponse(1, Buffer.alloc(6)))
  both.client(fetch(7, 11, [orders])).serverSays(fetched(7, 11, [orders]))
  assert.equal(both.ended[0]?.attributes['messaging.consumer.group.name'], 'writers')
  assert.equal(groupOf(), undefined)
})

test('pipelined requests are matched by their numbers', () => {
  const session = open()
  const ids = Array.from({ length: 1_000 }, (_, i) => i + 10)
  session.client(Buffer.concat(ids.map(id => produce(id, 7, [{ ...orders, name: `topic ${id % 50}` }]))))
  session.serverSays(Buffer.concat(ids.map(id => produced(id, 7, [orders]))))
  assert.deepEqual(
    session.ended.map(({ name }) => name),
    ids.map(id => `send topic ${id % 50}`),
  )
  assert.equal(session.streams.inFlight, 0)
})

test('what is under way when the connection ends has failed, but for a fetch that waits', () => {
  const check = (request: Buffer, errno: number, ...errors: string[]) => {
    const session = open().client(request).close(errno)
    assert.deepEqual(
      session.ended.map(({ error }) => error),
      errors,
    )
    assert.equal(session.streams.inFlight, 0)
  }
  check(produce(7, 7, [orders]), 0, 'connection_closed')
  check(produce(7, 7, [orders]), 104, 'connection_reset')
  check(fetch(7, 11, [orders]), 0)
  check(fetch(7, 11, [orders]), 104, 'connection_reset')
  check(metadata(7, 10, 'orders')[0], 104)
})

test('the middle of long messages need not be captured', () => {
  const long: Topic = { name: 'orders', parts: [{ partition: 3, records: recordBatch(5, 100_000) }] }
  const session = open()
  session.capture = 4_200
  for (let id = 10; id < 15; id++) {
    session.client(produce(id, 9, [long])).serverSays(produced(id, 9, [long]))
    session.client(fetch(id + 100, 11, [long])).serverSays(fetched(id + 100, 11, [long]))
  }
  assert.equal(session.lost, 0)
  assert.deepEqual(
    session.ended.map(({ name }) => name),
    Array.from({ length: 10 }, (_, i) => (i % 2 === 0 ? 'send orders' : 'poll orders')),
  )
  for (const { attributes, endMs, startMs } of session.ended) {
    assert.equal(attributes['messaging.batch.message_count'], 5)
    assert.equal(endMs - startMs, 1)
  }
})

test('the end of an answer counts, wherever its calls were cut', () => {
  const long: Topic = { name: 'orders', parts: [{ partition: 3, records: recordBatch(5, 60_000) }] }
  const answer = fetched(7, 11, [long])
  const session = open().client(fetch(7, 11, [orders]))
  session.capture = 5_000
  session.serverSays(answer.subarray(0, 4))
  for (let at = 4; at < answer.length; at += 20_000) session.serverSays(answer.subarray(at, at + 20_000))
  assert.equal(session.ended[0]?.responseMs, 4)
  assert.equal(session.ended[0].endMs, 8)
})

test('a produce whose answer was lost ends when a later one is answered', () => {
  const session = open()
    .client(produce(7, 7, [orders]))
    .lose(false, 58)
    .client(produce(8, 7, [orders]))
  session.serverSays(produced(8, 7, [orders]))
  assert.deepEqual(
    session.ended.map(({ error, startMs }) => ({ error, startMs })),
    [
      { error: '', startMs: 3 },
      { error: '', startMs: 4 },
    ],
  )
  assert.equal(session.streams.inFlight, 0)
})

test('a connection that is older than the agent is read from its next request on', () => {
  const check = (...cuts: number[]) => {
    const session = new StreamSession(kafka, { joined: true })
      .client('the end of some records')
      .serverSays(produced(6, 7, [orders]))
      .client(produce(7, 7, [orders]))
    const answer = produced(7, 7, [orders])
    let at = 0
    for (const cut of [...cuts, answer.length]) {
      session.serverSays(answer.subarray(at, cut))
      at = cut
    }
    assert.equal(session.ended[0]?.name, 'send orders')
    assert.equal(session.ended.length, 1)
  }
  check()
  check(4)
  check(4, 6)
})

test('what is no Kafka is refused, and leaves nothing behind', () => {
  const check = (session: StreamSession) => {
    assert.equal(session.refused, true)
    assert.equal(session.streams.inFlight, 0)
    assert.deepEqual(session.ended, [])
    assert.equal(session.asked, 0)
    assert.equal(session.lost, 0)
  }
  const text = new StreamSession(kafka)
  for (let i = 0; i < 20; i++) text.client(produce(i, 7, [orders])).serverSays('250 2.1.0 Ok\r\n')
  check(text)
  check(new StreamSession(kafka, { server: true }).client(produce(7, 7, [orders])))
  const numbers = new StreamSession(kafka)
  for (let id = 1; id < 5; id++)
    numbers.client(produce(id, 7, [orders])).serverSays(produced(100 + id, 7, [orders]))
  check(numbers)
  const silent = new StreamSession(kafka).client(produce(7, 7, [orders])).close(104)
  assert.deepEqual(silent.ended, [])
})

const refused: Topic = { name: 'refused', parts: [{ partition: 0, records: recordBatch(1), error: 29 }] }
const conversation: Call[] = [
  ['client', apiVersions],
  ['server', kafkaResponse(0, Buffer.alloc(12))],
  ['client', metadata(2, 12, 'orders')[0]],
  ['server', metadata(2, 12, 'orders')[1]],
  ['client', produceV7],
  ['server', producedV7],
  ['client', Buffer.concat([produce(3, 9, [orders]), produce(4, 9, [orders], 0), produce(6, 8, [refused])])],
  ['server', Buffer.concat([produced(3, 9, [orders]), produced(6, 8, [refused])])],
  ['client', fetchV11],
  ['server', fetchedV11],
  ['client', fetch(7, 16, [{ ...orders, name: topicId }])],
  ['server', fetched(7, 16, [{ ...orders, name: topicId }])],
  ['client', fetch(8, 11, [orders])],
  ['server', fetched(8, 11, [])],
  ['client', fetch(9, 11, [orders])],
]

test('what a real client sends is read', () => {
  const session = replay(kafka, conversation)
  const said = session.ended.map(({ name, error, attributes }) => [
    name,
    error,
    attributes['messaging.destination.partition.id'],
    attributes['messaging.batch.message_count'],
  ])
  assert.deepEqual(said, [
    ['send orders', '', '0', 2],
    ['send orders', '', '3', 5],
    ['send orders', '', '3', 5],
    ['send refused', 'TOPIC_AUTHORIZATION_FAILED', '0', 1],
    ['poll orders', '', '0', 1],
    ['poll orders', '', '3', 5],
  ])
})

test('the same bytes in other calls are the same operations', () => {
  const whole = replay(kafka, [...conversation, 'closed'])
  const cut = replay(kafka, byteByByte([...conversation, 'closed']))
  const sorted = (session: StreamSession) =>
    withoutTimes(session.ended).sort((one, other) => one.sequence - other.sequence)
  assert.equal(whole.ended.length, 6)
  assert.deepEqual(sorted(cut), sorted(whole))
})

test('a conversation may break off at every byte', () => checkTruncations(kafka, conversation))

test('no bytes do harm', () => checkHostileInputs(kafka, conversation))

test('the kernel side recognises it by its first bytes', () => {
  const flexible = kafkaRequest(
    apiVersionsKey,
    4,
    0,
    'client',
    new KafkaWriter(true).text('java').text('4.1').tags().bytes,
    true,
  )
  const long: Topic = { name: 'orders', parts: [{ partition: 0, records: recordBatch(1, 90_000) }] }
  const own: Opening[] = [
    { bytes: apiVersions },
    { bytes: flexible },
    { bytes: kafkaRequest(apiVersionsKey, 0, 1, null, Buffer.alloc(0)) },
    { bytes: kafkaRequest(17, 1, 1, 'rdkafka', new KafkaWriter().text('PLAIN').bytes) },
    { bytes: metadata(1, 12, 'orders')[0] },
    { bytes: produceV7, joined: true },
    { bytes: fetchV11, joined: true },
    { bytes: produce(1, 13, [{ ...orders, name: topicId }]), joined: true },
    { bytes: fetch(2 ** 31 - 1, 17, []), joined: true },
    { bytes: Buffer.concat([produceV7, produceV7]), joined: true },
    { bytes: produce(1, 9, [long]), joined: true, length: 65_536 },
  ]
  for (const [i, found] of classify(own).entries())
    assert.deepEqual(found, { protocol: 'kafka', from: 'client' }, `opening ${i}`)
  const foreign = [
    'GET / HTTP/1.1\r\nHost: a\r\n\r\n',
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    '\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64\x00\x04\x00\xa0\x00\x00',
    '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    '220 mail.example.org ESMTP\r\n',
    'SSH-2.0-OpenSSH_9.2\r\n',
    '*1\r\n$4\r\nPING\r\n',
    '\x00\x00\x00\x29\x00\x03\x00\x00user\x00svc\x00database\x00svc\x00\x00',
    '\x00\x00\x00\x08\x04\xd2\x16\x2f',
    'AMQP\x00\x00\x09\x01',
    '\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04name',
    '\x00\x1c\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03www\x07example\x03org\x00\x00\x01\x00\x01',
    '\x01\x00\x00\x00\x0eselect 1 as one',
    '',
  ]
  const openings = foreign.flatMap(bytes => [{ bytes }, { bytes, joined: true }])
  const answers = [producedV7, fetchedV11, produced(5, 7, [orders])].map(bytes => ({
    bytes,
    joined: true,
    received: true,
  }))
  for (const [i, { protocol }] of classify([...answers, ...openings]).entries())
    assert.notEqual(protocol, 'kafka', `opening ${i}`)
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
  assert.ok(classify(openings).every(({ protocol }) => protocol !== 'kafka'))
})
