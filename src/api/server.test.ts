import assert from 'node:assert/strict'
import { type IncomingHttpHeaders, request } from 'node:http'
import { connect } from 'node:net'
import { after, before, test } from 'node:test'
import { createLogger } from '../lib/logger.ts'
import { Registry } from '../lib/registry.ts'
import { StartError } from '../lib/start-error.ts'
import { type Api, type ApiSettings, startApi } from './server.ts'
import type { AgentView, Health, ReadinessChecks } from './types.ts'

const settings: ApiSettings = {
  listen: '127.0.0.1:0',
  path: '/metrics',
  auth: { enabled: false, bearer_token: '', bearer_tokens: [], exempt: [] },
  tls: { enabled: false },
}
const logged: string[] = []
const log = createLogger({ level: 'debug', format: 'json', write: line => logged.push(line) })
const queue = { size: 1, capacity: 2, exported: 3, dropped: 4, bytes: 5, capacity_bytes: 6 }

/** An agent whose health and readiness the tests set. */
const agent = {
  now: { healthy: true } as Health,
  checks: { ebpf: 'ok', otlp: 'ok', discovery: 'ok' } as ReadinessChecks,
  broken: false,
}

function view(): AgentView {
  const registry = new Registry()
  registry.counter('svc_things_total', 'Things.').labels().inc(7)
  return {
    registry,
    health: () => agent.now,
    readiness: () => agent.checks,
    status: () => ({
      version: '0.1.0',
      commit: 'abc1234',
      built: '2026-11-21T00:00:00Z',
      uptime: '15m30s',
      mode: 'agent',
      host: { name: 'h', os: 'linux', arch: 'x86_64', kernel: '6.18.0' },
      ebpf: { enabled: true, programs_loaded: 2, maps_created: 3, ringbuf_size: 4096 },
      profiling: { enabled: false, sample_rate: 19, profiles_collected: 0 },
      export: { endpoint: '', connected: false, last_export: null, spans_exported: 0, metrics_exported: 0 },
      discovery: { kubernetes: false, docker: false, pods_discovered: 0, containers_discovered: 0 },
      degraded: [],
    }),
    ebpf() {
      if (agent.broken) throw new Error('secret /internal/path')
      const ringbuf = { size: 4096, events_received: 5, events_lost: 0 }
      return { enabled: true, programs: [], maps: [], ringbuf, backend: 'sock', counters: {} }
    },
    exporting: () => ({
      endpoint: '',
      protocol: 'grpc',
      tls: false,
      compression: 'gzip',
      connected: false,
      last_export: null,
      last_error: null,
      queues: { traces: queue, metrics: queue, logs: queue, profiles: queue },
    }),
    config: () => ({ mode: 'agent', otlp: { endpoint: '' } }),
  }
}

interface Reply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

function ask(
  port: number,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: Buffer,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method, path, headers, agent: false }, reply => {
      const chunks: Buffer[] = []
      reply.on('data', chunk => chunks.push(chunk))
      reply.on('end', () =>
        resolve({
          status: reply.statusCode!,
          headers: reply.headers,
          text: Buffer.concat(chunks).toString(),
        }),
      )
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

/** Sends bytes on a connection of its own and resolves with all that comes back, when the server ends it. */
function raw(port: number, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    socket.on('data', chunk => {
      text += chunk
    })
    socket.on('end', () => {
      socket.end()
      resolve(text)
    })
    socket.on('error', reject)
  })
}

let api: Api
let guarded: Api
before(async () => {
  api = await startApi({ settings, view: view(), log, limits: { headersMs: 300, requestMs: 600 } })
  const auth = { enabled: true, bearer_token: 'first', bearer_tokens: ['second'], exempt: ['/metrics'] }
  guarded = await startApi({ settings: { ...settings, auth }, view: view(), log })
})
after(async () => {
  await api.close()
  await guarded.close()
})

