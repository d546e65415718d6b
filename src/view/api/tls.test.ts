import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { copyFileSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { Agent } from 'node:https'
import { after, before, type TestContext, test } from 'node:test'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { ask, open, operations, raw, readAll, serve, settings } from '../../../test/helpers/api-server.ts'
import { type Certificates, makeCertificates } from '../../../test/helpers/certificates.ts'
import { until } from '../../../test/helpers/program.ts'
import { createLogger } from '../../foundation/lib/logger.ts'
import { peerUser } from '../../kernel/peer-user.ts'
import { type ApiSettings, startApi } from './server.ts'

let certificates: Certificates
before(() => {
  certificates = makeCertificates()
})
after(() => certificates.remove())

const files = (cert: string, key: string, ca = ''): ApiSettings['tls'] => ({
  enabled: true,
  cert_file: certificates.file(cert),
  key_file: certificates.file(key),
  client_ca_file: ca === '' ? '' : certificates.file(ca),
})
const good = () => files('server.pem', 'server.key')
const mutual = () => files('server.pem', 'server.key', 'ca.pem')
const trust = () => ({ ca: certificates.text('ca.pem') })
const as = (name: string) => ({
  ...trust(),
  cert: certificates.text(`${name}.pem`),
  key: certificates.text(`${name}.key`),
})

function handshake(port: number, options: ConnectionOptions = {}): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', ...trust(), ...options }, () => resolve(socket))
    socket.once('error', reject)
  })
}

async function serial(port: number): Promise<string> {
  const socket = await handshake(port)
  const { raw: der } = socket.getPeerCertificate()
  socket.destroy()
  return new X509Certificate(der).serialNumber
}

test('the API over TLS 1.2 and 1.3, and with nothing older', async t => {
  const { api } = await serve(t, { tls: good() })
  assert.match(api.url('/healthz'), /^https:\/\/127\.0\.0\.1:\d+\/healthz$/)
  const { status, text } = await ask(api.port, '/status', { tls: trust() })
  assert.deepEqual([status, JSON.parse(text)], [200, { status: 'ok' }])
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const socket = await handshake(api.port, { minVersion: version, maxVersion: version })
    assert.equal(socket.getProtocol(), version)
    socket.destroy()
  }
  const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT:@SECLEVEL=0' } as const
  await assert.rejects(handshake(api.port, old), /alert|protocol/i)
})

test('what is no HTTP gets the error object over TLS too', async t => {
  const { api } = await serve(t, { tls: good() })
  const socket = await handshake(api.port)
  socket.write('nonsense\r\n\r\n')
  const text = await readAll(socket)
  assert.match(text, /^HTTP\/1.1 400 Bad Request\r\n/)
  assert.match(text, /"error":"invalid_request"/)
})

test('a page that came without TLS is of another origin than the API with it', async t => {
  const { api } = await serve(t, { tls: good() })
  const of = async (scheme: string) => {
    const host = `localhost:${api.port}`
    const headers = { host, origin: `${scheme}://${host}` }
    return (await ask(api.port, '/admin/act', { method: 'POST', headers, tls: trust() })).status
  }
  assert.deepEqual([await of('https'), await of('http')], [200, 403])
})

test('handshakes that fail are counted, tell nothing, and stop nothing', async t => {
  const { api, log } = await serve(t, { tls: good() }, { limits: { headersMs: 2000 } })
  assert.doesNotMatch(await raw(api.port, 'GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n'), /HTTP\/1/)
  await raw(api.port, 'x'.repeat(10_000))
  await assert.rejects(handshake(api.port, { ca: certificates.text('stranger.pem') }))
  // One that says nothing is ended after the time for headers.
  assert.equal(await readAll(await open(api.port)), '')
  await until('all four are counted', 20_000, () => api.stats().failed_handshakes === 4)
  await until('nothing is left of them', 20_000, () => api.stats().connections === 0)
  assert.equal((await ask(api.port, '/healthz', { tls: trust() })).status, 200)
  for (const line of log) {
    assert.match(line, /"level":"debug"/)
    assert.doesNotMatch(line, /\.c:|openssl/)
  }
})

test('with authorities for clients, whoever has no certificate of theirs gets nothing, the probes included', async t => {
  const { api } = await serve(t, { tls: mutual(), listen: ':0' })
  assert.equal(api.exposed, false)
  assert.equal((await ask(api.port, '/status', { tls: as('client') })).status, 200)
  for (const tls of [trust(), as('other')])
    for (const path of ['/status', '/healthz']) await assert.rejects(ask(api.port, path, { tls }))
  for (const name of ['old', 'other'] as const) {
    const socket = await handshake(api.port, { ...as(name), maxVersion: 'TLSv1.2' }).catch(() => undefined)
    assert.equal(socket, undefined)
  }
  assert.ok(api.stats().failed_handshakes > 0)
})

test('authorities for clients come and go, and who was let in before has to show anew', async t => {
  const { api } = await serve(t, { tls: good(), listen: ':0' })
  assert.equal(api.exposed, true)
  const kept = new Agent({ keepAlive: true, maxSockets: 1 })
  t.after(() => kept.destroy())
  const of = (tls: ReturnType<typeof trust>) =>
    ask(api.port, '/status', { tls, agent: kept }).then(
      ({ status }) => status,
      () => 0,
    )
  const follow = (tls: ApiSettings['tls']) => api.prepare({ ...settings, tls }).commit()
  assert.equal(await of(trust()), 200)
  follow(mutual())
  assert.equal(api.exposed, false)
  assert.equal(await of(trust()), 0)
  assert.equal(await of(as('client')), 200)
  assert.equal(await of(as('other')), 0)
  follow(files('server.pem', 'server.key', 'stranger.pem'))
  assert.equal(await of(as('client')), 0)
  assert.equal(await of(as('other')), 200)
  follow(good())
  assert.equal(await of(trust()), 200)
})

