import { isUtf8 } from 'node:buffer'

const newline = 10
const quote = 34
const comma = 44
const equals = 61
const backslash = 92
const open = 123
const close = 125

const letter = 1
const colon = 2
const digit = 4
const blank = 8

const kinds = new Uint8Array(256)
for (let i = 0; i < 26; i++) kinds[65 + i] = kinds[97 + i] = letter
for (let i = 0; i < 10; i++) kinds[48 + i] = digit
kinds[95] = letter
kinds[58] = colon
kinds[32] = kinds[9] = blank

/** From this number on, labels are looked up in a set instead of compared with each other. */
const fewLabels = 32
const mostKeptMarks = 64 * 1024

const metricLabel = Buffer.from('__name__')

/** End of an unquoted name; `from` if there is none. Only names of metrics may have colons. */
export function plainNameEnd(bytes: Buffer, from: number, to: number, withColons: boolean): number {
  const begins = withColons ? letter | colon : letter
  if (from >= to || (kinds[bytes[from]!]! & begins) === 0) return from
  let at = from + 1
  while (at < to && (kinds[bytes[at]!]! & (begins | digit)) !== 0) at++
  return at
}

export function skipBlanks(bytes: Buffer, from: number, to: number): number {
  let at = from
  while (at < to && kinds[bytes[at]!] === blank) at++
  return at
}

/** Offset after the closing quote of the quoted name at `from`; -1 if it is not closed or contains a NUL. */
export function quotedNameEnd(bytes: Buffer, from: number, to: number): number {
  for (let at = from + 1; at < to; at++) {
    let byte = bytes[at]!
    if (byte === quote) return at + 1
    if (byte === backslash) {
      byte = ++at < to ? bytes[at]! : 0
      if (byte === newline) return -1
    }
    if (byte === 0) return -1
  }
  return -1
}

