import { utf8Text } from '../../../foundation/lib/utf8-text.ts'
import type { Tree } from './collector.ts'

/** Readings before an unreadable file is tried again, unless it changed before. */
const patience = 16
/** Length of the longest one, an alias (IFALIASZ). */
const mostBytes = 256

/** A one-line file of sysfs. Some drivers reject some reads, which costs twenty times as much as a read. */
export class PropertyFile {
  readonly #sys: Tree
  readonly #path: string
  #isReadable = false
  #readingsToSkip = 0

  constructor(sys: Tree, path: string) {
    this.#sys = sys
    this.#path = path
  }

  tryAgain(): void {
    this.#readingsToSkip = 0
  }

  /** Number in the file; undefined if it is missing or the driver rejects the read. */
  number(): number | undefined {
    const bytes = this.#bytes()
    if (bytes === undefined) return undefined
    const value = integer(bytes)
    if (Number.isNaN(value)) throw new Error(`cannot read ${this.#sys.at(this.#path)}: no number`)
    return value
  }

  /** Text of the file; '' if it is missing or the driver rejects the read. */
  text(): string {
    const bytes = this.#bytes()
    return bytes === undefined ? '' : utf8Text(bytes, 0, bytes.length).trim()
  }

  #bytes(): Buffer | undefined {
    if (this.#readingsToSkip > 0) {
      this.#readingsToSkip--
      return undefined
    }
    // An existence check costs as much as a read.
    if (!this.#isReadable && !this.#find()) return undefined
    let bytes: Buffer
    try {
      bytes = this.#sys.bytes(this.#path)
    } catch {
      this.#find() // throws, unless it is missing or rejected
      return undefined
    }
    if (bytes.length <= mostBytes + 1) return bytes
    throw new Error(`cannot read ${this.#sys.at(this.#path)}: longer than ${mostBytes} bytes`)
  }

  #find(): boolean {
    this.#isReadable = this.#sys.find(this.#path) !== undefined
    this.#readingsToSkip = this.#isReadable ? 0 : patience
    return this.#isReadable
  }
}

/** A whole number, decimal or with `0x`, and the end of its line; NaN if invalid. */
function integer(bytes: Buffer): number {
  let end = bytes.length
  if (bytes[end - 1] === 0x0a) end--
  const isNegative = bytes[0] === 0x2d
  const start = isNegative ? 1 : 0
  if (end === start || end - start > 15) return Number.NaN
  if (bytes[0] === 0x30 && bytes[1] === 0x78) {
    const hex = bytes.toString('latin1', 2, end)
    return /^[0-9a-f]+$/i.test(hex) ? Number.parseInt(hex, 16) : Number.NaN
  }
  let value = 0
  for (let at = start; at < end; at++) {
    const digit = bytes[at]! - 0x30
    if (digit < 0 || digit > 9) return Number.NaN
    value = value * 10 + digit
  }
  return isNegative ? -value : value
}
