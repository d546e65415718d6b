/** How far a signal's items are. They are numbered as they come, and batches as they come to the queue. */
export interface Progress {
  /** Items that came so far. */
  readonly taken: number
  /** Of them, those before which none waits for its batch or for its compression. */
  readonly handedOn: number
  /** The number of the last batch that the queue was given. */
  readonly lastNumber: number
  /** Batches up to this one are secured. */
  readonly securedNumber: number
}

interface Milestone {
  /** All items that had come. */
  readonly items: number
  /** The last batch that may hold one of them; undefined while some are on their way to the queue. */
  number: number | undefined
  readonly promise: Promise<void>
  readonly reached: () => void
  readonly missed: (error: Error) => void
}

/** Who waits until all items that came before are secured. Nothing is done for an item, nor while nobody waits. */
export class Milestones {
  readonly #progress: Progress
  /** In the order of their items. */
  readonly #waiting: Milestone[] = []
  /** Why nothing will be secured any more. */
  #end: Error | undefined

  constructor(progress: Progress) {
    this.#progress = progress
  }

  /** Settled when all items that came so far are secured, or when that can be no longer. */
  next(): Promise<void> {
    const items = this.#progress.taken
    const last = this.#waiting.at(-1)
    if (last?.items === items) return last.promise
    const milestone = milestoneAt(items)
    this.#waiting.push(milestone)
    this.look()
    if (this.#end) this.#miss(this.#end)
    return milestone.promise
  }

  /** To be called after every change of what waits. */
  look(): void {
    if (this.#waiting.length === 0) return
    const { handedOn, lastNumber, securedNumber } = this.#progress
    let reached = 0
    for (const milestone of this.#waiting) {
      if (milestone.number === undefined) {
        if (milestone.items > handedOn) break
        milestone.number = lastNumber
      }
      if (milestone.number > securedNumber) continue
      milestone.reached()
      reached++
    }
    this.#waiting.splice(0, reached)
  }

  /** Nothing more is going to happen: who waits still hears that it was in vain. */
  end(error: Error): void {
    this.#end = error
    this.look()
    this.#miss(error)
  }

  #miss(error: Error): void {
    for (const milestone of this.#waiting.splice(0)) milestone.missed(error)
  }
}

function milestoneAt(items: number): Milestone {
  let reached = () => {}
  let missed: (error: Error) => void = () => {}
  const promise = new Promise<void>((resolve, reject) => {
    reached = resolve
    missed = reject
  })
  promise.catch(() => {}) // who has stopped waiting need not hear of it
  return { items, number: undefined, promise, reached, missed }
}
