/**
 * A byte budget for foreign data in tables that cannot evict: data above it is rejected on arrival, and counted.
 * Several tables may share one.
 */
export class ByteRoom {
  readonly limitBytes: number
  /** How often something was rejected. */
  leftOut = 0
  #bytes = 0

  constructor(limitBytes = Number.POSITIVE_INFINITY) {
    this.limitBytes = limitBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Reserves bytes. False: no room. */
  take(bytes: number): boolean {
    return this.change(0, bytes)
  }

  /** Changes a reservation from `before` to `after` bytes. False: no room, and the reservation stays `before`. */
  change(before: number, after: number): boolean {
    if (after > before && this.#bytes + after - before > this.limitBytes) {
      this.leftOut++
      return false
    }
    this.#bytes += after - before
    return true
  }

  give(bytes: number): void {
    this.#bytes -= bytes
  }
}
