import { SearchPattern } from '../../../foundation/lib/search-pattern.ts'
import { Patience } from '../patience.ts'
import { areFourHex, beginsWord, is, isDigit, isHex, isUpper, margin, Units, word } from './characters.ts'
import type { Detector, Find } from './detector.ts'
import { detectors } from './detectors.ts'
import { requiredLiteral } from './pattern.ts'
import type { RuleType } from './settings.ts'
import { Stretch } from './stretch.ts'

/** The trigger that stands for a run of digits. */
const digits = 255
const zero = 254
const percent = 37
const mostRun = 21
/**
 * A pattern may look at all the rest of a text after each match. It is given up after so many, or where they took that
 * long together.
 */
const mostMatches = 4096
const matchesPerLook = 4
const patienceMs = 50
/** How far behind the end of what is searched something may reach that begins before it, in UTF-16 units. */
const slack = 512

export interface ScanRule {
  readonly type: RuleType
  /** Of type `regex`. */
  readonly pattern: string
}

export interface ScannerOptions {
  /** Longest text, in UTF-16 units. */
  readonly capacity: number
  /** Length of what stands in place of something that was redacted, 0 where nothing does. */
  redactedAt(text: string, at: number): number
  /** Monotonic, in milliseconds. */
  readonly nowMs: () => number
}

/** What may follow a run of digits and matter: `runs` of a detector is asked for each. */
const followers = ['', '.', '-', ' ', '/', ')']
const followerOf = new Uint8Array(256)
for (const [i, follower] of followers.entries()) if (i > 0) followerOf[follower.charCodeAt(0)] = i

interface Slot {
  readonly detector: Detector
  /** Of a detector with one type; undefined: it tells each time. */
  readonly rule: number | undefined
  /** Where it looks on: behind what it found last. */
  floor: number
}

interface PatternRule {
  readonly rule: number
  readonly pattern: SearchPattern
  /** What every match holds, as far as it is easily seen. */
  readonly literal: string
}

/** Finds what the rules name, in one pass over a text for all that is built in. Refers to rules by their number. */
export class Scanner {
  /** What was found last: the first `count` of each are valid. They may overlap and are in no order. */
  readonly starts: number[] = []
  readonly ends: number[] = []
  readonly rules: number[] = []
  count = 0
  /** How far the text was looked into by all. */
  reached = 0
  readonly #slots: Slot[] = []
  /** By trigger; the first has no detectors. */
  readonly #groups: Slot[][] = [[]]
  readonly #triggers = new Uint8Array(256)
  /** By length of the run and by what follows it. */
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
  }

  #install(detector: Detector): void {
    const { types, runs, afterCapitals } = detector
    const slot = { detector, rule: types.length === 1 ? this.#ruleOf.get(types[0]) : undefined, floor: 0 }
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

  /** Looks into a text, or as much of it as there is room for; returns how much was found. `hints`: bits of `Hint`. */
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
    const { bytes } = units
    const end = units.fill(text)
    for (let i = 0; i < slots.length; i++) slots[i]!.floor = 0
    // Zero stands behind the text and is a trigger too, so that this loop, the hottest of all, has one condition.
    for (let at = margin; ; at++) {
      let trigger = triggers[bytes[at]!]!
      while (trigger === 0) trigger = triggers[bytes[++at]!]!
      if (trigger === digits) at = this.#askAtDigits(bytes, at)
      else if (trigger !== zero) this.#askAll(groups[trigger]!, bytes, at, 0)
      else if (at >= end) break
    }
    this.reached = end - margin
    for (let i = 0; i < this.#patterns.length; i++) this.#match(this.#patterns[i]!, text)
    this.#text = ''
    return this.count
  }

  /** Returns the offset of the last unit that needs no further look. */
  #askAtDigits(bytes: Uint8Array, from: number): number {
    let end = from + 1
    while (isDigit(bytes[end])) end++
    let at = from
    const before = bytes[from - 1]!
    if (before === percent || (bytes[from - 2] === percent && isHex(before))) {
      // A number behind an escape of a URL: %20555, %C3%A9555
      const rest = before === percent ? 2 : 1
      if (end - from > rest) at += rest
    } else if (is(before, word)) {
      if (isUpper(before) && isUpper(bytes[from - 2]))
        this.#askAll(this.#afterCapitals, bytes, from, end - from)
      if (!beginsWord(bytes, from)) {
        // One of JSON goes over, and what follows may begin: \u0026555
        const isEscape = before === 117 && bytes[from - 2] === 92 && areFourHex(bytes, from)
        return isEscape ? from + 3 : wordEnd(bytes, end) - 1
      }
    } else if (is(bytes[end], word)) return wordEnd(bytes, end) - 1
    const run = Math.min(end - at, mostRun)
    this.#askAll(this.#byRun[run * followers.length + followerOf[bytes[end]!]!]!, bytes, at, run)
    return end - 1
  }

  #askAll(slots: readonly Slot[], bytes: Uint8Array, at: number, run: number): void {
    const find = this.#find
    find.run = run
    for (let i = 0; i < slots.length; i++) {
      const slot = slots[i]!
      if (at < slot.floor || !slot.detector.find(bytes, at, find)) continue
      slot.floor = find.end
      const rule = slot.rule ?? this.#ruleOf.get(find.type)
      if (rule !== undefined) this.#add(find.start - margin, find.end - margin, rule)
    }
  }

  #match({ rule, pattern, literal }: PatternRule, whole: string): void {
    if (literal !== '' && !whole.includes(literal)) return
    let text = whole
    if (pattern.isTooLong(whole)) {
      // What lies behind was not looked into, and what reaches there from before may not have been seen.
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

/** End of a word with a digit in it. Nothing is found in the rest of one: keys and tokens begin with letters. */
function wordEnd(bytes: Uint8Array, from: number): number {
  let end = from
  while (is(bytes[end], word)) end++
  return end
}
