/** A reader whose text waits for the lines that go on with it. */
export interface TextHolder {
  /** Whose log it reads: see `logOwner`. */
  readonly owner: string
  /** Bytes that wait in it, about. */
  readonly heldBytes: number
  /** Hands on all that waits. */
  flush(all: true): void
}

/** After it was full, so much of the room is used. */
const relief = 3 / 4
/** Handing on is work: others have the thread after so long. */
const sliceMs = 5

/**
 * How much text waits in all readers, in a bounded room. Where that is full, or memory is short, who holds most hands
 * texts on as they are: what follows becomes a record of its own, and nothing is lost.
 */
export class WaitingText {
  /** Bytes that wait now. */
  bytes = 0
  /** Readers that had to hand on what waited, since the start. */
  cut = 0
  readonly #mostBytes: number
  readonly #holders = new Set<TextHolder>()

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes
  }

  /** What a reader holds has changed. Not to be called before it is done with its line. */
  changed(holder: TextHolder, before: number): void {
    const now = holder.heldBytes
    this.bytes += now - before
    if (now === 0) this.#holders.delete(holder)
    else if (before === 0) this.#holders.add(holder)
    if (now > before && this.bytes > this.#mostBytes) this.shed(this.bytes - this.#mostBytes * relief)
  }

  /** Has about `bytes` handed on, for a bounded time, and returns how many were. */
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

/** Those of one owner. */
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

  /** Takes out the one that holds most. */
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
