// owns: ports
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { AgentProcess } from '../helpers/agent-process.ts'
import { output } from '../helpers/load.ts'
import { freePort, until } from '../helpers/program.ts'
import { chunked, head, RawTalk, split, type Turn } from '../helpers/raw-talk.ts'
import { client, type SpanLine, server, Telemetry } from '../helpers/telemetry.ts'
import { bigBytes, type Nginx, startNginx } from '../helpers/web-servers.ts'

let telemetry: Telemetry
let agent: AgentProcess
let talk: RawTalk
let excluded: RawTalk
let unlisted: RawTalk
let nginx: Nginx
let directory: string
/** Spans of `talk` that the tests asked for; at the end there must be no others. */
let expected = 0

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'svc-odd-'))
  telemetry = await Telemetry.start()
  nginx = await startNginx(await freePort())
  talk = await RawTalk.start(0)
  excluded = await RawTalk.start(0)
  unlisted = await RawTalk.start(0)
  agent = await AgentProcess.start({
    endpoint: telemetry.endpoint,
    ports: [talk.port, excluded.port, nginx.port],
    config: {
      agent: {
        ebpf: { network: { exclude_ports: [excluded.port], routes: { max_segment_cardinality: 100 } } },
      },
    },
  })
})

after(async () => {
  await agent?.stop()
  for (const one of [talk, excluded, unlisted, nginx, telemetry]) await one?.close()
  rmSync(directory, { recursive: true, force: true })
})

const ok = head('HTTP/1.1 200 OK', 'Content-Length: 2')

function get(path: string, ...headers: readonly string[]): string {
  return head(`GET ${path} HTTP/1.1`, `Host: 127.0.0.1:${talk.port}`, ...headers)
}

type Expected = Readonly<Record<string, unknown>>

/** The spans of a path; a client's is known by its URL. */
function ofPath(port: number, path: string): { server: SpanLine[]; client: SpanLine[] } {
  const all = telemetry.spans(port)
  const pathOf = ({ attributes }: SpanLine): string =>
    String(attributes['url.path'] ?? String(attributes['url.full']).replace(/^http:\/\/[^/]*/, ''))
  return {
    server: all.filter(span => span.kind === server && pathOf(span) === path),
    client: all.filter(span => span.kind === client && pathOf(span) === path),
  }
}

/**
 * Checks that a path has exactly one span on each side, with these attributes among others (undefined: it has none of
 * that name), and that they are joined.
 */
function check(
  port: number,
  path: string,
  want: Expected,
  onlyServer: Expected = {},
  onlyClient: Expected = {},
) {
  if (port === talk.port) expected += 2
  const found = ofPath(port, path)
  assert.equal(found.server.length, 1, `server spans of ${path}`)
  assert.equal(found.client.length, 1, `client spans of ${path}`)
  const [ofServer, ofClient] = [found.server[0]!, found.client[0]!]
  for (const [span, more] of [
    [ofServer, onlyServer],
    [ofClient, onlyClient],
  ] as const) {
    const wanted = { 'error.type': undefined, ...want, ...more }
    const got = Object.fromEntries(Object.keys(wanted).map(key => [key, span.attributes[key]]))
    assert.deepEqual(got, wanted, `${span.kind === server ? 'server' : 'client'} span of ${path}`)
    assert.equal(span.status, wanted['error.type'] === undefined ? 0 : 2, path)
    assert.ok(BigInt(span.endNs) >= BigInt(span.startNs), path)
  }
  assert.equal(ofServer.traceId, ofClient.traceId, `one trace of ${path}`)
  if (ofClient.parentSpanId === '') assert.equal(ofServer.parentSpanId, ofClient.spanId, `parent of ${path}`)
  return { ofServer, ofClient }
}

async function have(turns: readonly Turn[], options?: { stopAfter?: number }): Promise<void> {
  await talk.have(turns, options)
  await telemetry.settle(agent)
}

const good = { 'http.response.status_code': 200 }
const bodies = (request: number, response: number) => ({
  'http.request.body.size': request,
  'http.response.body.size': response,
})

