import assert from 'node:assert/strict'
import { connect, createServer, type Http2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import { block, frame } from '../../../../test/helpers/http2-bytes.ts'
import { GrpcShopper, startGrpc } from '../../../../test/helpers/servers/grpc.ts'
import { RecordingProxy, type Said } from '../../../../test/helpers/servers/recording-proxy.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import { type SessionOptions, StreamSession } from '../../../../test/helpers/stream-session.ts'
import { http2 } from './http2.ts'

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
const [DATA, HEADERS, RESET, SETTINGS, PUSH, GOAWAY, UPDATE, CONTINUATION] = [0, 1, 3, 4, 5, 7, 8, 9] as const
const [END, WHOLE, PADDED, PRIORITY] = [1, 4, 8, 32] as const

const settings = frame(SETTINGS, 0, 0)
const u32 = (value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
const get = {
  ':method': 'GET',
  ':path': '/users/42?q=1',
  ':scheme': 'http',
  ':authority': 'shop.example:8080',
}
const rpc = {
  ':method': 'POST',
  ':path': '/shop.Items/Get',
  ':scheme': 'http',
  ':authority': 'shop.example:8080',
  'content-type': 'application/grpc+proto',
}
const message = Buffer.from([0, 0, 0, 0, 2, 8, 1])
const ask = (stream: number, fields: Readonly<Record<string, string>>, body?: Buffer): Buffer =>
  body === undefined
    ? frame(HEADERS, WHOLE | END, stream, block(fields))
    : Buffer.concat([frame(HEADERS, WHOLE, stream, block(fields)), frame(DATA, END, stream, body)])
const answer = (stream: number, fields: Readonly<Record<string, string>>, body = 'hello'): Buffer =>
  Buffer.concat([frame(HEADERS, WHOLE, stream, block(fields)), frame(DATA, END, stream, Buffer.from(body))])
const ok = { ':status': '200' }
const okRpc = { ':status': '200', 'content-type': 'application/grpc+proto' }
const trailers = (stream: number, status: number) =>
  frame(HEADERS, WHOLE | END, stream, block({ 'grpc-status': String(status), 'grpc-message': 'not told' }))
const answerRpc = (stream: number, status = 0): Buffer =>
  Buffer.concat([
    frame(HEADERS, WHOLE, stream, block(okRpc)),
    frame(DATA, 0, stream, message),
    trailers(stream, status),
  ])

test('what no request line may say is told as such, and never borrows from the request before', () => {
  const session = open()
  session.client(ask(1, { ...get, ':path': '/secret?of=another', ':authority': 'another.example:99' }))
  session.serverSays(answer(1, ok))
  session.client(ask(3, { ...get, ':method': 'A'.repeat(40), ':path': '/x', ':authority': '' }))
  session.serverSays(answer(3, ok))
  session.client(ask(5, { ...get, ':method': 'G(T', ':path': '/y', ':authority': '' }))
  session.serverSays(answer(5, ok))
  session.client(frame(HEADERS, WHOLE, 7, block({ ':method': 'CONNECT', ':authority': ':443' })))
  session.serverSays(frame(HEADERS, WHOLE, 7, block(ok)))
  session.serverSays(frame(RESET, 0, 7, u32(0)))
  assert.deepEqual(
    session.ended
      .slice(1)
      .map(({ name, attributes }) => [
        name,
        attributes['http.request.method'],
        attributes['http.request.method_original'],
        attributes['url.path'],
        attributes['server.address'],
      ]),
    [
      ['HTTP /x', '_OTHER', undefined, '/x', '10.0.0.1'],
      ['HTTP /y', '_OTHER', undefined, '/y', '10.0.0.1'],
      ['CONNECT', 'CONNECT', undefined, undefined, '10.0.0.1'],
    ],
  )
})

/** A connection after both sides' settings. */
function open(options: SessionOptions = {}): StreamSession {
  const session = new StreamSession(http2, { server: true, serverPort: 8080, ...options })
  return session.client(Buffer.concat([preface, settings])).serverSays(settings)
}

/** Name, status and error of each operation. */
function seen(session: StreamSession): string[] {
  return session.ended.map(({ name, error, attributes: a }) =>
    [name, a['http.response.status_code'] ?? a['rpc.response.status_code'] ?? '-', error || 'fine'].join(' '),
  )
}

test('a request is told as one of HTTP/1 is, of version 2', () => {
  const headers = { ...get, 'user-agent': 'curl/8.5', 'x-forwarded-for': '192.0.2.7' }
  const session = open().client(ask(1, headers)).serverSays(answer(1, ok))
  const [one] = session.ended
  assert.equal(one?.name, 'GET /users/42')
  assert.deepEqual([one.kind, one.signalType, one.duration], [2, 'http', 'http.server.request.duration'])
  assert.deepEqual(one.attributes, {
    'http.request.method': 'GET',
    'url.scheme': 'http',
    'url.path': '/users/42',
    'url.query': 'q=1',
    'http.route': '/users/42',
    'server.address': 'shop.example',
    'server.port': 8080,
    'client.address': '192.0.2.7',
    'user_agent.original': 'curl/8.5',
    'http.response.status_code': 200,
    'network.protocol.version': '2',
    'network.peer.address': '10.0.0.2',
    'network.peer.port': 50_000,
    'http.request.body.size': 0,
    'http.response.body.size': 5,
  })
  assert.deepEqual([one.startMs, one.responseMs, one.endMs], [3, 4, 4])
  assert.equal(one.sequence, 1000 + preface.length + 9)
  assert.equal(session.asked, 1)
})

test('a client tells the whole URL, https where the request says so or the connection is inside TLS', () => {
  const url = (options: SessionOptions, fields: Readonly<Record<string, string>>) =>
    open({ server: false, ...options })
      .client(ask(1, fields))
      .serverSays(answer(1, ok)).ended[0]?.attributes['url.full']
  assert.equal(url({}, get), 'http://shop.example:8080/users/42?q=1')
  assert.equal(
    url({ tls: true }, { ...get, ':scheme': 'https', ':authority': 'a' }),
    'https://a/users/42?q=1',
  )
  const { ':scheme': _, ...unsaid } = get
  assert.equal(url({ tls: true }, unsaid), 'https://shop.example:8080/users/42?q=1')
})

test('errors of HTTP are those of each side', () => {
  const error = (server: boolean, status: string) =>
    open({ server })
      .client(ask(1, get))
      .serverSays(answer(1, { ':status': status })).ended[0]?.error
  assert.equal(error(true, '404'), '')
  assert.equal(error(false, '404'), '404')
  assert.equal(error(true, '503'), '503')
})

test('a gRPC call is told in the RPC conventions', () => {
  const session = open({ server: false, serverPort: 8080 })
    .client(ask(1, rpc, message))
    .serverSays(answerRpc(1))
  const [one] = session.ended
  assert.equal(one?.name, 'shop.Items/Get')
  assert.deepEqual(
    [one.kind, one.signalType, one.duration, one.error],
    [3, 'grpc', 'rpc.client.call.duration', ''],
  )
  const [served] = open({ server: true })
    .client(ask(1, rpc, message))
    .serverSays(answerRpc(1)).ended
  assert.deepEqual([served?.kind, served?.duration], [2, 'rpc.server.call.duration'])
  assert.deepEqual(one.attributes, {
    'rpc.system.name': 'grpc',
    'rpc.method': 'shop.Items/Get',
    'server.address': 'shop.example',
    'server.port': 8080,
    'network.peer.address': '10.0.0.2',
    'network.peer.port': 8080,
    'rpc.response.status_code': 'OK',
  })
  assert.deepEqual(one.dimensions, {
    'rpc.system.name': 'grpc',
    'rpc.method': 'shop.Items/Get',
    'server.address': 'shop.example',
    'server.port': 8080,
    'rpc.response.status_code': 'OK',
  })
})

test('a gRPC status is an error of the client unless it is OK, and of the server where it is at fault', () => {
  const errors = (server: boolean) =>
    Array.from({ length: 17 }, (_, status) => status).filter(status => {
      const [one] = open({ server })
        .client(ask(1, rpc, message))
        .serverSays(answerRpc(1, status)).ended
      const name = one?.attributes['rpc.response.status_code']
      assert.equal(one?.error === '' || one?.error === name, true)
      return one?.error !== ''
    })
  assert.deepEqual(
    errors(false),
    Array.from({ length: 16 }, (_, i) => i + 1),
  )
  assert.deepEqual(errors(true), [2, 4, 12, 13, 14, 15])
})

test('a method that a server does not know is none of its names', () => {
  const [one] = open()
    .client(ask(1, rpc, message))
    .serverSays(answerRpc(1, 12)).ended
  assert.equal(one?.name, 'grpc')
  assert.equal(one.attributes['rpc.method'], '_OTHER')
  assert.equal(one.attributes['rpc.method_original'], 'shop.Items/Get')
  assert.equal(one.dimensions['rpc.method_original'], undefined)
  assert.equal(
    open({ server: false })
      .client(ask(1, rpc, message))
      .serverSays(answerRpc(1, 12)).ended[0]?.name,
    'shop.Items/Get',
  )
})

test('an answer of trailers alone, and one without a status of its own', () => {
  const status = (bytes: Buffer) =>
    open({ server: false })
      .client(ask(1, rpc, message))
      .serverSays(bytes).ended[0]?.error
  assert.equal(status(frame(HEADERS, WHOLE | END, 1, block({ ...okRpc, 'grpc-status': '5' }))), 'NOT_FOUND')
  assert.equal(status(answer(1, { ':status': '503' })), 'UNAVAILABLE')
  assert.equal(status(answer(1, ok)), 'UNKNOWN')
  assert.equal(status(trailers(1, 99)), 'UNKNOWN')
})

test('gRPC-Web and other contents are HTTP', () => {
  for (const type of ['application/grpc-web+proto', 'application/json'])
    assert.equal(
      open()
        .client(ask(1, { ...rpc, 'content-type': type }, message))
        .serverSays(answer(1, ok)).ended[0]?.signalType,
      'http',
    )
  for (const type of ['application/grpc', 'application/grpc;x'])
    assert.equal(
      open()
        .client(ask(1, { ...rpc, 'content-type': type }, message))
        .serverSays(answerRpc(1)).ended[0]?.signalType,
      'grpc',
    )
})

test('exports of telemetry are told as such', () => {
  const telemetry = (fields: Readonly<Record<string, string>>) =>
    open({ server: false })
      .client(ask(1, fields, message))
      .serverSays(answerRpc(1)).ended[0]?.telemetry
  const path = '/opentelemetry.proto.collector.trace.v1.TraceService/Export'
  assert.equal(telemetry({ ...rpc, ':path': path }), true)
  assert.equal(
    telemetry({ ...rpc, ':path': path.replaceAll('trace', 'logs').replace('Trace', 'Logs') }),
    true,
  )
  assert.equal(telemetry({ ...rpc, ':path': '/opentelemetry.proto.collector.any/Export' }), false)
  assert.equal(telemetry({ ...rpc, ':path': `${path}/Export` }), false)
  assert.equal(telemetry(rpc), false)
  assert.equal(telemetry({ ...rpc, ':path': '/v1/traces', 'content-type': 'application/x-protobuf' }), true)
})

test('the place in a trace is read', () => {
  const context = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  const check = (fields: Readonly<Record<string, string>>, want: string, state = '') => {
    const [one] = open()
      .client(ask(1, { ...get, ...fields }))
      .serverSays(answer(1, ok)).ended
    assert.equal(one?.context, want)
    assert.equal(one?.state, state)
  }
  check({ traceparent: context, tracestate: 'a=1' }, context, 'a=1')
  check({ b3: `${context.slice(3, -3)}-1` }, context)
  check({ 'x-b3-traceid': context.slice(3, 35), 'x-b3-spanid': context.slice(36, 52) }, context)
  check({}, '')
})

test('a reset ends the call with what it says', () => {
  const reset = (fromClient: boolean, code: number, fields: Readonly<Record<string, string>>) => {
    const session = open({ server: false }).client(ask(1, fields, message))
    const bytes = frame(RESET, 0, 1, u32(code))
    fromClient ? session.client(bytes) : session.serverSays(bytes)
    return seen(session)[0]
  }
  assert.equal(reset(true, 8, rpc), 'shop.Items/Get CANCELLED CANCELLED')
  assert.equal(
    reset(true, 8, { ...rpc, 'grpc-timeout': '1m' }),
    'shop.Items/Get DEADLINE_EXCEEDED DEADLINE_EXCEEDED',
  )
  assert.equal(reset(true, 8, { ...rpc, 'grpc-timeout': '1S' }), 'shop.Items/Get CANCELLED CANCELLED')
  assert.equal(reset(false, 7, rpc), 'shop.Items/Get UNAVAILABLE UNAVAILABLE')
  assert.equal(reset(false, 2, rpc), 'shop.Items/Get INTERNAL INTERNAL')
  assert.equal(reset(true, 8, get), 'GET - CANCEL')
  assert.equal(reset(false, 11, get), 'GET - ENHANCE_YOUR_CALM')
  assert.equal(reset(false, 77, get), 'GET - _OTHER')
})

test('streams that the server will not look at end when it says so', () => {
  const session = open({ server: false }).client(
    Buffer.concat([ask(1, get), ask(3, get), ask(5, rpc, message)]),
  )
  session.serverSays(frame(GOAWAY, 0, 0, Buffer.concat([u32(1), u32(0)])))
  assert.deepEqual(seen(session), ['GET - REFUSED_STREAM', 'shop.Items/Get UNAVAILABLE UNAVAILABLE'])
  assert.deepEqual(seen(session.serverSays(answer(1, ok))).slice(2), ['GET 200 fine'])
})

test('what is under way when the connection ends has an error', () => {
  const ends = (errno: number) =>
    seen(
      open()
        .client(Buffer.concat([ask(1, get), ask(3, rpc, message)]))
        .close(errno),
    )
  assert.deepEqual(ends(0), ['GET /users/42 - connection_closed', 'shop.Items/Get - connection_closed'])
  assert.deepEqual(ends(104), ['GET /users/42 - connection_reset', 'shop.Items/Get - connection_reset'])
})

test('interim answers are passed over, and an early answer ends the call', () => {
  const session = open().client(frame(HEADERS, WHOLE, 1, block(get)))
  session.serverSays(frame(HEADERS, WHOLE, 1, block({ ':status': '103' })))
  assert.equal(session.ended.length, 0)
  session.serverSays(answer(1, { ':status': '413' })).client(frame(DATA, END, 1, Buffer.alloc(100)))
  assert.deepEqual(seen(session), ['GET /users/42 413 fine'])
})

test('padding, priority, continuations, pushes and unknown frames are read', () => {
  const fields = block(get)
  const padded = Buffer.concat([Buffer.from([3, 0, 0, 0, 0, 7]), fields, Buffer.alloc(3)])
  const check = (...frames: Buffer[]) => {
    for (const pieces of [
      frames,
      [Buffer.concat(frames)],
      [...Buffer.concat(frames)].map(byte => Buffer.from([byte])),
    ]) {
      const session = open()
      for (const piece of pieces) session.client(piece)
      session.serverSays(
        Buffer.concat([
          frame(PUSH, WHOLE, 1, Buffer.concat([u32(2), block(get, true)])),
          frame(HEADERS, WHOLE, 2, block(ok)),
        ]),
      )
      session.serverSays(answer(1, ok)).close()
      assert.deepEqual(seen(session), ['GET /users/42 200 fine'])
      assert.equal(session.ended[0]?.attributes['http.request.body.size'], 0)
    }
  }
  check(frame(HEADERS, WHOLE | END | PADDED | PRIORITY, 1, padded))
  check(
    frame(HEADERS, END, 1, fields.subarray(0, 5)),
    frame(CONTINUATION, 0, 1, fields.subarray(5, 20)),
    frame(CONTINUATION, WHOLE, 1, fields.subarray(20)),
  )
  check(
    frame(HEADERS, END | PADDED | PRIORITY, 1, padded.subarray(0, 30)).fill(0, 9, 10),
    frame(CONTINUATION, WHOLE, 1, padded.subarray(30, -3)),
  )
  check(
    frame(0x42, 7, 9, Buffer.from('grease')),
    frame(UPDATE, 0, 0, u32(5)),
    frame(HEADERS, WHOLE | END, 1, fields),
  )
})

test('data of any size are passed over, and their end is where their last byte is', () => {
  const big = Buffer.alloc(50_000, 'b')
  const session = open().client(frame(HEADERS, WHOLE, 1, block({ ...get, ':method': 'PUT' })))
  session
    .client(frame(DATA, 0, 1, big))
    .client(frame(DATA, END | PADDED, 1, Buffer.concat([Buffer.from([9]), big, Buffer.alloc(9)])))
  const bytes = answer(1, ok, 'x'.repeat(40_000))
  session.serverSays(bytes.subarray(0, 20_000)).serverSays(bytes.subarray(20_000, -1))
  assert.equal(session.ended.length, 0)
  session.serverSays(bytes.subarray(-1))
  const [one] = session.ended
  assert.equal(one?.attributes['http.request.body.size'], 100_000)
  assert.equal(one?.attributes['http.response.body.size'], 40_000)
  assert.deepEqual([one?.startMs, one?.responseMs, one?.endMs], [3, 6, 8])
})

test('a thousand streams at a time are told apart', () => {
  const session = open({ server: false })
  const ids = Array.from({ length: 1_000 }, (_, i) => 2 * i + 1)
  for (const id of ids) session.client(ask(id, { ...rpc, ':path': `/shop.Items/Get${id % 7}` }, message))
  assert.equal(session.streams.inFlight, 1_000)
  for (const id of ids.reverse()) session.serverSays(answerRpc(id, id % 3))
  assert.equal(session.ended.length, 1_000)
  session.ended.forEach((one, i) => {
    assert.equal(one.name, `shop.Items/Get${ids[i]! % 7}`)
    assert.equal(one.attributes['rpc.response.status_code'], ['OK', 'CANCELLED', 'UNKNOWN'][ids[i]! % 3])
  })
})

test('an entry that is older than the observation is unknown, and its call is told without it', () => {
  const session = new StreamSession(http2, { server: true, joined: true })
  // 0xbe to 0xc0 are entries of before; 0x83 and 0x86 are POST and http.
  session.client(
    Buffer.concat([
      frame(HEADERS, WHOLE, 9, Buffer.from([0x83, 0x86, 0xbe, 0xbf, 0xc0])),
      frame(DATA, END, 9, message),
    ]),
  )
  session.serverSays(
    Buffer.concat([
      frame(HEADERS, WHOLE, 9, Buffer.from([0x88, 0xbe])),
      frame(DATA, 0, 9, message),
      frame(HEADERS, WHOLE | END, 9, Buffer.from([0xbf])),
    ]),
  )
  session.client(frame(HEADERS, WHOLE | END, 11, Buffer.from([0xc1, 0x86, 0xbe, 0xbf])))
  session.serverSays(frame(HEADERS, WHOLE | END, 11, Buffer.from([0xc0])))
  session.client(
    Buffer.concat([
      frame(
        HEADERS,
        WHOLE,
        13,
        Buffer.concat([
          Buffer.from([0x83, 0x86]),
          block({ ':path': '/a/B', 'content-type': 'application/grpc' }, true),
        ]),
      ),
      frame(DATA, END, 13, message),
    ]),
  )
  session.serverSays(answerRpc(13))
  session.client(
    Buffer.concat([
      frame(HEADERS, WHOLE, 15, Buffer.from([0x83, 0x86, 0xbe, 0xbf, 0xc0])),
      frame(DATA, END, 15, message),
    ]),
  )
  session.serverSays(answerRpc(15, 13))
  session.close()
  assert.deepEqual(seen(session), ['grpc - fine', 'grpc - fine', 'a/B OK fine', 'a/B INTERNAL INTERNAL'])
  assert.equal('rpc.method' in session.ended[0]!.attributes, false)
})

test('on a connection that is older than the agent only what begins later is told', () => {
  const session = new StreamSession(http2, { server: false, joined: true })
  session.serverSays(Buffer.from('the rest of some data'))
  session.serverSays(answer(5, ok)).client(frame(DATA, END, 7, Buffer.from('the rest of a request')))
  session.client(frame(HEADERS, WHOLE | END, 7, block({ 'x-checksum': '1' })))
  session.serverSays(answer(7, ok))
  session.client(ask(9, get)).serverSays(answer(9, ok)).close()
  assert.deepEqual(seen(session), ['GET 200 fine'])
  assert.equal(session.streams.inFlight, 0)
})

test('an end that was not captured is found in the last bytes of its call', () => {
  const session = open()
  session.capture = 1_024
  session.client(ask(1, rpc, message)).serverSays(frame(HEADERS, WHOLE, 1, block(okRpc)))
  const lists = Buffer.concat(Array.from({ length: 5 }, () => frame(DATA, 0, 1, Buffer.alloc(16_384, 7))))
  session
    .serverSays(lists.subarray(0, 30_000))
    .serverSays(
      Buffer.concat([lists.subarray(30_000), trailers(1, 0).subarray(0, -14 - 14), Buffer.alloc(0)]),
    )
  session
    .serverSays(trailers(1, 5))
    .client(ask(3, rpc, message))
    .serverSays(answerRpc(3))
    .close()
  assert.deepEqual(seen(session), ['shop.Items/Get NOT_FOUND fine', 'shop.Items/Get OK fine'])
  const short = open()
  short.capture = 1_024
  short.client(ask(1, get)).serverSays(frame(HEADERS, WHOLE, 1, block(ok)))
  short.serverSays(Buffer.concat([lists, frame(DATA, END, 1)])).close()
  assert.deepEqual(seen(short), ['GET /users/42 200 fine'])
})

test('a stream whose end was not seen ends once others did, and later', () => {
  const session = open()
  session
    .client(ask(1, get))
    .serverSays(frame(HEADERS, WHOLE, 1, block(ok)))
    .lose(false, 50_000)
  session.client(ask(3, get)).serverSays(answer(3, ok))
  assert.deepEqual(seen(session), ['GET /users/42 200 fine'])
  for (let i = 0; i < 1_000; i++) session.client(frame(UPDATE, 0, 0, u32(1)))
  session.client(ask(5, get)).serverSays(answer(5, ok))
  assert.equal(session.ended.length, 3)
  assert.equal(session.ended[2]?.endMs, 4)
  assert.equal(session.streams.inFlight, 0)
  const closed = open()
    .client(ask(1, get))
    .serverSays(frame(HEADERS, WHOLE, 1, block(ok)))
    .lose(false, 9)
    .serverSays('x')
    .close()
  assert.deepEqual(seen(closed), ['GET /users/42 200 fine'])
})

test('after a loss the table is not trusted: a name is right or not there', () => {
  const session = open()
  const first = block({ ':path': '/shop.Items/Get', 'content-type': 'application/grpc' }, true)
  session
    .client(frame(HEADERS, WHOLE | END, 1, Buffer.concat([Buffer.from([0x83, 0x86]), first])))
    .serverSays(answerRpc(1))
  session.lose(true, 30)
  session.client(
    Buffer.concat([
      frame(HEADERS, WHOLE, 5, Buffer.from([0x83, 0x86, 0xbf, 0xbe])),
      frame(DATA, END, 5, message),
    ]),
  )
  session.serverSays(answerRpc(5))
  assert.deepEqual(seen(session), ['shop.Items/Get OK fine', 'grpc OK fine'])
})

test('bytes that are no HTTP/2 are refused, and tell nothing', () => {
  const refused = (session: StreamSession) => {
    assert.equal(session.refused, true)
    assert.deepEqual(session.ended, [])
    assert.equal(session.streams.inFlight, 0)
  }
  const session = () => new StreamSession(http2, { server: false })
  refused(session().client('GET / HTTP/1.1\r\n\r\n'))
  refused(session().client(preface).client('GET / HTTP/1.1\r\n'))
  refused(
    session()
      .client(Buffer.concat([preface, settings, ask(1, get)]))
      .serverSays('HTTP/1.1 400 Bad Request\r\n\r\n'),
  )
  const joined = new StreamSession(http2, { server: false, joined: true })
  for (let i = 0; i < 300; i++) joined.client('something else')
  refused(joined)
})

test('nothing that never was answered is told of a connection that only seems to be HTTP/2', () => {
  const session = new StreamSession(http2, { server: false, joined: true }).client(ask(1, get)).close()
  assert.deepEqual(session.ended, [])
  assert.equal(session.streams.inFlight, 0)
})

test('what is under way is bounded', () => {
  const session = open()
  for (let id = 1; id < 10_001; id += 2) session.client(ask(id, get))
  assert.equal(session.streams.inFlight, 4_096)
  assert.equal(session.lost, 5_000 - 4_096)
  session.close()
  assert.equal(session.streams.inFlight, 0)
})

test('streams whose end was lost do not keep out those that come', () => {
  const session = open()
  for (let id = 1; id < 2 * 4_096; id += 2) session.client(ask(id, get))
  assert.equal(session.streams.inFlight, 4_096)
  session.lose(true, 13 * 4_096)
  session.client(ask(9_001, get)).serverSays(answer(9_001, ok))
  assert.deepEqual(seen(session), ['GET /users/42 200 fine'])
  assert.equal(session.lost, 4_096)
  session.close()
  assert.equal(session.streams.inFlight, 0)
})

/** Replays what was said, in these calls or byte by byte. */
function replay(talk: readonly Said[], options: SessionOptions, bytewise = false): StreamSession {
  const session = new StreamSession(http2, options)
  for (const { client, bytes } of talk)
    for (let at = 0; at < bytes.length; at += bytewise ? 1 : bytes.length) {
      const piece = bytewise ? bytes.subarray(at, at + 1) : bytes
      client ? session.client(piece) : session.serverSays(piece)
    }
  return session
}

/** What node:http2 and its server say for these requests. */
async function talkOfNode(): Promise<Said[]> {
  const server: Http2Server = createServer((request, response) => {
    request.resume()
    request.on('end', () => {
      response.writeHead(request.url?.startsWith('/missing') ? 404 : 200, { 'x-number': request.url })
      response.end('x'.repeat(Number(request.headers['x-size'] ?? 3)))
    })
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  const proxy = await RecordingProxy.start((server.address() as AddressInfo).port)
  const client = connect(`http://127.0.0.1:${proxy.port}`)
  const one = (path: string, method: string, size: number) =>
    new Promise<void>(done => {
      const stream = client.request({ ':method': method, ':path': path, 'x-size': String(size) })
      stream.resume()
      stream.on('close', () => done())
      stream.end(method === 'POST' ? 'y'.repeat(size) : undefined)
    })
  for (let round = 0; round < 5; round++)
    await Promise.all([
      one(`/items/${round}`, 'GET', 10),
      one('/missing', 'GET', 0),
      one('/upload', 'POST', 60_000),
      one('/items/x', 'DELETE', 1),
    ])
  await new Promise<void>(done => client.close(done))
  await proxy.close()
  await new Promise(done => server.close(done))
  return proxy.talks[0]!
}

test('a connection of node:http2 is read, byte by byte as in its own calls', async () => {
  const talk = await talkOfNode()
  const want = Array.from({ length: 5 }, (_, round) => [
    `GET /items/${round} 200 fine`,
    'GET /missing 404 fine',
    'POST /upload 200 fine',
    'DELETE /items/x 200 fine',
  ])
    .flat()
    .sort()
  for (const bytewise of [false, true]) {
    const session = replay(talk, { server: true }, bytewise)
    assert.deepEqual(seen(session).sort(), want)
    assert.equal(session.streams.inFlight, 0)
    assert.equal(session.refused, false)
    const upload = session.ended.find(({ name }) => name === 'POST /upload')!
    assert.equal(upload.attributes['http.request.body.size'], 60_000)
    assert.equal(upload.attributes['http.response.body.size'], 60_000)
  }
})

/** What @grpc/grpc-js and its server say. */
async function talkOfGrpc(): Promise<{ talk: Said[]; want: string[] }> {
  const server = await startGrpc()
  const proxy = await RecordingProxy.start(server.port)
  const shopper = new GrpcShopper(proxy.port)
  const context = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  const names = ['OK', 'CANCELLED', 'UNKNOWN', 'INVALID_ARGUMENT', 'DEADLINE_EXCEEDED', 'NOT_FOUND']
  for (let i = 0; i < 6; i++) {
    await Promise.all([
      shopper.call('Get', Buffer.alloc(10 * i), { traceparent: context }),
      shopper.call('Get'),
    ])
    if (i > 0) assert.equal(await shopper.call('Fail', Buffer.from([i])), i)
  }
  assert.equal(await shopper.call('Nothing'), 12)
  assert.equal(await shopper.list(20, 30), 20)
  assert.equal(await shopper.call('Hang', Buffer.alloc(1), {}, 300), 4)
  assert.equal(await shopper.cancel(), 1)
  assert.equal(await shopper.call('Get'), 0)
  shopper.close()
  await server.close()
  await proxy.close()
  const error = (name: string) => (name === 'OK' ? 'fine' : name)
  const want = [
    ...Array.from({ length: 13 }, () => 'shop.Items/Get OK fine'),
    ...names.slice(1).map(name => `shop.Items/Fail ${name} ${error(name)}`),
    'shop.Items/Nothing UNIMPLEMENTED UNIMPLEMENTED',
    'shop.Items/List OK fine',
    'shop.Items/Hang DEADLINE_EXCEEDED DEADLINE_EXCEEDED',
    'shop.Items/Hang CANCELLED CANCELLED',
  ]
  return { talk: proxy.talks[0]!, want: want.sort() }
}

test('a connection of gRPC is read from its beginning and from any later call', async () => {
  const { talk, want } = await talkOfGrpc()
  // The session's clock has nothing to do with the deadline that the client kept.
  const outcome = (session: StreamSession) =>
    seen(session)
      .map(line => line.replace('Hang CANCELLED CANCELLED', 'Hang DEADLINE_EXCEEDED DEADLINE_EXCEEDED'))
      .sort()
  const wanted = want
    .map(line => line.replace('Hang CANCELLED CANCELLED', 'Hang DEADLINE_EXCEEDED DEADLINE_EXCEEDED'))
    .sort()
  for (const bytewise of [false, true]) {
    const session = replay(talk, { server: false }, bytewise)
    assert.deepEqual(outcome(session), wanted)
    assert.equal(session.ended.filter(({ context }) => context !== '').length, 6)
    assert.equal(session.streams.inFlight, 0)
  }
  for (let from = 0; from < talk.length; from++) {
    const session = replay(talk.slice(from), { server: false, joined: true })
    session.close()
    assert.equal(session.streams.inFlight, 0)
    for (const { name, signalType, attributes } of session.ended) {
      assert.ok(name === 'grpc' || want.some(line => line.startsWith(`${name} `)), name)
      assert.equal(signalType, 'grpc')
      const status = attributes['rpc.response.status_code']
      assert.ok(
        status === undefined ||
          name === 'grpc' ||
          want.includes(`${name} ${status} ${status === 'OK' ? 'fine' : status}`) ||
          name.endsWith('Hang'),
      )
    }
  }
})

test('of a thousand gRPC streams all that begin after the agent are told, and named right or not at all', async () => {
  const server = await startGrpc()
  const proxy = await RecordingProxy.start(server.port)
  const shopper = new GrpcShopper(proxy.port)
  for (let wave = 0; wave < 10; wave++)
    await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        shopper.call(i % 2 === 0 ? 'Get' : 'Fail', Buffer.from([5, wave])),
      ),
    )
  shopper.close()
  await server.close()
  await proxy.close()
  const talk = proxy.talks[0]!
  const asked = Buffer.concat(talk.filter(({ client }) => client).map(({ bytes }) => bytes))
  /** Where the heads of requests begin. */
  const heads: number[] = []
  const frames = new Set<number>()
  for (let at = preface.length; at < asked.length; at += 9 + asked.readUIntBE(at, 3)) {
    frames.add(at)
    if (asked[at + 3] === HEADERS) heads.push(at)
  }
  assert.equal(heads.length, 1_000)
  let before = 0
  let joins = 0
  for (const [from, { client, bytes }] of talk.entries()) {
    if (client && frames.has(before)) {
      joins++
      const session = replay(talk.slice(from), { server: true, joined: true })
      assert.equal(session.ended.length, heads.filter(at => at >= before).length)
      assert.equal(session.streams.inFlight + session.lost, 0)
      for (const { name, attributes } of session.ended) {
        const status = attributes['rpc.response.status_code'] ?? '-'
        const said = `${name} ${status}`
        assert.ok(
          ['Get OK', 'Get -', 'Fail NOT_FOUND', 'Fail -'].some(one => said === `shop.Items/${one}`) ||
            name === 'grpc',
          said,
        )
      }
    }
    if (client) before += bytes.length
  }
  assert.ok(joins > 10)
})

const whole: readonly Said[] = [
  {
    client: true,
    bytes: Buffer.concat([preface, settings, frame(HEADERS, WHOLE | END, 1, block(get, true))]),
  },
  { client: false, bytes: settings },
  { client: true, bytes: ask(3, rpc, message) },
  { client: false, bytes: Buffer.concat([answer(1, ok), answerRpc(3, 5)]) },
  { client: true, bytes: frame(HEADERS, WHOLE | END, 5, Buffer.from([0xc1, 0xc0, 0xbf, 0xbe])) },
  { client: true, bytes: frame(RESET, 0, 5, u32(8)) },
  { client: false, bytes: frame(GOAWAY, 0, 0, Buffer.concat([u32(5), u32(0)])) },
]

test('a connection that is cut at any byte leaves nothing under way', () => {
  assert.deepEqual(seen(replay(whole, { server: false })), [
    'GET 200 fine',
    'shop.Items/Get NOT_FOUND NOT_FOUND',
    'GET - CANCEL',
  ])
  const total = whole.reduce((sum, { bytes }) => sum + bytes.length, 0)
  for (let cut = 0; cut <= total; cut++) {
    let left = cut
    const talk = whole.map(({ client, bytes }) => {
      const piece = bytes.subarray(0, left)
      left = Math.max(0, left - bytes.length)
      return { client, bytes: piece }
    })
    const session = replay(talk, { server: false }).close()
    assert.equal(session.streams.inFlight, 0)
    assert.equal(session.lost, 0)
    assert.ok(session.ended.length <= 3)
  }
})

test('any bytes are read without a fault, and nothing stays', () => {
  const frames = whole.map(({ bytes }) => bytes)
  const piece = fc.oneof(
    fc.constantFrom(...frames),
    fc.uint8Array({ maxLength: 60 }).map(bytes => Buffer.from(bytes)),
    fc
      .tuple(fc.nat(10), fc.nat(255), fc.nat(9), fc.uint8Array({ maxLength: 30 }))
      .map(([type, flags, stream, payload]) => frame(type, flags, stream, payload)),
    fc.tuple(fc.constantFrom(...frames), fc.nat(200), fc.nat(255)).map(([bytes, at, byte]) => {
      const mutated = Buffer.from(bytes)
      mutated[at % mutated.length] = byte
      return mutated
    }),
  )
  const step = fc.record({ client: fc.boolean(), bytes: piece, lose: fc.nat(30) })
  const runs = soak ? 100_000 : 2_000
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 12 }),
      fc.boolean(),
      fc.boolean(),
      fc.boolean(),
      (steps, server, joined, opened) => {
        const session = opened ? open({ server }) : new StreamSession(http2, { server, joined })
        for (const { client, bytes, lose } of steps) {
          if (lose > 27) session.lose(client, lose)
          client ? session.client(bytes) : session.serverSays(bytes)
        }
        session.close()
        assert.equal(session.streams.inFlight, 0)
      },
    ),
    { numRuns: runs },
  )
})
