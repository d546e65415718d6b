// How commands of this host reach the running agent: its admin socket first, which needs no token, then its URL.

import { X509Certificate } from 'node:crypto'
import { lstatSync, readFileSync, statSync } from 'node:fs'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { connect, isIP, type Socket } from 'node:net'
import { dirname, resolve } from 'node:path'
import { connect as connectTls } from 'node:tls'
import type { Config } from '../../config/index.ts'
import { bareHost, hostPort } from '../../foundation/lib/host-port.ts'
import { type HttpFault, headOf, isNoHttp, startOf } from '../../foundation/lib/http-answer.ts'
import { LineSplitter } from '../../foundation/lib/line-splitter.ts'
import { parseListenAddress } from '../../foundation/lib/listen-address.ts'
import { checkOwnDirectory, isTrusted } from '../../foundation/lib/own-directory.ts'
import { listeningUsers, portHolder } from '../../foundation/lib/port-holder.ts'
import { ExitCode, exitCodeOf, StartError } from '../../foundation/lib/start-error.ts'
import { terminalText } from '../../foundation/lib/terminal-text.ts'

export interface AgentAnswer {
  readonly status: number
  readonly body: Buffer
  /** The answer exceeded the limit. */
  readonly cut: boolean
}

export interface Bounds {
  /** Time limit for the whole answer. */
  readonly timeoutMs: number
  /** Bytes to read at most. */
  readonly mostBytes: number
}

/** Receives a line. Reading continues when it is done. */
export type OnLine = (line: string) => void | Promise<void>

/** How a followed answer ended. */
export interface Followed {
  readonly status: number
  /** The first bytes of an error answer; otherwise empty. */
  readonly body: Buffer
}

/** A running agent. */
export interface AgentClient {
  /** `unix:/run/svc/svc.sock` or a URL. */
  readonly address: string
  /** Port of this host on which it should listen; undefined if it has none, or a URL was given. */
  readonly port?: number
  /** Requests a page. Rejects with a readable `Error` if no answer comes. */
  get(path: string, bounds: Bounds): Promise<AgentAnswer>
  /**
   * Reads a followed answer line by line. Resolves when the agent has ended it, has gone, or `signal` was aborted;
   * rejects with a readable `Error` if no answer begins, and with errors of `onLine`. Lines over 8 MiB are skipped.
   */
  follow(path: string, onLine: OnLine, signal: AbortSignal): Promise<Followed>
}

/** A failed attempt. */
export interface Attempt {
  readonly address: string
  readonly why: string
  /** Access denied to this user. */
  readonly denied?: boolean
}

export interface FoundAgent {
  /** Undefined: no agent answers. */
  readonly client: AgentClient | undefined
  /** Failed attempts. */
  readonly tried: readonly Attempt[]
}

export interface FindOptions {
  /** From the configuration that the agent is expected to have. */
  readonly settings: Config['self_telemetry']
  /** `--url`: only this is tried. */
  readonly url?: string | undefined
  /** Uses `SVC_TOKEN` and `SVC_URL`. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Time limit of each attempt. */
  readonly timeoutMs?: number
}

/**
 * Finds the agent. Without a URL, the configured token is used unless SVC_TOKEN is set, over plain text only to
 * processes of root and of this user; a given URL gets only SVC_TOKEN, because it may be another server's. Throws a
 * `StartError` for an invalid URL.
 */
export async function findAgent({ settings, url, env, timeoutMs = 3000 }: FindOptions): Promise<FoundAgent> {
  const given = url ?? (env.SVC_URL || undefined)
  const ways = given === undefined ? waysOf(settings, env.SVC_TOKEN) : [wayTo(given, settings, env.SVC_TOKEN)]
  const tried: Attempt[] = []
  for (const way of ways) {
    if ('why' in way) {
      tried.push(way)
      continue
    }
    try {
      // Any status counts: an unhealthy agent is the one to query.
      await ask(way, '/healthz', { timeoutMs, mostBytes: 4096 })
      const { address, port } = way
      const get = (path: string, bounds: Bounds) => ask(way, path, bounds)
      const follow = (path: string, onLine: OnLine, signal: AbortSignal) =>
        followed(way, path, onLine, signal)
      return { client: { address, get, follow, ...(port !== undefined && { port }) }, tried }
    } catch (error) {
      // Its causes repeat the same as system errors.
      const why = error instanceof Error ? error.message : String(error)
      tried.push({ address: way.address, why, denied: exitCodeOf(error) === ExitCode.permission })
    }
  }
  return { client: undefined, tried }
}

interface Way {
  readonly address: string
  readonly port?: number
  readonly host: string
  readonly path: string
  readonly token: string | undefined
  /** Hint if the connection breaks; '' for none. */
  readonly hint: string
  open(timeoutMs: number): Promise<Socket>
}