/** Unescaped text of a range: `\\`, `\n` and `\"` are replaced, other escapes are kept. */
export function unescaped(bytes: Buffer, from: number, to: number): string {
  const text = bytes.toString('utf8', from, to)
  return text.includes('\\') ? text.replace(/\\([\\n"])/g, meant) : text
}

function meant(_: string, escaped: string): string {
  return escaped === 'n' ? '\n' : escaped
}

/**
 * Scans the name and labels of a sample: `name{label="value"}`, `{"name","label"="value"}`. Sets their positions,
 * without creating strings.
 */
export class KeyScanner {
  /** Offset after the last byte; -1 if invalid, with the reason. */
  end = -1
  reason = ''
  /** Range of the metric name, without quotes. */
  nameFrom = -1
  nameTo = -1
  labels = 0
  /** Four per label: start and end of its name and of its value, without quotes. */
  marks = new Uint32Array(4 * fewLabels)
  #quotedNames = false

  /**
   * `strict`: no blanks, commas between labels, no line feeds in values, as in OpenMetrics. `valid`: all bytes are
   * known to be UTF-8, so parts need no check.
   */
  scan(bytes: Buffer, from: number, to: number, strict: boolean, valid: boolean): boolean {
    this.labels = 0
    this.#quotedNames = false
    this.nameFrom = this.nameTo = -1
    if (this.marks.length > mostKeptMarks) this.marks = new Uint32Array(4 * fewLabels)
    let at = plainNameEnd(bytes, from, to, true)
    if (at > from) {
      this.nameFrom = from
      this.nameTo = at
    }
    this.end = at
    if (!strict) at = skipBlanks(bytes, at, to)
    if (at < to && bytes[at] === open) this.end = this.#braces(bytes, at + 1, to, strict, valid)
    if (this.end < 0) return false
    if (this.nameFrom < 0) return this.#fault('no metric name at the start') > 0
    return this.labels === 0 || this.#unique(bytes)
  }

  /** Scans the labels of an exemplar from after its opening brace. Sets `end`. */
  scanExemplar(bytes: Buffer, from: number, to: number): boolean {
    this.labels = 0
    this.nameFrom = this.nameTo = 0
    this.end = this.#braces(bytes, from, to, true, false, false)
    return this.end >= 0
  }

  /** Returns the offset after the closing brace; -1 if invalid. */
  #braces(bytes: Buffer, from: number, to: number, strict: boolean, valid: boolean, withNul = true): number {
    let at = strict ? from : skipBlanks(bytes, from, to)
    for (;;) {
      if (at >= to) return this.#fault('labels are not closed')
      if (bytes[at] === close) return at + 1
      const quoted = bytes[at] === quote
      const nameEnd = quoted ? quotedNameEnd(bytes, at, to) : plainNameEnd(bytes, at, to, false)
      if (nameEnd < 0) return this.#fault('a quoted name is not closed')
      if (nameEnd === at) return this.#fault('a label has no name')
      const nameFrom = quoted ? at + 1 : at
      const nameTo = quoted ? nameEnd - 1 : nameEnd
      if (quoted) {
        this.#quotedNames = true
        if (nameTo === nameFrom) return this.#fault('a quoted name is empty')
        if (!valid && !isUtf8(bytes.subarray(nameFrom, nameTo))) return this.#fault('a name is not UTF-8')
      }
      at = strict ? nameEnd : skipBlanks(bytes, nameEnd, to)
      const next = at < to ? bytes[at] : 0
      if (quoted && (next === comma || next === close)) {
        if (this.nameFrom >= 0) return this.#fault('second metric name in the braces')
        this.nameFrom = nameFrom
        this.nameTo = nameTo
        if (next === close) return at + 1
        at = strict ? at + 1 : skipBlanks(bytes, at + 1, to)
        continue
      }
      if (next !== equals) return this.#fault('a label has no "="')
      at = strict ? at + 1 : skipBlanks(bytes, at + 1, to)
      if (at >= to || bytes[at] !== quote) return this.#fault('a label value has no quotes')
      const valueFrom = at + 1
      at = this.#valueEnd(bytes, valueFrom, to, strict, withNul)
      if (at < 0) return this.#fault('a label value is not closed')
      if (!valid && !isUtf8(bytes.subarray(valueFrom, at))) return this.#fault('a label value is not UTF-8')
      this.#mark(nameFrom, nameTo, valueFrom, at)
      at = strict ? at + 1 : skipBlanks(bytes, at + 1, to)
      if (at < to && bytes[at] === comma) at = strict ? at + 1 : skipBlanks(bytes, at + 1, to)
      else if (strict && (at >= to || bytes[at] !== close)) return this.#fault('no comma after a label value')
    }
  }

  /** Position of the closing quote, or -1. Prometheus' reader skips NULs, also after a backslash. */
  #valueEnd(bytes: Buffer, from: number, to: number, oneLine: boolean, withNul: boolean): number {
    for (let at = from; at < to; at++) {
      const byte = bytes[at]!
      if (byte === quote) return at
      if (byte === backslash) {
        at++
        while (withNul && at < to && bytes[at] === 0) at++
        if (at >= to || bytes[at] === newline || bytes[at] === 0) return -1
      } else if ((byte === newline && oneLine) || (byte === 0 && !withNul)) return -1
    }
    return -1
  }

  #mark(nameFrom: number, nameTo: number, valueFrom: number, valueTo: number): void {
    let { marks } = this
    const at = 4 * this.labels++
    if (at === marks.length) {
      marks = new Uint32Array(2 * at)
      marks.set(this.marks)
      this.marks = marks
    }
    marks[at] = nameFrom
    marks[at + 1] = nameTo
    marks[at + 2] = valueFrom
    marks[at + 3] = valueTo
  }

  /** Whether all labels have distinct names, none of them `__name__`. */
  #unique(bytes: Buffer): boolean {
    const { labels, marks } = this
    for (let i = 0; i < 4 * labels; i += 4) {
      const from = marks[i]!
      if (marks[i + 1]! - from === 8 && bytes.compare(metricLabel, 0, 8, from, from + 8) === 0)
        return this.#fault('label __name__ in addition to the metric name') > 0
    }
    if (labels > fewLabels || this.#quotedNames) {
      const names = new Set<string>()
      for (let i = 0; i < labels; i++) names.add(unescaped(bytes, marks[4 * i]!, marks[4 * i + 1]!))
      return names.size === labels || this.#fault('duplicate label') > 0
    }
    for (let i = 1; i < labels; i++)
      for (let j = 0; j < i; j++) if (this.#same(bytes, i, j)) return this.#fault('duplicate label') > 0
    return true
  }

  #same(bytes: Buffer, one: number, other: number): boolean {
    const { marks } = this
    const a = marks[4 * one]!
    const b = marks[4 * other]!
    const length = marks[4 * one + 1]! - a
    if (marks[4 * other + 1]! - b !== length) return false
    for (let i = 0; i < length; i++) if (bytes[a + i] !== bytes[b + i]) return false
    return true
  }

  #fault(reason: string): number {
    this.reason = reason
    this.end = -1
    return -1
  }
}
