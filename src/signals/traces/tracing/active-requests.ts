import type { SpanLink } from '../../../foundation/model/profile.ts'
import type { Request } from './contexts.ts'

/** Requests kept after their end, and cells for those in progress. */
const most = 8_192

/**
 * Links the profiler's samples to spans: the span of the request that a sample belongs to. Of finished requests only
 * the sampled ones are kept, so the total number of requests does not matter. Allocates nothing per request. Off at
 * first.
 */
export class ActiveRequests {
  #kept: Kept | undefined

  get isOn(): boolean {
    return this.#kept !== undefined
  }

  /** Finished requests that are kept. */
  get size(): number {
    return this.#kept?.cells.size ?? 0
  }

  /** Starts keeping requests; earlier ones stay unknown. */
  start(): void {
    this.#kept = new Kept()
  }

  stop(): void {
    this.#kept = undefined
  }

  /**
   * A request begins on a thread that blocks in its calls, so everything the thread does until the end belongs to it.
   */
  begin(request: Request): void {
    if (this.#kept !== undefined) this.#kept.begun[placeOf(request.number)] = request
  }

  /** Stores copies of the ids under which the span of a sampled request is emitted. */
  end(number: number, traceId: Uint8Array, spanId: Uint8Array): void {
    this.#kept?.end(number, traceId, spanId)
  }

  /** The span of a finished request; the same object on each call. Undefined if it has none or is unknown. */
  linkOf(number: number): SpanLink | undefined {
    return this.#kept?.linkOf(number)
  }

  /** The request with this number, if it is still in progress. */
  inFlight(number: number): Request | undefined {
    const request = this.#kept?.begun[placeOf(number)]
    return request !== undefined && request.number === number && !request.ended ? request : undefined
  }
}

class Kept {
  /** Cells of finished requests, by number. */
  readonly cells = new Map<number, number>()
  /** Requests in progress, at the cell of their number; a later one overwrites an earlier one. */
  readonly begun = new Array<Request | undefined>(most).fill(undefined)
  /** Per cell: the number, then 16 and 8 bytes of ids. The oldest cell is reused. */
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

/** The lower 31 bits of a number are time, in steps of about a microsecond. */
function placeOf(number: number): number {
  const low = number % 2 ** 31
  return (Math.imul(low ^ Math.floor(number / 2 ** 31), 0x9e3779b1) >>> 19) & (most - 1)
}
