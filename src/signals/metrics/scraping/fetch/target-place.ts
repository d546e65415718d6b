import { isIP } from 'node:net'
import { bareHost, hostPort } from '../../../../foundation/lib/host-port.ts'
import { printable } from './fetch-error.ts'

/** A redirect may be as long as a whole head. */
const maxShown = 500

/** A parsed URL, ready for connecting and requesting. */
export interface TargetPlace {
  readonly secure: boolean
  /** IPv6 addresses are without brackets; '' for a socket. */
  readonly host: string
  readonly port: number
  /** Path of a Unix socket; '' for none. */
  readonly socketPath: string
  /** Path and query, as in a request. */
  readonly path: string
  /** Scope of credentials: scheme, host and port, or the socket. */
  readonly origin: string
  /** Value of the Host header. */
  readonly hostField: string
  /** `user:password` of the URL, decoded; undefined for none. Secret. */
  readonly user: string | undefined
  /** For display: without user and query, which may contain secrets. */
  readonly shown: string
}

/** Parses `http:`, `https:` and `unix:/socket:/path`. Returns the reason if it is invalid. */
export function targetPlace(text: string): TargetPlace | string {
  return text.startsWith('unix:') ? socketPlace(text) : urlPlace(text)
}

/** Target of a redirect (RFC 9110, section 10.2.2). */
export function redirectedPlace(from: TargetPlace, location: string): TargetPlace | string {
  if (from.socketPath === '') {
    const base = `${from.secure ? 'https' : 'http'}://${hostPort(from.host, from.port)}${from.path}`
    return URL.canParse(location, base) ? urlPlace(new URL(location, base).href) : 'Location is not a URL'
  }
  if (/^[a-z][\w+.-]*:|^\/\//i.test(location)) return urlPlace(location)
  const base = `http://localhost${from.path}`
  if (!URL.canParse(location, base)) return 'Location is not a URL'
  const { pathname, search } = new URL(location, base)
  return { ...from, path: pathname + search, shown: printable(`${from.origin}:${pathname}`, maxShown) }
}

function urlPlace(text: string): TargetPlace | string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined) return 'not a URL; use http://host:port/metrics'
  const secure = url.protocol === 'https:'
  if (!secure && url.protocol !== 'http:')
    return `scheme ${url.protocol.slice(0, -1).slice(0, 32)} is not supported; use http or https`
  if (url.hostname === '') return 'host missing; use http://host:port/metrics'
  const host = bareHost(url.hostname)
  const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port)
  return {
    secure,
    host,
    port,
    socketPath: '',
    path: url.pathname + url.search,
    origin: `${url.protocol}//${hostPort(host, port)}`,
    // Without the default port (RFC 9110, section 4.2.3).
    hostField: url.host,
    user: userOf(url),
    shown: printable(url.origin + url.pathname, maxShown),
  }
}

const socketForm = /^unix:(?:\/\/(?=\/))?(\/.*?)(?::(\/.*))?$/

function socketPlace(text: string): TargetPlace | string {
  const [, socketPath, path = '/metrics'] = socketForm.exec(text) ?? []
  const url = `http://localhost${path}`
  if (socketPath === undefined || !URL.canParse(url))
    return 'socket missing; use unix:/path/of/socket:/metrics'
  const { pathname, search } = new URL(url)
  const origin = `unix:${socketPath}`
  return {
    secure: false,
    host: '',
    port: 0,
    socketPath,
    path: pathname + search,
    origin,
    hostField: 'localhost',
    user: undefined,
    shown: `${origin}:${pathname}`,
  }
}

function userOf({ username, password }: URL): string | undefined {
  if (username === '' && password === '') return undefined
  try {
    return `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  } catch {
    return `${username}:${password}`
  }
}

/**
 * Whether an address is different on each host: loopback, and link-local, where clouds serve secrets to their machines
 * (169.254.169.254).
 */
export function isNearAddress(remote: string): boolean {
  return /^::1$|^(?:::ffff:)?(?:127|169\.254)\.|^fe[89ab][0-9a-f]:/i.test(remote)
}

/** Whether a peer's address is one of this host, as far as a connection shows. */
export function isOwnAddress(remote: string, own: string): boolean {
  const address = remote.replace(/^::ffff:/, '')
  return remote === own || address === '::1' || (isIP(address) === 4 && address.startsWith('127.'))
}
