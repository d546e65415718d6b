// Patterns of paths as users write them: `*`, `?`, `[a-z]`, `{a,b}`, and `**` for any number of directories.

/** Alternatives that braces may make of one pattern. */
const maxAlternatives = 256

/** One name of a path. */
export interface NamePattern {
  /** As it was written. */
  readonly text: string
  /** `name`: no other name than `text`. `any`: `**`. */
  readonly kind: 'name' | 'wild' | 'any'
  /** A name that begins with `.` has to be asked for so, as in a shell. */
  matches(name: string): boolean
}

/** The names of an absolute path, the first directory first. */
export type PathPattern = readonly NamePattern[]

/**
 * What a pattern asks for, one for each alternative of its braces. Throws, in words, where it cannot be read. Brackets
 * and braces that do not close, and all after a backslash, stand for themselves.
 */
export function pathPatterns(source: string): PathPattern[] {
  if (!source.startsWith('/')) throw new Error('it does not start with "/"')
  const alternatives: string[] = []
  expand('', source, alternatives)
  return alternatives.map(text => {
    const names = text.split('/').filter(name => name !== '' && name !== '.')
    // Two of them say no more than one.
    return names.filter((name, i) => name !== '**' || names[i - 1] !== '**').map(namePattern)
  })
}

/** Whether a path is meant by the pattern. In linear time for all that people write; at most the product of lengths. */
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

/** The first brace that closes and holds a comma; -1: none. */
function openingBrace(text: string): number {
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '\\') i++
    else if (text[i] === '{' && braceParts(text, i).length > 1) return i
  }
  return -1
}

/** What stands between the commas of a brace; none where it does not close. */
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

/** What a name may have at one place: one character, or any number of any. */
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
      parts.push(set.holds)
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

/** Goes back to the last `*` only: what an earlier one could take more, the later one can take as well. */
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

/** Undefined where the bracket does not close. */
function characterSet(
  source: string,
  open: number,
): { readonly holds: (code: number) => boolean; readonly end: number } | undefined {
  const isNegated = /[!^]/.test(source[open + 1] ?? '')
  const from = open + (isNegated ? 2 : 1)
  // A bracket that closes at once stands for itself.
  const end = source.indexOf(']', from + 1)
  if (end < 0) return undefined
  const ranges: [number, number][] = []
  for (let i = from; i < end; i++) {
    const first = source.charCodeAt(i)
    const isRange = source[i + 1] === '-' && i + 2 < end
    ranges.push([first, isRange ? source.charCodeAt(i + 2) : first])
    if (isRange) i += 2
  }
  return { holds: code => ranges.some(([low, high]) => code >= low && code <= high) !== isNegated, end }
}
