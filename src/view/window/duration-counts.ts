// Histogram of durations: the bounds of its buckets are powers of the square root of 2, from 16 µs to 137 s. The last
// bucket is unbounded.

/** Number of buckets. */
export const durationBuckets = 48

/** Inclusive upper bounds in nanoseconds. */
export const boundsNs = Float64Array.from({ length: durationBuckets - 1 }, (_, i) => 2 ** (14 + i / 2))

/** The bucket of a duration in nanoseconds. */
export function bucketOf(ns: number): number {
  if (!(ns > unitNs)) return 0
  const units = Math.ceil(ns / unitNs) - 1
  if (units >= 2 ** octaves) return durationBuckets - 1
  const middle = 2 * (32 - Math.clz32(units)) - 1
  return ns > boundsNs[middle]! ? middle + 1 : middle
}

/**
 * Percentile in milliseconds (`part`: 0 to 1) of the durations in `counts`, from index `at`; null if there are none.
 * Assumes that the logarithms in a bucket are spread evenly.
 */
export function percentileMs(counts: ArrayLike<number>, part: number, at = 0): number | null {
  let total = 0
  for (let i = 0; i < durationBuckets; i++) total += counts[at + i]!
  if (total === 0) return null
  const rank = part * total
  let below = 0
  let i = 0
  // Rounding must not lead past the last bucket that is not empty.
  for (let next = 0; i < durationBuckets - 1; i++) {
    next = below + counts[at + i]!
    if (next >= rank && next > 0) break
    below = next
  }
  if (i === durationBuckets - 1) return boundsNs[i - 1]! / 1e6
  const upper = boundsNs[i]!
  const within = Math.max(0, Math.min(1, (rank - below) / counts[at + i]!))
  return (i === 0 ? upper * within : upper * 2 ** ((within - 1) / 2)) / 1e6
}

const unitNs = 2 ** 14
const octaves = 23
