import { FairShare, type ShareLosses } from '../../foundation/lib/fair-share.ts'
import type { FollowedLog } from './followed-log.ts'
import { sharing } from './log-owner.ts'

/** Maximum pauses of 20 ms in one scan, during which other logs wait: of all owners, and of one. */
const pauses = { all: 24, owner: 6 }

/** Places for followed logs: a limited number, shared by the owners of the logs. */
export class LogPlaces {
  readonly #share: FairShare
  /** Logs by owner, in order of arrival. */
  readonly #logs = new Map<string, Set<FollowedLog>>()
  #taken = 0
  #refused = 0
  #leftOut = 0
  /** Pauses in the current scan. */
  readonly #pauses = new FairShare(pauses.all)

  constructor(places: number) {
    this.#share = new FairShare(places)
  }

  /** Logs without a place, and logs whose place went to an owner with fewer, since the start. */
  get losses(): ShareLosses {
    return { refused: this.#refused, taken: this.#taken }
  }

  /** Counts logs left out by a scan, without those counted in the scan before. */
  leftOut(count: number): void {
    this.#refused += Math.max(0, count - this.#leftOut)
    this.#leftOut = count
    this.#pauses.clear()
  }

  /** Whether a scan may wait a little longer for an owner's directory to settle. */
  mayPause(owner: string): boolean {
    const whose = sharing(owner)
    if (!this.#pauses.hasRoom(1) || this.#pauses.usedBy(whose) >= pauses.owner) return false
    this.#pauses.add(whose, 1)
    return true
  }

  hasPlace(owner: string): boolean {
    return this.#share.hasRoom(1) || this.#giver(owner) !== undefined
  }

  /** Takes a place. False if there is none. `drop` is called with the log that lost its place. */
  take(log: FollowedLog, drop: (log: FollowedLog) => void): boolean {
    if (!this.#share.hasRoom(1)) {
      const giver = this.#giver(log.owner)
      if (giver === undefined) return false
      this.#taken++
      drop(giver)
    }
    const own = this.#logs.get(log.owner) ?? new Set()
    this.#logs.set(log.owner, own.add(log))
    this.#share.add(sharing(log.owner), 1)
    return true
  }

  free(log: FollowedLog): void {
    const own = this.#logs.get(log.owner)
    if (!own?.delete(log)) return
    this.#share.remove(sharing(log.owner), 1)
    if (own.size === 0) this.#logs.delete(log.owner)
  }

  /** Youngest log of the owner with the most, if that is more than `owner` would have. */
  #giver(owner: string): FollowedLog | undefined {
    const giver = this.#share.giver(sharing(owner), 1)?.group
    if (giver === undefined || giver === owner) return undefined
    let youngest: FollowedLog | undefined
    for (const log of this.#logs.get(giver)!) youngest = log
    return youngest
  }
}
