import { type Group, SearchPattern } from '../../../foundation/lib/search-pattern.ts'
import { Patience } from '../patience.ts'

/** Maximum length of a replaced text, in UTF-16 units. */
const longest = 1_048_576
/** Maximum time for one text, in milliseconds. Matches that each check the whole rest take quadratic time. */
const patienceMs = 100

/** Replaces every match in a text; undefined if that takes too long or the result is too long. */
export type Replace = (text: string) => string | undefined

/**
 * Compiles a replacement: `$1` or `$<name>` is a group of the pattern, `$0` the whole match, `$$` a dollar sign. Throws
 * an error with a reason if pattern or replacement is invalid.
 */
export function replacing(source: string, replacement: string, nowMs: () => number): Replace {
  const pattern = new SearchPattern(source, { keepsGroups: true })
  const { template, literals, references } = parseTemplate(replacement, pattern.groups)
  const patience = new Patience(patienceMs, nowMs)
  return text => {
    if (pattern.isTooLong(text)) return undefined
    const all = pattern.all(text)
    // Matches do not overlap, so each reference adds the text at most once more.
    const most = text.length * (1 + references) + (text.length + 1) * literals
    if (most > longest || pattern.mayTakeLong(text)) {
      const matches = countMatches(all, text, patience)
      if (matches < 0 || text.length * (1 + references) + matches * literals > longest) return undefined
    }
    return text.replace(all, template)
  }
}

/** Returns -1 if it takes too long. */
function countMatches(all: RegExp, text: string, patience: Patience): number {
  patience.begin()
  let matches = 0
  let from = 0
  all.lastIndex = 0
  while (all.test(text)) {
    matches++
    // An empty match would be found again.
    if (all.lastIndex === from) all.lastIndex++
    from = all.lastIndex
    if (patience.isOver()) {
      all.lastIndex = 0
      return -1
    }
  }
  return matches
}

interface Template {
  /** In the form of String.prototype.replace. */
  readonly template: string
  /** UTF-16 units of literal text. */
  readonly literals: number
  /** Number of group references. */
  readonly references: number
}

function parseTemplate(replacement: string, groups: readonly Group[]): Template {
  let template = ''
  let literals = 0
  let references = 0
  for (const [part] of replacement.matchAll(/\$\$|\$\d{1,2}|\$<\w*>|[^$]+|\$/g)) {
    if (part === '$$' || part === '$') {
      template += '$$'
      literals++
    } else if (part[0] !== '$') {
      template += part
      literals += part.length
    } else {
      const [reference, rest] = referenceOf(part, groups)
      template += reference + rest
      literals += rest.length
      references++
    }
  }
  return { template, literals, references }
}

/** A reference in the form of String.prototype.replace, and the digit that does not belong to it. */
function referenceOf(part: string, groups: readonly Group[]): readonly [reference: string, rest: string] {
  const name = /^\$<(.*)>$/.exec(part)?.[1]
  if (name !== undefined)
    return [
      numbered(
        groups.find(group => group.name === name && name !== ''),
        part,
      ),
      '',
    ]
  const both = Number(part.slice(1))
  // With fewer than ten groups, `$10` is group 1 and a zero.
  const rest = both > groups.length && part.length === 3 ? part[2]! : ''
  const number = rest === '' ? both : Number(part[1])
  return [number === 0 ? '$&' : numbered(groups[number - 1], part), rest]
}

function numbered(group: Group | undefined, part: string): string {
  if (group === undefined) throw new Error(`group ${part} is not in the pattern; use $$ for a dollar sign`)
  if (group.number === 0)
    throw new Error(
      `group ${part} is in a part of the pattern repeated with {…}; move the repetition into the group`,
    )
  return `$${String(group.number).padStart(2, '0')}`
}
