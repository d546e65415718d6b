import type { MemoryGovernor } from '../../../foundation/lib/memory-governor.ts'
import type { TraceContext } from '../../../foundation/model/stream.ts'
import { AgeList, Pair, PairTable, portsOf } from './pair-table.ts'

/** Bytes of one remembered request with its ids (measured), and the default limit for all of them. */
const requestBytes = 1_000
const usualBytes = 8 * 2 ** 20
/** Maximum part of the table memory. */
const share = 1 / 8
/** Spare requests in the pool, beyond the number recently in use. */
const spare = 256
/** Maximum number of requests forgotten per call when memory is short. */
const mostShed = 2_000
/** Chains of the table; a power of two. */
const chains = 16_384
/** How long a finished request is kept for its other side. */
const holdMs = 2_000
/** Maximum number of a process's in-flight requests searched for one of a thread. */
const maxLooked = 256
/** When a request without a reported end is forgotten: its record met a full ring, or its framing was lost. */
const openMs = 300_000
const maxThreads = 4_096
/** Idle processes that are kept, as most soon serve again. */
const maxProcesses = 4_096

/** OTLP SpanFlags: it is known whether the parent is in another process, and it is. */
export const flagsWithRemoteParent = 0x300
/** The same flag, with the parent in the same process. */
const flagsWithLocalParent = 0x100

/** One side of a request, from its beginning until its position in the trace is no longer needed. Reused. */
export class Request extends Pair<Request> {
  /** Incremented on each reuse, so that a stale reference is recognised. */
  turn = 0
  server = false
  pid = 0
  tid = 0
  blocking = false
  /** Server side: the request's number for the profiler; 0 if its thread may have worked on another request. */
  number = 0
  /** Server side: its process served no other request at the same time. */
  alone = false
  /** Both ends may be on this host. */
  local = false
  ended = false
  startUs = 0
  endUs = 0
  /** Client side: the times of its server side. */
  childStartUs = Number.POSITIVE_INFINITY
  childEndUs = 0
  /** The ids are final: they were handed out, or came with the request. */
  resolved = false
  /** Server side whose ids were decided before its client was seen; the client may still appear on this host. */
  orphan = false
  readonly traceId: Uint8Array = new Uint8Array(16)
  readonly spanId: Uint8Array = new Uint8Array(8)
  /** All zero if there is no known parent. */
  readonly parentSpanId: Uint8Array = new Uint8Array(8)
  flags = 0
  state = ''
  /** The operation that will report its end; undefined if the request is looked up by its key. */
  owner: object | undefined
  /** Client side: the request that its process serves with it. */
  parent: Request | undefined
  parentTurn = 0
  atMs = 0
  /** Neighbours in the list of requests that its process serves. */
  before: Request | undefined
  after: Request | undefined
}

/** The requests that a process serves now. */
class Serving {
  count = 0
  first: Request | undefined
}

/** Identifies one side of a request. */
export interface RequestKey {
  readonly server: boolean
  /** TCP sequence number of the first byte; 0 if unknown. */
  readonly sequence: number
  readonly clientPort: number
  readonly serverPort: number
}

/** Everything known when a request begins. */
export interface RequestStart extends RequestKey {
  readonly pid: number
  readonly tid: number
  readonly blocking: boolean
  readonly local: boolean
  /** The list of requests that its process serves may be incomplete. */
  readonly doubt?: boolean
  /** From `requestNumber`; 0 or undefined if unknown. */
  readonly number?: number
  readonly startUs: number
}

/**
 * Places requests in their traces. Two kinds of evidence join requests; without either, the relation stays unknown:
 *
 * - Both sides of a request on one host see the same TCP sequence number at its first byte.
 * - A request sent by a thread is a child of the one request that its process serves, if the same thread received that
 *   one. While the process serves several, this holds only for a thread that blocks in its calls, because it does
 *   nothing else in between. A thread started for a request counts as the thread that received it.
 *
 * Ids are decided on first use and are final. A client seen after that takes over the trace of its server.
 */
