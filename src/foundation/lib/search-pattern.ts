import { setFlagsFromString } from 'node:v8'
import { linearRegExp } from './linear-regexp.ts'

/**
 * Limits of a quadratic search: the product of the lengths of text and compiled pattern, in UTF-16 units, and the
 * longest text: `[a-z]+@` takes 5 ms for 2048 letters and 19 s for 256 Ki (measured, Node 24).
 */
const quickWork = 400_000
const quickLength = 2048

/** Limit of any search, in the same measure: 4 to 10 ns per unit, measured. */
const mostWork = 64 * 1024 * 1024

/** A group of a pattern. */
export interface Group {
  /** '' if unnamed. */
  readonly name: string
  /**
   * Its number in the expression compiled from the pattern; 0: it is inside a `{…}` repetition, and does not capture.
   */
  readonly number: number
}

export interface SearchOptions {
  /** Whether groups capture, which costs time and is limited to 99 groups. */
  readonly keepsGroups?: boolean
}

/**
 * A user's pattern in RE2 syntax, searched for anywhere in foreign texts. Search takes linear time: if V8's default
 * engine could restart at every letter, long texts use the engine that tracks all starts at once, at 50 ns per letter
 * and more for a large pattern. Texts that would take too long even there are not searched.
 */
export class SearchPattern {
  /** Empty if groups do not capture. */
  readonly groups: readonly Group[]
  /** Longest text that is searched, in UTF-16 units. */
  readonly longest: number
  readonly #quick: RegExp
  readonly #quickAll: RegExp
  readonly #steady: RegExp | undefined
  readonly #steadyAll: RegExp | undefined
  /** Longest text for the quick engine. */
  readonly #quickLength: number

  /** Throws, in words, if the source is no pattern. */
  constructor(source: string, { keepsGroups = false }: SearchOptions = {}) {
    const { body, flags, groups } = keepsGroups ? capturing(source) : plain(source)
    this.groups = groups
    this.#quick = new RegExp(body, flags)
    this.#quickAll = new RegExp(body, `${flags}g`)
    const needsSteady = !startsOnce(body, flags) && mayStartAgain(body)
    this.#steady = needsSteady ? steady(body, flags) : undefined
    this.#steadyAll = needsSteady ? steady(body, `${flags}g`) : undefined
    this.#quickLength = needsSteady
      ? Math.min(quickLength, quickWork / body.length)
      : Number.POSITIVE_INFINITY
    this.longest = needsSteady ? Math.floor(mostWork / body.length) : Number.POSITIVE_INFINITY
  }

  /** True if the text is too long to be searched. */
  isTooLong(text: string): boolean {
    return text.length > this.longest
  }

  test(text: string): boolean {
    return !this.isTooLong(text) && this.#for(text, this.#quick, this.#steady).test(text)
  }

  exec(text: string): RegExpExecArray | null {
    return this.isTooLong(text) ? null : this.#for(text, this.#quick, this.#steady).exec(text)
  }

  /** The expression that finds all matches in a text, from its beginning. The text must not be too long. */
  all(text: string): RegExp {
    const expression = this.#for(text, this.#quickAll, this.#steadyAll)
    expression.lastIndex = 0
    return expression
  }

  /** True if finding all matches may take long: each of them can scan the whole rest, in either engine. */
  mayTakeLong(text: string): boolean {
    return text.length > this.#quickLength
  }

  #for(text: string, quick: RegExp, steady: RegExp | undefined): RegExp {
    return steady === undefined || text.length <= this.#quickLength ? quick : steady
  }
}

interface Compiled {
  readonly body: string
  readonly flags: string
  readonly groups: readonly Group[]
}

function plain(source: string): Compiled {
  const { source: body, flags } = linearRegExp(source)
  return { body, flags, groups: [] }
}

/** True if a search starts in one place only. Each alternative would have its own start. */
function startsOnce(body: string, flags: string): boolean {
  return body.startsWith('^') && !flags.includes('m') && !body.includes('|')
}

/**
 * True if an attempt may go far and then fail, and so may the next one. In the output of `linearRegExp`, these signs
 * are never literal. A repetition at the very end does not fail; a bounded one is a row of optional parts.
 */
function mayStartAgain(body: string): boolean {
  return /[*+]/.test(body.replace(/[*+]\??\)*$/, '')) || body.split(/[^(]\?/).length > 9
}

/** Uses V8's non-backtracking engine: Node 20 and 24 have it behind a flag, which the letter `l` requires. */
function steady(body: string, flags: string): RegExp {
  setFlagsFromString('--enable-experimental-regexp-engine')
  return new RegExp(body, `${flags}l`)
}

// Private use characters, one per group, mark the groups, since `linearRegExp` makes groups non-capturing and may copy
// them.
const firstMark = 0xe000
const mostGroups = 99

function capturing(source: string): Compiled {
  const without = plain(source)
  const { marked, names } = markGroups(source)
  if (names.length === 0) return without
  if (names.length > mostGroups) throw new Error(`it has more than ${mostGroups} groups`)
  if (/\\u(?:e|f[0-8])[0-9a-f]{3}/.test(without.body))
    throw new Error('it has groups and Unicode private-use characters')
  let body = linearRegExp(marked).source
  let number = 0
  const groups = names.map((name, i) => {
    const mark = `(?:\\u${(firstMark + i).toString(16)}`
    const copies = body.split(mark)
    const isKept = copies.length === 2
    body = copies.join(isKept ? '(' : '(?:')
    return { name, number: isKept ? ++number : 0 }
  })
  return { body, flags: without.flags, groups }
}

/** Inserts a mark after the start of each capturing group. The source is known to be valid. */
function markGroups(source: string): { marked: string; names: readonly string[] } {
  const names: string[] = []
  let marked = ''
  for (let i = 0; i < source.length; ) {
    const rest = source.slice(i)
    const part = quoted.exec(rest)?.[0] ?? rest[0]!
    const group = /^\((?:\?P?<(\w+)>|(?!\?))/.exec(rest)
    if (group === null) marked += part
    else {
      marked += group[0] + String.fromCharCode(firstMark + names.length)
      names.push(group[1] ?? '')
    }
    i += (group?.[0] ?? part).length
  }
  return { marked, names }
}

/** Text in which a bracket is literal: quoted text, escaped characters, sets. */
const quoted = /^(?:\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\])/s
