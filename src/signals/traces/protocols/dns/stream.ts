import type { ByteFlow } from '../../../../foundation/lib/byte-flow.ts'
import type { Operation, StreamConnection } from '../../../../foundation/model/stream.ts'
import { brokenOff } from '../failure.ts'
import { Framing, type Patience } from '../framing.ts'
import { NumberedRequests } from '../requests-in-flight.ts'
import type { LookupDescription } from './description.ts'
import { headerBytes, Message, Read } from './message.ts'

/** Maximum number of lookups in flight on a socket, for a resolver that uses one socket for all. */
const most = 1_024
/** Nanoseconds after which a lookup times out: resolvers retry after 5 seconds, and most give up by then. */
const longestNs = 15e9
/** Maximum bytes read of a longer message over TCP. */
const longestRead = 16_000
const patience: Patience = { faults: 3, firstFaults: 3, strays: Number.POSITIVE_INFINITY }

/** The shortest query: a header, the root, a type and a class. */
const shortest = headerBytes + 5

/** Transport of the messages: over TCP each is preceded by its length (RFC 1035, 4.2.2). */
const Transport = { unknown: 0, datagrams: 1, stream: 2 } as const

/** Errors that a UDP socket gets from ICMP. */
const errnoTypes = new Map([
  [101, 'network_unreachable'],
  [111, 'connection_refused'],
  [113, 'host_unreachable'],
])

/** Shared by all sockets, because one message is read at a time. */
const message = new Message()

/** Nanoseconds between two searches for lookups to time out, and the maximum number of sockets checked. */
const lookNs = 1e9
const mostLooks = 64

/** Sockets with unanswered lookups: the end of a UDP socket is not reported. */
export class Unanswered {
  readonly #streams = new Set<DnsStream>()
  #lookedNs = 0

  add(stream: DnsStream): void {
    this.#streams.add(stream)
  }

  delete(stream: DnsStream): void {
    this.#streams.delete(stream)
  }

  /** Checks the sockets that have waited longest, at intervals. */
  giveUpOld(nowNs: number): void {
    if (nowNs - this.#lookedNs < lookNs) return
    this.#lookedNs = nowNs
    let looks = 0
    for (const stream of this.#streams) {
      stream.giveUpOld(nowNs)
      if (++looks === mostLooks) return
    }
  }
}

/** A socket that queries a name server. */
export class DnsStream extends Framing {
  readonly #telling: LookupDescription
  #transport: 0 | 1 | 2 = Transport.unknown
  readonly #lookups = new NumberedRequests(most)
  readonly #unanswered: Unanswered
  readonly #lostNs = { request: -1, response: -1 }

  constructor(telling: LookupDescription, connection: StreamConnection, unanswered: Unanswered) {
    super(connection, patience)
    this.#telling = telling
    this.#unanswered = unanswered
  }

  get bytes(): number {
    return this.#lookups.bytes
  }

  protected ended(): void {
    const { errno } = this.connection
    const broken = errnoTypes.get(errno) ?? brokenOff(errno)
    while (this.#lookups.size > 0) this.#failOldest(errno === 0 && !this.#isStream ? 'timeout' : broken)
  }

  protected piece(flow: ByteFlow): void {
    if (this.#transport === Transport.unknown) this.#transport = this.#transportOf(flow)
    if (this.#transport === Transport.unknown) this.#ignore(flow)
    else if (this.#transport === Transport.datagrams) this.#datagrams(flow)
    else this.#frames(flow)
  }

  protected gap(flow: ByteFlow): void {
    this.#lostNs[flow.request ? 'request' : 'response'] = flow.nowNs
  }

  protected release(): void {
    this.#unanswered.delete(this)
    this.#lookups.drain(operation => this.connection.release(operation))
  }

  get #isStream(): boolean {
    return this.#transport === Transport.stream
  }

  /** Determined from the first call's bytes: a plausible length followed by a header. */
  #transportOf(flow: ByteFlow): 0 | 1 | 2 {
    const { bytes, at, end } = flow
    const length = end - at
    // Some programs write the length in a separate call. No datagram is that short.
    if (length < shortest) return length >= 2 ? Transport.stream : Transport.unknown
    const framed = bytes.readUInt16BE(at)
    if (framed >= shortest) {
      const isFramed = framed + 2 <= length || length > longestRead
      if (isFramed && message.read(bytes, at + 2, Math.min(end, at + 2 + framed)) !== Read.bad)
        return Transport.stream
    }
    return message.read(bytes, at, end) === Read.bad ? Transport.unknown : Transport.datagrams
  }

  /** A single byte proves nothing; anything else is another protocol. */
  #ignore(flow: ByteFlow): void {
    if (flow.end - flow.at === 1) return
    flow.at = flow.end
    this.suspect()
  }

  /** Each call is a datagram; two datagrams sent by one call may follow each other. */
  #datagrams(flow: ByteFlow): void {
    const isRest = flow.broken && flow.nowNs === this.#lostNs[flow.request ? 'request' : 'response']
    flow.broken = false
    while (!isRest && flow.end - flow.at >= headerBytes && !this.over) {
      const found = message.read(flow.bytes, flow.at, flow.end)
      if (found === Read.bad) {
        this.suspect()
        break
      }
      this.#message(flow, message.end - flow.at)
      flow.at = message.end
    }
    flow.at = flow.end
  }

