import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcp, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { makeCertificates } from '../../../test/helpers/certificates.ts'
import { withoutZstd } from '../../../test/helpers/host-needs.ts'
import {
  type HttpAnswer,
  type HttpReceiverOptions,
  startHttpReceiver,
} from '../../../test/helpers/otlp-http-receiver.ts'
import { batchOf, failure, never, noTls } from '../../../test/helpers/sending.ts'
import { plainBatch } from '../../foundation/model/batch.ts'
import { type Signal, signals } from '../../foundation/model/signal.ts'
import { compress, zstdAvailable } from './compression.ts'
import { type OtlpHttpOptions, otlpHttp } from './otlp-http.ts'

const protocols = ['http/protobuf', 'http/json'] as const

async function receive(t: TestContext, options: HttpReceiverOptions = {}) {
  const receiver = await startHttpReceiver(options)
  t.after(() => receiver.close())
  return receiver
}

function open(t: TestContext, endpoint: string, options: Partial<OtlpHttpOptions> = {}) {
  const sender = otlpHttp({
    protocol: 'http/protobuf',
    endpoint,
    ownEndpoint: false,
    insecure: true,
    headers: {},
    compression: 'gzip',
    timeoutMs: 10_000,
    tls: noTls,
    version: '1.2.3',
    ...options,
  })
  t.after(() => sender.close())
  return sender
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(resolve => setTimeout(resolve, 2))
}

test('a batch arrives whole in either form and every compression, over one connection', async t => {
  for (const protocol of protocols)
    for (const compression of ['gzip', 'none', ...(zstdAvailable ? (['zstd'] as const) : [])] as const) {
      const receiver = await receive(t, { keep: true })
      const sender = open(t, receiver.endpoint, { protocol, compression })
      assert.equal(sender.connected, false)
      for (const spans of [1, 100, 20_000]) {
        receiver.lines.length = 0
        const sent = await sender.send(await compress(batchOf(spans), compression), never)
        assert.deepEqual(sent, { rejected: 0, message: '', httpStatus: 200 })
        assert.deepEqual(
          receiver.lines.map(line => line.name),
          Array.from({ length: spans }, (_, i) => `span ${i}`),
        )
        const { headers } = receiver.requests.at(-1)!
        const compressed = spans > 1 && compression !== 'none'
        assert.equal(headers['content-encoding'], compressed ? compression : undefined)
        assert.equal(
          headers['content-type'],
          protocol === 'http/json' ? 'application/json' : 'application/x-protobuf',
        )
      }
      assert.equal(sender.connected, true)
      assert.equal(receiver.counts.connections, 1)
    }
})

test('a backlog that was compressed by other settings is sent by those of now', async t => {
  const receiver = await receive(t, { keep: true })
  const compressed = await compress(batchOf(100), zstdAvailable ? 'zstd' : 'gzip')
  for (const [compression, want] of [
    ['none', undefined],
    ['gzip', 'gzip'],
  ] as const) {
    await open(t, receiver.endpoint, { compression }).send(compressed, never)
    assert.equal(receiver.requests.at(-1)!.headers['content-encoding'], want)
  }
  assert.equal(receiver.counts.traces, 200)
  const broken = { ...compressed, body: compressed.body.subarray(0, 20) }
  const error = await failure(open(t, receiver.endpoint, { compression: 'none' }).send(broken, never))
  assert.deepEqual([error.type, error.retryable], ['internal', false])
  assert.match(error.message, /cannot export traces to 127\.0\.0\.1:\d+: cannot decompress a batch of traces/)
})

test('a receiver that refuses zstd gets gzip, and the operator the way to spare that', {
  skip: withoutZstd,
}, async t => {
  const receiver = await receive(t)
  const batch = await compress(batchOf(100), 'zstd')
  const check = async (status: number, message: string, protocol: OtlpHttpOptions['protocol']) => {
    receiver.requests.length = 0
    receiver.answer = ({ headers }) =>
      headers['content-encoding'] === 'zstd' ? { kind: 'refuse', status, message } : { kind: 'ok' }
    const sender = open(t, receiver.endpoint, { protocol, compression: 'zstd' })
    for (let i = 0; i < 2; i++) {
      const receipt = await sender.send(batch, never)
      assert.match(receipt.message, /does not accept zstd.* set otlp\.compression to gzip/)
    }
    const seen = receiver.requests.map(({ headers }) => headers['content-encoding'])
    assert.deepEqual(seen, ['zstd', 'gzip', 'gzip'])
  }
  for (const protocol of protocols) {
    await check(415, '', protocol)
    await check(400, 'unsupported Content-Encoding: zstd', protocol)
  }
  receiver.answer = () => ({ kind: 'refuse', status: 400, message: 'bad' })
  const error = await failure(open(t, receiver.endpoint, { compression: 'zstd' }).send(batch, never))
  assert.deepEqual([error.type, error.httpStatus], ['http_400', 400])
  assert.equal(receiver.requests.length, 4)
})

