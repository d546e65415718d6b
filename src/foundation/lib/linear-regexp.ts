import { setFlagsFromString } from 'node:v8'

// With this flag V8 switches to its non-backtracking engine on excessive backtracking (measured: 1.8 ms instead of 12 s
// for ^(a+)+$ on 28 letters). It exists in Node 20 and 24. It does not detect quadratic searches that restart at every
// letter ([a-z]+@ takes 5 ms for 2048 letters and 19 s for 256 Ki): use `search-pattern.ts` for these. That engine
// supports neither the flags `i` and `u`, nor look-around, backreferences, or more than 16 repetitions of a part. RE2
// has no look-around or backreferences either; here letters are written in both cases, and such repetitions are written
// out.
setFlagsFromString('--enable-experimental-regexp-engine-on-excessive-backtracks')

/** As in RE2. */
const mostRepetitions = 1000
/** Maximum size of expanded nested repetitions. */
const mostCharacters = 64 * 1024

/**
 * A regular expression in RE2 syntax, as users of the replaced exporter write them, for testing short texts: names of
 * devices, units and metrics. Linear time if the pattern is anchored, at most quadratic otherwise; use `SearchPattern`
 * for long or foreign texts. Groups do not capture. Throws, in words, if the pattern is invalid.
 */
export function linearRegExp(source: string): RegExp {
  const leading = /^\(\?([ims]+)\)/.exec(source)
  const flags = new Set(leading?.[1] ?? '')
  const ignoresCase = flags.delete('i')
  const body = translate(source.slice(leading?.[0].length ?? 0), { ignoresCase })
  return compiled(body, [...flags].join(''))
}

function compiled(body: string, flags: string): RegExp {
  try {
    return new RegExp(body, flags)
  } catch (error) {
    throw new Error(
      (error as Error).message.replace(/^Invalid regular expression: \/.*\/\w*: /s, '').toLowerCase(),
    )
  }
}

/** The same for a pattern that must match as a whole: in linear time. */
export function anchoredRegExp(source: string): RegExp {
  // Wrapped afterwards, since users write flags at the beginning.
  const { source: body, flags } = linearRegExp(source)
  return new RegExp(`^(?:${body})$`, flags)
}

/** A pattern that must match as a whole, with its captures. */
export interface CapturingRegExp {
  readonly regexp: RegExp
  /** By number in the source, the whole match first. */
  readonly groups: readonly CapturedGroup[]
}

export interface CapturedGroup {
  /** '' if unnamed. */
  readonly name: string
  /**
   * Its numbers in the expression. `{…}` repetitions are written out, so there may be several, in the order of the
   * text: the last one that matched is the one that RE2 reports.
   */
  readonly numbers: readonly number[]
}

/** Maximum number of groups after expansion. */
const mostCaptures = 1000

/**
 * Like `anchoredRegExp`, for a pattern whose captures are needed, and in which `.` matches every character. If an
 * alternative within a repetition did not match in the last round, its group is empty; RE2 reports an earlier round. A
 * character beyond U+FFFF counts as two: `.+` matches it, but `.` alone does not.
 */
