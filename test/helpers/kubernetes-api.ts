// An API server of Kubernetes as far as its protocol goes (Kubernetes API concepts): lists by pages, watches with
// bookmarks, versions that expire, refusals, and the ways in which networks and proxies spoil all that.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { freePort } from './program.ts'

export type Json = Record<string, unknown>

interface KubernetesObject extends Json {
  metadata: Json & { uid: string; name: string; namespace?: string; resourceVersion?: string }
}

interface Collection {
  /** `PodList`. */
  readonly kind: string
  readonly group: string
  readonly objects: Map<string, KubernetesObject>
}

interface Change {
  readonly version: number
  readonly type: string
  readonly resource: string
  readonly text: string
  readonly object: KubernetesObject
}

interface Watch {
  readonly resource: string
  readonly matches: (object: KubernetesObject) => boolean
  readonly response: ServerResponse
}

export interface KubernetesApiOptions {
  /** PEM; without it plain HTTP. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca?: string }
  /** A pod with this many bytes of what nobody asked for, as `managedFields` are. */
  readonly paddingBytes?: number
  readonly port?: number
}

/** What the server does otherwise than it should. All may be changed at any time. */
export interface Conduct {
  /** The only token that it knows; '' for no check. */
  token: string
  /** Refusals by `verb resource`: `list pods`. */
  forbidden: Set<string>
  /** So many requests are answered 429, with this Retry-After. */
  busy: { times: number; retryAfter: string }
  /** How it says that a version expired. */
  expiry: 'status' | 'event'
  /** A list from its cache comes as one page, as that of a real server does. */
  cached: boolean
  /** Instead of any other answer. */
  answer: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined
  /** Each watch and list is written in pieces of so many bytes; 0: at once. */
  pieceBytes: number
}

export class KubernetesApi {
  readonly conduct: Conduct = {
    token: '',
    forbidden: new Set(),
    busy: { times: 0, retryAfter: '1' },
    expiry: 'event',
    cached: true,
    answer: undefined,
    pieceBytes: 0,
  }
  /** `list pods`, `watch pods`, `get jobs`: everything that was asked, in its order. */
  readonly asked: string[] = []
  /** Paths and queries. */
  readonly urls: string[] = []
  readonly #collections = new Map<string, Collection>()
  readonly #server
  readonly #sockets = new Set<Socket>()
  readonly #watches = new Set<Watch>()
  readonly #pages = new Map<string, { readonly texts: string[]; readonly version: number }>()
  readonly #padding: string
  #changes: Change[] = []
  #version = 1000
  #oldest = 1000
  #uid = 0

  private constructor({ tls, paddingBytes = 0 }: KubernetesApiOptions) {
    const listener = (request: IncomingMessage, response: ServerResponse) => {
      try {
        this.#serve(request, response)
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        refuse(response, error)
      }
    }
    this.#server = tls
      ? createSecureServer(
          { cert: tls.cert, key: tls.key, ...(tls.ca && { ca: tls.ca, requestCert: true }) },
          listener,
        )
      : createServer(listener)
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
    this.#padding = 'm'.repeat(paddingBytes)
    const kinds = {
      pods: ['Pod', '/api/v1'],
      services: ['Service', '/api/v1'],
      namespaces: ['Namespace', '/api/v1'],
      replicasets: ['ReplicaSet', '/apis/apps/v1'],
      jobs: ['Job', '/apis/batch/v1'],
      nodes: ['Node', '/api/v1'],
      endpoints: ['Endpoints', '/api/v1'],
      endpointslices: ['EndpointSlice', '/apis/discovery.k8s.io/v1'],
      ingresses: ['Ingress', '/apis/networking.k8s.io/v1'],
    } as const
    for (const [resource, [kind, group]] of Object.entries(kinds))
      this.#collections.set(resource, { kind: `${kind}List`, group, objects: new Map() })
    this.put('namespaces', { metadata: { uid: 'cluster-uid', name: 'kube-system' } })
  }

