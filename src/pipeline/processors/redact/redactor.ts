import { createHmac } from 'node:crypto'
import { Scanner, type ScanRule } from './scanner.ts'

export type Mode = 'replace' | 'hash' | 'drop' | 'count'

/** Totals of a rule since the start. */
export interface RuleCounts {
  redacted: number
  /** Findings in mode `count`. */
  found: number
}

export interface Rule extends ScanRule {
  readonly name: string
  readonly mode: Mode
  readonly replacement: string
  readonly counts: RuleCounts
}

export interface RedactorOptions {
  /** Maximum part of a text that is scanned, in bytes of UTF-8. */
  readonly maxBytes: number
  /** Key for hashes; empty if no rule hashes. */
  readonly key: Uint8Array
  /** Monotonic clock, in milliseconds. */
  nowMs(): number
}

/** Replaces the unscanned rest of a text. */
export const unscanned = '[TRUNCATED-UNSCANNED]'

/** Marks hashes, so that none is hashed again. */
const hashBegin = '[HASH:'
const hashDigits = 16
const hashLength = hashBegin.length + hashDigits + 1
/** Maximum extension beyond the end for a match that begins before it, in UTF-16 units. */
const slack = 512
/** A replacement may create a new match with its neighbours, but rarely, and then once. */
const mostRounds = 4

/** Redacts texts. Redacting a result again does not change it. Keeps only counts of what it saw. */
export class Redactor {
  readonly rules: readonly Rule[]
  /** Texts whose rest was replaced by `unscanned`. */
  truncated = 0
  /** Whether the last text contained something that a rule drops. */
  drops = false
  /** Whether nothing was found in the last text. */
  isClean = true
  readonly #scanner: Scanner
  readonly #maxBytes: number
  readonly #key: Uint8Array
  readonly #replacements: readonly string[]
  /** Length of the longest replacement. */
  readonly #longest: number
  /** False if all rules only count. */
  readonly #changes: boolean

