// The file of `--web.config.file`: TLS, users, headers and a rate limit, with the semantics of the Prometheus exporters
// (exporter-toolkit, docs/web-configuration.md).

import { statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { readContent } from '../../../foundation/lib/file-content.ts'
import { errorText } from '../../../foundation/lib/logger.ts'
import { list, map } from '../../../foundation/schema/collections.ts'
import { boolean, choice, count, duration, path, text } from '../../../foundation/schema/kinds.ts'
import { formatProblems, type Problem, reportInto } from '../../../foundation/schema/problem.ts'
import { branch, build, type Infer, key, readBranch, type Settings } from '../../../foundation/schema/tree.ts'
import { fileSource } from '../../../foundation/schema/value.ts'
import { parseYaml } from '../../../foundation/schema/yaml-place.ts'
import type { ClientCertificates, TlsMaterial } from '../../../view/api/tls-files.ts'
import { isBcrypt, type Users } from './basic-auth.ts'

/** Versions and curves by Go's names. */
const versions = { TLS10: 'TLSv1', TLS11: 'TLSv1.1', TLS12: 'TLSv1.2', TLS13: 'TLSv1.3' } as const
const curves = {
  CurveP256: 'prime256v1',
  CurveP384: 'secp384r1',
  CurveP521: 'secp521r1',
  X25519: 'X25519',
  X25519MLKEM768: 'X25519MLKEM768',
} as const
const names = <T extends string>(table: Readonly<Record<T, string>>) => Object.keys(table) as T[]

/** Ciphers of TLS 1.3, which `cipher_suites` does not affect. */
const newestCiphers = 'TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256'

/** Whether a client certificate is requested, required and verified. */
const clientAuth: Readonly<Record<string, Omit<ClientCertificates, 'admits'> & { must: boolean }>> = {
  RequestClientCert: { verified: false, must: false },
  RequireClientCert: { verified: false, must: true },
  RequireAnyClientCert: { verified: false, must: true },
  VerifyClientCertIfGiven: { verified: false, must: false },
  RequireAndVerifyClientCert: { verified: true, must: true },
}

const allowedHeaders: Readonly<Record<string, readonly string[]>> = {
  'Strict-Transport-Security': [],
  'X-Content-Type-Options': ['nosniff'],
  'X-Frame-Options': ['deny', 'sameorigin'],
  'X-XSS-Protection': [],
  'Content-Security-Policy': [],
}

const schema = branch('The whole file.', {
  tls_server_config: branch('TLS.', {
    cert_file: key(path, '', 'PEM file of the certificate.'),
    key_file: key(path, '', 'PEM file of the private key.'),
    client_ca_file: key(path, '', 'PEM file of the CAs of client certificates.'),
    cert: key(text(), '', 'The certificate as text.'),
    key: key(text(), '', 'The private key as text.', { secret: true }),
    client_ca: key(text(), '', 'The CAs as text.'),
    client_auth_type: key(
      choice(['', 'NoClientCert', ...Object.keys(clientAuth)]),
      '',
      'Client certificate policy.',
    ),
    client_allowed_sans: key(list(text()), [], 'Allowed names in client certificates.'),
    min_version: key(choice(names(versions)), 'TLS12', 'Minimum version.'),
    max_version: key(choice(names(versions)), 'TLS13', 'Maximum version.'),
    cipher_suites: key(list(text()), [], 'Cipher suites up to TLS 1.2.'),
    prefer_server_cipher_suites: key(boolean, true, 'Use the server’s order of preference.'),
    curve_preferences: key(list(choice(names(curves))), [], 'Curves.'),
  }),
  http_server_config: branch('HTTP.', {
    http2: key(boolean, true, 'Accepted without effect; the server uses HTTP/1.1.'),
    headers: key(map(text()), {}, 'Headers of all responses.'),
  }),
  basic_auth_users: key(map(text()), {}, 'Bcrypt hashes by user.', { secret: true }),
  rate_limit: branch('Rate limit.', {
    interval: key(duration({ min: 0 }), 0, 'Time until one more request is allowed; 0 for no limit.'),
    burst: key(count, 0, 'Burst of requests.'),
  }),
})

/** The settings of the file. */
export interface WebSettings {
  readonly tls: TlsMaterial | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly users: Users
  /** Undefined: unlimited. */
  readonly rate: { readonly intervalMs: number; readonly burst: number } | undefined
}

/** The file, reloaded when it or a file it names changes. */
export class WebConfig {
  readonly #path: string
  /** Files already read, with their state just before. */
  readonly #files = new Map<string, string>()
  #settings: WebSettings | undefined
  #fault: Error | undefined

  constructor(file: string) {
    this.#path = resolve(file)
  }

  /** The current settings. Throws a readable error if they are invalid: until fixed, no one is served. */
  current(): WebSettings {
    if (this.#hasChanged()) {
      this.#settings = undefined
      this.#files.clear()
      try {
        this.#settings = this.#read()
      } catch (error) {
        this.#fault = new Error(`cannot use ${this.#path}: ${errorText(error)}`, { cause: error })
      }
    }
    if (this.#settings === undefined) throw this.#fault
    return this.#settings
  }

  #read(): WebSettings {
    const { config, given } = parse(this.#path, this.#content(this.#path, '').toString())
    const { tls_server_config, http_server_config, basic_auth_users, rate_limit } = config
    const directory = dirname(this.#path)
    const contentOf = (name: 'cert' | 'key' | 'client_ca'): string => {
      const file = tls_server_config[`${name}_file`]
      if (file === '') return tls_server_config[name]
      const whole = resolve(directory, file)
      return this.#content(whole, `${name}_file (${whole}): `).toString('latin1')
    }
    const tls = tlsOf(tls_server_config, contentOf, given)
    checkHeaders(http_server_config.headers)
    const users = new Map(Object.entries(basic_auth_users))
    for (const [user, hash] of users)
      if (!isBcrypt(hash))
        throw new Error(`basic_auth_users.${user} is not a bcrypt hash (htpasswd -nB ${user})`)
    const { interval: intervalMs, burst } = rate_limit
    const rate = intervalMs > 0 ? { intervalMs, burst } : undefined
    return { tls, headers: http_server_config.headers, users, rate }
  }

  #hasChanged(): boolean {
    for (const [path, state] of this.#files) if (stateOf(path) !== state) return true
    return this.#files.size === 0
  }

  /** `what` starts the error message. */
  #content(path: string, what: string): Buffer {
    this.#files.set(path, stateOf(path))
    const { bytes, fault } = readContent(path, false)
    if (bytes === undefined) throw new Error(`${what}${fault}`)
    return bytes
  }
}

type FileConfig = Infer<typeof schema>

function parse(path: string, content: string): { config: FileConfig; given: Settings } {
  const problems: Problem[] = []
  const report = reportInto(problems)
  const given: Settings = new Map()
  const value = parseYaml(fileSource(path, content), {}, report)
  if (value !== undefined) readBranch(schema, value, { written: '', canonical: '' }, given, report)
  if (problems.length > 0) throw new Error(formatProblems(problems).trim())
  return { config: build(schema, given), given }
}

/** Changes with the file, even if it is replaced. */
function stateOf(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
    return `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`
  } catch (error) {
    return `no file: ${(error as NodeJS.ErrnoException).code}`
  }
}

/** Undefined if TLS is off. */
function tlsOf(
  config: FileConfig['tls_server_config'],
  contentOf: (name: 'cert' | 'key' | 'client_ca') => string,
  given: Settings,
): TlsMaterial | undefined {
  const cert = contentOf('cert')
  const privateKey = contentOf('key')
  const ca = contentOf('client_ca')
  const { client_auth_type: kind } = config
  if (cert === '' && privateKey === '' && ca === '' && kind === '') return undefined
  if (cert === '') throw new Error('tls_server_config: missing one of cert or cert_file')
  if (privateKey === '') throw new Error('tls_server_config: missing one of key or key_file')
  const clients = clientsOf(config, given.has('tls_server_config.client_allowed_sans'))
  if (ca !== '' && clients === undefined)
    throw new Error("tls_server_config: client CA's have been configured without a Client Auth Policy")
  const context: SecureContextOptions = {
    cert,
    key: privateKey,
    ca: ca === '' ? undefined : ca,
    minVersion: versions[config.min_version],
    maxVersion: versions[config.max_version],
    honorCipherOrder: config.prefer_server_cipher_suites,
    ...(config.cipher_suites.length > 0 ? { ciphers: ciphersOf(config.cipher_suites) } : {}),
    ...(config.curve_preferences.length > 0
      ? { ecdhCurve: config.curve_preferences.map(curve => curves[curve]).join(':') }
      : {}),
  }
  try {
    createSecureContext(context)
  } catch (error) {
    throw new Error(`tls_server_config: rejected by OpenSSL: ${errorText(error)}`, { cause: error })
  }
  return {
    ...context,
    cert,
    key: privateKey,
    ca: context.ca as string | undefined,
    ...(clients && { clients }),
  }
}

function clientsOf(
  { client_auth_type, client_allowed_sans }: FileConfig['tls_server_config'],
  limited: boolean,
): ClientCertificates | undefined {
  const rule = clientAuth[client_auth_type]
  if (limited && !rule?.must)
    throw new Error(
      'tls_server_config: client_allowed_sans requires client_auth_type to be one of RequireAnyClientCert or RequireAndVerifyClientCert',
    )
  if (rule === undefined) return undefined
  const checked = rule.verified || client_auth_type === 'VerifyClientCertIfGiven'
  return {
    verified: rule.verified,
    admits(socket) {
      const certificate = socket.getPeerX509Certificate()
      if (certificate === undefined) return !rule.must
      if (checked && !socket.authorized) return false
      try {
        return (
          !limited || namesOf(certificate.subjectAltName).some(name => client_allowed_sans.includes(name))
        )
      } catch {
        return false // an invalid name; its origin does not matter
      }
    },
  }
}

/** The names in a text such as `DNS:a.example, IP Address:10.0.0.1, URI:"spiffe://a, b"`. Throws if one is invalid. */
export function namesOf(subjectAltName: string | undefined): string[] {
  const found: string[] = []
  // Quoted as in JSON.
  const part = /(DNS|IP Address|URI|email):(?:("(?:[^"\\]|\\.)*")|([^,]*))(?:, |$)/gy
  for (const [, kind, quoted, plain] of (subjectAltName ?? '').matchAll(part)) {
    const name = quoted === undefined ? plain! : (JSON.parse(quoted) as string)
    found.push(kind === 'IP Address' ? shortAddress(name) : name)
  }
  return found
}

/** OpenSSL writes IPv6 addresses in full, configurations use the short form. */
function shortAddress(address: string): string {
  return address.includes(':') ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address
}

/** `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` → `ECDHE-RSA-AES128-GCM-SHA256`. */
function ciphersOf(suites: readonly string[]): string {
  const older = suites.flatMap(suite => {
    if (newestCiphers.includes(suite)) return []
    const parts =
      /^TLS_(?:(ECDHE_(?:RSA|ECDSA))|RSA)_WITH_(?:AES_(128|256)_(?:(GCM_SHA(?:256|384))|CBC_(SHA(?:256)?))|(CHACHA20_POLY1305)_SHA256)$/.exec(
        suite,
      )
    if (parts === null) throw new Error(`tls_server_config.cipher_suites: unknown cipher: ${suite}`)
    const [, exchange, bits, gcm, cbc, chacha] = parts
    const cipher = chacha ?? `AES${bits}_${gcm ?? cbc}`
    return [(exchange === undefined ? cipher : `${exchange}_${cipher}`).replaceAll('_', '-')]
  })
  return [newestCiphers, ...older].join(':')
}

function checkHeaders(headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) {
    const values = Object.hasOwn(allowedHeaders, name) ? allowedHeaders[name]! : undefined
    if (values === undefined) throw new Error(`http_server_config.headers: "${name}" cannot be set`)
    if (values.length > 0 && !values.includes(value))
      throw new Error(`http_server_config.headers.${name}: expected one of ${values.join(', ')}`)
    if (/[^\t\x20-\x7e\x80-\xff]/.test(value))
      throw new Error(
        `http_server_config.headers.${name} contains characters that are not allowed in headers`,
      )
  }
}
