// A command line parsed like the replaced exporter's (the rules of its library, kingpin 2): `--flag=value`, `--flag
// value`, `--switch`, `--no-switch`, `@file` for a file of words, and no positional words.

import { readFileSync } from 'node:fs'
import { fileCause } from '../../../foundation/lib/file-content.ts'

export interface FlagForm {
  readonly name: string
  /** `switch` takes no value and accepts the prefix `no-`; `values` may be repeated. */
  readonly takes: 'switch' | 'value' | 'values'
}

/** A mistake in a command line, with the exporter's own message if it has one. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

type Word = { readonly type: 'long' | 'short' | 'plain'; readonly text: string }

/** Values by flag; those of switches are `true` and `false`. Throws a `UsageError`. `-h` is `--help`. */
export function parseFlagWords(
  argv: readonly string[],
  flags: ReadonlyMap<string, FlagForm>,
): ReadonlyMap<string, readonly string[]> {
  const words = tokens(expanded(argv))
  const values = new Map<string, string[]>()
  for (let i = 0; i < words.length; i++) {
    const { type, text } = words[i]!
    if (type === 'plain') throw new UsageError(`unexpected ${text}`)
    if (type === 'short' && text !== 'h') throw new UsageError(`unknown short flag '-${text}'`)
    const name = type === 'short' ? 'help' : text
    const known = flags.get(name)
    const negated = known === undefined && name.startsWith('no-') ? flags.get(name.slice(3)) : undefined
    const flag = known ?? negated
    if (flag === undefined || (negated !== undefined && negated.takes !== 'switch'))
      throw new UsageError(`unknown long flag '--${name}'`)
    const given = values.get(flag.name)
    if (given !== undefined && flag.takes !== 'values')
      throw new UsageError(`flag '${flag.name}' cannot be repeated`)
    let value = negated === undefined ? 'true' : 'false'
    if (flag.takes !== 'switch') {
      const next = words[++i]
      if (next?.type !== 'plain') throw new UsageError(`expected argument for flag '--${name}'`)
      value = next.text
    }
    if (given === undefined) values.set(flag.name, [value])
    else given.push(value)
  }
  return values
}

function* expanded(argv: readonly string[]): Generator<string> {
  for (const word of argv) {
    if (!word.startsWith('@') || word === '@') yield word
    else for (const line of linesOf(word.slice(1))) yield line
  }
}

/** One word per line; comments begin with `#`. */
function linesOf(path: string): string[] {
  try {
    return readFileSync(path, 'utf8')
      .split(/\r?\n/)
      .filter(line => line !== '' && !line.startsWith('#'))
  } catch (error) {
    throw new UsageError(`failed to open arguments file "${path}": ${fileCause(error)}`)
  }
}

function tokens(argv: Iterable<string>): Word[] {
  const words: Word[] = []
  let flagsEnded = false
  for (const word of argv) {
    if (flagsEnded || !word.startsWith('-')) words.push({ type: 'plain', text: word })
    else if (word === '--') flagsEnded = true
    else if (word.startsWith('--')) {
      const equals = word.indexOf('=')
      words.push({ type: 'long', text: word.slice(2, equals < 0 ? undefined : equals) })
      if (equals >= 0) words.push({ type: 'plain', text: word.slice(equals + 1) })
    } else for (const letter of word.slice(1) || ' ') words.push({ type: 'short', text: letter.trim() })
  }
  return words
}
