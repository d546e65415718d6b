/** Progress of a signal's items. Items are numbered on arrival, and batches when they enter the queue. */
export interface Progress {
  /** Items received so far. */
  readonly taken: number
  /** Number of items before the first one that waits for its batch or its compression. */
  readonly handedOn: number
  /** Number of the last batch in the queue. */
  readonly lastNumber: number
  /** Batches up to this number are secured. */
  readonly securedNumber: number
}

interface Milestone {
  /** Items received at that time. */
  readonly items: number
  /** Last batch that may contain one of them; undefined while some have not reached the queue. */
  number: number | undefined
  readonly promise: Promise<void>
  readonly reached: () => void
  readonly missed: (error: Error) => void
}

/** Callers that wait until all earlier items are secured. Costs nothing per item, and nothing without callers. */
export class Milestones {
  readonly #progress: Progress
  /** Waiting callers in the order of their items. */
  readonly #waiting: Milestone[] = []
  /** Error that ended the pipeline. */
  #end: Error | undefined

  constructor(progress: Progress) {
    this.#progress = progress
  }

  /** Settles when all items so far are secured, or when that is no longer possible. */
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

  /** Must be called after every change of the waiting items. */
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

  /** Rejects all waiting callers at the end. */
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
  promise.catch(() => {}) // the caller may have stopped waiting
  return { items, number: undefined, promise, reached, missed }
}
