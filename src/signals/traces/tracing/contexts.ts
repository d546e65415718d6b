import type { MemoryGovernor } from '../../../foundation/lib/memory-governor.ts'
import type { TraceContext } from '../../../foundation/model/stream.ts'
import { AgeList, Pair, PairTable, portsOf } from './pair-table.ts'

/** Bytes of a request that is remembered, with its ids (measured), and those that all may have by default. */
const requestBytes = 1_000
const usualBytes = 8 * 2 ** 20
/** Part of the memory of tables that they may have. */
const share = 1 / 8
/** Requests that are kept for later use beside those that were needed at once of late. */
const spare = 256
/** Requests that are forgotten at a time where memory is short. */
const mostShed = 2_000
/** Chains of the table; a power of two. */
const chains = 16_384
/** How long a request that ended is remembered for its other side. */
const holdMs = 2_000
/** In-flight requests of a process that are looked through for one of a thread. */
const maxLooked = 256
/** How long a request may be under way whose end nobody told: its record found the ring full, or its framing was lost. */
const openMs = 300_000
const maxThreads = 4_096
/** Processes that are remembered though they serve nothing, as most soon serve again. */
const maxProcesses = 4_096

/** OTLP SpanFlags: it is known whether the parent is in another process, and it is. */
export const flagsWithRemoteParent = 0x300
/** The same, and it is not. */
const flagsWithLocalParent = 0x100

/** One side of a request, from its beginning until nobody needs its place in the trace any more. Used again. */
export class Request extends Pair<Request> {
  /** Grows with each use, so that a reference to an earlier one is recognised. */
  turn = 0
  server = false
  pid = 0
  tid = 0
  blocking = false
  /** A server's: names it for the profiler; 0: its thread may have been at work on another one. */
  number = 0
  /** A server's: its process never served another one meanwhile. */
  alone = false
  /** Both ends may be on this host. */
  local = false
  ended = false
  startUs = 0
  endUs = 0
  /** Of the other side, seen from the client's. */
  childStartUs = Number.POSITIVE_INFINITY
  childEndUs = 0
  /** The ids hold: they have been told to somebody, or came with the request. */
  resolved = false
  /** A server's whose ids were decided before its client was seen, which may still show up on this host. */
  orphan = false
  readonly traceId: Uint8Array = new Uint8Array(16)
  readonly spanId: Uint8Array = new Uint8Array(8)
  /** All zero: none that is known. */
  readonly parentSpanId: Uint8Array = new Uint8Array(8)
  flags = 0
  state = ''
  /** Who will tell of its end, where that is not looked up by name. */
  owner: object | undefined
  /** A client's: the request that its process serves by it. */
  parent: Request | undefined
  parentTurn = 0
  atMs = 0
  /** Neighbours among those that its process serves. */
  before: Request | undefined
  after: Request | undefined
}

/** What a process serves now. */
class Serving {
  count = 0
  first: Request | undefined
}

/** What names one side of a request. */
export interface RequestKey {
  readonly server: boolean
  /** TCP sequence number of the first byte, 0 where it is not known. */
  readonly sequence: number
  readonly clientPort: number
  readonly serverPort: number
}

/** What is known when a request begins. */
export interface RequestStart extends RequestKey {
  readonly pid: number
  readonly tid: number
  readonly blocking: boolean
  readonly local: boolean
  /** It is not certain that all that its process serves is known. */
  readonly doubt?: boolean
  /** As `requestNumber` makes it; 0 or none: not known. */
  readonly number?: number
  readonly startUs: number
}

/**
 * The places of requests in their traces. Two kinds of evidence join them, and what they do not tell stays unknown:
 *
 * - Both sides of a request on one host see the same TCP sequence number at its first byte.
 * - A request that a thread sends while its process serves exactly one other, which the same thread received, is made
 *   for that one. While the process serves several, only a thread that waits in its calls tells: it does nothing else
 *   in between. A thread that was started for a request counts as the thread that received it.
 *
 * Ids are decided when somebody needs them first, and then hold. A client that shows up after that takes over the trace of
 * its server.
 */
