// Access: tokens, and identification of clients without one.

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { type BearerCheck, bearerCheck } from './bearer.ts'
import type { BrowserKey } from './browser-key.ts'
import type { Cors } from './cors.ts'
import { type HostNames, isLocalName } from './host-names.ts'

export interface GuardSettings {
  readonly auth: {
    readonly enabled: boolean
    readonly bearer_token: string
    readonly bearer_tokens: readonly string[]
    /** Paths that need no token. */
    readonly exempt: readonly string[]
  }
  readonly admin: { readonly allow_remote: boolean }
}

export interface GuardOptions {
  readonly settings: GuardSettings
  readonly cors: Cors
  /** Paths that never need a token. */
  readonly open: Iterable<string>
  /** Accepted names of this host; undefined: any. */
  readonly names: HostNames | undefined
  readonly key: BrowserKey | undefined
  readonly peerUser: PeerUser | undefined
}

/** The user at the other end of a connection within this host; undefined if unknown. */
export type PeerUser = (
  ends: Readonly<Record<'localAddress' | 'remoteAddress', string>> &
    Readonly<Record<'localPort' | 'remotePort', number>>,
) => number | undefined

/** How a request reached the server. */
export interface Arrival {
  readonly tls: boolean
  /** The port that the server listens on. */
  readonly port: number
}

/** A connection and the user of its peer. */
export interface Peer {
  readonly socket: Socket
  /** User ID on this host; -1: unknown, or another host. undefined: not looked up yet. */
  user: number | undefined
}

export class Guard {
  readonly #token: BearerCheck | undefined
  readonly #exempt: ReadonlySet<string>
  readonly #allowRemote: boolean
  readonly #cors: Cors
  readonly #names: HostNames | undefined
  readonly #key: BrowserKey | undefined
  readonly #peerUser: PeerUser | undefined

  /** Throws a readable error if tokens are required but not set. */
  constructor({ settings: { auth, admin }, cors, open, names, key, peerUser }: GuardOptions) {
    if (auth.enabled) {
      const tokens = [auth.bearer_token, ...auth.bearer_tokens]
      if (tokens.every(token => token === '')) {
        throw new Error(
          'self_telemetry.auth.enabled is true and bearer_token is empty; set a token, or enabled: false',
        )
      }
      this.#token = bearerCheck(tokens)
    }
    this.#exempt = new Set([...open, ...auth.exempt])
    this.#allowRemote = admin.allow_remote
    this.#cors = cors
    this.#names = names
    this.#key = key
    this.#peerUser = peerUser
  }

