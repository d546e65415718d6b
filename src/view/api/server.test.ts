import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  ask,
  open,
  operations,
  raw,
  serve,
  settings,
  type TestServer,
} from '../../../test/helpers/api-server.ts'
import { until } from '../../../test/helpers/program.ts'
import { createLogger } from '../../foundation/lib/logger.ts'
import { StartError } from '../../foundation/lib/start-error.ts'
import { peerUser } from '../../kernel/peer-user.ts'
import { json } from './answer.ts'
import type { Answered } from './dispatch.ts'
import type { Operation } from './operation.ts'
import { type ApiSettings, startApi } from './server.ts'

const log = createLogger({ level: 'error', format: 'json', write: () => undefined })
const ends: (() => unknown)[] = []
const whole = { after: (end: () => unknown) => void ends.push(end) }
const observed: Answered[] = []
let server: TestServer
let port: number

before(async () => {
  server = await serve(whole, { debug: true }, { observe: request => observed.push(request) })
  port = server.api.port
})
after(async () => {
  for (const end of ends) await end()
})

test('an answer has a known length, a type that no browser guesses, and names no product', async () => {
  const check = async (path: string, want: unknown) => {
    const reply = await ask(port, path)
    assert.equal(reply.status, 200)
    assert.deepEqual(JSON.parse(reply.text), want)
    assert.equal(reply.headers['content-type'], 'application/json')
    assert.equal(reply.headers['content-length'], String(Buffer.byteLength(reply.text)))
    assert.equal(reply.headers['cache-control'], 'no-store')
    assert.equal(reply.headers['x-content-type-options'], 'nosniff')
    assert.equal(reply.headers.vary, undefined)
    assert.equal(reply.headers.server, undefined)
    assert.equal(reply.headers['x-powered-by'], undefined)
  }
  await check('/status', { status: 'ok' })
  await check('/status?pretty=1#x', { status: 'ok' })
  await check('/echo?a=1', { path: '/echo', parameters: {}, accept: null })
})

test('HEAD is GET without its body', async () => {
  const get = await ask(port, '/status')
  const head = await ask(port, '/status', { method: 'HEAD' })
  assert.equal(head.status, 200)
  assert.equal(head.text, '')
  assert.equal(head.headers['content-length'], get.headers['content-length'])
})

test('HEAD of a costly operation says what there would be, and does not run it', async () => {
  const head = await ask(port, '/debug/take?seconds=5', { method: 'HEAD' })
  assert.equal(head.status, 200)
  assert.equal(head.headers['content-type'], 'application/octet-stream')
  assert.equal(head.headers['content-length'], undefined)
  assert.equal(server.waiting.all.length, 0)
  assert.equal((await ask(port, '/debug/take?seconds=0', { method: 'HEAD' })).status, 400)
})

test('OPTIONS and a method that is not allowed tell what is', async () => {
  const check = async (path: string, method: string, allow: string) => {
    const options = await ask(port, path, { method: 'OPTIONS' })
    assert.deepEqual([options.status, options.headers.allow, options.text], [204, allow, ''])
    const other = await ask(port, path, { method })
    assert.deepEqual([other.status, other.headers.allow], [405, allow])
    assert.equal(JSON.parse(other.text).error, 'invalid_request')
  }
  await check('/status', 'POST', 'GET, HEAD, OPTIONS')
  await check('/status', 'TRACE', 'GET, HEAD, OPTIONS')
  await check('/admin/act', 'GET', 'POST, OPTIONS')
  const head = await ask(port, '/admin/act', { method: 'HEAD' })
  assert.deepEqual([head.status, head.headers.allow], [405, 'POST, OPTIONS'])
  assert.match(
    await raw(port, 'OPTIONS * HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n'),
    /^HTTP\/1.1 204 /,
  )
})

test('a path that is not there is the error object', async () => {
  for (const path of [
    '/',
    '/status/',
    '/nothing',
    '/status%2febpf',
    '/../status',
    '/__proto__',
    '/debug/x',
  ]) {
    const reply = await ask(port, path)
    assert.equal(reply.status, 404)
    const message = `cannot answer ${path}: path not found`
    assert.deepEqual(JSON.parse(reply.text), { error: 'not_found', message, details: { path } })
  }
})

