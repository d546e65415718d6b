/**
 * What reading a connection's bytes costs in user space, by protocol: nanoseconds from the segments of an operation to
 * its end, with an empty sink; and of a segment in the midst of a long message, which is passed over.
 *
 * at most: 3 min
 */
import { Segment } from '../src/foundation/model/stream.ts'
import { protocols } from '../src/signals/traces/protocols/index.ts'
import type { OperationSink } from '../src/signals/traces/tracing/operation-pool.ts'
import { Streams } from '../src/signals/traces/tracing/streams.ts'
import { report } from './lib/figures.ts'

type Say = readonly [from: 'client' | 'server', bytes: Buffer]

interface Conversation {
  readonly protocol: string
  /** In the name of its figure. */
  readonly what: string
  readonly opening: readonly Say[]
  /** Said again and again. */
  readonly round: readonly Say[]
  readonly operations: number
  /** Numbers a round whose messages must not repeat. */
  readonly number?: (round: number) => void
}

const rounds = 7
const roundsOfTalk = 50_000
const segmentBytes = 1_024

const text = (content: string) => Buffer.from(content, 'latin1')
const hex = (content: string) => Buffer.from(content.replaceAll(' ', ''), 'hex')
const client = (bytes: Buffer): Say => ['client', bytes]
const server = (bytes: Buffer): Say => ['server', bytes]

function int32(value: number): string {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes.toString('latin1')
}

/** A message of PostgreSQL's. */
function postgres(type: string, body: string): string {
  return `${type}${int32(body.length + 4)}${body}`
}

/** A packet of MySQL's. */
function mysql(sequence: number, payload: string): string {
  return `${String.fromCharCode(payload.length & 255, payload.length >> 8, 0, sequence)}${payload}`
}

/** Field of an HTTP/2 header block that enters no table. */
function field(name: string, value: string): string {
  return `\0${String.fromCharCode(name.length)}${name}${String.fromCharCode(value.length)}${value}`
}

/** A frame of HTTP/2 for a stream that is filled in later. */
function frame(type: number, flags: number, payload = ''): Buffer {
  return text(`${int32(payload.length).slice(1)}${String.fromCharCode(type, flags)}${int32(0)}${payload}`)
}

const statement =
  'SELECT id, name, price FROM items WHERE category = $1 AND price < 100 ORDER BY name LIMIT 10'
const row = postgres('D', `\0\x01${int32(20)}${'x'.repeat(20)}`)
const ready = postgres('Z', 'I')
const question = frame(
  1,
  5,
  field(':method', 'GET') +
    field(':path', '/users/42') +
    field(':scheme', 'http') +
    field(':authority', 'a.example') +
    field('user-agent', 'bench/1'),
)
const answerHead = frame(1, 4, field(':status', '200') + field('content-type', 'text/plain'))
const answer = Buffer.concat([answerHead, frame(0, 1, 'hello')])

/** Streams of HTTP/2 have odd numbers that rise. */
function numberStream(round: number): void {
  const stream = 2 * round + 1
  question.writeUInt32BE(stream, 5)
  answer.writeUInt32BE(stream, 5)
  answer.writeUInt32BE(stream, answerHead.length + 5)
}

