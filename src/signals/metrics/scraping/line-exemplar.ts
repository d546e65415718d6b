import type { LineExemplar } from './exposition.ts'
import { KeyScanner, unescaped } from './key-scanner.ts'
import { NumberBytes } from './number-bytes.ts'

/** Memory of an exemplar without its strings, in bytes. */
export const exemplarBytes = 400

const space = 32
const newline = 10

/** Whether ` # {` is at `at`. */
export function exemplarBegins(bytes: Buffer, at: number, to: number): boolean {
  return (
    at + 4 <= to &&
    bytes[at] === space &&
    bytes[at + 1] === 35 &&
    bytes[at + 2] === space &&
    bytes[at + 3] === 123
  )
}

/** Reads ` # {labels} value timestamp`, up to the end of its line (OpenMetrics 1.0, section "Exemplars"). */
export class ExemplarBytes {
  /** End of the last exemplar, which is the end of its line. */
  end = -1
  /** Reason why the last exemplar was invalid. */
  reason = ''
  readonly #labels = new KeyScanner()
  readonly #numbers = new NumberBytes()

  read(bytes: Buffer, from: number, to: number): LineExemplar | undefined {
    if (!this.#labels.scanExemplar(bytes, from + 4, to)) return this.#none(this.#labels.reason)
    const numbers = this.#numbers
    let at = this.#labels.end
    if (at >= to || bytes[at] !== space) return this.#none('no value after its labels')
    const value = numbers.read(bytes, at + 1, to)
    at = numbers.end
    let timeUs = 0
    if (at >= 0 && at < to && bytes[at] === space) {
      timeUs = numbers.readSeconds(bytes, at + 1, to)
      at = numbers.end
    }
    if (at < 0 || at >= to || bytes[at] !== newline)
      return this.#none('its value or timestamp is not a number')
    this.end = at
    const { marks } = this.#labels
    const labels = new Map<string, string>()
    for (let i = 0; i < 4 * this.#labels.labels; i += 4)
      labels.set(unescaped(bytes, marks[i]!, marks[i + 1]!), unescaped(bytes, marks[i + 2]!, marks[i + 3]!))
    return { labels, value, timeUs }
  }

  #none(reason: string): undefined {
    this.reason = `invalid exemplar: ${reason}`
    this.end = -1
    return undefined
  }
}
