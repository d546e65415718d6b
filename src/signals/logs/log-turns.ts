import type { FollowedLog } from './followed-log.ts'

/** Maximum owners whose last turn is remembered; others count as new. */
const mostOwners = 10_000

/**
 * Order in which logs are read: one turn per owner, the longest waiting first, and within an owner the log that has
 * waited longest. If less is read than written, all owners get the same share, whatever they write and to how many
 * files.
 */
export class LogTurns {
  readonly #served = new Map<string, number>()
  #turn = 0

  /** Logs of each owner, all in the order of their turns. `awake`: logs that were read move to its end. */
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

  /** Notes that a chunk of a log was read. */
  read(log: FollowedLog, awake: Set<FollowedLog>): void {
    if (awake.delete(log)) awake.add(log)
    this.#served.delete(log.owner)
    this.#served.set(log.owner, ++this.#turn)
    if (this.#served.size > mostOwners) this.#served.delete(this.#served.keys().next().value!)
  }
}
