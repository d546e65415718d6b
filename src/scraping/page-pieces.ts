import type { Family } from './exposition.ts'
import type { PageLayout } from './page-layout.ts'

/** So many samples of one family are made anew together. */
const pieceSamples = 500

/** The parts of a family that are made together. What belongs to one point stays together. */
export function* piecesOf(
  layout: PageLayout,
  { from, to, name, type }: Family,
): Iterable<readonly [from: number, to: number]> {
  const composed = type === 'histogram' || type === 'summary' || type === 'gaugehistogram'
  const first = composed && to > from ? nameOf(layout, from) : ''
  let begin = from
  for (let at = from + pieceSamples; at < to; at++) {
    if (at - begin < pieceSamples) continue
    // In the usual order the count is the last of a point, and the next one begins as the first did.
    if (composed && !(nameOf(layout, at - 1) === `${name}_count` && nameOf(layout, at) === first)) continue
    // OpenMetrics tells the start of a counter behind it.
    if (type === 'counter' && nameOf(layout, at).endsWith('_created')) continue
    yield [begin, at]
    begin = at
  }
  yield [begin, to]
}

/** Whether samples `from` to `to` of one page are those from `oldFrom` on of another but for their numbers. */
export function isSamePiece(
  layout: PageLayout,
  from: number,
  to: number,
  old: PageLayout,
  oldFrom: number,
): boolean {
  for (let i = from; i < to; i++) if (!layout.chunkEquals(i, old, oldFrom + i - from)) return false
  return true
}

function nameOf(layout: PageLayout, sample: number): string {
  const bytes = layout.keyBytes(sample)
  const end = bytes.indexOf(0x7b)
  return bytes.toString('latin1', 0, end < 0 ? bytes.length : end)
}
