import assert from 'node:assert/strict'
import type { LookupAddress } from 'node:dns'
import { once } from 'node:events'
import { renameSync } from 'node:fs'
import { type AddressInfo, createServer, type LookupFunction, type Server, type Socket } from 'node:net'
import { after, type TestContext, test } from 'node:test'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { makeCertificates } from '../../../test/helpers/certificates.ts'
import { startConnectProxy } from '../../../test/helpers/connect-proxy.ts'
import { ConnectError, Dialer, type DialerOptions, type TlsOptions } from './dialer.ts'
import type { ProxyTarget } from './proxy.ts'

const made = makeCertificates()
after(() => made.remove())

const noTls: TlsOptions = { caFile: '', certFile: '', keyFile: '', serverName: '', insecureSkipVerify: false }
const trusting: TlsOptions = { ...noTls, caFile: made.file('ca.pem') }

/** Listens on an address of loopback, and greets with the address that the client came to. */
async function listen(t: TestContext, host = '127.0.0.1', port = 0, server: Server = createServer()) {
  const sockets = new Set<Socket>()
  const keep = (socket: Socket): void => {
    sockets.add(socket)
    socket.on('error', () => {}) // the client leaves
  }
  server.on('connection', keep)
  server.on('secureConnection', keep)
  server.on('tlsClientError', () => {}) // refused on purpose
  server.on(server.listeners('secureConnection').length > 1 ? 'secureConnection' : 'connection', socket =>
    socket.write(`hello from ${socket.localAddress}`),
  )
  server.listen(port, host)
  await once(server, 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

function dialer(
  t: TestContext,
  port: number,
  options: Partial<DialerOptions> = {},
  protocols = ['h2'],
): Dialer {
  const found = new Dialer(
    { host: '127.0.0.1', port, tls: undefined, connectTimeoutMs: 5000, ...options },
    protocols,
  )
  t.after(() => found.close())
  return found
}

async function greeting(socket: Socket): Promise<string> {
  const [chunk] = await once(socket, 'data')
  socket.destroy()
  return String(chunk).replace(/^hello from /, '')
}

async function failure(dialed: Promise<unknown>): Promise<ConnectError> {
  const error = await dialed.then(
    () => assert.fail('there is a connection'),
    error => error,
  )
  assert.ok(error instanceof ConnectError, String(error))
  return error
}

function names(addresses: () => readonly string[]): LookupFunction {
  return (_host, options, callback) => {
    const found: LookupAddress[] = addresses().map(address => ({ address, family: 4 }))
    assert.equal(options.all, true)
    callback(null, found)
  }
}

test('each connection begins with the next address of the name, which is resolved every time', async t => {
  const port = await listen(t)
  for (const host of ['127.0.0.2', '127.0.0.3']) await listen(t, host, port)
  let addresses = ['127.0.0.1', '127.0.0.2', '127.0.0.3']
  let asked = 0
  const lookup = names(() => {
    asked++
    return addresses
  })
  const dial = dialer(t, port, { host: 'collector', lookup })
  const seen: string[] = []
  for (let i = 0; i < 6; i++) seen.push(await greeting(await dial.dial()))
  assert.deepEqual(seen.slice(0, 3), seen.slice(3))
  assert.deepEqual(new Set(seen), new Set(addresses))
  addresses = ['127.0.0.2']
  assert.equal(await greeting(await dial.dial()), '127.0.0.2')
  assert.equal(asked, 7)
})

test('an address where nobody listens costs a try of the next', async t => {
  // Addresses that no other test uses: the port is free at the others too.
  const port = await listen(t, '127.9.7.3')
  const lookup = names(() => ['127.9.7.1', '127.9.7.2', '127.9.7.3'])
  const dial = dialer(t, port, { host: 'collector', lookup })
  for (let i = 0; i < 3; i++) assert.equal(await greeting(await dial.dial()), '127.9.7.3')
  const nobody = dialer(t, port, { host: 'collector', lookup: names(() => ['127.9.7.1', '127.9.7.2']) })
  const error = await failure(nobody.dial())
  assert.equal(error.type, 'connect')
  assert.match(error.message, /127\.9\.7\.1:.*127\.9\.7\.2:|127\.9\.7\.2:.*127\.9\.7\.1:/)
})

test('a name without an address, and a server that never shakes hands, are told', async t => {
  // A name that the system refuses without a look into the network.
  const none = await failure(dialer(t, 1, { host: 'no..such' }).dial())
  assert.deepEqual([none.type, none.message], ['dns', 'the name no..such does not resolve (ENOTFOUND)'])
  const sockets: Socket[] = []
  const silent = createServer(socket => sockets.push(socket.resume()))
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    silent.close()
  })
  const { port } = silent.address() as AddressInfo
  const late = await failure(dialer(t, port, { tls: trusting, connectTimeoutMs: 100 }).dial())
  assert.match(late.message, /no connection within 100 ms/)
})

