import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createHttp1 } from 'node:http'
import {
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import { type AddressInfo, createServer as createTcp, type Server, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { freePort, until } from '../../../test/helpers/program.ts'
import { GrpcClient, type GrpcClientOptions, type GrpcRequest } from './grpc-client.ts'
import { GrpcError } from './grpc-status.ts'

const ok = { ':status': 200, 'content-type': 'application/grpc' }
const never = new AbortController().signal

function framed(message: Uint8Array, flag = 0): Buffer {
  const prefix = Buffer.alloc(5)
  prefix[0] = flag
  prefix.writeUInt32BE(message.length, 1)
  return Buffer.concat([prefix, message])
}

/** Answers with a message and the status ok. */
function succeed(stream: ServerHttp2Stream, message = Buffer.from('answer'), flag = 0, headers = {}): void {
  stream.respond({ ...ok, ...headers }, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  stream.end(framed(message, flag))
}

type Handler = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void

interface Http2Server {
  readonly port: number
  readonly sessions: ServerHttp2Session[]
  close(): void
}

async function listen(t: TestContext, server: Server, port = 0): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {}) // cut on purpose, or by the client
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return (server.address() as AddressInfo).port
}

async function serve(t: TestContext, handler: Handler, port = 0): Promise<Http2Server> {
  const server = createServer()
  const sessions: ServerHttp2Session[] = []
  server.on('session', session => {
    sessions.push(session)
    session.on('error', () => {}) // cut on purpose, or by the client
  })
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {}) // reset on purpose, or by the client
    handler(stream, headers)
  })
  const bound = await listen(t, server, port)
  const close = (): void => {
    server.close()
    for (const session of sessions) session.destroy()
  }
  return { port: bound, sessions, close }
}

function client(t: TestContext, port: number, options: Partial<GrpcClientOptions> = {}): GrpcClient {
  const made = new GrpcClient({
    host: '127.0.0.1',
    port,
    tls: undefined,
    connectTimeoutMs: 20_000,
    maxResponseBytes: 65536,
    ...options,
  })
  t.after(() => made.close())
  return made
}

const request: GrpcRequest = {
  path: '/a.B/C',
  message: Buffer.from('question'),
  encoding: 'identity',
  headers: { 'x-key': 'value' },
  timeoutMs: 20_000,
}

async function failure(call: Promise<unknown>): Promise<GrpcError> {
  const error = await call.then(
    () => assert.fail('the call succeeded'),
    error => error,
  )
  assert.ok(error instanceof GrpcError, String(error))
  return error
}

test('a call carries the headers of the protocol and one framed message', async t => {
  let seen: IncomingHttpHeaders = {}
  let body = Buffer.alloc(0)
  const { port } = await serve(t, (stream, headers) => {
    seen = headers
    stream.on('data', (chunk: Buffer) => {
      body = Buffer.concat([body, chunk])
    })
    stream.on('end', () => succeed(stream))
  })
  const answer = await client(t, port).call({ ...request, encoding: 'gzip' }, never)
  assert.equal(Buffer.from(answer).toString(), 'answer')
  assert.deepEqual(body, framed(Buffer.from('question'), 1))
  assert.equal(seen[':path'], '/a.B/C')
  assert.equal(seen[':method'], 'POST')
  assert.equal(seen.te, 'trailers')
  assert.equal(seen['content-type'], 'application/grpc')
  assert.equal(seen['grpc-encoding'], 'gzip')
  assert.equal(seen['x-key'], 'value')
  assert.match(String(seen['grpc-timeout']), /^\d{1,8}m$/)
})

test('calls share one connection', async t => {
  const server = await serve(t, stream => succeed(stream))
  const grpc = client(t, server.port)
  await Promise.all(Array.from({ length: 50 }, () => grpc.call(request, never)))
  await grpc.call(request, never)
  assert.equal(server.sessions.length, 1)
  assert.equal(grpc.connected, true)
})

