import { isUtf8 } from 'node:buffer'
import { cutEnd } from '../../../foundation/lib/cut-text.ts'
import { utf8Text } from '../../../foundation/lib/utf8-text.ts'
import type { FamilyType, LineExemplar, LineFault, Page, PageFormat } from './exposition.ts'
import { KeyScanner, plainNameEnd, quotedNameEnd, skipBlanks, unescaped } from './key-scanner.ts'
import { ExemplarBytes, exemplarBegins, exemplarBytes } from './line-exemplar.ts'
import { NumberBytes } from './number-bytes.ts'
import { PageFamilies } from './page-families.ts'

export interface ReadOptions {
  /** Whether unreadable lines are skipped and counted. */
  readonly lenient: boolean
  /** Maximum samples; a page with more is rejected. 0 for no limit. */
  readonly maxSamples: number
  /** Maximum length of a comment, and of the name and labels of a sample. 0 for no limit. */
  readonly maxLineBytes: number
}

const newline = 10
const carriageReturn = 13
const space = 32
const tab = 9
const quote = 34
const hash = 35
const close = 125

const exemplars = new ExemplarBytes()
/** Memory of a sample in the arrays. */
const sampleBytes = 24

const mostFaults = 8
const excerptCharacters = 120

const textTypes: ReadonlyMap<string, FamilyType> = new Map([
  ['counter', 'counter'],
  ['gauge', 'gauge'],
  ['histogram', 'histogram'],
  ['summary', 'summary'],
  ['untyped', 'unknown'],
])
const openMetricsTypes: ReadonlyMap<string, FamilyType> = new Map(
  (
    ['counter', 'gauge', 'histogram', 'gaugehistogram', 'summary', 'info', 'stateset', 'unknown'] as const
  ).map(type => [type, type]),
)

/**
 * Parses a whole page of metrics: Prometheus text 0.0.4 and 1.0.0, or OpenMetrics 1.0.0 and 0.0.1. Accepts and rejects
 * what the readers of Prometheus 2.55 and 3 do, except that blanks before a name and negative timestamps are accepted
 * in the text format: its specification allows them, and Prometheus rejects them. Never throws.
 */
export function readPage(body: Buffer, format: PageFormat, options: ReadOptions): Page | LineFault {
  const reader = new PageReader(body, format, options)
  for (;;) {
    const page = reader.read(Number.POSITIVE_INFINITY)
    if (page !== undefined) return page
  }
}

/** `readPage` in slices, for pages that take too long for one turn of the event loop. */
export class PageReader {
  readonly #body: Buffer
  readonly #format: PageFormat
  readonly #strict: boolean
  readonly #lenient: boolean
  readonly #maxSamples: number
  readonly #maxLineBytes: number
  /** Whether the whole body is UTF-8. */
  readonly #valid: boolean
  readonly #key = new KeyScanner()
  readonly #numbers = new NumberBytes()
  readonly #families: PageFamilies
  readonly #exemplars = new Map<number, LineExemplar>()
  readonly #faults: LineFault[] = []
  #badLines = 0
  #samples = 0
  #keyFrom: Uint32Array
  #keyTo: Uint32Array
  #values: Float64Array
  #timesUs: Float64Array
  #at = 0
  /** Start of the current line. */
  #start = 0
  #reason = ''
  #ended = false
  /** Whether there are more samples than allowed. */
  #full = false
  /** Lines are only counted up to here, when a line number is reported. */
  #counted = 0
  #lines = 1

  constructor(body: Buffer, format: PageFormat, { lenient, maxSamples, maxLineBytes }: ReadOptions) {
    this.#body = body
    this.#format = format
    this.#strict = format === 'openmetrics'
    this.#lenient = lenient
    this.#maxSamples = maxSamples > 0 ? maxSamples : Number.POSITIVE_INFINITY
    this.#maxLineBytes = maxLineBytes > 0 ? maxLineBytes : Number.POSITIVE_INFINITY
    this.#valid = isUtf8(body)
    this.#families = new PageFamilies(body, format)
    const room = 16 + Math.trunc(body.length / 64)
    this.#keyFrom = new Uint32Array(room)
    this.#keyTo = new Uint32Array(room)
    this.#values = new Float64Array(room)
    this.#timesUs = new Float64Array(room)
  }

