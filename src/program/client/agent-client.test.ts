import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { chmodSync, chownSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { makeCertificates } from '../../../test/helpers/certificates.ts'
import { type Config, defaults } from '../../config/index.ts'
import { type FoundAgent, findAgent, strangerAt, strangerAtSocket } from './agent-client.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-client-'))
const certificates = makeCertificates()
after(() => {
  rmSync(directory, { recursive: true })
  certificates.remove()
})

type Settings = Config['self_telemetry']

function settings(more: Partial<Settings>): Settings {
  const own = defaults().self_telemetry
  return { ...own, admin_socket: join(directory, 'none.sock'), listen: '127.0.0.1:1', ...more }
}

async function listen(t: TestContext, server: Server | TcpServer, at: string | number = 0): Promise<number> {
  await new Promise<void>(resolve =>
    typeof at === 'string' ? server.listen(at, resolve) : server.listen(at, '127.0.0.1', resolve),
  )
  t.after(() => {
    server.close()
    if ('closeAllConnections' in server) server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

/** A server that remembers what it was asked. */
function recorder(respond: RequestListener = (_request, response) => response.end('fine')) {
  const asked: IncomingMessage[] = []
  const listener: RequestListener = (request, response) => {
    asked.push(request)
    respond(request, response)
  }
  return { asked, listener, tokens: () => asked.map(({ headers }) => headers.authorization) }
}

const bounds = { timeoutMs: 10_000, mostBytes: 100 }

function whys({ client, tried }: FoundAgent): string {
  assert.equal(client, undefined)
  return tried.map(({ why }) => why).join('\n')
}

test('the admin socket comes first and gets no token', async t => {
  const { asked, listener, tokens } = recorder()
  const socket = join(directory, 'svc.sock')
  await listen(t, createServer(listener), socket)
  const { client, tried } = await findAgent({
    settings: settings({ admin_socket: socket }),
    env: { SVC_TOKEN: 'from-variable' },
  })
  assert.deepEqual([client!.address, client!.port, tried], [`unix:${socket}`, 1, []])
  const answer = await client!.get('/status', bounds)
  assert.deepEqual([answer.status, answer.body.toString(), answer.cut], [200, 'fine', false])
  assert.deepEqual(
    asked.map(({ url, headers }) => [url, headers.host]),
    [
      ['/healthz', 'localhost'],
      ['/status', 'localhost'],
    ],
  )
  assert.deepEqual(tokens(), [undefined, undefined])
})

test('without a socket it is the address of the configuration, with its token or that of SVC_TOKEN', async t => {
  const { listener, tokens } = recorder()
  const port = await listen(t, createServer(listener))
  const auth = { ...defaults().self_telemetry.auth, enabled: true, bearer_tokens: ['second'] }
  const find = (listenAt: string, env: Record<string, string> = {}) =>
    findAgent({ settings: settings({ listen: listenAt, auth }), env })
  const { client, tried } = await find(`:${port}`)
  assert.deepEqual([client!.address, client!.port], [`http://127.0.0.1:${port}`, port])
  assert.match(tried[0]!.why, /^no such socket/)
  await find(`0.0.0.0:${port}`, { SVC_TOKEN: 'from-variable' })
  await find(`127.0.0.1:${port}`, { SVC_TOKEN: '' })
  assert.deepEqual(tokens(), ['Bearer second', 'Bearer from-variable', 'Bearer second'])
})

test('the configured token goes to no process of another user, that of SVC_TOKEN does', {
  skip: process.getuid?.() !== 0 && 'needs root',
}, async t => {
  const script = `const asked = []
    const server = require('node:http').createServer(({ headers }, response) => {
      asked.push(headers.authorization ?? 'none')
      response.end(asked.join())
    })
    server.listen(0, '127.0.0.1', () => console.log(server.address().port))
    process.stdin.resume().on('end', () => process.exit())`
  const stranger = spawn(
    'setpriv',
    ['--reuid=65534', '--regid=65534', '--clear-groups', process.execPath, '-e', script],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  )
  const ended = new Promise(resolve => stranger.once('close', resolve))
  t.after(async () => {
    stranger.stdin.end()
    await ended
  })
  const port = String(await new Promise(resolve => stranger.stdout.once('data', resolve))).trim()
  const auth = { ...defaults().self_telemetry.auth, enabled: true, bearer_token: 'configured' }
  const own = settings({ listen: `127.0.0.1:${port}`, auth })
  assert.match(
    whys(await findAgent({ settings: own, env: {} })),
    new RegExp(`of user 65534 \\(pid ${stranger.pid}\\) is listening there; no token was sent`),
  )
  const open = await findAgent({ settings: settings({ listen: `127.0.0.1:${port}` }), env: {} })
  const given = await findAgent({ settings: own, env: { SVC_TOKEN: 'given' } })
  assert.ok(open.client && given.client)
  const seen = (await given.client.get('/', bounds)).body.toString()
  assert.equal(seen, 'none,Bearer given,Bearer given')
})

test('a socket of another user gets no token while a program of root holds it too', {
  skip: process.getuid?.() !== 0 && 'needs root',
}, async t => {
  // As a user does with a program that is setuid: it holds what it was started with.
  process.seteuid!(65534)
  const server = createTcpServer()
  const port = await listen(t, server).finally(() => process.seteuid!(0))
  const auth = { ...defaults().self_telemetry.auth, enabled: true, bearer_token: 'configured' }
  const found = await findAgent({ settings: settings({ listen: `127.0.0.1:${port}`, auth }), env: {} })
  assert.match(whys(found), /of user 65534 \(pid \d+\) is listening there; no token was sent/)
  // At another address it is in nobody's way.
  assert.equal(strangerAt(port, '127.0.0.2'), '')
})

test("an admin socket is a stranger's where a stranger could have put it", {
  skip: process.getuid?.() !== 0 && 'needs root',
}, async t => {
  const path = join(directory, 'stranger.sock')
  await listen(t, createTcpServer(), path)
  assert.equal(strangerAtSocket(path), '')
  chownSync(path, 65534, 65534)
  assert.equal(strangerAtSocket(path), 'a process of user 65534')
  assert.equal(strangerAtSocket(join(directory, 'none.sock')), '')
  // As /run/svc is given to the user of svc.
  const given = mkdtempSync('/run/svc-client-')
  t.after(() => rmSync(given, { recursive: true }))
  const inGiven = join(given, 'svc.sock')
  await listen(t, createTcpServer(), inGiven)
  for (const each of [given, inGiven]) chownSync(each, 65534, 65534)
  assert.equal(strangerAtSocket(inGiven), '')
  chmodSync(given, 0o777)
  assert.equal(strangerAtSocket(inGiven), 'a process of user 65534')
})

test('a URL that is given is the only way, and is sent no token of the configuration', async t => {
  const { asked, listener, tokens } = recorder()
  const port = await listen(t, createServer(listener))
  const auth = { ...defaults().self_telemetry.auth, enabled: true, bearer_token: 'configured' }
  const url = `http://127.0.0.1:${port}/behind/proxy/`
  const { client, tried } = await findAgent({ settings: settings({ auth }), url, env: {} })
  assert.deepEqual([client!.port, tried], [undefined, []])
  await findAgent({ settings: settings({ auth }), env: { SVC_URL: url, SVC_TOKEN: 'given' } })
  assert.deepEqual(tokens(), [undefined, 'Bearer given'])
  assert.equal(asked[0]!.url, '/behind/proxy/healthz')
  for (const wrong of ['127.0.0.1:1', 'ftp://host', 'http://', 'http://user:hunter2@127.0.0.1:1'])
    await assert.rejects(
      findAgent({ settings: settings({}), url: wrong, env: {} }),
      (error: Error & { exitCode?: number }) =>
        error.exitCode === 2 &&
        error.message.startsWith('cannot use the URL of the agent: ') &&
        !error.message.includes('hunter2'),
    )
})

test('over TLS the very certificate of the configuration is trusted, and no other gets the token', async t => {
  const serve = async (name: string) => {
    const { listener, tokens } = recorder()
    const tls = { cert: certificates.text(`${name}.pem`), key: certificates.text(`${name}.key`) }
    return { port: await listen(t, createTlsServer(tls, listener)), tokens }
  }
  const [own, old, foreign] = await Promise.all([serve('server'), serve('old'), serve('other')])
  const find = (port: number, name: string) => {
    const tls = { ...defaults().self_telemetry.tls, enabled: true, cert_file: certificates.file(name) }
    const auth = { ...defaults().self_telemetry.auth, enabled: true, bearer_token: 'configured' }
    return findAgent({ settings: settings({ listen: `127.0.0.1:${port}`, auth, tls }), env: {} })
  }
  assert.equal((await find(own.port, 'server.pem')).client?.address, `https://127.0.0.1:${own.port}`)
  assert.ok((await find(old.port, 'old.pem')).client, 'expired, but its own')
  for (const [port, name] of [
    [foreign.port, 'server.pem'],
    [own.port, 'other.pem'],
    [own.port, 'nowhere.pem'],
  ] as const)
    assert.match(whys(await find(port, name)), /its certificate is neither trusted .*; no token was sent$/)
  assert.deepEqual(
    [own.tokens(), old.tokens(), foreign.tokens()],
    [['Bearer configured'], ['Bearer configured'], []],
  )
})

test('a server that wants the client’s certificate is told apart', async t => {
  const server = createTlsServer(
    {
      cert: certificates.text('server.pem'),
      key: certificates.text('server.key'),
      ca: certificates.text('ca.pem'),
      requestCert: true,
    },
    recorder().listener,
  )
  const port = await listen(t, server)
  const tls = {
    enabled: true,
    cert_file: certificates.file('server.pem'),
    key_file: '',
    client_ca_file: certificates.file('ca.pem'),
  }
  const found = await findAgent({ settings: settings({ listen: `127.0.0.1:${port}`, tls }), env: {} })
  assert.match(whys(found), /clients need a certificate: self_telemetry\.tls\.client_ca_file/)
})

test('what answers late, endlessly or in another language is bounded and told', async t => {
  const { listener } = recorder((request, response) => {
    if (request.url === '/healthz') response.end()
    else if (request.url === '/endless') {
      const more = () => {
        while (!response.destroyed && response.write('x'.repeat(1000)));
      }
      response.on('drain', more)
      more()
    } else if (request.url === '/broken') {
      response.write('a', () => response.destroy())
    }
    // Everything else is left open.
  })
  const port = await listen(t, createServer(listener))
  const { client } = await findAgent({ settings: settings({ listen: `127.0.0.1:${port}` }), env: {} })
  const { body, cut } = await client!.get('/endless', bounds)
  assert.deepEqual([body.toString(), cut], ['x'.repeat(100), true])
  await assert.rejects(
    client!.get('/never', { timeoutMs: 50, mostBytes: 10 }),
    /^Error: no answer within 0\.05 s$/,
  )
  await assert.rejects(client!.get('/broken', bounds), /aborted|hang up/)

  const silent = await listen(
    t,
    createTcpServer(() => undefined),
  )
  const noHttp = await listen(
    t,
    createTcpServer(socket => socket.end('SSH-2.0-x\r\n')),
  )
  const find = (at: string, timeoutMs?: number) =>
    findAgent({ settings: settings({ listen: at }), env: {}, ...(timeoutMs && { timeoutMs }) })
  assert.match(whys(await find(`127.0.0.1:${silent}`, 50)), /no answer within 0\.05 s/)
  assert.match(whys(await find(`127.0.0.1:${noHttp}`)), /the answer is not HTTP/)
  assert.match(whys(await find('127.0.0.1:1')), /nothing is listening there/)
  assert.match(whys(await find(':0')), /has no fixed port: pass the URL with --url/)
  const off = await findAgent({ settings: settings({ enabled: false }), env: {} })
  assert.match(whys(off), /self_telemetry\.enabled is false/)
})

test('an answer that goes on comes line by line until the agent ends it or nobody wants more', async t => {
  let written = 0
  const { listener } = recorder((request, response) => {
    if (request.url === '/three') response.write('a\nb', () => response.end('c\n\nrest'))
    else if (request.url === '/gone') response.write('a\nb\nhalf', () => response.destroy())
    else if (request.url === '/refused') response.writeHead(403).end('{"message":"no"}')
    else if (request.url === '/long') {
      response.write(Buffer.alloc(9 << 20, 'x'))
      response.end('\nshort\n')
    } else if (request.url === '/endless') {
      const more = () => {
        while (!response.destroyed) {
          written++
          if (!response.write(`${'x'.repeat(999)}\n`)) break
        }
      }
      response.on('drain', more)
      more()
    } else response.end()
  })
  const port = await listen(t, createServer(listener))
  const { client } = await findAgent({ settings: settings({ listen: `127.0.0.1:${port}` }), env: {} })
  const follow = async (path: string) => {
    const lines: string[] = []
    const over = new AbortController()
    const { status, body } = await client!.follow(path, line => void lines.push(line), over.signal)
    return { lines, status, body: body.toString() }
  }
  assert.deepEqual(await follow('/three'), { lines: ['a', 'bc'], status: 200, body: '' })
  assert.deepEqual(await follow('/gone'), { lines: ['a', 'b'], status: 200, body: '' })
  assert.deepEqual(await follow('/refused'), { lines: [], status: 403, body: '{"message":"no"}' })
  assert.deepEqual((await follow('/long')).lines, ['short'])

  // A reader that takes its time keeps the agent from sending.
  const over = new AbortController()
  let read = 0
  let proceed: () => void = () => undefined
  const pause = new Promise<void>(resolve => {
    proceed = resolve
  })
  const followed = client!.follow(
    '/endless',
    async () => {
      read++
      if (read === 10) await pause
      if (read === 20) over.abort()
    },
    over.signal,
  )
  let before = -1
  while (written !== before || read < 10) {
    before = written
    await new Promise(resolve => setTimeout(resolve, 200))
  }
  assert.equal(read, 10)
  proceed()
  assert.equal((await followed).status, 200)
  assert.equal(read, 20)
  await assert.rejects(
    client!.follow('/endless', () => Promise.reject(new Error('enough')), new AbortController().signal),
    /^Error: enough$/,
  )
})
