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
  /** Logs of the current round that may have data, by owner. */
  #due = new Map<string, FollowedLog[]>()

  /** Whether no log of the round has more data. */
  get isDone(): boolean {
    return this.#due.size === 0
  }

  /** Begins a round, in which each log is read until it has no more data. `awake`: logs that were read move to its end. */
  begin(awake: ReadonlySet<FollowedLog>): void {
    this.#due = new Map()
    for (const log of awake) {
      const own = this.#due.get(log.owner)
      if (own === undefined) this.#due.set(log.owner, [log])
      else own.push(log)
    }
  }

  /** Logs of each owner, all in the order of their turns. The caller removes those without more data. */
  owners(): readonly FollowedLog[][] {
    const lastOf = (owner: string) => this.#served.get(owner) ?? 0
    return [...this.#due].sort(([one], [other]) => lastOf(one) - lastOf(other)).map(([, logs]) => logs)
  }

  /** Ends a turn of all owners. */
  end(): void {
    for (const [owner, logs] of this.#due) if (logs.length === 0) this.#due.delete(owner)
  }

  /** Notes that a chunk of a log was read. */
  read(log: FollowedLog, awake: Set<FollowedLog>): void {
    if (awake.delete(log)) awake.add(log)
    this.#served.delete(log.owner)
    this.#served.set(log.owner, ++this.#turn)
    if (this.#served.size > mostOwners) this.#served.delete(this.#served.keys().next().value!)
  }
}
