import type { TokenBucket } from '../../../foundation/lib/token-bucket.ts'

const windowMs = 1000
/** Aims a little below the limit while the bucket is less than half full, so that it refills. */
const refilling = 0.9
/** Maximum growth of the share per second; it falls immediately. */
const growth = 2
/** Smaller changes are not worth the traces that they cut. */
const noticeable = 0.1
/**
 * Minimum reduction of the share when the bucket runs empty, and minimum interval of such reductions, in milliseconds.
 */
const relief = 0.75
const shortestMs = 100
const least = 2 ** -20

/**
 * Share of traces that pass, chosen by a hash of the trace ID so that they are kept whole. The share follows the rate
 * of the last second.
 */
export class TraceShare {
  /** From 0 to 1. */
  share = 1
  /** Spans per second received in the last full window. */
  offeredPerSecond = 0
  #offered = 0
  #sinceMs = Number.NaN

  /** Whether a span of this trace passes; takes a token if so. */
  admits(traceId: Uint8Array, bucket: TokenBucket, nowMs: number): boolean {
    if (Number.isNaN(this.#sinceMs)) this.#sinceMs = nowMs
    if (nowMs - this.#sinceMs >= windowMs) this.#measure(bucket, nowMs)
    this.#offered++
    if (this.share < 1 && placeOf(traceId) >= this.share) return false
    if (bucket.take(1, 0)) return true
    if (nowMs - this.#sinceMs >= shortestMs) this.#cut(bucket, nowMs)
    return false
  }

  /** More spans arrive than in the last second: reduces the share now, rather than leaving gaps in all traces. */
  #cut(bucket: TokenBucket, nowMs: number): void {
    const before = this.share
    this.#measure(bucket, nowMs)
    this.share = Math.max(least, Math.min(this.share, before * relief))
  }

  #measure(bucket: TokenBucket, nowMs: number): void {
    const seconds = (nowMs - this.#sinceMs) / 1000
    this.offeredPerSecond = this.#offered / seconds
    this.#offered = 0
    this.#sinceMs = nowMs
    const isLow = bucket.level.tokens < bucket.capacity / 2
    const aim = bucket.perSecond * (isLow ? refilling : 1)
    const wanted = this.offeredPerSecond > aim ? aim / this.offeredPerSecond : 1
    if (wanted < this.share) {
      if (isLow || wanted < this.share * (1 - noticeable)) this.share = wanted
    } else if (wanted === 1 || wanted > this.share * (1 + noticeable))
      this.share = Math.min(wanted, this.share * growth ** seconds)
  }
}

/**
 * Position from 0 to 1 that is the same on every host for the same trace, so that agents with the same share keep the
 * same traces. All bytes are used, as samplers before us may have selected by some of them.
 */
function placeOf(traceId: Uint8Array): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < traceId.length; i++) hash = Math.imul(hash ^ traceId[i]!, 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}
