import { SearchPattern } from '../../../foundation/lib/search-pattern.ts'

/** Reason why a pattern cannot be a rule; '' if it can. */
export function patternFault(source: string): string {
  try {
    const pattern = new SearchPattern(source)
    // A pattern that matches empty text would match between any two characters.
    const empty = ['', 'a', ' ', '0', '-', 'a b', 'é'].some(text => pattern.exec(text)?.[0] === '')
    return empty ? 'it matches empty text; use + instead of *, or add more around it' : ''
  } catch (error) {
    return (error as Error).message
  }
}

/**
 * Longest ASCII text contained in every match of a pattern, as far as it is easy to determine; otherwise ''. Texts
 * without it need no pattern match: indexOf takes a tenth of the time.
 */
export function requiredLiteral(source: string): string {
  if (source.startsWith('(?')) return ''
  let longest = ''
  let run = ''
  let depth = 0
  const end = () => {
    if (run.length > longest.length) longest = run
    run = ''
  }
  for (let i = 0; i < source.length; i++) {
    const character = source[i]!
    if (character === '|' && depth === 0) return ''
    const isEscape = character === '\\'
    if (isEscape) i++
    if (character === '[') {
      end()
      i = classEnd(source, i)
    } else if (character === '(' || character === ')') {
      end()
      depth += character === '(' ? 1 : -1
    } else if (depth > 0) continue
    else if (isEscape ? /[^0-9A-Za-z]/.test(source[i] ?? 'a') : /[^.^$*+?{}]/.test(character)) {
      const literal = source[i]!
      const next = source[i + 1]
      if (literal > '\x7e' || next === '*' || next === '?' || next === '{') end()
      else {
        run += literal
        if (next === '+') end()
      }
    } else {
      // Any other escape may continue after its letter: \x41, \Q…\E.
      if (isEscape && !/[dDwWsSbBAzntrfva]/.test(source[i] ?? '')) return ''
      end()
      if (!isEscape && character === '{') i += repetitionLength(source, i)
    }
  }
  end()
  return longest
}

/** Offset of the bracket that closes the class at `at`. */
function classEnd(source: string, at: number): number {
  let i = at + 1
  if (source[i] === '^') i++
  if (source[i] === ']') i++
  for (; i < source.length && source[i] !== ']'; i++) {
    if (source[i] === '\\') i++
    else if (source.startsWith('[:', i)) i = Math.max(i, source.indexOf(':]', i) + 1)
  }
  return i
}

/** Length of `{2,3}` after its first character; 0 if the brace is a literal. */
function repetitionLength(source: string, at: number): number {
  const found = /^\{\d+(?:,\d*)?\}/.exec(source.slice(at, at + 16))
  return found === null ? 0 : found[0].length - 1
}
