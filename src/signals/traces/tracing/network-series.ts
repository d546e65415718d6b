import type { Owner, ShareLosses } from '../../../foundation/lib/fair-share.ts'
import { Attributes } from '../../../foundation/model/attributes.ts'
import type { HistogramPoint, Metric, NumberPoint } from '../../../foundation/model/metric.ts'
import { type MetricDeclaration, overflowAttribute } from '../../../foundation/model/metric-declaration.ts'
import {
  connectBounds,
  connectFailures,
  type NetworkPair,
  rttBounds,
} from '../../../foundation/model/network-pair.ts'
import { hostOwner, type Resource } from '../../../foundation/model/resource.ts'
import type { ResourceMetrics } from './red.ts'
import { type PlacedSeries, SeriesRoom } from './series-room.ts'

export interface NetworkSeriesOptions {
  /** Microseconds since the Unix epoch: start of counting. */
  readonly startUs: number
  /**
   * Places for series and for resources, which owners share. A series without a place is counted in its resource's
   * overflow series, marked `otel.metric.overflow`; a resource without one is not counted.
   */
  readonly maxSeries?: number
  /** Bytes of all series; above it, new ones overflow as above `maxSeries`. Default: no bound. */
  readonly maxBytes?: number
  /** The same for the series of one resource. */
  readonly maxResourceSeries?: number
  /** Collections without a change after which a series without a connection is removed. */
  readonly idleCollections?: number
}

/** Size of a series, measured. */
const seriesBytes = 2700
/** A resource is removed when it has no series left. */
const seriesRank = 0
const resourceRank = 1
/** Places if there is no other bound. */
const mostSeries = 10_000

/** The metrics of TCP connections, by process, side, peer and port: see docs/network.md. Cumulative and exact. */
export class NetworkSeries {
  readonly #resources = new Map<Resource, ResourceSeries>()
  readonly #room: SeriesRoom<Series | ResourceSeries>
  readonly #maxResourceSeries: number
  readonly #idleCollections: number
  /** Time of the last collection: the start of series created since then. */
  #sinceUs: number

