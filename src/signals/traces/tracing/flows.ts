import { BoundedMap } from '../../../foundation/lib/bounded-map.ts'
import type { Owner, ShareLosses } from '../../../foundation/lib/fair-share.ts'
import { Attributes } from '../../../foundation/model/attributes.ts'
import type { Metric, NumberPoint } from '../../../foundation/model/metric.ts'
import { type MetricDeclaration, overflowAttribute } from '../../../foundation/model/metric-declaration.ts'
import type { NetworkPair } from '../../../foundation/model/network-pair.ts'
import { type PlacedSeries, SeriesRoom } from './series-room.ts'

export interface FlowsOptions {
  /** Microseconds since the Unix epoch: from when is counted. */
  readonly startUs: number
  /** The interface that has a local address, '' for none that is known. */
  readonly interfaceOf: (address: string) => string
  /** Only flows of these; empty: all. */
  readonly interfaces: readonly string[]
  /** Flows that owners share; who has no more room is counted in one flow, marked `otel.metric.overflow`. */
  readonly maxFlows?: number
  /** Collections without a change after which a flow is let go. */
  readonly idleCollections?: number
}

/**
 * Bytes between two addresses and services, each byte once: of connections whose two ends are both on this host, the
 * client's end is counted and the server's end gives its name only. A flow takes a place of its client's owner, or of the
 * server's where the client is not of this host.
 *
 * An end that is new waits until the next collection, so that the other end can be seen.
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

  /** Memory that is taken now, by estimate. */
  get bytes(): number {
    return (this.#flows.size + this.#waiting.size) * flowBytes + this.#ends.size * endsBytes
  }

  /** How many flows are known, and how many ends wait for their other end. */
  get size(): number {
    return this.#flows.size + this.#waiting.size
  }

  /** Times that bytes were counted without a flow of their own, and flows that others got the place of. */
  get losses(): ShareLosses {
    return this.#room.losses
  }

  /** Forgets what can be seen again, and lets go of flows that are idle; returns how many bytes that gives back, about. */
  shed(bytes: number): number {
    const before = this.bytes
    // Ends wait for their other end once more.
    this.#ends.clear()
    this.#room.shed(Math.ceil((bytes - (before - this.bytes)) / flowBytes))
    return before - this.bytes
  }

  /** Adds what a pair did since the last time; `service` is the `service.name` of its process, `owner` who answers for it. */
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
    // A loopback address means another host in each namespace.
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

  /** All flows at `timeUs` (microseconds since the Unix epoch). `last`: nobody waits any longer. */
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
    const tell = ({ attributes, startUs, bytes }: FlowBytes) =>
      points.push({ attributes, startUs, timeUs, value: bytes })
    for (const [id, flow] of this.#flows) {
      tell(flow)
      if (this.#room.ends(flow, this.#idleCollections)) this.#flows.delete(id)
    }
    if (this.#overflow !== undefined) tell(this.#overflow)
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
    // What another process of this host sent is transmitted here, too.
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

/** The one metric of flows. */
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

/** What is known of the two ends of connections from one address to a port of another. */
interface Ends {
  /** The client is on this host. */
  client: boolean
  /** The service that answers, if it is on this host. */
  server: string | undefined
  /** The round in which the first of them was seen. */
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

/** As many as the kernel's table has pairs, which are what fills it: who shares that one shares this one. */
const maxEnds = 16_384
/** What they take, measured. */
const flowBytes = 512
const endsBytes = 256

function isLoopback(address: string): boolean {
  return address.startsWith('127.') || address === '::1'
}
