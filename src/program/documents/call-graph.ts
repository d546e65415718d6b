// Calls between services, from the edges in the window.

import { hostPort } from '../../foundation/lib/host-port.ts'
import type { Resource } from '../../foundation/model/resource.ts'
import { protocols } from '../../signals/traces/protocols/index.ts'
import type { MapLine } from '../../view/api/ui/documents.ts'
import { durationBuckets } from '../../view/window/duration-counts.ts'
import type { Edge, EdgeNode } from '../../view/window/edge-graph.ts'
import { type EdgeSum, type EdgeWindow, isRest } from '../../view/window/edge-window.ts'
import type { DocumentContext } from './document-context.ts'
import { LocalNames, SeenAddresses, type ServiceId } from './local-names.ts'
import { rounded } from './percentiles.ts'

export type CallNodeKind = MapLine['nodes'][number]['kind']

/** A service of this host, or an address elsewhere. */
export interface CallNode {
  /** Stable while the party exists. */
  readonly id: string
  readonly name: string
  readonly namespace: string
  /** It is a service of this host. */
  readonly isHere: boolean
  kind: CallNodeKind
  /** Resource of its newest process; undefined if no process was observed. */
  resource: Resource | undefined
  readonly asks: Call[]
  readonly answers: Call[]
}

/** Counted requests. */
export interface Figures {
  count: number
  failed: number
  /** Time during which any of them was observed. */
  seconds: number
  perSecond: number
  /** As `percentileMs` expects them. */
  readonly durations: Float64Array
}

/** Requests from one party to another in one protocol. */
export interface Call {
  readonly from: CallNode
  readonly to: CallNode
  readonly protocol: string
  /** All of them are requests for health or metrics. */
  probe: boolean
  figures: Figures
}

/** Kind of the callee by protocol; for other protocols it follows from the address. */
const kinds: Readonly<Record<string, CallNodeKind | undefined>> = Object.fromEntries(
  protocols.map(({ name, peerKind: party }) => [name, party]),
)
/** Names of protocols that differ from those in the code. */
const words: Readonly<Record<string, string>> = { http1: 'http', http2: 'http', postgres: 'postgresql' }

/** The common name of a protocol. */
export function protocolWord(protocol: string): string {
  return words[protocol] ?? protocol
}

/** The parties of edges, at one moment. */
export class Naming {
  readonly parties = new Map<string, CallNode>()
  readonly #names: LocalNames
  readonly #seen: SeenAddresses
  readonly #ofNode = new Map<EdgeNode, CallNode>()

  constructor(window: EdgeWindow, names: LocalNames) {
    const nodes = new Set<EdgeNode>()
    for (const { from, to } of window.edges()) nodes.add(from).add(to)
    this.#names = names
    this.#seen = new SeenAddresses(nodes, names)
  }

  from({ from }: Edge): CallNode {
    return this.#party(from)
  }

  to({ to, protocol }: Edge): CallNode {
    const party = this.#party(to)
    const kind = kinds[protocol]
    if (kind !== undefined) party.kind = kind
    return party
  }

  #party(node: EdgeNode): CallNode {
    let party = this.#ofNode.get(node)
    if (party === undefined) {
      party = this.#partyOf(node)
      this.#ofNode.set(node, party)
    }
    return party
  }

  #partyOf(node: EdgeNode): CallNode {
    const { name, port, protocol, resource } = node
    if (resource !== undefined) return this.#here(node, resource)
    const word = protocolWord(protocol)
    const isAsked = protocol !== ''
    const place = port === 0 ? name : hostPort(name, port)
    if (isRest(node))
      return this.#there(
        `rest:${word}`,
        isAsked ? `${word} (other addresses)` : 'other addresses',
        kinds[protocol],
      )
    const listener = isAsked ? this.#names.at(name, port) : undefined
    if (listener !== undefined) return this.#here(listener, undefined)
    // The port identifies the party where only part of its traffic is observed on the server's side.
    const seen = isAsked && kinds[protocol] !== undefined ? undefined : this.#seen.at(name)
    if (seen !== undefined) return this.#party(seen)
    if (!isAsked) return this.#there(`address:${name}`, name, undefined)
    const kind = kinds[protocol]
    return this.#there(`${kind ?? 'at'}:${place}`, kind === undefined ? place : `${word} (${place})`, kind)
  }

  #here({ name, namespace }: ServiceId, resource: Resource | undefined): CallNode {
    const party = this.#made(`service:${namespace}/${name}`, name, namespace, true, 'service')
    party.resource ??= resource
    return party
  }

  #there(id: string, name: string, kind: CallNodeKind | undefined): CallNode {
    return this.#made(id, name, '', false, kind ?? 'external')
  }

  #made(id: string, name: string, namespace: string, isHere: boolean, kind: CallNodeKind): CallNode {
    let party = this.parties.get(id)
    if (party === undefined) {
      party = { id, name, namespace, isHere, kind, resource: undefined, asks: [], answers: [] }
      this.parties.set(id, party)
    }
    return party
  }
}

