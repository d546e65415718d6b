// Services, addresses and the requests between them.

import type { RequestEdge } from '../../foundation/model/request-edge.ts'
import type { Resource } from '../../foundation/model/resource.ts'

/**
 * A caller or callee: a service of this host, with all its processes, or an address elsewhere. One node with an empty
 * name stands for all those without room.
 */
export class EdgeNode {
  /** `service.name`, or an address. */
  readonly name: string
  /** `service.namespace`, or the namespace of the pod. */
  readonly namespace: string
  /** Of an address that is called: port and protocol. */
  readonly port: number
  readonly protocol: string
  /** Of the service's most recent process; undefined for an address. */
  resource: Resource | undefined = undefined
  /** Own addresses at which it was seen, without loopback. */
  readonly addresses: string[] = []
  /** First edge to a callee. */
  first: Edge | undefined = undefined
  /** Edges from and to this node. */
  edges = 0
  /** Addresses that call it, and that it calls. */
  callers = 0
  callees = 0
  /** Removed from the graph. */
  gone = false
  /** Most recent own address. */
  address = ''
  /** Next node of the same address. */
  next: EdgeNode | undefined = undefined
  /** Memory used. */
  bytes: number

  constructor(name: string, namespace: string, port: number, protocol: string) {
    this.name = name
    this.namespace = namespace
    this.port = port
    this.protocol = protocol
    this.bytes = nodeBytes + 2 * (name.length + namespace.length)
  }

  /** Notes an own address. */
  at(address: string): void {
    this.address = address
    const { addresses } = this
    if (addresses.length === mostAddresses || addresses.includes(address)) return
    if (address !== '' && address !== '::1' && !address.startsWith('127.')) addresses.push(address)
  }
}

/** Requests from one node to another in one protocol. */
export class Edge {
  readonly number: number
  readonly from: EdgeNode
  readonly to: EdgeNode
  /** As in `RequestEdge`. */
  readonly protocol: string
  /** End of the first request, in milliseconds since the Unix epoch. */
  firstMs: number
  /** All requests so far were health checks or scrapes. */
  probe = true
  /** Slot and record that count the newest requests. */
  slot = -1
  record = -1
  /** Number of its records. */
  records = 0
  /** Next edge of the same `from`. */
  next: Edge | undefined = undefined

  constructor(number: number, from: EdgeNode, to: EdgeNode, protocol: string, firstMs: number) {
    this.number = number
    this.from = from
    this.to = to
    this.protocol = protocol
    this.firstMs = firstMs
  }
}

/** Measured on Node 24, rounded up. */
const nodeBytes = 420
const edgeBytes = 220
/** A resource without its attributes, and an attribute without its text. */
const resourceBytes = 200
const attributeBytes = 40
const mostAddresses = 4
/** Share of the memory for services, and for addresses; the rest is for the nodes of those without room. */
const servicePart = 0.8
const foreignPart = 0.6
/** Maximum number of distinct addresses that call a service, and that it calls. */
export const mostForeign = 96

