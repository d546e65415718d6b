import assert from 'node:assert/strict'
import { once, setMaxListeners } from 'node:events'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer, type ServerOptions } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { gzipSync } from 'node:zlib'
import { makeCertificates } from '../../../../../test/helpers/certificates.ts'
import { startConnectProxy } from '../../../../../test/helpers/connect-proxy.ts'
import { answer, startHostileTarget } from '../../../../../test/helpers/hostile-target.ts'
import { type Access, noAccess } from '../scrape-job.ts'
import { pageBuffers } from './page-buffers.ts'
import { TargetClient, type TargetClientOptions } from './target-client.ts'

const made = makeCertificates()
const folder = mkdtempSync(join(tmpdir(), 'svc-fetch-'))
after(() => {
  made.remove()
  rmSync(folder, { recursive: true })
})

const trusting = { ...noAccess.tls, caFile: made.file('ca.pem') }
const page = 'a 1\nb 2\n'
const serve: RequestListener = (_request, response) => {
  response.setHeader('Content-Type', 'text/plain; version=0.0.4')
  response.end(page)
}

interface Listening {
  readonly port: number
  readonly url: string
  readonly requests: IncomingMessage[]
  /** Connections that were made. */
  readonly sockets: Set<Socket>
}

async function listen(
  t: TestContext,
  listener = serve,
  tls?: ServerOptions,
  at: string | number = 0,
): Promise<Listening> {
  const requests: IncomingMessage[] = []
  const sockets = new Set<Socket>()
  const seen: RequestListener = (request, response) => {
    requests.push(request)
    listener(request, response)
  }
  const server: Server = tls ? createTlsServer(tls, seen) : createServer(seen)
  server.on('connection', socket => sockets.add(socket))
  if (typeof at === 'string') server.listen(at)
  else server.listen(at, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const port = typeof at === 'string' ? 0 : (server.address() as AddressInfo).port
  return { port, url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}/metrics`, requests, sockets }
}

function clientOf(
  t: TestContext,
  url: string,
  access: Partial<Access> = {},
  more: Partial<TargetClientOptions> = {},
) {
  const client = new TargetClient({
    url,
    access: { ...noAccess, ...access },
    compression: 'remote',
    bodyBytes: 1024 * 1024,
    owner: 'job x',
    ...more,
  })
  t.after(() => client.close())
  return client
}

/** The body, as text; the memory is given back. */
async function fetched(client: TargetClient): Promise<string> {
  const { body, release } = await client.ask({ timeoutMs: 20_000 })
  const text = body.toString()
  release()
  assert.equal(pageBuffers.leasedBytes, 0)
  return text
}

async function refused(client: TargetClient): Promise<string> {
  const error = await client.ask({ timeoutMs: 20_000 }).then(
    () => ({ type: 'none', message: 'it was fetched' }),
    (error: { type: string; message: string }) => error,
  )
  assert.equal(pageBuffers.leasedBytes, 0)
  return `${error.type}: ${error.message.replace(/:\d{4,5}\//g, ':PORT/')}`
}

/** Secrets are read again when a second has passed. */
const later = (): Promise<void> => new Promise(resolve => setTimeout(resolve, 1100))

test('pages come over one connection, and are asked for as Prometheus asks', async t => {
  const { url, requests, sockets, port } = await listen(t)
  const client = clientOf(t, `${url}?a=b&c=%20d`, { headers: { 'X-Scope': 'ä' } })
  const { body, contentType, wireBytes, release } = await client.ask({ timeoutMs: 20_500 })
  assert.equal(body.toString(), page)
  assert.equal(contentType, 'text/plain; version=0.0.4')
  assert.ok(wireBytes > page.length)
  release()
  assert.equal(await fetched(client), page)
  assert.equal(sockets.size, 1)
  const { url: path, headers, method } = requests[0]!
  assert.equal(`${method} ${path}`, 'GET /metrics?a=b&c=%20d')
  assert.match(headers['user-agent']!, /^svc\/\d+\.\d+/)
  assert.equal(headers['x-prometheus-scrape-timeout-seconds'], '20.5')
  assert.equal(headers['accept-encoding'], 'identity')
  assert.equal(headers.host, `127.0.0.1:${port}`)
  assert.equal(Buffer.from(headers['x-scope'] as string, 'latin1').toString(), 'ä')
  assert.equal(
    headers.accept,
    'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,' +
      'application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,' +
      'text/plain;version=0.0.4;q=0.3,*/*;q=0.2',
  )
})

test('lists are asked for with other words', async t => {
  const { url, requests } = await listen(t)
  await fetched(clientOf(t, url, {}, { accept: 'application/json', headers: { 'X-Refresh': '60' } }))
  const { headers } = requests[0]!
  assert.deepEqual(
    [headers.accept, headers['x-refresh'], headers['x-prometheus-scrape-timeout-seconds']],
    ['application/json', '60', undefined],
  )
})

test('a header that was written takes the place of ours', async t => {
  const { url, requests } = await listen(t)
  const headers = {
    host: 'a.example',
    'User-Agent': 'me',
    AUTHORIZATION: 'X y',
    accept: 'z',
    'accept-encoding': 'gzip',
  }
  await fetched(clientOf(t, url, { headers, basic: { username: 'u', password: { text: 'p' } } }))
  const { rawHeaders } = requests[0]!
  const names = rawHeaders.filter((_, i) => i % 2 === 0).map(name => name.toLowerCase())
  assert.equal(new Set(names).size, names.length)
  assert.equal(requests[0]!.headers.authorization, 'X y')
  assert.equal(requests[0]!.headers.host, 'a.example')
})

test('what cannot be sent is told before anything is', async t => {
  const { url, requests } = await listen(t)
  const wrong = (headers: Record<string, string>) => refused(clientOf(t, url, { headers }))
  assert.match(
    await wrong({ 'X-A': 'secret\r\nX-B: c' }),
    /^settings: .*job x.* the header X-A has a line break/,
  )
  assert.match(await wrong({ 'X A': 'b' }), /^settings: .*"X A" is not a valid header name/)
  assert.match(await wrong({ 'content-length': '5' }), /^settings: .*svc sets the header/)
  const authorization = { type: 'X a\r\nX-B: c', credentials: { text: 'd' } }
  assert.match(await refused(clientOf(t, url, { authorization })), /^settings: .*authorization type/)
  assert.match(await refused(clientOf(t, 'ftp://a/')), /^settings: .*ftp/)
  assert.match(
    await refused(clientOf(t, url, { proxyUrl: 'socks5://a:b@c' })),
    /^settings: .*proxy_url.*socks5/,
  )
  assert.equal(requests.length, 0)
})

test('a connection that ended meanwhile is replaced without a fault', async t => {
  const { url, sockets } = await listen(t)
  const client = clientOf(t, url)
  for (let i = 1; i <= 3; i++) {
    assert.equal(await fetched(client), page)
    assert.equal(sockets.size, i)
    for (const socket of sockets) socket.destroy()
    // Sometimes it is known to have ended, sometimes it is not.
    if (i === 2) await later()
  }
})

test('a farewell in place of an answer is no answer', async t => {
  const target = await startHostileTarget(socket => socket.write(answer(page)))
  t.after(() => target.close())
  const client = clientOf(t, target.url)
  assert.equal(await fetched(client), page)
  let turn = 0
  target.behaviour = socket => {
    if (turn++ > 0) socket.write(answer(page))
    else socket.end(answer('', { Connection: 'close' }, '408 Request Timeout'))
  }
  assert.equal(await fetched(client), page)
  assert.deepEqual([target.made, target.requests.length], [2, 3])
})

test('two at a time have a connection each, of which one is kept', async t => {
  const { url, sockets } = await listen(t)
  const client = clientOf(t, url)
  const both = await Promise.all([client.ask({ timeoutMs: 20_000 }), client.ask({ timeoutMs: 20_000 })])
  for (const { body, release } of both) {
    assert.equal(body.toString(), page)
    release()
  }
  assert.equal(sockets.size, 2)
  assert.equal(await fetched(client), page)
  assert.equal(sockets.size, 2)
})

test('a body in chunks, and one that ends with the connection', async t => {
  const large = 'metric{label="value"} 123456\n'.repeat(20_000)
  const { url } = await listen(t, ({ headers }, response) => {
    if (headers['x-close']) response.useChunkedEncodingByDefault = false
    for (let at = 0; at < large.length; at += 2048) response.write(large.slice(at, at + 2048))
    response.end()
  })
  assert.equal(await fetched(clientOf(t, url)), large)
  assert.equal(await fetched(clientOf(t, url, { headers: { 'X-Close': '1' } })), large)
})

test('gzip is asked for where it serves, and read wherever it comes', async t => {
  const large = 'metric{label="value"} 123456\n'.repeat(20_000)
  const { url, requests } = await listen(t, ({ headers }, response) => {
    const isPacked = headers['accept-encoding'] === 'gzip' || headers['x-force']
    if (isPacked) response.setHeader('Content-Encoding', 'gzip')
    response.end(isPacked ? gzipSync(large) : large)
  })
  assert.equal(await fetched(clientOf(t, url)), large)
  const always = clientOf(t, url, {}, { compression: 'always' })
  assert.equal(await fetched(always), large)
  const { wireBytes, release } = await always.ask({ timeoutMs: 20_000 })
  assert.ok(wireBytes < large.length / 10)
  release()
  assert.equal(
    await fetched(clientOf(t, url, { headers: { 'X-Force': '1' } }, { compression: 'never' })),
    large,
  )
  assert.deepEqual(
    requests.map(({ headers }) => headers['accept-encoding']),
    ['identity', 'gzip', 'gzip', 'identity'],
  )
})

test('credentials come from the settings, the URL or files, which are read again', async t => {
  const seen: string[] = []
  const { url, port } = await listen(t, (request, response) => {
    seen.push(request.headers.authorization ?? '')
    serve(request, response)
  })
  const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`
  const file = join(folder, 'token')
  writeFileSync(file, 'first\n')
  await fetched(clientOf(t, url, { basic: { username: 'ü', password: { text: 'p:w' } } }))
  await fetched(clientOf(t, url, { authorization: { type: '', credentials: { text: 'abc' } } }))
  await fetched(clientOf(t, `http://a%40:b@127.0.0.1:${port}/`))
  const bearer = clientOf(t, url, { authorization: { type: 'Bearer', credentials: { file } } })
  const password = clientOf(t, url, { basic: { username: 'u', password: { file } } })
  await fetched(bearer)
  await fetched(password)
  writeFileSync(`${file}.new`, ' second \n')
  renameSync(`${file}.new`, file)
  await later()
  await fetched(bearer)
  assert.deepEqual(seen, [
    basic('ü:p:w'),
    'Bearer abc',
    basic('a@:b'),
    'Bearer first',
    basic('u:first'),
    'Bearer second',
  ])
})

test('a file of credentials that is of no use is named', async t => {
  const { url, requests } = await listen(t)
  const empty = join(folder, 'empty')
  const broken = join(folder, 'broken')
  writeFileSync(empty, '\n')
  writeFileSync(broken, 'a\nsecret')
  const bearer = (file: string) =>
    refused(clientOf(t, url, { authorization: { type: 'Bearer', credentials: { file } } }))
  assert.match(
    await bearer('/no/such'),
    /^credentials: cannot read credentials_file \/no\/such of job x: there is no such file/,
  )
  assert.match(await bearer(folder), /^credentials: .*not a regular file/)
  assert.match(await bearer(empty), /^credentials: .*is empty/)
  const said = await bearer(broken)
  assert.match(said, /^credentials: .*line break/)
  assert.doesNotMatch(said, /secret/)
  const basic = { username: 'u', password: { file: '/no/such' } }
  assert.match(await refused(clientOf(t, url, { basic })), /^credentials: cannot read password_file/)
  assert.equal(requests.length, 0)
})

test('a refusal tells the status, what was said and what may be wrong', async t => {
  const { url } = await listen(t, (request, response) => {
    response.statusCode = Number(new URL(request.url!, 'http://a').searchParams.get('status'))
    response.setHeader('Content-Type', 'text/plain; charset=utf-8')
    response.end(response.statusCode === 500 ? 'error collecting metrics\nmore' : '')
  })
  const asked = (status: number, access: Partial<Access> = {}) =>
    refused(clientOf(t, `${url}?status=${status}`, access))
  const authorization = { type: '', credentials: { text: 'secret' } }
  const at = 'cannot fetch http://127.0.0.1:PORT/metrics'
  assert.equal(
    await asked(500),
    `http_status: ${at}: HTTP 500 Internal Server Error ("error collecting metrics")`,
  )
  assert.equal(await asked(404), `http_status: ${at}: HTTP 404 Not Found: check metrics_path of job x`)
  assert.match(
    await asked(401),
    /: the target requires credentials; set basic_auth or authorization in job x$/,
  )
  assert.match(
    await asked(403, { authorization }),
    /: the target rejected the credentials; check authorization of job x$/,
  )
  assert.match(
    await asked(401, { basic: { username: 'u', password: { text: 'secret' } } }),
    /check basic_auth of job x$/,
  )
  assert.match(await asked(302), /^http_status: .*HTTP 302 Found$/)
  assert.match(await asked(204), /^http_status: .*HTTP 204/)
})

test('a redirect takes nothing to another origin, and nothing comes back with it', async t => {
  const seen: string[] = []
  const told = ({ headers }: IncomingMessage): string =>
    `${headers.authorization ?? '-'} ${headers.cookie ?? '-'} ${headers['x-key'] ?? '-'}`
  const home = await listen(t, (request, response) => {
    seen.push(`home ${request.url} ${told(request)}`)
    const to = { '/metrics': '/same', '/same': `${strange.url}/there` }[request.url!]
    if (to === undefined) serve(request, response)
    else response.writeHead(request.url === '/same' ? 307 : 301, { Location: to }).end('moved')
  })
  const strange = await listen(t, (request, response) => {
    seen.push(`strange ${told(request)}`)
    response.writeHead(302, { Location: `http://127.0.0.1:${home.port}/back` }).end()
  })
  const access = { basic: { username: 'u', password: { text: 'p' } }, headers: { Cookie: 'c', 'X-Key': 'k' } }
  const client = clientOf(t, home.url, access)
  assert.equal(await fetched(client), page)
  const own = `${`Basic ${Buffer.from('u:p').toString('base64')}`} c k`
  assert.deepEqual(seen, [`home /metrics ${own}`, `home /same ${own}`, 'strange - - -', 'home /back - - -'])
  await fetched(client)
  assert.ok(home.sockets.size <= 4 && strange.sockets.size <= 2)
  assert.match(
    await refused(clientOf(t, home.url, { ...access, followRedirects: false })),
    /^redirect: .*HTTP 301 Moved Permanently: redirect not followed, as follow_redirects of job x is false$/,
  )
})

test('a server that is redirected to is not told who we are, and the fault says so', async t => {
  const strange = await listen(t, (_request, response) => response.writeHead(401).end())
  const home = await listen(t, (_request, response) =>
    response.writeHead(302, { Location: strange.url }).end(),
  )
  const access = { basic: { username: 'u', password: { text: 'p' } } }
  assert.match(
    await refused(clientOf(t, home.url, access)),
    /HTTP 401 Unauthorized: svc sends credentials only to the target/,
  )
})

test('TLS is checked by the authority and by the name', async t => {
  const tls = { cert: made.text('server.pem'), key: made.text('server.key') }
  const { url, sockets, port } = await listen(t, serve, tls)
  const client = clientOf(t, url, { tls: trusting })
  assert.equal(await fetched(client), page)
  assert.equal(await fetched(client), page)
  assert.equal(sockets.size, 1)
  assert.equal(await fetched(clientOf(t, url, { tls: { ...noAccess.tls, insecureSkipVerify: true } })), page)
  assert.match(await refused(clientOf(t, url)), /^tls: .*check that ca_file contains its CA/)
  assert.match(
    await refused(clientOf(t, url, { tls: { ...trusting, serverName: 'a.example' } })),
    /^tls: .*a\.example/,
  )
  assert.match(
    await refused(clientOf(t, url, { tls: { ...noAccess.tls, caFile: '/no/such' } })),
    /^tls: cannot fetch .*cannot read ca_file/,
  )
  assert.match(await refused(clientOf(t, `http://127.0.0.1:${port}/`)), /^(broken|http_status): /)
})

test('our certificate goes to the target alone, and is read again when it was renewed', async t => {
  const names: string[] = []
  const tls = {
    cert: made.text('server.pem'),
    key: made.text('server.key'),
    ca: made.text('ca.pem'),
    requestCert: true,
    rejectUnauthorized: false,
  }
  const note: RequestListener = ({ socket }) =>
    void names.push(String((socket as TLSSocket).getPeerCertificate().subject?.CN ?? 'nobody'))
  const strange = await listen(
    t,
    (request, response) => {
      note(request, response as never)
      serve(request, response)
    },
    tls,
  )
  const home = await listen(
    t,
    (request, response) => {
      note(request, response as never)
      response.writeHead(302, { Location: strange.url }).end()
    },
    tls,
  )
  const certFile = join(folder, 'client.pem')
  const keyFile = join(folder, 'client.key')
  const install = (name: string): void => {
    writeFileSync(certFile, made.text(`${name}.pem`))
    writeFileSync(keyFile, made.text(`${name}.key`))
  }
  install('client')
  const client = clientOf(t, home.url, { tls: { ...trusting, certFile, keyFile } })
  await fetched(client)
  await fetched(client)
  assert.equal(home.sockets.size, 1)
  install('server')
  await later()
  await fetched(client)
  assert.deepEqual(names, ['client', 'nobody', 'client', 'nobody', 'server', 'nobody'])
})

test('a proxy is asked for the page, and for a tunnel where there is TLS', async t => {
  const proxied = await listen(t)
  const viaPlain = clientOf(t, 'http://a.example/metrics?x', {
    proxyUrl: `http://u:p@127.0.0.1:${proxied.port}`,
  })
  assert.equal(await fetched(viaPlain), page)
  const { url, headers } = proxied.requests[0]!
  assert.equal(url, 'http://a.example/metrics?x')
  assert.deepEqual(
    [headers.host, headers['proxy-authorization'], headers['accept-encoding']],
    ['a.example', `Basic ${Buffer.from('u:p').toString('base64')}`, 'gzip'],
  )
  const secure = await listen(t, serve, { cert: made.text('server.pem'), key: made.text('server.key') })
  const proxy = await startConnectProxy()
  t.after(() => proxy.close())
  const viaTunnel = clientOf(t, secure.url, { tls: trusting, proxyUrl: `http://127.0.0.1:${proxy.port}` })
  assert.equal(await fetched(viaTunnel), page)
  assert.equal(await fetched(viaTunnel), page)
  assert.deepEqual(proxy.targets, [`127.0.0.1:${secure.port}`])
  assert.equal(secure.requests[0]!.headers['proxy-authorization'], undefined)
  proxy.answer = { status: 407 }
  const refusedTunnel = clientOf(t, secure.url, { tls: trusting, proxyUrl: `http://127.0.0.1:${proxy.port}` })
  assert.match(await refused(refusedTunnel), /^connect: .*through the proxy .*add them to proxy_url/)
})

test('a socket is fetched from, too', async t => {
  const path = join(folder, 'x.sock')
  const { requests } = await listen(t, serve, undefined, path)
  const client = clientOf(t, `unix:${path}:/metrics?a=b`, { proxyUrl: 'http://127.0.0.1:1' })
  assert.equal(await fetched(client), page)
  assert.deepEqual([requests[0]!.url, requests[0]!.headers.host], ['/metrics?a=b', 'localhost'])
  assert.equal(requests[0]!.headers['accept-encoding'], 'identity')
  assert.match(
    await refused(clientOf(t, `unix:${path}x:/metrics`)),
    /^connect: cannot fetch unix:.*x\.sockx:\/metrics: .*ENOENT/,
  )
})

test('thousands of fetches leave nothing behind', async t => {
  const large = Buffer.alloc(150_000, 'metric 1\n')
  const { url, sockets } = await listen(t, (_request, response) => response.end(large))
  const stop = new AbortController()
  setMaxListeners(0, stop.signal)
  const clients = Array.from({ length: 20 }, () => clientOf(t, url))
  const round = async (): Promise<void> => {
    const pages = await Promise.all(
      clients.map(client => client.ask({ timeoutMs: 20_000, stop: stop.signal })),
    )
    for (const { body, release } of pages) {
      assert.equal(body.length, large.length)
      release()
    }
  }
  for (let i = 0; i < 50; i++) await round()
  assert.equal(sockets.size, 20)
  assert.equal(pageBuffers.leasedBytes, 0)
  assert.ok(pageBuffers.keptBytes <= 32 * 1024 * 1024)
  for (const client of clients) client.close()
  for (const deadline = performance.now() + 20_000; [...sockets].some(socket => !socket.destroyed); ) {
    assert.ok(performance.now() < deadline)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
})