function tlsServer(name: string, options: object = {}): Server {
  return createTlsServer(
    { cert: made.text(`${name}.pem`), key: made.text(`${name}.key`), ...options },
    () => {},
  )
}

test('TLS: each fault of a certificate is refused with its cause', async t => {
  const good = await listen(t, '127.0.0.1', 0, tlsServer('server'))
  const old = await listen(t, '127.0.0.1', 0, tlsServer('old'))
  const strange = await listen(t, '127.0.0.1', 0, tlsServer('other'))
  const plain = await listen(t)
  assert.equal(await greeting(await dialer(t, good, { tls: trusting }).dial()), '127.0.0.1')
  const anyone = { ...noTls, insecureSkipVerify: true }
  assert.equal(await greeting(await dialer(t, old, { tls: anyone }).dial()), '127.0.0.1')
  const check = async (port: number, tls: TlsOptions, want: RegExp) => {
    const error = await failure(dialer(t, port, { tls }).dial())
    assert.equal(error.type, 'tls')
    assert.match(error.message, want)
    assert.doesNotMatch(error.message, /\n|rec_layer|Node\.js/)
  }
  await check(old, trusting, /expired/)
  await check(strange, trusting, /unable to verify|self.signed/)
  await check(good, noTls, /unable to verify|self.signed/)
  await check(good, { ...trusting, serverName: 'elsewhere' }, /does not match certificate's altnames/)
  await check(good, { ...trusting, serverName: '127.0.0.2' }, /does not match|not in the cert/)
  await check(plain, trusting, /wrong version number|packet length too long|record layer/)
  await check(good, { ...trusting, caFile: made.file('none.pem') }, /cannot read ca_file .*none\.pem/)
  await check(good, noTls, /; check that ca_file contains its CA$/)
  await check(
    good,
    { ...trusting, caFile: made.file('san') },
    /cannot use ca_file .*contains no PEM certificate/,
  )
  const pair = (cert: string, key: string) => ({ certFile: made.file(cert), keyFile: made.file(key) })
  for (const halves of [pair('client.pem', 'other.key'), pair('client.key', 'client.pem')])
    await check(good, { ...trusting, ...halves }, /^cannot use cert_file with key_file: [a-z ]+ \(ERR_OSSL_/)
})

test('TLS: certificates are read anew at every connect, so that they rotate under load', async t => {
  const names: string[] = []
  const server = tlsServer('server', { ca: made.text('ca.pem'), requestCert: true })
  server.on('secureConnection', (socket: TLSSocket) =>
    names.push(String(socket.getPeerCertificate().subject?.CN)),
  )
  const port = await listen(t, '127.0.0.1', 0, server)
  const dial = dialer(t, port, {
    tls: { ...trusting, certFile: made.file('client.pem'), keyFile: made.file('client.key') },
  })
  const round = async () => {
    for (const socket of await Promise.all(Array.from({ length: 8 }, () => dial.dial())))
      await greeting(socket)
  }
  await round()
  const swap = (from: string, to: string) => {
    for (const end of ['pem', 'key']) renameSync(made.file(`${from}.${end}`), made.file(`${to}.${end}`))
  }
  swap('client', 'client-before')
  const missing = await failure(dial.dial())
  assert.match(missing.message, /cannot read cert_file|cannot read key_file/)
  swap('other', 'client')
  await failure(dial.dial()).catch(() => {}) // of a stranger: the server may only tell later
  swap('client', 'other')
  swap('client-before', 'client')
  await round()
  assert.equal(names.filter(name => name === 'client').length, 16)
})

function through(port: number, options: Partial<ProxyTarget> = {}): Partial<DialerOptions> {
  const target: ProxyTarget = {
    host: '127.0.0.1',
    port,
    secure: false,
    authorization: 'Basic c2VjcmV0',
    variable: 'HTTPS_PROXY',
    ...options,
  }
  return { proxy: () => target }
}

test('a proxy is asked for a tunnel, which then carries the connection, TLS inside', async t => {
  const proxy = await startConnectProxy()
  t.after(() => proxy.close())
  const plain = await listen(t)
  const safe = await listen(t, '127.0.0.1', 0, tlsServer('server'))
  assert.equal(await greeting(await dialer(t, plain, through(proxy.port)).dial()), '127.0.0.1')
  const secured = dialer(t, safe, {
    ...through(proxy.port, { authorization: '' }),
    host: 'localhost',
    tls: trusting,
  })
  assert.equal(await greeting(await secured.dial()), '127.0.0.1')
  assert.deepEqual(proxy.targets, [`127.0.0.1:${plain}`, `localhost:${safe}`])
  assert.deepEqual(proxy.authorizations, ['Basic c2VjcmV0', ''])
})

test('a proxy behind TLS of its own is checked like any server', async t => {
  const proxy = await startConnectProxy({ cert: made.text('server.pem'), key: made.text('server.key') })
  t.after(() => proxy.close())
  const port = await listen(t)
  const error = await failure(dialer(t, port, through(proxy.port, { secure: true })).dial())
  assert.equal(error.type, 'tls')
  assert.match(error.message, /through the proxy 127\.0\.0\.1:\d+: .*(unable to verify|self.signed)/)
})

test('a proxy that opens no tunnel is told by its fault, without credentials', async t => {
  const proxy = await startConnectProxy()
  t.after(() => proxy.close())
  const port = await listen(t)
  const check = async (answer: typeof proxy.answer, want: RegExp, options: Partial<ProxyTarget> = {}) => {
    proxy.answer = answer
    const connectTimeoutMs = answer === 'stall' ? 300 : 20_000
    const dial = dialer(t, port, { ...through(proxy.port, options), connectTimeoutMs })
    const error = await failure(dial.dial())
    assert.equal(error.type, 'connect')
    assert.match(error.message, want)
    assert.match(error.message, /^through the proxy 127\.0\.0\.1:\d+: /)
    assert.doesNotMatch(error.message, /c2VjcmV0/)
  }
  await check({ status: 407 }, /rejects user and password \(407\): correct them in HTTPS_PROXY/)
  await check({ status: 407 }, /requires a user and a password \(407\): add them to HTTPS_PROXY/, {
    authorization: '',
  })
  await check({ status: 403 }, /does not open a tunnel to 127\.0\.0\.1:\d+ \(HTTP 403\)/)
  await check({ raw: 'SSH-2.0-OpenSSH\r\n\r\n' }, /its answer is not HTTP/)
  await check({ raw: 'x'.repeat(20_000) }, /its answer is not HTTP/)
  await check({ raw: 'HTTP/1.1 200' }, /closed the connection without an answer/)
  await check('cut', /closed the connection without an answer|ECONNRESET/)
  await check('stall', /no connection within 300 ms/)
  await check('open', /ECONNREFUSED/, { port: 1 })
})

test('what the server says at once, in one piece with the answer of the proxy, is not lost', async t => {
  const greeter = createServer(socket => {
    socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\n\r\nhello from the other side'))
    socket.on('error', () => {}) // the client leaves
  })
  greeter.listen(0, '127.0.0.1')
  await once(greeter, 'listening')
  t.after(() => greeter.close())
  const { port } = greeter.address() as AddressInfo
  assert.equal(await greeting(await dialer(t, 1, through(port)).dial()), 'the other side')
})

test('closing ends the attempts that run and refuses others', async t => {
  const proxy = await startConnectProxy()
  t.after(() => proxy.close())
  proxy.answer = 'stall'
  const dial = dialer(t, 1, through(proxy.port))
  const running = failure(dial.dial())
  while (proxy.targets.length === 0) await new Promise(resolve => setTimeout(resolve, 2))
  dial.close()
  assert.match((await running).message, /client is closed/)
  assert.match((await failure(dial.dial())).message, /client is closed/)
})