test('heads whose bytes come one by one are read whole', async () => {
  const request = get('/bytes', 'X-Some: thing')
  await have([{ request: split(request, 1), answer: split(`${ok}hi`, 1) }])
  check(talk.port, '/bytes', { ...good, ...bodies(0, 2), 'http.request.method': 'GET' })
})

test('chunked bodies end where they end, however they are written', async () => {
  const put = (path: string) =>
    head(`PUT ${path} HTTP/1.1`, `Host: 127.0.0.1:${talk.port}`, 'Transfer-Encoding: chunked')
  const start = head('HTTP/1.1 200 OK', 'Transfer-Encoding: chunked')
  const long = 'z'.repeat(5000)
  const body = chunked('one', long, 'GET / HTTP/1.1\r\n\r\n')
  const special = `3;name="a b"\r\nabc\r\nA;x\r\n0123456789\r\n0;last\r\nTrailer: one\r\nOther: two\r\n\r\n`
  const cut = (text: string, at: number) => [text.slice(0, at), text.slice(at)]
  const turn = (n: number, request: (text: string) => readonly string[], text = body): Turn => ({
    request: request(put(`/chunked/${n}`) + text),
    answer: request(start + text),
  })
  await have([
    turn(1, text => [text]),
    turn(2, text => split(text, 7)),
    turn(3, text => split(text, 1), special),
    turn(4, text => [text], special),
    turn(5, text => cut(text, text.length - 1)),
    turn(6, text => cut(text, text.length - 2)),
    turn(7, text => cut(text, text.length - 3)),
    turn(8, text => cut(text, text.length - 5)),
    turn(9, text => cut(text, text.indexOf('\r\n\r\n') + 4)),
    turn(10, text => [text], chunked()),
  ])
  for (const n of [1, 2, 5, 6, 7, 8, 9])
    check(talk.port, `/chunked/${n}`, { ...good, ...bodies(body.length, body.length) })
  for (const n of [3, 4]) check(talk.port, `/chunked/${n}`, bodies(special.length, special.length))
  check(talk.port, '/chunked/10', bodies(5, 5))
})

test('answers that have no body whatever their head says do not swallow the next answer', async () => {
  const host = `Host: 127.0.0.1:${talk.port}`
  await have([
    {
      request: [head('HEAD /none/head HTTP/1.1', host)],
      answer: [head('HTTP/1.1 200 OK', 'Content-Length: 500')],
    },
    { request: [get('/none/204')], answer: [head('HTTP/1.1 204 No Content')] },
    {
      request: [get('/none/304', 'If-None-Match: "a"')],
      answer: [head('HTTP/1.1 304 Not Modified', 'Content-Length: 500')],
    },
    { request: [get('/none/after')], answer: [`${ok}hi`] },
  ])
  check(talk.port, '/none/head', { ...good, ...bodies(0, 0), 'http.request.method': 'HEAD' })
  check(talk.port, '/none/204', { ...bodies(0, 0), 'http.response.status_code': 204 })
  check(talk.port, '/none/304', { ...bodies(0, 0), 'http.response.status_code': 304 })
  check(talk.port, '/none/after', { ...good, ...bodies(0, 2) })
})

test('interim answers belong to the exchange that they announce', async () => {
  const hints = head('HTTP/1.1 103 Early Hints', 'Link: </style.css>; rel=preload')
  const processing = head('HTTP/1.1 102 Processing')
  await have([
    { request: [get('/interim/first')], answer: [hints, processing, `${ok}hi`] },
    { request: [get('/interim/second')], answer: [`${hints}${hints}${ok}hi`] },
  ])
  for (const path of ['first', 'second']) check(talk.port, `/interim/${path}`, { ...good, ...bodies(0, 2) })
})