  constructor(rules: readonly Rule[], { maxBytes, key, nowMs }: RedactorOptions) {
    this.rules = rules
    this.#maxBytes = maxBytes
    this.#key = key
    // Longest first, as one may begin with another.
    this.#replacements = [...new Set(rules.map(rule => rule.replacement))]
      .filter(replacement => replacement !== '')
      .sort((a, b) => b.length - a.length)
    this.#longest = Math.max(hashLength, this.#replacements[0]?.length ?? 0)
    this.#changes = rules.some(rule => rule.mode !== 'count')
    this.#scanner = new Scanner(rules, {
      capacity: maxBytes + slack,
      redactedAt: (text, at) => this.#redactedAt(text, at),
      nowMs,
    })
  }

  /** Redacted text; the same string if nothing was found. `hints`: bits of `Hint`. */
  text(text: string, hints: number): string {
    this.drops = false
    this.isClean = true
    let before = text
    for (let round = 0; round < mostRounds; round++) {
      const after = this.#pass(before, hints, round === 0)
      if (after === before) return after
      before = after
    }
    return this.whole(text, this.rules[0]!)
  }

  /** Replacement for a value that is secret as a whole; the value itself if it is already one. Counts nothing. */
  whole(text: string, rule: Rule): string {
    if (text === '' || this.#redactedAt(text, 0) === text.length) return text
    return rule.mode === 'hash' ? this.#hash(text) : rule.replacement
  }

  #pass(text: string, hints: number, isFirst: boolean): string {
    const body = text.endsWith(unscanned) ? text.length - unscanned.length : text.length
    const most = this.#cut(text, body)
    const window = text.length > most + slack ? text.slice(0, wholePairs(text, most + slack)) : text
    const found = this.#scanner.scan(window, hints)
    const reached = this.#scanner.reached >= most ? most : wholePairs(text, this.#scanner.reached)
    if (found === 0 && reached === body) return text
    this.isClean = false
    const ranges = found === 0 ? [] : this.#ranges(window, reached, isFirst)
    if (ranges.length === 0 && reached === body) return text
    if (reached < body && isFirst) this.truncated++
    if (!this.#changes) return text
    const redacted = this.#assemble(text, ranges, reached)
    if (reached === body) return redacted + text.slice(body)
    return redacted + unscanned
  }

  /** Counts the findings, and returns those to change, sorted by start. */
  #ranges(text: string, reached: number, isFirst: boolean): number[] {
    const { starts, ends, rules } = this.#scanner
    const chosen: number[] = []
    for (let i = 0; i < this.#scanner.count; i++) {
      const start = starts[i]!
      if (start >= reached || this.#isRedacted(text, start, ends[i]!)) continue
      const { mode, counts } = this.rules[rules[i]!]!
      if (mode === 'count') {
        if (isFirst) counts.found++
        continue
      }
      counts.redacted++
      if (mode === 'drop') this.drops = true
      chosen.push(i)
    }
    return chosen.sort((a, b) => starts[a]! - starts[b]! || ends[b]! - ends[a]!)
  }

  /** Redacted text up to `reached`. Overlapping ranges are merged, by the first of their rules. */
  #assemble(text: string, ranges: readonly number[], reached: number): string {
    const { starts, ends, rules } = this.#scanner
    let out = ''
    let at = 0
    for (let i = 0; i < ranges.length; ) {
      let start = starts[ranges[i]!]!
      let end = ends[ranges[i]!]!
      let rule = rules[ranges[i]!]!
      for (i++; i < ranges.length && starts[ranges[i]!]! < end; i++) {
        end = Math.max(end, ends[ranges[i]!]!)
        rule = Math.min(rule, rules[ranges[i]!]!)
      }
      start = Math.max(at, wholePairs(text, start))
      if (wholePairs(text, end) < end) end++
      out += text.slice(at, start)
      out += this.#standsFor(text.slice(start, end), this.rules[rule]!)
      at = end
    }
    return at < reached ? out + text.slice(at, reached) : out
  }

  #standsFor(text: string, rule: Rule): string {
    return rule.mode === 'hash' ? this.#hash(text) : rule.replacement
  }

  #hash(text: string): string {
    const digest = createHmac('sha256', this.#key).update(text).digest('hex')
    return `${hashBegin}${digest.slice(0, hashDigits)}]`
  }

  /** Whether a range is within a replacement. */
  #isRedacted(text: string, start: number, end: number): boolean {
    for (let at = start; at >= 0 && at > start - this.#longest; at--)
      if (at + this.#redactedAt(text, at) >= end) return true
    return false
  }

  #redactedAt(text: string, at: number): number {
    if (text.charCodeAt(at) === 91 && isHash(text, at)) return hashLength
    for (let i = 0; i < this.#replacements.length; i++) {
      const replacement = this.#replacements[i]!
      if (text.startsWith(replacement, at)) return replacement.length
    }
    return 0
  }

  /** Number of units before `end` within the maximum bytes. */
  #cut(text: string, end: number): number {
    const maxBytes = this.#maxBytes
    if (end * 3 <= maxBytes) return end
    let bytes = 0
    for (let at = 0; at < end; at++) {
      const unit = text.charCodeAt(at)
      // Each half of a surrogate pair counts as half of four bytes.
      bytes += unit < 0x80 ? 1 : unit < 0x800 || (unit & 0xf800) === 0xd800 ? 2 : 3
      if (bytes > maxBytes) return this.#wholeReplacement(text, wholePairs(text, at))
    }
    return end
  }

  /** `at`, or the start of a replacement that spans it: a part of one would be taken for a value. */
  #wholeReplacement(text: string, at: number): number {
    for (let start = at - 1; start >= 0 && start > at - this.#longest; start--)
      if (start + this.#redactedAt(text, start) > at) return start
    return at
  }
}

/** `at`, or one less if that would split a surrogate pair. */
function wholePairs(text: string, at: number): number {
  return (text.charCodeAt(at) & 0xfc00) === 0xdc00 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800
    ? at - 1
    : at
}

function isHash(text: string, at: number): boolean {
  if (!text.startsWith(hashBegin, at) || text.charCodeAt(at + hashLength - 1) !== 93) return false
  for (let i = at + hashBegin.length; i < at + hashLength - 1; i++) {
    const unit = text.charCodeAt(i)
    if (!((unit >= 48 && unit <= 57) || (unit >= 97 && unit <= 102))) return false
  }
  return true
}
