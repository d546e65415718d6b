// owns: ports
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Profile } from 'pprof-format'
import { AgentProcess } from '../helpers/agent-process.ts'
import { withoutRoot } from '../helpers/host-needs.ts'
import { type Call, call, callRaw, type Reply } from '../helpers/http.ts'
import { output } from '../helpers/load.ts'
import { Api, type DescribedOperation } from '../helpers/openapi.ts'
import { until } from '../helpers/program.ts'
import { soak } from '../helpers/soak.ts'

const token = 'the-token-of-the-test'

/** Without a token, and with one. */
let open: AgentProcess
let guarded: AgentProcess
let api: Api
/** Under way beside the other tests: it takes the server's bound of 30 s. */
let late: Promise<readonly { target: Target; reply: Reply }[]>
const directory = mkdtempSync(join(tmpdir(), 'svc-api-'))

before(async () => {
  const agent = { profiling: { enabled: true } }
  const config = { agent, self_telemetry: { debug: true } }
  open = await AgentProcess.start({ ports: [], config })
  guarded = await AgentProcess.start({
    ports: [],
    config: { agent, self_telemetry: { debug: true, auth: { enabled: true, bearer_token: token } } },
  })
  api = new Api(await open.document('/openapi.json'))
  late = lateBodies()
})
after(async () => {
  await open?.stop()
  await guarded?.stop()
  rmSync(directory, { recursive: true, force: true })
})

/** An operation of the running agent with a duration that a test can wait for. */
interface Target {
  readonly path: string
  readonly url: string
  readonly method: string
  readonly operation: DescribedOperation
}

function targets(): Target[] {
  return api.operations().map(({ path, method, operation }) => {
    const seconds = operation.parameters?.find(({ name }) => name === 'seconds')
    return { path, method, operation, url: seconds ? `${path}?seconds=${seconds.schema.minimum}` : path }
  })
}

/** What operations answer whose body does not come: all of them in a soak. */
function lateBodies(): Promise<{ target: Target; reply: Reply }[]> {
  const chosen = targets().filter(({ path }) => soak || path === '/admin/flush')
  return Promise.all(
    chosen.map(async target => {
      const head = `${target.method} ${target.path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nslow`
      return { target, reply: await callRaw(open.port, head) }
    }),
  )
}

/** What an operation answers that is asked for nothing special: stacks of the host are root's. */
const usual = ({ path }: Target) =>
  path === '/profiles' && withoutRoot ? 503 : nameless.has(path) ? 404 : takesBody({ path }) ? 415 : 200
const tryPath = '/ui/api/try'
const sessionPath = '/ui/session'
/** Without a body there is nothing to try, and no key. */
const takesBody = ({ path }: Pick<Target, 'path'>) => path === tryPath || path === sessionPath
/** Without the name of one there is none. */
const nameless = new Set(['/ui/api/trace', '/ui/api/series'])

/** Calls and holds the answer against the description. Only a probe may say 503, and what needs root. */
async function check(port: number, target: Target, sent: Call = {}): Promise<Reply> {
  const { url, method, operation } = target
  const reply = await call(port, url, { method, ...sent })
  api.check(operation, reply, sent.method === 'HEAD')
  if (reply.status >= 500)
    assert.ok(isProbe(target) || reply.status === usual(target), `${method} ${url}: ${reply.body}`)
  return reply
}

const isProbe = ({ operation }: Target) => operation.tags.includes('probes')
const isLocal = ({ path, operation }: Target) =>
  path === '/profiles' || operation.tags.some(tag => ['admin', 'debug', 'ui'].includes(tag))
const evil = { Origin: 'https://evil.example' }

