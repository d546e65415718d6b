import type { ByteFlow } from '../lib/byte-flow.ts'

/** Announced bytes of one direction that nobody reads. They pass by position, so that gaps among them do no harm. */
export class Passage {
  /** How many are still to come. */
  left = 0
  /** The newest one that was seen. */
  last = 0
  private endAt = 0

  /** The next `count` bytes pass. */
  start(flow: ByteFlow, count: number): void {
    this.left = count
    this.endAt = flow.offset + count
  }

  /** More bytes pass behind those. */
  extend(count: number): void {
    this.left += count
    this.endAt += count
  }

  /** Passes over what is at hand. True when all have passed. */
  pass(flow: ByteFlow): boolean {
    const here = Math.min(this.left, flow.end - flow.at)
    if (here > 0) {
      flow.at += here
      this.left -= here
      this.last = flow.bytes[flow.at - 1]!
    }
    return this.left === 0
  }

  /** After a gap: true when it ended among them or at their end, and framing is not lost. */
  outlasts(flow: ByteFlow): boolean {
    const left = this.endAt - flow.received
    if (this.left === 0 || left < 0 || left > this.left) return false
    this.left = left
    return true
  }
}
