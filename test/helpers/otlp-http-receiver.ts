// A real OTLP/HTTP receiver on node:http, the counterpart of otlp-receiver.ts.
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { gunzipSync, gzipSync, zstdDecompressSync } from 'node:zlib'
import type protobuf from 'protobufjs'
import { type Signal, signals } from '../../src/foundation/model/signal.ts'
import { type Line, linesOf, pointsOf, responseObject, responseOf } from './otlp-items.ts'
import { requestType } from './otlp-proto.ts'

/** What the receiver does with a request. */
export type HttpAnswer =
  /** Takes it; see `Answer` of otlp-receiver.ts. `gzip` compresses the answer. */
  | {
      kind: 'ok'
      status?: number
      rejected?: number
      message?: string
      padding?: number
      headers?: Record<string, string>
      gzip?: boolean
    }
  /** Any status, with a google.rpc.Status of the request's form as its body where there is a message, or `body`. */
  | {
      kind: 'refuse'
      status: number
      message?: string
      headers?: Record<string, string>
      body?: string | Uint8Array
    }
  /** Reads it and never answers; with `headers` the answer's head comes, and no end. */
  | { kind: 'stall'; headers?: boolean }
  /** Cuts the connection by a reset; with `headers` after the answer's head. */
  | { kind: 'cut'; headers?: boolean }

export interface HttpReceived {
  /** Undefined where the path is none of OTLP's. */
  readonly signal: Signal | undefined
  readonly path: string
  readonly items: number
  readonly headers: IncomingHttpHeaders
  /** Bytes on the wire. */
  readonly body: Buffer
}

export interface HttpReceiverOptions {
  readonly port?: number
  /** PEM texts. With `clientCa` a client must show a certificate. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly clientCa?: string }
  /** Keeps decoded items in `lines`. */
  readonly keep?: boolean
  /** The signal of requests to other paths; decides how they are read. */
  readonly signal?: Signal
}

export interface HttpReceiver {
  readonly port: number
  /** A URL without a path. */
  readonly endpoint: string
  /** Items that were taken, of each signal; all requests; all connections. */
  readonly counts: Record<Signal, number> & { requests: number; connections: number }
  readonly requests: HttpReceived[]
  /** Decoded items that were taken, in order; see `HttpReceiverOptions.keep`. */
  readonly lines: Line[]
  answer: (request: HttpReceived) => HttpAnswer | Promise<HttpAnswer>
  /** Resets every connection. */
  cut(): void
  close(): Promise<void>
}

const paths: Readonly<Record<string, Signal>> = {
  '/v1/traces': 'traces',
  '/v1/metrics': 'metrics',
  '/v1/logs': 'logs',
  '/v1development/profiles': 'profiles',
}

export async function startHttpReceiver(options: HttpReceiverOptions = {}): Promise<HttpReceiver> {
  const sockets = new Set<Socket>()
  const { tls } = options
  const handler = (request: IncomingMessage, response: ServerResponse): void => {
    take(request, response).catch(error => {
      if (!response.headersSent) response.writeHead(400, { 'content-type': 'text/plain' })
      response.end(String(error))
    })
  }
  const server = tls
    ? createTlsServer({
        ...tls,
        ...(tls.clientCa && { ca: tls.clientCa, requestCert: true, rejectUnauthorized: true }),
      })
    : createServer()
  server.on('request', handler)
  server.on('connection', (socket: Socket) => {
    receiver.counts.connections++
    sockets.add(socket)
    socket.on('error', () => {}) // cut on purpose, or by the client
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port ?? 0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? ''
    const { headers } = request
    const body = await bodyOf(request)
    const signal = signals.find(signal => paths[path] === signal) ?? options.signal
    const json = headers['content-type'] === 'application/json'
    const found = signal ? linesOf(signal, decode(signal, unpacked(headers, body), json)) : []
    const items = pointsOf(found)
    const received: HttpReceived = { signal, path, items, headers, body }
    receiver.counts.requests++
    receiver.requests.push(received)
    const answer = await receiver.answer(received)
    if (answer.kind === 'ok' && signal) {
      receiver.counts[signal] += items - (answer.rejected ?? 0)
      if (options.keep) for (const line of found) receiver.lines.push(line)
    }
    respond(answer, signal ?? 'traces', json, request, response)
  }

  const receiver: HttpReceiver = {
    port,
    endpoint: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    counts: { traces: 0, metrics: 0, logs: 0, profiles: 0, requests: 0, connections: 0 },
    requests: [],
    lines: [],
    answer: () => ({ kind: 'ok' }),
    cut: () => {
      for (const socket of sockets) socket.resetAndDestroy()
    },
    close: async () => {
      const closed = new Promise<void>(resolve => server.close(() => resolve()))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
  return receiver
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks)
}

function unpacked(headers: IncomingHttpHeaders, body: Buffer): Buffer {
  if (headers['content-encoding'] === 'gzip') return gunzipSync(body)
  return headers['content-encoding'] === 'zstd' ? zstdDecompressSync(body) : body
}

function decode(signal: Signal, body: Buffer, json: boolean): protobuf.Message {
  const type = requestType(signal)
  return json ? type.fromObject(JSON.parse(body.toString('utf8'), identifier)) : type.decode(body)
}

const identifiers = /^(traceId|spanId|parentSpanId|profileId)$/

/** OTLP JSON has identifiers in hexadecimal digits, where protobuf's own JSON has base64. */
function identifier(key: string, value: unknown): unknown {
  return typeof value === 'string' && identifiers.test(key)
    ? Buffer.from(value, 'hex').toString('base64')
    : value
}

function respond(
  answer: HttpAnswer,
  signal: Signal,
  json: boolean,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const type = { 'content-type': json ? 'application/json' : 'application/x-protobuf' }
  if (answer.kind === 'ok') {
    const { status = 200, headers, gzip } = answer
    const body = json
      ? Buffer.from(JSON.stringify(responseObject(signal, answer)))
      : responseOf(signal, answer)
    response.writeHead(status, { ...type, ...(gzip && { 'content-encoding': 'gzip' }), ...headers })
    response.end(gzip ? gzipSync(body) : body)
  } else if (answer.kind === 'refuse') {
    const { status, headers, message = '' } = answer
    response.writeHead(status, { ...type, ...headers })
    response.end(answer.body ?? (message && statusOf(message, json)))
  } else if (answer.headers) {
    response.writeHead(200, { ...type, 'content-length': '1000' })
    response.write('1')
    if (answer.kind === 'cut') setTimeout(() => request.socket.resetAndDestroy(), 20)
  } else if (answer.kind === 'cut') request.socket.resetAndDestroy()
}

/** google.rpc.Status with the code 3 and a message. */
function statusOf(message: string, json: boolean): string | Buffer {
  if (json) return JSON.stringify({ code: 3, message })
  const text = Buffer.from(message)
  const length = []
  for (let left = text.length; ; left >>>= 7) {
    length.push(left < 128 ? left : (left & 127) | 128)
    if (left < 128) break
  }
  return Buffer.concat([Buffer.from([0x08, 3, 0x12, ...length]), text])
}
