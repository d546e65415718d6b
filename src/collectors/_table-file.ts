import { Scanner } from '../lib/scanner.ts'
import type { Tree } from './collector.ts'

/** A text file of the kernel's that a collector reads anew at each scrape. Faults in it name it. */
export class TableFile extends Scanner {
  readonly #tree: Tree
  readonly #path: string

  constructor(tree: Tree, path: string) {
    super(Buffer.alloc(0))
    this.#tree = tree
    this.#path = path
  }

  /** Reads the file and stands before its first line. Throws where it cannot be read. */
  read(): this {
    return this.reset(this.#tree.bytes(this.#path))
  }

  /** The next word as a number of things or of bytes, 0 or more. Throws where it is none. */
  count(): number {
    const value = this.number()
    if (value >= 0 && value < Number.POSITIVE_INFINITY) return value
    throw this.fault('a number is missing')
  }

  /** An error in words about what is in the file. */
  fault(what: string): Error {
    return new Error(`cannot read ${this.#tree.at(this.#path)}: ${what}`)
  }
}
