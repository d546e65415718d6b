import { Writer } from '../../../foundation/lib/protobuf.ts'

/** Maximum buffer that a table keeps for the next request. */
const keepBytes = 512 * 1024

/**
 * Encoded entries of one table of the dictionary, and the index of each by its identity. Entry 0 is the
 * zero value and has no identity.
 */
export class DictionaryTable<K extends string | number> {
  readonly out = new Writer(256)
  readonly #indices = new Map<K, number>()
  readonly #writeZero: (out: Writer) => void
  #markedLength = 0
  #markedSize = 0

  constructor(writeZero: (out: Writer) => void) {
    this.#writeZero = writeZero
    writeZero(this.out)
  }

  /** Number of entries without the zero value. */
  get size(): number {
    return this.#indices.size
  }

  /** Index of an entry; -1 if it is new. */
  find(identity: K): number {
    return this.#indices.get(identity) ?? -1
  }

  /** Assigns an index to the entry that was just written. */
  add(identity: K): number {
    const index = this.#indices.size + 1
    this.#indices.set(identity, index)
    return index
  }

  mark(): void {
    this.#markedLength = this.out.length
    this.#markedSize = this.#indices.size
  }

  undo(): void {
    this.out.truncate(this.#markedLength)
    if (this.#indices.size === this.#markedSize) return
    for (const [identity, index] of this.#indices)
      if (index > this.#markedSize) this.#indices.delete(identity)
  }

  clear(): void {
    this.#indices.clear()
    this.out.clear(keepBytes)
    this.#writeZero(this.out)
  }
}