test('an answer before the whole request came does not confuse what follows', async () => {
  const refused = head('HTTP/1.1 413 Content Too Large', 'Content-Length: 0')
  const post = (path: string, coding: string) =>
    head(`POST ${path} HTTP/1.1`, `Host: 127.0.0.1:${talk.port}`, coding)
  const known = post('/early/known', 'Content-Length: 1000')
  const unknown = post('/early/unknown', 'Transfer-Encoding: chunked')
  await have([
    {
      request: [known, ...split('e'.repeat(1000), 10)],
      answer: [refused],
      early: known.length + 10,
    },
    { request: [get('/early/between')], answer: [`${ok}hi`] },
    { request: [unknown, ...split(chunked('e'.repeat(1000)), 10)], answer: [refused], early: unknown.length },
    { request: [get('/early/after')], answer: [`${ok}hi`] },
  ])
  const status = { 'http.response.status_code': 413, 'http.response.body.size': 0 }
  for (const path of ['known', 'unknown'])
    check(talk.port, `/early/${path}`, status, {}, { 'error.type': '413' })
  for (const path of ['between', 'after']) check(talk.port, `/early/${path}`, { ...good, ...bodies(0, 2) })
})

test('a target longer than what is captured is cut and its exchange followed', async () => {
  const long = `/target/${'t'.repeat(3000)}`
  await have([
    { request: [get(long)], answer: [`${ok}hi`] },
    { request: split(get(`${long}?again`), 500), answer: [`${ok}hi`] },
    { request: [get('/target-after')], answer: [`${ok}hi`] },
  ])
  check(talk.port, '/target-after', good)
  const cut = telemetry
    .spans(talk.port, server)
    .filter(({ attributes }) => String(attributes['url.path']).startsWith('/target/'))
  assert.equal(cut.length, 2)
  expected += 4
  for (const { attributes } of cut) {
    assert.ok(long.startsWith(String(attributes['url.path'])))
    assert.equal(attributes['http.request.method'], 'GET')
    assert.equal(attributes['http.response.status_code'], 200)
  }
})

test('a megabyte that nginx sends by sendfile is counted to the byte', async () => {
  const text = await output('curl', '-sf', `http://127.0.0.1:${nginx.port}/files/big`)
  assert.equal(text.length, bigBytes)
  await telemetry.arrived(2, nginx.port)
  await telemetry.settle(agent)
  check(nginx.port, '/files/big', { ...good, ...bodies(0, bigBytes) })
})

test('an upload that waits for 100 Continue is one exchange with its final status', async () => {
  const file = join(directory, 'upload')
  const size = 3 << 20
  writeFileSync(file, Buffer.alloc(size, 'u'))
  const said = await output(
    'curl',
    '-sfv',
    '--stderr',
    '-',
    '-H',
    'Expect: 100-continue',
    '-T',
    file,
    `http://127.0.0.1:${nginx.port}/files/upload`,
  )
  assert.match(said, /100 Continue/)
  await telemetry.settle(agent)
  const want = { 'http.response.status_code': 201, 'http.request.method': 'PUT', ...bodies(size, 0) }
  check(nginx.port, '/files/upload', want)
})

test('ten requests in one write and their answers in one write are ten exchanges', async () => {
  const paths = Array.from({ length: 10 }, (_, i) => `/pipelined/${i}`)
  const answers = paths.map((_, i) => `${head('HTTP/1.1 200 OK', `Content-Length: ${i}`)}${'p'.repeat(i)}`)
  await have([{ request: [paths.map(path => get(path)).join('')], answer: [answers.join('')] }])
  for (const [i, path] of paths.entries()) check(talk.port, path, { ...good, ...bodies(0, i) })
})

test('pipelined requests that are answered one by one and cut at any byte are exchanges of their own', async () => {
  const paths = Array.from({ length: 10 }, (_, i) => `/pipelined-cut/${i}`)
  const answers = paths.map((_, i) => `${head('HTTP/1.1 200 OK', `Content-Length: ${i}`)}${'p'.repeat(i)}`)
  await have([
    { request: split(paths.map(path => get(path)).join(''), 29), answer: split(answers.join(''), 13) },
  ])
  for (const [i, path] of paths.entries()) check(talk.port, path, { ...good, ...bodies(0, i) })
})

