import type { SpanLink } from '../../../foundation/model/profile.ts'
import type { Request } from './contexts.ts'

/** Requests that are remembered after their end, and cells for those under way. */
const most = 8_192

/**
 * What the profiler asks: which span the request of a sample has. Of requests that are over, only those that were
 * sampled are kept, so how many there are does not matter. Allocates nothing per request. Off at first.
 */
export class ActiveRequests {
  #kept: Kept | undefined

  get isOn(): boolean {
    return this.#kept !== undefined
  }

  /** Requests that are remembered after their end. */
  get size(): number {
    return this.#kept?.cells.size ?? 0
  }

  /** Remembers from now on, and nothing of before. */
  start(): void {
    this.#kept = new Kept()
  }

  stop(): void {
    this.#kept = undefined
  }

  /** A request begins whose thread waits in its calls, so that what it does meanwhile is certain. */
  begin(request: Request): void {
    if (this.#kept !== undefined) this.#kept.begun[placeOf(request.number)] = request
  }

  /** The span of a request that was sampled is passed on with these ids, of which a copy is kept. */
  end(number: number, traceId: Uint8Array, spanId: Uint8Array): void {
    this.#kept?.end(number, traceId, spanId)
  }

  /** The span of a request that is over; the same object each time. Undefined: there is none, or it is not known. */
  linkOf(number: number): SpanLink | undefined {
    return this.#kept?.linkOf(number)
  }

  /** The request of this number that was begun, and is not over. */
  inFlight(number: number): Request | undefined {
    const request = this.#kept?.begun[placeOf(number)]
    return request !== undefined && request.number === number && !request.ended ? request : undefined
  }
}

class Kept {
  /** Of requests that are over, by number. */
  readonly cells = new Map<number, number>()
  /** Under way, each where its number says; a later one takes its place. */
  readonly begun = new Array<Request | undefined>(most).fill(undefined)
  /** Of each cell: its number, and 16 and 8 bytes of ids. The oldest one is used again. */
  readonly #numbers = new Float64Array(most)
  readonly #ids = new Uint8Array(24 * most)
  readonly #links: (SpanLink | undefined)[] = []
  #next = 0

  end(number: number, traceId: Uint8Array, spanId: Uint8Array): void {
    const cell = this.cells.get(number) ?? this.#take(number)
    this.#ids.set(traceId, 24 * cell)
    this.#ids.set(spanId, 24 * cell + 16)
    this.#links[cell] = undefined
  }

  linkOf(number: number): SpanLink | undefined {
    const cell = this.cells.get(number)
    if (cell === undefined) return undefined
    const ids = this.#ids
    const at = 24 * cell
    this.#links[cell] ??= linkTo(ids.subarray(at, at + 16), ids.subarray(at + 16, at + 24))
    return this.#links[cell]
  }

  #take(number: number): number {
    const cell = this.#next
    this.#next = (cell + 1) % most
    if (this.cells.size === most) this.cells.delete(this.#numbers[cell]!)
    this.#numbers[cell] = number
    this.cells.set(number, cell)
    return cell
  }
}

/** A link with copies of the ids. */
export function linkTo(traceId: Uint8Array, spanId: Uint8Array): SpanLink {
  return { traceId: traceId.slice(), spanId: spanId.slice() }
}

/** Numbers have the time in their lower 31 bits, in steps of about a microsecond. */
function placeOf(number: number): number {
  const low = number % 2 ** 31
  return (Math.imul(low ^ Math.floor(number / 2 ** 31), 0x9e3779b1) >>> 19) & (most - 1)
}