function waysOf(settings: Config['self_telemetry'], token: string | undefined): (Way | Attempt)[] {
  const { enabled, listen, admin_socket, auth, tls } = settings
  const at = parseListenAddress(listen)
  const ways: (Way | Attempt)[] = []
  if (admin_socket !== '') {
    ways.push({
      address: `unix:${admin_socket}`,
      ...(enabled && at?.port && { port: at.port }),
      host: 'localhost',
      path: '',
      token: undefined,
      hint: '',
      open: timeoutMs => connected(connect(admin_socket), 'connect', timeoutMs),
    })
  }
  if (!enabled)
    return [...ways, { address: listen, why: 'the management API is off: self_telemetry.enabled is false' }]
  if (at === undefined || at.port === 0)
    return [...ways, { address: listen, why: 'the configuration has no fixed port: pass the URL with --url' }]
  const { host = '0.0.0.0', port } = at
  const local = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  const own = auth.enabled ? [auth.bearer_token, ...auth.bearer_tokens].find(each => each !== '') : undefined
  const address = `${tls.enabled ? 'https' : 'http'}://${hostPort(local, port)}`
  // Without TLS the server is not authenticated, and while the agent is down any user of this host may listen there.
  const stranger = own !== undefined && !token && !tls.enabled ? strangerAt(port, local) : ''
  if (stranger !== '')
    return [
      ...ways,
      { address, why: `${stranger} is listening there; no token was sent: set SVC_TOKEN to send one` },
    ]
  return [...ways, { ...wayTo(address, settings, token || own), port }]
}

/**
 * The user who listens on a port of an address of this host, if the socket was visibly created or is held by a user
 * other than root and this one; otherwise ''. A user can make a program of root hold the user's socket.
 */
export function strangerAt(port: number, host: string): string {
  const holder = portHolder(port)
  const holding = holder === undefined ? undefined : effectiveUser(holder.pid)
  const user = [...listeningUsers(port, host), holding].find(each => each !== undefined && !isTrusted(each))
  if (user === undefined) return ''
  const { pid, name } = holder ?? { pid: 'unknown', name: 'a process' }
  return `${name} of user ${user} (pid ${pid})`
}

/**
 * The owner of this socket, if a user other than root and this one could have created it; otherwise ''. A directory
 * that root gave to a user, as the package does to svc's, belongs to that user.
 */
export function strangerAtSocket(path: string): string {
  const directory = dirname(resolve(path))
  try {
    const { uid } = lstatSync(path)
    if (isTrusted(uid)) return ''
    try {
      checkOwnDirectory(dirname(directory))
      const above = statSync(directory)
      if (above.uid === uid && (above.mode & 0o022) === 0) return ''
    } catch {
      // Any user can have created it in a shared directory.
    }
    return `a process of user ${uid}`
  } catch {
    return '' // gone: no server answers there any more
  }
}

/** From /proc/PID/status: unlike the owner of /proc/PID, no process can change it. */
function effectiveUser(pid: number): number | undefined {
  try {
    const user = /^Uid:\s*\d+\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]
    return user === undefined ? undefined : Number(user)
  } catch {
    return undefined // ended, so it no longer listens
  }
}

function wayTo(text: string, { tls }: Config['self_telemetry'], token: string | undefined): Way {
  const usage = (why: string) => new StartError(`cannot use the URL of the agent: ${why}`, ExitCode.usage)
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text))
    throw usage('use the form http://127.0.0.1:19090 or https://host:19090')
  const url = new URL(text)
  if (url.username !== '' || url.password !== '')
    throw usage('it contains a user name or password; set the token in SVC_TOKEN')
  const host = bareHost(url.hostname)
  const secure = url.protocol === 'https:'
  const port = Number(url.port || (secure ? 443 : 80))
  return {
    address: url.origin,
    host: url.host,
    path: url.pathname.replace(/\/+$/, ''),
    token: token || undefined,
    // A server requests it in the handshake, and reports a missing one only afterwards.
    hint: secure && tls.client_ca_file !== '' ? clientCertificate : '',
    open: timeoutMs =>
      secure
        ? openTls(host, port, tls.cert_file, timeoutMs)
        : connected(connect({ host, port }), 'connect', timeoutMs),
  }
}

const clientCertificate =
  ' (clients need a certificate: self_telemetry.tls.client_ca_file; use the admin socket)'

/**
 * Trusts the system's authorities, and the exact certificate of the configuration: its key proves that the server is
 * the agent, whatever its name or issuer.
 */
async function openTls(
  host: string,
  port: number,
  ownCertificate: string,
  timeoutMs: number,
): Promise<Socket> {
  const servername = isIP(host) === 0 ? { servername: host } : {}
  // Verified below, before any byte is sent.
  const tls = connectTls({ host, port, ...servername, rejectUnauthorized: false })
  const socket = await connected(tls, 'secureConnect', timeoutMs)
  const own = tls.getPeerX509Certificate()?.fingerprint512 === fingerprintOf(ownCertificate)
  if (tls.authorized || own) return socket
  socket.destroy()
  const cause = String(tls.authorizationError)
  throw new Error(
    `its certificate is neither trusted (${cause}) nor that of self_telemetry.tls.cert_file; no token was sent`,
  )
}

