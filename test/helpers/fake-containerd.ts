// A server that answers as containerd does, or as a test wants it to.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { entries, message } from './protobuf-message.ts'

export interface FakeContainer {
  readonly id: string
  readonly namespace: string
  readonly labels?: Readonly<Record<string, string>>
  readonly image?: string
  /** Of the OCI specification. */
  readonly annotations?: Readonly<Record<string, string>>
  readonly extensions?: Readonly<Record<string, unknown>>
}

/** Answers one call; left out, it is answered as containerd would. */
export type Conduct = (stream: ServerHttp2Stream, request: Uint8Array) => void

const methods = {
  '/containerd.services.version.v1.Version/Version': 'version',
  '/containerd.services.namespaces.v1.Namespaces/List': 'namespaces',
  '/containerd.services.containers.v1.Containers/ListStream': 'list',
  '/containerd.services.containers.v1.Containers/Get': 'container',
  '/containerd.services.tasks.v1.Tasks/Get': 'task',
  '/containerd.services.events.v1.Events/Subscribe': 'events',
} as const
type Method = (typeof methods)[keyof typeof methods]

export class FakeContainerd {
  /** Where the host's root would be. */
  readonly rootfs = mkdtempSync(join(tmpdir(), 'svc-fake-containerd-'))
  readonly socket: string
  containers: FakeContainer[] = []
  readonly conduct: Partial<Record<Method, Conduct>> = {}
  /** Calls by method since the start. */
  readonly calls: string[] = []
  /** Streams of events that are open. */
  readonly streams = new Set<ServerHttp2Stream>()
  readonly #server: Http2Server
  readonly #sessions = new Set<ServerHttp2Session>()

  private constructor(socket: string) {
    this.socket = socket === '' ? join(this.rootfs, 'run/containerd/containerd.sock') : socket
    this.#server = createServer()
    this.#server.on('session', session => {
      this.#sessions.add(session)
      session.on('error', () => undefined)
      session.on('close', () => this.#sessions.delete(session))
    })
    this.#server.on('stream', (stream, headers) => {
      stream.on('error', () => undefined)
      let body = Buffer.alloc(0)
      stream.on('data', (piece: Buffer) => {
        body = Buffer.concat([body, piece])
      })
      const namespace = String(headers['containerd-namespace'] ?? '')
      stream.on('end', () => this.#answer(stream, String(headers[':path']), namespace, body.subarray(5)))
    })
  }

  /** At the usual place below its own root, or at this one. */
  static async start(socket = ''): Promise<FakeContainerd> {
    const made = new FakeContainerd(socket)
    mkdirSync(dirname(made.socket), { recursive: true })
    await new Promise<void>(resolve => made.#server.listen(made.socket, resolve))
    return made
  }

  /** Tells of something that happened. */
  emit(topic: string, namespace: string, id: string, second = ''): void {
    const event = message([1, id], [2, second])
    const envelope = message([2, namespace], [3, topic], [4, message([1, 'x'], [2, event])])
    for (const stream of this.streams) stream.write(framed(envelope))
  }

  close(): void {
    for (const session of this.#sessions) session.destroy()
    this.#server.close()
    rmSync(this.rootfs, { recursive: true, force: true })
  }

  #answer(stream: ServerHttp2Stream, path: string, namespace: string, request: Uint8Array): void {
    const method = methods[path as keyof typeof methods] as Method | undefined
    this.calls.push(method ?? path)
    const conduct = method && this.conduct[method]
    if (conduct !== undefined) conduct(stream, request)
    else if (method === 'version') answer(stream, message([1, '1.6.20']))
    else if (method === 'namespaces') answer(stream, ...this.#namespaces())
    else if (method === 'list')
      answer(stream, ...this.containers.filter(each => each.namespace === namespace).map(listed))
    else if (method === 'container') this.#container(stream, namespace, request)
    else if (method === 'task') answer(stream, message([1, message([3, 7], [4, 2])]))
    else if (method === 'events') {
      stream.respond(head, { waitForTrailers: true })
      this.streams.add(stream)
      stream.on('close', () => this.streams.delete(stream))
    } else refuse(stream, 12)
  }

  #namespaces(): Uint8Array[] {
    const names = new Set(this.containers.map(({ namespace }) => namespace))
    return [message(...[...names].map(name => [1, message([1, name])] as const))]
  }

  #container(stream: ServerHttp2Stream, namespace: string, request: Uint8Array): void {
    const id = Buffer.from(request.subarray(2)).toString()
    const found = this.containers.find(each => each.id === id && each.namespace === namespace)
    if (found === undefined) refuse(stream, 5)
    else answer(stream, listed(found))
  }
}

const head = { ':status': 200, 'content-type': 'application/grpc' }

/** Ends a call well, after these messages. */
export function answer(stream: ServerHttp2Stream, ...messages: Uint8Array[]): void {
  stream.respond(head, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  stream.end(Buffer.concat(messages.map(framed)))
}

export function refuse(stream: ServerHttp2Stream, status: number, text = ''): void {
  stream.respond({ ...head, 'grpc-status': String(status), 'grpc-message': text }, { endStream: true })
}

export function framed(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5)
  prefix.writeUInt32BE(message.length, 1)
  return Buffer.concat([prefix, message])
}

/** As a message of the list has a container, and an answer for one. */
export function listed({ id, labels = {}, image = '', annotations = {}, extensions = {} }: FakeContainer) {
  const any = (value: unknown) => message([1, 'x'], [2, JSON.stringify(value)])
  return message([
    1,
    message(
      [1, id],
      ...entries(2, labels),
      [3, image],
      [5, any({ annotations })],
      ...Object.entries(extensions).map(([key, value]) => [10, message([1, key], [2, any(value)])] as const),
    ),
  ])
}
