// Severity numbers of OTLP for the levels of programs (logs data model, "SeverityNumber" and appendix B).

import { isDigit } from '../../foundation/lib/ascii.ts'

/** Length of text searched for a level, in UTF-16 units. */
const searched = 256

interface LevelWord {
  readonly word: string
  readonly severity: number
}

const severities: Readonly<Record<number, string>> = {
  1: 'trace trc verbose finest finer',
  5: 'debug dbg dbug fine',
  9: 'info inf information informational',
  10: 'notice note',
  13: 'warn warning wrn',
  17: 'error err eror fail severe',
  18: 'crit',
  19: 'alert',
  21: 'fatal ftl critical emerg emergency panic dpanic',
}

/** Level words by first letter, from `a` on. */
const words: readonly LevelWord[][] = Array.from({ length: 26 }, () => [])
for (const [severity, names] of Object.entries(severities))
  for (const word of names.split(' '))
    words[word.charCodeAt(0) - 0x61]!.push({ word, severity: Number(severity) })

const longestWord = 13

/** Severity named by `text[from, to)`, in any case; 0 for none. */
export function namedSeverity(text: string, from = 0, to = text.length): number {
  if (to - from < 3 || to - from > longestWord) return 0
  const first = (text.charCodeAt(from) | 0x20) - 0x61
  if (!(first >= 0 && first < 26)) return 0
  for (const { word, severity } of words[first]!)
    if (word.length === to - from && spells(text, from, word)) return severity
  return 0
}

function spells(text: string, from: number, word: string): boolean {
  for (let i = 0; i < word.length; i++)
    if ((text.charCodeAt(from + i) | 0x20) !== word.charCodeAt(i)) return false
  return true
}

/** Severity of a level in steps of ten, from 10 (trace) to 60 (fatal), as in pino and bunyan; 0 if invalid. */
export function steppedSeverity(level: number): number {
  return level >= 10 && level < 70 ? 4 * Math.floor(level / 10) - 3 : 0
}

/** Keywords of syslog(3) by severity (RFC 5424, section 6.2.1). */
export const syslogNames = ['emerg', 'alert', 'crit', 'err', 'warning', 'notice', 'info', 'debug'] as const
const syslogSeverities = [21, 19, 18, 17, 13, 10, 9, 5] as const

/** Severity of a syslog severity, 0 (emergency) to 7 (debug); 0 if invalid. */
export function syslogSeverity(level: number): number {
  return syslogSeverities[level] ?? 0
}

/**
 * Finds the level of a line of text in its first 256 characters. A word counts if it is in the position of a
 * level: alone in capitals, in brackets, as the value of `level=`, or first in the line followed by a separator. So
 * "no error was found" has no level. Reused; only the text found is allocated.
 */
export class TextSeverity {
  severity = 0
  /** Level as written. */
  text = ''

  /** True if a level was found. */
  find(line: string): boolean {
    this.severity = 0
    this.text = ''
    let first = 0
    while (first < line.length && isBlank(line.charCodeAt(first))) first++
    return this.#atStart(line, first) || this.#within(line, first, Math.min(line.length, first + searched))
  }

  #set(severity: number, text: string): boolean {
    this.severity = severity
    this.text = text
    return true
  }

  /** Forms that only the start of a line can have. */
  #atStart(line: string, at: number): boolean {
    const code = line.charCodeAt(at)
    if (code === less) return this.#syslog(line, at + 1)
    const letterAt = code === openBracket ? at + 1 : at
    const severity = letterSeverity(line.charCodeAt(letterAt))
    if (severity === 0) return false
    const next = line.charCodeAt(letterAt + 1)
    const after = line.charCodeAt(letterAt + 2)
    const isAlone =
      code === openBracket
        ? // `[E]`, and `[E 260101 12:00:00 web:1]` of Tornado.
          next === closeBracket || (next === space && isDigit(after))
        : // klog: `E0102 15:04:05.000000`.
          (isDigit(next) && /^\d{4} \d\d:/.test(line.slice(letterAt + 1, letterAt + 9))) ||
          // Android: `E/ActivityManager(12): text`; others: `E 12:00 text`. "I am" is a sentence.
          (next === slash && isCapital(after)) ||
          (next === space && after > space && !isSmall(after))
    return isAlone && this.#set(severity, line[letterAt]!)
  }

  /** `<3>`, and `<11>` with its facility (sd-daemon(3); RFC 5424, section 6.2.1). */
  #syslog(line: string, from: number): boolean {
    let priority = 0
    let at = from
    for (; isDigit(line.charCodeAt(at)) && at < from + 3; at++)
      priority = priority * 10 + line.charCodeAt(at) - 0x30
    if (at === from || priority > 191 || line.charCodeAt(at) !== greater) return false
    const level = priority & 7
    return this.#set(syslogSeverity(level), syslogNames[level]!)
  }

  /** First word in the position of a level; `level=` wins over earlier words, except the first in the line. */
  #within(line: string, first: number, end: number): boolean {
    let foundAt = -1
    let foundEnd = 0
    for (let at = first; at < end; ) {
      if (!isLetter(line.charCodeAt(at))) {
        at++
        continue
      }
      let stop = at + 1
      while (stop < line.length && stop - at <= longestWord && isLetter(line.charCodeAt(stop))) stop++
      const severity = namedSeverity(line, at, stop)
      if (severity > 0) {
        if (isValue(line, at, first)) return this.#set(severity, line.slice(at, stop))
        if (foundAt < 0 && (at === first ? isLeading(line, at, stop) : isMarked(line, at, stop))) {
          if (at === first) return this.#set(severity, line.slice(at, stop))
          foundAt = at
          foundEnd = stop
        }
      }
      // The rest of a word longer than any level is not a word of its own.
      while (stop < end && isLetter(line.charCodeAt(stop))) stop++
      at = stop
    }
    return foundAt >= 0 && this.#set(namedSeverity(line, foundAt, foundEnd), line.slice(foundAt, foundEnd))
  }
}