test('health and its alias answer ok, and 503 with the reason when the agent is stuck', async () => {
  const check = async (status: number, want: unknown) => {
    for (const path of ['/healthz', '/livez']) {
      const reply = await ask(api.port, 'GET', path)
      assert.equal(reply.status, status)
      assert.deepEqual(JSON.parse(reply.text), want)
    }
  }
  await check(200, { status: 'ok' })
  agent.now = { healthy: false, reason: 'the pipeline is stuck' }
  await check(503, { status: 'unhealthy', reason: 'the pipeline is stuck' })
  agent.now = { healthy: true }
})

test('readiness is 503 when one check fails, and shows the others', async () => {
  const check = async (status: number, want: unknown) => {
    for (const path of ['/ready', '/readyz']) {
      const reply = await ask(api.port, 'GET', path)
      assert.equal(reply.status, status)
      assert.deepEqual(JSON.parse(reply.text), want)
    }
  }
  await check(200, { status: 'ready', checks: { ebpf: 'ok', otlp: 'ok', discovery: 'ok' } })
  agent.checks = { ebpf: 'failed: no BTF', otlp: 'ok', discovery: 'ok' }
  await check(503, { status: 'not_ready', checks: agent.checks })
  agent.checks = { ebpf: 'ok', otlp: 'ok', discovery: 'ok' }
})

test('documents are JSON of a known length that no cache keeps, and name no product', async () => {
  const { status, ebpf, exporting, config } = view()
  const check = async (path: string, want: unknown) => {
    const reply = await ask(api.port, 'GET', path)
    assert.equal(reply.status, 200)
    assert.deepEqual(JSON.parse(reply.text), want)
    assert.equal(reply.headers['content-type'], 'application/json')
    assert.equal(reply.headers['content-length'], String(Buffer.byteLength(reply.text)))
    assert.equal(reply.headers['cache-control'], 'no-store')
    assert.equal(reply.headers['x-content-type-options'], 'nosniff')
    assert.equal(reply.headers.server, undefined)
    assert.equal(reply.headers['x-powered-by'], undefined)
  }
  await check('/status', status())
  await check('/status?pretty=1#x', status())
  await check('/status/ebpf', ebpf())
  await check('/status/export', exporting())
  await check('/config', config())
})

test('the metrics are the text format, or OpenMetrics for whoever prefers it', async () => {
  const check = async (accept: string | undefined, type: string, last: string) => {
    const reply = await ask(api.port, 'GET', '/metrics', accept === undefined ? {} : { accept })
    assert.equal(reply.headers['content-type'], type)
    assert.match(reply.text, /^svc_things_total 7$/m)
    assert.equal(reply.text.trimEnd().split('\n').at(-1), last)
  }
  const text = 'text/plain; version=0.0.4'
  const openMetrics = 'application/openmetrics-text; version=1.0.0; charset=utf-8'
  const scraper =
    'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2'
  await check(undefined, text, 'svc_things_total 7')
  await check('*/*', text, 'svc_things_total 7')
  await check(scraper, openMetrics, '# EOF')
  await check('application/openmetrics-text', openMetrics, '# EOF')
  await check('text/plain, application/openmetrics-text;q=0.5', text, 'svc_things_total 7')
  await check('application/openmetrics-text;q=0', text, 'svc_things_total 7')
  await check('application/openmetrics-text;version=0.0.1', text, 'svc_things_total 7')
})

test('HEAD is GET without its body', async () => {
  const get = await ask(api.port, 'GET', '/status')
  const head = await ask(api.port, 'HEAD', '/status')
  assert.equal(head.status, 200)
  assert.equal(head.text, '')
  assert.equal(head.headers['content-length'], get.headers['content-length'])
})

test('OPTIONS and a method that is not allowed tell what is', async () => {
  const options = await ask(api.port, 'OPTIONS', '/status')
  assert.deepEqual([options.status, options.headers.allow, options.text], [204, 'GET, HEAD, OPTIONS', ''])
  const post = await ask(api.port, 'POST', '/status')
  assert.deepEqual([post.status, post.headers.allow], [405, 'GET, HEAD, OPTIONS'])
  assert.equal(JSON.parse(post.text).error, 'invalid_request')
  assert.match(
    await raw(api.port, 'OPTIONS * HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n'),
    /^HTTP\/1.1 204 /,
  )
})

