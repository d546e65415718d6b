import { setFlagsFromString } from 'node:v8'
import { linearRegExp } from './linear-regexp.ts'

/**
 * What a search in quadratic time may come to, in UTF-16 units of text times those of the compiled pattern, and longest
 * text for one: `[a-z]+@` takes 5 ms for 2048 letters and 19 s for 256 Ki (measured, Node 24).
 */
const quickWork = 400_000
const quickLength = 2048

/** What any search may come to, in the same measure: 4 to 10 ns for each, measured. */
const mostWork = 64 * 1024 * 1024

/** A group of a pattern. */
export interface Group {
  /** '' where it has none. */
  readonly name: string
  /** Its number in the expression that was made of the pattern; 0: it stands in what `{…}` repeats, and keeps nothing. */
  readonly number: number
}

export interface SearchOptions {
  /** Whether groups keep what they matched, which costs time and takes 99 groups at most. */
  readonly keepsGroups?: boolean
}

/**
 * A pattern in the syntax of RE2, as users write it, that is searched for anywhere in foreign texts. Search takes linear
 * time: where V8's usual engine could begin again at every letter, long texts go to the one that keeps all beginnings in
 * view, at 50 ns for each letter and more for a large pattern. What would take that one too long is not searched.
 */
export class SearchPattern {
  /** None where they keep nothing. */
  readonly groups: readonly Group[]
  /** Longest text that is searched, in UTF-16 units. */
  readonly longest: number
  readonly #quick: RegExp
  readonly #quickAll: RegExp
  readonly #steady: RegExp | undefined
  readonly #steadyAll: RegExp | undefined
  /** Longest text for the quick engine. */
  readonly #quickLength: number

  /** Throws, in words, where the source is no pattern. */
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

  /** Whether the text is too long to be searched. */
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

  /** Whether finding all matches may take long: each of them can look at all the rest, whatever the engine. */
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

/** Whether a search begins in one place only. Alternatives have each their own beginning. */
function startsOnce(body: string, flags: string): boolean {
  return body.startsWith('^') && !flags.includes('m') && !body.includes('|')
}

/**
 * Whether an attempt may go far and then fail, and so the next one too. In what `linearRegExp` makes, these signs are
 * never letters. A repetition at the very end does not fail; one with an end is a row of optional parts.
 */
function mayStartAgain(body: string): boolean {
  return /[*+]/.test(body.replace(/[*+]\??\)*$/, '')) || body.split(/[^(]\?/).length > 9
}

/** For V8's engine that does not backtrack: Node 20 and 24 have it behind a flag, which the letter `l` needs. */
function steady(body: string, flags: string): RegExp {
  setFlagsFromString('--enable-experimental-regexp-engine')
  return new RegExp(body, `${flags}l`)
}

// Characters of the private use area, one for each group, mark where the groups are: `linearRegExp` makes of each
// group one that keeps nothing, and may copy it.
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

/** Puts a mark behind the beginning of each group that keeps something. The source is known to be good. */
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

/** What may hold a bracket that is not one: quoted text, escaped characters, sets. */
const quoted = /^(?:\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\])/s
