// Buckets whose bounds are powers of 2^(1 / 2^scale): the bucket with index i holds values above 2^(i / 2^scale), up to
// and including 2^((i + 1) / 2^scale) (OpenTelemetry metrics data model, "ExponentialHistogram").

const view = new DataView(new ArrayBuffer(8))

/** Bucket index of a positive, finite number. Exact at powers of two and for scales that are not positive. */
export function bucketIndex(value: number, scale: number): number {
  view.setFloat64(0, value)
  const head = view.getUint32(0)
  const isPower = (head & 0xfffff) === 0 && view.getUint32(4) === 0
  const exponent = (head >>> 20) - 1023
  // Subnormal numbers, below 2^-1022, count as the smallest normal one.
  const ceiling = exponent === -1023 ? -1022 : isPower ? exponent : exponent + 1
  if (scale <= 0) return Math.ceil(ceiling / 2 ** -scale) - 1
  if (isPower || exponent === -1023) return ceiling * 2 ** scale - 1
  return Math.ceil(Math.log2(value) * 2 ** scale) - 1
}

/** Counts of consecutive buckets; the first has the index `offset`. */
export interface BucketCounts {
  readonly scale: number
  readonly offset: number
  readonly counts: Float64Array
}

/** Bucket counts of one series. Above `most` buckets, pairs are merged: the scale decreases. */
export class ExponentialBucketCounts {
  scale: number
  /** Index of the first of `counts`. */
  offset = 0
  /** Number of `counts` in use, from the first. */
  length = 0
  #counts = new Float64Array(8)
  readonly #most: number

  /** `most` is at least 2: values below 1 and above 1 are never in the same bucket. */
  constructor(startScale: number, most: number) {
    this.scale = startScale
    this.#most = most
  }

  /** Valid until the next change. */
  get counts(): Float64Array {
    return this.#counts.subarray(0, this.length)
  }

  /** `counts` minus those of `before`. */
  since(before: BucketCounts | undefined): Float64Array {
    const counts = this.counts.slice()
    if (before === undefined) return counts
    const width = 2 ** (before.scale - this.scale)
    for (let i = 0; i < before.counts.length; i++)
      counts[Math.floor((before.offset + i) / width) - this.offset]! -= before.counts[i]!
    return counts
  }

  /** Counts a positive, finite number `times` times. */
  add(value: number, times: number): void {
    let index = bucketIndex(value, this.scale)
    for (let span = this.#spanWith(index); span > this.#most; span = this.#spanWith(index)) {
      this.#halve()
      index = bucketIndex(value, this.scale)
    }
    this.#include(index)
    this.#counts[index - this.offset]! += times
  }

  #spanWith(index: number): number {
    if (this.length === 0) return 1
    return Math.max(index, this.offset + this.length - 1) - Math.min(index, this.offset) + 1
  }

  #halve(): void {
    this.length = mergePairs(this.#counts, this.offset, this.length)
    this.offset = Math.floor(this.offset / 2)
    this.scale--
  }

  /** Extends the range to an index that `most` allows. */
  #include(index: number): void {
    if (this.length === 0) this.offset = index
    const before = Math.max(0, this.offset - index)
    const length = Math.max(this.length + before, index - this.offset + 1)
    if (length > this.#counts.length) {
      const next = new Float64Array(Math.min(this.#most, Math.max(length, 2 * this.#counts.length)))
      next.set(this.counts)
      this.#counts = next
    }
    if (before > 0) {
      this.#counts.copyWithin(before, 0, this.length)
      this.#counts.fill(0, 0, before)
      this.offset = index
    }
    this.length = length
  }
}

/**
 * Merges pairs of buckets in place for a scale lower by one; the first bucket has the index `offset`. Returns the new
 * number of buckets; the first has the index floor(offset / 2). Freed buckets are 0.
 */
export function mergePairs(counts: Float64Array, offset: number, length: number): number {
  const first = Math.floor(offset / 2)
  for (let i = 0; i < length; i++) {
    const count = counts[i]!
    counts[i] = 0
    counts[Math.floor((offset + i) / 2) - first]! += count
  }
  return length === 0 ? 0 : Math.floor((offset + length - 1) / 2) - first + 1
}
