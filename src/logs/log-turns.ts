import type { FollowedLog } from './followed-log.ts'

/** Owners whose last turn is remembered; of the others it is as if they never had one. */
const mostOwners = 10_000

/**
 * In which order logs are read: one turn of every owner, who waited longest first, and within an owner the log that
 * waited longest. So where less is read than is written, all get the same, whoever writes most and to however many files.
 */
export class LogTurns {
  readonly #served = new Map<string, number>()
  #turn = 0

  /** The logs of each owner, all of them in the order in which they are due. `awake`: those that were read go to its end. */
  owners(awake: ReadonlySet<FollowedLog>): readonly (readonly FollowedLog[])[] {
    const byOwner = new Map<string, FollowedLog[]>()
    for (const log of awake) {
      const own = byOwner.get(log.owner)
      if (own === undefined) byOwner.set(log.owner, [log])
      else own.push(log)
    }
    const lastOf = (owner: string) => this.#served.get(owner) ?? 0
    return [...byOwner].sort(([one], [other]) => lastOf(one) - lastOf(other)).map(([, logs]) => logs)
  }

  /** A chunk of it was read. */
  read(log: FollowedLog, awake: Set<FollowedLog>): void {
    if (awake.delete(log)) awake.add(log)
    this.#served.delete(log.owner)
    this.#served.set(log.owner, ++this.#turn)
    if (this.#served.size > mostOwners) this.#served.delete(this.#served.keys().next().value!)
  }
}
