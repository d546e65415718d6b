import { ConnectError } from '../../../../foundation/lib/dialer.ts'
import { type ProxyTarget, proxyFromUrl } from '../../../../foundation/lib/proxy.ts'
import { type Access, noAccess } from '../scrape-job.ts'
import type { AnswerHead } from './answer-head.ts'
import type { AnswerFault, AnswerReader } from './answer-reader.ts'
import { Connection, type ConnectionOptions } from './connection.ts'
import { Deadline } from './deadline.ts'
import { FetchError, printable } from './fetch-error.ts'
import { freshFiles } from './fresh-files.ts'
import { gunzipInto } from './gunzip.ts'
import { targetLookup } from './limited-lookup.ts'
import { pageBuffers } from './page-buffers.ts'
import { pageAccept } from './page-format.ts'
import { RequestHead } from './request-head.ts'
import { redirectedPlace, type TargetPlace, targetPlace } from './target-place.ts'

export { FetchError } from './fetch-error.ts'

/** When gzip is requested. `remote`: only if the peer is not this host, where it would cost more than it saves. */
export type Compression = 'always' | 'remote' | 'never'

export interface TargetClientOptions {
  /** `http:`, `https:` or `unix:/path/of/socket:/metrics`. */
  readonly url: string
  readonly access: Access
  readonly compression: Compression
  /** Maximum size of the decompressed body. 0 for the overall limit, 128 MiB. */
  readonly bodyBytes: number
  /** Owner of the settings, for messages: `job x`. */
  readonly owner: string
  /** Added to those of `access`; also sent only to the origin. */
  readonly headers?: Readonly<Record<string, string>>
  /** If omitted, a page of metrics is requested, and the timeout is sent to the target. */
  readonly accept?: string
}

export interface Fetched {
  /** Valid until `release`. */
  readonly body: Buffer
  /** '' for none. */
  readonly contentType: string
  /** Size of the response as received, headers included. */
  readonly wireBytes: number
  /** Returns the buffer of the body. */
  release(): void
}

const mostBytes = 128 * 1024 * 1024
const maxRedirects = 10
/** Includes connections to servers that the origin redirects to. */
const maxKept = 2

interface Kept {
  readonly connection: Connection
  /** Its TLS settings, as text. */
  readonly made: string
}

interface Answer {
  readonly head: AnswerHead
  readonly reader: AnswerReader
}

/**
 * Fetches one URL repeatedly, over HTTP/1.1 with kept connections. Credentials, headers and client certificate are only
 * sent to its scheme, host and port, not to redirect targets elsewhere. All errors are `FetchError`s.
 */
export class TargetClient {
  readonly #options: TargetClientOptions
  readonly #place: TargetPlace | string
  readonly #proxy: ProxyTarget | undefined
  readonly #head: RequestHead
  readonly #bodyBytes: number
  readonly #kept = new Map<string, Kept>()
  /** Reason why no request is possible; '' if it is. */
  readonly #fault: string
  /** Sizes of the last body, as received and decompressed. */
  #lastPacked = 0
  #lastBytes = 0
  #closed = false
  /** Whether the origin is this host, or link-local. */
  #isNear = false

  constructor(options: TargetClientOptions) {
    const { url, access, headers = {}, accept = pageAccept, owner, bodyBytes } = options
    this.#options = options
    this.#place = targetPlace(url)
    this.#head = new RequestHead({ access, headers, accept, owner, files: freshFiles })
    this.#bodyBytes = bodyBytes > 0 ? Math.min(bodyBytes, mostBytes) : mostBytes
    const proxy = access.proxyUrl === '' ? undefined : readProxy(access.proxyUrl)
    this.#proxy = typeof proxy === 'string' ? undefined : proxy
    const fault = typeof this.#place === 'string' ? this.#place : this.#head.fault
    this.#fault = fault || (typeof proxy === 'string' ? proxy : '')
  }