  /** Approximate memory, in bytes, without the body. */
  get bytes(): number {
    return this.#values.length * sampleBytes + this.#exemplars.size * exemplarBytes + this.#families.bytes
  }

  /** Reads about `bytes` further bytes, up to the end of a line. Undefined if there are more. */
  read(bytes: number): Page | LineFault | undefined {
    const { length } = this.#body
    const until = Math.min(length, this.#at + bytes)
    while (this.#at < until && !this.#ended) {
      this.#start = this.#at
      if (this.#strict ? this.#openMetricsLine() : this.#textLine()) continue
      const fault = this.#refused()
      if (fault !== undefined) return fault
    }
    if (!this.#ended && this.#at < length) return undefined
    if (!this.#strict || this.#ended) return this.#page()
    this.#start = length
    return this.#lineFault('the page does not end with "# EOF": it is truncated, or not OpenMetrics')
  }

  /** Skips the line, if that is allowed. */
  #refused(): LineFault | undefined {
    const end = this.#body.indexOf(newline, this.#start)
    if (end > 0 && this.#body[end - 1] === carriageReturn)
      this.#reason += '; the line ends with a carriage return, and only line feeds are allowed'
    if (!this.#lenient || this.#full) return this.#lineFault(this.#reason)
    this.#badLines++
    if (this.#faults.length < mostFaults) this.#faults.push(this.#lineFault(this.#reason))
    this.#at = end < 0 ? this.#body.length : end + 1
    return undefined
  }

  #lineFault(reason: string): LineFault {
    const body = this.#body
    for (let at = this.#counted; ; at++) {
      at = body.indexOf(newline, at)
      if (at < 0 || at >= this.#start) break
      this.#lines++
    }
    this.#counted = this.#start
    const end = body.indexOf(newline, this.#start)
    const most = this.#start + 4 * excerptCharacters
    const line = utf8Text(body, this.#start, Math.min(end < 0 ? body.length : end, most))
    return { line: this.#lines, reason, excerpt: printable(line) }
  }

  #page(): Page {
    const samples = this.#samples
    return {
      body: this.#body,
      format: this.#format,
      families: this.#families.all(samples),
      samples,
      keyFrom: this.#keyFrom.subarray(0, samples),
      keyTo: this.#keyTo.subarray(0, samples),
      values: this.#values.subarray(0, samples),
      timesUs: this.#timesUs.subarray(0, samples),
      exemplars: this.#exemplars,
      badLines: this.#badLines,
      faults: this.#faults,
    }
  }

  /** Each of these methods moves to the next line, or sets a reason and returns false. */
  #textLine(): boolean {
    const body = this.#body
    const { length } = body
    const at = skipBlanks(body, this.#at, length)
    const byte = at < length ? body[at] : newline
    if (byte === newline) return this.#next(at)
    if (byte === hash) return this.#comment(at)
    // Prometheus' reader takes a NUL at the start of a line for the end of the page.
    if (byte === 0) return this.#end()
    if (!this.#keyAt(at)) return false
    const keyTo = this.#key.end
    const numbers = this.#numbers
    const value = numbers.read(body, skipBlanks(body, keyTo, length), length)
    let end = numbers.end
    if (end < 0 || !this.#isTextBreak(end)) return this.#noValue()
    let timeUs = Number.NaN
    end = skipBlanks(body, end, length)
    if (end < length && body[end] !== newline) {
      timeUs = numbers.readMilliseconds(body, end, length)
      if (numbers.end < 0 || !this.#isTextBreak(numbers.end)) return this.#noTimestamp()
      end = skipBlanks(body, numbers.end, length)
      if (end < length && body[end] !== newline) return this.#fault('text after the timestamp')
    }
    return this.#sample(at, keyTo, value, timeUs) && this.#next(end)
  }

  #openMetricsLine(): boolean {
    const body = this.#body
    const { length } = body
    const at = this.#at
    if (body[at] === hash) return this.#metadata()
    if (body[at] === newline) return this.#fault('empty line, which OpenMetrics does not allow')
    if (!this.#keyAt(at)) return false
    const keyTo = this.#key.end
    if (keyTo >= length || body[keyTo] !== space) return this.#noValue()
    const numbers = this.#numbers
    const value = numbers.read(body, keyTo + 1, length)
    let end = numbers.end
    if (end < 0 || end >= length || (body[end] !== space && body[end] !== newline)) return this.#noValue()
    let timeUs = Number.NaN
    if (body[end] === space && !exemplarBegins(body, end, length)) {
      timeUs = numbers.readSeconds(body, end + 1, length)
      end = numbers.end
      if (end < 0 || end >= length) return this.#noTimestamp()
    }
    if (exemplarBegins(body, end, length)) {
      const exemplar = exemplars.read(body, end, length)
      if (exemplar === undefined) return this.#fault(exemplars.reason)
      end = exemplars.end
      this.#exemplars.set(this.#samples, exemplar)
    }
    if (body[end] !== newline) return this.#fault('text after the value or timestamp')
    if (this.#sample(at, keyTo, value, timeUs)) return this.#next(end)
    this.#exemplars.delete(this.#samples)
    return false
  }

  /** Reads at most the maximum length of a line. */
  #keyAt(at: number): boolean {
    const { length } = this.#body
    const most = this.#start + this.#maxLineBytes
    const isRead = this.#key.scan(this.#body, at, Math.min(length, most + 1), this.#strict, this.#valid)
    if (isRead && this.#key.end <= most) return true
    if (isRead || (length > most && !this.#endsBy(most))) return this.#tooLong()
    return this.#fault(this.#key.reason)
  }

  /** Whether the line has no bytes after `most`. */
  #endsBy(most: number): boolean {
    const end = this.#body.indexOf(newline, this.#start)
    return end >= 0 && end <= most
  }

  #sample(keyFrom: number, keyTo: number, value: number, timeUs: number): boolean {
    const index = this.#samples
    this.#full = index >= this.#maxSamples
    if (this.#full) return this.#fault(`the page has more than ${this.#maxSamples} samples (sample_limit)`)
    if (index === this.#values.length) this.#grow()
    this.#keyFrom[index] = keyFrom
    this.#keyTo[index] = keyTo
    this.#values[index] = value
    this.#timesUs[index] = timeUs
    this.#families.sample(index, this.#key.nameFrom, this.#key.nameTo)
    this.#samples = index + 1
    return true
  }

  #grow(): void {
    const room = 2 * this.#values.length
    const larger = <T extends Uint32Array | Float64Array>(from: T, to: T): T => {
      to.set(from)
      return to
    }
    this.#keyFrom = larger(this.#keyFrom, new Uint32Array(room))
    this.#keyTo = larger(this.#keyTo, new Uint32Array(room))
    this.#values = larger(this.#values, new Float64Array(room))
    this.#timesUs = larger(this.#timesUs, new Float64Array(room))
  }

  /** Reads `# HELP name text`, `# TYPE name type`, or any other comment, from the `#` on. */
  #comment(from: number): boolean {
    const body = this.#body
    const found = body.indexOf(newline, from)
    const end = found < 0 ? body.length : found
    if (end - this.#start > this.#maxLineBytes) return this.#tooLong()
    let at = skipBlanks(body, from + 1, end)
    // A NUL ends the page as at the start of a line; after blanks, only if it is the first byte.
    const nulUntil = at === from + 1 ? end : Math.min(at + 1, end)
    for (let i = at; i < nulUntil; i++) if (body[i] === 0) return this.#end()
    const isHelp = at > from + 1 && begins(body, at, end, 'HELP')
    if (!isHelp && !(at > from + 1 && begins(body, at, end, 'TYPE'))) return this.#next(end)
    const nameFrom = skipBlanks(body, at + 4, end)
    // Without a blank after the keyword it is an ordinary comment.
    if (nameFrom === at + 4) return this.#next(end)
    at = this.#nameEnd(nameFrom)
    if (at < 0) return this.#fault(`no metric name after ${isHelp ? 'HELP' : 'TYPE'}`)
    // A quoted name may contain a line feed.
    const next = at > end ? body.indexOf(newline, at) : end
    const lineEnd = next < 0 ? body.length : next
    if (lineEnd - this.#start > this.#maxLineBytes) return this.#tooLong()
    if (body[at] === 0) return this.#fault('NUL after the metric name')
    // Prometheus' reader accepts any byte in place of this blank.
    const textFrom = skipBlanks(body, at, lineEnd) === lineEnd ? lineEnd : at + 1
    return this.#declare(isHelp ? 'HELP' : 'TYPE', nameFrom, at, textFrom, lineEnd)
  }

  /** Reads `# HELP`, `# TYPE`, `# UNIT` or `# EOF`; there are no other comments. */
  #metadata(): boolean {
    const body = this.#body
    const { length } = body
    const from = this.#at
    if (begins(body, from, length, '# EOF')) {
      const end = from + 5
      if (end < length - 1 || (end < length && body[end] !== newline))
        return this.#fault('text after "# EOF"')
      return this.#end()
    }
    const keyword = (['HELP', 'TYPE', 'UNIT'] as const).find(word => begins(body, from, length, `# ${word} `))
    if (keyword === undefined)
      return this.#fault('the comment is not "# HELP", "# TYPE", "# UNIT" or "# EOF"')
    const nameFrom = from + 7
    const at = this.#nameEnd(nameFrom)
    if (at < 0) return this.#fault(`no metric name after ${keyword}`)
    if (at >= length || body[at] !== space) return this.#fault(`nothing after the name in ${keyword}`)
    const end = body.indexOf(newline, at)
    if (end < 0) return this.#fault('unterminated line')
    if (end - from > this.#maxLineBytes) return this.#tooLong()
    return this.#declare(keyword, nameFrom, at, at + 1, end)
  }

  /** End of a metric name in a comment, quotes included; -1 if there is none. */
  #nameEnd(from: number): number {
    const body = this.#body
    if (from < body.length && body[from] === quote) return quotedNameEnd(body, from, body.length)
    const end = plainNameEnd(body, from, body.length, true)
    return end > from ? end : -1
  }

  #declare(
    keyword: 'HELP' | 'TYPE' | 'UNIT',
    nameFrom: number,
    nameTo: number,
    from: number,
    to: number,
  ): boolean {
    const body = this.#body
    const quoted = body[nameFrom] === quote ? 1 : 0
    const name = unescaped(body, nameFrom + quoted, nameTo - quoted)
    if (keyword === 'HELP') {
      if (!this.#valid && !isUtf8(body.subarray(from, to))) return this.#fault('the HELP text is not UTF-8')
      this.#families.help(name, this.#helpText(from, to))
    } else if (keyword === 'TYPE') {
      const type = (this.#strict ? openMetricsTypes : textTypes).get(body.toString('latin1', from, to))
      if (type === undefined) return this.#fault('unknown metric type in TYPE')
      this.#families.type(name, type)
    } else {
      const unit = utf8Text(body, from, to)
      if (unit !== '' && !name.endsWith(`_${unit}`))
        return this.#fault(`the metric name does not end with its unit`)
      this.#families.unit(name, unit)
    }
    return this.#next(to)
  }

  /** In the text format, quotes in help texts are not escaped. */
  #helpText(from: number, to: number): string {
    if (this.#strict) return unescaped(this.#body, from, to)
    const text = this.#body.toString('utf8', from, to)
    return text.includes('\\') ? text.replace(/\\([\\n])/g, (_, c) => (c === 'n' ? '\n' : c)) : text
  }

  #isTextBreak(at: number): boolean {
    if (at >= this.#body.length) return true
    const byte = this.#body[at]
    return byte === newline || byte === space || byte === tab
  }

  #next(lineEnd: number): true {
    this.#at = lineEnd + 1
    return true
  }

  #end(): true {
    this.#ended = true
    return true
  }

  #noValue(): boolean {
    const at = this.#key.end
    const hasBraces = this.#body[at - 1] === close
    return this.#fault(`no number after ${hasBraces ? 'the labels' : 'the name'}`)
  }

  #noTimestamp(): boolean {
    return this.#fault(
      this.#strict
        ? 'the timestamp is not a number of seconds'
        : 'the timestamp is not a whole number of milliseconds',
    )
  }

  #tooLong(): boolean {
    return this.#fault(`the line is longer than ${this.#maxLineBytes} bytes`)
  }

  #fault(reason: string): false {
    this.#reason = reason
    return false
  }
}

function begins(bytes: Buffer, from: number, to: number, word: string): boolean {
  if (from + word.length > to) return false
  for (let i = 0; i < word.length; i++) if (bytes[from + i] !== word.charCodeAt(i)) return false
  return true
}

function printable(line: string): string {
  const text = line.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    c => `\\u${c.codePointAt(0)!.toString(16).padStart(4, '0')}`,
  )
  return cutEnd(text, excerptCharacters)
}
