import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Ask, ask, operations, type Reply, serve, settings } from '../../test/helpers/api-server.ts'
import { outerAddress, withoutOuterAddress } from '../../test/helpers/host-needs.ts'
import { bearerCheck } from './bearer.ts'
import { isLoopback } from './guard.ts'
import type { Api, ApiSettings } from './server.ts'

const auth = { enabled: true, bearer_token: 'first', bearer_tokens: ['second'], exempt: ['/metrics'] }
const cors = (...allowed_origins: string[]) => ({ cors: { enabled: true, allowed_origins } })
const ends: (() => unknown)[] = []
let api: Api

before(async () => {
  const started = await serve(
    { after: (end: () => unknown) => void ends.push(end) },
    { listen: ':0', debug: true },
  )
  api = started.api
})
after(async () => {
  for (const end of ends) await end()
})

/** The one server of this file follows other settings. */
function follow(changed: Partial<ApiSettings>): void {
  api.prepare({ ...settings, debug: true, ...changed }).commit()
}

function post(path: string, headers: Record<string, string>, host = '127.0.0.1'): Promise<Reply> {
  return ask(api.port, path, { method: 'POST', headers, host })
}

test('a token is told by its digest alone, any of several', () => {
  const known = bearerCheck(['first', 'second', ''])
  const check = (want: boolean, ...headers: (string | undefined)[]) => {
    for (const header of headers) assert.equal(known(header), want, header)
  }
  check(true, 'Bearer first', 'bearer   second', 'BEARER first ')
  check(false, undefined, '', 'Bearer', 'Bearer ', 'Bearer firs', 'Bearer first!', 'Basic first', 'first')
  check(false, 'Bearer first second', `Bearer ${'first'.repeat(2000)}`)
  assert.throws(() => bearerCheck(['']), /none is configured/)
})

test('with auth on, everything but the probes and the exempt paths needs a token', async () => {
  follow({ auth })
  const before = api.stats().refused.unauthorized
  let refused = 0
  const check = async (path: string, authorization: string | undefined, status: number, asked: Ask = {}) => {
    const headers: Record<string, string> = authorization === undefined ? {} : { authorization }
    const reply = await ask(api.port, path, { ...asked, headers })
    assert.equal(reply.status, status, `${path} with ${authorization}`)
    assert.equal(reply.headers['www-authenticate'], status === 401 ? 'Bearer' : undefined)
    if (status !== 401) return
    refused++
    if (asked.method !== 'HEAD') assert.equal(JSON.parse(reply.text).error, 'unauthorized')
  }
  const open = ['/healthz', '/livez', '/ready', '/readyz', '/metrics']
  for (const path of open) {
    await check(path, undefined, 200)
    await check(path, 'Bearer wrong', 200)
  }
  const paths = [...operations().map(({ path }) => path), '/nothing', '/debug/nothing', '/', '*']
  for (const path of paths.filter(path => !open.includes(path)))
    for (const method of ['GET', 'POST', 'HEAD', 'OPTIONS', 'DELETE'])
      for (const wrong of [undefined, '', 'Bearer', 'Bearer firs', 'Bearer first!', 'Basic first', 'first'])
        await check(path, wrong, 401, { method })
  await check('/status', 'Bearer first', 200)
  await check('/status', 'bearer   second', 200)
  await check('/nothing', 'Bearer second', 404)
  assert.equal(api.stats().refused.unauthorized - before, refused)
})

test('tokens change without a restart', async () => {
  follow({ auth })
  const status = async (token: string) =>
    (await ask(api.port, '/status', { headers: { authorization: `Bearer ${token}` } })).status
  follow({ auth: { ...auth, bearer_token: 'third', bearer_tokens: [] } })
  assert.deepEqual([await status('first'), await status('second'), await status('third')], [401, 401, 200])
  follow({})
  assert.equal(await status('first'), 200)
})