function fingerprintOf(file: string): string {
  try {
    return new X509Certificate(readFileSync(file)).fingerprint512
  } catch {
    return '' // none configured, or not readable by this user: only the system's authorities count
  }
}

function connected<S extends Socket>(
  socket: S,
  event: 'connect' | 'secureConnect',
  timeoutMs: number,
): Promise<S> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => socket.destroy(new Error(noAnswer(timeoutMs))), timeoutMs)
    const failed = (error: Error) => {
      clearTimeout(late)
      reject(new Error(causeOf(error), { cause: error }))
    }
    socket.once('error', failed)
    socket.once(event, () => {
      clearTimeout(late)
      socket.off('error', failed)
      resolve(socket)
    })
  })
}

async function ask(way: Way, path: string, { timeoutMs, mostBytes }: Bounds): Promise<AgentAnswer> {
  const endMs = performance.now() + timeoutMs
  const leftMs = () => Math.max(1, endMs - performance.now())
  const socket = await way.open(timeoutMs)
  try {
    const answer = await headOf(requestOn(socket, way, path), { timeoutMs: leftMs() })
    const { bytes: body, cut } = await startOf(answer, mostBytes, leftMs())
    return { status: answer.statusCode!, body, cut }
  } catch (error) {
    throw agentError(error as HttpFault, way, timeoutMs)
  } finally {
    socket.destroy()
  }
}

function agentError(fault: HttpFault, way: Way, timeoutMs: number): Error {
  if (fault.why === 'late') return new Error(noAnswer(timeoutMs), { cause: fault })
  const error = (fault.cause ?? fault) as NodeJS.ErrnoException
  const broke = error.code === 'ECONNRESET' || error.code?.startsWith('ERR_SSL')
  return new Error(causeOf(error) + (broke ? way.hint : ''), { cause: error })
}

function requestOn(socket: Socket, { host, path: base, token }: Way, path: string): ClientRequest {
  const headers = { Host: host, ...(token && { Authorization: `Bearer ${token}` }) }
  return request({ path: `${base}${path}`, headers, createConnection: () => socket })
}

const mostLineBytes = 8 << 20
const mostErrorBytes = 64 << 10
/** For the head of a followed answer: the agent may have to collect data first. */
const firstAnswerMs = 15_000

async function followed(way: Way, path: string, onLine: OnLine, signal: AbortSignal): Promise<Followed> {
  const nothing = Buffer.alloc(0)
  if (signal.aborted) return { status: 200, body: nothing }
  const socket = await way.open(firstAnswerMs)
  const leave = () => socket.destroy()
  signal.addEventListener('abort', leave)
  if (signal.aborted) leave()
  try {
    const response = await headOf(requestOn(socket, way, path), { timeoutMs: firstAnswerMs }).catch(fault => {
      throw agentError(fault, way, firstAnswerMs)
    })
    const status = response.statusCode!
    if (status !== 200) return { status, body: await firstBytes(response) }
    const splitter = new LineSplitter(mostLineBytes)
    for await (const chunk of unbroken(response))
      for (const line of splitter.lines(chunk)) {
        if (signal.aborted) break
        await onLine(line.toString())
      }
    return { status, body: nothing }
  } catch (error) {
    if (signal.aborted) return { status: 200, body: nothing }
    throw error
  } finally {
    signal.removeEventListener('abort', leave)
    socket.destroy()
  }
}

/** The chunks of an answer. A broken connection ends them: the agent has gone. */
async function* unbroken(response: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of response) yield chunk as Buffer
  } catch {
    // Complete lines so far are the result.
  }
}

async function firstBytes(response: IncomingMessage): Promise<Buffer> {
  try {
    return (await startOf(response, mostErrorBytes)).bytes
  } catch {
    return Buffer.alloc(0) // the agent has gone
  }
}

function noAnswer(timeoutMs: number): string {
  return `no answer within ${timeoutMs / 1000} s`
}

function causeOf(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'ENOENT':
      return 'no such socket: no agent is running, or it uses another path'
    case 'ECONNREFUSED':
      return 'nothing is listening there'
    case 'EACCES':
    case 'EPERM':
      return 'permission denied: run as root'
    default:
      return isNoHttp(error) ? 'the answer is not HTTP' : error.message
  }
}

/** `ADDRESS: why` for all failed attempts. */
export function waysText(tried: readonly Attempt[]): string {
  // The name of a listening process is foreign text.
  return terminalText(tried.map(({ address, why }) => `${address}: ${why}`).join('; '), true)
}

/** Whether an agent without tokens denied this client; its answer has the hint. */
export function isForOthers({ status, body }: Pick<AgentAnswer, 'status' | 'body'>): boolean {
  return status === 401 && body.includes('"hint"')
}
