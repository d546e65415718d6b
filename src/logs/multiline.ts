/** Which lines belong to one record. */
export interface MultilineOptions {
  /** What marks a line; its first `searched` characters are looked at. */
  readonly pattern: { test(text: string): boolean }
  /** Lines that do not match are the marked ones. */
  readonly negate: boolean
  /** Marked lines belong to the record before them, or to the one behind. */
  readonly match: 'after' | 'before'
  /** Most lines of one record. */
  readonly maxLines: number
  /** How long a record waits for its next line. */
  readonly timeoutMs: number
}

/** UTF-16 units. A pattern of any cost is done with so many in well under a millisecond. */
const searched = 4096
/** Of memory for a line beside its text. */
const lineBytes = 32

/** Takes the text of a record and the time of its first line (µs since the Unix epoch; 0: unknown). */
export type TakeRecord = (text: string, timeUs: number) => void

/**
 * Joins lines of one stream to records. A record that has its most lines or bytes is handed on and goes on as another, so
 * that no line is lost.
 */
export class Multiline {
  /** Where the first line begins that waits here; -1: none does. */
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

  /** Of memory, at most: a text may have two bytes for each of its file. */
  get heldBytes(): number {
    return 2 * this.#bytes + lineBytes * this.#lines.length
  }

  /** `bytes`: what the line has in its file; `nowMs`: the reader's clock. */
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

  /** Hands on what has waited for long enough. */
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

/** Also when the clock was set back: nobody waits for it to come to where it was. */
export function hasWaited(sinceMs: number, nowMs: number, timeoutMs: number): boolean {
  return nowMs < sinceMs || nowMs - sinceMs >= timeoutMs
}