test('each signal has its path, behind that of a base endpoint; the URL of one signal is kept', async t => {
  const receiver = await receive(t)
  const pathOf = async (path: string, signal: Signal, ownEndpoint = false) => {
    const sender = open(t, `${receiver.endpoint}${path}`, { ownEndpoint })
    receiver.answer = () => ({ kind: 'refuse', status: 400 })
    await failure(sender.send(plainBatch(signal, 0, new Uint8Array()), never))
    const asked = receiver.requests.at(-1)!.path
    const shown = /^\/v1(development)?\/\w+$/.test(asked) ? asked : '/REDACTED'
    assert.deepEqual(sender.callOf(signal), { protocol: 'http', url: receiver.endpoint + shown })
    return asked
  }
  for (const signal of signals) {
    const path = signal === 'profiles' ? '/v1development/profiles' : `/v1/${signal}`
    assert.equal(await pathOf('', signal), path)
    assert.equal(await pathOf('/', signal), path)
    assert.equal(await pathOf('/otlp/', signal), `/otlp${path}`)
    assert.equal(await pathOf('/own', signal, true), '/own')
    assert.equal(await pathOf('/own/', signal, true), '/own/')
    assert.equal(await pathOf('', signal, true), '/')
  }
})

test('requests carry the configured headers, the user agent and the name of the host', async t => {
  const receiver = await receive(t)
  const headers = { Authorization: 'Bearer secret ', 'X-Scope-OrgID': 'a' }
  await open(t, receiver.endpoint, { headers }).send(batchOf(1), never)
  const { headers: seen } = receiver.requests[0]!
  assert.equal(seen.authorization, 'Bearer secret')
  assert.equal(seen['x-scope-orgid'], 'a')
  assert.equal(seen['user-agent'], 'svc/1.2.3 OTel-OTLP-Exporter-TypeScript/1.2.3')
  assert.equal(seen.host, `127.0.0.1:${receiver.port}`)
})

test('what can never be sent is refused at once, without a value in the message', () => {
  const check = (options: Partial<OtlpHttpOptions>, want: RegExp) =>
    assert.throws(
      () => open({ after: () => {} } as unknown as TestContext, options.endpoint ?? 'a', options),
      (error: Error) => want.test(error.message) && !error.message.includes('secret'),
    )
  check({ headers: { authorization: 'secret\r\nx: y' } }, /header "authorization": its value/)
  check({ headers: { 'x key': 'secret' } }, /header "x key": HTTP allows/)
  check({ headers: { 'Content-Length': 'secret' } }, /header "Content-Length": the protocol sets it/)
  check({ endpoint: 'http://a/pfäd' }, /percent-encode/)
  check({ endpoint: 'http://u:secret@a' }, /a user name or password/)
})

test('each status is sent again or final as OTLP has it, and waits as long as the server asks', async t => {
  const receiver = await receive(t)
  const sender = open(t, receiver.endpoint)
  const now = Date.parse('Sun, 06 Nov 1994 08:49:30 GMT')
  const waits: [string | undefined, number][] = [
    [undefined, 0],
    ['7', 7000],
    ['Sun, 06 Nov 1994 08:49:37 GMT', 7000],
    ['Sunday, 06-Nov-94 08:49:37 GMT', 7000],
    ['Sun Nov  6 08:49:37 1994', 7000],
    ['Sun, 06 Nov 1994 08:49:20 GMT', 0],
    ['-1', 0],
    ['1.5', 0],
    ['soon', 0],
    ['99999999999999999999', 0],
  ]
  const check = async (status: number, type: string, retryable: boolean) => {
    for (const [wait, want] of waits) {
      const headers = { date: new Date(now).toUTCString(), ...(wait && { 'retry-after': wait }) }
      receiver.answer = () => ({ kind: 'refuse', status, message: 'because', headers })
      const error = await failure(sender.send(batchOf(1), never))
      assert.deepEqual(
        [status, wait, error.type, error.retryable, error.retryAfterMs],
        [status, wait, type, retryable, retryable ? want : 0],
      )
      assert.match(
        error.message,
        new RegExp(`^cannot export traces to 127.0.0.1:\\d+: HTTP ${status} [^:]+: because(;|$)`),
      )
    }
  }
  await check(400, 'http_400', false)
  await check(401, 'unauthenticated', false)
  await check(403, 'permission_denied', false)
  await check(404, 'unimplemented', false)
  await check(405, 'unimplemented', false)
  await check(408, 'http_408', false)
  await check(413, 'too_large', false)
  await check(415, 'http_415', false)
  await check(422, 'http_422', false)
  await check(429, 'http_429', true)
  await check(500, 'http_500', false)
  await check(501, 'unimplemented', false)
  await check(502, 'http_502', true)
  await check(503, 'http_503', true)
  await check(504, 'http_504', true)
})