/** Nodes and edges in bounded memory. Finding an existing edge allocates nothing. */
export class EdgeGraph {
  /** By number; undefined if free. */
  readonly edges: (Edge | undefined)[] = []
  bytes = 0
  readonly #maxBytes: number
  readonly #serviceBytes: number
  readonly #foreignBytes: number
  readonly #unused: number[] = []
  /** Weak: an entry lives as long as its resource, so its memory is not counted. */
  readonly #ofResource = new WeakMap<Resource, EdgeNode>()
  readonly #services = new Map<string, EdgeNode>()
  readonly #addresses = new Map<string, EdgeNode>()

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
    this.#serviceBytes = maxBytes * servicePart
    this.#foreignBytes = maxBytes * foreignPart
  }

  /** Above the share of memory that leaves room for new addresses. */
  get crowded(): boolean {
    return this.bytes > this.#maxBytes * (foreignPart - 0.1)
  }

  /** The edge of a request; undefined if there is none. */
  find({ client, server, serverPort, protocol }: RequestEdge): Edge | undefined {
    const from = typeof client === 'string' ? this.#address(client, 0, '') : this.#serviceOf(client)
    if (from === undefined) return undefined
    const to =
      typeof server === 'string' ? this.#address(server, serverPort, protocol) : this.#serviceOf(server)
    return to === undefined ? undefined : between(from, to, protocol)
  }

  /** Finds or creates the edge of a request; undefined if there is no room. `nowMs`: since the Unix epoch. */
  make({ client, server, serverPort, protocol }: RequestEdge, nowMs: number): Edge | undefined {
    const own = typeof client === 'string' ? server : client
    if (typeof own === 'string') return undefined
    const home = this.#service(own, this.#serviceBytes)
    if (home === undefined) return undefined
    let edge: Edge | undefined
    if (typeof client === 'string') {
      const from = this.#foreign(client, 0, '', this.#foreignBytes)
      edge = from && this.#connect(from, home, protocol, nowMs, this.#foreignBytes)
    } else if (typeof server === 'string') {
      const to = this.#foreign(server, serverPort, protocol, this.#foreignBytes)
      edge = to && this.#connect(home, to, protocol, nowMs, this.#foreignBytes)
    } else {
      const to = this.#service(server, this.#serviceBytes)
      edge = to && this.#connect(home, to, protocol, nowMs, this.#serviceBytes)
      if (to !== undefined) this.#forgetUnused(to)
    }
    this.#forgetUnused(home)
    return edge
  }

  /** The shared edge of requests without room for their own, between a service of this host and addresses elsewhere. */
  others(isCaller: boolean, own: Resource, protocol: string, nowMs: number): Edge | undefined {
    const home = this.#service(own, this.#maxBytes)
    if (home === undefined) return undefined
    const edge = this.#rest(isCaller, home, protocol, nowMs)
    this.#forgetUnused(home)
    return edge
  }

  /**
   * The shared edge that an edge with an address elsewhere can be folded into; undefined if no side is an address, or
   * there is no room.
   */
  othersOf({ from, to, protocol }: Edge, nowMs: number): Edge | undefined {
    if (from.resource !== undefined && to.resource !== undefined) return undefined
    const isCaller = from.resource === undefined
    return this.#rest(isCaller, isCaller ? to : from, protocol, nowMs)
  }

  remove(edge: Edge): void {
    const { from, to, number } = edge
    if (from.first === edge) from.first = edge.next
    else {
      let before = from.first!
      while (before.next !== edge) before = before.next!
      before.next = edge.next
    }
    edge.next = undefined
    this.edges[number] = undefined
    this.#unused.push(number)
    this.bytes -= edgeBytes
    from.edges--
    to.edges--
    if (from.resource === undefined) to.callers--
    if (to.resource === undefined) from.callees--
    this.#forgetUnused(from)
    this.#forgetUnused(to)
  }

  #rest(isCaller: boolean, home: EdgeNode, protocol: string, nowMs: number): Edge | undefined {
    const rest = this.#foreign('', 0, isCaller ? '' : protocol, this.#maxBytes)
    if (rest === undefined) return undefined
    const [from, to] = isCaller ? [rest, home] : [home, rest]
    const edge = this.#connect(from, to, protocol, nowMs, this.#maxBytes)
    this.#forgetUnused(rest)
    return edge
  }

  #connect(
    from: EdgeNode,
    to: EdgeNode,
    protocol: string,
    nowMs: number,
    mostBytes: number,
  ): Edge | undefined {
    const known = between(from, to, protocol)
    if (known !== undefined) return known
    const isTooMany =
      (from.resource === undefined && to.callers >= mostForeign) ||
      (to.resource === undefined && from.callees >= mostForeign)
    if (this.bytes + edgeBytes > mostBytes || (isTooMany && mostBytes < this.#maxBytes)) {
      this.#forgetUnused(from)
      this.#forgetUnused(to)
      return undefined
    }
    const edge = new Edge(this.#unused.pop() ?? this.edges.length, from, to, protocol, nowMs)
    this.edges[edge.number] = edge
    this.bytes += edgeBytes
    edge.next = from.first
    from.first = edge
    from.edges++
    to.edges++
    if (from.resource === undefined) to.callers++
    if (to.resource === undefined) from.callees++
    return edge
  }

  #address(address: string, port: number, protocol: string): EdgeNode | undefined {
    let node = this.#addresses.get(address)
    while (node !== undefined && (node.port !== port || node.protocol !== protocol)) node = node.next
    return node
  }

  #foreign(address: string, port: number, protocol: string, mostBytes: number): EdgeNode | undefined {
    const known = this.#address(address, port, protocol)
    if (known !== undefined) return known
    const node = new EdgeNode(address, '', port, protocol)
    if (this.bytes + node.bytes > mostBytes) return undefined
    node.next = this.#addresses.get(address)
    this.#addresses.set(address, node)
    this.bytes += node.bytes
    return node
  }

  #serviceOf(resource: Resource): EdgeNode | undefined {
    const node = this.#ofResource.get(resource)
    return node === undefined || node.gone ? undefined : node
  }

  #service(resource: Resource, mostBytes: number): EdgeNode | undefined {
    const known = this.#serviceOf(resource)
    if (known !== undefined) return known
    const [name, namespace] = identityOf(resource)
    const key = `${name}\0${namespace}`
    let node = this.#services.get(key)
    const taken = sizeOf(resource)
    if (node === undefined) {
      node = new EdgeNode(name, namespace, 0, '')
      if (this.bytes + node.bytes + taken > mostBytes) return undefined
      this.#services.set(key, node)
      this.bytes += node.bytes
    }
    const grown = taken - (node.resource === undefined ? 0 : sizeOf(node.resource))
    // The newest resource, if there is room.
    if (this.bytes + grown <= mostBytes) {
      node.resource = resource
      node.bytes += grown
      this.bytes += grown
    }
    this.#ofResource.set(resource, node)
    return node
  }

  #forgetUnused(node: EdgeNode): void {
    if (node.edges > 0 || node.gone) return
    node.gone = true
    this.bytes -= node.bytes
    if (node.resource !== undefined) {
      this.#services.delete(`${node.name}\0${node.namespace}`)
      return
    }
    const head = this.#addresses.get(node.name)!
    if (head === node) {
      if (node.next === undefined) this.#addresses.delete(node.name)
      else this.#addresses.set(node.name, node.next)
      return
    }
    let before = head
    while (before.next !== node) before = before.next!
    before.next = node.next
  }
}

/** `service.name`, and `service.namespace` or the namespace of the pod, which may be empty. */
function identityOf({ attributes }: Resource): [name: string, namespace: string] {
  const namespace = attributes.get('service.namespace') ?? attributes.get('k8s.namespace.name') ?? ''
  return [String(attributes.get('service.name') ?? 'unknown'), String(namespace)]
}

/** Approximate memory of a resource. */
function sizeOf({ attributes }: Resource): number {
  let bytes = resourceBytes + attributeBytes * attributes.size
  for (let i = 0; i < attributes.size; i++) {
    const value = attributes.values[i]!
    if (typeof value === 'string') bytes += 2 * value.length
    else if (Array.isArray(value)) for (const each of value) bytes += 2 * each.length + 16
  }
  return bytes
}

/** Moves a found edge to the front: it is likely to be searched again soon. */
function between(from: EdgeNode, to: EdgeNode, protocol: string): Edge | undefined {
  let before: Edge | undefined
  for (let edge = from.first; edge !== undefined; edge = edge.next) {
    if (edge.to === to && edge.protocol === protocol) {
      if (before === undefined) return edge
      before.next = edge.next
      edge.next = from.first
      from.first = edge
      return edge
    }
    before = edge
  }
  return undefined
}
