import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { bareFaultText } from '../../../foundation/lib/dialer.ts'
import { hostPort } from '../../../foundation/lib/host-port.ts'
import { bodyOf, HttpFault, headOf } from '../../../foundation/lib/http-answer.ts'
import { type JsonObject, parseObject, textOf } from '../../../foundation/lib/json-fields.ts'
import type { ClusterAccess } from './access.ts'
import { Credentials, type Identity } from './credentials.ts'

/** Names and owners of an object, without the rest (Kubernetes API concepts, "metadata-only fetches"). */
export const metadataOnly = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json'

const maxFaultBytes = 64 * 1024
const faultTimeoutMs = 5_000
/** Idle time before a TCP keep-alive probe, in milliseconds. */
const keepAliveMs = 30_000
/** Idle time before a connection is closed, in milliseconds. */
const idleMs = 60_000
const maxRetryAfterMs = 5 * 60_000

/** A request that was rejected, or got no answer. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  /** HTTP status; 0 without an answer. */
  readonly status: number
  /** Wait requested by the server, in milliseconds; 0 for none. */
  readonly retryAfterMs: number
  /** Rejected user, as named by the server; '' if not reported. */
  readonly user: string
  /** Sent over an idle connection that the server seems to have closed at that moment. */
  readonly stale: boolean

  constructor(
    message: string,
    details: { status?: number; retryAfterMs?: number; user?: string; stale?: boolean; cause?: unknown } = {},
  ) {
    super(message, { cause: details.cause })
    this.status = details.status ?? 0
    this.retryAfterMs = details.retryAfterMs ?? 0
    this.user = details.user ?? ''
    this.stale = details.stale ?? false
  }
}

export interface ApiRequest {
  /** Path and query, without the base path of the server. */
  readonly path: string
  readonly accept: string
  /** Timeout for the response headers, connecting included, in milliseconds. */
  readonly timeoutMs: number
  readonly stop: AbortSignal
}

/** GET over HTTP/1.1 to one API server, on persistent connections. */
export class ApiClient {
  readonly #access: ClusterAccess
  readonly #credentials: Credentials
  #agent: HttpAgent | HttpsAgent | undefined
  #identity: Identity | undefined
  #closed = false

  constructor(access: ClusterAccess, credentialsMs: number) {
    this.#access = access
    this.#credentials = new Credentials(access, credentialsMs)
  }

  /** Address of the API server, for logs. */
  get place(): string {
    const { host, port, secure } = this.#access
    return `${secure ? 'https' : 'http'}://${hostPort(host, port)}`
  }

  /**
   * Answer with status 200; the caller must read or destroy its body. `stop` also cancels the body. Rejects
   * with an `ApiError`, or with an `AccessError` if there are no usable credentials.
   */
  async open(wanted: ApiRequest): Promise<IncomingMessage> {
    const identity = await this.#credentials.load()
    const agent = this.#agentFor(identity)
    const answer = await this.#ask(wanted, identity, agent).catch(error => {
      if (!(error instanceof ApiError && error.stale)) throw error
      // Other idle connections may be closed too.
      dropIdle(agent)
      return this.#ask(wanted, identity, agent)
    })
    const { statusCode: status = 0, headers } = answer
    if (status === 200) return answer
    // The token may have been renewed on disk since it was read.
    if (status === 401) this.#credentials.forget()
    // The status is enough if the body (Kubernetes `Status`) cannot be read soon.
    const body = await bodyOf(answer, maxFaultBytes, faultTimeoutMs).catch(() => Buffer.alloc(0))
    const said = textOf(parseObject(body)?.message, 4096)
    throw new ApiError(`HTTP ${status}`, {
      status,
      retryAfterMs: retryAfter(headers['retry-after']),
      user: /\bUser "([^"\s]{1,253})"/.exec(said)?.[1] ?? '',
    })
  }

  /** JSON object of a small answer. Rejects as `open` does. */
  async object(wanted: ApiRequest, maxBytes: number): Promise<JsonObject> {
    const answer = await this.open(wanted)
    try {
      const object = parseObject(await bodyOf(answer, maxBytes, wanted.timeoutMs))
      if (object === undefined) throw new Error('it is not a JSON object')
      return object
    } catch (error) {
      throw new ApiError(`cannot read the answer: ${(error as Error).message}`, {
        status: 200,
        cause: error,
      })
    }
  }

  close(): void {
    this.#closed = true
    this.#agent?.destroy()
  }

  /** A new agent if authority or certificate changed. Requests on the old one continue. */
  #agentFor(identity: Identity): HttpAgent | HttpsAgent {
    const known = this.#identity
    const isSame =
      known?.ca === identity.ca && known?.certificate === identity.certificate && known?.key === identity.key
    if (this.#agent !== undefined && isSame) return this.#agent
    dropIdle(this.#agent)
    this.#identity = identity
    this.#agent = this.#makeAgent(identity)
    return this.#agent
  }

  #makeAgent({ ca, certificate, key }: Identity): HttpAgent | HttpsAgent {
    const { secure, serverName, insecureSkipVerify } = this.#access
    const common = { keepAlive: true, keepAliveMsecs: keepAliveMs, maxFreeSockets: 2, timeout: idleMs }
    if (!secure) return new HttpAgent(common)
    return new HttpsAgent({
      ...common,
      minVersion: 'TLSv1.2',
      rejectUnauthorized: !insecureSkipVerify,
      ...(serverName !== '' && { servername: serverName }),
      ...(ca !== '' && { ca }),
      ...(certificate !== '' && { cert: certificate }),
      ...(key !== '' && { key }),
    })
  }

  async #ask(
    { path, accept, timeoutMs, stop }: ApiRequest,
    { authorization }: Identity,
    agent: HttpAgent | HttpsAgent,
  ): Promise<IncomingMessage> {
    if (this.#closed || stop.aborted) throw new ApiError('the request was cancelled')
    const { host, port, secure, basePath } = this.#access
    try {
      const call = (secure ? requestHttps : requestHttp)({
        agent,
        host,
        port,
        path: `${basePath}${path}`,
        headers: { accept, 'user-agent': 'svc', ...(authorization !== '' && { authorization }) },
      })
      return await headOf(call, { timeoutMs, stop })
    } catch (error) {
      // An invalid certificate is found only at its use, and is not an HTTP fault.
      const fault = error instanceof HttpFault ? error : undefined
      if (fault !== undefined && fault.why !== 'lost') throw new ApiError(fault.message)
      throw this.#failure((fault?.cause ?? error) as Error, fault?.stale ?? false)
    }
  }

  #failure(error: Error, stale: boolean): ApiError {
    // The authority may have been renewed.
    this.#credentials.forget()
    return new ApiError(bareFaultText(error), { cause: error, stale })
  }
}

function dropIdle(agent: HttpAgent | HttpsAgent | undefined): void {
  for (const sockets of Object.values(agent?.freeSockets ?? {}))
    for (const socket of sockets ?? []) socket.destroy()
}

/** Seconds (RFC 9110, section 10.2.3); Kubernetes writes no dates. */
function retryAfter(value: string | undefined): number {
  if (value === undefined || !/^\d{1,9}$/.test(value)) return 0
  return Math.min(Number(value) * 1000, maxRetryAfterMs)
}