test("a server's words are shown in each form that it may use, on one line and bounded", async t => {
  const receiver = await receive(t)
  const wordsOf = async (
    answer: Omit<HttpAnswer & { kind: 'refuse' }, 'kind'>,
    protocol = protocols[0] as OtlpHttpOptions['protocol'],
  ) => {
    receiver.answer = () => ({ kind: 'refuse', ...answer })
    const { message } = await failure(open(t, receiver.endpoint, { protocol }).send(batchOf(1), never))
    return message.replace(/^cannot export traces to 127.0.0.1:\d+: /, '')
  }
  const json = { 'content-type': 'application/json; charset=utf-8' }
  const text = { 'content-type': 'text/plain' }
  const html = { 'content-type': 'text/html' }
  assert.equal(await wordsOf({ status: 400, message: 'schlecht: ü' }), 'HTTP 400 Bad Request: schlecht: ü')
  assert.equal(await wordsOf({ status: 400, message: 'bad' }, 'http/json'), 'HTTP 400 Bad Request: bad')
  assert.equal(await wordsOf({ status: 400, body: 'no json', headers: json }), 'HTTP 400 Bad Request')
  assert.equal(await wordsOf({ status: 400, body: '[1]', headers: json }), 'HTTP 400 Bad Request')
  assert.equal(await wordsOf({ status: 400, body: '\xff\xff' }), 'HTTP 400 Bad Request')
  assert.equal(
    await wordsOf({ status: 503, body: ' a\r\n\u001b[31mb\n', headers: text }),
    'HTTP 503 Service Unavailable: a [31mb',
  )
  assert.equal(await wordsOf({ status: 400, body: '<h1>', headers: html }), 'HTTP 400 Bad Request')
  assert.equal(
    (await wordsOf({ status: 400, body: 'x'.repeat(60_000), headers: text })).length,
    'HTTP 400 Bad Request: '.length + 512,
  )
  assert.equal(
    await wordsOf({ status: 400, body: 'x'.repeat(70_000), headers: text }),
    'HTTP 400 Bad Request',
  )
  assert.equal(await wordsOf({ status: 599 }), 'HTTP 599')
  assert.match(
    await wordsOf({ status: 404, body: '404 page not found\n', headers: text }),
    /^HTTP 404 Not Found: 404 page not found; check the path/,
  )
  assert.match(await wordsOf({ status: 404 }), /^HTTP 404 Not Found: check the path of otlp\.endpoint$/)
  assert.match(await wordsOf({ status: 415 }), /does not accept this otlp\.protocol/)
})

test('a request that is too large is told as such, with the limit where the server names it', async t => {
  const receiver = await receive(t)
  const check = async (status: number, body: string, type: string, limit: number) => {
    receiver.answer = () => ({ kind: 'refuse', status, body, headers: { 'content-type': 'text/plain' } })
    const error = await failure(open(t, receiver.endpoint).send(batchOf(1), never))
    assert.deepEqual([error.type, error.retryable, error.limitBytes], [type, false, limit])
  }
  await check(413, '', 'too_large', 0)
  await check(413, 'message larger than max (5000 vs. 4000)', 'too_large', 4000)
  await check(400, 'http: request body too large', 'too_large', 0)
  await check(400, 'bad', 'http_400', 0)
  // A limit of JSON is a smaller one of protobuf, in which batches are measured.
  receiver.answer = () => ({
    kind: 'refuse',
    status: 413,
    message: 'message larger than max (5000 vs. 4000)',
  })
  const json = open(t, receiver.endpoint, { protocol: 'http/json', compression: 'none' })
  const batch = batchOf(100)
  const { limitBytes } = await failure(json.send(batch, never))
  const { body } = receiver.requests.at(-1)!
  assert.equal(limitBytes, Math.floor((4000 * batch.plainBytes) / body.length))
})