test('without a token, what changes or reveals much is for this host alone', {
  skip: withoutOuterAddress,
}, async () => {
  const own = { host: `localhost:${api.port}` }
  const at = (path: string, method: string, headers: Record<string, string> = own) =>
    ask(api.port, path, { host: outerAddress, method, headers })
  follow({})
  const before = api.stats().refused.forbidden
  for (const [path, method] of [
    ['/admin/act', 'POST'],
    ['/debug/vars', 'GET'],
    ['/debug/vars', 'HEAD'],
  ] as const)
    assert.equal((await at(path, method)).status, 403, path)
  assert.equal(api.stats().refused.forbidden, before + 3)
  const { error, message, details } = JSON.parse((await at('/admin/act', 'POST')).text)
  assert.deepEqual([error, details], ['forbidden', { path: '/admin/act' }])
  assert.match(message, /set self_telemetry\.auth, or self_telemetry\.admin\.allow_remote: true/)
  assert.equal((await at('/status', 'GET')).status, 200)
  follow({ admin: { allow_remote: true } })
  assert.equal((await at('/admin/act', 'POST')).status, 200)
  assert.equal((await at('/admin/act', 'POST', { host: 'agent.example' })).status, 200)
  const same = { host: 'agent.example:1', origin: 'http://agent.example:1' }
  assert.equal((await at('/admin/act', 'POST', same)).status, 200)
  assert.equal((await at('/admin/act', 'POST', { ...same, origin: 'http://evil.example' })).status, 403)
  follow({ auth })
  const token = { authorization: 'Bearer first', host: 'agent.example' }
  assert.equal((await at('/admin/act', 'POST', token)).status, 200)
  // A path that is exempt from the token does not leave this host by that.
  follow({ auth: { ...auth, exempt: ['/admin/act'] } })
  assert.equal((await at('/admin/act', 'POST')).status, 403)
  assert.equal((await post('/admin/act', own)).status, 200)
})

test('web pages of other origins can neither change nor debug (CSRF)', async () => {
  follow({})
  const check = async (status: number, ...all: Record<string, string>[]) => {
    for (const headers of all)
      assert.equal((await post('/admin/act', headers)).status, status, JSON.stringify(headers))
  }
  const { port } = api
  await check(
    200,
    {},
    { origin: `http://localhost:${port}` },
    { origin: `http://127.0.0.1:${port}`, host: `localhost:${port}`, 'sec-fetch-site': 'cross-site' },
    { origin: `http://svc.localhost:${port}` },
    { origin: 'http://localhost:8080', host: 'localhost:8080', 'sec-fetch-site': 'same-origin' },
    { origin: `http://[::1]:${port}` },
    { 'sec-fetch-site': 'none' },
  )
  const others = [
    { origin: 'http://evil.example' },
    { origin: 'null' },
    { origin: '' },
    { origin: 'http://localhost' },
    { origin: `https://localhost:${port}`, host: '127.0.0.1' },
    { origin: `http://localhost:${port}.evil.example` },
    { origin: `http://localhost:${port}@evil.example` },
    { origin: `http://evil.example#localhost:${port}` },
    { origin: `http://localhost.evil.example:${port}` },
    { origin: `http://127.0.0.1.evil.example:${port}` },
    { origin: `ws://localhost:${port}` },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ] as Record<string, string>[]
  await check(403, ...others)
  // `*` says who may read, and not who may change.
  follow(cors('*', 'null'))
  await check(403, ...others)
  follow(cors('http://ops.example'))
  await check(200, { origin: 'http://ops.example', 'sec-fetch-site': 'cross-site' })
  await check(403, { origin: 'https://ops.example' }, { 'sec-fetch-site': 'cross-site' })
  follow({ cors: { enabled: false, allowed_origins: ['http://ops.example'] } })
  await check(403, { origin: 'http://ops.example' })
  follow({ auth })
  await check(200, { origin: 'http://evil.example', host: 'evil.example', authorization: 'Bearer first' })
})

test('a name that was pointed at this host is none of its names (DNS rebinding)', async () => {
  follow({})
  const check = async (status: number, ...hosts: string[]) => {
    for (const host of hosts) {
      assert.equal((await post('/admin/act', { host })).status, status, host)
      assert.equal((await ask(api.port, '/debug/vars', { headers: { host } })).status, status, host)
    }
  }
  await check(
    200,
    'localhost',
    'LOCALHOST:1',
    'a.localhost:80',
    '127.0.0.1:9',
    '127.1.2.3',
    '[::1]',
    '[::1]:5',
  )
  await check(
    403,
    'evil.example',
    'localhost.evil.example',
    'notlocalhost',
    '127.0.0.1.evil.example',
    '10.0.0.1',
  )
  await check(403, '[::2]', 'evil.example:80', ' ', 'x@localhost', 'localhost:80:80', '0.0.0.0', '127.0.0.1.')
  const { text } = await post('/admin/act', { host: 'evil.example' })
  assert.match(JSON.parse(text).message, /ask for localhost/)
  // The absolute form stands above Host.
  assert.equal((await post('http://evil.example/admin/act', { host: 'localhost' })).status, 403)
  assert.equal((await post('http://localhost/admin/act', { host: 'evil.example' })).status, 200)
  // What only shows is for everybody.
  assert.equal((await ask(api.port, '/status', { headers: { host: 'evil.example' } })).status, 200)
})

test('loopback addresses are told from others', () => {
  const check = (want: boolean, ...addresses: string[]) => {
    for (const address of addresses) assert.equal(isLoopback(address), want, address)
  }
  check(true, '127.0.0.1', '127.255.0.9', '::1', '::ffff:127.0.0.1')
  check(
    false,
    '',
    '128.0.0.1',
    '10.127.0.1',
    '::',
    '::2',
    '::ffff:10.0.0.1',
    'fe80::1',
    '127.0.0.1.example',
    '1270.0.0.1',
  )
})

