import { type Agent, type IncomingHttpHeaders, type RequestOptions, request } from 'node:http'
import { request as secureRequest } from 'node:https'
import { connect, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { createLogger } from '../../src/foundation/lib/logger.ts'
import { peerUser } from '../../src/kernel/peer-user.ts'
import { type Answer, json } from '../../src/view/api/answer.ts'
import type { ApiRequest, Operation } from '../../src/view/api/operation.ts'
import { type Api, type ApiOptions, type ApiSettings, startApi } from '../../src/view/api/server.ts'

/** Nothing on but the port, on loopback. */
export const settings: ApiSettings = {
  listen: '127.0.0.1:0',
  debug: false,
  auth: { enabled: false, bearer_token: '', bearer_tokens: [], exempt: [] },
  admin: { allow_remote: false },
  // As requests name it that tests write by hand.
  allowed_hosts: ['h'],
  rate_limit: { enabled: false, requests_per_second: 100 },
  cors: { enabled: false, allowed_origins: [] },
  tls: { enabled: false, cert_file: '', key_file: '', client_ca_file: '' },
  admin_socket: '',
}

/** Requests that wait for the test to answer them. */
export class Waiting {
  readonly all: { readonly request: ApiRequest; answer(answer: Answer): void; fail(error: Error): void }[] =
    []
  #told: (() => void)[] = []

  hold(request: ApiRequest): Promise<Answer> {
    return new Promise((answer, fail) => {
      this.all.push({ request, answer, fail })
      for (const tell of this.#told.splice(0)) tell()
    })
  }

  /** Resolves when so many have come. */
  async come(count: number): Promise<void> {
    while (this.all.length < count) await new Promise<void>(resolve => this.#told.push(resolve))
  }

  /** Answers all of them. */
  release(): void {
    for (const { answer } of this.all.splice(0)) answer(json(200, { done: true }))
  }
}

/** One of each kind of operation. What waits is held in `waiting`. */
export function operations(waiting: Waiting = new Waiting()): Operation[] {
  const ok = json(200, { status: 'ok' })
  const of = (path: string, more: Partial<Operation> = {}): Operation => ({
    method: 'GET',
    path,
    id: path,
    tag: 'status',
    summary: '',
    access: 'public',
    outcomes: { 200: { description: '', content: { 'application/json': undefined } } },
    handle: () => ok,
    ...more,
  })
  const admin = { method: 'POST', tag: 'admin', access: 'private' } as const
  const debug = { tag: 'debug', access: 'private', debug: true } as const
  const seconds = { name: 'seconds', description: '', minimum: 1, maximum: 60, fallback: 30 }
  return [
    ...['/healthz', '/livez', '/ready', '/readyz'].map(path => of(path, { tag: 'probes', access: 'open' })),
    of('/metrics', { tag: 'telemetry' }),
    of('/status'),
    of('/echo', {
      handle: ({ path, parameters, headers }) =>
        json(200, { path, parameters, accept: headers.accept ?? null }),
    }),
    of('/page', { handle: () => json(200, 'x'.repeat(10_000)) }),
    of('/large', { handle: () => json(200, 'x'.repeat(32 << 20)) }),
    of('/throws', {
      handle() {
        throw new Error('secret /internal/path')
      },
    }),
    of('/rejects', { handle: () => Promise.reject(new Error('secret /internal/path')) }),
    of('/unsendable', { handle: () => json(200, {}, { 'X-Bad': 'a\nb' }) }),
    of('/admin/act', admin),
    of('/admin/wait', { ...admin, handle: request => waiting.hold(request) }),
    of('/debug/vars', debug),
    of('/debug/take', {
      ...debug,
      costly: true,
      parameters: [seconds],
      outcomes: { 200: { description: '', content: { 'application/octet-stream': undefined } } },
      handle: request => waiting.hold(request),
    }),
  ]
}

export interface TestServer {
  readonly api: Api
  readonly waiting: Waiting
  readonly log: string[]
}

/** Starts a server that ends with the test. */
export async function serve(
  t: Pick<TestContext, 'after'>,
  changed: Partial<ApiSettings> = {},
  options: Partial<Pick<ApiOptions, 'limits' | 'observe' | 'operations' | 'browserKey'>> = {},
): Promise<TestServer> {
  const waiting = new Waiting()
  const log: string[] = []
  const api = await startApi({
    settings: { ...settings, ...changed },
    operations: operations(waiting),
    log: createLogger({ level: 'debug', format: 'json', write: line => log.push(line) }),
    peerUser,
    ...options,
  })
  t.after(() => api.close())
  return { api, waiting, log }
}

export interface Reply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

export interface Ask {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** 127.0.0.1 when left out. */
  readonly host?: string
  /** Instead of a port. */
  readonly socketPath?: string
  /** With TLS, by these. */
  readonly tls?: { readonly ca: string; readonly cert?: string; readonly key?: string }
  /** Kept connections; a new one when left out. */
  readonly agent?: Agent
}

/** One request and its whole answer. Rejects when the connection ends before. */
export function ask(port: number, path: string, asked: Ask = {}): Promise<Reply> {
  const { method = 'GET', headers = {}, body, host = '127.0.0.1', socketPath, tls, agent = false } = asked
  return new Promise((resolve, reject) => {
    const options: RequestOptions = { method, path, headers, agent }
    if (socketPath === undefined) Object.assign(options, { host, port })
    else options.socketPath = socketPath
    const sent = (tls ? secureRequest : request)({ ...options, ...tls }, reply => {
      const chunks: Buffer[] = []
      reply.on('data', (chunk: Buffer) => chunks.push(chunk))
      reply.on('error', reject)
      reply.on('end', () =>
        resolve({
          status: reply.statusCode!,
          headers: reply.headers,
          text: Buffer.concat(chunks).toString(),
        }),
      )
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

/** A connection that was made, to write to by hand. Its errors are its end. */
export function open(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.off('error', reject)
      socket.on('error', () => undefined)
      resolve(socket)
    })
    socket.once('error', reject)
  })
}

/** Sends bytes on a connection of its own and resolves with all that comes back, when the server ends it. */
export async function raw(port: number, bytes: string): Promise<string> {
  const socket = await open(port)
  socket.write(bytes)
  return readAll(socket)
}

export function readAll(socket: Socket): Promise<string> {
  return new Promise(resolve => {
    let text = ''
    socket.on('data', chunk => {
      text += chunk
    })
    socket.on('end', () => socket.end())
    socket.on('close', () => resolve(text))
  })
}