test('a client that leaves in the middle of an answer makes both spans errors', async () => {
  const start = head('HTTP/1.1 200 OK', 'Content-Length: 1000')
  await have([{ request: [get('/left')], answer: [`${start}${'l'.repeat(100)}`] }], {
    stopAfter: start.length + 100,
  })
  check(talk.port, '/left', { ...good, ...bodies(0, 100), 'error.type': 'connection_closed' })
})

test('a server that resets the connection instead of answering makes an error of connection_reset', async () => {
  await have([{ request: [get('/reset')], answer: [], next: 'reset' }])
  const want = { 'http.response.status_code': undefined, 'http.response.body.size': undefined }
  const byItself = { 'error.type': 'connection_closed' }
  check(talk.port, '/reset', want, byItself, { 'error.type': 'connection_reset' })
})

test('a server that closes instead of answering makes an error', async () => {
  await have([{ request: [get('/closed')], answer: [], next: 'close' }])
  check(talk.port, '/closed', { 'http.response.status_code': undefined, 'error.type': 'connection_closed' })
})

test('an answer without a length ends with its connection and is no error', async () => {
  const old = head('GET /until-close/1.0 HTTP/1.0')
  await have([{ request: [old], answer: [head('HTTP/1.0 200 OK'), 'some', 'body'], next: 'close' }])
  await have([
    {
      request: [get('/until-close/1.1')],
      answer: [`${head('HTTP/1.1 200 OK', 'Connection: close')}all of it`],
      next: 'close',
    },
  ])
  const version = { 'network.protocol.version': '1.0' }
  check(talk.port, '/until-close/1.0', { ...good, ...bodies(0, 8), ...version, 'server.port': talk.port })
  check(talk.port, '/until-close/1.1', { ...good, ...bodies(0, 9) })
})

test('heads of eight kilobytes and more are followed to their end, in one write or many', async () => {
  const filler = Array.from({ length: 90 }, (_, i) => `X-Filler-${i}: ${'f'.repeat(85)}`)
  const cookie = `Cookie: ${'c'.repeat(9000)}`
  const answer = `${head('HTTP/1.1 200 OK', ...filler, 'Content-Length: 2')}hi`
  await have([
    { request: [get('/long/lines', ...filler)], answer: [answer] },
    { request: [get('/long/line', cookie)], answer: [answer] },
    { request: split(get('/long/split', ...filler), 999), answer: split(answer, 777) },
    { request: [get('/long/after')], answer: [`${ok}hi`] },
  ])
  for (const path of ['lines', 'line', 'split', 'after'])
    check(talk.port, `/long/${path}`, { ...good, ...bodies(0, 2) })
})

test('a traceparent behind six kilobytes of other headers is taken over by both sides', async () => {
  const filler = Array.from({ length: 60 }, (_, i) => `X-Filler-${i}: ${'f'.repeat(95)}`)
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
  const parentId = '00f067aa0ba902b7'
  const late = (path: string) => get(path, ...filler, `Traceparent: 00-${traceId}-${parentId}-01`)
  const cut = late('/late/cut')
  const at = cut.indexOf(traceId) + 5
  await have([
    { request: [late('/late/whole')], answer: [`${ok}hi`] },
    { request: [cut.slice(0, at), cut.slice(at)], answer: [`${ok}hi`] },
    { request: split(late('/late/bytes'), 1), answer: [`${ok}hi`] },
  ])
  for (const path of ['/late/whole', '/late/cut', '/late/bytes']) {
    const { ofServer, ofClient } = check(talk.port, path, good)
    for (const span of [ofServer, ofClient]) {
      assert.equal(span.traceId, traceId, path)
      assert.equal(span.parentSpanId, parentId, path)
    }
    assert.notEqual(ofServer.spanId, ofClient.spanId)
  }
})

