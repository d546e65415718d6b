import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Connection, OpenRequest } from './connections.ts'
import type { Guard } from './guard.ts'
import type { ApiRequest, Route } from './operation.ts'
import { clientOf } from './rate-limit.ts'

const none: Readonly<Record<string, never>> = {}

/** A request and its pending answer. */
export class Exchange implements ApiRequest, OpenRequest {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly connection: Connection
  /** Came over the admin socket. */
  readonly admin: boolean
  readonly path: string
  /** Milliseconds of `performance.now()`. */
  readonly startMs: number
  /** The matching operation, and its parameters. */
  operation: Route | undefined
  parameters: Readonly<Record<string, number>> = none
  texts: Readonly<Record<string, string>> = none
  body: Readonly<Record<string, unknown>> | undefined
  isPublic = true
  /** It waited for its turn. */
  waited = false
  /** Identifies the users of this host. */
  guard: Guard | undefined
  #gone = false
  #controller: AbortController | undefined

  constructor(request: IncomingMessage, response: ServerResponse, connection: Connection, admin: boolean) {
    this.request = request
    this.response = response
    this.connection = connection
    this.admin = admin
    this.path = pathOf(request.url ?? '/')
    this.startMs = performance.now()
    this.operation = undefined
    this.guard = undefined
    this.body = undefined
  }

  get method(): string {
    return this.request.method ?? ''
  }

  get url(): string {
    return this.request.url ?? ''
  }

  get client(): string {
    return clientOf(this.request.socket.remoteAddress ?? '', this.guard?.userOf(this.connection))
  }

  get query(): string {
    return queryOf(this.request.url ?? '')
  }

  get headers(): IncomingHttpHeaders {
    return this.request.headers
  }

  /** Created on demand: most answers are immediate. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#gone) this.#controller.abort()
    }
    return this.#controller.signal
  }

  /** The client has gone. */
  get isGone(): boolean {
    return this.#gone
  }

  /** Whether a failure means that the client has gone: not a fault, and there is no one to answer. */
  wasLeft(error: unknown): boolean {
    return this.#gone && error === this.#controller?.signal.reason
  }

  gone(): void {
    this.#gone = true
    this.#controller?.abort()
  }
}

/** The path of a request target in origin form or absolute form (RFC 9112 §3.2), without query. */
function pathOf(url: string): string {
  const from = url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?#]*/i, '')
  const end = from.search(/[?#]/)
  const path = end < 0 ? from : from.slice(0, end)
  return path === '' ? '/' : path
}

/** The query of a request target, without `?`. */
function queryOf(url: string): string {
  const fragment = url.indexOf('#')
  const whole = fragment < 0 ? url : url.slice(0, fragment)
  const start = whole.indexOf('?')
  return start < 0 ? '' : whole.slice(start + 1)
}
