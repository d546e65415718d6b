import { is, isDigit, isUpper, letter, matchesAt } from './characters.ts'

/** Maximum distance of a keyword before a number. */
const reach = 30

/** A lower-case word that indicates the kind of a following number. `whole`: no letter may follow it. */
export interface Keyword {
  readonly text: string
  readonly whole: boolean
}

/** Keywords by first letter. */
export function keywordsOf(keywords: readonly Keyword[]): Keywords {
  const byLetter: Keyword[][] = Array.from({ length: 26 }, () => [])
  for (const keyword of keywords) byLetter[keyword.text.charCodeAt(0) - 97]!.push(keyword)
  return byLetter
}
export type Keywords = readonly (readonly Keyword[])[]

/** Whether a keyword is before `at`, on the same line and without another digit between. */
export function keywordBefore(units: Uint8Array, at: number, keywords: Keywords): boolean {
  let unit = units[at - 1]!
  for (let i = at - 1; i >= at - reach; i--) {
    const before = units[i - 1]!
    if (unit < 32 || isDigit(unit)) return false
    const begins = is(unit, letter) && (!is(before, letter) || (isUpper(unit) && !isUpper(before)))
    if (begins && isOneOf(keywords[(unit | 32) - 97]!, units, i)) return true
    unit = before
  }
  return false
}

function isOneOf(keywords: readonly Keyword[], units: Uint8Array, at: number): boolean {
  for (let k = 0; k < keywords.length; k++) {
    const { text, whole } = keywords[k]!
    if (!matchesAt(units, at, text)) continue
    const after = units[at + text.length]!
    if (!(whole && after >= 97 && is(after, letter))) return true
  }
  return false
}