test('debug paths are not there while debug mode is off, and the answer tells how to turn it on', async t => {
  const { api } = await serve(t)
  for (const path of ['/debug/vars', '/debug/nothing', '/debug/take?seconds=0'])
    for (const method of ['GET', 'POST', 'OPTIONS']) {
      const reply = await ask(api.port, path, { method })
      assert.equal(reply.status, 404)
      assert.match(JSON.parse(reply.text).message, /set self_telemetry\.debug: true$/)
    }
  api.prepare({ ...settings, debug: true }).commit()
  assert.equal((await ask(api.port, '/debug/vars')).status, 200)
  api.prepare(settings).abort()
  assert.equal((await ask(api.port, '/debug/vars')).status, 200)
})

test('parameters are read, and refused before anything runs', async () => {
  const answering = ask(port, '/debug/take?seconds=7#seconds=8')
  await server.waiting.come(1)
  assert.deepEqual(server.waiting.all[0]!.request.parameters, { seconds: 7 })
  server.waiting.release()
  assert.equal((await answering).status, 200)
  const refused = await ask(port, '/debug/take?seconds=61')
  assert.equal(refused.status, 400)
  assert.deepEqual(JSON.parse(refused.text).details, { parameter: 'seconds' })
})

test('a handler that fails answers 500 without a word of the cause, which is logged', async () => {
  for (const path of ['/throws', '/rejects']) {
    const reply = await ask(port, path)
    assert.equal(reply.status, 500)
    assert.equal(JSON.parse(reply.text).error, 'internal_error')
    assert.doesNotMatch(reply.text, /internal\/path/)
    assert.match(server.log.at(-1)!, /"level":"error".*secret \/internal\/path/)
  }
  await assert.rejects(ask(port, '/unsendable'))
  assert.equal((await ask(port, '/status')).status, 200)
})