export class Contexts {
  /** Requests joined with their other side or their parent. */
  joined = 0
  readonly #table = new PairTable<Request>(chains)
  readonly #serving = new Map<number, Serving>()
  /** Threads that were started by a thread that served a request. */
  readonly #threads = new Map<number, { request: Request; turn: number }>()
  readonly #free: Request[] = []
  readonly #fill: (id: Uint8Array) => void
  /** In progress, and finished: each from the oldest to the newest. */
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

  /** Bytes of all requests, including the pool. */
  get bytes(): number {
    return (this.size + this.#free.length) * requestBytes
  }

  /** Frees about this many bytes: the pool, then finished requests, then the oldest in progress. Costs only joins. */
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

  /**
   * A request begins. `context` is the trace context that it carries. For the parent of a client's request see `join`.
   */
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
   * Finds the parent of a client's request that just began. The call may come late if the sending thread was delayed
   * before its hook ran. Its server may have a trace by then (`serverTrace` if the server side has already finished);
   * that trace is taken over unless another one was already decided.
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

  /** The request that began under this key and was not forgotten. */
  find(key: RequestKey): Request | undefined {
    if (key.sequence === 0) return undefined
    return this.#lookUp(key.server, key.sequence, portsOf(key.clientPort, key.serverPort))
  }

  /** Whether this side of a request has begun and not ended, as far as it was reported. */
  isInFlight(server: boolean, sequence: number, ports: number): boolean {
    return this.#lookUp(server, sequence, ports)?.ended === false
  }

  /** The client's side of a server's request. */
  clientOf(request: Request): Request | undefined {
    return request.local && request.sequence !== 0
      ? this.#lookUp(false, request.sequence, request.ports)
      : undefined
  }

  /** Decides the ids of a request from what is known now. */
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

  /** The request ended and gets no more children. With `keep` it is remembered for its other side. */
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

  /** Releases the request, in any state. */
  forget(request: Request): void {
    if (!request.ended && request.server) this.#unserve(request)
    ;(request.ended ? this.#done : this.#open).remove(request)
    this.#release(request)
  }

  /** A thread was started by another one of its process. */
  thread(pid: number, parentTid: number, tid: number): void {
    this.#threads.delete(tid)
    const request = this.#servedBy(pid, parentTid)
    if (request === undefined) return
    if (this.#threads.size >= maxThreads) this.#threads.clear()
    this.#threads.set(tid, { request, turn: request.turn })
  }

  /** Forgets requests that ended long ago, and those that began so long ago that their end was missed. */
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

  /** Moves the request and its ancestors to this trace, up to the first one whose trace is already decided. */
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

  /** Sets the parent of a client's request if it is certain. `traceId`: the trace of the request, if known. */
  #adopt(request: Request, doubt: boolean, traceId: Uint8Array | undefined): void {
    const parent = this.#certainParent(request, doubt)
    if (parent !== undefined) {
      request.parent = parent
      request.parentTurn = parent.turn
    }
    if (traceId !== undefined && parent?.resolved !== true) this.#takeOver(request, traceId)
    // The ids are decided now, while the parent certainly exists: it may end before this request.
    else if (parent !== undefined) this.resolve(request)
  }

  #certainParent(request: Request, doubt: boolean): Request | undefined {
    const parent = this.#servedBy(request.pid, request.tid)
    // An event loop may serve requests that are not known; a thread that blocks in its calls does one thing at a time.
    if (doubt && !parent?.blocking) return undefined
    // A beginning may be reported late, together with its end: what the thread serves since then is not the parent.
    return parent === undefined || parent.startUs > request.startUs ? undefined : parent
  }

  /** The one request that a thread works for; undefined if there is none or several are possible. */
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
    // With several, none is alone. Marking the newest is enough: older ones were marked when it arrived.
    request.alone = serving.count === 0
    if (serving.first !== undefined) serving.first.alone = false
    if (request.blocking && request.number !== 0) forgetNumbers(request, serving.first)
    serving.count++
    request.before = undefined
    request.after = serving.first
    if (serving.first !== undefined) serving.first.before = request
    serving.first = request
  }

  /** Releases processes that serve nothing now. */
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

/** Clears numbers if the thread has another request in progress: which of them it works on is then uncertain. */
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
