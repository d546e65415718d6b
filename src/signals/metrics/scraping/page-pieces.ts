import type { Family } from './exposition.ts'
import type { PageLayout } from './page-layout.ts'
import { sampleKey } from './sample-key.ts'

/** Samples per part: a change of one remakes its whole part. */
const pieceSamples = 500

/** Samples of one family that are converted together: all of them, or a part of a large family. */
export interface PagePart {
  readonly family: Family
  /** Name of the family and number of the part. */
  readonly key: string
  readonly first: number
  readonly size: number
  /** Sample indexes if they are not consecutive. */
  readonly scattered: Uint32Array | undefined
  /** Whether its family may have other parts. */
  readonly hasSiblings: boolean
}

/** Sample index of element i of a part. */
export function sampleAt({ first, scattered }: Pick<PagePart, 'first' | 'scattered'>, i: number): number {
  return scattered === undefined ? first + i : scattered[i]!
}

/**
 * Parts of all families, in the order of the page. The samples of one point stay together: a histogram or summary in
 * several places of the page is one part.
 */
export function* partsOf(layout: PageLayout, families: readonly Family[]): Iterable<PagePart> {
  const places = new Map<string, Family[]>()
  for (const family of families) {
    const same = places.get(family.name)
    if (same === undefined) places.set(family.name, [family])
    else same.push(family)
  }
  const counts = new Map<string, number>()
  for (const family of families) {
    const { name, from, to } = family
    const same = places.get(name)!
    if (same.length > 1 && isComposed(family)) {
      if (same[0] === family) yield joined(same)
      continue
    }
    const hasSiblings = same.length > 1 || to - from > pieceSamples
    for (const [first, end] of cut(layout, family)) {
      const nth = (counts.get(name) ?? 0) + 1
      counts.set(name, nth)
      yield { family, key: `${name} ${nth}`, first, size: end - first, scattered: undefined, hasSiblings }
    }
  }
}

/** Whether a part has the same samples as a part of another page, apart from the numbers. */
export function isSamePart(layout: PageLayout, part: PagePart, old: PageLayout, other: PagePart): boolean {
  if (part.size !== other.size) return false
  const { type, help, unit } = part.family
  if (type !== other.family.type || help !== other.family.help || unit !== other.family.unit) return false
  for (let i = 0; i < part.size; i++)
    if (!layout.chunkEquals(sampleAt(part, i), old, sampleAt(other, i))) return false
  return true
}

/** Whether its points consist of several samples. */
function isComposed({ type }: Family): boolean {
  return type === 'histogram' || type === 'summary' || type === 'gaugehistogram'
}

function joined(same: readonly Family[]): PagePart {
  const family = same[0]!
  let size = 0
  for (const { from, to } of same) size += to - from
  const scattered = new Uint32Array(size)
  let at = 0
  for (const { from, to } of same) for (let sample = from; sample < to; sample++) scattered[at++] = sample
  return { family, key: `${family.name} 1`, first: family.from, size, scattered, hasSiblings: false }
}

function* cut(layout: PageLayout, family: Family): Iterable<readonly [from: number, to: number]> {
  const { from, to, type } = family
  let begin = from
  if (to - from > pieceSamples) {
    const first = isComposed(family) ? nameOf(layout, from) : ''
    const hasStarts = type === 'counter' && isStart(layout, to - 1)
    for (let at = from + pieceSamples; at < to; at++) {
      if (first !== '' && !beginsPoint(layout, at, first)) continue
      // In OpenMetrics, the start of a counter follows it.
      if (hasStarts && !(isStart(layout, at - 1) && !isStart(layout, at))) continue
      yield [begin, at]
      begin = at
      at += pieceSamples - 1
    }
  }
  yield [begin, to]
}

/** On most pages, each point begins with a sample of the same name, and its samples are adjacent. */
function beginsPoint(layout: PageLayout, at: number, first: string): boolean {
  return nameOf(layout, at) === first && nameOf(layout, at - 1) !== first && !isSamePoint(layout, at - 1, at)
}

function isStart(layout: PageLayout, sample: number): boolean {
  return nameOf(layout, sample).endsWith('_created')
}

function isSamePoint(layout: PageLayout, one: number, other: number): boolean {
  return pointOf(layout, one) === pointOf(layout, other)
}

/** The labels shared by all samples of the point. */
function pointOf(layout: PageLayout, sample: number): string {
  const bytes = layout.keyBytes(sample)
  const labels = [...(sampleKey(bytes, 0, bytes.length)?.labels ?? [])]
  return JSON.stringify(labels.filter(([name]) => name !== 'le' && name !== 'quantile').sort())
}

function nameOf(layout: PageLayout, sample: number): string {
  const bytes = layout.keyBytes(sample)
  const end = bytes.indexOf(0x7b)
  // A quoted name is inside the braces.
  if (end === 0) return sampleKey(bytes, 0, bytes.length)?.name ?? ''
  return bytes.toString('latin1', 0, end < 0 ? bytes.length : end).trimEnd()
}
