import type { Owner, ShareLosses } from '../../../foundation/lib/fair-share.ts'
import { Attributes } from '../../../foundation/model/attributes.ts'
import type { Metric, NumberPoint } from '../../../foundation/model/metric.ts'
import { type MetricDeclaration, overflowAttribute } from '../../../foundation/model/metric-declaration.ts'
import { hostOwner, type Resource, serviceName } from '../../../foundation/model/resource.ts'
import { explicit, Scale } from './duration-series.ts'
import { type PlacedSeries, SeriesRoom } from './series-room.ts'

export interface ServiceGraphOptions {
  /** Microseconds since the Unix epoch: start of counting. */
  readonly startUs: number
  /** Edges that owners share; an owner without room is counted in one edge, marked `otel.metric.overflow`. */
  readonly maxEdges?: number
  /** Bytes of all edges, which may reduce their number. Default: no bound. */
  readonly maxBytes?: number
  /** Collections without a request after which an edge is removed. */
  readonly idleCollections?: number
  /** Upper bounds of the histograms, in seconds. */
  readonly bounds?: readonly number[]
}

/** Bounds that the semantic conventions advise for durations of requests, in seconds. */
const requestBounds = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

const attributes = ['client', 'server', 'connection_type', overflowAttribute]
const requests: MetricDeclaration = {
  name: 'traces_service_graph_request_total',
  description: 'Requests from one service to another.',
  unit: '{request}',
  kind: 'counter',
  attributes,
}
const failures: MetricDeclaration = {
  name: 'traces_service_graph_request_failed_total',
  description: 'Requests from one service to another that failed.',
  unit: '{request}',
  kind: 'counter',
  attributes,
}
const clientTimes: MetricDeclaration = {
  name: 'traces_service_graph_request_client',
  description: 'Duration of requests, measured at the client.',
  unit: 's',
  kind: 'histogram',
  attributes,
}
const serverTimes: MetricDeclaration = {
  name: 'traces_service_graph_request_server',
  description: 'Duration of requests, measured at the server.',
  unit: 's',
  kind: 'histogram',
  attributes,
}

/** All metrics of the service graph. */
export const graphMetrics: readonly MetricDeclaration[] = [requests, failures, clientTimes, serverTimes]

/** Size of an edge without its names, measured. */
const edgeBytes = 1300
/** Names come from the services' own side, and are no longer than this (`maxDeclaredBytes` of entities). */
const nameBytes = 256
/** The highest rank stays longest: any host can call a server, but only the owner's own processes make its calls. */
const ranks = { fromOutside: 0, toOutside: 1, within: 2 } as const

/**
 * The service graph: which service calls which, and with what result. The metrics have the names of Tempo's and the
 * Collector's service graphs, so that their dashboards work. One request is one call of `edge`, whichever of its sides
 * were seen. An edge counts against the share of its client's owner, or the server's if the client is on another host,
 * because a server does not choose the names of its callers.
 */
export class ServiceGraph {
  readonly #edges = new Map<string, Map<string, Edge>>()
  readonly #room: SeriesRoom<Edge>
  readonly #scale: Scale
  readonly #bounds: readonly number[]
  readonly #idleCollections: number
  #overflow: Edge | undefined
  #textBytes = 0
  #sinceUs: number

  constructor(options: ServiceGraphOptions) {
    this.#sinceUs = options.startUs
    const mostByBytes = Math.floor((options.maxBytes ?? Number.POSITIVE_INFINITY) / (edgeBytes + nameBytes))
    this.#room = new SeriesRoom(Math.min(options.maxEdges ?? 2_000, mostByBytes), edge => this.#forget(edge))
    this.#bounds = options.bounds ?? requestBounds
    this.#scale = new Scale(this.#bounds)
    this.#idleCollections = options.idleCollections ?? 20
  }

  /** Number of edges, without overflow edges. */
  get size(): number {
    return this.#room.size
  }

  /** Estimated memory in use. */
  get bytes(): number {
    return this.#room.size * edgeBytes + this.#textBytes
  }

  /** Requests counted without an edge of their own, and edges removed for other owners. */
  get losses(): ShareLosses {
    return this.#room.losses
  }

  /** Removes idle edges; returns about how many bytes were freed. */
  shed(bytes: number): number {
    const before = this.bytes
    this.#room.shed(Math.ceil(bytes / edgeBytes))
    return before - this.bytes
  }

