import { BlockList, isIP } from 'node:net'
import { bareHost } from './host-port.ts'

/** A proxy that opens tunnels (CONNECT, RFC 9110, section 9.3.6). */
export interface ProxyTarget {
  readonly host: string
  readonly port: number
  /** TLS to the proxy itself, whose certificate must be valid for the runtime's roots. */
  readonly secure: boolean
  /** For `Proxy-Authorization`, '' for none. Secret. */
  readonly authorization: string
  /** The variable or setting that it comes from, for messages. */
  readonly variable: string
}

/** The proxy for a server; undefined for none. `secure`: the connection to the server uses TLS. */
export type ProxyChoice = (host: string, port: number, secure: boolean) => ProxyTarget | undefined

type Environment = Readonly<Record<string, string | undefined>>

/**
 * The proxies of `HTTPS_PROXY` (servers with TLS) and `HTTP_PROXY` (servers without), except for servers in `NO_PROXY`;
 * the lower-case variables take precedence, as in curl. Both open tunnels: plain requests are not sent in absolute
 * form, so the proxy sees no headers. Undefined if no proxy is set. Throws an `Error` that contains no value.
 *
 * `NO_PROXY` is a list, separated by commas or blanks, of `*` (everything), names (with all names below them; a leading
 * `.` or `*.` changes nothing), addresses, and ranges such as `10.0.0.0/8`, which only match servers given by address.
 * A `:port` after a name or an address limits it to that port. Nothing else is exempt, not even loopback.
 */
export function proxyFromEnvironment(environment: Environment): ProxyChoice | undefined {
  const forTls = readProxy(environment, 'HTTPS_PROXY')
  const forPlain = readProxy(environment, 'HTTP_PROXY')
  if (forTls === undefined && forPlain === undefined) return undefined
  const exempt = readExemptions(variable(environment, 'NO_PROXY').value)
  return (host, port, secure) => {
    const target = secure ? forTls : forPlain
    return target === undefined || exempt(host, port) ? undefined : target
  }
}

function variable(environment: Environment, name: string): { name: string; value: string } {
  const lower = name.toLowerCase()
  const key = environment[lower] ? lower : name
  return { name: key, value: environment[key]?.trim() ?? '' }
}

function readProxy(environment: Environment, key: string): ProxyTarget | undefined {
  const { name, value } = variable(environment, key)
  return value === '' ? undefined : proxyFromUrl(value, name)
}

/**
 * The proxy in a URL, or in `host:port`. `name` is the setting it comes from. Throws an `Error` that contains no value.
 */
export function proxyFromUrl(value: string, name: string): ProxyTarget {
  const url = parseUrl(value.includes('://') ? value : `http://${value}`)
  const scheme = url?.protocol.slice(0, -1)
  if (url === undefined || url.hostname === '')
    throw new Error(`cannot use the proxy of ${name}: not a URL; use the form http://proxy:3128`)
  if (scheme !== 'http' && scheme !== 'https')
    throw new Error(
      `cannot use the proxy of ${name}: the scheme ${scheme} is not supported; use http or https`,
    )
  const secure = scheme === 'https'
  return {
    host: bareHost(url.hostname),
    port: url.port === '' ? (secure ? 443 : 80) : Number(url.port),
    secure,
    authorization: basicAuthorization(url, name),
    variable: name,
  }
}

function parseUrl(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    return undefined // its message would repeat the credentials
  }
}

/** RFC 7617, in UTF-8. */
function basicAuthorization({ username, password }: URL, name: string): string {
  if (username === '' && password === '') return ''
  try {
    const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
    return `Basic ${Buffer.from(pair, 'utf8').toString('base64')}`
  } catch {
    throw new Error(
      `cannot use the proxy of ${name}: user or password is not percent-encoded; write % as %25`,
    )
  }
}

type Exemption = (host: string, port: number) => boolean

function readExemptions(text: string): Exemption {
  const all = text
    .split(/[\s,]+/)
    .filter(entry => entry !== '')
    .map(readExemption)
  return (host, port) => {
    const name = withoutDot(host.toLowerCase())
    return all.some(exempt => exempt(name, port))
  }
}

function readExemption(entry: string): Exemption {
  if (entry === '*') return () => true
  const { host, port } = splitPort(entry.toLowerCase())
  const only = (found: boolean, asked: number): boolean => found && (port === 0 || port === asked)
  const list = addressList(host)
  if (list) return (name, asked) => only(inList(list, name), asked)
  const suffix = withoutDot(host.replace(/^\*?\./, ''))
  if (suffix === '') return () => false
  return (name, asked) => only(name === suffix || name.endsWith(`.${suffix}`), asked)
}

/** The name or address in `name:port`, `[ipv6]:port`, or either without a port, which is then 0. */
function splitPort(entry: string): { host: string; port: number } {
  if (isIP(entry) === 6) return { host: entry, port: 0 }
  const colon = entry.lastIndexOf(':')
  const digits = entry.slice(colon + 1)
  if (colon < 0 || digits.length > 5 || !/^\d+$/.test(digits)) return { host: bareHost(entry), port: 0 }
  const host = entry.slice(0, colon)
  // An IPv6 range such as fd00::/8 has colons, too, but ends in its length and never gets here.
  return { host: bareHost(host), port: Number(digits) }
}

/** Matches an address or a range; undefined for a name. Also matches IPv4-mapped IPv6. */
function addressList(text: string): BlockList | undefined {
  const slash = text.indexOf('/')
  const address = slash < 0 ? text : text.slice(0, slash)
  const version = isIP(address)
  if (version === 0) return undefined
  const family = version === 6 ? 'ipv6' : 'ipv4'
  const list = new BlockList()
  const length = Number(text.slice(slash + 1))
  if (slash < 0) list.addAddress(address, family)
  else if (Number.isInteger(length) && length >= 0 && length <= (version === 6 ? 128 : 32))
    list.addSubnet(address, length, family)
  return list
}

function inList(list: BlockList, host: string): boolean {
  const version = isIP(host)
  return version !== 0 && list.check(host, version === 6 ? 'ipv6' : 'ipv4')
}

function withoutDot(name: string): string {
  return name.endsWith('.') ? name.slice(0, -1) : name
}