test('a path that is not there is the error object, and says where a feature is not built', async () => {
  const check = async (path: string, why: string) => {
    const reply = await ask(api.port, 'GET', path)
    assert.equal(reply.status, 404)
    const message = `cannot answer ${path}: ${why}`
    assert.deepEqual(JSON.parse(reply.text), { error: 'not_found', message, details: { path } })
  }
  for (const path of ['/', '/status/', '/nothing', '/status%2febpf', '/../status'])
    await check(path, 'there is no such path')
  for (const path of [
    '/status/discovery',
    '/debug/vars',
    '/debug/pprof/heap',
    '/admin/reload',
    '/openapi.json',
  ])
    await check(path, 'it is not built in this version')
})

test('a handler that fails answers 500 without a word of the cause, which is logged', async () => {
  agent.broken = true
  const reply = await ask(api.port, 'GET', '/status/ebpf')
  agent.broken = false
  assert.equal(reply.status, 500)
  assert.equal(JSON.parse(reply.text).error, 'internal_error')
  assert.doesNotMatch(reply.text, /internal\/path/)
  assert.match(logged.at(-1)!, /"level":"error".*secret \/internal\/path/)
})

test('what is no HTTP is answered with the error object', async () => {
  const check = async (bytes: string, status: number) => {
    const text = await raw(api.port, bytes)
    const [head, body] = text.split('\r\n\r\n') as [string, string]
    assert.match(head, new RegExp(`^HTTP/1.1 ${status} \\w`))
    assert.match(head, /^Content-Type: application\/json$/m)
    assert.match(head, /^Connection: close$/m)
    assert.match(head, new RegExp(`^Content-Length: ${Buffer.byteLength(body)}$`, 'm'))
    assert.equal(JSON.parse(body).error, 'invalid_request')
  }
  await check('\x16\x03\x01\x02\x00\x01\x00', 400)
  await check('nonsense\r\n\r\n', 400)
  await check('GET /healthz HTTP/9.9\r\n\r\n', 400)
  await check('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400)
  await check('GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n', 400)
  await check(`GET / HTTP/1.1\r\nHost: h\r\nX: ${'x'.repeat(200_000)}\r\n\r\n`, 431)
  await check('GET /healthz HTTP/1.1\r\nHost: h\r\n', 408)
  await check('POST /healthz HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n123', 408)
  await check('CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n', 405)
})

test('requests that HTTP allows and we do not are the error object too', async () => {
  const check = async (bytes: string, status: number) => {
    const text = await raw(api.port, bytes)
    assert.match(text, new RegExp(`^HTTP/1.1 ${status} `))
    assert.equal(JSON.parse(text.split('\r\n\r\n')[1]!).error, 'invalid_request')
  }
  await check('GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n', 400)
  await check('GET /healthz HTTP/1.1\r\nHost: h\r\nExpect: magic\r\n\r\n', 417)
  await check(`GET /${'x'.repeat(9000)} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`, 414)
})

test('HTTP/1.0 without Host, the absolute form and an upgrade that we ignore are served', async () => {
  const check = async (bytes: string) => assert.match(await raw(api.port, bytes), /^HTTP\/1.1 200 OK\r\n/)
  await check('GET /healthz HTTP/1.0\r\n\r\n')
  await check('GET http://h:1/healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n')
  await check('GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: upgrade, close\r\nUpgrade: h2c\r\n\r\n')
})

test('a body is read up to its limit, and refused beyond', async () => {
  const check = async (size: number, headers: Record<string, string>, status: number) => {
    const reply = await ask(api.port, 'GET', '/healthz', headers, Buffer.alloc(size))
    assert.equal(reply.status, status)
    if (status === 413) assert.equal(JSON.parse(reply.text).error, 'invalid_request')
  }
  await check(65_536, { 'content-length': '65536' }, 200)
  await check(65_537, { 'content-length': '65537' }, 413)
  await check(65_536, { 'transfer-encoding': 'chunked' }, 200)
  await check(500_000, { 'transfer-encoding': 'chunked' }, 413)
  const refused = await raw(
    api.port,
    'POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 70000\r\n\r\n',
  )
  assert.match(refused, /^HTTP\/1.1 413 /)
})

test('a request that expects 100-continue gets it', async () => {
  const text = await raw(
    api.port,
    'GET /healthz HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi',
  )
  assert.match(text, /^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 OK\r\n/)
})

test('requests on one connection are answered in turn', async () => {
  const one = 'GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n'
  const text = await raw(
    api.port,
    `${one}${one}GET /nothing HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`,
  )
  assert.deepEqual(text.match(/HTTP\/1.1 \d+/g), ['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 404'])
})

test('with auth on, everything but the probes and the exempt paths needs a token', async () => {
  const check = async (path: string, authorization: string | undefined, status: number) => {
    const reply = await ask(guarded.port, 'GET', path, authorization === undefined ? {} : { authorization })
    assert.equal(reply.status, status, `${path} with ${authorization}`)
    assert.equal(reply.headers['www-authenticate'], status === 401 ? 'Bearer' : undefined)
    if (status === 401) assert.equal(JSON.parse(reply.text).error, 'unauthorized')
  }
  for (const path of ['/healthz', '/livez', '/ready', '/readyz', '/metrics'])
    await check(path, undefined, 200)
  await check('/status', undefined, 401)
  await check('/nothing', undefined, 401)
  for (const wrong of [
    '',
    'Bearer',
    'Bearer ',
    'Bearer firs',
    'Bearer first!',
    'Basic first',
    'first',
    'Bearer first second',
  ])
    await check('/status', wrong, 401)
  await check('/status', 'Bearer first', 200)
  await check('/status', 'bearer   second', 200)
  await check('/nothing', 'Bearer second', 404)
})

test('what cannot be guarded as asked is not started', async () => {
  const check = (changed: Partial<ApiSettings>, want: RegExp) =>
    assert.rejects(
      startApi({ settings: { ...settings, ...changed }, view: view(), log }),
      (error: StartError) => {
        assert.ok(error instanceof StartError)
        assert.equal(error.exitCode, 2)
        assert.match(error.message, want)
        return true
      },
    )
  await check({ tls: { enabled: true } }, /TLS is not built/)
  await check({ auth: { ...settings.auth, enabled: true, bearer_tokens: [''] } }, /bearer_token is empty/)
  await check({ listen: 'nowhere' }, /self_telemetry.listen is "nowhere"/)
  await check({ path: '/status' }, /cannot serve the metrics at \/status/)
  await check({ path: 'metrics' }, /a path starts with \//)
})

test('a port that is taken is refused with the name of who has it', async () => {
  const taken = { ...settings, listen: `127.0.0.1:${api.port}` }
  await assert.rejects(startApi({ settings: taken, view: view(), log }), (error: StartError) => {
    assert.equal(error.exitCode, 1)
    const listen = `cannot listen on 127\\.0\\.0\\.1:${api.port} \\(self_telemetry\\.listen\\)`
    assert.match(error.message, new RegExp(`^${listen}: the port is taken by .+ \\(pid ${process.pid}\\)`))
    return true
  })
})

test('an address of every kind can be listened on', async () => {
  for (const listen of [':0', '0.0.0.0:0', 'localhost:0']) {
    const server = await startApi({ settings: { ...settings, listen }, view: view(), log })
    const { hostname, port } = new URL(server.url('/healthz'))
    assert.ok(['127.0.0.1', '[::1]'].includes(hostname))
    if (hostname === '127.0.0.1') assert.equal((await ask(Number(port), 'GET', '/healthz')).status, 200)
    await server.close()
    await server.close()
  }
})

test('more connections than the bound are closed, and the others still served', async () => {
  const few = await startApi({ settings, view: view(), log, limits: { connections: 2 } })
  const held = await Promise.all(
    [1, 2].map(
      () =>
        new Promise<import('node:net').Socket>(resolve => {
          const socket = connect(few.port, '127.0.0.1', () => {
            socket.write('GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n')
            socket.once('data', () => resolve(socket))
          })
        }),
    ),
  )
  await assert.rejects(ask(few.port, 'GET', '/healthz'))
  const again = new Promise(resolve => held[0]!.once('data', resolve))
  held[0]!.write('GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n')
  assert.match(String(await again), /^HTTP\/1.1 200 OK/)
  for (const socket of held) socket.destroy()
  await few.close()
})
