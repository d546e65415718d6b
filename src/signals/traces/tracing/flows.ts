import { BoundedMap } from '../../../foundation/lib/bounded-map.ts'
import type { Owner, ShareLosses } from '../../../foundation/lib/fair-share.ts'
import { isLoopback } from '../../../foundation/lib/ip-text.ts'
import { Attributes } from '../../../foundation/model/attributes.ts'
import type { Metric, NumberPoint } from '../../../foundation/model/metric.ts'
import { type MetricDeclaration, overflowAttribute } from '../../../foundation/model/metric-declaration.ts'
import type { NetworkPair } from '../../../foundation/model/network-pair.ts'
import { type PlacedSeries, SeriesRoom } from './series-room.ts'

export interface FlowsOptions {
  /** Microseconds since the Unix epoch: start of counting. */
  readonly startUs: number
  /** The interface that has a local address, '' if unknown. */
  readonly interfaceOf: (address: string) => string
  /** Only flows of these interfaces; empty: all. */
  readonly interfaces: readonly string[]
  /** Flows that owners share; an owner without room is counted in one flow, marked `otel.metric.overflow`. */
  readonly maxFlows?: number
  /** Collections without a change after which a flow is removed. */
  readonly idleCollections?: number
}

/**
 * Bytes between two addresses and services, each byte once: for connections with both ends on this host, the client's
 * end is counted and the server's end only adds its name. A flow counts against the share of its client's owner, or the
 * server's if the client is on another host.
 *
 * A new end waits until the next collection, so that the other end can be seen.
 */
export class Flows {
  readonly #options: FlowsOptions
  readonly #flows = new Map<string, Flow>()
  readonly #ends = new BoundedMap<string, Ends>(maxEnds)
  readonly #waiting = new Map<string, Waiting>()
  readonly #room: SeriesRoom<Flow>
  readonly #idleCollections: number
  #overflow: FlowBytes | undefined
  #sinceUs: number
  #round = 0

  constructor(options: FlowsOptions) {
    this.#options = options
    this.#sinceUs = options.startUs
    this.#room = new SeriesRoom(options.maxFlows ?? 4_096, ({ id }) => this.#flows.delete(id))
    this.#idleCollections = options.idleCollections ?? 20
  }

  /** Estimated memory in use. */
  get bytes(): number {
    return (this.#flows.size + this.#waiting.size) * flowBytes + this.#ends.size * endsBytes
  }

  /** Number of known flows, and of ends waiting for their other end. */
  get size(): number {
    return this.#flows.size + this.#waiting.size
  }

  /** Times that bytes were counted without a flow of their own, and flows removed for other owners. */
  get losses(): ShareLosses {
    return this.#room.losses
  }

  /** Drops state that can be rebuilt, and idle flows; returns about how many bytes were freed. */
  shed(bytes: number): number {
    const before = this.bytes
    // Ends wait for their other end again.
    this.#ends.clear()
    this.#room.shed(Math.ceil((bytes - (before - this.bytes)) / flowBytes))
    return before - this.bytes
  }

  /**
   * Adds the changes of a pair since the last call; `service` is the `service.name` of its process, `owner` its owner.
   */
  add(pair: NetworkPair, service: string, owner: Owner): void {
    const { sent, received, server } = pair
    if (sent === 0 && received === 0) return
    if (pair.overflow) {
      this.#overflowFlow().bytes += sent + received
      return
    }
    const device = this.#options.interfaceOf(pair.localAddress)
    const { interfaces } = this.#options
    if (interfaces.length > 0 && !interfaces.includes(device)) return
    const client = server ? pair.peerAddress : pair.localAddress
    const host = server ? pair.localAddress : pair.peerAddress
    // A loopback address means another host in each network namespace.
    const within = isLoopback(host) ? pair.netns : 0
    const tuple = `${client} ${host} ${pair.port} ${within}`
    let ends = this.#ends.get(tuple)
    if (ends === undefined) {
      ends = { client: false, server: undefined, since: this.#round }
      this.#ends.set(tuple, ends)
    }
    if (server) ends.server = service
    else ends.client = true
    const id = `${tuple} ${server} ${device} ${service}`
    const waits = this.#waiting.get(id)
    if (waits !== undefined) {
      waits.sent += sent
      waits.received += received
      return
    }
    if (this.#waiting.size >= maxEnds) {
      this.#overflowFlow().bytes += sent + received
      return
    }
    this.#waiting.set(id, {
      ends,
      client,
      host,
      port: pair.port,
      server,
      service,
      owner,
      device,
      sent,
      received,
    })
  }

