import { setFlagsFromString } from 'node:v8'

// A pattern that backtracks too much goes on in V8's engine that does not, so that no pattern takes more than linear
// time (measured: 1.8 ms instead of 12 s for ^(a+)+$ on 28 letters). The flag exists in Node 20 and 24. Patterns with
// the flag `u`, with look-around or with back references have no such engine.
setFlagsFromString('--enable-experimental-regexp-engine-on-excessive-backtracks')

/**
 * A regular expression in the syntax of RE2, as users of the replaced exporter write them, matched in linear time.
 * Throws, in words, where the text is none.
 */
export function linearRegExp(source: string): RegExp {
  const leading = /^\(\?([ims]+)\)/.exec(source)
  const flags = [...new Set(leading?.[1] ?? '')].join('')
  const body = translate(source.slice(leading?.[0].length ?? 0))
  try {
    return new RegExp(body, flags)
  } catch (error) {
    throw new Error(
      (error as Error).message.replace(/^Invalid regular expression: \/.*\/\w*: /s, '').toLowerCase(),
    )
  }
}

/** The same for a pattern that must match as a whole. */
export function anchoredRegExp(source: string): RegExp {
  // Wrapped afterwards: flags stand at the beginning of what users write.
  const { source: body, flags } = linearRegExp(source)
  return new RegExp(`^(?:${body})$`, flags)
}

/** Classes that stand in brackets (POSIX, section 9.3.5), of ASCII as in RE2. */
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

/** RE2's syntax (its page "Syntax", 2024) as JavaScript's, where they differ. */
function translate(source: string): string {
  let out = ''
  let inBrackets = false
  for (let i = 0; i < source.length; i++) {
    const rest = source.slice(i)
    const character = source[i]!
    if (character === '\\') {
      const next = source[i + 1] ?? ''
      if (next === 'Q') {
        const end = source.indexOf('\\E', i + 2)
        out += source.slice(i + 2, end < 0 ? undefined : end).replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
        i = end < 0 ? source.length : end + 1
        continue
      }
      if (/[1-9k]/.test(next)) throw new Error('it refers back to a group, which RE2 has not')
      if (/[pP]/.test(next)) throw new Error('it names a Unicode class; write the characters out')
      const code = /^\\x\{([0-9a-fA-F]{1,4})\}/.exec(rest)
      if (code) out += `\\u${code[1]!.padStart(4, '0')}`
      else if (!inBrackets && next === 'A') out += '^'
      else if (!inBrackets && next === 'z') out += '$'
      else out += next === 'a' ? '\\x07' : `\\${next}`
      i += code ? code[0].length - 1 : 1
    } else if (inBrackets) {
      const named = /^\[:(\^?)(\w+):\]/.exec(rest)
      if (named) {
        const set = classes[named[2]!]
        if (set === undefined || named[1] !== '')
          throw new Error(`it has the class ${named[0]}, which is not known`)
        out += set
        i += named[0].length - 1
      } else {
        if (character === ']') inBrackets = false
        out += character === '[' ? '\\[' : character
      }
    } else if (character === '[') {
      inBrackets = true
      const open = /^\[\^?\]?/.exec(rest)![0]
      // A bracket that closes at once stands for itself in RE2.
      out += open.endsWith(']') ? `${open.slice(0, -1)}\\]` : open
      i += open.length - 1
    } else if (rest.startsWith('(?')) {
      const group = /^\(\?(?::|P?<[A-Za-z_]\w*>)/.exec(rest)?.[0]
      if (group === undefined)
        throw new Error(
          /^\(\?<?[=!]/.test(rest)
            ? 'it looks around, which RE2 does not'
            : 'it has flags inside; write them once, at the beginning',
        )
      out += group.replace('(?P<', '(?<')
      i += group.length - 1
    } else out += character
  }
  return out
}