test('what is no HTTP is answered with the error object', async t => {
  let asked = port
  const check = async (bytes: string, status: number) => {
    const text = await raw(asked, bytes)
    const [head, body] = text.split('\r\n\r\n') as [string, string]
    assert.match(head, new RegExp(`^HTTP/1.1 ${status} \\w`))
    assert.match(head, /^Content-Type: application\/json$/m)
    assert.match(head, /^Connection: close$/m)
    assert.match(head, new RegExp(`^Content-Length: ${Buffer.byteLength(body)}$`, 'm'))
    assert.equal(JSON.parse(body).error, 'invalid_request')
    assert.doesNotMatch(text, /node|HPE_|v\d+\.\d+\.\d+/i)
  }
  await check('\x16\x03\x01\x02\x00\x01\x00', 400)
  await check('nonsense\r\n\r\n', 400)
  await check('GET /healthz HTTP/9.9\r\n\r\n', 400)
  await check('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400)
  await check('GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n', 400)
  await check(`GET / HTTP/1.1\r\nHost: h\r\nX: ${'x'.repeat(200_000)}\r\n\r\n`, 431)
  await check('CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n', 405)
  const impatient = await serve(t, { debug: true }, { limits: { headersMs: 300, requestMs: 600 } })
  asked = impatient.api.port
  await check('GET /healthz HTTP/1.1\r\nHost: h\r\n', 408)
  await check('POST /admin/act HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n123', 408)
})

test('requests that HTTP allows and we do not are the error object too', async () => {
  const check = async (bytes: string, status: number) => {
    const text = await raw(port, bytes)
    assert.match(text, new RegExp(`^HTTP/1.1 ${status} `))
    assert.equal(JSON.parse(text.split('\r\n\r\n')[1]!).error, 'invalid_request')
  }
  await check('GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n', 400)
  await check('GET /healthz HTTP/1.1\r\nHost: h\r\nhost: g\r\nConnection: close\r\n\r\n', 400)
  await check('GET /healthz HTTP/1.1\r\nHost: h\r\nExpect: magic\r\nConnection: close\r\n\r\n', 417)
  await check(`GET /${'x'.repeat(9000)} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`, 414)
})

test('HTTP/1.0 without Host, the absolute form and an upgrade that we ignore are served', async () => {
  const check = async (bytes: string) => assert.match(await raw(port, bytes), /^HTTP\/1.1 200 OK\r\n/)
  await check('GET /healthz HTTP/1.0\r\n\r\n')
  await check('GET http://h:1/healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n')
  await check('GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: upgrade, close\r\nUpgrade: h2c\r\n\r\n')
})

test('a body of GET is read up to its limit, and refused beyond', async () => {
  const check = async (size: number, headers: Record<string, string>, status: number) => {
    const reply = await ask(port, '/healthz', { headers, body: Buffer.alloc(size) })
    assert.equal(reply.status, status)
    if (status === 413) assert.equal(JSON.parse(reply.text).error, 'invalid_request')
  }
  await check(65_536, { 'content-length': '65536' }, 200)
  await check(65_537, { 'content-length': '65537' }, 413)
  await check(65_536, { 'transfer-encoding': 'chunked' }, 200)
  await check(500_000, { 'transfer-encoding': 'chunked' }, 413)
  const refused = await raw(
    port,
    'POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 70000\r\n\r\n',
  )
  assert.match(refused, /^HTTP\/1.1 413 /)
})

test('a body of POST is empty or an object without keys', async () => {
  const check = async (body: string, type: string | undefined, status: number, message = /./) => {
    const headers: Record<string, string> = type === undefined ? {} : { 'Content-Type': type }
    const reply = await ask(port, '/admin/act', { method: 'POST', headers, body })
    assert.equal(reply.status, status, `${body} ${type}`)
    if (status !== 200) assert.match(JSON.parse(reply.text).message, message)
  }
  const jsonType = 'application/json'
  await check('', undefined, 200)
  await check('', 'text/plain', 200)
  await check('{}', jsonType, 200)
  await check(' { }\n', 'Application/JSON; charset=UTF-8', 200)
  await check('{}', undefined, 415)
  await check('{}', 'text/plain', 415, /application\/json/)
  await check('{}', 'application/json; charset=latin1', 415)
  await check('{"force":true}', jsonType, 400, /unexpected key "force"; send no body/)
  await check('{"a":x}', jsonType, 400, /not valid JSON, see character 6/)
  await check('[]', jsonType, 400)
  await check('null', jsonType, 400)
  await check('"secret', jsonType, 400, /^(?!.*secret).*see character 8/)
  await check('['.repeat(65_536), jsonType, 400, /character 65537/)
  await check('x'.repeat(65_537), jsonType, 413)
  const headers = { 'Content-Type': jsonType, 'Content-Encoding': 'gzip' }
  assert.equal((await ask(port, '/admin/act', { method: 'POST', headers, body: '{}' })).status, 415)
})

test('an operation that takes a body is handed an object, and refuses anything else', async t => {
  const taking: Operation = {
    method: 'POST',
    path: '/take',
    id: 'take',
    tag: 'ui',
    summary: '',
    access: 'private',
    body: { json: { type: 'object' } },
    outcomes: {},
    handle: ({ body }) => json(200, { body }),
  }
  const { api } = await serve(t, {}, { operations: [taking] })
  const check = async (body: string, type: string, status: number, said: RegExp) => {
    const reply = await ask(api.port, '/take', { method: 'POST', headers: { 'Content-Type': type }, body })
    assert.equal(reply.status, status, body)
    assert.match(reply.text, said)
  }
  const jsonType = 'application/json'
  await check('{"rules":"ä"}', jsonType, 200, /^\{"body":\{"rules":"ä"\}\}$/m)
  await check('{}', jsonType, 200, /^\{"body":\{\}\}$/m)
  await check('', jsonType, 400, /not valid JSON/)
  await check('{"rules":"a"}', 'text/plain', 415, /send a JSON object with Content-Type: application\/json/)
  await check('[]', jsonType, 400, /send a JSON object/)
  await check('{"a":', jsonType, 400, /see character 6/)
  await check(`{"a":"${'x'.repeat(65_536)}"}`, jsonType, 413, /larger than 65536 bytes/)
  const none = await ask(api.port, '/take', { method: 'POST' })
  assert.equal(none.status, 415)
})

test('a request that expects 100-continue gets it, unless it is refused anyway', async () => {
  const of = (path: string) =>
    raw(
      port,
      `GET ${path} HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi`,
    )
  assert.match(await of('/healthz'), /^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 OK\r\n/)
  assert.match(await of('/nothing'), /^HTTP\/1.1 404 /)
})

test('requests on one connection are answered in turn', async () => {
  const of = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${more}\r\n`
  const answering = raw(
    port,
    of('/healthz') + of('/debug/take') + of('/healthz') + of('/nothing', 'Connection: close\r\n'),
  )
  await server.waiting.come(1)
  server.waiting.release()
  const text = await answering
  assert.deepEqual(text.match(/HTTP\/1.1 \d+/g), [
    'HTTP/1.1 200',
    'HTTP/1.1 200',
    'HTTP/1.1 200',
    'HTTP/1.1 404',
  ])
  assert.ok(text.indexOf('"done"') < text.lastIndexOf('"ok"'))
})

test('what is no HTTP behind a request does not overtake its answer', async () => {
  const answering = raw(port, 'GET /debug/take HTTP/1.1\r\nHost: localhost\r\n\r\nnonsense\r\n\r\n')
  await server.waiting.come(1)
  server.waiting.release()
  const text = await answering
  assert.match(text, /^HTTP\/1.1 200 OK\r\n/)
  assert.match(text, /\r\nConnection: close\r\n/)
  assert.deepEqual(text.match(/HTTP\/1.1 \d+/g), ['HTTP/1.1 200'])
})

test('a CONNECT behind a request does not overtake its answer', async () => {
  const connect = 'CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n'
  const answering = raw(port, `GET /debug/take HTTP/1.1\r\nHost: localhost\r\n\r\n${connect}`)
  await server.waiting.come(1)
  server.waiting.release()
  assert.deepEqual((await answering).match(/HTTP\/1.1 \d+/g), ['HTTP/1.1 200'])
})

test('nothing is done for requests behind the last answer of a connection', async () => {
  const before = server.api.stats().requests.get(200) ?? 0
  const last = `PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx`
  const text = await raw(port, last + 'POST /admin/act HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(3))
  assert.deepEqual(text.match(/HTTP\/1.1 \d+/g), ['HTTP/1.1 404'])
  assert.equal(server.api.stats().requests.get(200) ?? 0, before)
})

test('an answer may take longer than the silence that ends a connection', async t => {
  const { api, waiting } = await serve(t, { debug: true }, { limits: { headersMs: 1000, requestMs: 1000 } })
  const answering = ask(api.port, '/debug/take')
  await waiting.come(1)
  const silent = await open(api.port)
  silent.pause()
  silent.write('GET /large HTTP/1.1\r\nHost: h\r\n\r\n')
  await until('both are there', 20_000, () => api.stats().connections === 2)
  // A peer that does not read is given up after the silence; the other has been silent for longer then.
  await until('the silent connection is given up', 20_000, () => api.stats().connections === 1)
  waiting.release()
  assert.equal((await answering).status, 200)
  silent.destroy()
})

test('the signal of a request aborts when its client goes, and not before', async () => {
  const socket = await open(port)
  socket.write('GET /debug/take HTTP/1.1\r\nHost: localhost\r\n\r\n')
  const staying = ask(port, '/debug/take')
  await server.waiting.come(2)
  const [gone, stays] = ['keep-alive', 'close'].map(
    kind => server.waiting.all.find(({ request }) => (request.headers.connection ?? 'keep-alive') === kind)!,
  ) as [(typeof server.waiting.all)[0], (typeof server.waiting.all)[0]]
  const aborted = new Promise(resolve => gone.request.signal.addEventListener('abort', resolve))
  socket.destroy()
  await aborted
  assert.equal(stays.request.signal.aborted, false)
  server.waiting.release()
  assert.equal((await staying).status, 200)
})

test('a client that goes is no error of the agent', async () => {
  const { log, api, waiting } = server
  const failures = api.stats().requests.get(500)
  const logged = log.length
  for (let i = 0; i < 9; i++) {
    const socket = await open(port)
    socket.write('GET /debug/take HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await waiting.come(1)
    const [{ request, fail }] = waiting.all.splice(0) as [(typeof waiting.all)[0]]
    const { signal } = request
    const aborted = new Promise<void>(resolve => signal.addEventListener('abort', () => resolve()))
    socket.destroy()
    await aborted
    fail(signal.reason)
  }
  // Nine would be too many at once: the places of those before are free again.
  const answering = ask(port, '/debug/take')
  await waiting.come(1)
  waiting.release()
  assert.equal((await answering).status, 200)
  assert.deepEqual(log.slice(logged), [])
  assert.equal(api.stats().requests.get(500), failures)
})

test('a few costly requests run at once, and others go on', async () => {
  const answering = Array.from({ length: 8 }, () => ask(port, '/debug/take'))
  await server.waiting.come(8)
  const ninth = await ask(port, '/debug/take')
  assert.deepEqual([ninth.status, ninth.headers['retry-after']], [503, '5'])
  assert.equal(JSON.parse(ninth.text).error, 'service_unavailable')
  assert.equal((await ask(port, '/healthz')).status, 200)
  server.waiting.release()
  for (const { status } of await Promise.all(answering)) assert.equal(status, 200)
  const again = ask(port, '/debug/take')
  await server.waiting.come(1)
  server.waiting.all.splice(0)[0]!.fail(new Error('broken'))
  assert.equal((await again).status, 500)
})

test('changes that wait are bounded, also on one connection', async () => {
  const post = 'POST /admin/wait HTTP/1.1\r\nHost: localhost\r\n\r\n'
  const last = post.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')
  const refused = () => server.api.stats().requests.get(503) ?? 0
  const before = refused()
  const answering = Array.from({ length: 10 }, () => raw(port, post.repeat(9) + last))
  await server.waiting.come(64)
  await until('the others are refused', 20_000, () => refused() === before + 36)
  server.waiting.release()
  const statuses = (await Promise.all(answering)).join('').match(/HTTP\/1.1 \d+/g)!
  assert.equal(statuses.filter(status => status.endsWith('200')).length, 64)
  assert.equal(statuses.filter(status => status.endsWith('503')).length, 36)
})

test('answers are observed and counted', async () => {
  observed.length = 0
  const before = server.api.stats().requests.get(404) ?? 0
  const started = Date.now() * 1000
  await ask(port, '/status?x')
  await ask(port, '/nothing')
  await ask(port, '/admin/act', { method: 'GET' })
  assert.deepEqual(
    observed.map(({ method, route, status }) => [method, route, status]),
    [
      ['GET', '/status', 200],
      ['GET', '', 404],
      ['GET', '/admin/act', 405],
    ],
  )
  for (const { seconds, startUs } of observed) {
    assert.ok(seconds > 0 && seconds < 60)
    assert.ok(Math.abs(startUs - started) < 60e6)
  }
  assert.equal(server.api.stats().requests.get(404), before + 1)
})

test('what cannot be guarded as asked is not started, nor taken up by a reload', async t => {
  const { api } = await serve(t)
  const check = async (changed: Partial<ApiSettings>, want: RegExp) => {
    const started = startApi({
      settings: { ...settings, ...changed },
      operations: operations(),
      log,
      peerUser,
    })
    await assert.rejects(started, (error: StartError) => {
      assert.ok(error instanceof StartError)
      assert.equal(error.exitCode, 2)
      assert.match(error.message, want)
      return true
    })
  }
  const auth = { ...settings.auth, enabled: true, bearer_tokens: [''] }
  await check({ auth }, /bearer_token is empty/)
  assert.throws(() => api.prepare({ ...settings, auth }), /bearer_token is empty/)
  assert.equal((await ask(api.port, '/status')).status, 200)
  await check({ listen: 'nowhere' }, /self_telemetry.listen is "nowhere"/)
  await check({ tls: { ...settings.tls, enabled: true } }, /tls\.cert_file is empty/)
  await assert.rejects(
    startApi({ settings, operations: [...operations(), operations()[5]!], log, peerUser }),
    /cannot serve the metrics at \/status/,
  )
})

test('a port that is taken is refused with the name of who has it', async () => {
  const taken = { ...settings, listen: `127.0.0.1:${port}` }
  await assert.rejects(
    startApi({ settings: taken, operations: operations(), log, peerUser }),
    (error: StartError) => {
      assert.equal(error.exitCode, 1)
      const listen = `cannot listen on 127\\.0\\.0\\.1:${port} \\(self_telemetry\\.listen\\)`
      assert.match(error.message, new RegExp(`^${listen}: the port is in use by .+ \\(pid ${process.pid}\\)`))
      return true
    },
  )
})

test('an address of every kind can be listened on, and beyond this host it is told', async () => {
  const check = async (listen: string, exposed: boolean) => {
    const api = await startApi({ settings: { ...settings, listen }, operations: operations(), log, peerUser })
    const { hostname, port } = new URL(api.url('/healthz'))
    assert.ok(['127.0.0.1', '[::1]'].includes(hostname))
    assert.equal(api.exposed, exposed)
    if (hostname === '127.0.0.1') assert.equal((await ask(Number(port), '/healthz')).status, 200)
    const auth = { ...settings.auth, enabled: true, bearer_token: 'x' }
    api.prepare({ ...settings, auth }).commit()
    assert.equal(api.exposed, false)
    await api.close()
    await api.close()
  }
  await check(':0', true)
  await check('0.0.0.0:0', true)
  await check('localhost:0', false)
})

test('the end waits for an answer that is being written, and not for one that is not', async t => {
  const { api, waiting } = await serve(t, { debug: true })
  const answering = ask(api.port, '/debug/take')
  await waiting.come(1)
  const closing = api.close()
  waiting.all[0]!.answer(json(200, 'last'))
  assert.equal((await answering).text, '"last"\n')
  await closing
  const other = await serve(t, { debug: true })
  const cut = assert.rejects(ask(other.api.port, '/debug/take'))
  await other.waiting.come(1)
  const { signal } = other.waiting.all[0]!.request
  const aborted = new Promise(resolve => signal.addEventListener('abort', resolve))
  await other.api.close()
  await cut
  await aborted
})