export function capturingRegExp(source: string): CapturingRegExp {
  if (/^\(\?[is]*m/.test(source))
    throw new Error('it has the flag m, but the whole text is matched: remove the flag')
  const names: string[] = []
  const body = translate(source, { ignoresCase: false, dotAll: true, names })
  const numbers: number[][] = [[0], ...names.map(() => [])]
  let captures = 0
  const numbered = body.replace(/\(\?<g(\d+)>/g, (_, group: string) => {
    numbers[Number(group)]!.push(++captures)
    return '('
  })
  if (captures > mostCaptures) throw new Error(`its groups are repeated more than ${mostCaptures} times`)
  const named = names.filter(name => name !== '')
  const twice = named.find((name, i) => named.indexOf(name) !== i)
  if (twice !== undefined) throw new Error(`it has two groups named ${twice}`)
  // Compiled alone first: an unclosed part must not be closed by the text around it.
  compiled(numbered, '')
  return {
    regexp: compiled(`^(?:${numbered})$`, ''),
    groups: numbers.map((each, i) => ({ name: names[i - 1] ?? '', numbers: each })),
  }
}

/** POSIX classes in brackets (section 9.3.5), ASCII only as in RE2. */
const classes: Readonly<Record<string, string>> = {
  alnum: '0-9A-Za-z',
  alpha: 'A-Za-z',
  ascii: '\\x00-\\x7F',
  blank: '\\t ',
  cntrl: '\\x00-\\x1F\\x7F',
  digit: '0-9',
  graph: '!-~',
  lower: 'a-z',
  print: ' -~',
  punct: '!-\\/:-@\\[-`{-~',
  space: '\\t\\n\\v\\f\\r ',
  upper: 'A-Z',
  word: '0-9A-Za-z_',
  xdigit: '0-9A-Fa-f',
}

interface Translation {
  /** Until the source changes it. */
  readonly ignoresCase: boolean
  /** Undefined: as the expression's flags specify. */
  readonly dotAll?: boolean
  /** Receives the names of the groups. Groups capture, and begin with `(?<g1>`, only if it is set. */
  readonly names?: string[]
}

/**
 * Translates RE2's syntax (its page "Syntax", 2024) to JavaScript, avoiding what the linear engine does not support.
 */
function translate(source: string, { names, ...flags }: Translation): string {
  let out = ''
  let { ignoresCase, dotAll }: Translation = flags
  /** The open groups: their start in `out`, and the flags after them. */
  const groups: { start: number; ignoresCase: boolean; dotAll: boolean | undefined }[] = []
  /** Start of the part that a repetition would apply to. */
  let part: number | undefined
  const add = (text: string, isPart = true) => {
    part = isPart ? out.length : undefined
    out += text
  }
  for (let i = 0; i < source.length; ) {
    const rest = source.slice(i)
    const character = source[i]!
    let length = 1
    if (rest.startsWith('\\Q')) {
      const end = rest.indexOf('\\E')
      const quoted = rest.slice(2, end < 0 ? undefined : end)
      for (const each of quoted) for (const unit of each.split('')) add(letter(unit, ignoresCase))
      length = quoted.length + (end < 0 ? 2 : 4)
    } else if (character === '\\') {
      const found = escaped(rest)
      length = found.length
      if (found.unit !== undefined) add(letter(found.unit, ignoresCase))
      else if (found.set === 'A') add('^', false)
      else if (found.set === 'z') add('$', false)
      else if (/[sS]/.test(found.set)) add(`[${spaces[found.set]}]`)
      else add(`\\${found.set}`, !/[bB]/.test(found.set))
    } else if (character === '[') {
      const found = bracket(rest, ignoresCase)
      length = found.length
      add(found.text)
    } else if (character === '(') {
      const found = groupStart(rest)
      length = found.length
      if (found.opens) {
        groups.push({ start: out.length, ignoresCase, dotAll })
        add(names && found.name !== undefined ? `(?<g${names.push(found.name)}>` : '(?:', false)
      }
      ignoresCase = found.ignoresCase ?? ignoresCase
      dotAll = found.dotAll ?? dotAll
    } else if (character === ')') {
      const group = groups.pop()
      add(')')
      part = group?.start
      if (group) ({ ignoresCase, dotAll } = group)
    } else if (character === '.' && dotAll !== undefined) add(dotAll ? '[^]' : '[^\\n]')
    else if (/^(?:[*+?]|\{\d+(?:,\d*)?\})/.test(rest)) {
      if (part === undefined)
        throw new Error('a repetition without anything to repeat, or of another repetition')
      const [whole, sign, least, comma, most, lazy = ''] = /^(?:([*+?])|\{(\d+)(?:(,)(\d*))?\})(\??)/.exec(
        rest,
      )!
      length = whole.length
      const range = comma === undefined ? least : most
      if (sign !== undefined) out += sign + lazy
      else
        out =
          out.slice(0, part) +
          repeated(out.slice(part), Number(least), range ? Number(range) : undefined, lazy)
      part = undefined
    } else
      add(/[.^$|]/.test(character) ? character : letter(character, ignoresCase), !/[\^$|]/.test(character))
    if (out.length > mostCharacters) throw new Error('it repeats too much')
    i += length
  }
  return out
}

interface GroupStart {
  readonly length: number
  /** False: it only sets flags, for the rest of the enclosing group. */
  readonly opens: boolean
  /** '' if unnamed; undefined: it does not capture. */
  readonly name: string | undefined
  /** Undefined: unchanged. */
  readonly ignoresCase: boolean | undefined
  readonly dotAll: boolean | undefined
}

/** Parses the text after an opening parenthesis. */
function groupStart(rest: string): GroupStart {
  const start = { opens: true, name: undefined, ignoresCase: undefined, dotAll: undefined }
  if (!rest.startsWith('(?')) return { ...start, length: 1, name: '' }
  const named = /^\(\?P?<([A-Za-z_]\w*)>/.exec(rest)
  if (named) return { ...start, length: named[0].length, name: named[1]! }
  const flagged = /^\(\?([a-zA-Z]*)(?:-([a-zA-Z]+))?([:)])/.exec(rest)
  if (!flagged)
    throw new Error(
      /^\(\?<?[=!]/.test(rest)
        ? 'it uses lookaround, which RE2 does not support'
        : '(? does not begin a group',
    )
  const [whole, set = '', cleared = '', end] = flagged
  const other = /[^is]/.exec(set + cleared)?.[0]
  if (other === 'm') throw new Error('it has the flag m in the middle; set it once, at the beginning')
  if (other !== undefined) throw new Error(`it has the flag ${other}, which is not supported`)
  const flag = (letter: string) => (cleared.includes(letter) ? false : set.includes(letter) || undefined)
  return { ...start, length: whole.length, opens: end === ':', ignoresCase: flag('i'), dotAll: flag('s') }
}

/** `most` undefined: unlimited. */
function repeated(part: string, least: number, most: number | undefined, lazy: string): string {
  if (least > mostRepetitions || (most ?? 0) > mostRepetitions)
    throw new Error(`it repeats a part more than ${mostRepetitions} times`)
  if (most !== undefined && most < least) throw new Error('the maximum of a repetition is below its minimum')
  const optional = most === undefined ? 1 : most - least
  if (part.length * (least + optional) > mostCharacters) throw new Error('it repeats too much')
  const needed = part.repeat(least)
  if (most === undefined) return `(?:${needed}${part}*${lazy})`
  return `(?:${needed}${`(?:${part}`.repeat(optional)}${`)?${lazy}`.repeat(optional)})`
}

/** In RE2 `\\s` is ASCII only, and excludes the vertical tab. */
const spaces: Readonly<Record<string, string>> = {
  s: '\\t\\n\\f\\r ',
  S: '\\x00-\\x08\\x0B\\x0E-\\x1F!-\\uFFFF',
}

interface Escape {
  readonly length: number
  /** The character; undefined: `set` is a set instead. */
  readonly unit: string | undefined
  readonly set: string
}

const controls: Readonly<Record<string, string>> = { a: '\x07', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }

/** Parses an escape sequence. */
function escaped(rest: string): Escape {
  const code = /^\\x(?:([0-9a-fA-F]{2})|\{([0-9a-fA-F]{1,4})\})/.exec(rest)
  const octal = code ? null : /^\\0[0-7]{0,2}/.exec(rest)
  if (code) {
    const unit = String.fromCharCode(Number.parseInt(code[1] ?? code[2]!, 16))
    return { length: code[0].length, unit, set: '' }
  }
  if (octal)
    return {
      length: octal[0].length,
      unit: String.fromCharCode(Number.parseInt(octal[0].slice(1), 8)),
      set: '',
    }
  const next = rest[1] ?? ''
  if (/[1-9k]/.test(next)) throw new Error('it uses a backreference, which RE2 does not support')
  if (/[pP]/.test(next)) throw new Error('it uses a Unicode class; list the characters instead')
  if (Object.hasOwn(controls, next)) return { length: 2, unit: controls[next]!, set: '' }
  if (/[dDsSwWbBAz]/.test(next)) return { length: 2, unit: undefined, set: next }
  if (next === '' || /[A-Za-z]/.test(next))
    throw new Error(`it has \\${next}, which is not an escape sequence`)
  return { length: 2, unit: next, set: '' }
}

/** Parses a bracket expression. */
function bracket(rest: string, ignoresCase: boolean): { readonly text: string; readonly length: number } {
  const open = /^\[\^?/.exec(rest)![0]
  let text = open
  let i = open.length
  // In RE2 a closing bracket in first position is literal.
  for (let isFirst = true; rest[i] !== ']' || isFirst; isFirst = false) {
    if (i >= rest.length) throw new Error('a bracket is not closed')
    const named = /^\[:(\^?)(\w+):\]/.exec(rest.slice(i))
    if (named) {
      const set = Object.hasOwn(classes, named[2]!) ? classes[named[2]!] : undefined
      if (set === undefined || named[1] !== '')
        throw new Error(`it has the class ${named[0]}, which is unknown`)
      text += ignoresCase && /^(?:lower|upper)$/.test(named[2]!) ? classes.alpha! : set
      i += named[0].length
      continue
    }
    const first = member(rest.slice(i))
    i += first.length
    if (first.unit === undefined) {
      if (/[bBAz]/.test(first.set)) throw new Error(`it has \\${first.set} in brackets`)
      text += spaces[first.set] ?? `\\${first.set}`
      continue
    }
    let last = first.unit
    if (rest[i] === '-' && i + 1 < rest.length && rest[i + 1] !== ']') {
      const end = member(rest.slice(i + 1))
      if (end.unit === undefined || end.unit < last) throw new Error('a range ends before it begins')
      last = end.unit
      i += 1 + end.length
    }
    text += range(first.unit, last)
    if (ignoresCase) text += otherCase(first.unit, last)
  }
  return { text: `${text}]`, length: i + 1 }
}

function member(rest: string): Escape {
  return rest[0] === '\\' ? escaped(rest) : { length: 1, unit: rest[0]!, set: '' }
}

/** A single character, in both cases if requested. */
function letter(unit: string, ignoresCase: boolean): string {
  const other = ignoresCase ? otherCase(unit, unit) : ''
  return other === '' ? plain(unit) : `[${plain(unit)}${other}]`
}

function range(first: string, last: string): string {
  return first === last ? plain(first) : `${plain(first)}-${plain(last)}`
}

/** The other case of the ASCII letters in a range, or of one letter; '' if there are none. */
function otherCase(first: string, last: string): string {
  if (first === last) {
    const other = first === first.toLowerCase() ? first.toUpperCase() : first.toLowerCase()
    return other === first || other.length !== 1 ? '' : plain(other)
  }
  const within = (low: string, high: string, turn: (text: string) => string) => {
    const [from, to] = [first > low ? first : low, last < high ? last : high]
    return from > to ? '' : range(turn(from), turn(to))
  }
  return within('a', 'z', text => text.toUpperCase()) + within('A', 'Z', text => text.toLowerCase())
}

/** A literal character. */
function plain(unit: string): string {
  return /[0-9A-Za-z_]/.test(unit) ? unit : `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
}
