import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { type Ask, ask, operations, type Reply, serve, settings } from '../../../test/helpers/api-server.ts'
import { outerAddress, withoutOuterAddress, withoutRoot } from '../../../test/helpers/host-needs.ts'
import { bearerCheck } from './bearer.ts'
import { BrowserKey } from './browser-key.ts'
import { isLoopback } from './guard.ts'
import { HostNames, ownNames } from './host-names.ts'
import type { Api, ApiSettings } from './server.ts'
import { browserOperations } from './ui/browser-routes.ts'

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

test('without a token, what changes or reveals much is for root and the own user on this host alone', {
  skip: withoutOuterAddress,
}, async () => {
  const at = (path: string, method: string, headers: Record<string, string> = {}) =>
    ask(api.port, path, { host: outerAddress, method, headers })
  follow({})
  const before = api.stats().refused.unauthorized
  for (const [path, method] of [
    ['/admin/act', 'POST'],
    ['/debug/vars', 'GET'],
    ['/debug/vars', 'HEAD'],
  ] as const)
    assert.equal((await at(path, method)).status, 401, path)
  assert.equal(api.stats().refused.unauthorized, before + 3)
  const refused = await at('/admin/act', 'POST')
  const { error, message, details } = JSON.parse(refused.text)
  assert.deepEqual([error, details.path], ['unauthorized', '/admin/act'])
  assert.equal(refused.headers['www-authenticate'], 'Bearer')
  assert.match(message, /sudo svc ui/)
  assert.match(details.hint, /self_telemetry\.auth/)
  assert.equal((await at('/status', 'GET')).status, 200)
  follow({ admin: { allow_remote: true }, allowed_hosts: ['agent.example'] })
  assert.equal((await at('/admin/act', 'POST')).status, 200)
  assert.equal((await at('/admin/act', 'POST', { host: 'agent.example' })).status, 200)
  assert.equal((await at('/admin/act', 'POST', { host: 'other.example' })).status, 403)
  const same = { host: 'agent.example:1', origin: 'http://agent.example:1' }
  assert.equal((await at('/admin/act', 'POST', same)).status, 200)
  assert.equal((await at('/admin/act', 'POST', { ...same, origin: 'http://evil.example' })).status, 403)
  follow({ auth })
  const token = { authorization: 'Bearer first', host: 'agent.example' }
  assert.equal((await at('/admin/act', 'POST', token)).status, 200)
  // A path that is exempt from the token does not leave this host by that.
  follow({ auth: { ...auth, exempt: ['/admin/act'] } })
  assert.equal((await at('/admin/act', 'POST')).status, 401)
  assert.equal((await post('/admin/act', {})).status, 200)
})

