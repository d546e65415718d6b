import { Attributes } from '../model/attributes.ts'
import type { Metric, NumberPoint } from '../model/metric.ts'
import { type MetricDeclaration, overflowAttribute } from '../model/metric-declaration.ts'
import type { Resource } from '../model/resource.ts'
import { explicit, Scale } from './duration-series.ts'

export interface ServiceGraphOptions {
  /** Microseconds since the Unix epoch: from when is counted. */
  readonly startUs: number
  /** Edges beyond this many go to one, marked `otel.metric.overflow`. Half of them may be to or from other hosts. */
  readonly maxEdges?: number
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
  description: 'Duration of requests as the client sees it.',
  unit: 's',
  kind: 'histogram',
  attributes,
}
const serverTimes: MetricDeclaration = {
  name: 'traces_service_graph_request_server',
  description: 'Duration of requests as the server sees it.',
  unit: 's',
  kind: 'histogram',
  attributes,
}

/** All metrics of who asks whom. */
export const graphMetrics: readonly MetricDeclaration[] = [requests, failures, clientTimes, serverTimes]

/**
 * Who asks whom, and how that goes: the metrics of Tempo's and the Collector's service graphs, by the same names, so
 * that their dashboards fit. One request is one call of `edge`, whichever of its sides were seen.
 */
export class ServiceGraph {
  private readonly edges = new Map<string, Map<string, Edge>>()
  private readonly scale: Scale
  private readonly bounds: readonly number[]
  private readonly maxEdges: number
  private overflow: Edge | undefined
  private count = 0
  private virtual = 0
  private sinceUs: number

  constructor(options: ServiceGraphOptions) {
    this.sinceUs = options.startUs
    this.maxEdges = options.maxEdges ?? 2_000
    this.bounds = options.bounds ?? requestBounds
    this.scale = new Scale(this.bounds)
  }

  /** How many edges there are, the overflow's left out. */
  get size(): number {
    return this.count
  }

  /**
   * Counts one request. A side that is not of this host is told by its address or name. Durations are in nanoseconds;
   * below zero: that side was not seen.
   */
  edge(
    client: Resource | string,
    server: Resource | string,
    failed: boolean,
    clientNs: number,
    serverNs: number,
  ): void {
    const edge = this.find(client, server)
    edge.total++
    if (failed) edge.failed++
    if (clientNs >= 0) edge.client.observe(clientNs)
    if (serverNs >= 0) edge.server.observe(serverNs)
  }

  /** All edges at `timeUs` (microseconds since the Unix epoch); valid until the next call. For the host's resource. */
  collect(timeUs: number): Metric[] {
    this.sinceUs = timeUs
    const all: Edge[] = []
    for (const servers of this.edges.values()) all.push(...servers.values())
    if (this.overflow !== undefined) all.push(this.overflow)
    if (all.length === 0) return []
    const point = ({ attributes, startUs }: Edge, value: number): NumberPoint => ({
      attributes,
      startUs,
      timeUs,
      value,
    })
    const { bounds } = this
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

  private find(client: Resource | string, server: Resource | string): Edge {
    const from = nameOf(client)
    const to = nameOf(server)
    let servers = this.edges.get(from)
    const known = servers?.get(to)
    if (known !== undefined) return known
    const virtual = typeof client === 'string' || typeof server === 'string'
    if (this.count >= this.maxEdges || (virtual && this.virtual >= this.maxEdges / 2)) {
      this.overflow ??= this.made(Attributes.of({ [overflowAttribute]: true }))
      return this.overflow
    }
    if (servers === undefined) {
      servers = new Map()
      this.edges.set(from, servers)
    }
    const attributes = Attributes.of({ client: from, server: to })
    if (virtual) {
      attributes.add('connection_type', 'virtual_node')
      this.virtual++
    }
    const edge = this.made(attributes)
    servers.set(to, edge)
    this.count++
    return edge
  }

  private made(attributes: Attributes): Edge {
    const startUs = this.sinceUs
    return {
      attributes,
      startUs,
      total: 0,
      failed: 0,
      client: explicit.create(attributes, startUs, this.scale),
      server: explicit.create(attributes, startUs, this.scale),
    }
  }
}

type Durations = ReturnType<typeof explicit.create>

interface Edge {
  readonly attributes: Attributes
  readonly startUs: number
  total: number
  failed: number
  readonly client: Durations
  readonly server: Durations
}

function nameOf(side: Resource | string): string {
  return typeof side === 'string' ? side : String(side.attributes.get('service.name') ?? '')
}

function sum({ name, description, unit }: MetricDeclaration, points: readonly NumberPoint[]): Metric {
  return { kind: 'sum', name, description, unit, monotonic: true, integer: true, points }
}
