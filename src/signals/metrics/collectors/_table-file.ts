import { Scanner } from '../../../foundation/lib/scanner.ts'
import type { Tree } from './collector.ts'

/** A text file of the kernel, read at each scrape. Errors have its path. */
export class TableFile extends Scanner {
  readonly #tree: Tree
  readonly #path: string

  constructor(tree: Tree, path: string) {
    super(Buffer.alloc(0))
    this.#tree = tree
    this.#path = path
  }

  /** Reads the file and moves before its first line. Throws if it cannot be read. */
  read(): this {
    return this.reset(this.#tree.bytes(this.#path))
  }

  /** Next word as a number, 0 or more. Throws if it is not a number. */
  count(): number {
    const value = this.number()
    if (value >= 0 && value < Number.POSITIVE_INFINITY) return value
    throw this.fault('a number is missing')
  }

  /** Error about the content of the file. */
  fault(what: string): Error {
    return new Error(`cannot read ${this.#tree.at(this.#path)}: ${what}`)
  }
}
