// A real OTLP gRPC receiver on @grpc/grpc-js, the referee of our own client. In the test's process: `startReceiver`.
// In one of its own, so that tracing or measuring the host leaves it out: `spawnReceiver`, or by hand
//   node test/helpers/otlp-receiver.ts --port 4317 [--dump spans.jsonl] [--cert F --key F [--client-ca F]] [--stay]
// It prints {"port":N} when it listens. Each line on standard input is a command: `counts`, `cut`, `goaway`, or an
// answer as JSON ({"kind":"stall"}), and is answered by one line of JSON. It ends with its input, or with --stay by signal.
import { spawn } from 'node:child_process'
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { Metadata, Server, ServerCredentials } from '@grpc/grpc-js'
import protobuf from 'protobufjs'
import { type Signal, signals } from '../../src/foundation/model/signal.ts'
import { type Line, linesOf, pointsOf, responseOf } from './otlp-items.ts'
import { requestType } from './otlp-proto.ts'

/** What the receiver does with a request. */
export type Answer =
  /** Takes it; `rejected` and `message` make a partial success. `padding` lengthens the message by so many bytes. */
  | { kind: 'ok'; rejected?: number; message?: string; padding?: number }
  /** `details` are the bytes of grpc-status-details-bin as they are. `headersFirst`: not with trailers alone. */
  | {
      kind: 'refuse'
      code: number
      message?: string
      retryMs?: number
      details?: Uint8Array
      headersFirst?: boolean
    }
  /** Reads it and never answers. */
  | { kind: 'stall' }
  /** Cuts the connection that it came on, by a reset. */
  | { kind: 'cut' }

export interface ReceivedRequest {
  readonly signal: Signal
  readonly items: number
  readonly headers: Readonly<Record<string, string>>
  /** What is left of the client's deadline. */
  readonly timeoutMs: number
}

export type Counts = Record<Signal, number> & { requests: number; connections: number }

export interface ReceiverOptions {
  readonly port?: number
  /** PEM texts. With `clientCa` a client must show a certificate. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly clientCa?: string }
  /** Keeps decoded items in `lines`. */
  readonly keep?: boolean
  /** Larger messages are refused by grpc-js itself, which else takes 4 MiB; packed or not. */
  readonly maxMessageBytes?: number
  /** Appends decoded items to this file, one line of JSON each. */
  readonly dump?: string
  /** Takes all, and decodes only resources in whose bytes this text stands: for floods beside what is counted. */
  readonly only?: string
}

export interface Receiver {
  readonly port: number
  readonly endpoint: string
  /** Of all that was taken. */
  readonly counts: Counts
  /** All requests, whatever their answer. */
  readonly requests: ReceivedRequest[]
  /** Decoded items that were taken, in order; see `ReceiverOptions.keep`. */
  readonly lines: Line[]
  /** Most requests that were open at one time. */
  readonly mostOpen: number
  answer: (request: ReceivedRequest, lines: readonly Line[]) => Answer | Promise<Answer>
  /** Resets every connection. */
  cut(): void
  /** Tells every client to go elsewhere (GOAWAY), and lets open requests finish. */
  goAway(): void
  close(): Promise<void>
}

const paths: Record<Signal, string> = {
  traces: 'trace.v1.TraceService',
  metrics: 'metrics.v1.MetricsService',
  logs: 'logs.v1.LogsService',
  profiles: 'profiles.v1development.ProfilesService',
}

const { root: rpc } = protobuf.parse(`syntax = "proto3";
  message Any { string type_url = 1; bytes value = 2; }
  message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
  message Duration { int64 seconds = 1; int32 nanos = 2; }
  message RetryInfo { Duration retry_delay = 1; }`)

