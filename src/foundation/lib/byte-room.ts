/**
 * Room in bytes for foreign data that tables cannot forget: what finds none is left out where it comes in, and counted.
 * Several tables may share one.
 */
export class ByteRoom {
  readonly limitBytes: number
  /** How often something was left out. */
  leftOut = 0
  #bytes = 0

  constructor(limitBytes = Number.POSITIVE_INFINITY) {
    this.limitBytes = limitBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Takes so many bytes. False: there is no room for them. */
  take(bytes: number): boolean {
    return this.change(0, bytes)
  }

  /** Something that had `before` bytes has `after` from now on. False: there is no room for that, and it has them still. */
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
