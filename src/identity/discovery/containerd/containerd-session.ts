import { setTimeout as pause } from 'node:timers/promises'
import { GrpcClient, type GrpcRequest } from '../../../foundation/lib/grpc-client.ts'
import { GrpcError, GrpcStatus } from '../../../foundation/lib/grpc-status.ts'
import type { Container } from '../../../foundation/model/entity.ts'
import { containerId } from '../_docker-container.ts'
import { Inspections, maxContainers } from '../_inspections.ts'
import type { Daemon, RuntimeSession, SessionOptions } from '../_runtime-source.ts'
import {
  eventFilter,
  maxNamespaces,
  methods,
  noTask,
  readContainer,
  readEvent,
  readListedId,
  readNamespaces,
  readTask,
  readVersion,
  request,
} from './messages.ts'

const connectTimeoutMs = 5_000
const meetMs = 5_000
const questionMs = 10_000
const listMs = 30_000
/** Twice the data that the largest Kubernetes object can add to a container. */
const maxContainerBytes = 4 * 1024 * 1024
const maxEventBytes = 1024 * 1024
/** Time until the daemon surely sends events, in milliseconds; it does not confirm the subscription. */
const settleMs = 1_000
/** containerd accepts one ping in five minutes at most; each list shows that it is alive. */
const keepaliveMs = 60 * 60_000

/** Reports the containers of all namespaces of one containerd, except those of Docker. */
export class ContainerdSession implements RuntimeSession {
  readonly #client: GrpcClient
  readonly #stop = new AbortController()
  readonly #options: SessionOptions
  readonly #inspections: Inspections
  /** Namespace by container ID. */
  readonly #namespaces = new Map<string, string>()
  #missed = true
  #leftOut = ''

  constructor(socketPath: string, options: SessionOptions) {
    const { known, room, sink } = options
    this.#client = new GrpcClient({
      host: 'localhost',
      port: 80,
      socketPath,
      tls: undefined,
      connectTimeoutMs,
      maxResponseBytes: maxContainerBytes,
      maxAgeMs: Number.POSITIVE_INFINITY,
      keepaliveMs,
    })
    this.#options = options
    this.#inspections = new Inspections({ read: id => this.#read(id), known, room, sink })
  }

  get fault(): string {
    return this.#inspections.fault || this.#leftOut
  }

  close(): void {
    this.#inspections.close()
    this.#stop.abort()
    this.#client.close()
  }

  async run(listed: (daemon: Daemon) => void): Promise<never> {
    const meeting = requestOf(methods.version, request(), '', meetMs)
    const version = readVersion(await this.#client.call(meeting, this.#stop.signal))
    if (version === '') throw new Error('it reported no containerd version')
    const daemon = { runtime: 'containerd', version, rootDir: '' }
    return Promise.race([this.#listen(), this.#look(() => listed(daemon))])
  }

  async #listen(): Promise<never> {
    const stream = {
      maxMessageBytes: maxEventBytes,
      take: (message: Uint8Array) => this.#hear(message),
      missed: () => {
        this.#missed = true
      },
    }
    await this.#client.follow(requestOf(methods.events, request(eventFilter)), stream, this.#stop.signal)
    throw new Error('the event stream ended')
  }

  #hear(message: Uint8Array): void {
    const event = readEvent(message)
    if (event === undefined || !containerId.test(event.id)) return
    if (event.gone) {
      this.#namespaces.delete(event.id)
      this.#inspections.gone(event.id)
    } else {
      this.#place(event.id, event.namespace)
      this.#inspections.want(event.id)
    }
  }

  async #look(listed: () => void): Promise<never> {
    for (let round = 0; ; round++) {
      const all = this.#missed
      this.#missed = false
      await this.#list(all)
      listed()
      const ms = round === 0 ? settleMs : this.#options.refreshMs
      await pause(ms, undefined, { signal: this.#stop.signal, ref: false })
    }
  }

  /** Messages arrive one by one, so a list may have any size; all namespaces together have `listMs`. */
  async #list(all: boolean): Promise<void> {
    const before = [...this.#options.known.keys()]
    const found = new Set<string>()
    const namespaces = readNamespaces(await this.#ask(methods.namespaces))
    const endMs = performance.now() + listMs
    let leftOut =
      namespaces.leftOut > 0
        ? `more than ${maxNamespaces} namespaces; ${namespaces.leftOut} are left out`
        : ''
    for (const namespace of namespaces.names) {
      const stream = {
        maxMessageBytes: maxContainerBytes,
        take: (message: Uint8Array) => {
          const id = readListedId(message)
          if (!containerId.test(id)) return
          if (found.size < maxContainers) {
            found.add(id)
            this.#place(id, namespace)
          } else leftOut = `more than ${maxContainers} containers; the rest are left out`
        },
        missed: () => {
          leftOut = `a container in ${namespace} is larger than ${maxContainerBytes} bytes and is left out`
        },
      }
      const wanted = requestOf(methods.list, request(), namespace, Math.max(1, endMs - performance.now()))
      await this.#client.follow(wanted, stream, this.#stop.signal)
    }
    this.#leftOut = leftOut
    // A skipped container is not gone.
    this.#inspections.reconcile(found, leftOut === '' ? before : [], all)
  }

  async #read(id: string): Promise<Container | undefined> {
    const namespace = this.#namespaces.get(id)
    if (namespace === undefined) return undefined
    try {
      const answer = await this.#ask(methods.container, request(id), namespace)
      // Many have no task; and names must not wait for a hanging shim.
      const task = await this.#ask(methods.task, request(id), namespace).then(readTask, () => noTask)
      return readContainer(id, answer, task)
    } catch (error) {
      if (error instanceof GrpcError && error.code === GrpcStatus.not_found) return undefined
      throw error
    }
  }

  #place(id: string, namespace: string): void {
    this.#namespaces.delete(id)
    this.#namespaces.set(id, namespace)
    if (this.#namespaces.size > maxContainers) this.#namespaces.delete(this.#namespaces.keys().next().value!)
  }

  #ask(path: string, message = request(), namespace = ''): Promise<Uint8Array> {
    return this.#client.call(requestOf(path, message, namespace, questionMs), this.#stop.signal)
  }
}

function requestOf(path: string, message: Uint8Array, namespace = '', timeoutMs?: number): GrpcRequest {
  return {
    path,
    message,
    encoding: 'identity',
    headers: namespace === '' ? {} : { 'containerd-namespace': namespace },
    ...(timeoutMs !== undefined && { timeoutMs }),
  }
}