  /**
   * `token`: it was sent. `cookie`: of a browser with the key. `none`: the path needs no token. `refused`: a token is
   * required and was not sent.
   */
  admits(
    path: string,
    { headers, url }: IncomingMessage,
    { tls }: Arrival,
  ): 'token' | 'cookie' | 'none' | 'refused' {
    if (this.#token?.(headers.authorization) === true) return 'token'
    if (this.#key?.isShown(headers.cookie, authorityOf(url) ?? headers.host, tls) === true) return 'cookie'
    return this.#token === undefined || this.#exempt.has(path) ? 'none' : 'refused'
  }

  /**
   * Whether a client without token and cookie has full access: root and the agent's own user on a loopback address,
   * according to the kernel, and remote peers if `allow_remote` is set. A request forwarded by a proxy does not count
   * as the proxy's user.
   */
  trusts(peer: Peer, headers: IncomingHttpHeaders): boolean {
    if (this.#allowRemote && !isLoopback(peer.socket.remoteAddress ?? '')) return true
    if (isPassedOn(headers)) return false
    const user = this.userOf(peer)
    // In a user namespace, all unmapped users read as this one.
    return user === 0 || (user !== -1 && user !== overflowUser && user === process.geteuid?.())
  }

  /** The user of the peer of a loopback connection; -1: unknown, or not loopback. */
  userOf(peer: Peer): number {
    peer.user ??= this.#lookUp(peer.socket) ?? -1
    return peer.user
  }

  #lookUp({ localAddress, localPort, remoteAddress, remotePort }: Socket): number | undefined {
    if (localAddress === undefined || localPort === undefined) return undefined
    if (remoteAddress === undefined || remotePort === undefined || !isLoopback(remoteAddress))
      return undefined
    return this.#peerUser?.({ localAddress, localPort, remoteAddress, remotePort })
  }

  /** Why the host name of a request is not accepted; undefined if it is. */
  foreignName({ headers, url }: IncomingMessage): string | undefined {
    const authority = authorityOf(url) ?? headers.host
    // Browsers always send one.
    if (this.#names === undefined || authority === undefined) return undefined
    const host = hostOf(authority)
    if (this.#names.has(host)) return undefined
    return `Host "${host.slice(0, 253)}" is not a known name of this host; use an IP address, or add the name to self_telemetry.allowed_hosts`
  }

  /**
   * Why a request without a token is rejected because of the web page that sent it (CSRF); undefined if it is allowed,
   * or not from a page.
   */
  foreignPage({ headers, url }: IncomingMessage, { tls, port }: Arrival): string | undefined {
    if (this.#names === undefined) return undefined
    const { origin } = headers
    if (origin !== undefined) {
      const authority = authorityOf(url) ?? headers.host
      if (this.#cors.names(origin) || this.#isOwn(origin, authority, tls, port)) return undefined
      return 'the request comes from a web page of another origin; add it to self_telemetry.cors.allowed_origins, or set self_telemetry.auth'
    }
    const site = headers['sec-fetch-site']
    return site === 'cross-site' || site === 'same-site'
      ? 'the request comes from a web page of another origin; set self_telemetry.auth'
      : undefined
  }

  /**
   * Whether a request from a page of another origin may read public data. Without `Origin`, the user followed a link,
   * or no page can read the answer.
   */
  mayRead({ origin }: IncomingHttpHeaders): boolean {
    return origin === undefined || this.#cors.allows(origin)
  }

  /** Whether an origin is this server: the host name of the request, or a name of this host. */
  #isOwn(origin: string, authority: string | undefined, tls: boolean, port: number): boolean {
    const [, scheme, of] = /^(https?):\/\/([^/]+)$/.exec(origin) ?? []
    // Without TLS here, a proxy may have terminated it; with TLS, a page loaded over plain HTTP is not this server's.
    if (of === undefined || (tls && scheme !== 'https')) return false
    if (of === authority?.toLowerCase()) return true
    const usual = scheme === 'https' ? 443 : 80
    return tls === (scheme === 'https') && isLoopbackName(hostOf(of)) && (portOf(of) ?? usual) === port
  }
}

/** The ID of users that a user namespace does not map (/proc/sys/kernel/overflowuid). */
const overflowUser = 65_534

/** Whether a proxy marked the request as forwarded. */
function isPassedOn(headers: IncomingHttpHeaders): boolean {
  for (const name in headers)
    if (name === 'forwarded' || name === 'via' || name === 'x-real-ip' || name.startsWith('x-forwarded'))
      return true
  return false
}

/** 127.0.0.0/8, also as an IPv4-mapped IPv6 address, and ::1. */
export function isLoopback(address: string): boolean {
  const bare = address.startsWith('::ffff:') ? address.slice(7) : address
  return bare === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(bare)
}

/** A name that means this host everywhere: `localhost`, names below it (RFC 6761, section 6.3), a loopback address. */
function isLoopbackName(host: string): boolean {
  const name = host.toLowerCase()
  return isLocalName(name) || isLoopback(name)
}

/** `host[:port]` of a request target in absolute form, which overrides `Host` (RFC 9112, section 3.2.2). */
export function authorityOf(url: string | undefined): string | undefined {
  return url?.startsWith('/') ? undefined : /^https?:\/\/([^/?#]*)/i.exec(url ?? '')?.[1]
}

/**
 * The host of `host[:port]`, an IPv6 address without its brackets; '' if it contains a forbidden host code point
 * (WHATWG URL): URL parsers end a host at some of them.
 */
function hostOf(authority: string): string {
  const [, bracketed, plain] =
    /^(?:\[([^\]]*)\]|([^:@/\\?#[\]<>^|%\p{Cc}\s]*))(?::\d*)?$/u.exec(authority) ?? []
  return bracketed ?? plain ?? ''
}

function portOf(authority: string): number | undefined {
  const port = /:(\d{1,5})$/.exec(authority)?.[1]
  return port === undefined ? undefined : Number(port)
}
