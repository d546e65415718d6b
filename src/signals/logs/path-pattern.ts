// Path patterns: `*`, `?`, `[a-z]`, `{a,b}`, and `**` for any number of directories.

/** Maximum alternatives of one pattern with braces. */
const maxAlternatives = 256

/** One name of a path. */
export interface NamePattern {
  /** Text as written. */
  readonly text: string
  /** `name`: matches only `text`. `any`: `**`. */
  readonly kind: 'name' | 'wild' | 'any'
  /** Whether a name matches; a leading `.` must be explicit, as in a shell. */
  matches(name: string): boolean
}

/** The names of an absolute path, the first directory first. */
export type PathPattern = readonly NamePattern[]

/**
 * Parses a pattern: one result per alternative of its braces. Throws an error with a reason if it is invalid. Brackets
 * and braces that are not closed, and characters after a backslash, are literal.
 */
export function pathPatterns(source: string): PathPattern[] {
  if (!source.startsWith('/')) throw new Error('it does not start with "/"')
  const alternatives: string[] = []
  expand('', source, alternatives)
  return alternatives.map(text => {
    const names = text.split('/').filter(name => name !== '' && name !== '.')
    // Two in a row are equal to one.
    return names.filter((name, i) => name !== '**' || names[i - 1] !== '**').map(namePattern)
  })
}

/** Whether a path matches the pattern. In linear time for usual patterns; at most the product of the lengths. */
export function matchesPath(pattern: PathPattern, path: string): boolean {
  const names = path.split('/').filter(name => name !== '')
  let at = 0
  let step = 0
  let anyStep = -1
  let anyAt = 0
  while (at < names.length) {
    const part = pattern[step]
    if (part?.kind === 'any') {
      anyStep = step++
      anyAt = at
      if (step === pattern.length) return names.slice(at).every(name => !name.startsWith('.'))
    } else if (part?.matches(names[at]!)) {
      step++
      at++
    } else if (anyStep >= 0 && !names[anyAt]!.startsWith('.')) {
      at = ++anyAt
      step = anyStep + 1
    } else return false
  }
  return step === pattern.length
}

function expand(before: string, rest: string, into: string[]): void {
  const open = openingBrace(rest)
  const parts = open < 0 ? [] : braceParts(rest, open)
  if (parts.length === 0) {
    if (into.length >= maxAlternatives)
      throw new Error(`its braces expand to more than ${maxAlternatives} patterns`)
    into.push(before + rest)
    return
  }
  const end = open + parts.reduce((sum, part) => sum + part.length + 1, 1)
  for (const part of parts) expand(before, rest.slice(0, open) + part + rest.slice(end), into)
}

/** First brace that is closed and contains a comma; -1 for none. */
function openingBrace(text: string): number {
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '\\') i++
    else if (text[i] === '{' && braceParts(text, i).length > 1) return i
  }
  return -1
}

/** Alternatives of a brace; none if it is not closed. */
function braceParts(text: string, open: number): string[] {
  const parts: string[] = []
  let depth = 0
  let from = open + 1
  for (let i = open; i < text.length; i++) {
    const character = text[i]
    if (character === '\\') i++
    else if (character === '{') depth++
    else if (character === ',' && depth === 1) {
      parts.push(text.slice(from, i))
      from = i + 1
    } else if (character === '}' && --depth === 0) return [...parts, text.slice(from, i)]
  }
  return []
}

/** Element of a name pattern: one character, or any number of characters. */
type Part = ((code: number) => boolean) | 'many'

function namePattern(source: string): NamePattern {
  if (source === '**') return { text: source, kind: 'any', matches: name => !name.startsWith('.') }
  const parts: Part[] = []
  let text = ''
  let isWild = false
  for (let i = 0; i < source.length; i++) {
    const character = source[i]!
    const set = character === '[' ? characterSet(source, i) : undefined
    if (character === '*') {
      if (parts.at(-1) !== 'many') parts.push('many')
      isWild = true
    } else if (character === '?') {
      parts.push(() => true)
      isWild = true
    } else if (set !== undefined) {
      parts.push(set.has)
      i = set.end
      isWild = true
    } else {
      if (character === '\\' && i + 1 < source.length) i++
      const code = source.charCodeAt(i)
      parts.push(other => other === code)
      text += source[i]
    }
  }
  if (!isWild) return { text, kind: 'name', matches: name => name === text }
  const asksForDot = source.startsWith('.') || source.startsWith('\\.')
  return {
    text: source,
    kind: 'wild',
    matches: name => (asksForDot || !name.startsWith('.')) && matchesParts(parts, name),
  }
}

/** Backtracks only to the last `*`: what an earlier one could match, the later one can match as well. */
function matchesParts(parts: readonly Part[], name: string): boolean {
  let at = 0
  let step = 0
  let manyStep = -1
  let manyAt = 0
  while (at < name.length) {
    const part = parts[step]
    if (part === 'many') {
      manyStep = step++
      manyAt = at
    } else if (part?.(name.charCodeAt(at))) {
      step++
      at++
    } else if (manyStep >= 0) {
      at = ++manyAt
      step = manyStep + 1
    } else return false
  }
  while (parts[step] === 'many') step++
  return step === parts.length
}

/** Character set; undefined if the bracket is not closed. */
function characterSet(
  source: string,
  open: number,
): { readonly has: (code: number) => boolean; readonly end: number } | undefined {
  const isNegated = /[!^]/.test(source[open + 1] ?? '')
  const from = open + (isNegated ? 2 : 1)
  // A closing bracket at the start is literal.
  const end = source.indexOf(']', from + 1)
  if (end < 0) return undefined
  const ranges: [number, number][] = []
  for (let i = from; i < end; i++) {
    const first = source.charCodeAt(i)
    const isRange = source[i + 1] === '-' && i + 2 < end
    ranges.push([first, isRange ? source.charCodeAt(i + 2) : first])
    if (isRange) i += 2
  }
  return { has: code => ranges.some(([low, high]) => code >= low && code <= high) !== isNegated, end }
}