test('an answer under way when clients have to show anew is finished, and is the last one', async t => {
  const { api, waiting } = await serve(t, { tls: good(), debug: true })
  const answering = ask(api.port, '/debug/take', { tls: trust(), headers: { connection: 'keep-alive' } })
  await waiting.come(1)
  api.prepare({ ...settings, debug: true, tls: mutual() }).commit()
  waiting.release()
  const { status, headers } = await answering
  assert.deepEqual([status, headers.connection], [200, 'close'])
})

test('files that cannot serve are refused with their key and the hint, and the old ones go on', async t => {
  const { api } = await serve(t, { tls: good() })
  const directory = certificates.file('odd')
  mkdirSync(directory)
  const odd = (name: string, text: string) => {
    writeFileSync(`${directory}/${name}`, text)
    return `odd/${name}`
  }
  const log = createLogger({ level: 'error', format: 'json', write: () => undefined })
  const check = async (tls: ApiSettings['tls'], want: RegExp) => {
    assert.throws(() => api.prepare({ ...settings, tls }), want)
    await assert.rejects(
      startApi({ settings: { ...settings, tls }, operations: operations(), log, peerUser }),
      want,
    )
  }
  const { text } = certificates
  await check(
    files('old.pem', 'old.key'),
    /tls\.cert_file \(.*old\.pem\): the certificate expired on .*; replace/,
  )
  await check(
    files('server.pem', 'client.key'),
    /tls\.key_file \(.*client\.key\): it does not match the certificate in/,
  )
  await check(files('none.pem', 'server.key'), /tls\.cert_file \(.*none\.pem\): there is no such file/)
  await check(files('server.pem', 'odd'), /tls\.key_file \(.*odd\): it is not a regular file/)
  await check(files('server.key', 'server.key'), /tls\.cert_file .*no PEM certificate/)
  await check(files('server.pem', 'server.pem'), /tls\.key_file .*no readable PEM private key/)
  await check(files('server.pem', 'server.key', 'server.key'), /tls\.client_ca_file .*no PEM certificate/)
  await check({ ...good(), key_file: '' }, /tls\.key_file is empty; name a PEM file/)
  await check(files(odd('long', 'x'.repeat(1 << 21)), 'server.key'), /larger than 1 MiB/)
  const broken = text('server.pem').replace(/\nMII./, '\nMIIX')
  await check(files(odd('broken', broken), 'server.key'), /certificate 1 of 1 cannot be read/)
  const locked = text('server.key').replaceAll('PRIVATE', 'ENCRYPTED PRIVATE')
  await check(files('server.pem', odd('locked', locked)), /protected by a passphrase/)
  assert.equal((await ask(api.port, '/healthz', { tls: trust() })).status, 200)
})

/** Asks again and again on kept and new connections until it is stopped; resolves with how many were answered. */
function load(t: TestContext, port: number): { stop(): Promise<number> } {
  const kept = new Agent({ keepAlive: true, maxSockets: 4 })
  t.after(() => kept.destroy())
  let going = true
  let answered = 0
  const worker = async (agent: Agent | undefined) => {
    while (going) {
      const { status } = await ask(port, '/status', { tls: trust(), ...(agent ? { agent } : {}) })
      assert.equal(status, 200)
      answered++
    }
  }
  const all = Promise.all([kept, kept, kept, kept, undefined, undefined].map(worker))
  return {
    async stop() {
      going = false
      await all
      return answered
    },
  }
}

test('certificates are renewed under load without a failed request', async t => {
  const other = makeCertificates()
  t.after(() => other.remove())
  const here = (name: string) => certificates.file(`live.${name}`)
  const put = (of: Certificates, from: string) => {
    for (const kind of ['pem', 'key']) {
      copyFileSync(of.file(`${from}.${kind}`), here(`${kind}.new`))
      renameSync(here(`${kind}.new`), here(kind))
    }
  }
  put(certificates, 'server')
  const live = { enabled: true, cert_file: here('pem'), key_file: here('key'), client_ca_file: '' }
  const { api } = await serve(t, { tls: live })
  const first = await serial(api.port)
  const running = load(t, api.port)
  let now = first
  for (let i = 1; i <= 20; i++) {
    put(certificates, i % 2 === 1 ? 'client' : 'server')
    api.prepare({ ...settings, tls: live }).commit()
    const next = await serial(api.port)
    assert.notEqual(next, now)
    now = next
  }
  assert.equal(now, first)
  assert.ok((await running.stop()) > 20)
})

test('TLS is neither begun nor given up by other settings', async t => {
  const secure = await serve(t, { tls: good() })
  secure.api.prepare(settings).commit()
  assert.equal((await ask(secure.api.port, '/healthz', { tls: trust() })).status, 200)
  const plain = await serve(t)
  plain.api.prepare({ ...settings, tls: { ...good(), cert_file: 'none' } }).commit()
  assert.equal((await ask(plain.api.port, '/healthz')).status, 200)
})
