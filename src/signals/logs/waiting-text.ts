/** A reader with text that waits for further lines. */
export interface TextHolder {
  /** Owner of its log: see `logOwner`. */
  readonly owner: string
  /** Approximate bytes waiting in it. */
  readonly heldBytes: number
  /** Passes on all waiting text. */
  flush(all: true): void
}

/** Share of the room in use after it was full. */
const relief = 3 / 4
/** Maximum time of passing on, in milliseconds, before other work can run. */
const sliceMs = 5

/**
 * Limits the text that waits in all readers. At the limit, or if memory is low, the reader with the most passes
 * its text on: further lines become a separate record, and nothing is lost.
 */
export class WaitingText {
  /** Bytes waiting now. */
  bytes = 0
  /** Number of times that a reader had to pass on its text early, since the start. */
  cut = 0
  readonly #mostBytes: number
  readonly #holders = new Set<TextHolder>()

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes
  }

  /** Reports a change of a reader's text. Must be called after the reader has finished its line. */
  changed(holder: TextHolder, before: number): void {
    const now = holder.heldBytes
    this.bytes += now - before
    if (now === 0) this.#holders.delete(holder)
    else if (before === 0) this.#holders.add(holder)
    if (now > before && this.bytes > this.#mostBytes) this.shed(this.bytes - this.#mostBytes * relief)
  }

  /** Makes readers pass on about `bytes`, for a limited time, and returns how many. */
  shed(bytes: number): number {
    const endMs = performance.now() + sliceMs
    const before = this.bytes
    const owners = this.#byOwner()
    while (before - this.bytes < bytes) {
      const holder = mostOf(owners)?.pop()
      if (holder === undefined) break
      this.cut++
      holder.flush(true)
      if (performance.now() > endMs) break
    }
    return before - this.bytes
  }

  #byOwner(): Map<string, Holders> {
    const owners = new Map<string, Holders>()
    for (const holder of this.#holders) {
      const own = owners.get(holder.owner)
      if (own === undefined) owners.set(holder.owner, new Holders(holder))
      else own.add(holder)
    }
    return owners
  }
}

/** Readers of one owner. */
class Holders {
  bytes = 0
  readonly #holders: TextHolder[] = []
  #isSorted = false

  constructor(first: TextHolder) {
    this.add(first)
  }

  add(holder: TextHolder): void {
    this.bytes += holder.heldBytes
    this.#holders.push(holder)
  }

  /** Removes and returns the reader with the most text. */
  pop(): TextHolder | undefined {
    if (!this.#isSorted) this.#holders.sort((one, other) => one.heldBytes - other.heldBytes)
    this.#isSorted = true
    const holder = this.#holders.pop()
    this.bytes -= holder?.heldBytes ?? 0
    return holder
  }
}

function mostOf(owners: ReadonlyMap<string, Holders>): Holders | undefined {
  let most: Holders | undefined
  for (const holders of owners.values()) if (most === undefined || holders.bytes > most.bytes) most = holders
  return most
}
