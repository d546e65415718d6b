/** Longer words are not compared, so that a foreign text costs no more than its length. */
const longest = 96

/**
 * The most likely candidate for a mistyped word, undefined if none is close. Close means at most one edit per three
 * characters, and at most three edits; case is ignored, and two swapped neighbours are one edit.
 */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length > longest) return undefined
  const lower = word.toLowerCase()
  let best: string | undefined
  let limit = Math.min(3, Math.max(1, Math.floor(word.length / 3)))
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) > limit) continue
    const edits = distance(lower, candidate.toLowerCase())
    if (edits > limit || (best !== undefined && edits === limit)) continue
    best = candidate
    limit = edits
  }
  return best
}

/** Optimal string alignment distance: insert, delete, replace, swap neighbours. */
function distance(a: string, b: string): number {
  let before: number[] = []
  let above = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let edits = Math.min(above[j]! + 1, row[j - 1]! + 1, above[j - 1]! + (same ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        edits = Math.min(edits, before[j - 2]! + 1)
      }
      row.push(edits)
    }
    before = above
    above = row
  }
  return above[b.length]!
}
