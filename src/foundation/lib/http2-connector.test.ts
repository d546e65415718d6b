import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createSecureServer, createServer, type Http2Server } from 'node:http2'
import { type AddressInfo, createServer as createTcp, type Socket } from 'node:net'
import { after, type TestContext, test } from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import { makeCertificates } from '../../../test/helpers/certificates.ts'
import { startConnectProxy } from '../../../test/helpers/connect-proxy.ts'
import {
  type Frame,
  FrameConnection,
  FrameType,
  startFrameServer,
} from '../../../test/helpers/http2-frames.ts'
import { until } from '../../../test/helpers/program.ts'
import { GrpcClient, type GrpcClientOptions, type GrpcRequest } from './grpc-client.ts'
import { GrpcError } from './grpc-status.ts'
import { Http2Connector } from './http2-connector.ts'

const made = makeCertificates()
after(() => made.remove())

const never = new AbortController().signal
const noTls = { caFile: '', certFile: '', keyFile: '', serverName: '', insecureSkipVerify: false }
const request: GrpcRequest = {
  path: '/a.B/C',
  message: Buffer.from('question'),
  encoding: 'identity',
  headers: {},
  timeoutMs: 20_000,
}

function client(t: TestContext, port: number, options: Partial<GrpcClientOptions> = {}): GrpcClient {
  const found = new GrpcClient({
    host: '127.0.0.1',
    port,
    tls: undefined,
    connectTimeoutMs: 20_000,
    maxResponseBytes: 65536,
    ...options,
  })
  t.after(() => found.close())
  return found
}

async function failure(call: Promise<unknown>): Promise<GrpcError> {
  const error = await call.then(
    () => assert.fail('the call succeeded'),
    error => error,
  )
  assert.ok(error instanceof GrpcError, String(error))
  return error
}

async function frames(t: TestContext, read: (frame: Frame, connection: FrameConnection) => void) {
  const server = await startFrameServer(read)
  t.after(() => server.close())
  return server
}