test('a redirect is not followed, and its place is named without secrets', async t => {
  const receiver = await receive(t)
  const check = async (location: string | undefined, want: RegExp) => {
    receiver.answer = () => ({ kind: 'refuse', status: 301, headers: location ? { location } : {} })
    const error = await failure(open(t, receiver.endpoint).send(batchOf(1), never))
    assert.deepEqual([error.type, error.retryable], ['http_301', false])
    assert.match(error.message, want)
    assert.doesNotMatch(error.message, /hunter2/)
  }
  await check(
    'https://u:hunter2@b/v1/traces?x=hunter2',
    /redirect to https:\/\/b\/v1\/traces; set otlp\.endpoint/,
  )
  await check('/elsewhere', /svc does not follow redirects/)
  await check(undefined, /svc does not follow redirects/)
  assert.equal(receiver.counts.requests, 3)
})

test('a partial success tells what was rejected, and a warning may reject nothing', async t => {
  const receiver = await receive(t)
  for (const protocol of protocols) {
    const sender = open(t, receiver.endpoint, { protocol })
    const check = async (
      answer: Omit<HttpAnswer & { kind: 'ok' }, 'kind'>,
      rejected: number,
      message: string,
    ) => {
      receiver.answer = () => ({ kind: 'ok', ...answer })
      assert.deepEqual(await sender.send(batchOf(10), never), {
        rejected,
        message,
        httpStatus: answer.status ?? 200,
      })
    }
    await check({ rejected: 3, message: 'too old' }, 3, 'too old')
    await check({ rejected: 3, message: 'too old', gzip: true }, 3, 'too old')
    await check({ message: 'use the new port' }, 0, 'use the new port')
    await check({ rejected: 10 }, 10, '')
    await check({ status: 202 }, 0, '')
  }
})

test('a batch that was taken is not sent again, whatever the answer holds', async t => {
  const receiver = await receive(t)
  const check = async (answer: HttpAnswer, want: RegExp, timeoutMs = 10_000) => {
    receiver.answer = () => answer
    const sender = open(t, receiver.endpoint, { timeoutMs })
    const receipt = await sender.send(batchOf(1), never)
    assert.equal(receipt.rejected, 0)
    assert.match(receipt.message, want)
  }
  const unread = (cause: string) => new RegExp(`^cannot read the answer: ${cause}`)
  await check({ kind: 'ok', padding: 5 << 20 }, unread('it is larger than 4194304 bytes'))
  await check({ kind: 'ok', padding: 5 << 20, gzip: true }, unread('it is larger than 4194304 bytes'))
  await check(
    { kind: 'ok', message: 'x', headers: { 'content-encoding': 'br' } },
    unread('it is compressed with br'),
  )
  await check(
    { kind: 'ok', message: 'x', headers: { 'content-encoding': 'gzip' } },
    unread('it is not valid gzip'),
  )
  await check({ kind: 'ok', message: 'x', headers: { 'content-type': 'application/json' } }, unread(''))
  await check({ kind: 'ok', message: 'x', headers: { 'content-type': 'text/html' } }, /^$/)
  await check({ kind: 'stall', headers: true }, unread('no answer within 3000 ms'), 3000)
  await check({ kind: 'cut', headers: true }, unread('(it was cut off|the connection was lost)'))
  await check({ kind: 'ok' }, /^$/)
})

test('a receiver that stalls costs the deadline; one that cuts the connection is tried again', async t => {
  const receiver = await receive(t)
  receiver.answer = () => ({ kind: 'stall' })
  const late = await failure(open(t, receiver.endpoint, { timeoutMs: 3000 }).send(batchOf(1), never))
  assert.deepEqual([late.type, late.retryable], ['deadline_exceeded', true])
  assert.match(late.message, /no answer within 3000 ms/)
  const sender = open(t, receiver.endpoint)
  receiver.answer = () => ({ kind: 'cut' })
  const cut = await failure(sender.send(batchOf(1), never))
  assert.deepEqual([cut.type, cut.retryable], ['unavailable', true])
  assert.match(cut.message, /connection was lost/)
  receiver.answer = () => ({ kind: 'ok' })
  await sender.send(batchOf(1), never)
  assert.equal(receiver.counts.requests, 3)
})

test('a kept connection that the server has closed meanwhile costs nothing', async t => {
  const receiver = await receive(t)
  const sender = open(t, receiver.endpoint)
  for (let i = 1; i <= 3; i++) {
    await Promise.all([sender.send(batchOf(1), never), sender.send(batchOf(1), never)])
    receiver.cut() // the client has had no turn to notice
  }
  assert.equal(receiver.counts.traces, 6)
})