  static async start(options: KubernetesApiOptions = {}): Promise<KubernetesApi> {
    const api = new KubernetesApi(options)
    // Where it listens again after an end, nobody else does meanwhile.
    await api.listen(options.port ?? (await freePort()))
    return api
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get watches(): number {
    return this.#watches.size
  }

  get connections(): number {
    return this.#sockets.size
  }

  async listen(port: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(port, '127.0.0.1', resolve)
    })
  }

  /** What it knows stays. */
  async close(): Promise<void> {
    const closed = new Promise(resolve => this.#server.close(resolve))
    this.disconnect()
    await closed
  }

  /** Every connection is lost. */
  disconnect(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  /** Makes an object, or another version of it. */
  put(resource: string, object: Json): KubernetesObject {
    const { objects } = this.#collections.get(resource)!
    const metadata = {
      uid: `uid-${++this.#uid}`,
      ...(object.metadata as Json),
    } as KubernetesObject['metadata']
    const key = `${metadata.namespace ?? ''}/${metadata.name}`
    const known = objects.get(key)
    metadata.resourceVersion = String(++this.#version)
    if (this.#padding !== '') metadata.managedFields = [{ manager: 'kubelet', fields: this.#padding }]
    const made = { ...object, metadata }
    objects.set(key, made)
    this.#tell(known === undefined ? 'ADDED' : 'MODIFIED', resource, made)
    return made
  }

  delete(resource: string, name: string, namespace = ''): void {
    const { objects } = this.#collections.get(resource)!
    const key = `${namespace}/${name}`
    const known = objects.get(key)!
    objects.delete(key)
    const metadata = { ...known.metadata, resourceVersion: String(++this.#version) }
    this.#tell('DELETED', resource, { ...known, metadata })
  }

  /** Versions up to now are forgotten. */
  compact(): void {
    this.#oldest = this.#version
    this.#changes = []
    this.#pages.clear()
  }

  /** Tells every watch how far it is, `+1` as other collections move on too. */
  bookmark(): void {
    this.#version++
    for (const { resource, response } of this.#watches) {
      const kind = this.#collections.get(resource)!.kind.replace(/List$/, '')
      const object = { kind, metadata: { resourceVersion: String(this.#version), creationTimestamp: null } }
      response.write(`${JSON.stringify({ type: 'BOOKMARK', object })}\n`)
    }
  }

  /** Writes to every watch of a collection as it is. */
  write(resource: string, text: string | Buffer): void {
    for (const watch of this.#watches) if (watch.resource === resource) watch.response.write(text)
  }

  /** Ends every watch as a server does when its time is up. */
  endWatches(): void {
    for (const { response } of this.#watches) response.end()
  }

  /** How often something was asked. */
  count(what: string): number {
    return this.asked.filter(each => each === what).length
  }

  #tell(type: string, resource: string, object: KubernetesObject): void {
    const text = `${JSON.stringify({ type, object })}\n`
    this.#changes.push({ version: this.#version, type, resource, text, object })
    if (this.#changes.length > 20_000) this.#oldest = this.#changes.splice(0, 10_000).at(-1)!.version
    for (const watch of this.#watches)
      if (watch.resource === resource && watch.matches(object)) void this.#write(watch.response, text)
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url!, 'http://api')
    const found =
      /^(?<group>\/api\/v1|\/apis\/[a-z0-9.]+\/v1)(?:\/namespaces\/(?<namespace>[^/]+))?\/(?<resource>[a-z]+)(?:\/(?<name>[^/]+))?$/.exec(
        url.pathname,
      )?.groups ?? /^(?<group>\/api\/v1)\/(?<resource>namespaces)\/(?<name>[^/]+)$/.exec(url.pathname)?.groups
    const { resource = '', name, namespace, group } = found ?? {}
    const verb = name !== undefined ? 'get' : url.searchParams.has('watch') ? 'watch' : 'list'
    this.asked.push(`${verb} ${resource}`)
    this.urls.push(request.url!)
    const { conduct } = this
    if (conduct.answer?.(request, response)) return
    if (conduct.token !== '' && request.headers.authorization !== `Bearer ${conduct.token}`)
      throw new Refusal(401, 'Unauthorized', 'Unauthorized')
    if (conduct.busy.times > 0) {
      conduct.busy.times--
      response.setHeader('retry-after', conduct.busy.retryAfter)
      throw new Refusal(429, 'TooManyRequests', 'The server has received too many requests')
    }
    if (conduct.forbidden.has(`${verb} ${resource}`)) {
      const message = `${resource} is forbidden: User "system:serviceaccount:svc:agent" cannot ${verb} resource "${resource}"`
      throw new Refusal(403, 'Forbidden', message)
    }
    const collection = this.#collections.get(resource)
    if (collection === undefined || collection.group !== group)
      throw new Refusal(404, 'NotFound', 'the server could not find the requested resource')
    if (name !== undefined) {
      this.#get(response, request, collection, `${namespace ?? ''}/${name}`)
      return
    }
    const node = /^spec\.nodeName=(.+)$/.exec(url.searchParams.get('fieldSelector') ?? '')?.[1]
    const [label, value] = (url.searchParams.get('labelSelector') ?? '').split('=')
    const matches = ({ metadata, spec }: KubernetesObject) =>
      (namespace === undefined || metadata.namespace === namespace) &&
      (node === undefined || (spec as Json | undefined)?.nodeName === node) &&
      (!label || (metadata.labels as Json | undefined)?.[label] === value)
    if (verb === 'watch') this.#watch(response, url.searchParams, { resource, matches, response })
    else this.#list(response, url.searchParams, collection, matches)
  }

  #get(response: ServerResponse, request: IncomingMessage, { objects }: Collection, key: string): void {
    const object = objects.get(key)
    if (object === undefined) throw new Refusal(404, 'NotFound', 'not found')
    const isPartial = request.headers.accept?.includes('as=PartialObjectMetadata') === true
    const answer = isPartial
      ? { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object.metadata }
      : object
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(answer))
  }

  #list(
    response: ServerResponse,
    query: URLSearchParams,
    { kind, objects }: Collection,
    matches: (object: KubernetesObject) => boolean,
  ): void {
    const token = query.get('continue')
    const page = token === null ? undefined : this.#pages.get(token)
    if (token !== null && page === undefined)
      throw new Refusal(410, 'Expired', 'The provided continue parameter is too old')
    const whole = query.get('resourceVersion') === '0' && this.conduct.cached
    const limit = whole ? Number.POSITIVE_INFINITY : Number(query.get('limit') ?? Number.POSITIVE_INFINITY)
    const texts = page?.texts ?? [...objects.values()].filter(matches).map(each => JSON.stringify(each))
    const version = page?.version ?? this.#version
    const next = texts.length > limit ? `page-${Math.random()}` : ''
    if (next !== '') this.#pages.set(next, { texts: texts.slice(limit), version })
    const metadata = { resourceVersion: String(version), ...(next !== '' && { continue: next }) }
    const head = `{"kind":"${kind}","apiVersion":"v1","metadata":${JSON.stringify(metadata)},"items":[`
    response.setHeader('content-type', 'application/json')
    void this.#write(response, `${head}${texts.slice(0, limit).join(',')}]}\n`).then(() => response.end())
  }

  #watch(response: ServerResponse, query: URLSearchParams, watch: Watch): void {
    const from = Number(query.get('resourceVersion'))
    const expired = 'too old resource version'
    const isExpired = from < this.#oldest
    if (isExpired && this.conduct.expiry === 'status') throw new Refusal(410, 'Expired', expired)
    response.setHeader('content-type', 'application/json')
    response.flushHeaders()
    if (isExpired) {
      const object = { kind: 'Status', status: 'Failure', reason: 'Expired', code: 410, message: expired }
      response.end(`${JSON.stringify({ type: 'ERROR', object })}\n`)
      return
    }
    this.#watches.add(watch)
    const seconds = Number(query.get('timeoutSeconds') ?? 1800)
    const timer = setTimeout(() => response.end(), seconds * 1000).unref()
    response.once('close', () => {
      clearTimeout(timer)
      this.#watches.delete(watch)
    })
    const missed = this.#changes.filter(
      each => each.version > from && each.resource === watch.resource && watch.matches(each.object),
    )
    void this.#write(response, missed.map(each => each.text).join(''))
  }

  async #write(response: ServerResponse, text: string): Promise<void> {
    const { pieceBytes } = this.conduct
    if (pieceBytes === 0) {
      response.write(text)
      return
    }
    const bytes = Buffer.from(text)
    for (let at = 0; at < bytes.length && !response.destroyed; at += pieceBytes) {
      response.write(bytes.subarray(at, at + pieceBytes))
      await new Promise(setImmediate)
    }
  }
}

class Refusal extends Error {
  readonly code: number
  readonly reason: string

  constructor(code: number, reason: string, message: string) {
    super(message)
    this.code = code
    this.reason = reason
  }
}

function refuse(response: ServerResponse, { code, reason, message }: Refusal): void {
  response.statusCode = code
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', message, reason, code }))
}

export interface PodTemplate {
  readonly name: string
  readonly namespace?: string
  readonly node?: string
  readonly uid?: string
  readonly owner?: { readonly kind: string; readonly name: string; readonly uid: string }
  readonly labels?: Record<string, string>
  readonly annotations?: Record<string, string>
  readonly restarts?: number
  readonly address?: string
}

/** A pod that runs, with one container, as the API tells it. */
export function podObject(template: PodTemplate): Json {
  const { name, namespace = 'shop', node = 'node-a', uid, owner, labels, annotations } = template
  return {
    metadata: {
      name,
      namespace,
      ...(uid && { uid }),
      ...(labels && { labels }),
      ...(annotations && { annotations }),
      ...(owner && { ownerReferences: [{ apiVersion: 'v1', ...owner, controller: true }] }),
    },
    spec: { nodeName: node, containers: [{ name: 'main', image: 'registry.example.com/shop/cart:1.2' }] },
    status: {
      phase: 'Running',
      startTime: '2026-02-03T04:05:06Z',
      podIP: template.address ?? '10.1.0.7',
      podIPs: [{ ip: template.address ?? '10.1.0.7' }],
      containerStatuses: [
        {
          name: 'main',
          containerID: `containerd://${containerIdOf(name)}`,
          image: 'registry.example.com/shop/cart:1.2',
          restartCount: template.restarts ?? 0,
        },
      ],
    },
  }
}

/** 64 hexadecimal digits that belong to a name. */
export function containerIdOf(name: string): string {
  return Buffer.from(name).toString('hex').padEnd(64, '0').slice(0, 64)
}
