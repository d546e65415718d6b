/** What a form of log files says of a line. An instance is filled again for each line. */
export class ReadLine {
  /** Where the text stands: the line's own bytes, or others that are valid until the next line. */
  bytes: Buffer = none
  from = 0
  to = 0
  /** What the program wrote to. */
  stream: 0 | 1 | 2 = 0
  /** Microseconds since the Unix epoch; 0: unknown. */
  timeUs = 0
  /** The text goes on in the next line of the same stream. */
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

export const unknownStream = 0
export const stdoutStream = 1
export const stderrStream = 2

const none = Buffer.alloc(0)

/**
 * Reads a line of one form into `line`. False: it has another form, and `line` is the whole of it. Nothing is kept
 * from line to line.
 */
export type LineForm = (line: ReadLine, bytes: Buffer, from: number, to: number) => boolean

/** Lines as a program wrote them. */
export const plainForm: LineForm = (line, bytes, from, to) => {
  // A file that was truncated while its writer kept its place begins with a hole.
  let first = from
  while (first < to && bytes[first] === 0) first++
  // The byte order mark of UTF-8.
  if (bytes[first] === 0xef && bytes[first + 1] === 0xbb && bytes[first + 2] === 0xbf && first + 3 <= to)
    first += 3
  line.set(bytes, first, to)
  return true
}
