/** Rules for records of several lines. */
export interface MultilineOptions {
  /** Pattern of marked lines, applied to the first `searched` characters. */
  readonly pattern: { test(text: string): boolean }
  /** Whether lines that do not match are the marked ones. */
  readonly negate: boolean
  /** Whether marked lines belong to the record before (`after`) or to the next one (`before`). */
  readonly match: 'after' | 'before'
  /** Maximum lines of one record. */
  readonly maxLines: number
  /** Maximum wait of a record for its next line, in milliseconds. */
  readonly timeoutMs: number
}

/** UTF-16 units. Any pattern takes well under a millisecond for so many. */
const searched = 4096
/** Memory of a line without its text, in bytes. */
const lineBytes = 32

/** Receives the text of a record and the time of its first line (µs since the Unix epoch; 0: unknown). */
export type TakeRecord = (text: string, timeUs: number) => void

/**
 * Joins lines of one stream to records. A record at its maximum of lines or bytes is passed on and continues as
 * another, so that no line is lost.
 */
export class Multiline {
  /** Offset of the first waiting line; -1 for none. */
  begin = -1
  readonly #options: MultilineOptions
  readonly #mostBytes: number
  readonly #take: TakeRecord
  readonly #lines: string[] = []
  #bytes = 0
  #timeUs = 0
  #changedMs = 0

  constructor(options: MultilineOptions, mostBytes: number, take: TakeRecord) {
    this.#options = options
    this.#mostBytes = mostBytes
    this.#take = take
  }

  /** Maximum memory in use: a text may have two bytes for each byte in the file. */
  get heldBytes(): number {
    return 2 * this.#bytes + lineBytes * this.#lines.length
  }

  /** Adds a line. `bytes`: its length in the file; `nowMs`: the reader's clock. */
  add(line: string, bytes: number, timeUs: number, begin: number, nowMs: number): void {
    const { pattern, negate, match, maxLines } = this.#options
    const looked = line.length > searched ? line.slice(0, searched) : line
    const isMarked = pattern.test(looked) !== negate
    if (match === 'after' && !isMarked) this.flush()
    // One more for the line feed between them.
    if (this.#lines.length >= maxLines || this.#bytes + bytes + 1 > this.#mostBytes) this.flush()
    if (this.#lines.length === 0) {
      this.begin = begin
      this.#timeUs = timeUs
    }
    this.#lines.push(line)
    this.#bytes += bytes + 1
    this.#changedMs = nowMs
    if (match === 'before' && !isMarked) this.flush()
  }

  /** Passes on a record that has waited long enough. */
  expire(nowMs: number): void {
    if (hasWaited(this.#changedMs, nowMs, this.#options.timeoutMs)) this.flush()
  }

  flush(): void {
    if (this.#lines.length === 0) return
    const text = this.#lines.length === 1 ? this.#lines[0]! : this.#lines.join('\n')
    this.#lines.length = 0
    this.#bytes = 0
    this.begin = -1
    this.#take(text, this.#timeUs)
  }
}

/** Whether the timeout has passed, or the clock was set back. */
export function hasWaited(sinceMs: number, nowMs: number, timeoutMs: number): boolean {
  return nowMs < sinceMs || nowMs - sinceMs >= timeoutMs
}