test('a compressed answer is unpacked, and refused when it grows too large or is not gzip', async t => {
  let message = gzipSync('packed')
  let encoding = 'gzip'
  const { port } = await serve(t, stream => succeed(stream, message, 1, { 'grpc-encoding': encoding }))
  const grpc = client(t, port)
  assert.equal(Buffer.from(await grpc.call(request, never)).toString(), 'packed')
  const unreadable = async (type: string, words: RegExp) => {
    const error = await failure(grpc.call(request, never))
    assert.deepEqual([error.type, error.taken], [type, true])
    assert.match(error.message, words)
  }
  message = gzipSync(Buffer.alloc(1 << 20))
  await unreadable('resource_exhausted', /larger than 65536 bytes/)
  message = Buffer.from('no gzip')
  await unreadable('internal', /not valid gzip/)
  encoding = 'snappy'
  await unreadable('internal', /compressed with snappy/)
})

test('an answer above the limit ends the call, whether or not its end ever comes', async t => {
  const { port } = await serve(t, stream => {
    stream.respond(ok)
    stream.write(framed(Buffer.alloc(70_000)))
  })
  const error = await failure(client(t, port).call(request, never))
  assert.equal(error.type, 'resource_exhausted')
})

test('an answer that is not one whole message is an internal error', async t => {
  let body: Uint8Array = Buffer.alloc(0)
  const { port } = await serve(t, stream => {
    stream.respond(ok, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
    stream.end(body)
  })
  const grpc = client(t, port)
  for (const bad of [Buffer.from('abc'), framed(Buffer.from('x')).subarray(0, 5), Buffer.alloc(12)]) {
    body = bad
    const { type, taken } = await failure(grpc.call(request, never))
    assert.deepEqual([type, taken], ['internal', true])
  }
})

test('a status in the headers alone is an answer, with message and details', async t => {
  const { port } = await serve(t, stream => {
    const details = Buffer.from('details').toString('base64').replace(/=+$/, '')
    stream.respond(
      { ...ok, 'grpc-status': '8', 'grpc-message': 'zu viel %C3%BC', 'grpc-status-details-bin': details },
      { endStream: true },
    )
  })
  const error = await failure(client(t, port).call(request, never))
  assert.equal(error.type, 'resource_exhausted')
  assert.equal(error.message, 'RESOURCE_EXHAUSTED: zu viel ü')
  assert.equal(Buffer.from(error.details!).toString(), 'details')
})

test('a status that comes before the request was read is the answer, though the rest finds no window', async t => {
  const { port } = await serve(t, stream => {
    stream.respond({ ...ok, 'grpc-status': '3' }, { endStream: true })
  })
  const error = await failure(client(t, port).call({ ...request, message: Buffer.alloc(8 << 20) }, never))
  assert.equal(error.type, 'invalid_argument')
})

test('a status that is no number is unknown', async t => {
  const { port } = await serve(t, stream =>
    stream.respond({ ...ok, 'grpc-status': 'x' }, { endStream: true }),
  )
  assert.equal((await failure(client(t, port).call(request, never))).type, 'unknown')
})

test('an HTTP answer without a gRPC status counts by its HTTP status', async t => {
  let status = 0
  let type = 'text/html'
  const { port } = await serve(t, stream =>
    stream.respond({ ':status': status, 'content-type': type }, { endStream: true }),
  )
  const grpc = client(t, port)
  const check = async (http: number, want: string) => {
    status = http
    const error = await failure(grpc.call(request, never))
    assert.equal(error.type, want)
    assert.match(error.message, http === 200 ? /check that it is a gRPC server/ : new RegExp(`HTTP ${http}`))
  }
  await check(503, 'unavailable')
  await check(401, 'unauthenticated')
  await check(404, 'unimplemented')
  await check(413, 'too_large')
  // A web server or a proxy in trouble has not judged the request, so it is one to send again.
  await check(500, 'unavailable')
  await check(200, 'unavailable')
  type = 'application/grpc'
  await check(500, 'unknown')
  await check(200, 'unknown')
})

test('a reset stream is an error of its code, and the connection stays', async t => {
  let code = 0
  const server = await serve(t, stream => stream.close(code))
  const grpc = client(t, server.port)
  for ([code] of [[1], [2], [8], [11]] as const) {
    const error = await failure(grpc.call(request, never))
    assert.equal(error.type, { 1: 'internal', 2: 'unavailable', 8: 'cancelled', 11: 'unavailable' }[code])
    assert.match(error.message, /reset the stream with [A-Z_]+/)
  }
  code = 0
  const error = await failure(grpc.call(request, never))
  assert.deepEqual(
    [error.type, error.message],
    ['unavailable', 'the server ended the stream without an answer'],
  )
  assert.equal(server.sessions.length, 1)
})

test('a stream that the server refused untouched is sent again at once, and once only', async t => {
  let refusals = 1
  let streams = 0
  const { port } = await serve(t, stream => {
    streams++
    if (refusals-- > 0) stream.close(7)
    else succeed(stream)
  })
  const grpc = client(t, port)
  await grpc.call(request, never)
  assert.equal(streams, 2)
  refusals = Number.POSITIVE_INFINITY
  assert.equal((await failure(grpc.call(request, never))).type, 'unavailable')
  assert.equal(streams, 4)
})

test('after a GOAWAY what runs is finished, and the next call goes over a new connection', async t => {
  const waiting: ServerHttp2Stream[] = []
  const server = await serve(t, stream => waiting.push(stream))
  const grpc = client(t, server.port)
  const first = grpc.call(request, never)
  await until('the server has it', 20_000, () => waiting.length === 1)
  const gone = once(server.sessions[0]!, 'close')
  server.sessions[0]!.goaway(0)
  const second = grpc.call(request, never)
  await until('the server has it', 20_000, () => waiting.length === 2)
  for (const stream of waiting) succeed(stream)
  await Promise.all([first, second, gone])
  assert.equal(server.sessions.length, 2)
})

test('a GOAWAY with an error ends what runs, and says so', async t => {
  const server = await serve(t, stream => stream.session!.goaway(11))
  const error = await failure(client(t, server.port).call(request, never))
  assert.equal(error.type, 'unavailable')
  assert.match(error.message, /ENHANCE_YOUR_CALM/)
})

test('a lost connection is made anew by the next call', async t => {
  let cut = true
  const cutOrServed = (stream: ServerHttp2Stream) => {
    if (cut) stream.session!.socket.destroy()
    else succeed(stream)
  }
  const server = await serve(t, cutOrServed, await freePort())
  const grpc = client(t, server.port)
  const error = await failure(grpc.call(request, never))
  assert.equal(error.type, 'unavailable')
  assert.match(error.message, /connection was lost/)
  cut = false
  await grpc.call(request, never)
  server.close()
  assert.equal((await failure(grpc.call(request, never))).type.length > 0, true)
  await serve(t, stream => succeed(stream), server.port)
  await grpc.call(request, never)
})

test('an old connection is replaced', async t => {
  const server = await serve(t, stream => succeed(stream))
  const grpc = client(t, server.port, { maxAgeMs: 0 })
  await grpc.call(request, never)
  await grpc.call(request, never)
  assert.equal(server.sessions.length, 2)
})

test('a silent server costs the deadline, and the next call takes a new connection', async t => {
  let connections = 0
  const port = await listen(
    t,
    createTcp(socket => {
      connections++
      socket.resume()
    }),
  )
  const grpc = client(t, port)
  for (let i = 1; i <= 2; i++) {
    const error = await failure(grpc.call({ ...request, timeoutMs: 3000 }, never))
    assert.equal(error.type, 'deadline_exceeded')
    await until('it was accepted', 20_000, () => connections >= i)
    assert.equal(connections, i)
  }
})

test('a server that answers no ping while a call runs is given up before the deadline', async t => {
  const port = await listen(
    t,
    createTcp(socket => socket.resume()),
  )
  const grpc = client(t, port, { keepaliveMs: 20, keepaliveTimeoutMs: 20 })
  const error = await failure(grpc.call({ ...request, timeoutMs: 60_000 }, never))
  assert.equal(error.type, 'unavailable')
  assert.match(error.message, /no HTTP\/2 ping/)
})

test('a connection is pinged while calls run and left alone without', async t => {
  let pings = 0
  let waiting: ServerHttp2Stream | undefined
  const server = await serve(t, stream => {
    stream.session!.on('ping', () => {
      pings++
      if (pings === 3) succeed(waiting!)
    })
    waiting = stream
  })
  const grpc = client(t, server.port, { keepaliveMs: 10 })
  await grpc.call(request, never)
  const before = pings
  await new Promise(resolve => setTimeout(resolve, 100))
  assert.ok(pings <= before + 1, 'one may have been on its way')
})

test('where nothing listens, or no such name is, the fault is told', async t => {
  const refused = await failure(client(t, await freePort()).call(request, never))
  assert.equal(refused.type, 'connect')
  assert.match(refused.message, /ECONNREFUSED/)
  const unknown = await failure(client(t, 4317, { host: 'no..such' }).call(request, never))
  assert.equal(unknown.type, 'dns')
  assert.match(unknown.message, /no\.\.such does not resolve/)
})

test('an HTTP/1 server on the port is a lost connection', async t => {
  const port = await listen(t, createHttp1())
  assert.equal((await failure(client(t, port).call(request, never))).type, 'unavailable')
})

test('a call that is stopped ends at once, before and while it runs', async t => {
  const streams: ServerHttp2Stream[] = []
  const { port } = await serve(t, stream => streams.push(stream))
  const grpc = client(t, port)
  assert.equal((await failure(grpc.call(request, AbortSignal.abort()))).type, 'cancelled')
  const stop = new AbortController()
  const call = failure(grpc.call(request, stop.signal))
  await until('the server has it', 20_000, () => streams.length === 1)
  const stream = streams[0]!
  stop.abort()
  assert.equal((await call).type, 'cancelled')
  if (!stream.destroyed) await once(stream, 'close')
  assert.equal(stream.rstCode, 8)
})

test('closing ends what runs and refuses what comes', async t => {
  let streams = 0
  const { port } = await serve(t, () => streams++)
  const grpc = client(t, port)
  const call = failure(grpc.call(request, never))
  await until('the server has it', 20_000, () => streams === 1)
  grpc.close()
  grpc.close()
  assert.match((await call).message, /client is closed/)
  assert.match((await failure(grpc.call(request, never))).message, /client is closed/)
})

/** Looks again and again; the test's own time limit ends it. */

/** Answers a stream of these bytes in pieces of `size`. */
async function streamed(t: TestContext, bytes: Buffer, size: number, maxMessageBytes = 1024) {
  const { port } = await serve(t, stream => {
    stream.respond(ok, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
    for (let at = 0; at < bytes.length; at += size) stream.write(bytes.subarray(at, at + size))
    stream.end()
  })
  const taken: string[] = []
  let missed = 0
  const call = client(t, port).follow(
    { ...request, headers: {} },
    {
      maxMessageBytes,
      take: message => taken.push(Buffer.from(message).toString()),
      missed: () => missed++,
    },
    never,
  )
  const error = await call.then(
    () => undefined,
    (error: Error) => error,
  )
  return { taken, missed, error }
}

test('each message of a stream is handed on, however it comes, and one that is too large is passed over', async t => {
  const large = Buffer.alloc(2000, 0x61)
  const bytes = Buffer.concat(
    ['a', '', 'second'].map(text => framed(Buffer.from(text))).concat(framed(large)),
  )
  const whole = Buffer.concat([bytes, framed(Buffer.from('last'))])
  for (const size of [1, 3, 7, 1999, 100_000]) {
    const { taken, missed, error } = await streamed(t, whole, size)
    assert.deepEqual([taken, missed, error], [['a', '', 'second', 'last'], 1, undefined], `in ${size} bytes`)
  }
  for (const cut of [1, 4, 2000]) {
    const { error } = await streamed(t, bytes.subarray(0, bytes.length - cut), 100)
    assert.match(String(error), /the stream ended within a message/, `without ${cut} bytes`)
  }
  const { error } = await streamed(t, framed(Buffer.from('x'), 1), 100)
  assert.match(String(error), /a message of the stream is compressed/)
})

test('a stream has no end of its own, and ends with its taker, the server, or the stop', async t => {
  let seen: IncomingHttpHeaders = {}
  const { port, sessions } = await serve(t, (stream, headers) => {
    seen = headers
    stream.respond(ok)
    stream.write(framed(Buffer.from('first')))
  })
  const grpc = client(t, port)
  const { timeoutMs: _, ...endless } = request
  const open = (take: (message: Uint8Array) => void, stop = never) =>
    grpc.follow(endless, { maxMessageBytes: 100, take, missed: () => undefined }, stop)
  const thrown = await failure(
    open(() => {
      throw new RangeError('it is no event')
    }),
  )
  assert.match(thrown.message, /a message of the stream cannot be read: it is no event/)
  assert.equal(seen['grpc-timeout'], undefined)
  const stop = new AbortController()
  const stopped = await failure(open(() => stop.abort(), stop.signal))
  assert.equal(stopped.message, 'the call was cancelled')
  const lost = await failure(open(() => sessions[0]!.destroy()))
  assert.match(lost.message, /the connection was lost/)
})