export class Contexts {
  /** Requests that found their other side, or what they were made for. */
  joined = 0
  readonly #table = new PairTable<Request>(chains)
  readonly #serving = new Map<number, Serving>()
  /** Threads that were started by a thread that served a request. */
  readonly #threads = new Map<number, { request: Request; turn: number }>()
  readonly #free: Request[] = []
  readonly #fill: (id: Uint8Array) => void
  /** Under way, and ended: each from the oldest to the newest. */
  readonly #open = new AgeList<Request>()
  readonly #done = new AgeList<Request>()

  readonly #maxRequests: number
  #peak = 0
  #trimmedMs = 0

  /** `fill` makes random ids. */
  constructor(fill: (id: Uint8Array) => void, governor?: Pick<MemoryGovernor, 'limitOf' | 'register'>) {
    this.#fill = fill
    this.#maxRequests = Math.floor((governor?.limitOf(share) ?? usualBytes) / requestBytes)
    governor?.register({
      name: 'places in traces',
      kind: 'detail',
      share,
      bytes: () => this.bytes,
      shed: bytes => this.shed(bytes),
    })
  }

  /** What all of them take, with those that are kept for later use. */
  get bytes(): number {
    return (this.size + this.#free.length) * requestBytes
  }

  /** Forgets about so much: the unused, what ended, then what began longest ago. Only joins are lost by it. */
  shed(bytes: number): number {
    const wanted = Math.min(mostShed, Math.ceil(bytes / requestBytes))
    const before = this.bytes
    for (let shed = this.#free.length; shed < wanted && this.size > 0; shed++) this.#forgetOldest()
    this.#free.length = Math.max(0, this.#free.length - wanted)
    return before - this.bytes
  }

  /** Requests that are remembered. */
  get size(): number {
    return this.#open.length + this.#done.length
  }

  /** A request begins. `context` is what it says itself of its place. What a client's is made for: see `join`. */
  begin(start: RequestStart, context: TraceContext | undefined, nowMs: number): Request {
    const known = this.find(start)
    if (known !== undefined) this.forget(known)
    const request = this.#take(nowMs)
    request.server = start.server
    request.sequence = start.sequence
    request.ports = portsOf(start.clientPort, start.serverPort)
    request.pid = start.pid
    request.tid = start.tid
    request.blocking = start.blocking
    request.local = start.local
    request.startUs = start.startUs
    request.number = start.number ?? 0
    this.#fill(request.spanId)
    this.#table.add(request)
    if (context !== undefined && context.flags >= 0) {
      request.traceId.set(context.traceId)
      request.parentSpanId.set(context.spanId)
      // A server's parent is in another process; a client's may be in its own (its SDK wrote the header).
      request.flags = start.server ? flagsWithRemoteParent | context.flags : context.flags
      request.state = context.state
      request.resolved = true
    }
    if (start.server) this.#serve(request)
    return request
  }

  /**
   * Finds what a client's request that just began is made for. It may begin late, where the thread that sent it was held
   * up before its hook ran. Its server may have been given a trace by then (`serverTrace`, where that one is over, too),
   * which is taken over as far as no other one was decided.
   */
  join(request: Request, doubt: boolean, serverTrace?: Uint8Array): void {
    const server =
      request.local && request.sequence !== 0
        ? this.#lookUp(true, request.sequence, request.ports)
        : undefined
    const orphan = server?.orphan === true && !server.ended ? server : undefined
    if (!request.resolved) this.#adopt(request, doubt, serverTrace ?? orphan?.traceId)
    if (orphan === undefined || !request.resolved || !isSameTrace(request.traceId, orphan.traceId)) return
    orphan.orphan = false
    orphan.parentSpanId.set(request.spanId)
    orphan.flags = flagsWithRemoteParent | (request.flags & 3)
    this.joined++
  }

  /** The request that was begun under this name and has not been forgotten. */
  find(key: RequestKey): Request | undefined {
    if (key.sequence === 0) return undefined
    return this.#lookUp(key.server, key.sequence, portsOf(key.clientPort, key.serverPort))
  }

  /** Whether a side of a request has begun and not ended, as far as that was told. */
  isInFlight(server: boolean, sequence: number, ports: number): boolean {
    return this.#lookUp(server, sequence, ports)?.ended === false
  }

  /** The client's side of a server's request. */
  clientOf(request: Request): Request | undefined {
    return request.local && request.sequence !== 0
      ? this.#lookUp(false, request.sequence, request.ports)
      : undefined
  }

  /** Decides the ids of a request, as well as they can be known now. */
  resolve(request: Request): void {
    if (request.resolved) return
    request.resolved = true
    const parent = request.server ? this.clientOf(request) : this.#parentOf(request)
    if (parent === undefined) {
      this.#fill(request.traceId)
      request.flags = 1
      request.orphan = request.server && request.local && request.sequence !== 0
      return
    }
    this.joined++
    this.resolve(parent)
    request.traceId.set(parent.traceId)
    request.parentSpanId.set(parent.spanId)
    request.state = parent.state
    request.flags = (request.server ? flagsWithRemoteParent : flagsWithLocalParent) | (parent.flags & 3)
  }

  /** It is over: nothing is made for it any more. It is remembered for its other side where `keep` says so. */
  end(request: Request, endUs: number, keep: boolean, nowMs: number): void {
    if (request.ended) return
    request.ended = true
    request.endUs = endUs
    if (request.server) this.#unserve(request)
    this.#open.remove(request)
    if (keep) {
      request.atMs = nowMs
      this.#done.add(request)
    } else {
      this.#release(request)
    }
  }

  /** Lets go, whatever state it is in. */
  forget(request: Request): void {
    if (!request.ended && request.server) this.#unserve(request)
    ;(request.ended ? this.#done : this.#open).remove(request)
    this.#release(request)
  }

  /** A thread was started by another of its process. */
  thread(pid: number, parentTid: number, tid: number): void {
    this.#threads.delete(tid)
    const request = this.#servedBy(pid, parentTid)
    if (request === undefined) return
    if (this.#threads.size >= maxThreads) this.#threads.clear()
    this.#threads.set(tid, { request, turn: request.turn })
  }

  /** Forgets what ended long ago, and what began so long ago that its end was missed. */
  expire(nowMs: number): void {
    this.#forgetOlder(this.#done, nowMs - holdMs)
    this.#forgetOlder(this.#open, nowMs - openMs)
    if (nowMs - this.#trimmedMs < holdMs) return
    this.#trimmedMs = nowMs
    this.#free.length = Math.min(this.#free.length, Math.max(0, this.#peak - this.size) + spare)
    this.#peak = this.size
  }

  #forgetOldest(): void {
    const oldest = this.#done.first ?? this.#open.first
    if (oldest !== undefined) this.forget(oldest)
  }

  #forgetOlder(line: AgeList<Request>, atMs: number): void {
    for (let oldest = line.first; oldest !== undefined && oldest.atMs <= atMs; oldest = line.first)
      this.forget(oldest)
  }

  #parentOf(request: Request): Request | undefined {
    const { parent } = request
    return parent !== undefined && parent.turn === request.parentTurn ? parent : undefined
  }

  /** The request belongs to this trace, and so does what it is made for, up to where another one was decided. */
  #takeOver(request: Request, traceId: Uint8Array): void {
    let each = request
    for (;;) {
      each.resolved = true
      each.traceId.set(traceId)
      each.flags = 1
      const parent = each.server ? this.clientOf(each) : this.#parentOf(each)
      if (parent === undefined) each.orphan = each.server && each.local && each.sequence !== 0
      if (parent === undefined || parent.resolved) return
      this.joined++
      each.parentSpanId.set(parent.spanId)
      each.flags |= each.server ? flagsWithRemoteParent : flagsWithLocalParent
      each = parent
    }
  }

  /** Notes what a client's request is made for, where that is certain. `traceId`: the one it is in, where that is known. */
  #adopt(request: Request, doubt: boolean, traceId: Uint8Array | undefined): void {
    const parent = this.#certainParent(request, doubt)
    if (parent !== undefined) {
      request.parent = parent
      request.parentTurn = parent.turn
    }
    if (traceId !== undefined && parent?.resolved !== true) this.#takeOver(request, traceId)
    // Its ids are decided now, while its parent is certain to be there: it may end before this one.
    else if (parent !== undefined) this.resolve(request)
  }

