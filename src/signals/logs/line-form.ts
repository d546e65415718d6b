/** A parsed line of a log file. The instance is reused for each line. */
export class ReadLine {
  /** Buffer of the text: the line's own, or another that is valid until the next line. */
  bytes: Buffer = none
  from = 0
  to = 0
  /** Stream: 1 for stdout, 2 for stderr, 0 for unknown. */
  stream: 0 | 1 | 2 = 0
  /** Microseconds since the Unix epoch; 0: unknown. */
  timeUs = 0
  /** Whether the text continues in the next line of the same stream. */
  isPart = false

  set(bytes: Buffer, from: number, to: number): void {
    this.bytes = bytes
    this.from = from
    this.to = to
    this.stream = unknownStream
    this.timeUs = 0
    this.isPart = false
  }
}

const unknownStream = 0
export const stdoutStream = 1
export const stderrStream = 2

const none = Buffer.alloc(0)

/**
 * Parses a line of one form into `line`. False if it has another form; `line` is then the whole line. No state
 * is kept between lines.
 */
export type LineForm = (line: ReadLine, bytes: Buffer, from: number, to: number) => boolean

/** Plain lines, as the program wrote them. */
export const plainForm: LineForm = (line, bytes, from, to) => {
  // A file truncated while its writer kept its offset starts with a hole.
  let first = from
  while (first < to && bytes[first] === 0) first++
  // The byte order mark of UTF-8.
  if (bytes[first] === 0xef && bytes[first + 1] === 0xbb && bytes[first + 2] === 0xbf && first + 3 <= to)
    first += 3
  line.set(bytes, first, to)
  return true
}
