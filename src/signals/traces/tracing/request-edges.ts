import type { RequestEdge } from '../../../foundation/model/request-edge.ts'
import type { Resource } from '../../../foundation/model/resource.ts'
import type { Operation } from '../../../foundation/model/stream.ts'
import type { Request } from './contexts.ts'
import { AgeList, Pair, PairTable } from './pair-table.ts'
import { isProbe } from './probe-request.ts'

export interface RequestEdgesOptions {
  /** Told of each request once. */
  readonly report: (edge: RequestEdge) => void
  /** Whether a side of a request has begun and not ended, as far as that was told. */
  readonly isInFlight: (server: boolean, sequence: number, ports: number) => boolean
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number
}

/** How long a side that ended waits for one that may be on this host, of which nothing was seen. */
const holdMs = 2_000
/** The same where the other side is under way: its end may have been lost. */
const underWayMs = 30_000
/** Sides that wait, and the same of those that are remembered for having been told alone. */
const mostHalves = 4_096
/** A power of two. */
const chains = 4_096

/** Protocols of which the server's side is followed as well. */
const bothSides = new Set(['http1', 'http2'])

/**
 * Puts the two sides of a request together, whoever of them ended first and whichever of them makes spans, so that each
 * request is told once: of both sides, or of the only one that was seen. Holds as long as no more than `mostHalves` others
 * have come meanwhile.
 */
export class RequestEdges {
  readonly #options: RequestEdgesOptions
  readonly #table = new PairTable<Half>(chains)
  /** From the oldest to the newest. */
  readonly #waiting = new AgeList<Half>()
  readonly #alone = new AgeList<Half>()
  readonly #free: Half[] = []
  /** Of the side that just ended, and of one that ended before. */
  readonly #edge = new Edge()
  readonly #late = new Edge()

  constructor(options: RequestEdgesOptions) {
    this.#options = options
  }

  /** A side of a request is over. `request` is its place among those that are under way. */
  ended(operation: Operation, request: Request, of: Resource): void {
    const { server, sequence, ports, local } = request
    const { connection, call } = operation
    const edge = this.#edge
    const hasBoth = bothSides.has(connection.protocol)
    edge.protocol = hasBoth ? call.signalType : connection.protocol
    edge.failed = call.error !== ''
    edge.serverPort = ports % 65536
    edge.wasProbe = false
    edge.operation = operation
    edge.side(server, of, connection.localAddress, operation.durationNs)
    edge.side(!server, connection.peerAddress, '', -1)
    if (!hasBoth || sequence === 0) {
      // The client tells of what cannot be put together.
      if (!(server && local)) this.#tell()
      return
    }
    const half = this.#table.find(sequence, ports)
    if (half !== undefined && this.#meets(half, server)) return
    // Of containers' addresses nobody knows whether they are on this host, but for what was seen to begin.
    if (local || this.#options.isInFlight(!server, sequence, ports)) this.#hold(operation, request, of)
    else this.#tell()
  }

  /** Tells of those that waited long enough; of all when `nowMs` is infinite. */
  expire(nowMs: number): void {
    for (;;) {
      const half = this.#waiting.first
      if (half === undefined || nowMs - half.atMs < holdMs) return
      const { server, sequence, ports, endedMs } = half
      if (nowMs - endedMs < underWayMs && this.#options.isInFlight(!server, sequence, ports)) {
        half.atMs = nowMs
        this.#waiting.remove(half)
        this.#waiting.add(half)
      } else this.#settle(half)
    }
  }

  /** Whether this settles the request: it is told now, or was told before. */
  #meets(half: Half, server: boolean): boolean {
    const isOther = half.server !== server
    const isTold = half.of === undefined
    if (isOther && !isTold) {
      this.#edge.joins(half)
      this.#tell()
    }
    // The same side again is another request.
    if (!isOther && !isTold) this.#tellLate(half)
    ;(isTold ? this.#alone : this.#waiting).remove(half)
    this.#release(half)
    return isOther
  }

  #hold({ connection, durationNs }: Operation, { server, sequence, ports }: Request, of: Resource): void {
    const edge = this.#edge
    const half = this.#free.pop() ?? new Half()
    half.server = server
    half.sequence = sequence
    half.ports = ports
    half.of = of
    half.protocol = edge.protocol
    half.failed = edge.failed
    half.durationNs = durationNs
    half.localAddress = connection.localAddress
    half.peerAddress = connection.peerAddress
    half.probe = edge.probe
    half.endedMs = this.#options.now()
    half.atMs = half.endedMs
    this.#table.add(half)
    this.#waiting.add(half)
    if (this.#waiting.length > mostHalves) this.#settle(this.#waiting.first!)
  }

  /** Its other side does not come; if it does, it is not told. */
  #settle(half: Half): void {
    this.#tellLate(half)
    this.#waiting.remove(half)
    half.clear()
    this.#alone.add(half)
    if (this.#alone.length <= mostHalves) return
    const oldest = this.#alone.first!
    this.#alone.remove(oldest)
    this.#release(oldest)
  }

  #tellLate(half: Half): void {
    const edge = this.#late
    edge.protocol = half.protocol
    edge.failed = half.failed
    edge.serverPort = half.ports % 65536
    edge.wasProbe = half.probe
    edge.side(half.server, half.of!, half.localAddress, half.durationNs)
    edge.side(!half.server, half.peerAddress, '', -1)
    this.#options.report(edge)
  }

  #tell(): void {
    this.#options.report(this.#edge)
  }

  #release(half: Half): void {
    this.#table.delete(half)
    half.clear()
    this.#free.push(half)
  }
}

/** The request that is told of. Used again. */
class Edge implements RequestEdge {
  client: Resource | string = ''
  server: Resource | string = ''
  protocol = ''
  failed = false
  clientNs = -1
  serverNs = -1
  clientAddress = ''
  serverAddress = ''
  serverPort = 0
  /** What is known of a side that ended before, and what is not looked through yet of the one that ends. */
  wasProbe = false
  operation: Operation | undefined

  get probe(): boolean {
    return this.wasProbe || (this.operation !== undefined && isProbe(this.operation))
  }

  /** One of its sides; `ns` below zero: it was not seen. */
  side(isServer: boolean, who: Resource | string, address: string, ns: number): void {
    if (isServer) {
      this.server = who
      this.serverAddress = address
      this.serverNs = ns
    } else {
      this.client = who
      this.clientAddress = address
      this.clientNs = ns
    }
  }

  /** Its other side ended before. */
  joins({ server, of, localAddress, durationNs, failed, probe }: Half): void {
    this.side(server, of!, localAddress, durationNs)
    this.failed ||= failed
    this.wasProbe = probe
  }
}

/** A side that ended, while its other one may still come. Used again. */
class Half extends Pair<Half> {
  server = false
  /** Whose it was; undefined: it was told alone. */
  of: Resource | undefined
  protocol = ''
  failed = false
  durationNs = 0
  localAddress = ''
  peerAddress = ''
  probe = false
  /** When it ended, and since when it waits. */
  endedMs = 0
  atMs = 0

  /** Lets go of what belongs to others. */
  clear(): void {
    this.of = undefined
    this.protocol = ''
    this.localAddress = ''
    this.peerAddress = ''
  }
}