  /**
   * Counts one request. A side on another host is given by its address or name. Durations are in nanoseconds; below
   * zero: that side was not seen.
   */
  edge(
    client: Resource | string,
    server: Resource | string,
    failed: boolean,
    clientNs: number,
    serverNs: number,
  ): void {
    const edge = this.#find(client, server)
    edge.idle = 0
    edge.total++
    if (failed) edge.failed++
    if (clientNs >= 0) edge.client.observe(clientNs)
    if (serverNs >= 0) edge.server.observe(serverNs)
  }

  /** All edges at `timeUs` (microseconds since the Unix epoch); valid until the next call. For the host's resource. */
  collect(timeUs: number): Metric[] {
    this.#sinceUs = timeUs
    const all: Edge[] = []
    for (const servers of this.#edges.values()) all.push(...servers.values())
    this.#room.begin()
    for (const edge of all) if (this.#room.ends(edge, this.#idleCollections)) this.#forget(edge)
    if (this.#overflow !== undefined) all.push(this.#overflow)
    if (all.length === 0) return []
    const point = ({ attributes, startUs }: Edge, value: number): NumberPoint => ({
      attributes,
      startUs,
      timeUs,
      value,
    })
    const bounds = this.#bounds
    return [
      sum(
        requests,
        all.map(edge => point(edge, edge.total)),
      ),
      sum(
        failures,
        all.map(edge => point(edge, edge.failed)),
      ),
      explicit.metric(
        { ...clientTimes, bounds },
        all.map(({ client }) => client).filter(({ count }) => count > 0),
        timeUs,
      ),
      explicit.metric(
        { ...serverTimes, bounds },
        all.map(({ server }) => server).filter(({ count }) => count > 0),
        timeUs,
      ),
    ].filter(({ points }) => points.length > 0)
  }

  #find(client: Resource | string, server: Resource | string): Edge {
    const from = serviceName(client)
    const to = serviceName(server)
    const known = this.#edges.get(from)?.get(to)
    if (known !== undefined) return known
    const owner = ownerOf(client, server)
    const isVirtual = typeof client === 'string' || typeof server === 'string'
    const rank = rankOf(client, server)
    if (!this.#room.offers(owner, rank)) {
      this.#overflow ??= this.#made(Attributes.of({ [overflowAttribute]: true }), owner, rank)
      return this.#overflow
    }
    const attributes = Attributes.of({ client: from, server: to })
    if (isVirtual) attributes.add('connection_type', 'virtual_node')
    const edge = this.#made(attributes, owner, rank, from, to)
    this.#room.add(edge)
    this.#textBytes += from.length + to.length
    // Looked up again: the place may have been that of another edge of this client.
    const servers = this.#edges.get(from)
    if (servers === undefined) this.#edges.set(from, new Map([[to, edge]]))
    else servers.set(to, edge)
    return edge
  }

  #forget({ from, to }: Edge): void {
    const servers = this.#edges.get(from)
    if (!servers?.delete(to)) return
    this.#textBytes -= from.length + to.length
    if (servers.size === 0) this.#edges.delete(from)
  }

  #made(attributes: Attributes, owner: Owner, rank: number, from = '', to = ''): Edge {
    const startUs = this.#sinceUs
    return {
      from,
      to,
      attributes,
      startUs,
      owner,
      rank,
      idle: 0,
      leaving: false,
      total: 0,
      failed: 0,
      client: explicit.create(attributes, startUs, this.#scale),
      server: explicit.create(attributes, startUs, this.#scale),
    }
  }
}

type Durations = ReturnType<typeof explicit.create>

interface Edge extends PlacedSeries {
  readonly from: string
  readonly to: string
  readonly attributes: Attributes
  readonly startUs: number
  total: number
  failed: number
  readonly client: Durations
  readonly server: Durations
}

function rankOf(client: Resource | string, server: Resource | string): number {
  if (typeof client === 'string') return ranks.fromOutside
  return typeof server === 'string' ? ranks.toOutside : ranks.within
}

function ownerOf(client: Resource | string, server: Resource | string): Owner {
  const side = typeof client === 'string' ? server : client
  return (typeof side === 'string' ? undefined : side.owner) ?? hostOwner
}

function sum({ name, description, unit }: MetricDeclaration, points: readonly NumberPoint[]): Metric {
  return { kind: 'sum', name, description, unit, monotonic: true, integer: true, points }
}
