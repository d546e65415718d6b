import assert from 'node:assert/strict'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { makeCertificates } from '../../../../test/helpers/certificates.ts'
import { silentLogger } from '../../../../test/helpers/silent-logger.ts'
import type { ApiRequest } from '../../../view/api/operation.ts'
import { admission } from './admission.ts'
import { isBcrypt } from './basic-auth.ts'
import { namesOf, WebConfig } from './web-config.ts'

const certificates = makeCertificates()
after(() => certificates.remove())

// htpasswd -nbBC 4: the smallest cost, for time.
const alice = '$2y$04$ST4c2MHtG0bUZkvZWuhZgOTZl2I/BY2SM90DXs0P8dnN4im7Nubxy'

class File {
  readonly path: string
  readonly config: WebConfig

  constructor(t: TestContext, text: string) {
    const directory = mkdtempSync(join(tmpdir(), 'svc-web-'))
    t.after(() => rmSync(directory, { recursive: true }))
    this.path = join(directory, 'web.yml')
    this.write(text)
    this.config = new WebConfig(this.path)
  }

  write(text: string): void {
    writeFileSync(`${this.path}.new`, text)
    renameSync(`${this.path}.new`, this.path)
  }
}

function tlsText(more = '', name = 'server'): string {
  return `tls_server_config:\n  cert_file: ${certificates.file(`${name}.pem`)}\n  key_file: ${certificates.file(`${name}.key`)}\n${more}`
}

test('an empty file asks for nothing', t => {
  const { tls, users, rate, headers } = new File(t, '').config.current()
  assert.deepEqual([tls, users.size, rate, headers], [undefined, 0, undefined, {}])
})

test('users, headers and a rate are what the file says', t => {
  const text = [
    'http_server_config:',
    '  http2: false',
    '  headers: {X-Frame-Options: deny, Strict-Transport-Security: max-age=1}',
    'basic_auth_users:',
    `  alice: ${alice}`,
    'rate_limit: {interval: 1s, burst: 3}',
  ].join('\n')
  const { headers, users, rate } = new File(t, text).config.current()
  assert.deepEqual(headers, { 'X-Frame-Options': 'deny', 'Strict-Transport-Security': 'max-age=1' })
  assert.deepEqual([...users], [['alice', alice]])
  assert.deepEqual(rate, { intervalMs: 1000, burst: 3 })
})

test('TLS has its versions, ciphers and curves by the names of the file', t => {
  const more = [
    '  min_version: TLS12',
    '  max_version: TLS13',
    '  cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,',
    '    TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA, TLS_RSA_WITH_AES_128_CBC_SHA, TLS_AES_128_GCM_SHA256]',
    '  curve_preferences: [CurveP256, X25519]',
  ].join('\n')
  const { tls } = new File(t, tlsText(more)).config.current()
  assert.equal(
    tls!.ciphers,
    'TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:' +
      'ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES256-SHA:AES128-SHA',
  )
  assert.deepEqual([tls!.ecdhCurve, tls!.minVersion], ['prime256v1:X25519', 'TLSv1.2'])
  assert.equal(tls!.clients, undefined)
  const inline = ['cert', 'key'].map(name => {
    const pem = certificates.text(`server.${name === 'cert' ? 'pem' : 'key'}`)
    return `  ${name}: |\n${pem.replace(/^(?=.)/gm, '    ')}`
  })
  assert.equal(
    new File(t, `tls_server_config:\n${inline.join('')}`).config.current().tls!.cert,
    certificates.text('server.pem'),
  )
})

test('what cannot serve is refused with its reason', t => {
  const check = (text: string, why: RegExp) => assert.throws(() => new File(t, text).config.current(), why)
  check(
    'tls_serve_config: {}',
    /web\.yml:1:1: tls_serve_config: unknown key; did you mean "tls_server_config"\?/,
  )
  check('a: [', /not valid YAML/)
  check('tls_server_config: {key_file: x}', /x\): there is no such file/)
  check('tls_server_config: {client_auth_type: RequestClientCert}', /missing one of cert or cert_file/)
  check(
    `tls_server_config: {cert_file: ${certificates.file('server.pem')}}`,
    /missing one of key or key_file/,
  )
  check(tlsText(`  client_ca_file: ${certificates.file('ca.pem')}\n`), /without a Client Auth Policy/)
  check(tlsText('  client_auth_type: Please\n'), /client_auth_type: expected one of/)
  check(
    tlsText('  client_auth_type: RequestClientCert\n  client_allowed_sans: [a]\n'),
    /client_allowed_sans requires client_auth_type/,
  )
  check(tlsText('  cipher_suites: [RC4]\n'), /unknown cipher: RC4/)
  check(tlsText('  min_version: SSL3\n'), /min_version/)
  check(tlsText().replace('server.key', 'client.key'), /rejected by OpenSSL: .*mismatch/)
  check('basic_auth_users: {alice: secret}', /basic_auth_users\.alice is not a bcrypt hash/)
  check('http_server_config: {headers: {Server: x}}', /"Server" cannot be set/)
  check('http_server_config: {headers: {X-Frame-Options: no}}', /expected one of deny, sameorigin/)
  assert.throws(() => new WebConfig('/nowhere/web.yml').current(), /web\.yml: there is no such file/)
  // A password in the wrong place is not repeated.
  assert.throws(
    () => new File(t, 'basic_auth_users: {alice: hunter2}').config.current(),
    (error: Error) => !error.message.includes('hunter2'),
  )
})