test('a server that answers before it has read the request is heard', async t => {
  const server = createServer((_request, response) => {
    response.writeHead(413, { 'content-type': 'text/plain' })
    response.end('too much')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const sender = open(t, `http://127.0.0.1:${port}`, { compression: 'none' })
  const large = plainBatch('traces', 1, Buffer.alloc(8 << 20))
  for (let i = 0; i < 3; i++) assert.equal((await failure(sender.send(large, never))).type, 'too_large')
})

test('nothing on the port, no such name, a port of gRPC, and a silent server are told apart', async t => {
  const sockets: Socket[] = []
  const listen = async (greet: string) => {
    const server = createTcp(socket => {
      sockets.push(socket)
      socket.on('error', () => {}) // the client leaves
      socket.once('data', () => socket.write(greet, 'latin1'))
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    t.after(() => {
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    return (server.address() as AddressInfo).port
  }
  const check = async (endpoint: string, type: string, want: RegExp, timeoutMs = 60_000) => {
    const error = await failure(open(t, endpoint, { timeoutMs }).send(batchOf(1), never))
    assert.deepEqual([error.type, error.retryable], [type, true])
    assert.match(error.message, want)
  }
  await check('127.0.0.1:1', 'connect', /ECONNREFUSED/)
  await check('no..such', 'dns', /no\.\.such does not resolve/)
  await check(
    `127.0.0.1:${await listen('\0\0\0\x04\0\0\0\0\0')}`,
    'unavailable',
    /does not speak HTTP\/1\.1 .*a gRPC port/,
  )
  await check(`127.0.0.1:${await listen('')}`, 'deadline_exceeded', /no answer within/, 3000)
  await check(`https://127.0.0.1:${await listen('')}`, 'connect', /no connection within/, 500)
})

test('a request that is stopped ends at once, before, while connecting and while it runs', async t => {
  const receiver = await receive(t)
  receiver.answer = () => ({ kind: 'stall' })
  const sender = open(t, receiver.endpoint)
  const check = async (stop: AbortSignal) => {
    const error = await failure(sender.send(batchOf(1), stop))
    assert.deepEqual([error.type, error.retryable], ['cancelled', true])
  }
  await check(AbortSignal.abort())
  const early = new AbortController()
  const connecting = check(early.signal)
  setImmediate(() => early.abort())
  await connecting
  const later = new AbortController()
  const before = receiver.counts.requests
  const running = check(later.signal)
  await until(() => receiver.counts.requests > before)
  later.abort()
  await running
})

test('closing lets requests under way end, and then ends the connections', async t => {
  const receiver = await receive(t)
  const answers: (() => void)[] = []
  receiver.answer = () => new Promise(resolve => answers.push(() => resolve({ kind: 'ok' })))
  const sender = open(t, receiver.endpoint)
  const sent = [sender.send(batchOf(1), never), sender.send(batchOf(100), never)]
  await until(() => answers.length === 2)
  const closed = sender.close()
  for (const answer of answers) answer()
  assert.deepEqual(await Promise.all(sent), Array(2).fill({ rejected: 0, message: '', httpStatus: 200 }))
  await closed
  await until(() => !sender.connected)
  await sender.close()
  assert.equal((await failure(sender.send(batchOf(1), never))).retryable, true)
})

test('TLS: the right authority and name are accepted, with a client certificate where one is asked for', async t => {
  const made = makeCertificates()
  t.after(() => made.remove())
  const tls = { cert: made.text('server.pem'), key: made.text('server.key') }
  const plain = await receive(t, { tls })
  const mutual = await receive(t, { tls: { ...tls, clientCa: made.text('ca.pem') } })
  const to = (endpoint: string, options: Partial<OtlpHttpOptions['tls']>) =>
    open(t, endpoint, { tls: { ...noTls, ...options } }).send(batchOf(10), never)
  const ca = { caFile: made.file('ca.pem') }
  const client = { certFile: made.file('client.pem'), keyFile: made.file('client.key') }
  await to(plain.endpoint, ca)
  await to(plain.endpoint, { ...ca, serverName: 'localhost' })
  await to(mutual.endpoint, { ...ca, ...client })
  const refused = async (sent: Promise<unknown>, types: readonly string[], want: RegExp) => {
    const error = await failure(sent)
    assert.ok(types.includes(error.type) && error.retryable, error.type)
    assert.match(error.message, want)
  }
  await refused(to(plain.endpoint, {}), ['tls'], /unable to verify|self.signed/)
  await refused(to(plain.endpoint, { ...ca, serverName: 'elsewhere' }), ['tls'], /does not match/)
  // TLS 1.3 tells of a missing certificate after the handshake, in the answer's place.
  await refused(to(mutual.endpoint, ca), ['tls', 'unavailable'], /certificate|reset|closed|hang up/i)
})
