import { type Group, SearchPattern } from '../../../foundation/lib/search-pattern.ts'
import { Patience } from '../patience.ts'

/** Longest text, in UTF-16 units, that a replacement may make. */
const longest = 1_048_576
/** Longest time for one text, in milliseconds. Matches that each look at the whole rest take quadratic time. */
const patienceMs = 100

/** Replaces every match in a text; undefined where that would take too long or make too long a text. */
export type Replace = (text: string) => string | undefined

/**
 * Compiles a replacement: `$1` or `$<name>` stands for a group of the pattern, `$0` for the whole match, `$$` for a
 * dollar sign. Throws, in words, where pattern or replacement are none.
 */
export function replacing(source: string, replacement: string, nowMs: () => number): Replace {
  const pattern = new SearchPattern(source, { keepsGroups: true })
  const { template, literals, references } = parseTemplate(replacement, pattern.groups)
  const patience = new Patience(patienceMs, nowMs)
  return text => {
    if (pattern.isTooLong(text)) return undefined
    const all = pattern.all(text)
    // Matches do not overlap, so each reference adds at most the text once more.
    const most = text.length * (1 + references) + (text.length + 1) * literals
    if (most > longest || pattern.mayTakeLong(text)) {
      const matches = countMatches(all, text, patience)
      if (matches < 0 || text.length * (1 + references) + matches * literals > longest) return undefined
    }
    return text.replace(all, template)
  }
}

/** -1: it took too long. */
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
  /** As String.prototype.replace takes it. */
  readonly template: string
  /** UTF-16 units that stand as they are. */
  readonly literals: number
  /** Groups that are named. */
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

/** A reference as String.prototype.replace has it, and the digit that did not belong to it. */
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
  // `$10` is group 1 and a zero where there are fewer than ten groups.
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