async function listen(t: TestContext, server: Http2Server | ReturnType<typeof createTcp>): Promise<number> {
  const sockets = new Set<Socket>()
  for (const event of ['connection', 'secureConnection'])
    server.on(event, (socket: Socket) => {
      sockets.add(socket)
      socket.on('error', () => {}) // the client leaves
    })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

test('a server that leaves and answers no ping any more finishes what it took', async t => {
  let pings = 0
  const server = await frames(t, ({ type }, connection) => {
    if (type !== FrameType.ping) return
    pings++
    connection.goAway(1)
    setTimeout(() => connection.succeed(1), 6000)
  })
  await client(t, server.port, { keepaliveMs: 10, keepaliveTimeoutMs: 5000 }).call(request, never)
  assert.equal(pings, 1)
})

test('a server that leaves and never closes its end keeps no socket of ours', {
  timeout: 20_000,
}, async t => {
  const server = await frames(t, ({ type, stream }, connection) => {
    if (type !== FrameType.headers) return
    connection.socket.allowHalfOpen = true
    connection.goAway(stream)
    connection.succeed(stream)
  })
  const grpc = client(t, server.port)
  for (let i = 0; i < 3; i++) await grpc.call(request, never)
  assert.equal(server.connections.length, 3)
  // A socket that is only half closed would take these for ever.
  for (const connection of server.connections)
    while (!connection.socket.destroyed) {
      connection.send(FrameType.ping, 0, 0, Buffer.alloc(8))
      await new Promise(resolve => setTimeout(resolve, 5))
    }
})

test('what a server that leaves has not looked at goes to the next connection at once', async t => {
  const server = await frames(t, ({ type, stream }, connection) => {
    const first = connection === server.connections[0]
    if (type !== FrameType.headers) return
    if (!first) connection.succeed(stream)
    else if (stream === 3) {
      connection.goAway(1)
      connection.succeed(1)
    }
  })
  const grpc = client(t, server.port)
  await Promise.all([grpc.call(request, never), grpc.call(request, never)])
  assert.equal(server.connections.length, 2)
})

test('a server that leaves before it has looked at anything costs no try', async t => {
  const server = await frames(t, ({ type, stream }, connection) => {
    if (type !== FrameType.headers) return
    if (server.connections.length === 3) return connection.succeed(stream)
    connection.goAway(0)
    if (server.connections.length === 2) connection.socket.end()
  })
  const grpc = client(t, server.port)
  assert.equal((await failure(grpc.call(request, never))).type, 'unavailable')
  await grpc.call(request, never)
  assert.equal(server.connections.length, 3)
})

test('a connection that is cut in the middle of an answer is one to try again', async t => {
  const server = await frames(t, ({ type, stream }, connection) => {
    if (type !== FrameType.headers) return
    connection.send(FrameType.headers, 4, stream, Buffer.from([0x88]))
    connection.socket.resetAndDestroy()
  })
  const error = await failure(client(t, server.port).call(request, never))
  assert.equal(error.type, 'unavailable')
  assert.match(error.message, /connection was lost/)
})

test('frames that are none end the connection, not the client', async t => {
  let broken = true
  const server = await frames(t, ({ type, stream }, connection) => {
    if (type !== FrameType.headers) return
    if (broken) connection.send(FrameType.headers, 4, stream, Buffer.from([0xff, 0xff, 0xff, 0xff]))
    else connection.succeed(stream)
  })
  const grpc = client(t, server.port)
  const error = await failure(grpc.call(request, never))
  assert.ok(['unavailable', 'internal'].includes(error.type), error.type)
  broken = false
  await grpc.call(request, never)
})

test('a server that complains of pings is asked half as often, down to every two hours', async t => {
  const server = await frames(t, ({ type }, connection) => {
    if (type === FrameType.headers) connection.goAway(0, 11, 'too_many_pings')
  })
  const connector = new Http2Connector({
    host: '127.0.0.1',
    port: server.port,
    tls: undefined,
    connectTimeoutMs: 20_000,
    keepaliveMs: 3_000_000,
  })
  t.after(() => connector.close())
  const seen: number[] = []
  for (let i = 0; i < 4; i++) {
    const { session } = await connector.connection()
    const closed = new Promise(resolve => session.once('close', resolve))
    const stream = session.request({ ':path': '/' })
    stream.on('error', () => {}) // the server ends it
    stream.end()
    await closed
    seen.push(connector.keepaliveMs)
  }
  assert.deepEqual(seen, [6_000_000, 7_200_000, 7_200_000, 7_200_000])
})

test('a server that opens no window costs the deadline, and the next call takes a new connection', async t => {
  const server = createServer({ settings: { initialWindowSize: 0 } })
  let sessions = 0
  server.on('session', () => sessions++)
  server.on('stream', stream => stream.on('error', () => {})) // reset by the client
  const grpc = client(t, await listen(t, server))
  for (let i = 1; i <= 2; i++) {
    const stalled = { ...request, message: Buffer.alloc(1 << 20), timeoutMs: 3000 }
    const error = await failure(grpc.call(stalled, never))
    assert.equal(error.type, 'deadline_exceeded')
    await until('it was accepted', 20_000, () => sessions >= i)
    assert.equal(sessions, i)
  }
})

test('TLS without HTTP/2 is refused as such', async t => {
  const tls = { ...noTls, caFile: made.file('ca.pem') }
  const pair = { cert: made.text('server.pem'), key: made.text('server.key') }
  const silent = createTlsServer(pair, () => {})
  const error = await failure(client(t, await listen(t, silent), { tls }).call(request, never))
  assert.deepEqual([error.type, error.message], ['tls', 'the server supports TLS but no HTTP/2 (ALPN h2)'])
  const other = createTlsServer({ ...pair, ALPNProtocols: ['http/1.1'] }, () => {})
  other.on('tlsClientError', () => {}) // no protocol in common
  const refused = await failure(client(t, await listen(t, other), { tls }).call(request, never))
  assert.equal(refused.type, 'tls')
})

test('TLS: a connection that is reset in the handshake or later is an error of its call alone', async t => {
  const tls = { ...noTls, caFile: made.file('ca.pem') }
  const early = createTcp(socket => {
    socket.on('error', () => {}) // cut on purpose
    socket.once('data', () => socket.resetAndDestroy())
  })
  const shaking = await failure(client(t, await listen(t, early), { tls }).call(request, never))
  assert.equal(shaking.type, 'tls')
  const late = createSecureServer({ cert: made.text('server.pem'), key: made.text('server.key') })
  const raw: Socket[] = []
  late.on('connection', (socket: Socket) => raw.push(socket))
  late.on('sessionError', () => {}) // cut on purpose
  late.on('stream', stream => {
    stream.on('error', () => {}) // cut on purpose
    raw[0]!.resetAndDestroy()
  })
  const running = await failure(client(t, await listen(t, late), { tls }).call(request, never))
  assert.equal(running.type, 'unavailable')
})

test('calls go through the tunnel of a proxy, with TLS and without', async t => {
  const proxy = await startConnectProxy()
  t.after(() => proxy.close())
  const target = {
    host: '127.0.0.1',
    port: proxy.port,
    secure: false,
    authorization: '',
    variable: 'HTTPS_PROXY',
  }
  const plain = await frames(t, ({ type, stream }, connection) => {
    if (type === FrameType.headers) connection.succeed(stream)
  })
  await client(t, plain.port, { proxy: () => target }).call(request, never)
  const safe = createSecureServer({ cert: made.text('server.pem'), key: made.text('server.key') })
  safe.on('stream', stream => {
    stream.respond({ ':status': 200, 'grpc-status': '0' }, { endStream: true })
  })
  const port = await listen(t, safe)
  const tls = { ...noTls, caFile: made.file('ca.pem') }
  await client(t, port, { tls, proxy: () => target }).call(request, never)
  assert.deepEqual(proxy.targets, [`127.0.0.1:${plain.port}`, `127.0.0.1:${port}`])
  proxy.answer = { status: 407 }
  const error = await failure(client(t, port, { tls, proxy: () => target }).call(request, never))
  assert.equal(error.type, 'connect')
  assert.match(error.message, /through the proxy .*requires a user and a password/)
})

test('the settings of a server that come with the answer of a proxy are not lost', async t => {
  const port = await listen(
    t,
    createTcp(socket => {
      socket.on('error', () => {}) // the client leaves
      socket.once('data', () => {
        socket.cork()
        socket.write('HTTP/1.1 200 OK\r\n\r\n')
        new FrameConnection(socket, ({ type, stream }, connection) => {
          if (type === FrameType.headers) connection.succeed(stream)
        })
        socket.uncork()
      })
    }),
  )
  const target = { host: '127.0.0.1', port, secure: false, authorization: '', variable: 'HTTP_PROXY' }
  await client(t, 1, { proxy: () => target }).call(request, never)
})
