// Who may ask: tokens, and the rule that keeps what changes or reveals much to this host where there are none.

import type { IncomingMessage } from 'node:http'
import { type BearerCheck, bearerCheck } from './bearer.ts'
import type { Cors } from './cors.ts'

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
}

/** How a request reached the server. */
export interface Arrival {
  readonly tls: boolean
  /** That the server listens on. */
  readonly port: number
}

export class Guard {
  readonly #token: BearerCheck | undefined
  readonly #exempt: ReadonlySet<string>
  readonly #allowRemote: boolean
  readonly #cors: Cors

  /** Throws, in words, where tokens are required and there is none. */
  constructor({ settings: { auth, admin }, cors, open }: GuardOptions) {
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
  }

  /** `token`: it was shown. `none`: none is needed. `refused`: one is needed, and was not shown. */
  admits(path: string, authorization: string | undefined): 'token' | 'none' | 'refused' {
    if (this.#token === undefined) return 'none'
    if (this.#token(authorization)) return 'token'
    return this.#exempt.has(path) ? 'none' : 'refused'
  }

  /**
   * Why a request without a token may not have what is for this host alone; undefined where it may. Peers that are not
   * of this host are refused, and so are web pages: those of other origins by `Origin` and `Sec-Fetch-Site`, and those
   * whose name was pointed at this host (DNS rebinding) by `Host`, which then is that name.
   */
  refusal({ headers, socket, url }: IncomingMessage, { tls, port }: Arrival): string | undefined {
    const authority = authorityOf(url) ?? headers.host
    if (!this.#allowRemote) {
      if (!isLoopback(socket.remoteAddress ?? ''))
        return 'without a token it is for this host alone; set self_telemetry.auth, or self_telemetry.admin.allow_remote: true'
      if (authority !== undefined && !isLoopbackName(hostOf(authority)))
        return 'its Host is no name of this host; ask for localhost or 127.0.0.1, or set self_telemetry.auth'
    }
    const { origin } = headers
    if (origin !== undefined) {
      if (this.#cors.names(origin) || this.#isOwn(origin, authority, tls, port)) return undefined
      return 'it comes from a web page of another origin; name that in self_telemetry.cors.allowed_origins, or set self_telemetry.auth'
    }
    const site = headers['sec-fetch-site']
    return site === 'cross-site' || site === 'same-site'
      ? 'it comes from a web page of another origin; set self_telemetry.auth'
      : undefined
  }

  /** Whether an origin is this server, by the name that the request has for it or by one of this host. */
  #isOwn(origin: string, authority: string | undefined, tls: boolean, port: number): boolean {
    const [, scheme, of] = /^(https?):\/\/([^/]+)$/.exec(origin) ?? []
    // Without TLS of ours a proxy may have taken it off; with it, a page that came without is another's.
    if (of === undefined || (tls && scheme !== 'https')) return false
    if (of === authority?.toLowerCase()) return true
    const usual = scheme === 'https' ? 443 : 80
    return tls === (scheme === 'https') && isLoopbackName(hostOf(of)) && (portOf(of) ?? usual) === port
  }
}

/** 127.0.0.0/8, also where IPv6 carries it, and ::1. */
export function isLoopback(address: string): boolean {
  const bare = address.startsWith('::ffff:') ? address.slice(7) : address
  return bare === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(bare)
}

/** A name that means this host to everybody: `localhost`, what is below it (RFC 6761, section 6.3), a loopback address. */
function isLoopbackName(host: string): boolean {
  const name = host.toLowerCase()
  return name === 'localhost' || name.endsWith('.localhost') || isLoopback(name)
}

/** `host[:port]` of a request target in absolute form, which stands above `Host` (RFC 9112, section 3.2.2). */
function authorityOf(url: string | undefined): string | undefined {
  return url?.startsWith('/') ? undefined : /^https?:\/\/([^/?#]*)/i.exec(url ?? '')?.[1]
}

/** The host of `host[:port]`, an IPv6 address without its brackets. */
function hostOf(authority: string): string {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\]|([^:@]*))(?::\d*)?$/.exec(authority) ?? []
  return bracketed ?? plain ?? ''
}

function portOf(authority: string): number | undefined {
  const port = /:(\d{1,5})$/.exec(authority)?.[1]
  return port === undefined ? undefined : Number(port)
}
