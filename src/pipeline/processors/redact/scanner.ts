import { SearchPattern } from '../../../foundation/lib/search-pattern.ts'
import { Patience } from '../patience.ts'
import { areFourHex, beginsWord, is, isDigit, isHex, isUpper, margin, Units, word } from './characters.ts'
import type { Detector, Find } from './detector.ts'
import { detectors } from './detectors.ts'
import { requiredLiteral } from './pattern.ts'
import type { RuleType } from './settings.ts'
import { Stretch } from './stretch.ts'

/** Trigger of a run of digits. */
const digits = 255
const zero = 254
const percent = 37
const mostRun = 21
const dateLength = 10
/** Bits of a pair of units. */
const called = 1
const stop = 2
/**
 * A pattern may check the rest of the text after each match. It is abandoned after this many matches, or if they take
 * this long together.
 */
const mostMatches = 4096
const matchesPerLook = 4
const patienceMs = 50
/** Maximum extension beyond the end of the searched text for a match that begins before it, in UTF-16 units. */
const slack = 512

export interface ScanRule {
  readonly type: RuleType
  /** For type `regex`. */
  readonly pattern: string
}

export interface ScannerOptions {
  /** Maximum length of a text, in UTF-16 units. */
  readonly capacity: number
  /** Length of the replacement of redacted text at `at`; 0 if there is none. */
  redactedAt(text: string, at: number): number
  /** Monotonic clock, in milliseconds. */
  readonly nowMs: () => number
}

/** Characters after a run of digits that matter to detectors: `runs` is called for each. */
const followers = ['', '.', '-', ' ', '/', ')']
const followerOf = new Uint8Array(256)
for (const [i, follower] of followers.entries()) if (i > 0) followerOf[follower.charCodeAt(0)] = i

interface Slot {
  readonly find: Detector['find']
  readonly after: Detector['after']
  /** Rule of a detector with one type; undefined if it sets the type for each match. */
  readonly rule: number | undefined
  /** Where its next match may begin: after its last one. */
  floor: number
}

interface PatternRule {
  readonly rule: number
  readonly pattern: SearchPattern
  /** Text contained in every match, see `requiredLiteral`. */
  readonly literal: string
}

/** Finds matches of the rules, with one pass over a text for all built-in types. Refers to rules by index. */
export class Scanner {
  /** Last result: the first `count` elements of each are valid. Matches may overlap and are unordered. */
  readonly starts: number[] = []
  readonly ends: number[] = []
  readonly rules: number[] = []
  count = 0
  /** Length of the text that was fully scanned. */
  reached = 0
  readonly #slots: Slot[] = []
  /** By trigger; the first one is empty. */
  readonly #groups: Slot[][] = [[]]
  readonly #triggers = new Uint8Array(256)
  /**
   * By two units, the first in the lower half: whether a detector is called at the second, and whether one may be called
   * at the first or at the second.
   */
  readonly #pairs = new Uint8Array(65_536)
  /** By length of the run and its follower. */
  readonly #byRun: Slot[][] = Array.from({ length: (mostRun + 1) * followers.length }, () => [])
  readonly #afterCapitals: Slot[] = []
  readonly #patterns: PatternRule[] = []
  readonly #ruleOf = new Map<RuleType, number>()
  readonly #units: Units
  readonly #patience: Patience
  readonly #find: Find
  #text = ''

