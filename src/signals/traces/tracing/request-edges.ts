import type { RequestEdge } from '../../../foundation/model/request-edge.ts'
import type { Resource } from '../../../foundation/model/resource.ts'
import type { Operation } from '../../../foundation/model/stream.ts'
import type { Request } from './contexts.ts'
import { AgeList, Pair, PairTable } from './pair-table.ts'
import { isProbe } from './probe-request.ts'

export interface RequestEdgesOptions {
  /** Called once per request. */
  readonly report: (edge: RequestEdge) => void
  /** Whether a side of a request has begun and not ended, as far as it was reported. */
  readonly isInFlight: (server: boolean, sequence: number, ports: number) => boolean
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
}

/** How long a finished side waits for one that may be on this host and was not seen. */
const holdMs = 2_000
/** The same if the other side is in progress: its end may have been lost. */
const underWayMs = 30_000
/** Maximum number of waiting sides, and of remembered sides that were reported alone. */
const mostHalves = 4_096
/** A power of two. */
const chains = 4_096

/** Protocols whose server side is also followed. */
const bothSides = new Set(['http1', 'http2'])

/**
 * Joins the two sides of a request, in any order of their ends and whichever side emits spans, so that each request is
 * reported once: with both sides, or with the only one that was seen. Guaranteed as long as no more than `mostHalves`
 * others arrive in between.
 */
export class RequestEdges {
  readonly #options: RequestEdgesOptions
  readonly #table = new PairTable<Half>(chains)
  /** From the oldest to the newest. */
  readonly #waiting = new AgeList<Half>()
  readonly #alone = new AgeList<Half>()
  readonly #free: Half[] = []
  /** For the side that just ended, and for one that ended before. */
  readonly #edge = new Edge()
  readonly #late = new Edge()

  constructor(options: RequestEdgesOptions) {
    this.#options = options
  }

  /** A side of a request ended. `request` is its entry among the requests in progress. */
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
      // Requests that cannot be joined are reported by the client.
      if (!(server && local)) this.#report()
      return
    }
    const half = this.#table.find(sequence, ports)
    if (half !== undefined && this.#meets(half, server)) return
    // It is unknown whether a container's address is on this host, unless the other side was seen to begin.
    if (local || this.#options.isInFlight(!server, sequence, ports)) this.#hold(operation, request, of)
    else this.#report()
  }

  /** Reports the sides that waited long enough; all of them if `nowMs` is infinite. */
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

  /** Whether this settles the request: it is reported now or was reported before. */
  #meets(half: Half, server: boolean): boolean {
    const isOther = half.server !== server
    const wasReported = half.of === undefined
    if (isOther && !wasReported) {
      this.#edge.joins(half)
      this.#report()
    }
    // The same side again is another request.
    if (!isOther && !wasReported) this.#reportLate(half)
    ;(wasReported ? this.#alone : this.#waiting).remove(half)
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

  /** The other side did not come; if it comes later, it is not reported. */
  #settle(half: Half): void {
    this.#reportLate(half)
    this.#waiting.remove(half)
    half.clear()
    this.#alone.add(half)
    if (this.#alone.length <= mostHalves) return
    const oldest = this.#alone.first!
    this.#alone.remove(oldest)
    this.#release(oldest)
  }

  #reportLate(half: Half): void {
    const edge = this.#late
    edge.protocol = half.protocol
    edge.failed = half.failed
    edge.serverPort = half.ports % 65536
    edge.wasProbe = half.probe
    edge.side(half.server, half.of!, half.localAddress, half.durationNs)
    edge.side(!half.server, half.peerAddress, '', -1)
    this.#options.report(edge)
  }

  #report(): void {
    this.#options.report(this.#edge)
  }

  #release(half: Half): void {
    this.#table.delete(half)
    half.clear()
    this.#free.push(half)
  }
}

/** The request being reported. Reused. */
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
  /** Known of a side that ended before, and not yet read from the one that ends. */
  wasProbe = false
  operation: Operation | undefined

  get probe(): boolean {
    return this.wasProbe || (this.operation !== undefined && isProbe(this.operation))
  }

  /** Sets one of its sides; `ns` below zero: that side was not seen. */
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

  /** Adds the other side, which ended before. */
  joins({ server, of, localAddress, durationNs, failed, probe }: Half): void {
    this.side(server, of!, localAddress, durationNs)
    this.failed ||= failed
    this.wasProbe = probe
  }
}

/** A finished side whose other side may still come. Reused. */
class Half extends Pair<Half> {
  server = false
  /** Its resource; undefined if it was reported alone. */
  of: Resource | undefined
  protocol = ''
  failed = false
  durationNs = 0
  localAddress = ''
  peerAddress = ''
  probe = false
  /** When it ended, and when it began to wait. */
  endedMs = 0
  atMs = 0

  /** Releases references to other objects. */
  clear(): void {
    this.of = undefined
    this.protocol = ''
    this.localAddress = ''
    this.peerAddress = ''
  }
}