/** Whether a first word is more than the start of a sentence. */
function isLeading(line: string, from: number, to: number): boolean {
  const next = line.charCodeAt(to)
  if (to >= line.length || next === colon || next === closeBracket || next === bar || next === tab)
    return true
  if (next === openBracket || next === openParenthesis) return true
  const after = line.charCodeAt(to + 1)
  if (next === space && (after === space || after === dash || after === openBracket || after === bar))
    return true
  return next === space && isCapitals(line, from, to)
}

/** Whether a word inside a line is in brackets, or in capitals between spaces. */
function isMarked(line: string, from: number, to: number): boolean {
  let before = from - 1
  while (line.charCodeAt(before) === space) before--
  let behind = to
  while (line.charCodeAt(behind) === space) behind++
  const open = line.charCodeAt(before)
  const close = line.charCodeAt(behind)
  if (open === openBracket && (close === closeBracket || close === space)) return true
  if (open === openParenthesis && close === closeParenthesis) return true
  if (open === less && close === greater) return true
  if (open === bar && close === bar) return true
  // Apache: `[core:error]`.
  if (open === colon && before === from - 1 && close === closeBracket && behind === to) return true
  if (!isCapitals(line, from, to)) return false
  const previous = line.charCodeAt(from - 1)
  const next = line.charCodeAt(to)
  const begins = isBlank(previous) || previous === bar || previous === closeBracket || previous === colon
  return (
    begins &&
    (to >= line.length ||
      isBlank(next) ||
      next === colon ||
      next === openBracket ||
      next === bar ||
      next === comma)
  )
}

/** Whether a word is the value of `level`, `lvl`, `severity` or of a name with that ending. */
function isValue(line: string, at: number, first: number): boolean {
  let before = at - 1
  if (line.charCodeAt(before) === quote || line.charCodeAt(before) === apostrophe) before--
  while (line.charCodeAt(before) === space) before--
  const sign = line.charCodeAt(before)
  if (sign !== equals && sign !== colon) return false
  before--
  if (line.charCodeAt(before) === quote || line.charCodeAt(before) === apostrophe) before--
  return (
    endsAt(line, before, first, 'level') ||
    endsAt(line, before, first, 'lvl') ||
    endsAt(line, before, first, 'severity')
  )
}

/** Whether `word` ends at `last`, inclusive. */
function endsAt(line: string, last: number, first: number, word: string): boolean {
  const from = last - word.length + 1
  return from >= first && spells(line, from, word)
}

function letterSeverity(code: number): number {
  switch (code) {
    case 0x54: // T
    case 0x56: // V
      return 1
    case 0x44: // D
      return 5
    case 0x49: // I
      return 9
    case 0x57: // W
      return 13
    case 0x45: // E
      return 17
    case 0x46: // F
      return 21
    default:
      return 0
  }
}

function isCapitals(line: string, from: number, to: number): boolean {
  for (let i = from; i < to; i++) if (!isCapital(line.charCodeAt(i))) return false
  return true
}

function isCapital(code: number): boolean {
  return code >= 0x41 && code <= 0x5a
}

function isSmall(code: number): boolean {
  return code >= 0x61 && code <= 0x7a
}

function isLetter(code: number): boolean {
  return isSmall(code | 0x20)
}

function isBlank(code: number): boolean {
  return code === space || code === tab
}

const tab = 0x09
const space = 0x20
const quote = 0x22
const apostrophe = 0x27
const openParenthesis = 0x28
const closeParenthesis = 0x29
const comma = 0x2c
const dash = 0x2d
const slash = 0x2f
const colon = 0x3a
const less = 0x3c
const equals = 0x3d
const greater = 0x3e
const openBracket = 0x5b
const closeBracket = 0x5d
const bar = 0x7c