/**
 * The edges that count when requests of one party are merged. Between containers, each side knows the other one by its
 * address, and both report the same requests: a party's own observations count, or else those of its peers.
 */
export class Sides {
  readonly #own = { from: new Set<CallNode>(), to: new Set<CallNode>() }
  readonly #naming: Naming

  constructor(window: EdgeWindow, naming: Naming) {
    this.#naming = naming
    for (const edge of window.edges()) {
      if (edge.from.resource !== undefined) this.#own.from.add(naming.from(edge))
      if (edge.to.resource !== undefined) this.#own.to.add(naming.to(edge))
    }
  }

  counts(edge: Edge, side: 'from' | 'to'): boolean {
    return edge[side].resource !== undefined || !this.#own[side].has(this.#naming[side](edge))
  }
}

/** Requests between two parties, by the side that observed them. */
interface Views {
  readonly call: Call
  /** Both sides; the client's side alone; the server's side alone. */
  readonly both: Figures
  readonly asked: Figures
  readonly answered: Figures
}

/** Calls in about the last `seconds`. Parties without calls are omitted. */
export function callGraph(window: EdgeWindow, names: LocalNames, seconds: number): Map<string, CallNode> {
  names.refresh()
  const naming = new Naming(window, names)
  const found = new Map<string, Views>()
  for (const sum of window.sums(seconds)) {
    const { edge } = sum
    const from = naming.from(edge)
    const to = naming.to(edge)
    const protocol = protocolWord(edge.protocol)
    const key = `${from.id}\0${to.id}\0${protocol}`
    let views = found.get(key)
    if (views === undefined) {
      const both = noFigures()
      const call: Call = { from, to, protocol, probe: true, figures: both }
      views = { call, both, asked: noFigures(), answered: noFigures() }
      found.set(key, views)
    }
    views.call.probe &&= edge.probe
    addTo(viewOf(edge, views), sum)
  }
  for (const { call, both, asked, answered } of found.values()) {
    // Between containers, each side knows the other one by its address, and both report the same requests.
    const alone = answered.count > 0 ? answered : asked
    if (alone.count > 0) addFigures(both, alone)
    call.from.asks.push(call)
    call.to.answers.push(call)
  }
  return new Map([...naming.parties].filter(([, { asks, answers }]) => asks.length > 0 || answers.length > 0))
}

/** Sum of several calls. */
export function together(calls: readonly Call[]): Figures {
  const sum = noFigures()
  for (const { figures } of calls) addFigures(sum, figures)
  return sum
}

/** Share of failed ones, in percent. */
export function errorsPercent({
  count,
  failed,
}: {
  readonly count: number
  readonly failed: number
}): number {
  return count === 0 ? 0 : rounded((100 * failed) / count)
}

const namesOf = new WeakMap<object, LocalNames>()

/** Names of the services of this host, shared by all documents. */
export function localNames({ processes }: DocumentContext): LocalNames {
  let names = namesOf.get(processes)
  if (names === undefined) {
    names = new LocalNames(processes)
    namesOf.set(processes, names)
  }
  return names
}

function viewOf({ from, to }: Edge, { both, asked, answered }: Views): Figures {
  if (from.resource === undefined) return answered
  return to.resource === undefined ? asked : both
}

function noFigures(): Figures {
  return { count: 0, failed: 0, seconds: 0, perSecond: 0, durations: new Float64Array(durationBuckets) }
}

function addTo(figures: Figures, { count, failed, seconds, durations }: EdgeSum): void {
  addFigures(figures, { count, failed, seconds, durations })
}

/** Rates are not added: processes that ran one after another would count as if they ran at the same time. */
function addFigures(sum: Figures, { count, failed, seconds, durations }: Omit<Figures, 'perSecond'>): void {
  sum.count += count
  sum.failed += failed
  sum.seconds = Math.max(sum.seconds, seconds)
  sum.perSecond = sum.seconds === 0 ? 0 : sum.count / sum.seconds
  for (let i = 0; i < durationBuckets; i++) sum.durations[i]! += durations[i]!
}
