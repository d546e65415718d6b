import assert from 'node:assert/strict'
import { copyFileSync } from 'node:fs'
import { request } from 'node:https'
import { connect } from 'node:net'
import { after, type TestContext, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { makeCertificates } from '../../../test/helpers/certificates.ts'
import { call } from '../../../test/helpers/http.ts'
import { until } from '../../../test/helpers/program.ts'
import { silentLogger } from '../../../test/helpers/silent-logger.ts'
import { StartError } from '../../foundation/lib/start-error.ts'
import {
  MetricsEndpoint,
  type MetricsEndpointOptions,
  type MetricsSource,
  type Scrape,
} from './metrics-endpoint.ts'
import { type MetricsServerSettings, startMetricsServer } from './metrics-server.ts'

const certificates = makeCertificates()
after(() => certificates.remove())

/** Collectors that are read when the test lets them. */
class Collectors implements MetricsSource {
  readonly namespace = 'node'
  readonly enabled = ['cpu', 'loadavg', 'stat']
  readonly scrapes: Scrape[] = []
  readonly waiting: (() => void)[] = []
  why = ''
  holds = false
  fails = false
  /** Bytes of padding of a page. */
  size = 100

  knows(name: string): boolean {
    return [...this.enabled, 'wifi'].includes(name)
  }

  notReady(): string {
    return this.why
  }

  async scrape(scrape: Scrape): Promise<string> {
    this.scrapes.push(scrape)
    if (this.holds) await new Promise<void>(resolve => this.waiting.push(resolve))
    if (this.fails) throw new Error('a fault of ours')
    return `${scrape.openMetrics ? 'open ' : ''}${scrape.collectors.join()} ${'x'.repeat(this.size)}\n`
  }

  release(): void {
    for (const go of this.waiting.splice(0)) go()
  }
}

const noTls = { enabled: false, cert_file: '', key_file: '', client_auth: false, client_ca_file: '' }

interface Started {
  readonly source: Collectors
  readonly endpoint: MetricsEndpoint
  readonly port: number
  text(path: string, headers?: Record<string, string>): Promise<string>
}

async function start(t: TestContext, options: Partial<MetricsEndpointOptions> = {}): Promise<Started> {
  const source = new Collectors()
  const endpoint = new MetricsEndpoint({
    source,
    path: '/metrics',
    maxRequests: 40,
    timeoutMs: 10_000,
    title: 'Host metrics',
    version: '1.2.3',
    log: silentLogger,
    ...options,
  })
  const settings = { listen_address: '127.0.0.1:0', tls: noTls }
  const { port, close } = await startMetricsServer({ settings, endpoint, log: silentLogger })
  t.after(() => {
    source.release()
    return close()
  })
  const text = async (path: string, headers = {}) => (await call(port, path, { headers })).body.toString()
  return { source, endpoint, port, text }
}

const extended = { description: () => ({ total: 7 }) }

test('metrics are read by GET and POST, and HEAD reads nothing', async t => {
  const { port, source } = await start(t)
  for (const [method, body] of [
    ['GET', undefined],
    ['POST', undefined],
    ['POST', 'collect[]=cpu'],
  ] as const) {
    const reply = await call(port, '/metrics', { method, ...(body && { body }) })
    assert.equal(reply.status, 200)
    assert.equal(reply.headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8')
    assert.match(reply.body.toString(), /^cpu,loadavg,stat x+\n$/)
  }
  const head = await call(port, '/metrics', { method: 'HEAD' })
  assert.deepEqual([head.status, head.body.length, source.scrapes.length], [200, 0, 3])
  assert.equal(head.headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8')
  assert.equal((await call(port, '/metrics', { method: 'DELETE' })).status, 405)
})

test('collect[] and exclude[] select, with the words of the replaced exporter for what they cannot', async t => {
  const { port, source } = await start(t)
  const check = async (query: string, status: number, want: RegExp | string) => {
    const reply = await call(port, `/metrics?${query}`)
    assert.equal(reply.status, status, query)
    if (typeof want === 'string') assert.equal(reply.body.toString(), want)
    else assert.match(reply.body.toString(), want)
  }
  await check('collect[]=stat&collect[]=cpu&collect%5B%5D=cpu', 200, /^cpu,stat /)
  await check('exclude[]=stat&exclude[]=nope', 200, /^cpu,loadavg /)
  await check('exclude[]=stat&exclude[]=cpu&exclude[]=loadavg', 200, /^cpu,loadavg,stat /)
  await check('other=1', 200, /^cpu,loadavg,stat /)
  assert.equal(source.scrapes.length, 4)
  const cannot = "Couldn't create filtered metrics handler: couldn't create collector:"
  await check('collect[]=cpu&collect[]=nope', 400, `${cannot} missing collector: nope`)
  await check('collect[]=', 400, `${cannot} missing collector: `)
  await check('collect[]=wifi', 400, `${cannot} disabled collector: wifi`)
  await check('collect[]=cpu&exclude[]=stat', 400, 'Combined collect and exclude queries are not allowed.')
  assert.equal(source.scrapes.length, 4)
})

test('gzip is used where it is accepted', async t => {
  const { port, source } = await start(t)
  const encoded = await call(port, '/metrics', { headers: { 'Accept-Encoding': 'deflate, gzip;q=0.5' } })
  assert.equal(encoded.headers['content-encoding'], 'gzip')
  assert.match(gunzipSync(encoded.body).toString(), /^cpu,loadavg,stat x{100}\n$/)
  assert.equal(encoded.headers['content-length'], String(encoded.body.length))
  const plain = await call(port, '/metrics', { headers: { 'Accept-Encoding': 'gzip;q=0' } })
  assert.equal(plain.headers['content-encoding'], undefined)
  // Such a page is compressed by another thread.
  source.size = 2_000_000
  source.holds = true
  const headers = { 'Accept-Encoding': 'gzip' }
  const replies = Promise.all([1, 2].map(() => call(port, '/metrics', { headers })))
  await until('it is read', 20_000, () => source.scrapes.length === 3)
  source.holds = false
  source.release()
  for (const { body, status } of await replies) {
    assert.equal(status, 200)
    assert.equal(gunzipSync(body).toString(), `cpu,loadavg,stat ${'x'.repeat(2_000_000)}\n`)
  }
})

test('OpenMetrics is for the agent’s page alone', async t => {
  const headers = { Accept: 'application/openmetrics-text;version=1.0.0,text/plain;q=0.5' }
  const plain = await start(t)
  assert.match(await plain.text('/metrics', headers), /^cpu/)
  const { port } = await start(t, { extended })
  const reply = await call(port, '/metrics', { headers })
  assert.match(reply.body.toString(), /^open cpu/)
  assert.equal(reply.headers['content-type'], 'application/openmetrics-text; version=1.0.0; charset=utf-8')
})

test('the agent’s endpoint has its probes and its description, the replaced exporter’s has not', async t => {
  const { port, source, text } = await start(t, { extended })
  assert.equal(await text('/metrics/description'), '{"total":7}\n')
  assert.equal(await text('/health'), '{"status":"healthy","collectors":3,"namespace":"node"}\n')
  assert.equal(await text('/live'), 'OK')
  assert.equal(await text('/ready'), 'Ready')
  source.why = 'nothing was read yet'
  const ready = await call(port, '/ready')
  assert.deepEqual([ready.status, ready.body.toString()], [503, 'Not Ready: nothing was read yet'])
  const page = await call(port, '/')
  assert.equal(page.headers['content-type'], 'text/html; charset=UTF-8')
  for (const link of ['/metrics', '/metrics/description', '/health', '/ready', '/live'])
    assert.match(page.body.toString(), new RegExp(`<a href="${link}">`))
  const plain = await start(t, { path: '/m<1' })
  for (const path of ['/health', '/ready', '/live', '/metrics', '/m<1/', '/debug/pprof/']) {
    const reply = await call(plain.port, path)
    assert.deepEqual([reply.status, reply.body.toString()], [404, '404 page not found\n'], path)
  }
  assert.match(await plain.text('/'), /<a href="\/m&#60;1">/)
  assert.match(await plain.text('/m<1'), /^cpu/)
  const atRoot = await start(t, { path: '/' })
  assert.match(await atRoot.text('/'), /^cpu/)
})

test('who asks for the same at once is answered by one reading', async t => {
  const { source, text, endpoint } = await start(t)
  source.holds = true
  const same = [
    text('/metrics'),
    text('/metrics?exclude[]=nope'),
    text('/metrics', { 'Accept-Encoding': 'gzip' }),
  ]
  const other = text('/metrics?collect[]=cpu')
  await until('all are under way', 20_000, () => endpoint.stats().inFlight === 4)
  assert.equal(source.scrapes.length, 2)
  source.release()
  assert.equal(new Set((await Promise.all(same)).slice(0, 2)).size, 1)
  assert.match(await other, /^cpu x/)
  source.holds = false
  await text('/metrics')
  assert.equal(source.scrapes.length, 3)
  assert.deepEqual(endpoint.stats(), { answered: { 200: 5, 500: 0, 503: 0 }, inFlight: 0 })
})

test('more scrapes than may be at once are sent away', async t => {
  const { source, text, endpoint, port } = await start(t, { maxRequests: 2 })
  source.holds = true
  const two = [text('/metrics'), text('/metrics')]
  await until('two are under way', 20_000, () => endpoint.stats().inFlight === 2)
  const third = await call(port, '/metrics')
  assert.deepEqual(
    [third.status, third.body.toString()],
    [503, 'Limit of concurrent requests reached (2), try again later.\n'],
  )
  source.release()
  await Promise.all(two)
  assert.deepEqual(endpoint.stats().answered, { 200: 2, 500: 0, 503: 1 })

  const without = await start(t, { maxRequests: 0 })
  without.source.holds = true
  const many = Array.from({ length: 70 }, () => call(without.port, '/metrics', { method: 'POST' }))
  await until('all are under way', 20_000, () => without.endpoint.stats().inFlight === 70)
  without.source.release()
  for (const { status } of await Promise.all(many)) assert.equal(status, 200)
})

test('a scrape takes less than the client waits, and never more than it may', async t => {
  const { source, text } = await start(t)
  const check = async (header: string | undefined, want: number) => {
    await text('/metrics', header === undefined ? {} : { 'X-Prometheus-Scrape-Timeout-Seconds': header })
    assert.equal(source.scrapes.at(-1)!.withinMs, want, header)
  }
  await check(undefined, 10_000)
  await check('5', 4500)
  await check('1.2', 700)
  for (const hasty of ['0.6', '0.001', '1e-300']) await check(hasty, 500)
  await check('60', 10_000)
  for (const none of ['0', '-1', 'soon', '']) await check(none, 10_000)
})

test('nobody waits longer for a reading that others began than they said', async t => {
  const { source, text, endpoint } = await start(t)
  source.holds = true
  const patient = text('/metrics')
  await until('one is under way', 20_000, () => endpoint.stats().inFlight === 1)
  const hasty = text('/metrics', { 'X-Prometheus-Scrape-Timeout-Seconds': '2' })
  await until('two are under way', 20_000, () => endpoint.stats().inFlight === 2)
  assert.deepEqual(
    source.scrapes.map(({ withinMs }) => withinMs),
    [10_000, 1500],
  )
  source.release()
  await Promise.all([patient, hasty])
})

test('a client that goes costs no page, and is no failure', async t => {
  const { source, port, endpoint } = await start(t)
  source.holds = true
  const socket = connect(port, '127.0.0.1', () => socket.write('GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n'))
  await until('it is under way', 20_000, () => endpoint.stats().inFlight === 1)
  socket.destroy()
  await new Promise(resolve => socket.once('close', resolve))
  // Its end has come over the same event loop before this answer.
  assert.equal((await call(port, '/')).status, 200)
  source.release()
  await until('it is over', 20_000, () => endpoint.stats().inFlight === 0)
  assert.deepEqual(endpoint.stats().answered, { 200: 0, 500: 0, 503: 0 })
})

test('a fault of ours is a line of text, and counted', async t => {
  const { source, port, endpoint } = await start(t)
  source.fails = true
  const reply = await call(port, '/metrics')
  assert.equal(reply.status, 500)
  assert.equal(reply.body.toString(), "cannot answer /metrics: internal error; see the agent's log\n")
  assert.equal(endpoint.stats().answered[500], 1)
  source.fails = false
  assert.equal((await call(port, '/metrics')).status, 200)
  const huge = await call(port, '/metrics', { headers: { big: 'x'.repeat(20_000) } })
  assert.deepEqual(
    [huge.status, huge.body.toString()],
    [431, 'cannot read the request: its headers are too long\n'],
  )
})

test('whoever is not admitted gets nothing but that, on every path', async t => {
  const { port, source } = await start(t, {
    admit: async ({ headers }) => {
      if (headers.authorization === 'yes') return { headers: { 'X-Frame-Options': 'deny' } }
      return { refusal: { status: 401, body: Buffer.from('no'), headers: {} }, headers: { 'X-A': 'b' } }
    },
  })
  for (const path of ['/metrics', '/', '/nope']) {
    const reply = await call(port, path)
    assert.deepEqual([reply.status, reply.body.toString(), reply.headers['x-a']], [401, 'no', 'b'])
  }
  assert.equal(source.scrapes.length, 0)
  const reply = await call(port, '/metrics', { headers: { Authorization: 'yes' } })
  assert.deepEqual([reply.status, reply.headers['x-frame-options']], [200, 'deny'])
})

test('it is asked by names of this host, and probes by any', async t => {
  const names = { own: () => ['web-1', 'web-1.example.org'], allowed: ['metrics.example'] }
  const bounds = { maxRequests: 0, timeoutMs: 1000 }
  const { endpoint, port, source } = await start(t, { extended, names })
  const check = async (Host: string, path: string, status: number, method = 'GET') =>
    assert.equal((await call(port, path, { method, headers: { Host } })).status, status, `${Host} ${path}`)
  for (const host of ['127.0.0.1', '[::1]', '192.0.2.7', 'localhost', 'Web-1', 'web-1.example.org.']) {
    await check(`${host}:9100`, '/metrics', 200)
    await check(host, '/metrics', 200, 'POST')
  }
  await check('metrics.example', '/metrics', 200)
  const before = source.scrapes.length
  for (const host of ['evil.example', 'web-1.evil.example', 'localhost.evil.example', '1.2.3.4.evil.example'])
    for (const path of ['/metrics', '/', '/metrics/description', '/nothing']) {
      await check(`${host}:9100`, path, 403)
      await check(host, path, 403, 'POST')
    }
  assert.equal(source.scrapes.length, before)
  for (const path of ['/health', '/ready', '/live']) await check('evil.example', path, 200)
  const { body } = await call(port, '/metrics', { headers: { Host: 'lb.example' } })
  assert.match(
    body.toString(),
    /Host "lb\.example" is not a known name of this host; .* self_telemetry\.allowed_hosts/,
  )
  endpoint.use(source, bounds, ['lb.example'])
  await check('lb.example', '/metrics', 200)
  await check('metrics.example', '/metrics', 403)
  // The program that replaces an exporter answers as that does.
  const dropIn = await start(t)
  const headers = { Host: 'any.example', Origin: 'http://any.example' }
  for (const method of ['GET', 'POST'])
    assert.equal((await call(dropIn.port, '/metrics', { method, headers })).status, 200)
})

test('other collectors and bounds take over while it runs', async t => {
  const { endpoint, port, text, source } = await start(t)
  source.holds = true
  const before = text('/metrics')
  await until('it is under way', 20_000, () => source.scrapes.length === 1)
  const next = new Collectors()
  endpoint.use(next, { maxRequests: 2, timeoutMs: 300 }, [])
  await text('/metrics')
  assert.deepEqual(
    next.scrapes.map(({ withinMs }) => withinMs),
    [300],
  )
  await text('/metrics', { 'X-Prometheus-Scrape-Timeout-Seconds': '0.001' })
  assert.equal(next.scrapes.at(-1)!.withinMs, 300, 'the configuration may allow less than the least')
  endpoint.use(next, { maxRequests: 1, timeoutMs: 300 }, [])
  assert.equal((await call(port, '/metrics')).status, 503)
  source.release()
  assert.match(await before, /^cpu,/)
})

interface Secured {
  readonly ca?: string
  readonly client?: string
}

/** The status of /live over TLS, or why there is none; with the server's certificate. */
function overTls(port: number, { ca = 'ca', client }: Secured = {}): Promise<string> {
  return new Promise(resolve => {
    const sent = request(
      {
        host: '127.0.0.1',
        port,
        path: '/live',
        agent: false,
        ca: certificates.text(`${ca}.pem`),
        ...(client && { cert: certificates.text(`${client}.pem`), key: certificates.text(`${client}.key`) }),
      },
      reply => {
        reply.resume()
        resolve(String(reply.statusCode))
      },
    )
    sent.on('error', ({ code }: NodeJS.ErrnoException) => resolve(code ?? 'failed'))
    sent.end()
  })
}

test('TLS, certificates of clients, and a reload that renews both', async t => {
  const endpoint = new MetricsEndpoint({
    source: new Collectors(),
    path: '/metrics',
    maxRequests: 0,
    timeoutMs: 1000,
    title: '',
    version: '',
    extended,
    log: silentLogger,
  })
  const settings = (tls: Partial<MetricsServerSettings['tls']>): MetricsServerSettings => ({
    listen_address: '127.0.0.1:0',
    tls: {
      ...noTls,
      enabled: true,
      cert_file: certificates.file('own.pem'),
      key_file: certificates.file('own.key'),
      ...tls,
    },
  })
  const renew = (name: string) => {
    for (const end of ['pem', 'key'])
      copyFileSync(certificates.file(`${name}.${end}`), certificates.file(`own.${end}`))
  }
  const begin = (chosen: MetricsServerSettings) =>
    startMetricsServer({ settings: chosen, endpoint, log: silentLogger })
  renew('server')
  await assert.rejects(
    begin(settings({ client_auth: true })),
    (error: unknown) =>
      error instanceof StartError &&
      /agent\.nodeexporter\.tls\.client_auth is true and client_ca_file is empty/.test(error.message),
  )
  await assert.rejects(begin(settings({ cert_file: '' })), /agent\.nodeexporter\.tls\.cert_file is empty/)
  await assert.rejects(
    begin({ listen_address: 'x', tls: noTls }),
    /agent\.nodeexporter\.listen_address is "x"/,
  )
  const server = await begin(settings({ client_ca_file: 'not read' }))
  t.after(() => server.close())
  assert.match(server.url('/metrics'), /^https:\/\/127\.0\.0\.1:\d+\/metrics$/)
  assert.equal(await overTls(server.port), '200')
  assert.notEqual(await overTls(server.port, { ca: 'stranger' }), '200')

  server.prepare(settings({ client_auth: true, client_ca_file: certificates.file('ca.pem') })).commit()
  assert.notEqual(await overTls(server.port), '200')
  assert.notEqual(await overTls(server.port, { client: 'other' }), '200')
  assert.equal(await overTls(server.port, { client: 'client' }), '200')

  renew('other')
  server.prepare(settings({})).commit()
  assert.equal(await overTls(server.port, { ca: 'stranger' }), '200')
  assert.throws(
    () => server.prepare(settings({ key_file: certificates.file('client.key') })),
    /does not match the certificate/,
  )
})
