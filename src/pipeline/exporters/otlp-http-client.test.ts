import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import {
  HttpError,
  type HttpRequest,
  OtlpHttpClient,
  type OtlpHttpClientOptions,
} from './otlp-http-client.ts'

const never = new AbortController().signal
const request: HttpRequest = { path: '/', headers: {}, body: Buffer.from('question'), timeoutMs: 20_000 }

async function serve(t: TestContext, listener: RequestListener, port = 0) {
  const server: Server = createServer(listener)
  const sockets: Socket[] = []
  server.on('connection', (socket: Socket) => sockets.push(socket))
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return { port: (server.address() as AddressInfo).port, sockets }
}

function client(t: TestContext, port: number, options: Partial<OtlpHttpClientOptions> = {}): OtlpHttpClient {
  const made = new OtlpHttpClient({
    host: '127.0.0.1',
    port,
    tls: undefined,
    connectTimeoutMs: 20_000,
    maxAnswerBytes: 65536,
    keptConnections: 4,
    ...options,
  })
  t.after(() => made.close())
  return made
}

const answer: RequestListener = (request, response) => {
  request.resume()
  request.once('end', () => response.end('answer'))
}

test('each request that runs has its connection, and some are kept for the next', async t => {
  const waiting: (() => void)[] = []
  const server = await serve(t, (request, response) => {
    request.resume()
    waiting.push(() => response.end())
  })
  const http = client(t, server.port, { keptConnections: 3 })
  const round = async (requests: number) => {
    const running = Array.from({ length: requests }, () => http.post(request, never))
    while (waiting.length < requests) await new Promise(resolve => setTimeout(resolve, 2))
    for (const release of waiting.splice(0)) release()
    await Promise.all(running)
  }
  await round(10)
  assert.equal(server.sockets.length, 10)
  await round(3)
  assert.equal(server.sockets.length, 10)
  await round(5)
  assert.equal(server.sockets.length, 12)
  assert.equal(http.connected, true)
})

test('an old connection is not used again', async t => {
  const server = await serve(t, answer)
  const http = client(t, server.port, { maxAgeMs: 0 })
  for (let i = 0; i < 3; i++) assert.equal((await http.post(request, never)).status, 200)
  assert.equal(server.sockets.length, 3)
})

test('after one kept connection is found closed, no other kept one is tried', async t => {
  const server = await serve(t, answer)
  const http = client(t, server.port)
  await Promise.all(Array.from({ length: 4 }, () => http.post(request, never)))
  assert.equal(server.sockets.length, 4)
  for (const socket of server.sockets) socket.resetAndDestroy()
  assert.equal((await http.post(request, never)).status, 200)
  assert.equal(server.sockets.length, 5)
})

test('a 408 that closes a kept connection is of that connection, and on a new one an answer', async t => {
  let patience = 1
  const server = await serve(t, (request, response) => {
    request.resume()
    const connection = server.sockets.indexOf(request.socket)
    const late = connection === 0 && patience-- <= 0
    request.once('end', () => {
      response.writeHead(late ? 408 : 200, late ? { connection: 'close' } : {})
      response.end()
    })
  })
  const http = client(t, server.port)
  for (let i = 0; i < 3; i++) assert.equal((await http.post(request, never)).status, 200)
  assert.equal(server.sockets.length, 2)
  const refusing = await serve(t, (_request, response) => {
    response.writeHead(408, { connection: 'close' })
    response.end()
  })
  assert.equal((await client(t, refusing.port).post(request, never)).status, 408)
})

test('a head beyond the bound of Node is told as such', async t => {
  const server = await serve(t, (_request, response) => {
    response.writeHead(200, { 'x-long': 'x'.repeat(100_000) })
    response.end()
  })
  await assert.rejects(client(t, server.port).post(request, never), {
    type: 'unavailable',
    message: /^the connection was lost: .*Header overflow/,
  })
})

test('a connection whose request was answered unread is given up, with what was not sent yet', async t => {
  const server = await serve(t, (_request, response) => {
    response.writeHead(413, { 'content-length': '0' })
    response.end()
  })
  const http = client(t, server.port)
  const large = { ...request, body: Buffer.alloc(64 << 20) }
  assert.equal((await http.post(large, never)).status, 413)
  const [socket] = server.sockets
  if (!socket!.closed) await new Promise(resolve => socket!.once('close', resolve))
  assert.ok(socket!.bytesRead < 64 << 20, String(socket!.bytesRead))
  assert.equal((await http.post(large, never)).status, 413)
})

test('a server that takes nothing of a large request costs the deadline', async t => {
  const server = await serve(t, () => {})
  const http = client(t, server.port)
  const large = { ...request, body: Buffer.alloc(16 << 20), timeoutMs: 3000 }
  await assert.rejects(http.post(large, never), { name: 'HttpError', type: 'deadline_exceeded' })
})

