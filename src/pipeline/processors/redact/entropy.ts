const counts = new Uint8Array(256)
const most = 256

/** log2 of integers. */
const logarithms = Float64Array.from({ length: most + 1 }, (_, n) => (n === 0 ? 0 : Math.log2(n)))

/** Shannon entropy of a range, in bits per unit; of its first 256 units if it is longer. */
export function entropy(units: Uint8Array, start: number, end: number): number {
  const last = Math.min(end, start + most)
  const length = last - start
  if (length <= 0) return 0
  for (let i = start; i < last; i++) counts[units[i]!]!++
  let sum = 0
  for (let i = start; i < last; i++) {
    const count = counts[units[i]!]!
    sum += count * logarithms[count]!
    counts[units[i]!] = 0
  }
  return logarithms[length]! - sum / length
}
