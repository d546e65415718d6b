// Who asks whom, as people are told: of what the window knows of edges.

import type { MapLine } from '../../api/ui/documents.ts'
import { hostPort } from '../../lib/host-port.ts'
import type { Resource } from '../../model/resource.ts'
import { protocols } from '../../protocols/index.ts'
import { durationBuckets } from '../../window/duration-counts.ts'
import type { Edge, EdgeNode } from '../../window/edge-graph.ts'
import { type EdgeSum, type EdgeWindow, isRest } from '../../window/edge-window.ts'
import { LocalNames, SeenAddresses, type ServiceId } from './local-names.ts'
import type { UiParts } from './parts.ts'
import { rounded } from './percentiles.ts'

export type PartyKind = MapLine['nodes'][number]['kind']

/** A service of this host, or an address elsewhere. */
export interface Party {
  /** The same for as long as it is there. */
  readonly id: string
  readonly name: string
  readonly namespace: string
  /** It is a service of this host. */
  readonly isHere: boolean
  kind: PartyKind
  /** Of its process that appeared last; undefined: none was seen at work. */
  resource: Resource | undefined
  readonly asks: Call[]
  readonly answers: Call[]
}

/** What was counted. */
export interface Figures {
  count: number
  failed: number
  /** How long any of them could be seen. */
  seconds: number
  perSecond: number
  /** As `percentileMs` takes them. */
  readonly durations: Float64Array
}

/** Requests of one to another in one protocol. */
export interface Call {
  readonly from: Party
  readonly to: Party
  readonly protocol: string
  /** All of them asked for health or metrics. */
  probe: boolean
  figures: Figures
}

/** The kind of who is asked in a protocol; of others it is told by where they are. */
const kinds: Readonly<Record<string, PartyKind | undefined>> = Object.fromEntries(
  protocols.map(({ name, party }) => [name, party]),
)
/** Words for protocols that differ from those of the code. */
const words: Readonly<Record<string, string>> = { http1: 'http', http2: 'http', postgres: 'postgresql' }

/** A protocol as people know it. */
export function protocolWord(protocol: string): string {
  return words[protocol] ?? protocol
}

/** Which edges are whose, at one moment. */
export class Naming {
  readonly parties = new Map<string, Party>()
  readonly #names: LocalNames
  readonly #seen: SeenAddresses
  readonly #ofNode = new Map<EdgeNode, Party>()

  constructor(window: EdgeWindow, names: LocalNames) {
    const nodes = new Set<EdgeNode>()
    for (const { from, to } of window.edges()) nodes.add(from).add(to)
    this.#names = names
    this.#seen = new SeenAddresses(nodes, names)
  }

  from({ from }: Edge): Party {
    return this.#party(from)
  }

  to({ to, protocol }: Edge): Party {
    const party = this.#party(to)
    const kind = kinds[protocol]
    if (kind !== undefined) party.kind = kind
    return party
  }

  #party(node: EdgeNode): Party {
    let party = this.#ofNode.get(node)
    if (party === undefined) {
      party = this.#partyOf(node)
      this.#ofNode.set(node, party)
    }
    return party
  }

  #partyOf(node: EdgeNode): Party {
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
    // The port tells who it is where only some of what speaks there is seen from the server's side.
    const seen = isAsked && kinds[protocol] !== undefined ? undefined : this.#seen.at(name)
    if (seen !== undefined) return this.#party(seen)
    if (!isAsked) return this.#there(`address:${name}`, name, undefined)
    const kind = kinds[protocol]
    return this.#there(`${kind ?? 'at'}:${place}`, kind === undefined ? place : `${word} (${place})`, kind)
  }

  #here({ name, namespace }: ServiceId, resource: Resource | undefined): Party {
    const party = this.#made(`service:${namespace}/${name}`, name, namespace, true, 'service')
    party.resource ??= resource
    return party
  }

  #there(id: string, name: string, kind: PartyKind | undefined): Party {
    return this.#made(id, name, '', false, kind ?? 'external')
  }

  #made(id: string, name: string, namespace: string, isHere: boolean, kind: PartyKind): Party {
    let party = this.parties.get(id)
    if (party === undefined) {
      party = { id, name, namespace, isHere, kind, resource: undefined, asks: [], answers: [] }
      this.parties.set(id, party)
    }
    return party
  }
}

/**
 * Which edges count where requests of one party are put together. Between containers each side names the other one by its
 * address, and tells of the same requests: those that it saw itself count, or else those that others told.
 */
export class Sides {
  readonly #own = { from: new Set<Party>(), to: new Set<Party>() }
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

/** What was counted of the requests of two parties, by who saw them. */
interface Views {
  readonly call: Call
  /** Both sides; the client's side alone; the server's side alone. */
  readonly both: Figures
  readonly asked: Figures
  readonly answered: Figures
}

/** Who asked whom in about the last `seconds`. Those that did not are no parties of it. */
export function callGraph(window: EdgeWindow, names: LocalNames, seconds: number): Map<string, Party> {
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
    // Between containers each side names the other one by its address, and tells of the same requests.
    const alone = answered.count > 0 ? answered : asked
    if (alone.count > 0) addFigures(both, alone)
    call.from.asks.push(call)
    call.to.answers.push(call)
  }
  return new Map([...naming.parties].filter(([, { asks, answers }]) => asks.length > 0 || answers.length > 0))
}

/** All that several calls are together. */
export function together(calls: readonly Call[]): Figures {
  const sum = noFigures()
  for (const { figures } of calls) addFigures(sum, figures)
  return sum
}

/** Part of them that failed, in percent. */
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

/** Names of the services of this host, which all documents share. */
export function localNames({ processes }: UiParts): LocalNames {
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

/** Rates are not added up: of many who began one after another, each would count as if it went on. */
function addFigures(sum: Figures, { count, failed, seconds, durations }: Omit<Figures, 'perSecond'>): void {
  sum.count += count
  sum.failed += failed
  sum.seconds = Math.max(sum.seconds, seconds)
  sum.perSecond = sum.seconds === 0 ? 0 : sum.count / sum.seconds
  for (let i = 0; i < durationBuckets; i++) sum.durations[i]! += durations[i]!
}
