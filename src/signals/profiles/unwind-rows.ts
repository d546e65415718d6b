import { ElfError } from '../../foundation/lib/elf/elf-format.ts'
import { cfaRule, pageBits, type UnwindTable } from '../../foundation/model/unwind-table.ts'

/** Functions are aligned to 16 bytes, and the padding is never executed: the previous rule may extend over it. */
const mostPadding = 15
/** The largest programs have some hundred. */
const mostRules = 4096
/** Size of the open hash table of rules. */
const slotBits = 14
const noneRule = 0
/** Sort keys have a function's number in the lower bits, and its offset above. */
const functionScale = 2 ** 21

/** Collects the rules of a file's functions, in any order, and builds their table. Places are file offsets. */
export class UnwindRows {
  readonly #maxRows: number
  /** Row: start of its rule, and the rule. */
  #places = new Uint32Array(4096)
  #rules = new Uint16Array(4096)
  #count = 0
  /** Function: start and number, end, and first row. */
  #starts = new Float64Array(1024)
  #ends = new Uint32Array(1024)
  #firsts = new Uint32Array(1024)
  #functions = 0
  /** As in `rules` of the table, each in two words; little-endian, as are all supported machines. */
  readonly #ruleWords = new Int32Array(2 * mostRules)
  /** Rule numbers by hash; 0 means none. */
  readonly #slots = new Uint16Array(2 ** slotBits)
  #ruleCount = 1
  #lastRule = 0
  readonly #unsupportedRule: number

  /** `maxRows`: below 2^21. Throws `ElfError` if exceeded. */
  constructor(maxRows: number) {
    this.#maxRows = maxRows
    this.#unsupportedRule = this.#ruleNumber(cfaRule.unsupported, 0, 0)
  }

  get isEmpty(): boolean {
    return this.#functions === 0
  }