  #certainParent(request: Request, doubt: boolean): Request | undefined {
    const parent = this.#servedBy(request.pid, request.tid)
    // An event loop may serve more than is known; a thread that waits in its calls does one thing at a time.
    if (doubt && !parent?.blocking) return undefined
    // A beginning may be told late, with its end: what the thread serves since then is not what it was made for.
    return parent === undefined || parent.startUs > request.startUs ? undefined : parent
  }

  /** The one request that a thread works for; undefined where there is none, or more than one may be meant. */
  #servedBy(pid: number, tid: number): Request | undefined {
    const serving = this.#serving.get(pid)
    if (serving === undefined || serving.count === 0 || serving.count > maxLooked) return undefined
    const { first } = serving
    if (serving.count === 1) {
      const handed = this.#threads.get(tid)
      return first!.tid === tid || (handed?.request === first && handed?.turn === first!.turn)
        ? first
        : undefined
    }
    let found: Request | undefined
    for (let each = first; each !== undefined; each = each.after) {
      if (each.tid !== tid) continue
      if (found !== undefined || !each.blocking) return undefined
      found = each
    }
    return found
  }

  #serve(request: Request): void {
    let serving = this.#serving.get(request.pid)
    if (serving === undefined) {
      serving = new Serving()
      if (this.#serving.size >= maxProcesses) this.#forgetIdle()
      this.#serving.set(request.pid, serving)
    }
    // While there are several, none of them is alone: the newest is all that may have to be told.
    request.alone = serving.count === 0
    if (serving.first !== undefined) serving.first.alone = false
    if (request.blocking && request.number !== 0) forgetNumbers(request, serving.first)
    serving.count++
    request.before = undefined
    request.after = serving.first
    if (serving.first !== undefined) serving.first.before = request
    serving.first = request
  }

  /** Lets go of the processes that serve nothing now. */
  #forgetIdle(): void {
    for (const [pid, { count }] of this.#serving) if (count === 0) this.#serving.delete(pid)
  }

  #unserve(request: Request): void {
    const serving = this.#serving.get(request.pid)
    if (serving === undefined) return
    if (request.before === undefined) serving.first = request.after
    else request.before.after = request.after
    if (request.after !== undefined) request.after.before = request.before
    request.before = undefined
    request.after = undefined
    serving.count--
  }

  #take(nowMs: number): Request {
    if (this.size >= this.#maxRequests) this.#forgetOldest()
    const request = this.#free.pop() ?? new Request()
    request.turn++
    request.ended = false
    request.resolved = false
    request.orphan = false
    request.parent = undefined
    request.parentSpanId.fill(0)
    request.state = ''
    request.flags = 1
    request.childStartUs = Number.POSITIVE_INFINITY
    request.childEndUs = 0
    request.atMs = nowMs
    this.#open.add(request)
    if (this.size > this.#peak) this.#peak = this.size
    return request
  }

  #release(request: Request): void {
    this.#table.delete(request)
    request.parent = undefined
    request.owner = undefined
    request.number = 0
    request.turn++
    this.#free.push(request)
  }

  #lookUp(server: boolean, sequence: number, ports: number): Request | undefined {
    let request = this.#table.find(sequence, ports)
    while (request !== undefined && request.server !== server) request = this.#table.next(request)
    return request
  }
}

/** A thread that has another request under way does not do one thing at a time: what it is at work on is not certain. */
function forgetNumbers(request: Request, others: Request | undefined): void {
  let looked = 0
  for (let each = others; each !== undefined; each = each.after) {
    if (each.tid === request.tid) each.number = request.number = 0
    if (++looked < maxLooked) continue
    request.number = 0
    return
  }
}

export function isSameTrace(a: Uint8Array, b: Uint8Array): boolean {
  for (let i = 0; i < 16; i++) if (a[i] !== b[i]) return false
  return true
}
