// Requests from web pages of other origins (the Fetch standard, "CORS protocol"). Credentials are never allowed: the
// page sends a token itself.

import type { IncomingHttpHeaders } from 'node:http'
import { type Answer, noContent } from './answer.ts'

export interface CorsSettings {
  readonly enabled: boolean
  /** As browsers write them, or `*`. */
  readonly allowed_origins: readonly string[]
}

export class Cors {
  readonly enabled: boolean
  readonly #named: ReadonlySet<string>
  readonly #all: boolean

  constructor({ enabled, allowed_origins }: CorsSettings) {
    this.enabled = enabled
    this.#named = new Set(
      enabled ? allowed_origins.filter(origin => origin !== '*' && origin !== 'null') : [],
    )
    this.#all = enabled && allowed_origins.includes('*')
  }

  /** Whether the configuration lists this exact origin; `*` does not count. */
  names(origin: string): boolean {
    return this.#named.has(origin)
  }

  /** Answers a preflight request; undefined if it is not one, or the origin is not allowed. */
  preflight(headers: IncomingHttpHeaders, allow: string): Answer | undefined {
    const { origin, 'access-control-request-method': method } = headers
    if (origin === undefined || method === undefined || !this.allows(origin)) return undefined
    return noContent({
      Allow: allow,
      'Access-Control-Allow-Methods': allow,
      'Access-Control-Allow-Headers': 'Authorization, Content-Type',
      'Access-Control-Max-Age': '600',
    })
  }

  /** The headers of an answer to a request of this origin. Every answer depends on it, so every one has `Vary`. */
  headers(answered: Answer['headers'], origin: string | undefined): Answer['headers'] {
    if (!this.enabled) return answered
    const { Vary: vary } = answered
    const headers = { ...answered, Vary: vary === undefined ? 'Origin' : `${vary}, Origin` }
    return origin !== undefined && this.allows(origin)
      ? { ...headers, 'Access-Control-Allow-Origin': origin }
      : headers
  }

  /** Whether pages of an origin may read public data. */
  allows(origin: string): boolean {
    return this.#named.has(origin) || (this.#all && origin !== 'null')
  }
}
