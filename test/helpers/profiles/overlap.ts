import assert from 'node:assert/strict'
import { type Folded, foldedOf, shareOf, totalOf } from './folded.ts'

/** How like each other two profiles are: parts of 1. */
export interface Overlap {
  /** Σ min(p, q) over whole stacks. */
  readonly stacks: number
  /** Σ min(p, q) over leaves. */
  readonly self: number
  /** Σ min(p, q) / Σ max(p, q) over functions, each counted once for each stack that it is in. */
  readonly inclusive: number
  /** How many samples each has. */
  readonly counts: readonly [number, number]
}

export function overlap(one: Folded, other: Folded): Overlap {
  const inclusive = compare(one, other, frames => new Set(frames))
  return {
    stacks: compare(one, other, frames => [frames.join(';')]).least,
    self: compare(one, other, frames => [frames.at(-1)!]).least,
    inclusive: inclusive.most === 0 ? 0 : inclusive.least / inclusive.most,
    counts: [totalOf(one), totalOf(other)],
  }
}

type Keys = (frames: readonly string[]) => Iterable<string>

/** Σ of the smaller and of the larger shares of each key. */
function compare(one: Folded, other: Folded, keys: Keys): { least: number; most: number } {
  const p = shares(one, keys)
  const q = shares(other, keys)
  let least = 0
  let most = 0
  for (const key of new Set([...p.keys(), ...q.keys()])) {
    least += Math.min(p.get(key) ?? 0, q.get(key) ?? 0)
    most += Math.max(p.get(key) ?? 0, q.get(key) ?? 0)
  }
  return { least, most }
}

function shares(folded: Folded, keys: Keys): Map<string, number> {
  const total = totalOf(folded)
  const found = new Map<string, number>()
  for (const [stack, count] of folded)
    for (const key of keys(stack.split(';'))) found.set(key, (found.get(key) ?? 0) + count / total)
  return found
}

/** Fails unless samples with one function are to those with another as 2:1, but for what chance makes of so few. */
export function checkTwoToOne(folded: Folded, twice: string, once: string): void {
  const count = (name: string) => totalOf(folded) * shareOf(folded, frames => frames.includes(name))
  const ratio = count(twice) / count(once)
  const deviation = ratio * Math.sqrt(1 / count(twice) + 1 / count(once))
  assert.ok(
    Math.abs(ratio - 2) < 4 * deviation + 0.02,
    `${twice} : ${once} is ${ratio.toFixed(2)} ± ${deviation.toFixed(2)}, and 2 by construction`,
  )
}

/** For messages: the scores in percent, and the functions whose shares differ most. */
export function describeOverlap(one: Folded, other: Folded): string {
  const { stacks, self, inclusive, counts } = overlap(one, other)
  const percent = (part: number) => (100 * part).toFixed(1)
  const p = shares(one, frames => new Set(frames))
  const q = shares(other, frames => new Set(frames))
  const worst = [...new Set([...p.keys(), ...q.keys()])]
    .map(name => [name, p.get(name) ?? 0, q.get(name) ?? 0] as const)
    .toSorted((a, b) => Math.abs(b[1] - b[2]) - Math.abs(a[1] - a[2]))
    .slice(0, 6)
    .map(([name, a, b]) => `${name} ${percent(a)} and ${percent(b)}`)
  return (
    `stacks ${percent(stacks)} %, self ${percent(self)} %, inclusive ${percent(inclusive)} % ` +
    `of ${counts.join(' and ')} samples; apart: ${worst.join(', ')}`
  )
}

/**
 * How little two faithful profiles may have in common for their finite length alone: the least of 100 pairs that are
 * drawn by the shares of the referee, one as long as the referee and one of `count` samples.
 */
export function noiseFloor(referee: Folded, count: number): number {
  const stacks = [...referee.keys()]
  const ends: number[] = []
  let total = 0
  for (const value of referee.values()) {
    total += value
    ends.push(total)
  }
  const draw = (samples: number): Folded =>
    foldedOf(
      Array.from({ length: samples }, () => {
        const at = Math.random() * total
        return [stacks[ends.findIndex(end => at < end)]!, 1] as const
      }),
    )
  let least = 1
  for (let pair = 0; pair < 100; pair++) least = Math.min(least, overlap(draw(total), draw(count)).stacks)
  return least
}