export async function startReceiver(options: ReceiverOptions = {}): Promise<Receiver> {
  const counts: Counts = { traces: 0, metrics: 0, logs: 0, profiles: 0, requests: 0, connections: 0 }
  const requests: ReceivedRequest[] = []
  const lines: Line[] = []
  const sockets = new Set<Socket>()
  let open = 0
  let mostOpen = 0
  const { tls, dump } = options
  if (dump) writeFileSync(dump, '')

  const server = new Server(
    options.maxMessageBytes === undefined
      ? {}
      : { 'grpc.max_receive_message_length': options.maxMessageBytes },
  )
  for (const signal of signals) {
    server.register(
      `/opentelemetry.proto.collector.${paths[signal]}/Export`,
      (call: Call, callback: Callback) => {
        open++
        mostOpen = Math.max(mostOpen, open)
        let ended = false
        const end = (): void => {
          if (!ended) open--
          ended = true
        }
        call.on('cancelled', end)
        const reply: Callback = (error, body) => {
          end()
          callback(error, body)
        }
        take(signal, call).then(
          answer => {
            if (answer.kind === 'refuse' && answer.headersFirst) call.sendMetadata(new Metadata())
            respond(signal, answer, reply)
          },
          error => reply({ code: 3, details: String(error) }),
        )
      },
      (body: Buffer) => body,
      (body: Buffer) => body,
      'unary',
    )
  }

  async function take(signal: Signal, call: Call): Promise<Answer> {
    const type = requestType(signal)
    const body = options.only === undefined ? call.request : partsWith(call.request, options.only)
    const found = linesOf(signal, type.decode(body))
    const items = pointsOf(found)
    const headers = Object.fromEntries(Object.entries(call.metadata.getMap()).map(([k, v]) => [k, String(v)]))
    const received = { signal, items, headers, timeoutMs: Number(call.getDeadline()) - Date.now() }
    requests.push(received)
    counts.requests++
    const answer = await receiver.answer(received, found)
    if (answer.kind !== 'ok') return answer
    counts[signal] += items - (answer.rejected ?? 0)
    if (options.keep) for (const line of found) lines.push(line)
    if (dump) appendFileSync(dump, found.map(line => `${JSON.stringify(line)}\n`).join(''))
    return answer
  }

  function respond(signal: Signal, answer: Answer, reply: Callback): void {
    if (answer.kind === 'ok') reply(null, responseOf(signal, answer))
    else if (answer.kind === 'cut') receiver.cut()
    else if (answer.kind === 'refuse') reply(refusal(answer))
  }

  const credentials = tls
    ? ServerCredentials.createSsl(
        tls.clientCa ? Buffer.from(tls.clientCa) : null,
        [{ cert_chain: Buffer.from(tls.cert), private_key: Buffer.from(tls.key) }],
        tls.clientCa !== undefined,
      )
    : ServerCredentials.createInsecure()
  // Our own listener hands grpc-js the connections, so that a test can cut them.
  const injector = server.createConnectionInjector(credentials)
  const listener = createServer(socket => {
    counts.connections++
    sockets.add(socket)
    socket.on('error', () => {}) // cut on purpose, or by the client
    socket.once('close', () => sockets.delete(socket))
    injector.injectConnection(socket)
  })
  await new Promise<void>((resolve, reject) => {
    listener.once('error', reject)
    listener.listen(options.port ?? 0, '127.0.0.1', resolve)
  })
  const { port } = listener.address() as { port: number }

  const receiver: Receiver = {
    port,
    endpoint: `127.0.0.1:${port}`,
    counts,
    requests,
    lines,
    get mostOpen() {
      return mostOpen
    },
    answer: () => ({ kind: 'ok' }),
    cut: () => {
      for (const socket of sockets) socket.resetAndDestroy()
    },
    goAway: () => injector.drain(600_000),
    close: async () => {
      server.forceShutdown()
      const closed = new Promise<void>(resolve => listener.close(() => resolve()))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
  return receiver
}

/** The resources of a request in whose bytes a text stands. They are its field 1; profiles have their dictionary beside. */
function partsWith(request: Buffer, text: string): Buffer {
  const reader = protobuf.Reader.create(request)
  const parts: Buffer[] = []
  while (reader.pos < reader.len) {
    const from = reader.pos
    const tag = reader.uint32()
    reader.skipType(tag & 7)
    const part = request.subarray(from, reader.pos)
    if (tag >>> 3 !== 1 || part.includes(text)) parts.push(part)
  }
  return Buffer.concat(parts)
}

interface Call {
  readonly request: Buffer
  readonly metadata: Metadata
  getDeadline(): Date | number
  sendMetadata(metadata: Metadata): void
  on(event: 'cancelled', listener: () => void): unknown
}

type Callback = (error: { code: number; details: string; metadata?: Metadata } | null, body?: Buffer) => void

function refusal({ code, message = '', retryMs, details: raw }: Answer & { kind: 'refuse' }) {
  const metadata = new Metadata()
  if (retryMs !== undefined) {
    const retryDelay = { seconds: Math.floor(retryMs / 1000), nanos: (retryMs % 1000) * 1e6 }
    const value = rpc.lookupType('RetryInfo').encode({ retryDelay }).finish()
    const details = [{ typeUrl: 'type.googleapis.com/google.rpc.RetryInfo', value }]
    const status = rpc.lookupType('Status').encode({ code, message, details }).finish()
    metadata.set('grpc-status-details-bin', Buffer.from(status))
  }
  if (raw) metadata.set('grpc-status-details-bin', Buffer.from(raw))
  return { code, details: message, metadata }
}

/** A receiver in a process of its own. */
export interface SpawnedReceiver {
  readonly pid: number
  readonly port: number
  readonly endpoint: string
  counts(): Promise<Counts>
  /** What it does with all requests from now on. */
  answer(answer: Answer): Promise<void>
  cut(): Promise<void>
  goAway(): Promise<void>
  close(): Promise<void>
}

export async function spawnReceiver(
  options: { port?: number; dump?: string; only?: string } = {},
): Promise<SpawnedReceiver> {
  const args = [import.meta.filename, '--port', String(options.port ?? 0)]
  if (options.dump) args.push('--dump', options.dump)
  if (options.only) args.push('--only', options.only)
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const replies = createInterface(child.stdout)[Symbol.asyncIterator]()
  const ended = new Promise<void>(resolve => child.once('exit', () => resolve()))
  const read = async (): Promise<Record<string, number>> => {
    const { value, done } = await replies.next()
    if (done) throw new Error('the receiver has ended')
    return JSON.parse(value)
  }
  let last: Promise<unknown> = Promise.resolve()
  const ask = (command: string): Promise<Record<string, number>> => {
    const reply = last.then(() => {
      child.stdin.write(`${command}\n`)
      return read()
    })
    last = reply.catch(() => {}) // told to the one who asked
    return reply
  }
  const { port } = await read()
  return {
    pid: child.pid!,
    port: port!,
    endpoint: `127.0.0.1:${port}`,
    counts: async () => (await ask('counts')) as Counts,
    answer: async answer => void (await ask(JSON.stringify(answer))),
    cut: async () => void (await ask('cut')),
    goAway: async () => void (await ask('goaway')),
    close: async () => {
      child.stdin.end()
      await ended
    },
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      port: { type: 'string', default: '4317' },
      dump: { type: 'string' },
      only: { type: 'string' },
      cert: { type: 'string' },
      key: { type: 'string' },
      'client-ca': { type: 'string' },
      stay: { type: 'boolean', default: false },
    },
  })
  const { port, dump, only, cert, key, 'client-ca': clientCa } = values
  const text = (file: string) => readFileSync(file, 'utf8')
  const receiver = await startReceiver({
    port: Number(port),
    ...(dump && { dump }),
    ...(only && { only }),
    ...(cert &&
      key && { tls: { cert: text(cert), key: text(key), ...(clientCa && { clientCa: text(clientCa) }) } }),
  })
  const say = (value: unknown): void => console.log(JSON.stringify(value))
  const end = (): void => void receiver.close().then(() => process.exit(0))
  const input = createInterface(process.stdin)
  input.on('line', line => {
    if (line === 'cut') receiver.cut()
    else if (line === 'goaway') receiver.goAway()
    else if (line.startsWith('{')) {
      const answer = JSON.parse(line) as Answer
      receiver.answer = () => answer
    }
    say(receiver.counts)
    receiver.requests.length = 0 // only counted here
  })
  if (!values.stay) input.once('close', end)
  process.once('SIGTERM', end)
  process.once('SIGINT', end)
  say({ port: receiver.port })
}

if (import.meta.main) await main()