  constructor(rules: readonly ScanRule[], options: ScannerOptions) {
    this.#patience = new Patience(patienceMs, options.nowMs)
    this.#units = new Units(options.capacity)
    this.#find = {
      type: 'regex',
      start: 0,
      end: 0,
      run: 0,
      hints: 0,
      values: new Stretch(),
      cookies: new Stretch(),
      redactedAt: (_, at) => options.redactedAt(this.#text, at - margin),
    }
    this.#triggers[0] = zero
    for (const [rule, { type, pattern }] of rules.entries()) {
      if (type === 'regex')
        this.#patterns.push({ rule, pattern: new SearchPattern(pattern), literal: requiredLiteral(pattern) })
      else this.#ruleOf.set(type, rule)
    }
    for (const detector of detectors)
      if (detector.types.some(type => this.#ruleOf.has(type))) this.#install(detector)
    if (this.#afterCapitals.length > 0 || this.#byRun.some(slots => slots.length > 0))
      this.#triggers.fill(digits, 48, 58)
    this.#fillPairs()
  }

  #fillPairs(): void {
    const row = this.#triggers.map(trigger => (trigger === 0 ? 0 : stop))
    for (const [unit, trigger] of this.#triggers.entries()) {
      this.#pairs.set(row, unit << 8)
      if (trigger === 0) continue
      const slots = this.#groups[trigger]
      const character = String.fromCharCode(unit)
      for (let before = 0; before < 256; before++)
        if (slots?.some(({ after }) => after?.(before, character) ?? true) ?? true)
          this.#pairs[before | (unit << 8)] = called | stop
    }
  }

  #install(detector: Detector): void {
    const { types, find, after, runs, afterCapitals } = detector
    const slot = { find, after, rule: types.length === 1 ? this.#ruleOf.get(types[0]) : undefined, floor: 0 }
    this.#slots.push(slot)
    for (const character of detector.triggers) {
      const unit = character.charCodeAt(0)
      if (this.#triggers[unit] === 0) this.#triggers[unit] = this.#groups.push([]) - 1
      this.#groups[this.#triggers[unit]!]!.push(slot)
    }
    for (let i = followers.length; runs !== undefined && i < this.#byRun.length; i++)
      if (runs(Math.trunc(i / followers.length), followers[i % followers.length]!)) this.#byRun[i]!.push(slot)
    if (afterCapitals) this.#afterCapitals.push(slot)
  }

  /** Scans as much of a text as there is room for; returns the number of matches. `hints`: bits of `Hint`. */
  scan(text: string, hints: number): number {
    const triggers = this.#triggers
    const groups = this.#groups
    const slots = this.#slots
    const units = this.#units
    this.count = 0
    this.#text = text
    this.#find.hints = hints
    this.#find.values.clear()
    this.#find.cookies.clear()
    const ofPair = this.#pairs
    const { bytes, pairs } = units
    const end = units.fill(text)
    for (let i = 0; i < slots.length; i++) slots[i]!.floor = 0
    // The zero after the text is a trigger too, so that the inner loop, the hottest of all, has one condition.
    for (let at = margin; ; at++) {
      if ((at & 1) === 0) {
        let pair = at >> 1
        while (ofPair[pairs[pair]!]! === 0) pair++
        at = pair << 1
      }
      const trigger = triggers[bytes[at]!]!
      if (trigger === digits) at = this.#askAtDigits(bytes, at)
      else if (trigger === zero) {
        if (at >= end) break
      } else if (trigger !== 0 && (ofPair[bytes[at - 1]! | (bytes[at]! << 8)]! & called) !== 0)
        this.#askAll(groups[trigger]!, bytes, at, 0)
    }
    this.reached = end - margin
    for (let i = 0; i < this.#patterns.length; i++) this.#match(this.#patterns[i]!, text)
    this.#text = ''
    return this.count
  }

  /** Returns the offset of the last unit that is done. */
  #askAtDigits(bytes: Uint8Array, from: number): number {
    let end = from + 1
    while (isDigit(bytes[end])) end++
    let at = from
    const before = bytes[from - 1]!
    if (before === percent || (bytes[from - 2] === percent && isHex(before))) {
      // A number after a URL escape: %20555, %C3%A9555
      const rest = before === percent ? 2 : 1
      if (end - from > rest) at += rest
    } else if (is(before, word)) {
      if (isUpper(before) && isUpper(bytes[from - 2]))
        this.#askAll(this.#afterCapitals, bytes, from, end - from)
      if (!beginsWord(bytes, from)) {
        // A JSON escape ends here, and a match may follow: \u0026555
        const isEscape = before === 117 && bytes[from - 2] === 92 && areFourHex(bytes, from)
        return isEscape ? from + 3 : wordEnd(bytes, end) - 1
      }
    } else if (is(bytes[end], word)) return wordEnd(bytes, end) - 1
    if (end === at + 4 && bytes[end] === 45 && isDate(bytes, at)) return at + dateLength - 1
    const run = Math.min(end - at, mostRun)
    this.#askAll(this.#byRun[run * followers.length + followerOf[bytes[end]!]!]!, bytes, at, run)
    return end - 1
  }

  #askAll(slots: readonly Slot[], bytes: Uint8Array, at: number, run: number): void {
    const find = this.#find
    find.run = run
    for (let i = 0; i < slots.length; i++) {
      const slot = slots[i]!
      if (at < slot.floor || !slot.find(bytes, at, find)) continue
      slot.floor = find.end
      const rule = slot.rule ?? this.#ruleOf.get(find.type)
      if (rule !== undefined) this.#add(find.start - margin, find.end - margin, rule)
    }
  }

  #match({ rule, pattern, literal }: PatternRule, whole: string): void {
    if (literal !== '' && !whole.includes(literal)) return
    let text = whole
    if (pattern.isTooLong(whole)) {
      // The rest was not searched, and a match that extends into it may be missing.
      text = whole.slice(0, pattern.longest)
      this.reached = Math.min(this.reached, Math.max(0, text.length - slack))
    }
    const expression = pattern.all(text)
    const perLook = pattern.mayTakeLong(text) ? 1 : matchesPerLook
    this.#patience.begin()
    for (let matches = 1; ; matches++) {
      const found = expression.exec(text)
      if (found === null) return
      const length = found[0].length
      if (length > 0) this.#add(found.index, found.index + length, rule)
      else expression.lastIndex++
      if (matches >= mostMatches || (matches % perLook === 0 && this.#patience.isOver())) break
    }
    this.reached = Math.min(this.reached, expression.lastIndex)
  }

  #add(start: number, end: number, rule: number): void {
    this.starts[this.count] = start
    this.ends[this.count] = end
    this.rules[this.count] = rule
    this.count++
  }
}

/** End of a word with a digit in it. The rest of such a word has no match: keys and tokens begin with letters. */
function wordEnd(bytes: Uint8Array, from: number): number {
  let end = from
  while (is(bytes[end], word)) end++
  return end
}

/** `2026-11-20T` or `2026-11-20 `: most lines of a log begin with one, and no match begins in it. */
function isDate(bytes: Uint8Array, at: number): boolean {
  const after = bytes[at + dateLength]
  return (
    (after === 84 || after === 32) &&
    bytes[at + 7] === 45 &&
    isDigit(bytes[at + 5]) &&
    isDigit(bytes[at + 6]) &&
    isDigit(bytes[at + 8]) &&
    isDigit(bytes[at + 9])
  )
}
