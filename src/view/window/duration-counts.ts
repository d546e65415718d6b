// Durations by size: buckets whose bounds are powers of the square root of 2, from 16 µs to 137 s. The last has no bound.

/** How many. */
export const durationBuckets = 48

/** Upper bounds in nanoseconds, which belong to their bucket. */
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
 * The duration in milliseconds that a part (0 to 1) of those counted in `counts`, from `at` on, did not exceed; null
 * where there are none. Within a bucket they are taken to be spread evenly by their logarithm.
 */
export function percentileMs(counts: ArrayLike<number>, part: number, at = 0): number | null {
  let total = 0
  for (let i = 0; i < durationBuckets; i++) total += counts[at + i]!
  if (total === 0) return null
  const rank = part * total
  let below = 0
  let i = 0
  // Rounding must not lead behind the last bucket that holds any.
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
