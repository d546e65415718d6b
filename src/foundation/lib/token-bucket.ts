/** Fill level of a bucket, kept when its rate changes. */
export interface Level {
  /** Below 0 after an item that was larger than the bucket. */
  tokens: number
  /** Time of that level; -Infinity: never used, the bucket is full. */
  atMs: number
}

/** Allows a number of items per second, and a burst after a quiet period. Times are monotonic, in milliseconds. */
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
   * Takes `cost` tokens if more than `reserve` (a part of the capacity) would remain for others. A cost above the
   * capacity passes when the bucket is full.
   */
  take(cost: number, reserve: number): boolean {
    const { level, capacity } = this
    if (level.tokens < Math.min(capacity, cost + reserve * capacity)) return false
    level.tokens -= cost
    return true
  }

  /** Takes tokens for work that is already done. */
  charge(cost: number): void {
    this.level.tokens -= cost
  }
}