  #frames(flow: ByteFlow): void {
    if (flow.broken && !this.#isFrame(flow)) {
      flow.at = flow.end
      return
    }
    flow.broken = false
    while (!this.over) {
      const { bytes, at, end } = flow
      if (end - at < 2) return
      const length = bytes.readUInt16BE(at)
      if (end - at - 2 < Math.min(length, longestRead)) return
      if (message.read(bytes, at + 2, Math.min(end, at + 2 + length)) === Read.bad) {
        this.fault(flow)
        return
      }
      this.#message(flow, length + 2)
      flow.skip(length + 2)
    }
  }

  /** Whether a call begins with a whole message, after framing was lost. */
  #isFrame(flow: ByteFlow): boolean {
    const { bytes, at, end } = flow
    if (!flow.atCall || flow.nowNs === this.#lostNs[flow.request ? 'request' : 'response']) return false
    if (end - at < 2 + headerBytes) return false
    const length = bytes.readUInt16BE(at)
    return at + 2 + length <= end && message.read(bytes, at + 2, at + 2 + length) === Read.whole
  }

  #message(flow: ByteFlow, size: number): void {
    if (message.response === flow.request) this.suspect()
    else if (message.response) this.#answer(flow, size)
    else this.#ask(flow, size)
  }

  #ask(flow: ByteFlow, size: number): void {
    this.#unanswered.giveUpOld(flow.nowNs)
    const hash = questionHash()
    if (this.#find(hash) !== undefined) return
    if (this.#lookups.isFull) this.#giveUpOldest(flow.nowNs)
    const operation = this.connection.begin(flow)
    if (operation === undefined) return
    operation.mark = hash
    operation.requestBytes = size
    this.#telling.describeQuestion(operation.call, this.connection, message, this.#isStream)
    this.#lookups.add(message.id, operation)
    this.#unanswered.add(this)
    this.connection.asked(operation)
  }

  #answer(flow: ByteFlow, size: number): void {
    const operation = this.#find(message.questions === 0 ? 0 : questionHash())
    if (operation === undefined) return
    this.#remove(operation)
    this.good()
    operation.responseBytes = size
    operation.responseNs = flow.startNs
    operation.endNs = flow.nowNs
    this.#telling.describeAnswer(operation.call, message)
    this.connection.end(operation)
  }

  /** The lookup that the message belongs to; `hash` 0 matches any question. */
  #find(hash: number): Operation | undefined {
    const lookups = this.#lookups
    let lookup = lookups.get(message.id)
    while (lookup !== undefined && hash !== 0 && lookup.mark !== hash) lookup = lookups.next(lookup)
    return lookup
  }

  /** Ends the lookups that have waited too long. */
  giveUpOld(nowNs: number): void {
    const lookups = this.#lookups
    while (lookups.size > 0 && nowNs - lookups.oldest!.startNs > longestNs) this.#giveUpOldest(nowNs)
  }

  #giveUpOldest(nowNs: number): void {
    const operation = this.#lookups.oldest!
    operation.endNs = Math.min(operation.startNs + longestNs, nowNs)
    this.#failOldest('timeout')
  }

  #failOldest(error: string): void {
    const operation = this.#lookups.oldest!
    this.#remove(operation)
    this.#telling.describeEnd(operation.call, error)
    this.connection.end(operation)
  }

  #remove(operation: Operation): void {
    this.#lookups.remove(operation)
    if (this.#lookups.size === 0) this.#unanswered.delete(this)
  }
}

/** A number for the question's name and type, never 0 (FNV-1a). */
function questionHash(): number {
  let hash = 0x811c9dc5 ^ message.type
  for (let at = 0; at < message.nameLength; at++) hash = Math.imul(hash ^ message.name[at]!, 0x01000193)
  return hash >>> 0 || 1
}