test('the description is OpenAPI 3.1, and has every path of the specification', async () => {
  const { valid, errors } = await new Validator().validate((await open.get('/openapi.json')).text)
  assert.ok(valid, JSON.stringify(errors))
  const paths = Object.keys(api.description.paths)
  for (const path of [
    ...['/healthz', '/livez', '/ready', '/readyz', '/metrics', '/config', '/openapi.json'],
    ...['/status', '/status/ebpf', '/status/export', '/status/discovery', '/admin/reload', '/admin/flush'],
    ...['heap', 'goroutine', 'threadcreate', 'block', 'mutex', 'profile', 'trace', ''].map(
      name => `/debug/pprof/${name}`,
    ),
    ...['/debug/vars', '/debug/pipeline/stats'],
    ...['overview', 'map', 'service', 'traces', 'trace', 'metrics', 'series', 'logs', 'profiles'].map(
      name => `/ui/api/${name}`,
    ),
    ...['flame', 'pipeline', 'tap', 'agent', 'doctor', 'explain', 'try'].map(name => `/ui/api/${name}`),
  ])
    assert.ok(paths.includes(path), path)
  const ids = targets().map(({ operation }) => operation.operationId)
  assert.equal(new Set(ids).size, ids.length)
})

test('every operation answers as it is described, with and without a token', async () => {
  for (const target of targets()) {
    assert.equal((await check(open.port, target)).status, usual(target), target.url)
    const headers = { Authorization: `Bearer ${token}` }
    assert.equal((await check(guarded.port, target, { headers })).status, usual(target), target.url)
  }
})

test('rules are tried as it is described, one at a time, and nothing but rules', async () => {
  const target = targets().find(({ path }) => path === tryPath)!
  const headers = { 'Content-Type': 'application/json' }
  const trying = (body: object) => check(open.port, target, { headers, body: JSON.stringify(body) })
  const [one, other] = await Promise.all([
    trying({ signal: 'profiles', rules: '' }),
    trying({ signal: 'profiles', rules: '' }),
  ])
  assert.deepEqual([one.status, other.status].sort(), [200, 409])
  const wrong = await trying({ signal: 'logs', rules: 'transform: {rules: 1}', items: 50 })
  assert.match(wrong.body.toString(), /"line":1,"column":20,/)
  const refused = [
    [{}, /signal.* must be one of/],
    [{ signal: 'traces' }, /rules.* must be a string/],
    [{ signal: 'traces', rules: '', items: 51 }, /a whole number from 1 to 50/],
    [{ signal: 'traces', rule: '' }, /did you mean rules\?/],
  ] as const
  for (const [body, why] of refused) {
    const reply = await trying(body)
    assert.equal(reply.status, 400)
    assert.match(reply.body.toString(), why)
  }
})

test('profiles under load are not empty, and go tool pprof opens them', async () => {
  const agent = new Agent({ keepAlive: true })
  let going = true
  const load = Promise.all(
    Array.from({ length: 8 }, async () => {
      while (going) await call(open.port, '/metrics', { agent })
    }),
  )
  try {
    for (const kind of ['heap', 'goroutine', 'profile?seconds=1']) {
      let body: Buffer = Buffer.alloc(0)
      // A host that stands still during the second of a profile leaves nothing in it.
      await until(`${kind} has samples`, 60_000, async () => {
        body = (await call(open.port, `/debug/pprof/${kind}`)).body
        const { sample, stringTable } = Profile.decode(gunzipSync(body))
        const hasLoad = stringTable.strings.some(text => /write/.test(text))
        return sample.length > 5 && (hasLoad || !kind.startsWith('profile'))
      })
      const file = join(directory, `${kind.split('?')[0]}.pb.gz`)
      writeFileSync(file, body)
      const top = await output('go', 'tool', 'pprof', '-top', file)
      assert.match(top, /flat%/, kind)
    }
    assert.match(await output('go', 'tool', 'pprof', '-top', join(directory, 'profile.pb.gz')), /write/)
  } finally {
    going = false
    await load
    agent.destroy()
  }
})

test('of two profiles that take time at once, one is refused', async () => {
  const profile = targets().find(({ path }) => path === '/debug/pprof/profile')!
  const trace = targets().find(({ path }) => path === '/debug/pprof/trace')!
  const refused = new Set<string>()
  await until('each was refused', 60_000, async () => {
    const order = refused.has(trace.path) ? [trace, profile] : [profile, trace]
    const replies = await Promise.all(order.map(target => check(open.port, target)))
    assert.deepEqual(replies.map(({ status }) => status).toSorted(), [200, 409])
    refused.add(order[replies.findIndex(({ status }) => status === 409)]!.path)
    return refused.size === 2
  })
})