test('what a proxy passes on is not of the proxy', async () => {
  follow({})
  for (const name of [
    'forwarded',
    'via',
    'x-forwarded-for',
    'X-Forwarded-Host',
    'x-forwarded-proto',
    'x-real-ip',
  ])
    assert.equal((await post('/admin/act', { [name]: '127.0.0.1' })).status, 401, name)
  assert.equal((await post('/admin/act', {})).status, 200)
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
  follow({ allowed_hosts: ['svc.example.com', 'Other.example.'] })
  const check = async (status: number, ...hosts: string[]) => {
    for (const host of hosts) {
      assert.equal((await post('/admin/act', { host })).status, status, host)
      for (const path of ['/debug/vars', '/status', '/metrics'])
        assert.equal((await ask(api.port, path, { headers: { host } })).status, status, `${path} at ${host}`)
      // What a probe says concerns nobody, and a kubelet may be told to ask by any name.
      assert.equal((await ask(api.port, '/healthz', { headers: { host } })).status, 200)
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
  await check(200, '10.0.0.1', '[fd00::1]:80', hostname(), hostname().toUpperCase(), `${hostname()}:80`)
  await check(200, 'svc.example.com', 'SVC.example.com:443', 'svc.example.com.', 'other.example')
  await check(
    403,
    'evil.example',
    'localhost.evil.example',
    'notlocalhost',
    '127.0.0.1.evil.example',
    'example.com',
  )
  await check(403, 'a.svc.example.com', `${hostname()}.evil.example`, '127.0.0.1.')
  await check(
    403,
    'evil.example:80',
    ' ',
    'x@localhost',
    'localhost:80:80',
    '127.0.0.1@evil.example',
    '[]',
    ':80',
  )
  const { text } = await ask(api.port, '/status', { headers: { host: 'evil.example' } })
  assert.match(JSON.parse(text).message, /"evil\.example".*self_telemetry\.allowed_hosts/)
  // The absolute form stands above Host.
  assert.equal((await post('http://evil.example/admin/act', { host: 'localhost' })).status, 403)
  assert.equal((await post('http://localhost/admin/act', { host: 'evil.example' })).status, 200)
  follow({ auth })
  const headers = { host: 'evil.example', authorization: 'Bearer first' }
  assert.equal((await ask(api.port, '/status', { headers })).status, 200)
})

test('names of this host are what it says itself, not what a name server says', () => {
  const etc = mkdtempSync(join(tmpdir(), 'svc-etc-'))
  writeFileSync(
    join(etc, 'hosts'),
    '127.0.1.1 node-1.corp node-1 # evil.example\n10.99.0.1 other.corp\n::1 six\n',
  )
  writeFileSync(
    join(etc, 'resolv.conf'),
    'nameserver 9.9.9.9\nsearch lan.example. example.org ; no.example\n',
  )
  const names = new HostNames(ownNames('Node-1', etc))
  rmSync(etc, { recursive: true })
  for (const name of ['node-1', 'node-1.corp', 'NODE-1.lan.example', 'node-1.example.org.', 'six'])
    assert.ok(names.has(name), name)
  for (const name of [
    '',
    '.',
    'other.corp',
    'evil.example',
    'lan.example',
    'node-1.no.example',
    'node-1.evil.example',
  ])
    assert.ok(!names.has(name), name)
  assert.ok(new HostNames(ownNames('a', join(etc, 'missing'))).has('a'))
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
  assert.equal(status, 403)
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

test('beyond the rate a user of this host is told when to come again, and probes never are', async () => {
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
  assert.equal((await of('/status', '::1')).status, 429, 'it is the same user')
  if (withoutRoot === false) assert.match(await statusAsNobody(api.port), /^HTTP\/1\.1 401 /)
  follow({})
  assert.equal((await of('/status', '127.0.0.1')).status, 200)
})

/** The first line of the answer to somebody else. */
async function statusAsNobody(port: number): Promise<string> {
  const script = `exec 3<>/dev/tcp/127.0.0.1/${port}
    printf 'GET /status HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' >&3; head -n 1 <&3`
  const { stdout } = await promisify(execFile)('/bin/bash', ['-c', script], { uid: 65_534, cwd: '/' })
  return stdout
}

test('a link’s key is exchanged for a cookie, which opens what is private and nothing to other sites', async t => {
  const key = new BrowserKey()
  const session = browserOperations({ key, tls: false, link: () => `http://h/ui#key=${key.key}` })
  const { api } = await serve(t, {}, { operations: [...operations(), ...session], browserKey: key })
  const passedOn = { 'x-forwarded-for': '10.0.0.1' }
  const own = { host: `localhost:${api.port}`, origin: `http://localhost:${api.port}` }
  const exchange = (given: unknown, headers: Record<string, string> = {}) =>
    ask(api.port, '/ui/session', {
      method: 'POST',
      body: JSON.stringify({ key: given }),
      headers: { 'content-type': 'application/json', ...own, ...passedOn, ...headers },
    })
  for (const wrong of ['', 'x', key.key.slice(1), `${key.key}x`]) {
    const reply = await exchange(wrong)
    assert.deepEqual([reply.status, reply.headers['set-cookie']], [401, undefined])
  }
  assert.equal((await exchange(key.key, { origin: 'http://evil.example' })).status, 403)
  assert.equal((await exchange(key.key, { host: 'evil.example', origin: 'http://evil.example' })).status, 403)
  const { status, headers } = await exchange(key.key)
  assert.equal(status, 200)
  const [set = ''] = headers['set-cookie'] ?? []
  assert.match(set, new RegExp(`^svc-session-${api.port}=[\\w-]{32}; Path=/; HttpOnly; SameSite=Strict$`))
  assert.ok(!set.includes(key.key))
  const cookie = set.slice(0, set.indexOf(';'))
  const act = async (more: Record<string, string>) =>
    (await ask(api.port, '/admin/act', { method: 'POST', headers: { ...own, ...passedOn, ...more } })).status
  assert.equal(await act({}), 401)
  assert.equal(await act({ cookie }), 200)
  assert.equal(await act({ cookie: `a=b; svc-session-1=x; ${cookie}; c=d` }), 200)
  assert.equal(await act({ cookie: `${cookie}x` }), 401)
  assert.equal(await act({ cookie: cookie.replace(String(api.port), '1') }), 401)
  assert.equal(await act({ cookie: `svc-session-${api.port}=${key.key}` }), 401)
  assert.equal(await act({ cookie: `${cookie}; a=${'x'.repeat(9000)}` }), 401)
  assert.equal(await act({ cookie, origin: 'http://evil.example' }), 403)
  assert.equal(await act({ cookie, host: 'evil.example', origin: 'http://evil.example' }), 403)
  // A tunnel has another port, by which the browser knows the cookie.
  const tunnel = { host: 'localhost:8001', origin: 'http://localhost:8001' }
  const [through = ''] = (await exchange(key.key, tunnel)).headers['set-cookie'] ?? []
  assert.match(through, /^svc-session-8001=/)
  // With tokens it stands for one.
  api.prepare({ ...settings, auth }).commit()
  assert.equal((await ask(api.port, '/status', { headers: { ...own, cookie } })).status, 200)
  assert.equal((await ask(api.port, '/status', { headers: own })).status, 401)
  let last = 0
  for (let i = 0; i < 100 && last !== 429; i++) last = (await exchange('x')).status
  assert.equal(last, 429)
})

test('the link is for who may see all, and over TLS the cookie is for TLS alone', async t => {
  const key = new BrowserKey()
  const session = browserOperations({ key, tls: false, link: () => `http://h/ui#key=${key.key}` })
  const { api, log } = await serve(t, {}, { operations: session, browserKey: key })
  assert.equal(JSON.parse((await ask(api.port, '/admin/ui')).text).url, `http://h/ui#key=${key.key}`)
  assert.equal((await ask(api.port, '/admin/ui', { headers: { via: '1.1 proxy' } })).status, 401)
  assert.match(
    key.setCookie('a.example', true),
    /^svc-session-443=[\w-]+; Path=\/; HttpOnly; SameSite=Strict; Secure$/,
  )
  assert.ok(!log.join('').includes(key.key))
})