test('an answer of many pieces is put together, and one that goes on for ever is cut', async t => {
  let endless = false
  const server = await serve(t, (request, response) => {
    request.resume()
    for (let i = 0; i < 100; i++) response.write(`${i},`)
    if (!endless) response.end()
    else {
      const timer = setInterval(() => response.write('x'.repeat(10_000)), 1)
      response.once('close', () => clearInterval(timer))
    }
  })
  const http = client(t, server.port)
  const whole = await http.post(request, never)
  assert.equal(Buffer.from(whole.body).toString(), Array.from({ length: 100 }, (_, i) => `${i},`).join(''))
  endless = true
  const cut = await http.post(request, never)
  assert.deepEqual([cut.status, cut.body.length, cut.fault], [200, 0, 'it is larger than 65536 bytes'])
})

test('closing ends what runs and refuses what comes', async t => {
  let requests = 0
  const server = await serve(t, () => requests++)
  const http = client(t, server.port)
  const running = http.post(request, never).catch(error => error)
  while (requests === 0) await new Promise(resolve => setTimeout(resolve, 2))
  http.close()
  http.close()
  const error = await running
  assert.ok(error instanceof HttpError, String(error))
  assert.equal(error.type, 'unavailable')
  await assert.rejects(http.post(request, never), /client is closed/)
})

/** Answers every request with the bytes that `next` holds, in pieces, and closes. */
async function talk(t: TestContext) {
  const next: { bytes: Buffer; pieceBytes: number } = { bytes: Buffer.alloc(0), pieceBytes: 1 }
  const server = createTcpServer(socket => {
    socket.on('error', () => undefined)
    socket.once('data', () => {
      for (let at = 0; at < next.bytes.length; at += next.pieceBytes)
        socket.write(next.bytes.subarray(at, at + next.pieceBytes))
      socket.end()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return { port: (server.address() as AddressInfo).port, next }
}

const numRuns = soak ? 5_000 : 100
const status = fc.constantFrom(200, 204, 304, 400, 408, 429, 503)
const body = fc.uint8Array({ maxLength: 200 }).map(bytes => Buffer.from(bytes))

/** The body as a server may send it. */
function framed(
  code: number,
  plain: Buffer,
  form: 'length' | 'chunked' | 'close',
  compressed: boolean,
): Buffer {
  const bytes = compressed ? gzipSync(plain) : plain
  const fields = compressed ? ['Content-Encoding: gzip'] : []
  if (form === 'length') fields.push(`Content-Length: ${bytes.length}`)
  if (form === 'chunked') fields.push('Transfer-Encoding: chunked')
  const head = Buffer.from([`HTTP/1.1 ${code} Words`, ...fields, '', ''].join('\r\n'))
  if (form !== 'chunked') return Buffer.concat([head, bytes])
  const half = bytes.length >>> 1
  const chunks = [bytes.subarray(0, half), bytes.subarray(half)].filter(({ length }) => length > 0)
  const parts = chunks.map(chunk =>
    Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n')]),
  )
  return Buffer.concat([head, ...parts, Buffer.from('0\r\n\r\n')])
}

const form = fc.constantFrom('length', 'chunked', 'close')

test('an answer is the same however it is framed, compressed and cut', async t => {
  const { port, next } = await talk(t)
  const http = client(t, port)
  await fc.assert(
    fc.asyncProperty(
      body,
      form,
      fc.boolean(),
      fc.integer({ min: 1, max: 400 }),
      async (plain, form, compressed, size) => {
        next.bytes = framed(200, plain, form, compressed)
        next.pieceBytes = size
        const got = await http.post(request, never)
        assert.deepEqual([got.status, got.fault, Buffer.from(got.body)], [200, '', plain])
      },
    ),
    { numRuns },
  )
})

test('whatever bytes come, the outcome is an answer within its bound or an error that says what failed', async t => {
  const { port, next } = await talk(t)
  const maxAnswerBytes = 100
  const http = client(t, port, { maxAnswerBytes })
  const junk = fc.uint8Array({ maxLength: 60 }).map(bytes => Buffer.from(bytes))
  const damaged = fc
    .tuple(status, body, form, fc.boolean(), fc.nat(400), fc.nat(400), junk)
    .map(([code, plain, form, compressed, from, to, instead]) => {
      const bytes = framed(code, plain, form, compressed)
      return Buffer.concat([bytes.subarray(0, from), instead, bytes.subarray(Math.max(from, to))])
    })
  await fc.assert(
    fc.asyncProperty(fc.oneof(damaged, junk), fc.integer({ min: 1, max: 400 }), async (bytes, size) => {
      next.bytes = bytes
      next.pieceBytes = size
      try {
        const got = await http.post(request, never)
        assert.ok(got.status >= 100 && got.status <= 999 && got.body.length <= maxAnswerBytes)
        assert.ok(got.fault === '' || got.body.length === 0)
      } catch (error) {
        assert.ok(
          error instanceof HttpError && error.message !== '' && error.message.length < 500,
          String(error),
        )
        assert.ok(error.type === 'unavailable', error.type)
      }
    }),
    { numRuns },
  )
})
