import { Scanner } from '../../../foundation/lib/scanner.ts'
import type { Family, Readings } from './collector.ts'

/** Maximum cached lines of a file: the longest files have some two hundred, which change only with the kernel. */
const mostLines = 512

/** A file of /proc with a name and a number on each line. */
export class NumberLines {
  readonly #path: string
  readonly #familyOf: (name: string) => Family | undefined
  readonly #scan = new Scanner(Buffer.alloc(0))
  readonly #lines: { readonly prefix: string; readonly family: Family | undefined }[] = []

  /** `path` is for messages; `familyOf` returns undefined for names that are not shown. */
  constructor(path: string, familyOf: (name: string) => Family | undefined) {
    this.#path = path
    this.#familyOf = familyOf
  }

  /** Shows all lines; a name without a number is skipped. Throws if the file has other content, or none. */
  show(bytes: Buffer, readings: Readings): void {
    const scan = this.#scan.reset(bytes)
    let found = false
    for (let line = 0; scan.line(); line++) {
      // Lines have the same names at each scrape, and comparing a name is cheaper than creating it.
      const before = this.#lines[line]
      const isKnown = before !== undefined && scan.pass(before.prefix)
      found ||= isKnown
      if (isKnown && before.family === undefined) continue
      const name = isKnown ? '' : scan.text()
      if (scan.done) continue
      const value = scan.number()
      if (Number.isNaN(value)) throw this.#fault(`line ${line + 1} has no number`)
      const family = isKnown ? before.family : this.#familyOf(name)
      if (!isKnown && line < mostLines) this.#lines[line] = { prefix: `${name} `, family }
      if (family !== undefined) readings.set(family, value)
      found = true
    }
    if (!found) throw this.#fault('no numbers found')
  }

  #fault(what: string): Error {
    return new Error(`cannot read ${this.#path}: ${what}`)
  }
}
