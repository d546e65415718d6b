// Places for cumulative series, shared by those who bring them.

import { FairShare, isSameOwner, type Owner, type ShareLosses } from '../../../foundation/lib/fair-share.ts'
import { OwnerMap } from '../../../foundation/lib/owner-map.ts'

/** A series with a place of its own. */
export interface PlacedSeries {
  readonly owner: Owner
  /** Of an owner's series those with the lowest rank, from 0, lose their places first. */
  readonly rank: number
  /** Collections since it last changed. */
  idle: number
  /** Its place is another's by now: it is told once more and then let go. */
  leaving: boolean
}

interface Holder<S> {
  readonly owner: Owner
  /** By rank, the oldest first. */
  readonly series: Set<S>[]
  /** Until the next collection it gets no more places for series of this rank and below. */
  refused: number
  /** Series that leave for it, since the last collection. */
  pressed: number
}

const noRank = -1
/** So many of an owner's series are looked at to find one that is idle. */
const mostLooked = 64

/**
 * Shares places for series among owners (see `FairShare`), so that nobody's flood keeps others out. No count is lost when
 * a series loses its place: one that changed since it was last told keeps counting until it is told the last time. Until
 * then it takes memory beside the places, for half as many series at most.
 */
export class SeriesRoom<S extends PlacedSeries> {
  readonly #share: FairShare
  readonly #letGo: (series: S) => void
  readonly #holders = new OwnerMap<Holder<S>>()
  readonly #mostLeaving: number
  #leaving = 0
  #refused = 0
  #taken = 0

  /** `letGo`: the table is to forget a series, of which all was told. */
  constructor(places: number, letGo: (series: S) => void) {
    this.#share = new FairShare(places)
    this.#letGo = letGo
    this.#mostLeaving = Math.ceil(places / 2)
  }

  /** Series that are kept, those included that are told once more. */
  get size(): number {
    return this.#share.used + this.#leaving
  }

  /** Times that something was counted without a series of its own, and series that others got the place of. */
  get losses(): ShareLosses {
    return { refused: this.#refused, taken: this.#taken }
  }

  /** Whether a series of `owner` gets a place, which is to be taken by `add` then. */
  offers(owner: Owner, rank: number): boolean {
    if (this.#share.hasRoom(1)) return true
    const holder = this.#holders.get(owner)
    if (holder === undefined || holder.refused < rank) {
      if (this.#frees(owner, rank)) return true
      if (holder !== undefined) holder.refused = rank
    }
    this.#refused++
    return false
  }

  add(series: S): void {
    const { owner } = series
    const holder = this.#holderOf(owner)
    while (holder.series.length <= series.rank) holder.series.push(new Set())
    holder.series[series.rank]!.add(series)
    this.#share.add(owner, 1)
  }

  /** Its place is free again; the table forgets it. */
  remove(series: S): void {
    if (series.leaving) this.#leaving--
    else this.#release(series)
  }

  /** A collection begins: whoever was refused may ask again. */
  begin(): void {
    for (const holder of this.#holders.values()) {
      holder.refused = noRank
      holder.pressed = 0
    }
  }

  /** To be asked of each series when it was told; true: it has lost its place, or did not change for too long, and goes. */
  ends(series: S, mostIdle: number): boolean {
    if (!series.leaving && ++series.idle <= mostIdle) return false
    this.remove(series)
    return true
  }

  /** Lets go of up to `count` series that did not change since they were told, and returns how many those were. */
  shed(count: number): number {
    const idle: S[] = []
    for (const { series } of this.#holders.values())
      for (const ranked of series) for (const each of ranked) if (each.idle > 0) idle.push(each)
    const gone = idle.sort((a, b) => b.idle - a.idle).slice(0, Math.max(0, count))
    for (const series of gone) {
      this.#release(series)
      this.#letGo(series)
    }
    return gone.length
  }

  /** Takes a place from whoever has most, or from what counts less of the owner's own. */
  #frees(owner: Owner, rank: number): boolean {
    const giver = this.#share.giver(owner, 1)
    const held = giver && this.#holders.get(giver)
    if (held === undefined) return false
    const least = leastOf(held.series)
    if (least === undefined || (isSameOwner(owner, giver) && least.rank >= rank)) return false
    const isTold = least.idle > 0
    // No more than is left for others to ask for.
    const pressed = this.#holders.get(owner)?.pressed ?? 0
    if (!isTold && pressed >= this.#mostLeaving - this.#leaving) return false
    this.#release(least)
    this.#taken++
    if (isTold) this.#letGo(least)
    else {
      least.leaving = true
      this.#leaving++
      this.#holderOf(owner).pressed++
    }
    return true
  }

  #holderOf(owner: Owner): Holder<S> {
    let holder = this.#holders.get(owner)
    if (holder === undefined) {
      holder = { owner, series: [], refused: noRank, pressed: 0 }
      this.#holders.set(owner, holder)
    }
    return holder
  }

  #release(series: S): void {
    const { owner, rank } = series
    if (!this.#holders.get(owner)?.series[rank]?.delete(series)) return
    this.#share.remove(owner, 1)
    if (this.#share.usedBy(owner) === 0) this.#holders.delete(owner)
  }
}

/** What an owner misses least: of what counts least the most idle one among the oldest. */
function leastOf<S extends PlacedSeries>(byRank: readonly ReadonlySet<S>[]): S | undefined {
  let least: S | undefined
  let looked = 0
  for (const series of byRank) {
    for (const each of series) {
      if (least === undefined || each.idle > least.idle) least = each
      if (++looked === mostLooked) break
    }
    if (least !== undefined) break
  }
  return least
}
