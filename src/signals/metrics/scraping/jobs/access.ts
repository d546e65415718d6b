import { resolve } from 'node:path'
import { list, map } from '../../../../foundation/schema/collections.ts'
import { fileThat } from '../../../../foundation/schema/kinds.ts'
import type { Access, Secret } from '../scrape-job.ts'
import { addressThat, anyBoolean, anyText, entryText, textThat } from './fields.ts'
import { type FieldFault, form, secret, type Written } from './form.ts'

// Authentication settings in the form of Prometheus (`http_config` of prometheus/common).

const secretText = secret(anyText)

/** Reason why a text is not an HTTP URL; '' if it is. */
export function urlFault(url: string): string {
  if (!/^https?:\/\//i.test(url)) return 'it does not start with "http://" or "https://"'
  return URL.canParse(url) ? '' : 'the host is missing, or the port is invalid'
}

const proxyUrl = addressThat('an http or https URL of a proxy', url => {
  if (url === '') return ''
  return /^socks/i.test(url) ? 'svc supports HTTP proxies, not SOCKS' : urlFault(url)
})

/** Headers that svc sets itself, and those that Prometheus rejects (`ReservedHeaders`). */
const reserved = new Set(
  `authorization host content-encoding content-length content-type user-agent connection keep-alive
  proxy-authenticate proxy-authorization www-authenticate accept accept-encoding transfer-encoding te upgrade
  x-prometheus-remote-write-version x-prometheus-remote-read-version x-prometheus-scrape-timeout-seconds`.split(
    /\s+/,
  ),
)

function headerNameFault(name: string): string {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/.test(name) ? '' : 'not a valid header name'
}

function headerFault(name: string): string {
  if (/^authorization$/i.test(name)) return 'use basic_auth or authorization'
  return reserved.has(name.toLowerCase()) ? 'svc sets this header itself; delete it' : headerNameFault(name)
}

/** Valid header value (RFC 9110, section 5.5). */
const headerValue = secret(
  textThat('printable text on one line', text =>
    /^[\t\x20-\x7e\x80-\xff]*$/.test(text) ? '' : 'it has a character that is not allowed in a header',
  ),
)

const header = form(
  { values: list(headerValue), secrets: list(headerValue), files: list(entryText) },
  {
    what: 'a header (keys values, secrets)',
    check({ values = [], secrets = [], files = [] }, fault) {
      if (files.length > 0) fault('files', `svc reads no files for headers; use secrets: ["\${file:/path}"]`)
      else if (values.length + secrets.length === 0) fault('', 'the header has no value; set values')
    },
  },
)

const tls = form(
  {
    ca: anyText,
    ca_file: fileThat('certificates', anyText),
    cert: anyText,
    cert_file: fileThat('certificates', anyText),
    key: secretText,
    key_file: fileThat('private key', anyText),
    server_name: anyText,
    insecure_skip_verify: anyBoolean,
    min_version: textThat('one of TLS10, TLS11, TLS12, TLS13', versionFault),
    max_version: textThat('one of TLS10, TLS11, TLS12, TLS13', versionFault),
  },
  {
    what: 'the keys of tls_config',
    foreign: refFault,
    check(written, fault) {
      for (const name of ['ca', 'cert', 'key'] as const) {
        if (!written[name]) continue
        if (written[`${name}_file`]) fault(name, `${name} and ${name}_file are both set; delete one`)
        else fault(name, `svc does not support inline certificates and keys; use ${name}_file`)
      }
      const [cert, key] = [written.cert_file ?? '', written.key_file ?? '']
      if (cert !== '' && key === '') fault('cert_file', 'requires key_file')
      if (key !== '' && cert === '') fault('key_file', 'requires cert_file')
      if (written.min_version === 'TLS13')
        fault('min_version', 'svc supports TLS 1.2 and 1.3; disable 1.2 on the target, or delete the key')
      if (written.max_version && written.max_version !== 'TLS13')
        fault('max_version', 'svc supports TLS 1.2 and 1.3; delete the key')
    },
  },
)

function versionFault(version: string): string {
  return /^(TLS1[0-3])?$/.test(version) ? '' : 'use TLS12'
}

/** Prometheus has these keys only with a secret manager, which its server lacks. */
function refFault(name: string): string | undefined {
  return name.endsWith('_ref') ? `svc has no secret manager; use ${name.slice(0, -4)}_file` : undefined
}

const basicAuth = form(
  {
    username: anyText,
    username_file: anyText,
    password: secretText,
    password_file: fileThat('any', anyText),
  },
  {
    what: 'the keys of basic_auth (username, password, password_file)',
    foreign: refFault,
    check(written, fault) {
      if (written.username && written.username_file)
        fault('username_file', 'username and username_file are both set; delete one')
      else if (written.username_file)
        fault('username_file', `svc reads no file for the user name; use username: "\${file:/path}"`)
      if (written.password && written.password_file)
        fault('password_file', 'password and password_file are both set; delete one')
    },
  },
)

const authorization = form(
  { type: anyText, credentials: secretText, credentials_file: fileThat('any', anyText) },
  {
    what: 'the keys of authorization (type, credentials, credentials_file)',
    foreign: refFault,
    check(written, fault) {
      if (/^\s*basic\s*$/i.test(written.type ?? ''))
        fault('type', 'use basic_auth with username and password for this type')
      if (written.credentials && written.credentials_file)
        fault('credentials_file', 'credentials and credentials_file are both set; delete one')
    },
  },
)

/** Keys shared by jobs and by the kinds of discovery over HTTP. */
export const accessFields = {
  basic_auth: basicAuth,
  authorization,
  bearer_token: secretText,
  bearer_token_file: fileThat('any', anyText),
  tls_config: tls,
  proxy_url: proxyUrl,
  proxy_from_environment: anyBoolean,
  no_proxy: anyText,
  follow_redirects: anyBoolean,
  enable_http2: anyBoolean,
  http_headers: secret(map(header, { fault: headerFault })),
} as const

export type WrittenAccess = Written<typeof accessFields>

/** Reason why a key of Prometheus is not supported. */
export function foreignAccess(name: string): string | undefined {
  if (name === 'oauth2')
    return 'svc does not support OAuth 2.0 for targets; fetch the token with another program and set authorization.credentials_file'
  if (name === 'proxy_connect_header')
    return 'svc sends no custom headers to proxies; put user and password into proxy_url'
  return undefined
}

/** Reports contradictions between keys (`HTTPClientConfig.Validate`). */
export function checkAccess(written: WrittenAccess, fault: FieldFault): void {
  const bearer = written.bearer_token ? 'bearer_token' : written.bearer_token_file ? 'bearer_token_file' : ''
  if (written.bearer_token && written.bearer_token_file)
    fault('bearer_token_file', 'bearer_token and bearer_token_file are both set; delete one')
  const ways = [
    written.basic_auth && 'basic_auth',
    written.authorization && 'authorization',
    bearer !== '' && bearer,
  ].filter(way => typeof way === 'string')
  if (ways.length > 1)
    fault(ways.at(-1)!, `${ways.join(' and ')} are set; only one is allowed, delete the others`)
  if (written.proxy_from_environment)
    fault('proxy_from_environment', 'svc reads no proxy environment variables for targets; use proxy_url')
  if (written.no_proxy)
    fault(
      'no_proxy',
      written.proxy_url
        ? 'all targets of a job use its proxy; move the others to a separate job'
        : 'no effect without proxy_url; delete the key',
    )
}

/** Access settings from the configuration. Relative file paths start at `baseDir`. */
export function accessOf(written: WrittenAccess, baseDir: string): Access {
  const { basic_auth: basic, authorization: own, tls_config: tls = {}, http_headers: headers = {} } = written
  const file = (path: string | undefined) => (path ? resolve(baseDir, path) : '')
  const secretOf = (text: string | undefined, path: string | undefined): Secret | undefined =>
    path ? { file: file(path) } : text ? { text } : undefined
  const credentials =
    secretOf(own?.credentials, own?.credentials_file) ??
    secretOf(written.bearer_token, written.bearer_token_file)
  const password = secretOf(basic?.password, basic?.password_file)
  const hasBasic = basic !== undefined && (basic.username || password !== undefined)
  return {
    headers: Object.fromEntries(
      Object.entries(headers).map(([name, { values = [], secrets = [] }]) => [
        name,
        [...values, ...secrets].join(', '),
      ]),
    ),
    basic: hasBasic ? { username: basic.username ?? '', password: password ?? { text: '' } } : undefined,
    authorization: credentials && { type: own?.type?.trim() || 'Bearer', credentials },
    tls: {
      caFile: file(tls.ca_file),
      certFile: file(tls.cert_file),
      keyFile: file(tls.key_file),
      serverName: tls.server_name ?? '',
      insecureSkipVerify: tls.insecure_skip_verify ?? false,
    },
    followRedirects: written.follow_redirects ?? true,
    proxyUrl: written.proxy_url ?? '',
  }
}