test('text for people is text', async () => {
  for (const name of ['heap', 'goroutine', 'threadcreate', 'block', 'mutex']) {
    const reply = await call(open.port, `/debug/pprof/${name}?debug=1`)
    assert.equal(reply.headers['content-type'], 'text/plain; charset=utf-8', name)
    assert.ok(reply.body.length > 0, name)
  }
})

test('HEAD answers without a body, and OPTIONS tells the methods', async () => {
  for (const target of targets()) {
    const options = await call(open.port, target.path, { method: 'OPTIONS' })
    assert.equal(options.status, 204, target.path)
    const { allow } = options.headers
    assert.equal(allow, target.method === 'GET' ? 'GET, HEAD, OPTIONS' : 'POST, OPTIONS', target.path)
    if (target.method === 'GET')
      assert.equal((await check(open.port, target, { method: 'HEAD' })).status, 200, target.url)
  }
})

test('another method is refused with those that there are', async () => {
  for (const target of targets())
    for (const method of ['PUT', 'DELETE', 'PATCH', 'TRACE', target.method === 'GET' ? 'POST' : 'GET']) {
      const reply = await check(open.port, target, { method })
      assert.equal(reply.status, 405, `${method} ${target.path}`)
    }
})

test('without the token, or with another, only the probes answer', async () => {
  const wrong = [
    '',
    'Bearer',
    'Bearer ',
    `Bearer ${token}x`,
    `Bearer ${token.slice(0, -1)}`,
    `Basic ${token}`,
  ]
  for (const target of targets()) {
    for (const authorization of [undefined, ...wrong, `bearer ${'x'.repeat(8000)}`]) {
      const headers: Record<string, string> =
        authorization === undefined ? {} : { Authorization: authorization }
      const reply = await check(guarded.port, target, { headers })
      // Who has the key of a link shows that in place of a token.
      const status = isProbe(target) ? 200 : target.path === sessionPath ? 415 : 401
      assert.equal(reply.status, status, `${target.path} ${authorization}`)
      assert.ok(isProbe(target) || !reply.body.includes(token.slice(0, 6)))
    }
  }
  // Where there is a token, what exists is not told to who has none.
  assert.equal((await call(guarded.port, '/nowhere')).status, 401)
})

test('a web page of another origin gets neither debug nor admin, and nothing that the live page shows', async () => {
  for (const target of targets().filter(isLocal)) {
    const { port } = open
    for (const headers of [
      evil,
      { Origin: 'null' },
      { Host: `evil.example:${port}` },
      { Host: `evil.example:${port}`, Origin: `http://evil.example:${port}` },
      { 'Sec-Fetch-Site': 'cross-site' },
    ] as Record<string, string>[])
      assert.equal((await check(port, target, { headers })).status, 403, JSON.stringify(headers))
    if (target.method === 'GET')
      assert.equal(
        (await check(port, target, { headers: { Host: `localhost:${port}` } })).status,
        usual(target),
      )
  }
})

test('requests that are no HTTP, or too much of it, get an error object', async () => {
  for (const target of targets()) {
    const { method, path, operation } = target
    const line = `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n`
    const raw = async (status: number, bytes: string) => {
      const reply = await callRaw(open.port, bytes)
      assert.equal(reply.status, status, bytes.slice(0, 100))
      api.check(operation, reply)
    }
    await raw(431, `${line}X-Long: ${'x'.repeat(20_000)}\r\n\r\n`)
    await raw(400, `${method} ${path} HTTQ/9\r\n\r\n`)
    await raw(400, `${line}no colon here\r\n\r\n`)
    await raw(400, `${line}Content-Length: 5\r\nContent-Length: 6\r\n\r\n`)
    await raw(400, `${line}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n`)
    await raw(400, `${line}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\nnot a number\r\n`)
    await raw(400, `${method} ${path} HTTP/1.1\r\nConnection: close\r\n\r\n`)
    await raw(417, `${line}Expect: a-miracle\r\nConnection: close\r\n\r\n`)
    const long = { ...target, url: `${path}?${'x'.repeat(9000)}` }
    assert.equal((await check(open.port, long)).status, 414)
    const body = 'x'.repeat(100_000)
    const headers = { 'Content-Length': String(body.length) }
    assert.equal((await check(open.port, target, { body, headers })).status, 413)
  }
})