test('a method that HTTP does not know is told as _OTHER', async () => {
  const request = head('PROPFIND /unknown HTTP/1.1', `Host: 127.0.0.1:${talk.port}`, 'Content-Length: 0')
  await have([{ request: [request], answer: [`${ok}hi`] }])
  const method = { 'http.request.method': '_OTHER', 'http.request.method_original': 'PROPFIND' }
  const { ofServer, ofClient } = check(talk.port, '/unknown', { ...good, ...method })
  assert.equal(ofServer.name, 'HTTP /unknown')
  assert.equal(ofClient.name, 'HTTP')
})

test('a WebSocket is the one exchange that opened it, whatever its frames hold', async () => {
  const upgrade = get('/socket', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: eA==')
  const switching = head('HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: websocket')
  const frame = '\x82\x04\x00\xff\r\n'
  await have([
    { request: [upgrade], answer: [`${switching}${frame}`] },
    { request: [frame, get('/not-a-request')], answer: [`${ok}hi`] },
  ])
  check(talk.port, '/socket', { 'http.response.status_code': 101 })
  assert.deepEqual(ofPath(talk.port, '/not-a-request'), { server: [], client: [] })
})

test('bodies of known length are counted to the byte', async () => {
  const sizes = [0, 1, 100_000]
  const post = (size: number) =>
    head(`POST /body/${size} HTTP/1.1`, `Host: 127.0.0.1:${talk.port}`, `Content-Length: ${size}`)
  await have(sizes.map(size => ({ request: [post(size) + 'b'.repeat(size)], answer: [`${ok}hi`] })))
  for (const size of sizes) check(talk.port, `/body/${size}`, { ...good, ...bodies(size, 2) })
})

test('line ends before a request are ignored', async () => {
  await have([
    { request: [get('/line-ends/first')], answer: [`${ok}hi`] },
    { request: [`\r\n${get('/line-ends/second')}`], answer: [`${ok}hi`] },
    { request: ['\r\n', get('/line-ends/third')], answer: [`${ok}hi`] },
  ])
  for (const path of ['first', 'second', 'third'])
    check(talk.port, `/line-ends/${path}`, { ...good, ...bodies(0, 2) })
})

test('exchanges over IPv6 are told with its addresses and joined', async () => {
  await output('curl', '-sf', '-g', `http://[::1]:${nginx.port}/items/6`)
  await telemetry.settle(agent)
  const peer = { 'network.peer.address': '::1', 'server.address': '::1' }
  check(nginx.port, '/items/6', { ...good, ...peer, ...bodies(0, 20) })
})

test('a head of many short lines is read to its end and not a byte beyond, also where a window ends within it', async () => {
  const lines = (count: number) => Array.from({ length: count }, () => 'A: b')
  const start = (path: string) => `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${talk.port}\r\n`
  const request = (path: string, count: number, rest: string) =>
    `${start(path)}${lines(count).join('\r\n')}\r\n${rest}\r\n\r\n`
  const turns: Turn[] = []
  // The scan of a window is bounded in steps: whatever length it ends at, the rest is read by the next.
  for (let count = 100; count < 180; count++)
    turns.push({ request: [request(`/short/${count}`, count, 'Last: x')], answer: [`${ok}hi`] })
  for (const { request: pieces } of turns.slice(0, 40))
    turns.push({
      request: [
        pieces[0]!.replace('/short/', '/cut/').slice(0, 700),
        pieces[0]!.replace('/short/', '/cut/').slice(700),
      ],
      answer: [`${ok}hi`],
    })
  await have(turns)
  for (let count = 100; count < 180; count++)
    check(talk.port, `/short/${count}`, { ...good, ...bodies(0, 2) })
  for (let count = 100; count < 140; count++) check(talk.port, `/cut/${count}`, { ...good, ...bodies(0, 2) })
})

test('thousands of small chunks in one write are one body', async () => {
  const body = chunked(...Array.from({ length: 3000 }, (_, i) => `item ${i}`))
  const start = head('HTTP/1.1 200 OK', 'Transfer-Encoding: chunked')
  await have([
    { request: [get('/small-chunks')], answer: [start + body] },
    { request: [get('/after-small-chunks')], answer: [`${ok}hi`] },
  ])
  check(talk.port, '/small-chunks', { ...good, ...bodies(0, body.length) })
  check(talk.port, '/after-small-chunks', { ...good, ...bodies(0, 2) })
})

test('a coding that is not chunked runs to the end of the connection, whatever length is given', async () => {
  const answer = `${head('HTTP/1.1 200 OK', 'Content-Length: 2', 'Transfer-Encoding: gzip')}0123456789`
  await have([{ request: [get('/coded')], answer: [answer], next: 'close' }])
  check(talk.port, '/coded', { ...good, ...bodies(0, 10) })
  await have([
    {
      request: [get('/blank')],
      answer: [`${head('HTTP/1.1 200 OK', 'Transfer-Encoding: chunked ')}${chunked('one')}`],
    },
    { request: [get('/after-blank')], answer: [`${ok}hi`] },
  ])
  check(talk.port, '/blank', good)
  check(talk.port, '/after-blank', good)
})

test('a client that shuts its side and reads late has its whole answer', async () => {
  const program = `
import socket, sys, time
s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
s.sendall(b'GET /half HTTP/1.1\\r\\nHost: 127.0.0.1:%d\\r\\nConnection: close\\r\\n\\r\\n' % int(sys.argv[1]))
s.shutdown(socket.SHUT_WR)
time.sleep(0.3)
data = b''
while True:
    part = s.recv(65536)
    if not part: break
    data += part
print(len(data))
`
  await output('python3', '-c', program, String(nginx.port))
  await telemetry.settle(agent)
  check(nginx.port, '/half', { 'http.response.status_code': 404 }, {}, { 'error.type': '404' })
})

test('a client that shuts its side after the server did, and reads then, has its whole answer', async () => {
  const program = `
import socket, sys, time
s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
s.sendall(b'GET /shut-late HTTP/1.1\\r\\nHost: 127.0.0.1:%d\\r\\nConnection: close\\r\\n\\r\\n' % int(sys.argv[1]))
time.sleep(0.3)
s.shutdown(socket.SHUT_WR)
while s.recv(65536): pass
`
  await output('python3', '-c', program, String(nginx.port))
  await telemetry.settle(agent)
  check(nginx.port, '/shut-late', { 'http.response.status_code': 404 }, {}, { 'error.type': '404' })
})

test('an answer that one thread reads while another still sends the request belongs to that request', async () => {
  // The sender's hook runs when its call ends, which is long after nginx refused the body.
  const program = `
import socket, sys, threading
port, size = int(sys.argv[1]), 64 << 20
s = socket.create_connection(('127.0.0.1', port))
answer = []
reader = threading.Thread(target=lambda: answer.append(s.recv(65536)))
reader.start()
body = b'x' * size
try:
    s.send(b'POST /too-much HTTP/1.1\\r\\nHost: 127.0.0.1:%d\\r\\nContent-Length: %d\\r\\n\\r\\n' % (port, size) + body)
except OSError:
    pass
reader.join()
print(answer[0][:12].decode())
`
  assert.equal((await output('python3', '-c', program, String(nginx.port))).trim(), 'HTTP/1.1 413')
  await telemetry.settle(agent)
  const { client: found } = ofPath(nginx.port, '/too-much')
  assert.deepEqual(
    found.map(({ attributes }) => attributes['http.response.status_code']),
    [413],
  )
})

test('what is excluded by its path has no span and is still counted', async () => {
  const before = telemetry.servedBy(talk.pid)
  const asked = telemetry.askedOf(talk.port)
  await have(Array.from({ length: 3 }, () => ({ request: [get('/healthz')], answer: [`${ok}hi`] })))
  assert.deepEqual(ofPath(talk.port, '/healthz'), { server: [], client: [] })
  assert.equal(telemetry.servedBy(talk.pid), before + 3)
  assert.equal(telemetry.askedOf(talk.port), asked + 3)
})

test('exports of telemetry are neither traced nor counted for who sends them, and are requests to who is no receiver', async () => {
  // Of metrics: after one of traces the program would be taken for one that makes spans of its own.
  const before = telemetry.servedBy(talk.pid)
  const post = head(
    'POST /v1/metrics HTTP/1.1',
    `Host: 127.0.0.1:${talk.port}`,
    'Content-Type: application/x-protobuf',
    'Content-Length: 3',
  )
  await have([
    { request: [`${post}abc`], answer: [`${ok}hi`] },
    { request: [get('/after-export')], answer: [`${ok}hi`] },
  ])
  check(talk.port, '/after-export', good)
  const { server, client } = ofPath(talk.port, '/v1/metrics')
  expected += server.length
  assert.deepEqual([server.length, client.length], [1, 0])
  assert.equal(telemetry.servedBy(talk.pid), before + 2)
})

test('connections that speak nothing known make no spans', async () => {
  const random = Array.from({ length: 2000 }, (_, i) => String.fromCharCode((i * 167 + 13) % 256)).join('')
  await talk.have([{ request: [random], answer: [random] }])
  await talk.have([{ request: ['EHLO me\r\n'], answer: ['250 you\r\n'] }])
  await talk.have([{ request: ['GET key\r\n'], answer: ['nothing\r\n'] }])
  await talk.have([{ request: ['GET '], answer: ['what?\r\n'] }])
  await talk.have([{ request: ['GET / FTP/1.1\r\n\r\n'], answer: [`${ok}hi`] }])
  await talk.have([{ request: ['G'], answer: [], next: 'reset' }])
  await telemetry.settle(agent)
})

test('ports that are excluded or not included are left alone', async () => {
  for (const other of [excluded, unlisted]) {
    const request = head('GET /port HTTP/1.1', `Host: 127.0.0.1:${other.port}`)
    await other.have([{ request: [request], answer: [`${ok}hi`] }])
  }
  await telemetry.settle(agent)
  for (const { port, pid } of [excluded, unlisted]) {
    assert.deepEqual(telemetry.spans(port), [])
    assert.equal(telemetry.servedBy(pid) + telemetry.askedOf(port), 0)
  }
})

test('the agent does not trace itself', async () => {
  await output('curl', '-sf', `http://127.0.0.1:${agent.port}/status?self`)
  await telemetry.settle(agent)
  assert.ok(ofPath(agent.port, '/status?self').client.length === 1)
  assert.deepEqual(telemetry.spans(agent.port, server), [])
  assert.equal(telemetry.servedBy(agent.pid), 0)
})

test('nothing of all this made spans beyond the expected', async () => {
  await telemetry.settle(agent)
  await until('all of the expected are there', 20_000, () => telemetry.spans(talk.port).length >= expected)
  assert.equal(telemetry.spans(talk.port).length, expected)
})

test('with capture_bytes at its most a target of seven kilobytes is told whole, and a traceparent behind it', async () => {
  const seen = await Telemetry.start()
  const config = {
    agent: { ebpf: { network: { capture_bytes: 8192 } } },
    pipeline: { limits: { attributes: { max_attribute_value_size: 8192 } } },
  }
  const whole = await AgentProcess.start({ endpoint: seen.endpoint, ports: [talk.port], config })
  try {
    const path = `/whole/${'w'.repeat(7000)}`
    const traceId = '0af7651916cd43dd8448eb211c80319c'
    const request = get(path, 'X-Filler: f', `traceparent: 00-${traceId}-b7ad6b7169203331-01`)
    await talk.have([
      { request: [request], answer: [`${ok}hi`] },
      { request: split(request, 333), answer: [`${ok}hi`] },
    ])
    await seen.arrived(4, talk.port)
    await seen.settle(whole)
    const spans = seen.spans(talk.port)
    assert.equal(spans.length, 4)
    for (const span of spans) assert.equal(span.traceId, traceId)
    for (const { attributes } of seen.spans(talk.port, server)) assert.equal(attributes['url.path'], path)
    for (const { attributes } of seen.spans(talk.port, client))
      assert.equal(attributes['url.full'], `http://127.0.0.1:${talk.port}${path}`)
  } finally {
    await whole.stop()
    await seen.close()
  }
})