  constructor(options: NetworkSeriesOptions) {
    this.#sinceUs = options.startUs
    const mostByBytes = Math.floor((options.maxBytes ?? Number.POSITIVE_INFINITY) / seriesBytes)
    this.#room = new SeriesRoom(Math.min(options.maxSeries ?? mostSeries, mostByBytes), of => {
      if (of instanceof Series) of.home.series.delete(of.id)
      else this.#resources.delete(of.resource)
    })
    this.#maxResourceSeries = options.maxResourceSeries ?? 1_000
    this.#idleCollections = options.idleCollections ?? 20
  }

  /** Estimated memory in use. */
  get bytes(): number {
    return this.#room.size * seriesBytes
  }

  /** Number of series and resources, without overflow series. */
  get size(): number {
    return this.#room.size
  }

  /** Times that a pair was not counted or had no series of its own, and series removed for other owners. */
  get losses(): ShareLosses {
    return this.#room.losses
  }

  /** Adds the changes of a pair since the last call. `resource` is that of its process. */
  add(resource: Resource, pair: NetworkPair): void {
    let of = this.#resources.get(resource)
    if (of === undefined) {
      if (!this.#room.offers(resource.owner ?? hostOwner, resourceRank)) return
      of = new ResourceSeries(resource, this.#sinceUs)
      this.#room.add(of)
      this.#resources.set(resource, of)
    }
    of.idle = 0
    if (pair.pid !== 0 && !pair.overflow) {
      of.sent += pair.sent
      of.received += pair.received
    }
    this.#find(of, pair).add(pair)
  }

  /**
   * All series at `timeUs` (microseconds since the Unix epoch). The points are valid until the next call on this
   * object. Forgotten resources are included for the last time.
   */
  collect(timeUs: number): ResourceMetrics[] {
    const all: ResourceMetrics[] = []
    this.#room.begin()
    for (const [resource, of] of this.#resources) {
      all.push({ resource, metrics: of.metrics(timeUs) })
      for (const [id, series] of of.series)
        if (this.#room.ends(series, series.open === 0 ? this.#idleCollections : Number.POSITIVE_INFINITY))
          of.series.delete(id)
      if (!this.#room.ends(of, Number.POSITIVE_INFINITY) && !of.forgotten) continue
      if (!of.leaving) this.#room.remove(of)
      for (const series of of.series.values()) this.#room.remove(series)
      this.#resources.delete(resource)
    }
    this.#sinceUs = timeUs
    return all
  }

  /** The resource is gone (its process ended): its series are collected once more, then removed. */
  forget(resource: Resource): void {
    const of = this.#resources.get(resource)
    if (of !== undefined) of.forgotten = true
  }

  #find(of: ResourceSeries, pair: NetworkPair): Series {
    if (pair.overflow) return of.overflowSeries(this.#sinceUs)
    const id = `${pair.server ? 's' : 'c'}${pair.port} ${pair.peerAddress}`
    const known = of.series.get(id)
    if (known !== undefined) return known
    if (of.series.size >= this.#maxResourceSeries || !this.#room.offers(of.owner, seriesRank))
      return of.overflowSeries(this.#sinceUs)
    const series = new Series(pairAttributes(pair), this.#sinceUs, of, id)
    of.series.set(id, series)
    this.#room.add(series)
    return series
  }
}

class ResourceSeries implements PlacedSeries {
  readonly resource: Resource
  readonly owner: Owner
  readonly rank = resourceRank
  readonly series = new Map<string, Series>()
  readonly startUs: number
  idle = 0
  leaving = false
  overflow: Series | undefined
  sent = 0
  received = 0
  forgotten = false

  constructor(resource: Resource, startUs: number) {
    this.resource = resource
    this.owner = resource.owner ?? hostOwner
    this.startUs = startUs
  }

  overflowSeries(startUs: number): Series {
    this.overflow ??= new Series(Attributes.of({ [overflowAttribute]: true }), startUs, this)
    return this.overflow
  }

  metrics(timeUs: number): Metric[] {
    const series = [...this.series.values()]
    if (this.overflow !== undefined) series.push(this.overflow)
    const { startUs, sent, received } = this
    const io = [
      { attributes: transmitted, startUs, timeUs, value: sent },
      { attributes: taken, startUs, timeUs, value: received },
    ]
    const metrics: Metric[] = [
      sum(processIo, sent + received > 0 ? io : []),
      ...sums.map(desc => sum(desc, points(desc, series, timeUs))),
    ]
    for (const desc of histograms)
      metrics.push({
        kind: 'histogram',
        name: desc.name,
        description: desc.description,
        unit: 's',
        bounds: desc.bounds,
        points: histogramPoints(desc, series, timeUs),
      })
    return metrics.filter(metric => metric.points.length > 0)
  }
}

/** The counts of one series. */
class Series implements PlacedSeries {
  readonly home: ResourceSeries
  readonly id: string
  readonly owner: Owner
  readonly rank = seriesRank
  readonly attributes: Attributes
  readonly sending: Attributes
  readonly receiving: Attributes
  /** By failure; created on first use. */
  readonly failing: (Attributes | undefined)[] = []
  readonly startUs: number
  idle = 0
  leaving = false
  opened = 0
  open = 0
  sent = 0
  received = 0
  retransmits = 0
  resetsSent = 0
  resetsReceived = 0
  connectNs = 0
  rttUs = 0
  readonly connectBuckets = new Float64Array(connectBounds.length + 1)
  readonly rttBuckets = new Float64Array(rttBounds.length + 1)
  readonly failures = new Float64Array(connectFailures.length)

  constructor(attributes: Attributes, startUs: number, home: ResourceSeries, id = '') {
    this.home = home
    this.id = id
    this.owner = home.owner
    this.attributes = attributes
    this.startUs = startUs
    this.sending = withOne(attributes, 'network.io.direction', 'transmit')
    this.receiving = withOne(attributes, 'network.io.direction', 'receive')
  }

  add(pair: NetworkPair): void {
    this.idle = 0
    this.opened += pair.opened
    // The series only sees the end of connections that were counted elsewhere while there was no room.
    this.open = Math.max(0, this.open + pair.openChange)
    this.sent += pair.sent
    this.received += pair.received
    this.retransmits += pair.retransmits
    this.resetsSent += pair.resetsSent
    this.resetsReceived += pair.resetsReceived
    this.connectNs += pair.connectNs
    this.rttUs += pair.rttUs
    addAll(this.connectBuckets, pair.connectBuckets)
    addAll(this.rttBuckets, pair.rttBuckets)
    addAll(this.failures, pair.failures)
  }

  failed(kind: number): Attributes {
    this.failing[kind] ??= withOne(this.attributes, 'error.type', connectFailures[kind] ?? '_OTHER')
    return this.failing[kind]
  }
}

/** A sum metric, and its points in a series: attributes and value of each. */
interface SumDesc {
  readonly name: string
  readonly description: string
  readonly unit: string
  /** The value may fall, as it is a current number. */
  readonly rises?: false
  /** The attribute of its points in addition to those of the series. */
  readonly pointAttribute?: 'network.io.direction' | 'error.type'
  readonly points: (series: Series, add: (attributes: Attributes, value: number) => void) => void
}

interface HistogramDesc {
  readonly name: string
  readonly description: string
  readonly bounds: readonly number[]
  readonly buckets: (series: Series) => Float64Array
  /** Seconds. */
  readonly sum: (series: Series) => number
}

const transmitted = Attributes.of({ 'network.io.direction': 'transmit' })
const taken = Attributes.of({ 'network.io.direction': 'receive' })

const processIo = {
  name: 'process.network.io',
  description: 'Bytes that the process sent and received over TCP.',
  unit: 'By',
}

const sums: readonly SumDesc[] = [
  {
    name: 'svc.network.connection.io',
    description: 'Bytes of payload by TCP peer, without retransmissions.',
    unit: 'By',
    pointAttribute: 'network.io.direction',
    points(series, add) {
      if (series.sent > 0) add(series.sending, series.sent)
      if (series.received > 0) add(series.receiving, series.received)
    },
  },
  {
    name: 'svc.network.tcp.connections.opened',
    description: 'TCP connections that were established, to and from the process.',
    unit: '{connection}',
    points: ({ attributes, opened }, add) => opened > 0 && add(attributes, opened),
  },
  {
    name: 'svc.network.tcp.connections',
    description: 'TCP connections that are established.',
    unit: '{connection}',
    rises: false,
    points: ({ attributes, opened, open }, add) => (opened > 0 || open > 0) && add(attributes, open),
  },
  {
    name: 'svc.network.tcp.connect.failures',
    description: 'Failed connection attempts of the process.',
    unit: '{connection}',
    pointAttribute: 'error.type',
    points(series, add) {
      for (const [kind, times] of series.failures.entries()) if (times > 0) add(series.failed(kind), times)
    },
  },
  {
    name: 'svc.network.tcp.retransmits',
    description: 'Retransmitted segments.',
    unit: '{packet}',
    points: ({ attributes, retransmits }, add) => retransmits > 0 && add(attributes, retransmits),
  },
  {
    name: 'svc.network.tcp.resets',
    description: 'Connections reset by this side (transmit) or by the peer (receive).',
    unit: '{packet}',
    pointAttribute: 'network.io.direction',
    points({ sending, receiving, resetsSent, resetsReceived }, add) {
      if (resetsSent > 0) add(sending, resetsSent)
      if (resetsReceived > 0) add(receiving, resetsReceived)
    },
  },
]

const histograms: readonly HistogramDesc[] = [
  {
    name: 'svc.network.tcp.connect.duration',
    description: 'Time from the first SYN until the connection was established.',
    bounds: connectBounds,
    buckets: series => series.connectBuckets,
    sum: series => series.connectNs / 1e9,
  },
  {
    name: 'svc.network.tcp.rtt',
    description:
      'Smoothed round-trip times: one at the end of each connection, and at most one per interval while it sends.',
    bounds: rttBounds,
    buckets: series => series.rttBuckets,
    sum: series => series.rttUs / 1e6,
  },
]

/** The attributes of each series. */
const pairKeys = [
  'network.peer.address',
  'server.port',
  'network.transport',
  'network.type',
  'svc.network.side',
  overflowAttribute,
]

/** All metrics of connections. */
export const networkMetrics: readonly MetricDeclaration[] = [
  { ...processIo, kind: 'counter', attributes: ['network.io.direction'] },
  ...sums.map(
    ({ name, description, unit, rises, pointAttribute }): MetricDeclaration => ({
      name,
      description,
      unit,
      kind: rises === false ? 'updowncounter' : 'counter',
      attributes: pointAttribute === undefined ? pairKeys : [...pairKeys, pointAttribute],
    }),
  ),
  ...histograms.map(
    ({ name, description }): MetricDeclaration => ({
      name,
      description,
      unit: 's',
      kind: 'histogram',
      attributes: pairKeys,
    }),
  ),
]

function sum(
  desc: { name: string; description: string; unit: string; rises?: false },
  points: NumberPoint[],
): Metric {
  const { name, description, unit, rises } = desc
  return { kind: 'sum', name, description, unit, monotonic: rises !== false, integer: true, points }
}

function points(desc: SumDesc, all: readonly Series[], timeUs: number): NumberPoint[] {
  const found: NumberPoint[] = []
  for (const series of all) {
    const { startUs } = series
    desc.points(series, (attributes, value) => found.push({ attributes, startUs, timeUs, value }))
  }
  return found
}

function histogramPoints(desc: HistogramDesc, all: readonly Series[], timeUs: number): HistogramPoint[] {
  const found: HistogramPoint[] = []
  for (const series of all) {
    const buckets = desc.buckets(series)
    let count = 0
    for (const times of buckets) count += times
    if (count === 0) continue
    const { attributes, startUs } = series
    found.push({ attributes, startUs, timeUs, count, sum: desc.sum(series), buckets })
  }
  return found
}

function pairAttributes(pair: NetworkPair): Attributes {
  return Attributes.of({
    'network.peer.address': pair.peerAddress,
    'server.port': pair.port,
    'network.transport': 'tcp',
    'network.type': pair.peerAddress.includes(':') ? 'ipv6' : 'ipv4',
    'svc.network.side': pair.server ? 'server' : 'client',
  })
}

function withOne(attributes: Attributes, key: string, value: string): Attributes {
  const more = new Attributes()
  for (let i = 0; i < attributes.size; i++) more.add(attributes.keys[i]!, attributes.values[i]!)
  more.add(key, value)
  return more
}

function addAll(sums: Float64Array, more: Float64Array): void {
  for (let i = 0; i < sums.length; i++) sums[i]! += more[i]!
}