  /** Starts a function; following rows belong to it. */
  begin(start: number, end: number): void {
    if (this.#functions >= this.#maxRows) throw this.#tooMany()
    if (this.#functions === this.#ends.length) this.#growFunctions()
    this.#starts[this.#functions] = start * functionScale + this.#functions
    this.#ends[this.#functions] = end
    this.#firsts[this.#functions++] = this.#count
  }

  /** Adds a rule from `place` on; `rbp` as `rbpRule | rbpOffset << 8`. Places ascend. */
  add(place: number, cfa: number, cfaOffset: number, rbp: number): void {
    const rule = this.#ruleNumber(cfa, cfaOffset, rbp)
    const isFirst = this.#count === this.#firsts[this.#functions - 1]
    if (!isFirst && this.#rules[this.#count - 1] === rule) return
    if (!isFirst && this.#places[this.#count - 1] === place) this.#count--
    if (this.#count >= this.#maxRows) throw this.#tooMany()
    if (this.#count === this.#places.length) this.#growRows()
    this.#places[this.#count] = place
    this.#rules[this.#count++] = rule
  }

  /** Each place has the rule of the last function that started before it and has not ended. */
  table(): UnwindTable {
    const order = this.#starts.subarray(0, this.#functions).sort()
    const output = new Output(this.#count + 2 * this.#functions + 2, this.#lastEnd())
    // Functions that have started and not ended, innermost last. Only unusual files have more than one.
    const open = new Uint32Array(this.#functions)
    let depth = 0
    let place = 0
    const runTo = (limit: number) => {
      while (depth > 0 && place < limit) {
        const inner = open[depth - 1]!
        const end = Math.min(this.#ends[inner]!, limit)
        if (end > place) {
          this.#copy(inner, place, end, output)
          place = end
        }
        if (this.#ends[inner]! <= limit) depth--
      }
      if (limit - place > mostPadding) output.add(place, noneRule)
      if (depth === 0) place = limit
    }
    output.add(0, noneRule)
    for (let index = 0; index < order.length; index++) {
      const key = order[index]!
      runTo(Math.floor(key / functionScale))
      open[depth++] = key % functionScale
    }
    runTo(Number.POSITIVE_INFINITY)
    return output.table(
      new Uint8Array(this.#ruleWords.slice(0, 2 * this.#ruleCount).buffer),
      this.#unsupportedRule,
    )
  }

  #copy(index: number, from: number, to: number, output: Output): void {
    const after = index + 1 < this.#functions ? this.#firsts[index + 1]! : this.#count
    let row = this.#firsts[index]!
    if (row === after) {
      output.add(from, noneRule)
      return
    }
    // Differs from the first row's place only after an intervening function.
    if (this.#places[row]! < from) row = this.#lastAtOrBefore(row, after, from)
    output.add(from, this.#rules[row]!)
    for (row++; row < after && this.#places[row]! < to; row++)
      output.add(this.#places[row]!, this.#rules[row]!)
  }

  #lastAtOrBefore(first: number, after: number, place: number): number {
    let low = first
    let high = after
    while (high - low > 1) {
      const middle = (low + high) >>> 1
      if (this.#places[middle]! <= place) low = middle
      else high = middle
    }
    return low
  }

  #lastEnd(): number {
    let last = 0
    for (let index = 0; index < this.#functions; index++) last = Math.max(last, this.#ends[index]!)
    return last
  }

  #ruleNumber(cfa: number, cfaOffset: number, rbp: number): number {
    const low = cfa | (rbp << 8)
    if (this.#isRule(this.#lastRule, low, cfaOffset)) return this.#lastRule
    const hash = Math.imul(Math.imul(low, 0x9e3779b1) + cfaOffset, 0x85ebca77)
    for (let slot = hash >>> (32 - slotBits); ; slot = (slot + 1) % 2 ** slotBits) {
      const rule = this.#slots[slot]!
      if (rule !== 0 && !this.#isRule(rule, low, cfaOffset)) continue
      if (rule === 0 && low === 0 && cfaOffset === 0) return noneRule
      this.#lastRule = rule === 0 ? this.#newRule(slot, low, cfaOffset) : rule
      return this.#lastRule
    }
  }

  #newRule(slot: number, low: number, cfaOffset: number): number {
    if (this.#ruleCount === mostRules) return this.#unsupportedRule
    this.#ruleWords[2 * this.#ruleCount] = low
    this.#ruleWords[2 * this.#ruleCount + 1] = cfaOffset
    this.#slots[slot] = this.#ruleCount
    return this.#ruleCount++
  }

  #isRule(rule: number, low: number, cfaOffset: number): boolean {
    return this.#ruleWords[2 * rule] === low && this.#ruleWords[2 * rule + 1] === cfaOffset
  }

  #growRows(): void {
    const length = Math.min(2 * this.#places.length, this.#maxRows)
    const places = new Uint32Array(length)
    places.set(this.#places)
    this.#places = places
    const rules = new Uint16Array(length)
    rules.set(this.#rules)
    this.#rules = rules
  }

  #growFunctions(): void {
    const length = 2 * this.#ends.length
    const starts = new Float64Array(length)
    starts.set(this.#starts)
    this.#starts = starts
    const ends = new Uint32Array(length)
    ends.set(this.#ends)
    this.#ends = ends
    const firsts = new Uint32Array(length)
    firsts.set(this.#firsts)
    this.#firsts = firsts
  }

  #tooMany(): ElfError {
    return new ElfError(`its unwind table has more than ${this.#maxRows} rows`)
  }
}

/** The table under construction; places ascend. */
class Output {
  readonly #rows: Uint32Array
  readonly #pages: Uint32Array
  #count = 0
  /** Pages with a first row. */
  #begun = 0
  #last = -1

  constructor(mostRows: number, end: number) {
    this.#rows = new Uint32Array(mostRows)
    this.#pages = new Uint32Array(Math.floor(end / 2 ** pageBits) + 2)
  }

  add(place: number, rule: number): void {
    if (rule === this.#last) return
    this.#last = rule
    const page = Math.floor(place / 2 ** pageBits)
    while (this.#begun <= page) this.#pages[this.#begun++] = this.#count
    this.#rows[this.#count++] = ((place & 0xffff) << 16) | rule
  }

  table(rules: Uint8Array, unsupportedRule: number): UnwindTable {
    const rows = this.#rows.slice(0, this.#count)
    this.#pages.fill(this.#count, this.#begun)
    let unsupported = 0
    for (let at = 0; at < rows.length; at++) if ((rows[at]! & 0xffff) === unsupportedRule) unsupported++
    return { rows, pages: this.#pages, rules, unsupported }
  }
}