test('a body is taken where it says nothing, and refused in words where it does', async () => {
  const type = { 'Content-Type': 'application/json' }
  for (const target of targets().filter(({ method }) => method === 'POST')) {
    const { port } = open
    const empty = takesBody(target) ? 400 : 200
    assert.equal((await check(port, target, { body: '{}', headers: type })).status, empty)
    assert.equal((await check(port, target, { body: '{"a":', headers: type })).status, 400)
    assert.equal((await check(port, target, { body: '{"force":true}', headers: type })).status, 400)
    assert.equal((await check(port, target, { body: '[]', headers: type })).status, 400)
    const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
    assert.equal((await check(port, target, { body: 'a=b', headers: form })).status, 415)
  }
})

test('a query that an operation does not know is refused where it has parameters, else ignored', async () => {
  for (const target of targets()) {
    const { path, operation } = target
    const of = async (query: string) =>
      (await check(open.port, { ...target, url: `${path}?${query}` })).status
    if (operation.parameters === undefined) {
      assert.equal(await of('unknown=1&%00=%ff&x=%zz'), usual(target), path)
      continue
    }
    for (const query of [
      ...[
        'unknown=1',
        'debug=3',
        'debug=-1',
        'debug=x',
        'debug=1&debug=1',
        'debug=1e0',
        'debug=0x1',
        'debug=',
      ],
      ...['seconds=0', 'seconds=99999999999', 'seconds=1.5', 'debug=%00', 'Debug=1', 'debug[]=1'],
    ])
      assert.equal(await of(query), 400, `${path}?${query}`)
  }
})

test('paths that only look like one are not found', async () => {
  const operation = targets()[0]!.operation
  for (const path of [
    ...['/..%2f..%2fetc/passwd', '/%2e%2e/%2e%2e/etc/passwd', '/admin/../status', '/status/', '//status'],
    ...['/STATUS', '/status%00', '/debug/pprof/../vars', '/debug/pprof/cmdline', '/ui/api', '/%', '/\\..\\'],
    ...['/__proto__', '/constructor', '/status;x=1', '/status%2febpf'],
  ]) {
    const reply = await call(open.port, path)
    assert.equal(reply.status, 404, path)
    api.check(operation, reply)
  }
})

test('debug paths do not exist while debug mode is off', async () => {
  const quiet = await AgentProcess.start({ ports: [] })
  try {
    for (const target of targets().filter(({ operation }) => operation.tags.includes('debug'))) {
      const reply = await check(quiet.port, target)
      assert.equal(reply.status, 404)
      assert.match(reply.body.toString(), /self_telemetry\.debug/)
    }
  } finally {
    await quiet.stop()
  }
})

test('a body that does not come in time is answered', async () => {
  for (const { target, reply } of await late) {
    assert.equal(reply.status, 408, target.path)
    api.check(target.operation, reply)
  }
})

// Behind the bodies that do not come: their connections are the oldest.
test('more connections than the bound are closed, and counted', async () => {
  const sockets = Array.from({ length: 400 }, () =>
    connect(open.port, '127.0.0.1').on('error', () => undefined),
  )
  await until('one of them is closed', 20_000, () =>
    sockets.some(({ readyState }) => readyState === 'closed'),
  )
  for (const socket of sockets) socket.destroy()
  const dropped = async () => (await open.metrics()).sum('svc_api_connections_dropped_total')
  // As long as all places are taken this question is closed, too.
  await until('that is counted', 20_000, () => dropped().then(Boolean, () => false))
})

test('no answer names the runtime, its version or a place in the source', async () => {
  for (const target of targets().filter(({ path }) => !path.startsWith('/debug'))) {
    const reply = await call(open.port, target.url, { method: target.method })
    assert.equal(reply.headers.server, undefined)
    assert.equal(reply.headers['x-powered-by'], undefined)
  }
  const bad = await callRaw(open.port, 'nonsense\r\n\r\n')
  assert.doesNotMatch(bad.body.toString(), /node|v\d+\.\d+|\.ts|\.cjs|HPE_/i)
})