test('the file and those that it names are read again when they change, and nobody is served by bad ones', t => {
  const file = new File(t, tlsText())
  const { config } = file
  const first = config.current()
  assert.equal(config.current(), first)
  file.write(tlsText('', 'other'))
  assert.equal(config.current().tls!.cert, certificates.text('other.pem'))
  file.write('nonsense')
  assert.throws(() => config.current(), /expected keys/)
  assert.throws(() => config.current(), /expected keys/)
  file.write('')
  assert.equal(config.current().tls, undefined)
})

test('names of a certificate are read whatever they are', () => {
  const check = (text: string | undefined, want: readonly string[]) => assert.deepEqual(namesOf(text), want)
  check(undefined, [])
  check('DNS:a.example, DNS:b', ['a.example', 'b'])
  check('IP Address:10.0.0.1, IP Address:FE80:0:0:0:0:0:0:1', ['10.0.0.1', 'fe80::1'])
  check('URI:"spiffe://a, DNS:evil", email:a@b', ['spiffe://a, DNS:evil', 'a@b'])
  check('othername:<unsupported>, DNS:a', [])
})

function requestWith(authorization?: string): ApiRequest {
  return {
    method: 'GET',
    url: '/metrics',
    client: '127.0.0.1',
    isPublic: true,
    path: '/metrics',
    query: '',
    headers: authorization === undefined ? {} : { authorization },
    parameters: {},
    texts: {},
    signal: new AbortController().signal,
  }
}

function basic(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
}

test('users are admitted by their password, and nobody else', async t => {
  const file = new File(
    t,
    `basic_auth_users: {alice: ${alice}}\nhttp_server_config: {headers: {X-XSS-Protection: '0'}}`,
  )
  const admit = admission(file.config, undefined, silentLogger)
  const check = async (authorization: string | undefined, want: number | undefined) => {
    const { refusal, headers } = await admit(requestWith(authorization))
    assert.equal(refusal?.status, want, authorization)
    assert.deepEqual(headers, { 'X-XSS-Protection': '0' })
    if (want === 401) assert.equal(refusal!.headers['WWW-Authenticate'], 'Basic')
  }
  for (let round = 0; round < 2; round++) {
    await check(basic('alice', 'open:sesame'), undefined)
    await check(basic('alice', 'wrong'), 401)
    await check(basic('bob', 'open:sesame'), 401)
  }
  await check(undefined, 401)
  await check('Basic', 401)
  await check('Basic !!', 401)
  await check('Bearer x', 401)
  await check(`Basic ${Buffer.from('alice').toString('base64')}`, 401)
  file.write('')
  assert.equal((await admit(requestWith())).refusal, undefined)
  file.write('nonsense')
  assert.equal((await admit(requestWith())).refusal!.status, 500)
})

test('a hash is known by its form', () => {
  assert.ok(isBcrypt(alice))
  for (const none of ['', 'secret', alice.slice(1), `${alice}x`, alice.replace('$04', '$03'), '$1$abc$def'])
    assert.ok(!isBcrypt(none), none)
})

test('requests beyond the rate are refused until time has gone by', async t => {
  const admit = admission(new File(t, '').config, { intervalMs: 3_600_000, burst: 2 }, silentLogger)
  const statuses = []
  for (let i = 0; i < 3; i++) statuses.push((await admit(requestWith())).refusal?.status)
  assert.deepEqual(statuses, [undefined, undefined, 429])
  const quick = admission(new File(t, '').config, { intervalMs: 0.000_001, burst: 1 }, silentLogger)
  for (let i = 0; i < 3; i++) assert.equal((await quick(requestWith())).refusal, undefined)
  const never = admission(new File(t, '').config, { intervalMs: 1, burst: 0 }, silentLogger)
  assert.equal((await never(requestWith())).refusal!.status, 429)
})