test('CORS is off by default', async () => {
  follow({})
  const { status, headers } = await ask(api.port, '/status', { headers: { origin: 'http://a.example' } })
  assert.equal(status, 200)
  for (const name of Object.keys(headers)) assert.doesNotMatch(name, /^access-control-|^vary$/)
})

test('with CORS, pages of allowed origins may read every answer, and others none', async () => {
  follow({ auth, ...cors('http://a.example') })
  const of = async (path: string, origin: string | undefined, more: Ask = {}) => {
    const headers: Record<string, string> = { ...more.headers }
    if (origin !== undefined) headers.origin = origin
    const reply = await ask(api.port, path, { ...more, headers })
    assert.equal(reply.headers.vary, 'Origin')
    assert.equal(reply.headers['access-control-allow-credentials'], undefined)
    return [reply.status, reply.headers['access-control-allow-origin']]
  }
  assert.deepEqual(await of('/healthz', 'http://a.example'), [200, 'http://a.example'])
  assert.deepEqual(await of('/status', 'http://a.example'), [401, 'http://a.example'])
  assert.deepEqual(await of(`/${'x'.repeat(9000)}`, 'http://a.example'), [414, 'http://a.example'])
  for (const origin of [undefined, 'http://b.example', 'https://a.example', 'http://a.example:80', 'null'])
    assert.deepEqual(await of('/healthz', origin), [200, undefined])
  follow(cors('*'))
  assert.deepEqual(await of('/healthz', 'http://b.example'), [200, 'http://b.example'])
  assert.deepEqual(await of('/healthz', 'null'), [200, undefined])
})

test('a preflight is answered without a token, and only to allowed origins', async () => {
  follow({ auth, ...cors('http://a.example') })
  const of = (path: string, origin: string, asked = 'GET') =>
    ask(api.port, path, { method: 'OPTIONS', headers: { origin, 'access-control-request-method': asked } })
  const check = async (path: string, methods: string) => {
    const { status, headers, text } = await of(path, 'http://a.example', 'POST')
    assert.deepEqual([status, text], [204, ''])
    assert.equal(headers['access-control-allow-origin'], 'http://a.example')
    assert.equal(headers['access-control-allow-methods'], methods)
    assert.equal(headers['access-control-allow-headers'], 'Authorization, Content-Type')
    assert.equal(headers['access-control-max-age'], '600')
    assert.equal(headers.vary, 'Origin')
  }
  await check('/status', 'GET, HEAD, OPTIONS')
  await check('/admin/act', 'POST, OPTIONS')
  await check('/nothing', 'GET, HEAD, OPTIONS')
  for (const origin of ['http://b.example', 'null']) {
    const { status, headers } = await of('/status', origin)
    assert.equal(status, 401)
    assert.equal(headers['access-control-allow-origin'], undefined)
    assert.equal(headers['access-control-allow-methods'], undefined)
  }
  follow(cors('http://a.example'))
  const other = await of('/status', 'http://b.example')
  assert.deepEqual([other.status, other.headers['access-control-allow-methods']], [204, undefined])
})

test('beyond the rate an address is told when to come again, and probes never are', async () => {
  const settings = { auth, rate_limit: { enabled: true, requests_per_second: 1 } }
  follow(settings)
  const before = api.stats().refused.rate_limited
  const of = async (path: string, host: string) => await ask(api.port, path, { host })
  assert.equal((await of('/status', '127.0.0.1')).status, 401)
  let refused = await of('/status', '127.0.0.1')
  // A slow machine may have earned another in between.
  for (let i = 0; refused.status !== 429 && i < 100; i++) refused = await of('/status', '127.0.0.1')
  assert.equal(refused.status, 429)
  assert.equal(refused.headers['retry-after'], '1')
  assert.equal(JSON.parse(refused.text).error, 'rate_limited')
  assert.ok(api.stats().refused.rate_limited > before)
  // A reload is no fresh start: with one, none of these would be refused.
  let stillRefused = false
  for (let i = 0; !stillRefused && i < 100; i++) {
    follow(settings)
    stillRefused = (await of('/status', '127.0.0.1')).status === 429
  }
  assert.ok(stillRefused)
  for (let i = 0; i < 20; i++)
    for (const path of ['/healthz', '/livez', '/ready', '/readyz'])
      assert.equal((await of(path, '127.0.0.1')).status, 200)
  assert.equal((await of('/status', '::1')).status, 401)
  follow({})
  assert.equal((await of('/status', '127.0.0.1')).status, 200)
})