  /** `timeoutMs` covers everything, from the name resolution to the last byte. */
  async ask({ timeoutMs, stop }: { timeoutMs: number; stop?: AbortSignal }): Promise<Fetched> {
    if (typeof this.#place === 'string' || this.#fault !== '')
      throw new FetchError('settings', `cannot fetch the URL of ${this.#options.owner}: ${this.#fault}`)
    if (this.#closed) throw failure(this.#place, 'stopped', 'the scrape was cancelled')
    const deadline = new Deadline(timeoutMs, stop)
    try {
      return await this.#follow(this.#place, deadline, timeoutMs)
    } finally {
      deadline.clear()
    }
  }

  /** Closes idle connections, and refuses further requests. A running one continues until its end or `stop`. */
  close(): void {
    this.#closed = true
    for (const { connection } of this.#kept.values())
      connection.close({ type: 'stopped', cause: 'the scrape was cancelled' })
    this.#kept.clear()
  }

  async #follow(origin: TargetPlace, deadline: Deadline, timeoutMs: number): Promise<Fetched> {
    let place = origin
    let isOrigin = true
    for (let redirects = 0; ; redirects++) {
      const answer = await this.#exchange(place, isOrigin, deadline, timeoutMs)
      if (answer.head.status === 200) return this.#unpack(place, answer, deadline, timeoutMs)
      const { location } = answer.head
      const isRedirect = redirectStatuses.has(answer.head.status) && location !== ''
      if (!isRedirect || !this.#options.access.followRedirects) throw this.#refusal(place, answer, isOrigin)
      answer.reader.release()
      const next = redirectedPlace(place, location)
      if (typeof next === 'string')
        throw failure(place, 'redirect', `invalid redirect (HTTP ${answer.head.status}): ${next}`)
      if (redirects === maxRedirects)
        throw failure(origin, 'redirect', `more than ${maxRedirects} redirects, the last to ${next.shown}`)
      // After a redirect elsewhere the origin is not trusted again, even if redirected back.
      if (next.origin !== origin.origin) isOrigin = false
      place = next
    }
  }

  async #exchange(
    place: TargetPlace,
    isOrigin: boolean,
    deadline: Deadline,
    timeoutMs: number,
  ): Promise<Answer> {
    const late = (what: string): FetchError => ended(place, deadline, timeoutMs, what)
    let own = isOrigin ? this.#head.own(place.user) : this.#head.strange
    if (typeof own !== 'string') {
      const read = await deadline.wait(own)
      if (read === undefined) throw late('while reading the credentials file')
      own = read
    }
    const made = place.secure ? await deadline.wait(this.#tlsState(isOrigin)) : ''
    if (made === undefined) throw late('while reading the files of tls_config')
    const key = `${isOrigin} ${place.origin}`
    let connection = this.#takeKept(key, made)
    for (;;) {
      connection ??= await this.#dial(place, isOrigin, deadline, timeoutMs)
      this.#checkReach(place, isOrigin, connection)
      const request = this.#request(place, isOrigin, own, connection, timeoutMs)
      const limits = { bodyBytes: this.#bodyBytes, expectedBytes: withGrowth(this.#lastPacked) }
      const { reader, done } = connection.exchange(request, limits, pageBuffers)
      const asked = connection
      deadline.cancel = () => asked.close({ type: 'timeout', cause: '' })
      if (deadline.ended !== '') deadline.cancel()
      const fault = await done
      deadline.cancel = undefined
      if (deadline.ended !== '') {
        reader.release()
        throw late(progress(reader))
      }
      // A server may close an idle connection just as we use it.
      const isStale = fault === undefined ? isFarewell(reader.head) : reader.wireBytes === 0
      if (isStale && connection.isUsed) {
        reader.release()
        connection.close({ type: 'broken', cause: 'the connection was stale' })
        connection = undefined
        continue
      }
      if (fault !== undefined || reader.head === undefined) throw this.#fail(place, fault)
      if (connection.lost === '') this.#keep(key, { connection, made })
      return { head: reader.head, reader }
    }
  }

  /**
   * A remote server that redirects to loopback or a link-local address means its own. Services at that address here do
   * not have its metrics, and it must not be able to make us fetch from them.
   */
  #checkReach(place: TargetPlace, isOrigin: boolean, connection: Connection): void {
    if (this.#proxy !== undefined) return
    if (isOrigin) this.#isNear = connection.isOwn || connection.isNear
    else if (connection.isNear && !this.#isNear) {
      connection.close({ type: 'stopped', cause: 'redirect not allowed' })
      throw failure(
        place,
        'redirect',
        `a remote target redirects ${this.#options.owner} to an address of this host or a link-local one; set the right URL in ${this.#options.owner}`,
      )
    }
  }

  #takeKept(key: string, made: string): Connection | undefined {
    const kept = this.#kept.get(key)
    if (kept === undefined) return undefined
    this.#kept.delete(key)
    kept.connection.onLost = undefined
    if (kept.made === made) return kept.connection
    // The certificate was renewed.
    kept.connection.close({ type: 'stopped', cause: 'the certificate changed' })
    return undefined
  }

  #keep(key: string, kept: Kept): void {
    const { connection } = kept
    const [oldest] = this.#kept.keys()
    const isFull = this.#closed || this.#kept.has(key)
    if (isFull) {
      connection.close({ type: 'stopped', cause: 'too many idle connections' })
      return
    }
    if (this.#kept.size >= maxKept && oldest !== undefined)
      this.#kept.get(oldest)?.connection.close({ type: 'stopped', cause: 'too many idle connections' })
    this.#kept.set(key, kept)
    connection.onLost = () => {
      if (this.#kept.get(key) === kept) this.#kept.delete(key)
    }
  }

  async #dial(
    place: TargetPlace,
    isOrigin: boolean,
    deadline: Deadline,
    timeoutMs: number,
  ): Promise<Connection> {
    const dialing = Connection.dial(this.#connectionOptions(place, isOrigin, timeoutMs))
    try {
      const connection = await deadline.wait(dialing.done, dialing.stop, late =>
        late.close({ type: 'timeout', cause: '' }),
      )
      if (connection !== undefined) return connection
    } catch (error) {
      if (deadline.ended === '') throw dialFailure(place, error)
    }
    throw ended(place, deadline, timeoutMs, 'while connecting')
  }

  #connectionOptions(place: TargetPlace, isOrigin: boolean, timeoutMs: number): ConnectionOptions {
    const { tls } = this.#options.access
    const proxy = place.socketPath === '' ? this.#proxy : undefined
    const common = { lookup: targetLookup, connectTimeoutMs: timeoutMs + 1000 }
    // Without TLS, the proxy is asked for the page itself: most allow tunnels only to a few ports.
    if (proxy !== undefined && !place.secure)
      return { ...common, host: proxy.host, port: proxy.port, tls: proxy.secure ? noAccess.tls : undefined }
    return {
      ...common,
      host: place.host,
      port: place.port,
      socketPath: place.socketPath,
      tls: place.secure
        ? isOrigin
          ? tls
          : { ...tls, certFile: '', keyFile: '', serverName: '' }
        : undefined,
      proxy: proxy && (() => proxy),
    }
  }

  /** Changes when the content of a TLS file changes. */
  async #tlsState(isOrigin: boolean): Promise<string> {
    const { caFile, certFile, keyFile } = this.#options.access.tls
    const paths = (isOrigin ? [caFile, certFile, keyFile] : [caFile]).filter(path => path !== '')
    if (paths.length === 0) return ''
    // Unreadable files are reported by the connection attempt.
    const texts = await Promise.all(
      paths.map(path => freshFiles.read(path).catch((error: Error) => error.message)),
    )
    return texts.join('\n')
  }

  #request(
    place: TargetPlace,
    isOrigin: boolean,
    own: string,
    connection: Connection,
    timeoutMs: number,
  ): string {
    const { compression, accept } = this.#options
    const writes = (name: string): boolean => isOrigin && this.#head.writes(name)
    const isProxied = this.#proxy !== undefined && place.socketPath === ''
    const gzip = compression === 'always' || (compression === 'remote' && (isProxied || !connection.isOwn))
    let text = `GET ${isProxied && !place.secure ? absolute(place) : place.path} HTTP/1.1\r\n`
    if (!writes('host')) text += `Host: ${place.hostField}\r\n`
    text += own
    if (!writes('accept-encoding'))
      text += gzip ? 'Accept-Encoding: gzip\r\n' : 'Accept-Encoding: identity\r\n'
    if (accept === undefined) text += `X-Prometheus-Scrape-Timeout-Seconds: ${timeoutMs / 1000}\r\n`
    if (isProxied && !place.secure && this.#proxy?.authorization)
      text += `Proxy-Authorization: ${this.#proxy.authorization}\r\n`
    return `${text}\r\n`
  }

  async #unpack(
    place: TargetPlace,
    { head, reader }: Answer,
    deadline: Deadline,
    timeoutMs: number,
  ): Promise<Fetched> {
    const { wireBytes } = reader
    const { encoding, contentType } = head
    if (encoding === '' || encoding === 'identity') {
      this.#lastPacked = reader.bodyBytes
      return { body: reader.body, contentType, wireBytes, release: () => reader.release() }
    }
    if (encoding !== 'gzip' && encoding !== 'x-gzip') {
      reader.release()
      throw failure(
        place,
        'bad_encoding',
        `the body is compressed with ${JSON.stringify(printable(encoding, 32))}, which svc did not request`,
      )
    }
    const limits = { bodyBytes: this.#bodyBytes, expectedBytes: withGrowth(this.#lastBytes) }
    const unpacking = gunzipInto(reader.body, limits, pageBuffers)
    deadline.cancel = unpacking.stop
    if (deadline.ended !== '') unpacking.stop()
    const end = await unpacking.done
    deadline.cancel = undefined
    const packedBytes = reader.bodyBytes
    reader.release()
    if ('cause' in end) {
      if (deadline.ended !== '') throw ended(place, deadline, timeoutMs, 'while decompressing the body')
      throw this.#fail(place, end)
    }
    this.#lastPacked = packedBytes
    this.#lastBytes = end.bytes
    return {
      body: end.lease.buffer.subarray(0, end.bytes),
      contentType,
      wireBytes,
      release: () => end.lease.release(),
    }
  }

  #fail(place: TargetPlace, fault: AnswerFault | undefined): FetchError {
    const { type, cause } = fault ?? { type: 'broken', cause: 'no response' }
    const hint =
      type === 'body_too_large'
        ? `; body_size_limit of ${this.#options.owner} is ${this.#bodyBytes} bytes`
        : ''
    return failure(place, type, cause + hint)
  }

  #refusal(place: TargetPlace, { head, reader }: Answer, isOrigin: boolean): FetchError {
    const { status, reason, location } = head
    // Content of servers that others redirected us to must not appear in our messages.
    const excerpt = isOrigin ? excerptOf(head, reader.body) : ''
    reader.release()
    if (status === 401 || status === 403) this.#head.forget()
    const name = `HTTP ${status}${reason === '' ? '' : ` ${printable(reason, 60)}`}`
    const { owner } = this.#options
    if (redirectStatuses.has(status) && location !== '')
      return failure(
        place,
        'redirect',
        `${name}: redirect not followed, as follow_redirects of ${owner} is false`,
        status,
      )
    return failure(place, 'http_status', `${name}${excerpt}${this.#hint(status, isOrigin)}`, status)
  }

