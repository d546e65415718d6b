// Places for cumulative series, shared by owner.

import { FairShare, isSameOwner, type Owner, type ShareLosses } from '../../../foundation/lib/fair-share.ts'
import { OwnerMap } from '../../../foundation/lib/owner-map.ts'

/** A series with a place of its own. */
export interface PlacedSeries {
  readonly owner: Owner
  /** The series of an owner with the lowest rank, from 0, lose their places first. */
  readonly rank: number
  /** Collections since it last changed. */
  idle: number
  /** It has lost its place: it is exported once more, then removed. */
  leaving: boolean
}

interface Holder<S> {
  readonly owner: Owner
  /** By rank, the oldest first. */
  readonly series: Set<S>[]
  /** Until the next collection it gets no more places for series of this rank and below. */
  refused: number
  /** Series removed for it since the last collection. */
  pressed: number
}

const noRank = -1
/** Maximum number of an owner's series checked to find an idle one. */
const mostLooked = 64

/**
 * Shares places for series among owners (see `FairShare`), so that one owner's flood does not keep others out. No count
 * is lost when a series loses its place: one that changed since its last export keeps counting until its final export.
 * Until then it takes memory beyond the places, for half as many series at most.
 */
export class SeriesRoom<S extends PlacedSeries> {
  readonly #share: FairShare
  readonly #letGo: (series: S) => void
  readonly #holders = new OwnerMap<Holder<S>>()
  readonly #mostLeaving: number
  #leaving = 0
  #refused = 0
  #taken = 0

  /** `letGo` has the table remove a series that was fully exported. */
  constructor(places: number, letGo: (series: S) => void) {
    this.#share = new FairShare(places)
    this.#letGo = letGo
    this.#mostLeaving = Math.ceil(places / 2)
  }

  /** Series that are kept, including those awaiting their final export. */
  get size(): number {
    return this.#share.used + this.#leaving
  }

  /** Times that something was counted without a series of its own, and series removed for other owners. */
  get losses(): ShareLosses {
    return { refused: this.#refused, taken: this.#taken }
  }

  /** Whether a series of `owner` gets a place, which `add` then takes. */
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

  /** Its place is free again; the table removes it. */
  remove(series: S): void {
    if (series.leaving) this.#leaving--
    else this.#release(series)
  }

  /** A collection begins: refused owners may ask again. */
  begin(): void {
    for (const holder of this.#holders.values()) {
      holder.refused = noRank
      holder.pressed = 0
    }
  }

  /** Call for each exported series. True if it goes: it has lost its place, or did not change for too long. */
  ends(series: S, mostIdle: number): boolean {
    if (!series.leaving && ++series.idle <= mostIdle) return false
    this.remove(series)
    return true
  }

  /** Removes up to `count` series that did not change since their last export, and returns their number. */
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

  /** Frees a place of the owner that has most, or of a lower rank of the same owner. */
  #frees(owner: Owner, rank: number): boolean {
    const giver = this.#share.giver(owner, 1)
    const held = giver && this.#holders.get(giver)
    if (held === undefined) return false
    const least = leastOf(held.series)
    if (least === undefined || (isSameOwner(owner, giver) && least.rank >= rank)) return false
    const wasExported = least.idle > 0
    // Leaves as much for other owners.
    const pressed = this.#holders.get(owner)?.pressed ?? 0
    if (!wasExported && pressed >= this.#mostLeaving - this.#leaving) return false
    this.#release(least)
    this.#taken++
    if (wasExported) this.#letGo(least)
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

/** The least valuable series of an owner: in the lowest rank, the most idle of the oldest. */
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