const conversations: readonly Conversation[] = [
  {
    protocol: 'http1',
    what: 'get',
    opening: [],
    round: [
      client(text('GET /users/42 HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\nUser-Agent: bench/1\r\n\r\n')),
      server(text('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 12\r\n\r\nHello world!')),
    ],
    operations: 1,
  },
  {
    protocol: 'http2',
    what: 'get',
    opening: [
      client(Buffer.concat([text('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, 0)])),
      server(frame(4, 0)),
    ],
    round: [client(question), server(answer)],
    operations: 1,
    number: numberStream,
  },
  {
    protocol: 'postgres',
    what: 'extended_query',
    opening: [
      client(text(postgres('', `${int32(196_608)}user\0shop\0database\0shop\0\0`))),
      server(text(postgres('R', int32(0)) + ready)),
    ],
    round: [
      client(
        text(
          postgres('P', `\0${statement}\0\0\0`) +
            postgres('B', `\0\0\0\0\0\x01${int32(1)}1\0\0`) +
            postgres('D', 'P\0') +
            postgres('E', `\0${int32(0)}`) +
            postgres('S', ''),
        ),
      ),
      server(
        text(postgres('1', '') + postgres('2', '') + row.repeat(10) + postgres('C', 'SELECT 10\0') + ready),
      ),
    ],
    operations: 1,
  },
  {
    protocol: 'mysql',
    what: 'statement',
    opening: [
      server(
        text(
          mysql(
            0,
            `\x0a8.4.0\0\x08\0\0\0challeng\0\xff\xf7\x2d\x02\0\xff\x81\x15${'\0'.repeat(10)}challenge123\0mysql_native_password\0`,
          ),
        ),
      ),
      client(
        text(
          mysql(
            1,
            `\x08\x82\x0a\0\0\0\0\x01\x2d${'\0'.repeat(23)}shop\0\x14${'p'.repeat(20)}shop\0mysql_native_password\0`,
          ),
        ),
      ),
      server(text(mysql(2, '\0\0\0\x02\0\0\0'))),
    ],
    round: [
      client(text(mysql(0, "\x03UPDATE items SET price = 12, name = 'a' WHERE id = 4711"))),
      server(text(mysql(1, '\0\x01\0\x02\0\0\0'))),
    ],
    operations: 1,
  },
  {
    protocol: 'redis',
    what: 'get',
    opening: [],
    round: [client(text('*2\r\n$3\r\nGET\r\n$8\r\nsession1\r\n')), server(text('$11\r\nhello world\r\n'))],
    operations: 1,
  },
  {
    protocol: 'redis',
    what: 'pipeline_of_100',
    opening: [],
    round: [
      client(text('*2\r\n$3\r\nGET\r\n$8\r\nsession1\r\n'.repeat(100))),
      server(text('$11\r\nhello world\r\n'.repeat(100))),
    ],
    operations: 100,
  },
  {
    protocol: 'memcached',
    what: 'get',
    opening: [],
    round: [client(text('get session1\r\n')), server(text('VALUE session1 0 11\r\nhello world\r\nEND\r\n'))],
    operations: 1,
  },
  {
    protocol: 'mongodb',
    what: 'insert',
    opening: [],
    round: [
      client(
        hex(
          '980000000300000000000000dd07000000000000008300000002696e73657274000600000075736572730004646f63756d656e7473' +
            '00250000000330001d00000010610001000000075f6964006b01fd0ef4c358940af8fbe30000086f7264657265640001036c73' +
            '6964001e000000056964001000000004863887bc2ca9452c80ddbaa7e506e4080002246462000500000073686f700000',
        ),
      ),
      server(hex('260000000900000003000000dd0700000000000000 11000000 016f6b00000000000000f03f 00')),
    ],
    operations: 1,
  },
  {
    protocol: 'kafka',
    what: 'produce',
    opening: [],
    round: [
      client(
        hex(
          '0000007b0000000700000001000473686f70ffffffff000075300000000100066f726465727300000001000000000000004d000000' +
            '00000000000000004100000000028f577641000000000001000001a1ffca75b9000001a1ffca75b9ffffffffffffffff00' +
            '0000000000000000020e000000010261000e00000201026200',
        ),
      ),
      server(
        hex(
          '00000036000000010000000100066f7264657273000000010000000000000000000000000001ffffffffffffffff00000000000000' +
            '0000000000',
        ),
      ),
    ],
    operations: 1,
  },
  {
    protocol: 'amqp',
    what: 'publish',
    opening: [
      client(hex('414d515000000901')),
      server(hex('0100000000001c000a000a000900000000 00000005504c41494e00000005656e5f5553ce')),
    ],
    round: [
      client(
        hex(
          '0100010000000f003c0028000000066f726465727300ce 0200010000000f003c0000000000000000000510000001ce' +
            '0300010000000568656c6c6fce',
        ),
      ),
    ],
    operations: 1,
  },
  {
    protocol: 'mqtt',
    what: 'publish_qos_1',
    opening: [client(hex('10 0e 0004 4d515454 04 02 003c 0002 6331')), server(hex('20 02 00 00'))],
    round: [client(hex('32 0f 0006 73686f702f61 0001 68656c6c6f')), server(hex('40 02 0001'))],
    operations: 1,
  },
  {
    protocol: 'nats',
    what: 'request',
    opening: [
      server(text('INFO {"proto":1} \r\n')),
      client(text('CONNECT {}\r\nPING\r\n')),
      server(text('PONG\r\n')),
    ],
    round: [
      client(text('PUB prices.get _INBOX.0Q7XKJW5X9ZB4ZIPGCQ5VW.A1 1\r\n?\r\n')),
      server(text('MSG _INBOX.0Q7XKJW5X9ZB4ZIPGCQ5VW.A1 2 6\r\nanswer\r\n')),
    ],
    operations: 1,
  },
  {
    protocol: 'dns',
    what: 'lookup',
    opening: [],
    round: [
      client(hex('1406010000010000000000000357656204746573740000010001')),
      server(hex('1406858000010001000000000357656204746573740000010001c00c000100010000000000040a010203')),
    ],
    operations: 1,
  },
]

/** Heads of messages that are followed by a gigabyte of their content at most. */
const longOnes: readonly { readonly protocol: string; readonly says: readonly Say[] }[] = [
  {
    protocol: 'http1',
    says: [
      client(text('GET / HTTP/1.1\r\nHost: a\r\n\r\n')),
      server(text('HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n')),
    ],
  },
  {
    protocol: 'redis',
    says: [client(text('*2\r\n$3\r\nGET\r\n$1\r\na\r\n')), server(text('$500000000\r\n'))],
  },
  {
    protocol: 'nats',
    says: [
      server(text('INFO {"proto":1} \r\n')),
      client(text('CONNECT {}\r\n')),
      server(text('MSG a 1 1000000000\r\n')),
    ],
  },
]

/** One connection, fed as a capture does it. */
class Connection {
  ended = 0
  readonly #streams: Streams
  readonly #segment = new Segment()
  readonly #positions = { client: 0, server: 0 }

  constructor(protocol: string) {
    const sink: OperationSink = {
      begin: () => {},
      end: () => this.ended++,
      abandon: () => {},
      lost: () => {},
      refuse: () => {
        throw new Error(`${protocol}: refused`)
      },
    }
    const unit = protocols.find(({ name }) => name === protocol)!
    this.#streams = new Streams([unit.create({ route: (_operation, path) => path })], sink)
    Object.assign(this.#segment, {
      connection: 1,
      protocol,
      pid: 100,
      comm: 'bench',
      localAddress: '10.0.0.1',
      localPort: 50_000,
      peerAddress: '10.0.0.2',
      peerPort: 4000,
    })
  }

  say(from: 'client' | 'server', bytes: Buffer): void {
    const segment = this.#segment
    const positions = this.#positions
    segment.received = from === 'server'
    segment.bytes = bytes
    segment.end = bytes.length
    segment.length = bytes.length
    segment.timeNs += 1000
    segment.position = positions[from] >>> 0
    positions[from] += bytes.length
    this.#streams.segment(segment)
  }

  all(says: readonly Say[]): void {
    for (const [from, bytes] of says) this.say(from, bytes)
  }

  /** Has the sink told of those that wait for a turn of the loop, which there is none of here. */
  settle(): void {
    this.#streams.settle()
  }
}

/** Runs it `rounds` times, and once before. Reports nanoseconds of one of `count`. */
function measure(name: string, count: number, run: () => void): void {
  run()
  const times = Array.from({ length: rounds }, () => {
    const start = process.hrtime.bigint()
    run()
    return Number(process.hrtime.bigint() - start) / count
  })
  report(`protocols.${name}`, times, 'ns', 'less')
}

for (const { protocol, what, opening, round, operations, number } of conversations) {
  const talks = Math.ceil(roundsOfTalk / operations)
  const connection = new Connection(protocol)
  let told = 0
  connection.all(opening)
  measure(`${protocol}.${what}.ns_per_operation`, talks * operations, () => {
    for (let i = 0; i < talks; i++) {
      number?.(told++)
      connection.all(round)
    }
  })
  connection.settle()
  const expected = (rounds + 1) * talks * operations
  if (connection.ended !== expected) throw new Error(`${protocol}: ${connection.ended} of ${expected} ended`)
}

for (const { protocol, says } of longOnes) {
  const connection = new Connection(protocol)
  connection.all(says)
  const content = Buffer.alloc(segmentBytes, 0x61)
  measure(`${protocol}.long_message.ns_per_segment`, roundsOfTalk, () => {
    for (let i = 0; i < roundsOfTalk; i++) connection.say('server', content)
  })
}