  #hint(status: number, isOrigin: boolean): string {
    const { access, owner } = this.#options
    if (status === 407) return `: the proxy rejected the credentials; check proxy_url of ${owner}`
    if (status === 404) return `: check metrics_path of ${owner}`
    if (status !== 401 && status !== 403) return ''
    if (!isOrigin && this.#head.isPrivate)
      return `: svc sends credentials only to the target, not to redirects; set this URL in ${owner}`
    if (access.authorization) return `: the target rejected the credentials; check authorization of ${owner}`
    if (access.basic) return `: the target rejected the credentials; check basic_auth of ${owner}`
    return `: the target requires credentials; set basic_auth or authorization in ${owner}`
  }
}

const redirectStatuses = new Set([301, 302, 303, 307, 308])

/** Pages grow gradually. */
function withGrowth(bytes: number): number {
  return bytes + (bytes >> 4)
}

/** Not a response: the server announces that it closes an idle connection (RFC 9110, section 15.5.9). */
function isFarewell(head: AnswerHead | undefined): boolean {
  return head?.status === 408 && !head.keepAlive
}

/** RFC 9112, section 3.2.2. */
function absolute({ hostField, path }: TargetPlace): string {
  return `http://${hostField}${path}`
}

function readProxy(url: string): ProxyTarget | string {
  try {
    return proxyFromUrl(url, 'proxy_url')
  } catch (error) {
    return (error as Error).message
  }
}

