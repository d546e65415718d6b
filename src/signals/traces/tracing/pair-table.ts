/**
 * One side of a request, with the keys of the tables: the TCP sequence number of its first byte and both ports of its
 * connection. An entry is in one table and one list at most, which own the links.
 */
export abstract class Pair<T> {
  sequence = 0
  /** `portsOf` its connection. */
  ports = 0
  chain: T | undefined = undefined
  older: T | undefined = undefined
  newer: T | undefined = undefined
}

/** Both ports of a connection in one number. */
export function portsOf(clientPort: number, serverPort: number): number {
  return clientPort * 65536 + serverPort
}

/** Random per process, so that a peer that chooses ports and sequence numbers cannot choose the chain. */
const seed = Math.floor(Math.random() * 2 ** 32)

/**
 * Finds entries by their pair of numbers, which must not change while they are in the table. Duplicates are allowed.
 * Entries whose sequence number is unknown (0) are not stored.
 */
export class PairTable<T extends Pair<T>> {
  readonly #chains: (T | undefined)[]

  /** `chains`: a power of two, about the number of entries. */
  constructor(chains: number) {
    this.#chains = new Array<T | undefined>(chains).fill(undefined)
  }

  /** The newest entry of a pair. */
  find(sequence: number, ports: number): T | undefined {
    return sameFrom(this.#chains[this.#place(sequence, ports)], sequence, ports)
  }

  /** The next older entry of the same pair. */
  next(entry: T): T | undefined {
    return sameFrom(entry.chain, entry.sequence, entry.ports)
  }

  add(entry: T): void {
    if (entry.sequence === 0) return
    const at = this.#place(entry.sequence, entry.ports)
    entry.chain = this.#chains[at]
    this.#chains[at] = entry
  }

  delete(entry: T): void {
    if (entry.sequence === 0) return
    const at = this.#place(entry.sequence, entry.ports)
    let link = this.#chains[at]
    if (link === entry) this.#chains[at] = entry.chain
    else {
      while (link !== undefined && link.chain !== entry) link = link.chain
      if (link !== undefined) link.chain = entry.chain
    }
    entry.chain = undefined
  }

  #place(sequence: number, ports: number): number {
    const hash = Math.imul(sequence ^ Math.imul(ports ^ seed, 0x9e3779b1), 0x85ebca6b)
    return (hash ^ (hash >>> 15)) & (this.#chains.length - 1)
  }
}

function sameFrom<T extends Pair<T>>(first: T | undefined, sequence: number, ports: number): T | undefined {
  let entry = first
  while (entry !== undefined && (entry.sequence !== sequence || entry.ports !== ports)) entry = entry.chain
  return entry
}

/** Entries from the oldest to the newest. */
export class AgeList<T extends Pair<T>> {
  length = 0
  first: T | undefined = undefined
  #last: T | undefined = undefined

  add(entry: T): void {
    entry.older = this.#last
    entry.newer = undefined
    if (this.#last === undefined) this.first = entry
    else this.#last.newer = entry
    this.#last = entry
    this.length++
  }

  remove(entry: T): void {
    if (entry.older === undefined) this.first = entry.newer
    else entry.older.newer = entry.newer
    if (entry.newer === undefined) this.#last = entry.older
    else entry.newer.older = entry.older
    entry.older = undefined
    entry.newer = undefined
    this.length--
  }
}