  /** All flows at `timeUs` (microseconds since the Unix epoch). `last`: ends no longer wait. */
  collect(timeUs: number, last = false): Metric[] {
    this.#round++
    this.#room.begin()
    for (const [id, waits] of this.#waiting) {
      const { ends } = waits
      const both = ends.client && ends.server !== undefined
      if (!both && !last && ends.since >= this.#round - 1) continue
      this.#waiting.delete(id)
      this.#settle(waits)
    }
    const points: NumberPoint[] = []
    const report = ({ attributes, startUs, bytes }: FlowBytes) =>
      points.push({ attributes, startUs, timeUs, value: bytes })
    for (const [id, flow] of this.#flows) {
      report(flow)
      if (this.#room.ends(flow, this.#idleCollections)) this.#flows.delete(id)
    }
    if (this.#overflow !== undefined) report(this.#overflow)
    this.#sinceUs = timeUs
    if (points.length === 0) return []
    return [
      {
        kind: 'sum',
        name: flowMetric.name,
        description: flowMetric.description,
        unit: flowMetric.unit,
        monotonic: true,
        integer: true,
        points,
      },
    ]
  }

  #settle(waits: Waiting): void {
    const { ends, client, host, server, service, sent, received } = waits
    if (server) {
      if (ends.client) return
      this.#count(waits, client, host, 'receive', '', service, received)
      this.#count(waits, host, client, 'transmit', service, '', sent)
      return
    }
    const answers = ends.server ?? ''
    this.#count(waits, client, host, 'transmit', service, answers, sent)
    // Bytes sent by another process of this host are also transmitted here.
    const direction = ends.server === undefined ? 'receive' : 'transmit'
    this.#count(waits, host, client, direction, answers, service, received)
  }

  #count(
    { port, device, owner }: Waiting,
    source: string,
    destination: string,
    direction: 'transmit' | 'receive',
    sourceService: string,
    destinationService: string,
    bytes: number,
  ): void {
    if (bytes === 0) return
    const id = `${source} ${destination} ${port} ${direction} ${device} ${sourceService}\0${destinationService}`
    let flow = this.#flows.get(id)
    if (flow === undefined) {
      if (!this.#room.offers(owner, 0)) {
        this.#overflowFlow().bytes += bytes
        return
      }
      const attributes = new Attributes()
      attributes.add('source.address', source)
      attributes.add('destination.address', destination)
      attributes.add('server.port', port)
      attributes.add('network.transport', 'tcp')
      attributes.add('network.type', source.includes(':') ? 'ipv6' : 'ipv4')
      attributes.add('network.io.direction', direction)
      if (device !== '') attributes.add('network.interface.name', device)
      if (sourceService !== '') attributes.add('svc.source.service.name', sourceService)
      if (destinationService !== '') attributes.add('svc.destination.service.name', destinationService)
      flow = { id, owner, rank: 0, attributes, startUs: this.#sinceUs, bytes: 0, idle: 0, leaving: false }
      this.#flows.set(id, flow)
      this.#room.add(flow)
    }
    flow.bytes += bytes
    flow.idle = 0
  }

  #overflowFlow(): FlowBytes {
    this.#overflow ??= {
      attributes: Attributes.of({ [overflowAttribute]: true }),
      startUs: this.#sinceUs,
      bytes: 0,
    }
    return this.#overflow
  }
}

/** The metric of flows. */
export const flowMetric: MetricDeclaration = {
  name: 'svc.network.flow.io',
  description: 'Bytes of TCP payload from one address to another; within this host each is counted once.',
  unit: 'By',
  kind: 'counter',
  attributes: [
    'source.address',
    'destination.address',
    'server.port',
    'network.transport',
    'network.type',
    'network.io.direction',
    'network.interface.name',
    'svc.source.service.name',
    'svc.destination.service.name',
    overflowAttribute,
  ],
}

interface FlowBytes {
  readonly attributes: Attributes
  readonly startUs: number
  bytes: number
}

interface Flow extends FlowBytes, PlacedSeries {
  readonly id: string
}

/** The known ends of connections from one address to a port of another. */
interface Ends {
  /** The client is on this host. */
  client: boolean
  /** The service that answers, if it is on this host. */
  server: string | undefined
  /** The round in which the first end was seen. */
  readonly since: number
}

interface Waiting {
  readonly ends: Ends
  readonly client: string
  readonly host: string
  readonly port: number
  readonly server: boolean
  readonly service: string
  readonly owner: Owner
  readonly device: string
  sent: number
  received: number
}

/** As many as the kernel's table has pairs. That table is shared fairly, and so this one is, too. */
const maxEnds = 16_384
/** Measured sizes. */
const flowBytes = 512
const endsBytes = 256