function progress({ head, wireBytes, bodyBytes }: AnswerReader): string {
  if (head !== undefined) return `while reading the body (${bodyBytes} bytes so far)`
  return wireBytes === 0 ? 'without a response' : 'while reading the response headers'
}

function failure(place: TargetPlace, type: FetchError['type'], cause: string, status = 0): FetchError {
  return new FetchError(type, `cannot fetch ${place.shown}: ${cause}`, { status })
}

function ended(place: TargetPlace, { ended }: Deadline, timeoutMs: number, what: string): FetchError {
  if (ended === 'stopped') return failure(place, 'stopped', 'the scrape was cancelled')
  return failure(place, 'timeout', `timed out after ${timeoutMs} ms ${what}`)
}

function dialFailure(place: TargetPlace, error: unknown): FetchError {
  const type = error instanceof ConnectError ? error.type : 'connect'
  return new FetchError(type, `cannot fetch ${place.shown}: ${(error as Error).message}`, { cause: error })
}

/** The target's description of its error, if it is one line of text. */
function excerptOf({ encoding, contentType }: AnswerHead, body: Buffer): string {
  if (encoding !== '' || !/^text\/plain\b/i.test(contentType)) return ''
  const line = printable(body.toString('utf8', 0, 1024).trim().split('\n', 1)[0] ?? '', 160)
  return line === '' ? '' : ` (${JSON.stringify(line)})`
}
