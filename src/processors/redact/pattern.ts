import { setFlagsFromString } from 'node:v8'
import { linearRegExp } from '../../lib/linear-regexp.ts'

// The flag `l` compiles for V8's engine without backtracking from the start (Node 20 and 24). The one that steps in
// when there was too much of it does not see what is only quadratic: (.*a){12} took 6 s on 64 KiB, 10 ms with `l`.
setFlagsFromString('--enable-experimental-regexp-engine')

/** In texts up to this length what is quadratic takes milliseconds. Behind it the linear engine is asked at once. */
const longestFast = 4096
/** A search that takes longer shows that a pattern backtracks. One may be the fault of another program. */
const slowMs = 2
const mostSlow = 3

/** A pattern of a user, for all of its matches in a text, in linear time. */
export class Pattern {
  /** What every match holds, as far as it is easily seen. */
  readonly literal: string
  /** 50 times as fast as `linear`, most of the time. */
  private readonly fast: RegExp
  private readonly linear: RegExp
  private slow = 0

  /** Throws, in words, where it is none. */
  constructor(source: string) {
    const { source: body, flags } = linearRegExp(source)
    this.literal = requiredLiteral(source)
    this.fast = new RegExp(body, `${flags}g`)
    this.linear = new RegExp(body, `${flags}gl`)
  }

  /** The expression for a text, to be asked from its beginning. */
  expressionFor(text: string): RegExp {
    const expression = text.length > longestFast || this.slow >= mostSlow ? this.linear : this.fast
    expression.lastIndex = 0
    return expression
  }

  /** Tells how long a search took. */
  took(ms: number): void {
    if (ms > slowMs) this.slow++
  }
}

/** Why a pattern cannot be a rule; '' where it can. */
export function patternFault(source: string): string {
  try {
    const pattern = new Pattern(source)
    // What matches nothing at all stands between any two characters.
    const empty = ['', 'a', ' ', '0', '-', 'a b', 'é'].some(
      text => pattern.expressionFor(text).exec(text)?.[0] === '',
    )
    return empty ? 'it matches the empty text; write + for *, or more around it' : ''
  } catch (error) {
    return (error as Error).message
  }
}

/**
 * The longest text of ASCII that every match of a pattern holds, as far as it is easily seen; '' where it is not. Texts
 * without it need no look with the pattern: indexOf takes a tenth of the time.
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
      // What else an escape begins may go on behind its letter: \x41, \Q…\E.
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

/** How much of `{2,3}` follows its first character; 0 where the brace stands for itself. */
function repetitionLength(source: string, at: number): number {
  const found = /^\{\d+(?:,\d*)?\}/.exec(source.slice(at, at + 16))
  return found === null ? 0 : found[0].length - 1
}
