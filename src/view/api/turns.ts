// Answers take turns, so that a client with many requests does not block the loop.

/** Waiting requests of one client, and of all: each takes some kilobytes. */
const mostOfOne = 1_024
const most = 8_192
/** Longest wait of answers for connections to be accepted: the runtime accepts one per turn of the loop. */
const mostHeldMs = 50

/**
 * Each turn of the event loop makes one answer, alternating between the waiting clients: connections are accepted and
 * probes answered in between, however many requests one client sends.
 */
export class Turns {
  /** By client, in the order of their turns. */
  readonly #waiting = new Map<string, (() => void)[]>()
  #size = 0
  /** An answer was made in this turn. */
  #taken = false
  /** A connection was accepted in this turn: the next in the queue may be a probe. */
  #accepted = false
  /** Since when answers are held for that, in milliseconds of `performance.now()`; 0: not held. */
  #heldMs = 0

  /** Makes an answer now, or in its turn; undefined if too many wait. `client` is only called if there is a queue. */
  make<T>(client: () => string, work: () => T | Promise<T>): T | Promise<T> | undefined {
    if (!this.#taken) {
      this.#take()
      return work()
    }
    const name = client()
    const line = this.#waiting.get(name) ?? []
    if (line.length >= mostOfOne || this.#size >= most) return undefined
    this.#size++
    this.#waiting.set(name, line)
    return new Promise<T>((resolve, reject) => {
      line.push(() => {
        try {
          resolve(work())
        } catch (error) {
          reject(error as Error)
        }
      })
    })
  }

  /** A connection was accepted: those queued behind it go first, for a limited time. */
  accepted(): void {
    this.#accepted = true
    if (!this.#taken) this.#take()
  }

  #take(): void {
    this.#taken = true
    setImmediate(() => this.#next())
  }

  #next(): void {
    if (this.#accepted) {
      this.#accepted = false
      if (this.#heldMs === 0) this.#heldMs = performance.now()
      if (performance.now() - this.#heldMs < mostHeldMs) {
        this.#take()
        return
      }
    }
    this.#heldMs = 0
    const [first] = this.#waiting
    if (first === undefined) {
      this.#taken = false
      return
    }
    this.#take()
    const [client, line] = first
    const run = line.shift()
    this.#size--
    this.#waiting.delete(client)
    if (line.length > 0) this.#waiting.set(client, line)
    run?.()
  }
}
