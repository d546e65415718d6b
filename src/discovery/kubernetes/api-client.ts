import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { isIP } from 'node:net'
import { faultText } from '../../lib/dialer.ts'
import { GatheredBytes } from '../../lib/gathered-bytes.ts'
import { type JsonObject, parseObject, textOf } from '../../lib/json-fields.ts'
import type { ClusterAccess } from './access.ts'
import { Credentials, type Identity } from './credentials.ts'

/** Names and owners of an object, without the rest (Kubernetes API concepts, "metadata-only fetches"). */
export const metadataOnly = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json'

const maxFaultBytes = 64 * 1024
const faultTimeoutMs = 5_000
/** A silent connection is asked for a sign of life after so long, by TCP. */
const keepAliveMs = 30_000
/** A connection that nobody used for so long is closed. */
const idleMs = 60_000
const maxRetryAfterMs = 5 * 60_000

/** A request that was refused, or got no answer. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  /** Of HTTP; 0: there was no answer. */
  readonly status: number
  /** How long the server wants to be left alone; 0: it does not say. */
  readonly retryAfterMs: number
  /** Who was refused, as the server calls us; '' where it does not say. */
  readonly user: string
  /** It went over a kept connection, which the server seems to have closed in that moment. */
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
  /** For the head of the answer, the making of a connection included. */
  readonly timeoutMs: number
  readonly stop: AbortSignal
}

/** GET over HTTP/1.1 to one API server, on connections that are kept. */
export class ApiClient {
  private readonly access: ClusterAccess
  private readonly credentials: Credentials
  private agent: HttpAgent | HttpsAgent | undefined
  private identity: Identity | undefined
  private closed = false

  constructor(access: ClusterAccess, credentialsMs: number) {
    this.access = access
    this.credentials = new Credentials(access, credentialsMs)
  }

  /** Where the API server is, for people. */
  get place(): string {
    const { host, port, secure } = this.access
    return `${secure ? 'https' : 'http'}://${isIP(host) === 6 ? `[${host}]` : host}:${port}`
  }

  /**
   * An answer with status 200, of which the body is to be read or destroyed. `stop` ends it also while it is read. Rejects
   * with an `ApiError`, or an `AccessError` where we cannot say who we are.
   */
  async open(wanted: ApiRequest): Promise<IncomingMessage> {
    const identity = await this.credentials.load()
    const agent = this.agentFor(identity)
    const answer = await this.ask(wanted, identity, agent).catch(error => {
      if (!(error instanceof ApiError && error.stale)) throw error
      // The other ones that were kept may have met the same end.
      dropIdle(agent)
      return this.ask(wanted, identity, agent)
    })
    const { statusCode: status = 0, headers } = answer
    if (status === 200) return answer
    // The token may have been renewed on disk since it was read.
    if (status === 401) this.credentials.forget()
    const body = await readSome(answer)
    const said = textOf(body?.message, 4096)
    throw new ApiError(`HTTP ${status}`, {
      status,
      retryAfterMs: retryAfter(headers['retry-after']),
      user: /\bUser "([^"\s]{1,253})"/.exec(said)?.[1] ?? '',
    })
  }

  /** A small answer as an object. Rejects as `open` does. */
  async object(wanted: ApiRequest, maxBytes: number): Promise<JsonObject> {
    const answer = await this.open(wanted)
    const timer = setTimeout(() => answer.destroy(new Error('it did not end in time')), wanted.timeoutMs).unref()
    try {
      const gathered = new GatheredBytes(maxBytes)
      for await (const piece of answer)
        if (!gathered.add(piece as Buffer)) throw new Error(`it is larger than ${maxBytes} bytes`)
      const object = parseObject(gathered.bytes)
      if (object === undefined) throw new Error('it is not a JSON object')
      return object
    } catch (error) {
      throw new ApiError(`cannot read the answer: ${(error as Error).message}`, {
        status: 200,
        cause: error,
      })
    } finally {
      clearTimeout(timer)
      answer.destroy()
    }
  }

  close(): void {
    this.closed = true
    this.agent?.destroy()
  }

  /** Another one where the authority or our certificate changed. What runs over the old one goes on. */
  private agentFor(identity: Identity): HttpAgent | HttpsAgent {
    const { identity: known } = this
    const isSame =
      known?.ca === identity.ca && known?.certificate === identity.certificate && known?.key === identity.key
    if (this.agent !== undefined && isSame) return this.agent
    dropIdle(this.agent)
    this.identity = identity
    this.agent = this.makeAgent(identity)
    return this.agent
  }

  private makeAgent({ ca, certificate, key }: Identity): HttpAgent | HttpsAgent {
    const { secure, serverName, insecureSkipVerify } = this.access
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

  private async ask(
    wanted: ApiRequest,
    identity: Identity,
    agent: HttpAgent | HttpsAgent,
  ): Promise<IncomingMessage> {
    try {
      return await this.send(wanted, identity, agent)
    } catch (error) {
      if (error instanceof ApiError) throw error
      // A certificate that is none is found only where it is used.
      throw this.failure(error as Error, false)
    }
  }

  private send(
    { path, accept, timeoutMs, stop }: ApiRequest,
    { authorization }: Identity,
    agent: HttpAgent | HttpsAgent,
  ): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      if (this.closed || stop.aborted) throw new ApiError('the request was cancelled')
      const { host, port, secure, basePath } = this.access
      const call = (secure ? requestHttps : requestHttp)({
        agent,
        host,
        port,
        path: `${basePath}${path}`,
        headers: { accept, 'user-agent': 'svc', ...(authorization !== '' && { authorization }) },
      })
      const end = (error: Error) => call.destroy(error)
      const stopped = () => end(new ApiError('the request was cancelled'))
      const timer = setTimeout(() => end(new ApiError(`no answer within ${timeoutMs} ms`)), timeoutMs).unref()
      stop.addEventListener('abort', stopped)
      call.once('response', answer => {
        clearTimeout(timer)
        resolve(answer)
      })
      call.on('error', error =>
        reject(error instanceof ApiError ? error : this.failure(error, call.reusedSocket)),
      )
      call.once('close', () => {
        clearTimeout(timer)
        stop.removeEventListener('abort', stopped)
      })
      call.end()
    })
  }

  private failure(error: Error, stale: boolean): ApiError {
    // A renewed authority explains it perhaps.
    this.credentials.forget()
    const message = faultText(error).replace(/; is its authority in ca_file\?$/, '')
    return new ApiError(message, { cause: error, stale })
  }
}

function dropIdle(agent: HttpAgent | HttpsAgent | undefined): void {
  for (const sockets of Object.values(agent?.freeSockets ?? {}))
    for (const socket of sockets ?? []) socket.destroy()
}

/** What a refusal says (Kubernetes `Status`); undefined where it cannot be read soon. */
async function readSome(answer: IncomingMessage): Promise<JsonObject | undefined> {
  const timer = setTimeout(() => answer.destroy(), faultTimeoutMs).unref()
  const gathered = new GatheredBytes(maxFaultBytes)
  try {
    for await (const piece of answer) if (!gathered.add(piece as Buffer)) return undefined
    return parseObject(gathered.bytes)
  } catch {
    // The status says enough.
    return undefined
  } finally {
    clearTimeout(timer)
  }
}

/** Seconds (RFC 9110, section 10.2.3); Kubernetes writes no dates. */
function retryAfter(value: string | undefined): number {
  if (value === undefined || !/^\d{1,9}$/.test(value)) return 0
  return Math.min(Number(value) * 1000, maxRetryAfterMs)
}
