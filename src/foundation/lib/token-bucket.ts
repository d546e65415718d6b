/** How full a bucket is, which goes on when its rate changes. */
export interface Level {
  /** Below 0 after something that was larger than the bucket. */
  tokens: number
  /** When that was; -Infinity: never, the bucket is full. */
  atMs: number
}

/** Lets through so many items a second, and a burst after a quiet time. Times are monotonic, in milliseconds. */
export class TokenBucket {
  readonly level: Level
  readonly perSecond: number
  readonly capacity: number

  /** `burst` is in seconds. */
  constructor(
    perSecond: number,
    burst: number,
    level: Level = { tokens: 0, atMs: Number.NEGATIVE_INFINITY },
  ) {
    this.perSecond = perSecond
    this.capacity = Math.max(1, perSecond * burst)
    this.level = level
  }

  fill(nowMs: number): void {
    const { level, capacity } = this
    const passedMs = nowMs - level.atMs
    if (passedMs <= 0) return
    level.tokens = Math.min(capacity, level.tokens + (passedMs / 1000) * this.perSecond)
    level.atMs = nowMs
  }

  /**
   * Takes `cost` tokens, if more than `reserve` (a part of the capacity) would be left for others. What costs more than
   * the bucket holds passes when it is full.
   */
  take(cost: number, reserve: number): boolean {
    const { level, capacity } = this
    if (level.tokens < Math.min(capacity, cost + reserve * capacity)) return false
    level.tokens -= cost
    return true
  }

  /** Takes tokens for what was done already. */
  charge(cost: number): void {
    this.level.tokens -= cost
  }
}
